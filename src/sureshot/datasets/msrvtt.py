"""MSR-VTT: 10,000 clips of the web with 20 sentences each.

Protocols:
    ``1k-A`` or ``1k-A 9k``: 9,000 videos with all sentences to train, 1,000 pairs of a video and
    one sentence to test. ``1k-A 7k``: the same test, 7,010 videos to train. There is no validation
    set; papers choose their checkpoint on the test set.
    ``full``: the official 6,513, 497 and 2,990 videos, every sentence a query.

Files:
    ``MSRVTT_data.json`` has the sentences; those of one video need not stand together. Where it is
    not there, they are read from the two official files: ``train_val_videodatainfo.json``, which
    may lie in its folder ``train_val_annotation``, and ``test_videodatainfo.json``.
    ``MSRVTT_train.9k.csv``, ``MSRVTT_train.7k.csv`` (column ``video_id``) and
    ``MSRVTT_JSFUSION_test.csv`` (columns ``video_id``, ``sentence``) also go by the names
    ``MSRVTT_train.9000.csv``, ``MSRVTT_train.7010.csv`` and ``MSRVTT_test.1000.csv``.
    ``MSRVTT_{train,val,test}.full.csv`` may be absent: the JSON knows the official split, too.

References:
    Xu et al., MSR-VTT: A Large Video Description Dataset for Bridging Video and Language, 2016.
    Yu et al., A Joint Sequence Fusion Model for Video Question Answering and Retrieval, 2018: 1k-A.
"""

from pathlib import Path

from sureshot.datasets.annotation import expecting, pick, read_annotation, read_table
from sureshot.datasets.split import Listing

_UNVALIDATED = "MSR-VTT 1k-A has no validation set."
PROTOCOLS = {"1k-A": _UNVALIDATED, "1k-A 9k": _UNVALIDATED, "1k-A 7k": _UNVALIDATED, "full": ""}
_TRAIN = {
    "9k": (("MSRVTT_train.9k.csv", "MSRVTT_train.9000.csv"), 9000),
    "7k": (("MSRVTT_train.7k.csv", "MSRVTT_train.7010.csv"), 7010),
}
_FULL = {"train": 6513, "val": 497, "test": 2990}
_DATA = "MSRVTT_data.json"  # has what the two official files have together
_OFFICIAL = (
    ("train_val_videodatainfo.json", "train_val_annotation/train_val_videodatainfo.json"),
    ("test_videodatainfo.json",),
)
_IN_JSON = {"train": "train", "val": "validate", "test": "test"}


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    if protocol == "full":
        return _full(root, split)
    return _pairs(root) if split == "test" else _train(root, "7k" if "7k" in protocol else "9k")


def _pairs(root: Path) -> Listing:
    path = pick(root, "MSRVTT_JSFUSION_test.csv", "MSRVTT_test.1000.csv")
    captions: dict[str, list[str]] = {}
    for row in read_table(path, "video_id", "sentence"):
        captions.setdefault(row["video_id"], []).append(row["sentence"])
    return Listing(protocol="1k-A", captions=captions, expected=1000)


def _train(root: Path, size: str) -> Listing:
    files, expected = _TRAIN[size]
    ids = [row["video_id"] for row in read_table(pick(root, *files), "video_id")]
    _, sentences = _sentences(root)
    captions = {name: sentences.get(name, []) for name in ids}
    return Listing(protocol=f"1k-A {size}", captions=captions, expected=expected)


def _full(root: Path, split: str) -> Listing:
    parts, sentences = _sentences(root)
    path = root / f"MSRVTT_{split}.full.csv"
    if path.is_file():
        ids = [row["video_id"] for row in read_table(path, "video_id")]
    else:
        ids = [name for name, part in parts.items() if part == _IN_JSON[split]]
    captions = {name: sentences.get(name, []) for name in ids}
    return Listing(protocol="full multi-caption", captions=captions, expected=_FULL[split])


def _sentences(root: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The official part and the sentences of each video."""
    parts: dict[str, str] = {}
    sentences: dict[str, list[str]] = {}
    for path in dict.fromkeys(pick(root, _DATA, *names) for names in _OFFICIAL):
        data = read_annotation(path)
        with expecting(path, '"videos" with "video_id" and "split", "sentences" with "caption"'):
            parts |= {video["video_id"]: video["split"] for video in data["videos"]}
            for sentence in data["sentences"]:
                sentences.setdefault(sentence["video_id"], []).append(sentence["caption"].strip())
    return parts, sentences

"""MSVD: 1,970 short clips of the web with about 40 sentences each, every sentence a query.

Files:
    ``{train,val,test}_list.txt``: ids, one a line.
    ``raw-captions.pkl``: id to list of sentences, each a list of words, which are joined with
    spaces; or ``captions_msvd.json``: id to list of sentences.

    The pickle is opened with `sureshot.datasets.annotation`, which runs nothing that is in it.

References:
    Chen and Dolan, Collecting Highly Parallel Data for Paraphrase Evaluation, 2011.

Differs:
    Some published loaders draw one sentence a video, or even one word where they take the list of
    words for a list of sentences. Here all sentences count.
"""

from pathlib import Path
from typing import Any

from sureshot.datasets.annotation import (
    expecting,
    pick,
    read_annotation,
    read_ids,
    read_pickle,
    sentences,
)
from sureshot.datasets.split import Listing

PROTOCOLS = {"multi-caption": ""}
_EXPECTED = {"train": 1200, "val": 100, "test": 670}


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    listed = pick(root, f"{split}_list.txt")
    path = pick(root, "raw-captions.pkl", "captions_msvd.json")
    if path.suffix == ".pkl":
        data = read_pickle(path, "list of sentences", "fetch it again, or use captions_msvd.json")
    else:
        data = read_annotation(path)
    with expecting(path, "a list of sentences for each id"):
        captions = {name: _sentences(data.get(name, [])) for name in read_ids(listed, data)}
    return Listing(protocol=protocol, captions=captions, expected=_EXPECTED[split])


def _sentences(value: Any) -> list[str]:
    """Texts, or lists of words joined to texts."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.60} is no list of sentences")
    return sentences([one if isinstance(one, str) else " ".join(one) for one in value])

"""VATEX: ten-second clips with ten English sentences each, every sentence a query of its own.

Protocols:
    ``HGR``: the official training set, and its validation set cut in halves of 1,500, as most
    papers do. ``CLIP2Video``: the same, but the 1,500 test videos of ``test1k5_sec_list.txt``,
    drawn at random by that paper; results on the two do not compare.

Files:
    ``{train,val,test}_list.txt``: ids ``YOUTUBE_START_END``, one a line; without it, ``train`` is
    the official training file.
    The sentences: ``vatex_data.json`` (id to ``{"enCap": [...]}``), ``ref_captions.json`` (id to
    list), or the official ``vatex_*.json`` (list of ``videoID`` and ``enCap``).

    The file of a clip is named after its id, or after its YouTube id alone where no other clip of
    the split shares that. Either is taken for the clip, not for the video that it was cut from.

    Many of the clips have gone from the web; the title of the split says how many were found.

References:
    Wang et al., VATEX: A Large-Scale, High-Quality Multilingual Dataset for Video-and-Language
    Research, 2019.
    Chen et al., Fine-grained Video-Text Retrieval with Hierarchical Graph Reasoning, 2020 (HGR).

Differs:
    Some published code keeps a branch that joins the ten sentences into one text, an easier task;
    this reader has no such option.
"""

import re
from collections import Counter
from pathlib import Path

from sureshot.datasets.annotation import expecting, pick, read_annotation, read_ids, sentences
from sureshot.datasets.split import Listing

PROTOCOLS = {"HGR": "", "CLIP2Video": ""}
_EXPECTED = {"train": 25991, "val": 1500, "test": 1500}
_OFFICIAL = (
    "vatex_training_v1.0.json",
    "vatex_validation_v1.0.json",
    "vatex_public_test_english_v1.1.json",
)


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    name = f"{split}_list.txt"
    if split == "test" and protocol == "CLIP2Video":
        name = "test1k5_sec_list.txt"
    if split == "train" and not (root / name).is_file() and (root / _OFFICIAL[0]).is_file():
        captions = _captions(root / _OFFICIAL[0])
    else:
        listed, known = pick(root, name), _all_captions(root)
        captions = {one: known.get(one, []) for one in read_ids(listed, known)}
    videos = {one: re.sub(r"_\d{6}_\d{6}$", "", one) for one in captions}
    clips = Counter(videos.values())
    return Listing(
        protocol=f"{protocol} multi-caption",
        captions=captions,
        expected=_EXPECTED[split],
        names={one: (video,) for one, video in videos.items() if clips[video] == 1},
    )


def _all_captions(root: Path) -> dict[str, list[str]]:
    first = pick(root, "vatex_data.json", "ref_captions.json", *_OFFICIAL)
    if first.name not in _OFFICIAL:
        return _captions(first)
    known: dict[str, list[str]] = {}
    for name in _OFFICIAL:
        if (root / name).is_file():
            known |= _captions(root / name)
    return known


def _captions(path: Path) -> dict[str, list[str]]:
    """The English sentences of each video of one file, whichever of the three forms it has."""
    data = read_annotation(path)
    with expecting(path, 'a list of "videoID" and "enCap", or lists of sentences by id'):
        if isinstance(data, list):
            data = dict(zip(sentences([video["videoID"] for video in data]), data, strict=True))
        return {
            name: sentences(video["enCap"] if isinstance(video, dict) else video)
            for name, video in data.items()
        }

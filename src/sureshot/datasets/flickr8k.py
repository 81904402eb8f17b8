"""Flickr8k: photos with five sentences each, read as videos of one frame.

Files:
    ``captions.csv`` or ``captions.txt``: comma-separated, columns ``image`` and ``caption``.
    ``split_{train,val,test}.txt`` or ``Flickr_8k.{train,dev,test}Images.txt``: names of photos, one
    a line; their extension need not be that of the files.

References:
    Hodosh et al., Framing Image Description as a Ranking Task, 2013.
"""

from pathlib import Path, PurePosixPath

from sureshot.datasets.annotation import pick, read_lines, read_table
from sureshot.datasets.listing import Listing

PROTOCOLS = ("multi-caption",)
_LISTS = {"train": ("train", 6000), "val": ("dev", 1000), "test": ("test", 1000)}


def no_validation(protocol: str) -> str:
    """Why a protocol has no validation set; empty if it has one."""
    return ""


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split.

    Raises:
        SureshotError: a file is missing or lacks a column.
    """
    other, expected = _LISTS[split]
    names = read_lines(pick(root, f"split_{split}.txt", f"Flickr_8k.{other}Images.txt"))
    sentences: dict[str, list[str]] = {}
    for row in read_table(pick(root, "captions.csv", "captions.txt"), "image", "caption"):
        sentences.setdefault(_stem(row["image"]), []).append(row["caption"])
    return Listing(
        protocol,
        {name: sentences.get(_stem(name), []) for name in names},
        expected,
        {name: (_stem(name),) for name in names},
        photos=True,
    )


def _stem(name: str) -> str:
    return PurePosixPath(name).stem

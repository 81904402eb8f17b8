"""Benchmarks of text-to-video retrieval, and your own lists, each read into the same `Split`.

No video is opened: a reader says which captions belong to which file. See the module of a dataset
for the files it needs and its rules.
"""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from sureshot.datasets import (
    activitynet,
    charades,
    didemo,
    flickr8k,
    lsmdc,
    msrvtt,
    msvd,
    pairs,
    synthetic,
    vatex,
)
from sureshot.datasets.split import (
    SPLITS,
    Caption,
    Item,
    Listing,
    Split,
    check_disjoint,
    to_split,
    usual_folders,
)
from sureshot.errors import SureshotError
from sureshot.paths import expand

__all__ = ["NAMES", "Caption", "Item", "Split", "check_disjoint", "load_split"]


# `read` of each gives the `Listing` of a split. Its `PROTOCOLS`, the usual one first, say why there
# is no validation set; nothing where there is one.
_READERS: dict[str, ModuleType] = {
    "activitynet": activitynet,
    "charades": charades,
    "didemo": didemo,
    "flickr8k": flickr8k,
    "lsmdc": lsmdc,
    "synthetic": synthetic,
    "msrvtt": msrvtt,
    "msvd": msvd,
    "vatex": vatex,
}
NAMES: tuple[str, ...] = (*_READERS, "pairs")


def load_split(
    dataset: str,
    split: str,
    root: str | Path,
    *,
    protocol: str | None = None,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
) -> Split:
    """One split of a dataset, with the videos that are on disk.

    Where a benchmark has no validation set, ``val`` with ``ids`` is that part of its training set;
    train on the rest, which `check_disjoint` makes sure of. Some missing videos are no error; the
    split names them.

    Args:
        dataset: one of `NAMES`; ``pairs`` is a list of one's own.
        root: folder with the annotation files, or the file itself for ``pairs``.
        protocol: one of the protocols of the data set; None is its usual one.
        videos: folder with the videos; None looks in the usual folders below ``root``.
        ids: file that names videos of this split, one a line; the others are left out.
        label: name of results on this split that are not comparable to published ones, such as
            ``1k-A frame subset``.
    """
    root = expand(root)
    folder = None if videos is None else expand(videos)
    listed = None if ids is None else expand(ids)
    _known("data set", dataset, NAMES)
    _known("split", split, SPLITS)
    if dataset == "pairs":
        if protocol is not None:
            raise SureshotError(f"Your own list has no protocol; leave out {protocol}.")
        return pairs.read_pairs(root, split, folder, listed, label)
    reader = _READERS[dataset]
    protocol = next(iter(reader.PROTOCOLS)) if protocol is None else protocol
    _known(f"protocol of {dataset}", protocol, tuple(reader.PROTOCOLS))
    no_validation = reader.PROTOCOLS[protocol] if split == "val" else ""
    if no_validation and listed is None:
        raise SureshotError(
            f"{no_validation} To choose a model without the test set, hold some videos of train "
            "out: put their ids into a file, one a line, and give it as ids."
        )
    listing: Listing = reader.read(root, "train" if no_validation else split, protocol)
    if no_validation:
        listing = replace(listing, expected=None)  # no size of a held-out part was published
    if listed is not None:
        listing = listing.only(listed)
    found = to_split(listing, dataset, split, [folder] if folder else usual_folders(root), label)
    return replace(found, root=root) if dataset == "synthetic" else found


def _known(kind: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise SureshotError(f"Unknown {kind} {name!r}; known: {', '.join(names)}.")

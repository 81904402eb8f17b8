"""A made world: moving shapes whose every fact is known, written by ``sureshot made``.

Files:
    ``made.json`` has the dials, every video's facts and every caption with what it was to name,
    what it names, and how many videos of its split it fits; ``videos`` the films. `read_truth`
    gives which videos each caption fits, and the Bayes scores.

Differs:
    Of other data sets nobody knows which videos a caption fits. Here relevance is complete, so
    that what a system takes for uncertain can be held against what is.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sureshot.datasets.annotation import expecting, read_annotation
from sureshot.datasets.listing import Listing
from sureshot.datasets.made_facts import FACTS
from sureshot.datasets.made_truth import Truth, truth_of
from sureshot.datasets.made_world import MadePart
from sureshot.datasets.split import Split
from sureshot.errors import SureshotError
from sureshot.settings import build, to_values

PROTOCOLS = {"all": ""}
FILE, VIDEOS = "made.json", "videos"  # in the folder of a world
FORMAT = 1


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split.

    Raises:
        SureshotError: the folder holds no made world.
    """
    part = read_part(root, split)
    captions: dict[str, list[str]] = {video.id: [] for video in part.videos}
    for caption in part.captions:
        captions[part.videos[caption.video].id].append(caption.text)
    return Listing(protocol=protocol, captions=captions, expected=len(part.videos))


def read_part(root: Path, split: str) -> MadePart:
    """All facts of one split.

    Raises:
        SureshotError: the folder holds no made world.
    """
    path = root / FILE
    if not path.exists():
        raise SureshotError(
            f"{root} has no {FILE}; it is no made world. Write one: sureshot made --to {root}"
        )
    return _part(path, split, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=6)
def _part(path: Path, split: str, _changed: int) -> MadePart:
    """A split of the world in a file as it was at a time; every run of a table asks for it."""
    with expecting(path, "what `sureshot made` writes"):
        world: Any = read_annotation(path)
        values = {one["name"]: one for one in world["splits"]}[split]
        number = {one["id"]: place for place, one in enumerate(values["videos"])}
        captions = [
            {"text": one["caption"], "video": number[one["video"]]}
            | {name: one[name] for name in ("scene", "meant", "said")}
            for one in values["captions"]
        ]
        held = {"name": split, "dials": world["dials"], "captions": captions}
        return build(MadePart, {**held, "videos": values["videos"]}, FILE)


@functools.lru_cache(maxsize=6)
def _truth(path: Path, split: str, changed: int) -> Truth:
    """The truth about a split, as of `_part`."""
    return truth_of(_part(path, split, changed))


def written(parts: Sequence[MadePart]) -> dict[str, Any]:
    """What ``made.json`` holds of a world, for any program to read."""
    return {
        "format": FORMAT,
        "dials": to_values(parts[0].dials),
        "facts": {fact: list(values) for fact, values in FACTS.items()},
        "splits": [_written(part) for part in parts],
    }


def _written(part: MadePart) -> dict[str, Any]:
    fit = truth_of(part).videos_that_fit
    captions = [
        {
            "caption": caption.text,
            "video": part.videos[caption.video].id,
            "scene": caption.scene,
            "meant": to_values(caption.meant),
            "said": to_values(caption.said),
            "videos_that_fit": int(count),
        }
        for caption, count in zip(part.captions, fit, strict=True)
    ]
    return {"name": part.name, "videos": to_values(part.videos), "captions": captions}


def read_truth(split: Split) -> Truth:
    """What is true of the captions and videos of a split of a made world, in its own order.

    Args:
        split: a split, or a part of one.

    Raises:
        SureshotError: it is of another data set, of which this is not known.
    """
    if split.dataset != "made" or split.root is None:
        raise SureshotError(
            f"Of {split.title()} nobody knows which videos a caption fits; only a made world says "
            'it: dataset = "made", see `sureshot made --help`.'
        )
    part = read_part(split.root, split.name)
    number = {video.id: place for place, video in enumerate(part.videos)}
    columns = [number[item.id] for item in split.items]
    own: dict[int, list[int]] = {}
    for row, caption in enumerate(part.captions):
        own.setdefault(caption.video, []).append(row)
    rows = [row for column in columns for row in own[column]]
    if [part.captions[row].text for row in rows] != split.texts():
        raise SureshotError(f"The captions of {split.title()} are not those of {split.root}.")
    path = split.root / FILE
    whole = _truth(path, split.name, path.stat().st_mtime_ns)
    fits = whole.fits[rows][:, columns]
    return Truth(fits=fits, bayes=whole.bayes[rows][:, columns], videos_that_fit=fits.sum(1))

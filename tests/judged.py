"""Judged queries of an index, and a split of a data set: enough of each to calibrate on."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from sureshot.library.labels import JudgedMoment, Label, append
from sureshot.models.encoders.toy import COLOURS
from tests.encoded import make_store, pointing, record


def label(
    query: str,
    right: Sequence[str | Path] = (),
    wrong: Sequence[str | Path] = (),
    *,
    absent: bool = False,
    complete: bool = False,
) -> Label:
    """A label of whole videos."""
    moments = [JudgedMoment(Path(video), True) for video in right]
    moments += [JudgedMoment(Path(video), False) for video in wrong]
    return Label(query, tuple(moments), absent, complete)


@dataclass(frozen=True)
class Judged:
    """Where the index and the judged queries are, and what they are."""

    db: Path
    file: Path
    labels: list[Label]


def judged(root: Path, *, videos: int = 60, queries: int = 150, absent: int = 0) -> Judged:
    """Write an index of videos of mixed colours and a file of queries about them.

    Args:
        root: folder for both.
        videos: in the index, two windows each.
        queries: that have a right video.
        absent: more that have none.
    """
    rng = np.random.default_rng(5)
    shares = _shares(rng, videos)
    store = make_store(root / "index")
    paths = [Path(f"/films/{number:03}.mp4") for number in range(videos)]
    for path, share in zip(paths, shares, strict=True):
        vector = np.concatenate([share, np.zeros(store.dim - len(share))])
        store.write(record(path), pointing([np.ones(store.dim), vector]))
    file = root / "judged.jsonl"
    labels = []
    for number in range(queries + absent):
        own = int(rng.integers(videos))
        there = (paths[own],) if number < queries else ()
        labels.append(label(f"{_told(rng, shares[own])} {number}", there, complete=True))
    for one in labels:
        append(file, one)
    return Judged(root / "index", file, labels)


def split(root: Path, *, photos: int = 60, captions: int = 3) -> Path:
    """Write photos of coloured stripes and captions of them, a data set of the kind ``pairs``."""
    rng = np.random.default_rng(6)
    side = 32
    with (root / "pairs.csv").open("w", encoding="utf-8") as opened:
        rows = csv.writer(opened)
        rows.writerow(["video", "caption", "split"])
        for number, share in enumerate(_shares(rng, photos)):
            colours = np.array(list(COLOURS.values()), np.uint8)
            stripes = colours[np.searchsorted(share.cumsum(), np.arange(side) / side, "right")]
            name = f"{number:03}.png"
            Image.fromarray(np.tile(stripes, (side, 1, 1))).save(root / name)
            rows.writerows([name, _told(rng, share), "val"] for _ in range(captions))
    return root / "pairs.csv"


def _shares(rng: np.random.Generator, videos: int) -> np.ndarray:
    return rng.dirichlet(np.full(len(COLOURS), 0.4), videos)


def _told(rng: np.random.Generator, share: np.ndarray) -> str:
    """Words that name the colours, in some texts with hardly a mistake, in others mostly by lot."""
    clear = rng.uniform(0.3, 1)
    told = rng.choice(list(COLOURS), 20, p=clear * share + (1 - clear) / len(COLOURS))
    return " ".join(told)

"""Scored windows to moments: neighbours joined, copies folded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32, UInt8

from sureshot.media.signature import grey_part, likeness

_GAP = 1.0  # seconds between windows that still count as adjacent
_CLOSE = 0.2  # a neighbour joins if it lies within this share of the best-to-median distance
_NOISE = 0.005  # scores this close are alike, however close all the others are, too
_COPY = 0.75  # share of frames that must be found again in another video to call it a copy
_WORTH = 0.9  # correlation of two frames from which their videos are compared in earnest


@dataclass(slots=True)
class Moment:
    """Adjacent windows of one video.

    Attributes:
        path: the video.
        best: row of its best window.
        rows: rows of all its windows in the order of time, the best among them.
        start: seconds.
        end: seconds.
        score: score of the best window.
        copies: videos folded under this one.
    """

    path: Path
    best: int
    rows: list[int]
    start: float
    end: float
    score: float
    copies: list[Path] = field(default_factory=list)


def join_adjacent(
    paths: Sequence[Path],
    start: Float[np.ndarray, " windows"],
    end: Float[np.ndarray, " windows"],
    scores: Float[np.ndarray, " windows"],
    *,
    per_video: int | None,
) -> list[Moment]:
    """Moments, best first, each grown from a window to its neighbours that score nearly as well.

    "Nearly" is relative to this query's own spread, since scores of different queries do not
    compare: a neighbour joins if it lies within a fifth of the distance from the best score to the
    median one. So a long shot comes out as one range, and a scene beside it stays out. Where all
    windows score alike, as in a library of one shot, differences below 0.005 do not count.

    Args:
        paths: the video of each window.
        start: seconds.
        end: seconds.
        scores: similarity of each window to the query, higher is better.
        per_video: moments kept from one video; None keeps all.
    """
    if len(paths) == 0:
        return []
    slack = max(_CLOSE * float(scores.max() - np.median(scores)), _NOISE)
    by_video: dict[Path, list[int]] = {}
    for row in np.argsort(start, kind="stable"):
        by_video.setdefault(paths[row], []).append(int(row))
    moments = []
    for path, rows in by_video.items():
        for best, near in _grow(rows, start, end, scores, slack, per_video or len(rows)):
            moments.append(
                Moment(
                    path=path,
                    best=best,
                    rows=near,
                    start=start[near[0]].item(),
                    end=end[near].max().item(),
                    score=scores[best].item(),
                )
            )
    # Ties in the order of paths and times, so that an answer never depends on the store's order.
    return sorted(moments, key=lambda m: (-m.score, m.path, m.start))


def _grow(
    rows: list[int],
    start: Float[np.ndarray, " windows"],
    end: Float[np.ndarray, " windows"],
    scores: Float[np.ndarray, " windows"],
    slack: float,
    most: int,
) -> list[tuple[int, list[int]]]:
    """Best window and windows of each moment of one video; ``rows`` are in the order of time."""
    free = set(range(len(rows)))
    met = [start[two] - end[one] <= _GAP for one, two in pairwise(rows)]
    grown: list[tuple[int, list[int]]] = []
    while free and len(grown) < most:
        seed = max(free, key=lambda i: (scores[rows[i]], -i))
        enough = scores[rows[seed]] - slack
        fit = {i for i in free if scores[rows[i]] >= enough}
        low = high = seed
        while low - 1 in fit and met[low - 1]:
            low -= 1
        while high + 1 in fit and met[high]:
            high += 1
        free -= set(range(low, high + 1))
        grown.append((rows[seed], rows[low : high + 1]))
    return grown


def fold_copies(
    moments: Sequence[Moment], signatures: UInt8[np.ndarray, "windows frames 288"], most: int
) -> list[Moment]:
    """The first ``most`` moments, with later ones that show the same pictures folded under them.

    Only another video can be a copy: a shot that one video repeats stays two moments.

    Args:
        moments: best first; ``copies`` of those that are kept are filled in.
        signatures: signatures of the frames of all windows, padding zero; rows as the moments
            count them.
        most: moments kept.
    """
    original = _originals(moments, signatures, most)
    kept: list[Moment] = []
    for place, moment in enumerate(moments):
        if place in original:
            if moment.path not in original[place].copies:
                original[place].copies.append(moment.path)
        elif len(kept) < most:
            kept.append(moment)
    return kept


def without_copies(
    moments: Sequence[Moment], signatures: UInt8[np.ndarray, "windows frames 288"], most: int
) -> list[Moment]:
    """All moments but those that `fold_copies` would fold under the first ``most``."""
    original = _originals(moments, signatures, most)
    return [moment for place, moment in enumerate(moments) if place not in original]


def _originals(
    moments: Sequence[Moment], signatures: UInt8[np.ndarray, "windows frames 288"], most: int
) -> dict[int, Moment]:
    """The moment of which each copy is one, by the place of the copy."""
    original: dict[int, Moment] = {}
    if not moments:
        return original
    pictures = _pictures(signatures[[m.best for m in moments]])
    kept = 0
    for place, moment in enumerate(moments):
        if place not in original and kept < most:
            kept += 1
            for later in _worth_comparing(moment, pictures[place:], signatures):
                other = moments[place + later]
                free = place + later not in original and other.path != moment.path
                if free and _shows(moment, other, signatures):
                    original[place + later] = moment
    return original


def _shows(
    moment: Moment, other: Moment, signatures: UInt8[np.ndarray, "windows frames 288"]
) -> bool:
    """Whether a moment shows what the best window of another one shows."""
    # All its windows count: of two copies of a long shot another window may score best.
    frames = signatures[moment.rows].reshape(1, -1, signatures.shape[-1])
    return likeness(signatures[other.best], frames)[0].item() >= _COPY


def _worth_comparing(
    moment: Moment,
    pictures: Float32[np.ndarray, "moments frames 256"],
    signatures: UInt8[np.ndarray, "windows frames 288"],
) -> list[int]:
    """Places of the moments with a frame much like one of this moment's.

    One multiplication of matrices, so that a long answer does not compare all pairs one by one.
    """
    places: set[int] = set()
    for frames in _pictures(signatures[moment.rows]):
        alike = pictures @ frames.T >= _WORTH
        places.update((np.flatnonzero(alike) // alike[0].size).tolist())
    return sorted(places)


def _pictures(
    signatures: UInt8[np.ndarray, "windows frames 288"],
) -> Float32[np.ndarray, "windows frames 256"]:
    """Grey pictures whose inner products are correlations; zero where a frame is all one grey."""
    grey = grey_part(signatures)
    centred = grey - grey.mean(-1, keepdims=True, dtype=np.float32)
    length = np.linalg.norm(centred, axis=-1, keepdims=True)
    return centred / np.where(length > 0, length, 1)

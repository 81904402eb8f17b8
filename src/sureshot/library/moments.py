"""Scored windows to moments: neighbours joined."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float

_GAP = 1.0  # seconds between windows that still count as adjacent
_CLOSE = 0.2  # a neighbour joins if it lies within this share of the best-to-median distance
_NOISE = 0.005  # scores this close are alike, however close all the others are, too


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

    def alone(self) -> "Moment":
        """The same moment without copies."""
        return replace(self, copies=[])


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
    for row in np.argsort(start, kind="stable").tolist():
        by_video.setdefault(paths[row], []).append(row)
    starts, ends, values = start.tolist(), end.tolist(), scores.tolist()
    moments = []
    for path, rows in by_video.items():
        for best, near in _grow(rows, starts, ends, values, slack, per_video or len(rows)):
            moments.append(
                Moment(
                    path=path,
                    best=best,
                    rows=near,
                    start=starts[near[0]],
                    end=max(ends[row] for row in near),
                    score=values[best],
                )
            )
    # Ties in the order of paths and times, so that an answer never depends on the store's order.
    return sorted(moments, key=lambda m: (-m.score, m.path, m.start))


def _grow(
    rows: list[int],
    start: Sequence[float],
    end: Sequence[float],
    scores: Sequence[float],
    slack: float,
    most: int,
) -> list[tuple[int, list[int]]]:
    """Best window and windows of each moment of one video; ``rows`` are in the order of time."""
    if len(rows) == 1:
        return [(rows[0], rows)]
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

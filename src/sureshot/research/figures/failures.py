"""Queries that failed: what was sought, and what was found before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.canvas import number
from sureshot.research.figures.strip import RankedVideo, Strip, best, draw_strips, hit_cells, ranked
from sureshot.research.figures.subject import Subject
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ABOVE = 4


@dataclass(frozen=True)
class Failure:
    """A query that failed.

    Attributes:
        query: the text.
        right: the video that was sought.
        above: the best of those that scored higher, or the same.
    """

    query: str
    right: RankedVideo
    above: tuple[RankedVideo, ...]


@dataclass(frozen=True)
class Failures:
    """Failed queries drawn by the seed, so neither the best nor the worst of them.

    Attributes:
        title: model and split.
        items: all videos by name.
        failed: how many queries have another video first.
        queries: how many there are.
        shown: some of them.
    """

    title: str
    items: Mapping[str, Item]
    failed: int
    queries: int
    shown: Sequence[Failure]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"failed": self.failed, "queries": self.queries, "shown": to_values(self.shown)}

    def draw(self) -> "Figure":
        """The right video first, then what was found before it."""
        strips = [
            Strip(
                heading=f"“{one.query}”",
                cells=hit_cells([one.right, *one.above], self.items, _told),
            )
            for one in self.shown
        ]
        title = (
            f"{self.title}. {self.failed} of {self.queries} texts do not find their video first; "
            f"some of those, drawn at random. Left: the right video"
        )
        return draw_strips(title, strips, 1 + _ABOVE)


def failures(subject: Subject, count: int) -> Failures:
    """Failed queries, each of another video.

    Raises:
        SureshotError: no query failed.
    """
    ranks = text_ranks(subject.scores, subject.owner)
    lost = ranks > 1
    if not lost.any():
        raise SureshotError(f"No query of {subject.features.split.title()} failed.")
    chosen = [query for query in subject.pairs(len(subject.owner)) if lost[query]]
    draw = np.random.default_rng([subject.seed, 2])
    some = sorted(draw.permutation(chosen)[:count])
    shown = [_failure(subject, int(query)) for query in some]
    return Failures(
        title=subject.title,
        items=subject.by_name,
        failed=int(lost.sum()),
        queries=len(lost),
        shown=shown,
    )


def _failure(subject: Subject, query: int) -> Failure:
    scores, own = subject.scores[query], int(subject.owner[query])
    first = best(scores, _ABOVE + 1)
    above = [video for video in first if video != own and scores[video] >= scores[own]][:_ABOVE]
    right, *others = ranked(subject.names, [own, *above], [own], scores)
    return Failure(subject.text(query), right, tuple(others))


def _told(hit: RankedVideo) -> list[str]:
    return [f"rank {hit.rank:g}, score {number(hit.values['score'])}", hit.name]

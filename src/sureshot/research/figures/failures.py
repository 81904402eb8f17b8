"""Queries that failed: what was sought, and what was found before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.canvas import number
from sureshot.research.figures.strip import Cell, RankedVideo, Strip, best, draw_strips, rank_of
from sureshot.research.figures.subject import Subject

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        above = [hit.to_dict() for hit in self.above]
        return {"query": self.query, "right": self.right.to_dict(), "above": above}


@dataclass(frozen=True)
class Failures:
    """Failed queries drawn by the seed, so neither the best nor the worst of them.

    Attributes:
        title: model and split.
        items: the videos.
        failed: how many queries have another video first.
        queries: how many there are.
        shown: some of them.
    """

    title: str
    items: Sequence[Item]
    failed: int
    queries: int
    shown: Sequence[Failure]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        shown = [failure.to_dict() for failure in self.shown]
        return {"failed": self.failed, "queries": self.queries, "shown": shown}

    def draw(self) -> "Figure":
        """The right video first, then what was found before it."""
        strips = []
        for one in self.shown:
            cells = [
                Cell(item=self.items[hit.video], lines=_told(hit), right=hit.right)
                for hit in (one.right, *one.above)
            ]
            strips.append(Strip(heading=f"“{one.query}”", cells=cells))
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
        items=subject.items,
        failed=int(lost.sum()),
        queries=len(lost),
        shown=shown,
    )


def _failure(subject: Subject, query: int) -> Failure:
    scores, own = subject.scores[query], int(subject.owner[query])
    above = [video for video in best(scores, _ABOVE + 1) if scores[video] >= scores[own]]
    found = [_hit(subject, scores, video, own) for video in above if video != own]
    return Failure(subject.text(query), _hit(subject, scores, own, own), tuple(found[:_ABOVE]))


def _hit(subject: Subject, scores: np.ndarray, video: int, own: int) -> RankedVideo:
    value = {"score": float(scores[video])}
    return RankedVideo(
        name=subject.items[video].id,
        rank=rank_of(scores, video),
        right=video == own,
        values=value,
        video=video,
    )


def _told(hit: RankedVideo) -> list[str]:
    return [f"rank {hit.rank:g}, score {number(hit.values['score'])}", hit.name]

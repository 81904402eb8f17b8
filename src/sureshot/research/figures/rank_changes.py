"""Which queries rise and fall when scores are corrected, by uncertainty or for hubs: `rerank`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

import numpy as np
from jaxtyping import Float

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError, option
from sureshot.metrics.hubs import (
    dual_softmax,
    inverted_softmax,
    nearest_neighbour_normalised,
    querybank_norm,
)
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.canvas import number
from sureshot.research.figures.strip import RankedVideo, Strip, best, draw_strips, hit_cells, ranked
from sureshot.research.figures.subject import Subject
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

After = Literal["score", "printed", "dsl", "inverted_softmax", "qb_norm", "nnn"]
_TOP = 4
_PLAIN, _PRINTED = "similarity", "printed score"


@dataclass(frozen=True)
class Change:
    """A query whose right video moved.

    Attributes:
        query: the text.
        ranks: rank of the right video before and after.
        before: the best videos under the plain score.
        after: the best videos under the corrected one.
    """

    query: str
    ranks: tuple[float, float]
    before: tuple[RankedVideo, ...]
    after: tuple[RankedVideo, ...]


@dataclass(frozen=True)
class RankChanges:
    """All queries under two scores, and some that moved, up and down by turns.

    Attributes:
        title: model and split.
        items: all videos by name.
        names: what the two scores are called.
        rose: queries whose right video came nearer to the top.
        fell: queries whose right video went away from it.
        stayed: all others.
        r1: R@1 before and after, percent.
        shown: half of them rose the most, half fell the most.
    """

    title: str
    items: Mapping[str, Item]
    names: tuple[str, str]
    rose: int
    fell: int
    stayed: int
    r1: tuple[float, float]
    shown: Sequence[Change]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        counts = {"rose": self.rose, "fell": self.fell, "stayed": self.stayed}
        shown = to_values(self.shown)
        return {"scores": list(self.names), **counts, "r1": list(self.r1), "shown": shown}

    def draw(self) -> "Figure":
        """Two rows of frames a query, the right video marked."""
        strips: list[Strip] = []
        for change in self.shown:
            for place, found in enumerate((change.before, change.after)):
                label = f"{self.names[place]}: right video at rank {change.ranks[place]:g}"
                heading = "" if place else f"“{change.query}”"
                cells = hit_cells(found, self.items, _told)
                strips.append(Strip(heading=heading, cells=cells, label=label))
        title = (
            f"{self.title}. From {self.names[0]} to {self.names[1]}: {self.rose} queries rise, "
            f"{self.fell} fall, {self.stayed} stay; R@1 {self.r1[0]:.1f} to {self.r1[1]:.1f} %. "
            f"Shown: the largest rises and falls among the first places."
        )
        return draw_strips(title, strips, _TOP)


def rank_changes(
    subject: Subject,
    count: int,
    after: After | None = None,
    bank: Float[np.ndarray, "captions videos"] | None = None,
) -> RankChanges:
    """Queries under two scores.

    Args:
        subject: the model and the split.
        count: queries to show.
        after: the second score. ``score`` is the system's own against its plain similarity,
            ``printed`` the re-ranked one as printed against the same; the others correct the
            system's own score for hubs. None is ``score``.
        bank: scores of training captions with the videos, for ``qb_norm`` and ``nnn``.

    Raises:
        SureshotError: the system has no such scores.
    """
    matrices = subject.matrices(range(len(subject.owner)))
    names, pair = _scores(subject, matrices, after or "score", bank)
    ranks = [text_ranks(scores, subject.owner) for scores in pair]
    moved = ranks[0] - ranks[1]
    shown = [_change(subject, query, pair, ranks) for query in _chosen(ranks, count)]
    return RankChanges(
        title=subject.title,
        items=subject.by_name,
        names=names,
        rose=int((moved > 0).sum()),
        fell=int((moved < 0).sum()),
        stayed=int((moved == 0).sum()),
        r1=(100 * float((ranks[0] <= 1).mean()), 100 * float((ranks[1] <= 1).mean())),
        shown=shown,
    )


def _scores(
    subject: Subject,
    matrices: dict[str, Float[np.ndarray, "queries videos"]],
    after: After,
    bank: Float[np.ndarray, "captions videos"] | None,
) -> tuple[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Names and matrices of both scores."""
    own = matrices["score"]
    match after:
        case "score" | "printed":
            second = "score" if after == "score" else _PRINTED
            if _PLAIN not in matrices or second not in matrices:
                raise SureshotError(
                    f"{subject.scorer.system} does not re-rank by itself, as DUQ does. Correct its "
                    f"scores for hubs: {option('after')} nnn, qb_norm, inverted_softmax or dsl."
                )
            return (_PLAIN, second), (matrices[_PLAIN], matrices[second])
        case "dsl":
            corrected = dual_softmax(own)
        case "inverted_softmax":
            corrected = inverted_softmax(own)
        case "qb_norm" | "nnn":
            if bank is None:
                raise SureshotError(f"{after} looks at training captions; give their scores.")
            correct = querybank_norm if after == "qb_norm" else nearest_neighbour_normalised
            corrected = correct(own, bank)
        case _:
            assert_never(after)
    return ("score", after), (own, corrected)


def _chosen(ranks: Sequence[Float[np.ndarray, " queries"]], count: int) -> list[int]:
    """Rises and falls by turns, those between the first places before all others.

    A move counts by the ratio of its ranks: from 3 to 1 is more than from 300 to 200.
    """
    moved = np.log(ranks[0]) - np.log(ranks[1])
    rises = [int(at) for at in np.argsort(-moved, kind="stable") if moved[at] > 0]
    falls = [int(at) for at in np.argsort(moved, kind="stable") if moved[at] < 0]
    near = np.minimum(ranks[0], ranks[1]) <= _TOP  # shown in one of the rows at least
    rises, falls = ([*filter(near.__getitem__, some)] for some in (rises, falls))
    up = min(len(rises), max(count - count // 2, count - len(falls)))
    return rises[:up] + falls[: count - up]


def _change(
    subject: Subject,
    query: int,
    pair: tuple[np.ndarray, np.ndarray],
    ranks: Sequence[Float[np.ndarray, " queries"]],
) -> Change:
    own = int(subject.owner[query])
    before, after = (
        ranked(subject.names, best(scores[query], _TOP), [own], scores[query]) for scores in pair
    )
    moved = float(ranks[0][query]), float(ranks[1][query])
    return Change(query=subject.text(query), ranks=moved, before=before, after=after)


def _told(hit: RankedVideo) -> list[str]:
    return [f"{hit.rank:g}. {hit.name}   {number(hit.values['score'])}"]

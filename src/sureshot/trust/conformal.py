"""Sets of videos that hold what was sought as often as promised.

The nonconformity of a labelled query is how far the video it seeks scores below the best one. A
set takes every video that lies no further below than the quantile of these. The promise is about
the choice of the query: of all queries like the labelled ones, whose video is in the gallery, the
share that finds it in the set is at least the coverage. It is not about one query, nor about one
kind of queries. Scores below the best depend on the size of the gallery, so there are references
for several sizes.

Queries that ask for one video are not independent of each other. All queries of one video share
the weight of one (Lee et al.), and what counts in every promise is the number of videos.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Float64, Integer

from sureshot.errors import SureshotError

COVERAGES = (0.8, 0.9, 0.95)  # of the sets that are printed and measured
_DIGITS = 7
_EPS = 1e-6  # relative; as for the members of a set


@dataclass(frozen=True)
class Nonconformity:
    """What labelled queries score, the larger the stranger; a reference for new ones.

    Attributes:
        scores: one score a query, ascending.
        sharing: how many of them are of the same video as each.
    """

    scores: tuple[float, ...]
    sharing: tuple[int, ...]

    def __post_init__(self) -> None:
        ascending = all(a <= b for a, b in pairwise(self.scores))
        if len(self.scores) != len(self.sharing) or min(self.sharing, default=1) < 1:
            raise SureshotError("A reference needs a number of queries, 1 or more, a score.")
        if not self.scores or not ascending or not all(map(math.isfinite, self.scores)):
            raise SureshotError("A reference needs finite scores in ascending order, one at least.")

    @classmethod
    def of(
        cls,
        scores: Float[np.ndarray, " queries"],
        video: Integer[np.ndarray, " queries"] | None = None,
    ) -> "Nonconformity":
        """A reference from the scores of labelled queries.

        Scores are rounded up to seven digits, which makes sets a trifle larger, never smaller.

        Args:
            scores: finite score of each query, larger is stranger.
            video: number of the video that each query is about; all different if left out.

        Raises:
            SureshotError: no score, or one that is not finite.
        """
        if not len(scores) or not np.isfinite(scores).all():
            raise SureshotError("A reference needs finite scores, one at least.")
        about = np.arange(len(scores)) if video is None else video
        _, place, count = np.unique(about, return_inverse=True, return_counts=True)
        order = np.argsort(scores, kind="stable")
        rounded = tuple(_rounded_up(float(score)) for score in scores[order])
        return cls(rounded, tuple(int(n) for n in count[place][order]))

    @cached_property
    def videos(self) -> int:
        """Videos that the queries are about."""
        return round(sum(1 / n for n in self.sharing))

    @cached_property
    def _values(self) -> Float64[np.ndarray, " queries"]:
        return np.array(self.scores)

    @cached_property
    def _below(self) -> Float64[np.ndarray, " one_more"]:
        """Weight of the 0, 1, 2, ... smallest scores; all videos and a new one weigh 1."""
        weights = 1 / np.array(self.sharing) / (self.videos + 1)
        return np.concatenate([[0.0], np.cumsum(weights)])

    def quantile(self, coverage: float) -> float:
        """The smallest score with at least ``coverage`` of the weight at or below it.

        One query a video: the ceil((n + 1) coverage)-th smallest of n scores.

        Returns:
            The score, or ``inf`` where there are too few videos to promise such a coverage. An
            infinite quantile is no set of all videos; it is no promise.

        Raises:
            SureshotError: ``coverage`` is not above 0 and below 1.

        References:
            Lee, Barber and Willett, "Distribution-free inference with hierarchical data",
            arXiv:2306.06342.

        Examples:
            >>> Nonconformity.of(np.arange(9.0)).quantile(0.9)
            8.0
            >>> Nonconformity.of(np.arange(8.0)).quantile(0.9)
            inf
        """
        _share("coverage", coverage)
        place = int(np.searchsorted(self._below, coverage - 1e-12))
        return self.scores[place - 1] if place <= len(self.scores) else math.inf

    def p_value(self, scores: Float[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """How many are at least as strange, of the reference and the new one itself; above 0.

        Where the new query is like those of the reference, it lies below any a in at most a share
        a of cases.
        """
        rounding = _EPS * np.abs(scores)
        place = np.searchsorted(self._values, scores - rounding, side="left")
        return np.minimum(1.0, 1 - self._below[place])


def _rounded_up(value: float) -> float:
    """The next number of seven digits, itself if it is one."""
    if value == 0:
        return 0.0
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    near = round(value, places)
    return near if near >= value else round(near + 10.0**-places, places)


def _share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise SureshotError(f"{name} is {value}; it must be above 0 and below 1, for instance 0.9.")

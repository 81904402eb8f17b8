"""Intervals of a metric from resampled videos."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from sureshot.errors import SureshotError

Statistic = Callable[[np.ndarray], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and where it would lie if other videos had been asked for.

    Attributes:
        value: number on all queries.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    value: float
    low: float
    high: float

    def ends(self, form: str = ".1f") -> str:
        """Both ends as people read them, such as ``[40.2, 43.1]``."""
        return f"[{self.low:{form}}, {self.high:{form}}]"


def of_columns(metric: Callable[..., float]) -> Statistic:
    """A metric of several arrays as a statistic of the columns of one.

    Examples:
        >>> share = of_columns(lambda hits, asked: float(hits.sum() / asked.sum()))
        >>> share(np.array([[1.0, 2.0], [2.0, 2.0]]))
        0.75
    """
    return lambda rows: metric(*rows.T)


def intervals(
    values: Float[np.ndarray, "queries ..."],
    cluster: Integer[np.ndarray, " queries"],
    statistics: Mapping[str, Statistic],
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> dict[str, Interval]:
    """Percentile intervals of several statistics of the same queries, from the same resamples.

    Whole videos are drawn with replacement, each with all its queries: captions of one video
    succeed and fail together, so drawing captions one by one would make intervals too narrow. The
    gallery stays as it is; an interval tells how much the choice of the queries matters, not how
    much another gallery or another training run would.

    Args:
        values: one number a query, for instance its rank; or a row of several, see `of_columns`.
        cluster: the video that each query belongs to.
        statistics: functions from the values of some queries to a number.
        rng: source of all chance.
        resamples: how often the videos are drawn.
        level: share of the resamples between the two ends, between 0 and 1.

    Raises:
        SureshotError: fewer than two videos, or settings out of range.
    """
    if resamples < 1:
        raise SureshotError(f"resamples is {resamples}; an interval needs at least 1, better 1000.")
    if not 0 < level < 1:
        raise SureshotError(f"level is {level}; it must lie between 0 and 1, for instance 0.95.")
    draws = [
        [statistic(values[rows]) for statistic in statistics.values()]
        for rows in _resamples(cluster, rng, resamples)
    ]
    ends = np.quantile(np.array(draws), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {
        name: Interval(float(statistic(values)), float(low), float(high))
        for (name, statistic), low, high in zip(statistics.items(), *ends, strict=True)
    }


def interval(
    values: Float[np.ndarray, "queries ..."],
    cluster: Integer[np.ndarray, " queries"],
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of one statistic; see `intervals`.

    Examples:
        >>> ranks = np.array([1.0, 1.0, 3.0, 2.0])
        >>> rng = np.random.default_rng(0)
        >>> interval(ranks, np.array([0, 0, 1, 1]), np.mean, rng)
        Interval(value=1.75, low=1.0, high=2.5)
    """
    only = intervals(values, cluster, {"only": statistic}, rng, resamples=resamples, level=level)
    return only["only"]


def paired_difference(
    ours: Float[np.ndarray, " queries"],
    theirs: Float[np.ndarray, " their_queries"],
    cluster: Integer[np.ndarray, " queries"],
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Interval of ``statistic(ours) - statistic(theirs)`` for two systems on the same queries.

    Both systems are evaluated on the same drawn videos, so what makes a video easy or hard for
    both cancels out. An interval that holds 0 says that these queries do not tell them apart.

    Args:
        ours: values of the one system.
        theirs: values of the other system for the same queries in the same order.
        cluster: the video that each query belongs to.
        statistic: function from the values of some queries to a number.
        rng: source of all chance.
        resamples: how often the videos are drawn.
        level: share of the resamples between the two ends, between 0 and 1.

    Raises:
        SureshotError: the systems differ in their number of queries, or as for `intervals`.
    """
    if len(ours) != len(theirs):
        raise SureshotError(
            f"One system has {len(ours)} queries, the other {len(theirs)}; a paired comparison "
            "needs the same queries in the same order."
        )
    both = np.stack([ours, theirs], axis=1)

    def gap(pair: np.ndarray) -> float:
        return statistic(pair[:, 0]) - statistic(pair[:, 1])

    return interval(both, cluster, gap, rng, resamples=resamples, level=level)


def resampling_note(resamples: int, seed: int) -> str:
    """What the brackets behind the numbers of a report are."""
    return (
        f"[low, high] is a 95 % interval, from {resamples} resamples of whole videos, seed {seed}."
    )


def _resamples(
    cluster: Integer[np.ndarray, " queries"], rng: np.random.Generator, resamples: int
) -> Iterator[Integer[np.ndarray, " drawn"]]:
    """Rows of the queries of videos drawn with replacement, ``resamples`` times."""
    order = np.argsort(cluster, kind="stable")
    starts, sizes = np.unique(cluster[order], return_index=True, return_counts=True)[1:]
    if len(starts) < 2:
        raise SureshotError(
            f"An interval needs the queries of at least two videos; there is {len(starts)}."
        )
    for _ in range(resamples):
        drawn = rng.integers(len(starts), size=len(starts))
        count = sizes[drawn]
        # Places 0, 1, ... within each drawn video, shifted to where its queries start.
        shift = np.repeat(starts[drawn] - (np.cumsum(count) - count), count)
        yield order[shift + np.arange(len(shift))]

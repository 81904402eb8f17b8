"""Intervals of a metric.

A resample is written as how often each query is drawn, so a statistic is a function of weights:
rows are resamples, columns queries, and it gives one number per resample.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import row_blocks

Weights = Float64[np.ndarray, "draws queries"]
Values = Float[np.ndarray, " queries"] | Bool[np.ndarray, " queries"]
Clusters = Integer[np.ndarray, " queries"]  # number of the video of each
Statistic = Callable[[Weights], Float64[np.ndarray, " draws"]]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and where it would be if other videos had been asked for.

    Attributes:
        value: the number.
        low: lower end of the interval.
        high: upper end.
    """

    value: float
    low: float
    high: float

    def ends(self, form: str = ".1f") -> str:
        """Both ends as people read them, such as ``[40.2, 43.1]``."""
        return f"[{self.low:{form}}, {self.high:{form}}]"


_Z2 = 1.96**2


def of_percent(found: Interval, videos: int, whole: float = 100.0) -> Interval:
    """The interval of a share, of ``whole``; of nothing and of all with the bound of Wilson.

    All resamples of these are the same, which says nothing of how rare the other outcome is. With
    n videos that bound is z^2 / (n + z^2) away, z = 1.96.

    Examples:
        >>> of_percent(Interval(100.0, 100.0, 100.0), 26).ends()
        '[87.1, 100.0]'
    """
    far = whole * _Z2 / (videos + _Z2)
    if found.low == found.high == 0:
        return replace(found, high=far)
    return replace(found, low=whole - far) if found.low == found.high == whole else found


def mean_of(values: Values) -> Statistic:
    """The mean of one number per query.

    Examples:
        >>> mean_of(np.array([1.0, 4.0]))(np.array([[1.0, 1.0], [2.0, 0.0]]))
        array([2.5, 1. ])
    """
    return ratio_of(values, np.ones(len(values)))


def ratio_of(part: Values, whole: Values) -> Statistic:
    """The sum of one number per query over that of another; 0 where the other is nothing."""

    def ratio(weights: Weights) -> Float64[np.ndarray, " draws"]:
        total = weights @ whole
        return np.divide(weights @ part, total, out=np.zeros(len(weights)), where=total > 0)

    return ratio


def median_of(values: Float[np.ndarray, " queries"]) -> Statistic:
    """The median of one number per query; the mean of the middle two where their number is even."""
    order = np.argsort(values)

    def median(weights: Weights) -> Float64[np.ndarray, " draws"]:
        drawn = weights[:, order].cumsum(1)
        half = (drawn[:, -1:] - 1) / 2
        middle = [(drawn > place).argmax(1) for place in (np.floor(half), np.ceil(half))]
        return values[order][np.stack(middle)].mean(0, dtype=np.float64)

    return median


def intervals(
    statistics: Mapping[str, Statistic],
    cluster: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
) -> dict[str, Interval]:
    """95 % percentile intervals of several statistics of the same queries, from the same resamples.

    Whole videos are drawn with replacement, each with all its queries: captions of one video
    succeed and fail together, so drawing captions one by one would make intervals too narrow. The
    gallery stays as it is; an interval tells how much the choice of the queries matters, not how
    much another gallery or another training run would.

    Two systems are compared by the interval of their difference on the same queries: what makes a
    video easy or hard for both then cancels out. One that holds 0 does not tell them apart.

    Args:
        statistics: functions of weights, such as `mean_of`, by name. Resamples of which one says
            NaN are left out.
    """
    names, video = np.unique(cluster, return_inverse=True)
    if len(names) < 2:
        raise SureshotError(
            f"An interval needs the queries of at least two videos; there is {len(names)}."
        )
    draws: dict[str, list[np.ndarray]] = {name: [] for name in statistics}
    for rows in row_blocks(resamples, len(video)):
        drawn = [rng.integers(len(names), size=len(names)) for _ in range(rows.stop - rows.start)]
        counts = np.stack([np.bincount(numbers, minlength=len(names)) for numbers in drawn])
        weights = counts[:, video].astype(np.float64)
        for name, statistic in statistics.items():
            draws[name].append(statistic(weights))
    found = {}
    for name, statistic in statistics.items():
        value = statistic(np.ones((1, len(video))))[0]
        each = np.concatenate(draws[name])
        known = each[~np.isnan(each)]
        low, high = np.quantile(known if len(known) else [value], [0.025, 0.975])
        found[name] = Interval(value=float(value), low=float(low), high=float(high))
    return found


def interval(
    statistic: Statistic, cluster: Clusters, rng: np.random.Generator, *, resamples: int = 1000
) -> Interval:
    """95 % percentile interval of one statistic; see `intervals`.

    Examples:
        >>> ranks = np.array([1.0, 1.0, 3.0, 2.0])
        >>> interval(mean_of(ranks), np.array([0, 0, 1, 1]), np.random.default_rng(0))
        Interval(value=1.75, low=1.0, high=2.5)
    """
    return intervals({"": statistic}, cluster, rng, resamples=resamples)[""]


def resampling_note(resamples: int, seed: int) -> str:
    """What the brackets behind the numbers of a report are."""
    return (
        f"[low, high] is a 95 % interval, from {resamples} resamples of whole videos, seed {seed}."
    )

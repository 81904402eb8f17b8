"""Intervals of a metric, gaps between two systems, and verdicts on what papers claim.

A resample is written as how often each query is drawn, so a statistic is a function of weights:
rows are resamples, columns queries, and it gives one number per resample.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import row_blocks

Weights = Float64[np.ndarray, "draws queries"]
Values = Float[np.ndarray, " queries"] | Bool[np.ndarray, " queries"]
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
    cluster: Integer[np.ndarray, " queries"],
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
        statistics: functions of weights, such as `mean_of`, by name.
        cluster: number of the video that each query belongs to.
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
        low, high = np.quantile(np.concatenate(draws[name]), [0.025, 0.975])
        value = statistic(np.ones((1, len(video))))[0]
        found[name] = Interval(value=float(value), low=float(low), high=float(high))
    return found


def interval(
    statistic: Statistic,
    cluster: Integer[np.ndarray, " queries"],
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
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


KS = (1, 5, 10)
# From recalls in percent, those of texts and then those of videos at each of `KS`, to one number.
Measure = Callable[[Float[np.ndarray, "*runs 6"]], Float[np.ndarray, "*runs"]]


@dataclass(frozen=True, slots=True)
class SeedRanks:
    """The ranks of one system, trained with several seeds.

    Attributes:
        texts: rank of the own video of each caption.
        owner: number of the video of each caption.
        videos: rank of the own captions of each video that has some, in the order of the numbers.
    """

    seeds: tuple[int, ...]
    texts: Float[np.ndarray, "seeds captions"]
    owner: Integer[np.ndarray, " captions"]
    videos: Float[np.ndarray, "seeds videos"]


@dataclass(frozen=True, slots=True)
class Gap:
    """How much better one system is than another: the mean over seeds and its 95 % interval.

    Attributes:
        error: standard error, of seeds and videos.
        freedom: degrees of freedom of the error.
        seeds, videos: how many both were trained with, and tested on.
    """

    value: float
    error: float
    freedom: float
    low: float
    high: float
    seeds: int
    videos: int

    def p_zero(self) -> float:
        """Chance of a gap at least this far from 0, either way, if there were none."""
        from scipy.stats import t

        return float(2 * t.cdf(-abs(self.value) / self.error, self.freedom))

    def p_at_least(self, true: float) -> float:
        """Chance of a gap this small or smaller if it were truly so large."""
        from scipy.stats import t

        return float(t.cdf((self.value - true) / self.error, self.freedom))

    def visible(self, level: float = 0.05) -> float:
        """Smallest true gap distinguished from 0 with 80 % power, at this level, two-sided."""
        from scipy.stats import t

        ends = t.ppf([1 - level / 2, 0.8], self.freedom)
        return float(ends.sum() * self.error)


def paired_gap(
    more: SeedRanks,
    less: SeedRanks,
    measure: Measure,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
) -> Gap:
    r"""The gap of two systems in a measure, over the seeds that both have.

    The gap has one value :math:`g_s` per seed. Other seeds would give another one, and so would
    other videos:

    .. math:: \mathrm{Var}(\bar g) = \frac{\mathrm{Var}_s(g_s)}{S}
        + \mathrm{mean}_{s \ne s'} \mathrm{Cov}_v(g_s, g_{s'})

    The first term is what seeds add, with what belongs to one seed and one video. The second is
    what the choice of videos adds: videos are resampled with all their captions, for all seeds
    alike. The degrees of freedom are Satterthwaite's for the two terms, S - 1 and V - 1.

    Args:
        more: ranks of the system that is claimed to be better.
        measure: what is compared, such as `recall_at_one`.
    """
    from scipy.stats import t

    seeds = sorted(set(more.seeds) & set(less.seeds))
    if len(seeds) < 2:
        raise SureshotError(
            f"A gap needs two seeds that both systems were trained with; there is {len(seeds)}."
        )
    if not np.array_equal(more.owner, less.owner):
        raise SureshotError("The two systems were asked for other videos; run both again.")
    count = len(np.unique(more.owner))
    weights = rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)
    weights = np.concatenate([np.ones((1, count)), weights])  # first as they are
    gaps = _measured(more, seeds, weights, measure) - _measured(less, seeds, weights, measure)
    each, drawn = gaps[0], gaps[1:]
    of_seeds = float(each.var(ddof=1)) / len(seeds)
    cov = np.atleast_2d(np.cov(drawn.T))
    shared = (cov.sum() - np.trace(cov)) / (len(seeds) * (len(seeds) - 1))
    of_videos = max(float(shared), 0.0) * count / (count - 1)
    variance = max(of_seeds + of_videos, 1e-12)
    spread = of_seeds**2 / (len(seeds) - 1) + of_videos**2 / (count - 1)
    freedom = variance**2 / max(spread, 1e-24)
    value, error = float(each.mean()), variance**0.5
    half = -float(t.ppf(0.025, freedom)) * error
    return Gap(
        value=value,
        error=error,
        freedom=freedom,
        low=value - half,
        high=value + half,
        seeds=len(seeds),
        videos=count,
    )


def recall_at_one(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """R@1 from text to video."""
    return recalls[..., 0]


def sum_of_recalls(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """R@1, 5 and 10 of both directions together."""
    return recalls.sum(-1)


def mean_of_recalls(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """Geometric mean of R@1, 5 and 10 from text to video."""
    return np.cbrt(recalls[..., :3].prod(-1))


def _measured(
    ranks: SeedRanks, seeds: list[int], weights: Float[np.ndarray, "draws videos"], measure: Measure
) -> Float[np.ndarray, "draws seeds"]:
    """The measure of each seed for videos that count so much each."""
    rows = [ranks.seeds.index(seed) for seed in seeds]
    _, video = np.unique(ranks.owner, return_inverse=True)
    captions = np.bincount(video).astype(np.float64)
    recalls = []
    for k in KS:
        hits = np.stack([np.bincount(video, row <= k, len(captions)) for row in ranks.texts[rows]])
        recalls.append((weights @ hits.T) / (weights @ captions)[:, None])
    recalls += [(weights @ (ranks.videos[rows] <= k).T) / len(captions) for k in KS]
    return measure(100 * np.stack(recalls, axis=-1))


Verdict = Literal[
    "supported",
    "contradicted",
    "ruled out",
    "too noisy to tell",
    "not testable on these data",
    "not run",
]
LEAST_SEEDS = 10  # fewer get no verdict
LEVEL = 0.05  # share of families in which any verdict may be wrong


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim and what was measured of it.

    Attributes:
        printed: gap that the paper prints, above 0; None where it prints none.
        testable: whether these data could tell at all.
    """

    gap: Gap | None = None
    printed: float | None = None
    testable: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a claim.

    Attributes:
        visible: smallest true gap distinguished from 0 with 80 % power, within its
            family; None without a verdict from data.
        smaller: whether a gap that is there is significantly smaller than printed.
    """

    verdict: Verdict
    visible: float | None = None
    smaller: bool = False


def decide(family: Sequence[Comparison]) -> list[Decision]:
    """The verdicts on all claims of a paper, decided together.

    A claim says that one system is better than another, and by how much. Two hypotheses can be
    refused: that there is no gap, and that the gap is as large as printed. A verdict is *supported*
    or *contradicted* where the first is refused, by the sign of the gap; *ruled out* where only the
    second is; *too noisy to tell* where neither is. The smallest p-value is held against `LEVEL`
    over the number of claims, the next against `LEVEL` over the claims still open, and so on
    (Holm). A claim has two p-values and counts once: a gap as large as printed is not 0, so at
    most one of its hypotheses holds (Shaffer). What cannot be tested or was not run takes no part.

    References:
        Holm, A simple sequentially rejective multiple test procedure, 1979.
        Shaffer, Modified sequentially rejective multiple test procedures, 1986.
    """
    open_ones: dict[int, dict[str, float]] = {}
    for place, claim in enumerate(family):
        if claim.testable and claim.gap is not None and claim.gap.seeds >= LEAST_SEEDS:
            open_ones[place] = {"zero": claim.gap.p_zero()}
            if claim.printed is not None:
                open_ones[place]["printed"] = claim.gap.p_at_least(claim.printed)
    many = len(open_ones)
    refused: dict[int, set[str]] = {place: set() for place in open_ones}
    while open_ones:
        p, place, what = min(
            (p, place, what) for place, ps in open_ones.items() for what, p in ps.items()
        )
        if p > LEVEL / len(open_ones):
            break
        refused[place].add(what)
        del open_ones[place][what]
        if not open_ones[place]:
            del open_ones[place]
    return [
        _decision(claim, refused.get(place), LEVEL / max(many, 1))
        for place, claim in enumerate(family)
    ]


def _decision(claim: Comparison, refused: set[str] | None, level: float) -> Decision:
    if not claim.testable:
        return Decision("not testable on these data")
    if refused is None or claim.gap is None:
        return Decision("not run")
    visible = claim.gap.visible(level)
    if "zero" in refused:
        verdict: Verdict = "supported" if claim.gap.value > 0 else "contradicted"
        return Decision(verdict, visible, claim.gap.value > 0 and "printed" in refused)
    return Decision("ruled out" if "printed" in refused else "too noisy to tell", visible)

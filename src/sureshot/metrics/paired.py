r"""The gap of two systems, and how far it may be off: both seeds and videos are drawn by chance.

Two systems are trained with the same seeds and asked for the same videos. Their gap g has one value
:math:`g_s` a seed. Another set of seeds would give another gap, and so would another set of videos:

.. math:: \mathrm{Var}(\bar g) = \frac{\mathrm{Var}_s(g_s)}{S}
    + \mathrm{mean}_{s \ne s'} \mathrm{Cov}_v(g_s, g_{s'})

The first term is what seeds add. The second is what the choice of videos adds: the videos are drawn
anew, with all their captions, for all seeds alike, and what two seeds then have in common is theirs
and no seed's. What belongs to one seed and one video is in the first term already, and counted
once. The degrees of freedom are Satterthwaite's for the two terms, S - 1 and V - 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from sureshot.errors import SureshotError

KS = (1, 5, 10)
# From recalls in percent, those of texts and then those of videos at each of `KS`, to one number.
Measure = Callable[[Float[np.ndarray, "*runs 6"]], Float[np.ndarray, "*runs"]]


@dataclass(frozen=True, slots=True)
class SeedRanks:
    """The ranks of one system, trained with several seeds.

    Attributes:
        seeds: the seeds.
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
    """What one system has more than another.

    Attributes:
        value: gap, the mean over the seeds.
        error: standard error, of seeds and videos.
        freedom: degrees of freedom of the error.
        low: lower end of the 95 % interval.
        high: upper end of the 95 % interval.
        seeds: number of seeds that both were trained with.
        videos: number of videos that both were tested on.
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
        return float(2 * _tail(-abs(self.value) / self.error, self.freedom))

    def p_at_least(self, true: float) -> float:
        """Chance of a gap this small or smaller if it were truly so large."""
        return float(_tail((self.value - true) / self.error, self.freedom))

    def visible(self, level: float = 0.05, power: float = 0.8) -> float:
        """Smallest true gap that is told from 0 with this power, at this level, two-sided."""
        from scipy.stats import t

        ends = t.ppf([1 - level / 2, power], self.freedom)
        return float(ends.sum() * self.error)


def paired_gap(
    more: SeedRanks,
    less: SeedRanks,
    measure: Measure,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
) -> Gap:
    """The gap of two systems in a measure, over the seeds that both have.

    Args:
        more: ranks of the system that is claimed to be better.
        less: ranks of the other one, for the same captions.
        measure: what is compared, such as `recall_at_one`.
        rng: source of all chance.
        resamples: number of times that the videos are drawn.

    Raises:
        SureshotError: they have fewer than two seeds in common, or other captions.
    """
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
    half = -_quantile(0.025, freedom) * error
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


def _tail(value: float, freedom: float) -> float:
    from scipy.stats import t

    return float(t.cdf(value, freedom))


def _quantile(share: float, freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(share, freedom))

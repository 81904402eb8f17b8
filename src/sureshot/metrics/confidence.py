"""How well a confidence orders right and wrong answers, and how true a probability is.

Up to `abstention_nauc` only the order of the confidences counts; ties count as if their order were
drawn by lot, in expectation, so no number depends on the order of the rows. From `brier` on they
are probabilities. No such number is enough alone: the constant base rate has no calibration error
and says nothing, so report the Brier score or the AUROC next to `ece`, and `ece_floor`, since a
perfectly calibrated predictor has an error above 0 on few queries.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float64, Int

from sureshot.errors import SureshotError
from sureshot.metrics.intervals import Statistic, Weights

# One number of each query: an array, a list or a tensor of the processor.
PerQuery = npt.ArrayLike
Outcomes = npt.ArrayLike  # 1 or True, 0 or False
_Numbers = Float64[np.ndarray, " queries"]
_Flags = Bool[np.ndarray, " queries"]
_TPR = 0.95
_RATES = np.linspace(0, 1, 11)[:-1]  # abstained from: nothing, a tenth, ... nine tenths


def auroc(confidence: PerQuery, right: Outcomes) -> float:
    """Chance that a right answer has a higher confidence than a wrong one; ties count half.

    1 is perfect, 0.5 is a guess. Where all answers are right or all wrong there is nothing to tell
    apart, and it is 0.5. ``right`` is 1 where the answer is right, 0 where it is wrong.

    Examples:
        >>> auroc(np.array([0.9, 0.4, 0.4]), np.array([1, 1, 0]))
        0.75
    """
    return float(auroc_of(confidence, right)(np.ones((1, *np.shape(right))))[0])


def auroc_of(confidence: PerQuery, right: Outcomes) -> Statistic:
    """`auroc` as a statistic that can be resampled."""
    values, true = _true(confidence, right)
    order = np.argsort(values)
    ties = np.unique(values[order], return_index=True)[1]

    def separation(weights: Weights) -> Float64[np.ndarray, " draws"]:
        ordered = weights[:, order]
        passed = np.add.reduceat(ordered * true[order], ties, axis=1)
        other = np.add.reduceat(ordered * ~true[order], ties, axis=1)
        below = other.cumsum(1) - other / 2
        pairs = passed.sum(1) * other.sum(1)
        won = (passed * below).sum(1)
        # A resample in which all are right, or none, has none; the queries themselves are a guess.
        none = np.where((weights == 1).all(1), 0.5, np.nan)
        return np.divide(won, pairs, out=none, where=pairs > 0)

    return separation


def fpr_at_tpr(confidence: PerQuery, right: Outcomes) -> float:
    """Share of the wrong answers that pass the threshold which at least 95 % of the right pass.

    Equal values pass together. 0 is perfect, 0.95 a guess; that is also what comes out where all
    are right or all wrong.

    Examples:
        >>> fpr_at_tpr(np.array([0.9, 0.8, 0.3, 0.1]), np.array([1, 1, 0, 0]))
        0.0
    """
    values, true = _true(confidence, right)
    if true.all() or not true.any():
        return _TPR
    passing = np.sort(values[true])[::-1]
    threshold = passing[_needed(_TPR, len(passing)) - 1]
    return float(np.mean(values[~true] >= threshold))


def aurc(confidence: PerQuery, wrong: Outcomes) -> float:
    """Mean, over all coverages, of the risk among the queries answered first.

    The queries are answered from the surest to the least sure; after each one the risk is the mean
    loss so far; a loss is 0 to 1, such as 1 where the answer is wrong. Lower is better. The few
    surest queries weigh most, see `augrc`.

    References:
        Geifman et al., "Bias-reduced uncertainty estimation for deep neural classifiers", ICLR
        2019, arXiv:1805.08206.
    """
    _, risks = risk_curve(confidence, wrong)
    return float(risks.mean())


def excess_aurc(confidence: PerQuery, wrong: Outcomes) -> float:
    """`aurc` minus that of the best possible order of the same answers; 0 is perfect."""
    return aurc(confidence, wrong) - aurc(-np.asarray(wrong, np.float64), wrong)


def augrc(confidence: PerQuery, wrong: Outcomes) -> float:
    """Mean, over all coverages, of the share of all queries that are answered and wrong.

    Lower is better. All queries weigh alike: with losses of 0 and 1 it is
    (1 - AUROC) a (1 - a) + (1 - a)^2 / 2 with the share a of right answers.

    References:
        Traub et al., "Overcoming common flaws in the evaluation of selective classification
        systems", NeurIPS 2024, arXiv:2407.01032.
    """
    lost = _lost(confidence, wrong)
    # Trapezoids from nothing answered to everything answered.
    return float((lost.sum() - lost[-1] / 2) / len(lost) ** 2)


def risk_at_coverage(confidence: PerQuery, wrong: Outcomes, coverage: float) -> float:
    """Mean loss of the surest queries, so many that at least ``coverage`` of all is answered.

    Examples:
        >>> risk_at_coverage(np.array([0.9, 0.8, 0.3, 0.1]), np.array([0, 0, 1, 1]), 0.75)
        0.3333333333333333
    """
    lost = _lost(confidence, wrong)
    count = _needed(coverage, len(lost))
    return float(lost[count - 1] / count)


def risk_curve(
    confidence: PerQuery, wrong: Outcomes
) -> tuple[Float64[np.ndarray, " queries"], Float64[np.ndarray, " queries"]]:
    """Coverages 1/n, 2/n, ... 1 and the mean loss at each."""
    lost = _lost(confidence, wrong)
    answered = np.arange(1, len(lost) + 1)
    return answered / len(lost), lost / answered


def abstention_nauc(confidence: PerQuery, quality: Outcomes) -> float:
    """NAUC of mteb: how much of what abstention can gain a confidence gains.

    At each of ten rates (0, 0.1, ... 0.9) the least sure queries are left out and the quality of
    the rest averaged, such as its recall or reciprocal rank; the area under this curve is scaled so
    that 0 is the area where abstention gains nothing and 1 that of the best order. Below 0
    abstention harms.

    References:
        Gisserot-Boukhlef et al., "Towards trustworthy reranking: a simple yet effective abstention
        mechanism", arXiv:2402.12997, as mteb computes it (``nAUC_..._max`` and the like).

    Differs:
        Where all queries have the same quality it is 0, not NaN. Ties keep the order of their
        rows, as in mteb; it is the one number here that depends on it.
    """
    order, values = _checked(confidence, quality)
    found = _area(values[np.argsort(order, kind="stable")])
    best = _area(np.sort(values))
    flat = values.mean() * _RATES[-1]
    return 0.0 if np.isclose(best, flat, rtol=1e-12) else float((found - flat) / (best - flat))


def _lost(confidence: PerQuery, wrong: Outcomes) -> _Numbers:
    """Expected sum of the losses of the 1, 2, ... surest queries."""
    values, loss = _checked(confidence, wrong)
    if loss.min() < 0 or loss.max() > 1:
        raise SureshotError(f"A loss is 0 to 1; these are {loss.min():g} to {loss.max():g}.")
    # Within a tie each place costs the mean of the tie.
    _, tie, size = np.unique(-values, return_inverse=True, return_counts=True)
    mean = np.bincount(tie, weights=loss) / size
    return np.cumsum(np.repeat(mean, size))


def _area(ordered: Float64[np.ndarray, " queries"]) -> float:
    """Area under the mean of what is left when the first queries are left out."""
    out = [min(round(rate * len(ordered)), len(ordered) - 1) for rate in _RATES]
    curve = np.array([ordered[first:].mean() for first in out])
    return float(((curve[1:] + curve[:-1]) / 2 * np.diff(_RATES)).sum())


def _needed(share: float, count: int) -> int:
    """How many of ``count`` are at least this share, rounding of floats aside."""
    return max(1, int(np.ceil(share * count - 1e-9)))


def _checked(confidence: PerQuery, outcome: Outcomes) -> tuple[_Numbers, _Numbers]:
    """Confidences and outcomes as arrays, one of each for a query."""
    values, outcomes = np.asarray(confidence, np.float64), np.asarray(outcome, np.float64)
    if not values.size or values.ndim != 1 or values.shape != outcomes.shape:
        raise SureshotError(
            f"Confidences of shape {values.shape} and outcomes of {outcomes.shape}; give one of "
            "each for every query, and one query at least."
        )
    if np.isnan(values).any() or np.isnan(outcomes).any():
        raise SureshotError("A confidence or an outcome is NaN; leave such a query out or fix it.")
    return values, outcomes


def _true(confidence: PerQuery, right: Outcomes) -> tuple[_Numbers, _Flags]:
    """Confidences, and which outcomes are right; all must be 0 or 1."""
    values, outcomes = _checked(confidence, right)
    if not np.isin(outcomes, (0, 1)).all():
        raise SureshotError("An outcome is neither 0 nor 1; a query was answered right or wrong.")
    return values, outcomes == 1


BINS = 15  # of equal width
_EDGES = np.linspace(0, 1, BINS + 1)


def brier(probability: PerQuery, right: Outcomes) -> float:
    """Mean squared difference of probability and outcome, 0 to 1; lower is better.

    The constant base rate b scores b (1 - b).

    Examples:
        >>> brier(np.array([1.0, 0.5]), np.array([1, 0]))
        0.125
    """
    return float(squared_errors(probability, right).mean())


def squared_errors(probability: PerQuery, right: Outcomes) -> _Numbers:
    """What `brier` is the mean of, one number per query."""
    said, true = _probabilities(probability, right)
    return (said - true) ** 2


def nll(probability: PerQuery, right: Outcomes) -> float:
    """Mean negative log likelihood in nats; lower is better.

    A query that was wrongly held certain costs 13.8 nats, not infinity: probabilities are kept a
    millionth away from 0 and 1.
    """
    said, true = _probabilities(probability, right)
    kept = np.clip(said, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(true, np.log(kept), np.log1p(-kept))))


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Queries in bins of like probability; empty bins are left out."""

    low: Float64[np.ndarray, " bins"]  # ends of each bin
    high: Float64[np.ndarray, " bins"]
    probability: Float64[np.ndarray, " bins"]  # mean of the queries in it
    right: Float64[np.ndarray, " bins"]  # share of them that is right
    count: Int[np.ndarray, " bins"]


def reliability(probability: PerQuery, right: Outcomes) -> Reliability:
    """What a reliability diagram shows, in 15 bins of equal width."""
    said, true = _probabilities(probability, right)
    place = _bins(said)
    count = np.bincount(place, minlength=BINS)
    filled = np.flatnonzero(count)
    total = count[filled]
    return Reliability(
        low=_EDGES[filled],
        high=_EDGES[filled + 1],
        probability=np.bincount(place, weights=said)[filled] / total,
        right=np.bincount(place, weights=true)[filled] / total,
        count=total,
    )


def ece(probability: PerQuery, right: Outcomes) -> float:
    """Expected calibration error: the gaps of `reliability`, weighted by their queries; 0 to 1.

    References:
        Guo et al., "On calibration of modern neural networks", ICML 2017, arXiv:1706.04599.

    Examples:
        >>> ece(np.array([0.75, 0.75, 0.75, 0.75]), np.array([1, 1, 1, 0]))
        0.0
    """
    shown = reliability(probability, right)
    gaps = np.abs(shown.probability - shown.right)
    return float((gaps * shown.count).sum() / shown.count.sum())


def ece_floor(probability: PerQuery, rng: np.random.Generator, draws: int = 200) -> float:
    """Mean `ece` of a predictor that gives the same probabilities and is perfectly calibrated.

    The outcomes are drawn from the probabilities themselves. An `ece` near its floor cannot be
    distinguished from a perfect one on that many queries.
    """
    said = np.asarray(probability, np.float64)
    place = _bins(said)
    errors = []
    for _ in range(draws):
        off = said - (rng.random(len(place)) < said)
        errors.append(np.abs(np.bincount(place, off, minlength=BINS)).sum())
    return float(np.mean(errors) / len(place))


def _bins(probability: _Numbers) -> Int[np.ndarray, " queries"]:
    """The bin of each query; a bin holds its upper end."""
    return np.maximum(np.searchsorted(_EDGES, probability, side="left") - 1, 0)


def _probabilities(probability: PerQuery, right: Outcomes) -> tuple[_Numbers, _Flags]:
    said, true = _true(probability, right)
    if not ((said >= 0) & (said <= 1)).all():
        raise SureshotError("A probability is outside of 0 to 1.")
    return said, true

"""How far probabilities agree with what happens.

A number here is never enough alone. The constant base rate has a perfect calibration error and
tells nothing, so report the Brier score or the AUROC beside it; and a perfectly calibrated
predictor has an error above 0 on few queries, so report `ece_floor` beside it. All functions take
one probability and one outcome a query.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Num

from sureshot.errors import SureshotError
from sureshot.metrics.detection import Outcomes, checked_outcomes

BINS = 15  # of equal width


def brier(probability: Float[np.ndarray, " queries"], right: Outcomes) -> float:
    """Mean squared difference of probability and outcome, 0 to 1; lower is better.

    The constant base rate b scores b (1 - b).

    Raises:
        SureshotError: probabilities outside of 0 to 1, outcomes other than 0 and 1, no query, or
            lengths that differ.

    Examples:
        >>> brier(np.array([1.0, 0.5]), np.array([1, 0]))
        0.125
    """
    return float(squared_errors(probability, right).mean())


def squared_errors(
    probability: Float[np.ndarray, " queries"], right: Outcomes
) -> Float64[np.ndarray, " queries"]:
    """What `brier` is the mean of, one number a query; errors as for `brier`."""
    return (probability.astype(np.float64) - _checked(probability, right)) ** 2


def nll(
    probability: Float[np.ndarray, " queries"],
    right: Outcomes,
    clip: float = 1e-6,
) -> float:
    """Mean negative log likelihood in nats; lower is better.

    Args:
        probability: probability that each answer is right.
        right: 1 where it is, 0 where it is not.
        clip: probabilities nearer to 0 or 1 than this are moved away, so that one query that was
            wrongly held certain costs 13.8 nats and not infinity.

    Raises:
        SureshotError: as for `brier`.
    """
    true = _checked(probability, right)
    kept = np.clip(probability.astype(np.float64), clip, 1 - clip)
    return float(-np.mean(np.where(true, np.log(kept), np.log1p(-kept))))


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Queries in bins of like probability; empty bins are left out.

    Attributes:
        low: lower end of each bin.
        high: upper end.
        probability: mean probability of the queries in it.
        right: share of them that is right.
        count: how many they are.
    """

    low: Float64[np.ndarray, " bins"]
    high: Float64[np.ndarray, " bins"]
    probability: Float64[np.ndarray, " bins"]
    right: Float64[np.ndarray, " bins"]
    count: Int[np.ndarray, " bins"]


def reliability(
    probability: Float[np.ndarray, " queries"],
    right: Outcomes,
    *,
    bins: int = BINS,
) -> Reliability:
    """What a reliability diagram shows.

    Args:
        probability: probability that each answer is right.
        right: 1 where it is, 0 where it is not.
        bins: number of bins of equal width; empty ones are left out.

    Raises:
        SureshotError: as for `brier`, or no bin.
    """
    true = _checked(probability, right)
    place, edges = _places(probability.astype(np.float64), bins)
    count = np.bincount(place, minlength=len(edges) - 1)
    filled = np.flatnonzero(count)
    total = count[filled]
    return Reliability(
        low=edges[filled],
        high=edges[filled + 1],
        probability=np.bincount(place, weights=probability)[filled] / total,
        right=np.bincount(place, weights=true)[filled] / total,
        count=total,
    )


def ece(
    probability: Float[np.ndarray, " queries"],
    right: Outcomes,
    *,
    bins: int = BINS,
) -> float:
    """Expected calibration error: the gaps of `reliability`, weighted by their queries; 0 to 1.

    Arguments and errors as for `reliability`.

    References:
        Guo et al., "On calibration of modern neural networks", ICML 2017, arXiv:1706.04599.

    Examples:
        >>> ece(np.array([0.75, 0.75, 0.75, 0.75]), np.array([1, 1, 1, 0]))
        0.0
    """
    shown = reliability(probability, right, bins=bins)
    gaps = np.abs(shown.probability - shown.right)
    return float((gaps * shown.count).sum() / shown.count.sum())


def ece_floor(
    probability: Float[np.ndarray, " queries"],
    rng: np.random.Generator,
    *,
    bins: int = BINS,
    draws: int = 200,
) -> float:
    """Mean `ece` of a predictor that gives the same probabilities and is perfectly calibrated.

    The outcomes are drawn from the probabilities themselves. An `ece` near its floor cannot be
    told from a perfect one on that many queries.

    Args:
        probability: probability that each answer is right.
        rng: source of all chance.
        bins: number of bins of equal width; empty ones are left out.
        draws: how often the outcomes are drawn.

    Raises:
        SureshotError: as for `reliability`, or no draw.
    """
    if draws < 1:
        raise SureshotError(f"draws is {draws}; the floor needs at least 1, better 200.")
    _checked(probability, np.zeros(len(probability)))
    place, edges = _places(probability.astype(np.float64), bins)
    errors = [
        np.abs(
            np.bincount(
                place,
                weights=probability - (rng.random(len(place)) < probability),
                minlength=len(edges) - 1,
            )
        ).sum()
        for _ in range(draws)
    ]
    return float(np.mean(errors) / len(place))


def _places(
    probability: Float64[np.ndarray, " queries"], bins: int
) -> tuple[Int[np.ndarray, " queries"], Float64[np.ndarray, " edges"]]:
    """The bin of each query, and the ends of all bins; a bin holds its upper end."""
    if bins < 1:
        raise SureshotError(f"bins is {bins}; at least 1 is needed.")
    edges = np.linspace(0, 1, bins + 1)
    return np.maximum(np.searchsorted(edges, probability, side="left") - 1, 0), edges


def _checked(
    probability: Num[np.ndarray, " queries"], right: Outcomes
) -> Bool[np.ndarray, " outcomes"]:
    true = checked_outcomes(probability, right)
    if not ((probability >= 0) & (probability <= 1)).all():
        raise SureshotError("A probability is outside of 0 to 1.")
    return true

"""A bound on how often an answer is wrong, for those that are given as sure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from sureshot.errors import SureshotError

RISKS = tuple(step / 20 for step in range(1, 11))  # that are tried: 0.05, 0.1, ... 0.5
SHOWN_RISKS = (0.1, 0.2, 0.3)  # those of them that are printed and measured
LEVEL = 0.95
_STEPS = 50  # thresholds that are tried at most


@dataclass(frozen=True)
class Certificate:
    """Answering at or above a threshold is wrong at most so often.

    Attributes:
        risk: bound on the share of wrong answers among those given.
        level: share of all choices of the labelled queries in which the bound holds.
        threshold: confidence from which an answer is given.
        coverage: share of the labelled queries that is answered.
        answered: how many that are.
        wrong: how many of them are wrong.
        bound: Clopper-Pearson bound at this threshold, at most ``risk``.
    """

    risk: float
    level: float
    threshold: float
    coverage: float
    answered: int
    wrong: int
    bound: float


def certify(
    confidence: Float[np.ndarray, " queries"],
    wrong: Bool[np.ndarray, " outcomes"],
    thresholds: Sequence[float],
    risk: float,
    level: float = LEVEL,
) -> Certificate | None:
    """The laxest threshold whose risk is certified.

    The thresholds are tried in their order, and the first failure ends it; so the chance that a
    threshold with a larger risk is given out is at most 1 - ``level``, however many are tried.

    Args:
        confidence: one number a labelled query, higher is surer; the queries are independent, no
            two of them of one video.
        wrong: whether the answer to each query is wrong.
        thresholds: confidences to try, descending, and chosen without these queries; see
            `thresholds`.
        risk: bound to certify, above 0 and below 1.
        level: share of all choices of the queries in which it shall hold, above 0 and below 1.

    Returns:
        The certificate; None where the first threshold fails already.

    Raises:
        SureshotError: shares out of range, thresholds that ascend, NaN, or lengths that differ.

    References:
        Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017,
        arXiv:1705.08500; Angelopoulos et al., "Learn then test", arXiv:2110.01052, section 2.3, for
        the fixed sequence.
    """
    _check(confidence, risk, level)
    if len(confidence) != len(wrong):
        raise SureshotError(f"{len(confidence)} confidences and {len(wrong)} outcomes were given.")
    if any(b > a for a, b in pairwise(thresholds)):
        raise SureshotError("Thresholds must descend, from strict to lax.")
    found = None
    for threshold in thresholds:
        given = confidence >= threshold
        answered, errors = int(given.sum()), int((given & wrong).sum())
        bound = upper_bound(errors, answered, level)
        if bound > risk:
            break
        found = Certificate(
            risk=risk,
            level=level,
            threshold=float(threshold),
            coverage=answered / len(confidence),
            answered=answered,
            wrong=errors,
            bound=bound,
        )
    return found


def upper_bound(events: int, trials: int, level: float = LEVEL) -> float:
    """Clopper-Pearson: the largest share that ``events`` of ``trials`` do not speak against.

    It lies below the true share in at most 1 - ``level`` of all samples.

    Args:
        events: number of trials with the event, 0 to ``trials``.
        trials: number of independent trials; without any the bound is 1.
        level: confidence of the one-sided bound, above 0 and below 1.

    Raises:
        SureshotError: an argument out of range.

    References:
        Clopper and Pearson, Biometrika 26 (1934).

    Examples:
        >>> round(upper_bound(0, 59), 3)
        0.05
    """
    from scipy.special import betaincinv  # its import takes as long as a search

    if not 0 <= events <= trials or not 0 < level < 1:
        raise SureshotError(f"{events} events in {trials} trials at level {level} have no bound.")
    # Without a trial that lacks the event the distribution is not defined, and the bound is 1.
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, level))


def thresholds(
    probability: Float[np.ndarray, " queries"],
    queries: int,
    risk: float,
    level: float = LEVEL,
) -> tuple[float, ...]:
    """Thresholds to try, from probabilities of being right on other queries.

    The first must be neither so strict that a handful of answers cannot certify anything, nor so
    lax that it fails. These probabilities foretell how many of ``queries`` each threshold would
    answer and how many of those wrongly; the first is the one whose share of wrong answers they
    foretell to be below the risk by the most standard errors, among those with so many answers
    that a certificate could be had if all were right.

    Args:
        probability: one number a query of others than the certificate is tried on.
        queries: how many queries the certificate will be tried on.
        risk: bound to certify, above 0 and below 1.
        level: confidence of the certificate, above 0 and below 1.

    Raises:
        SureshotError: no probability, NaN, or shares out of range.
    """
    _check(probability, risk, level)
    ordered = np.sort(probability)[::-1]
    errors = np.cumsum(1 - np.clip(ordered, 0, 1))
    counts = np.unique(np.linspace(1, len(ordered), min(_STEPS, len(ordered))).astype(int))
    trials = counts * queries / len(ordered)
    evidence = (risk - errors[counts - 1] / counts) * np.sqrt(trials)
    needed = np.log(1 - level) / np.log(1 - risk)
    first = int(np.argmax(np.where(trials >= min(needed, trials[-1]), evidence, -np.inf)))
    tried = [float(ordered[count - 1]) for count in counts[first:]]
    return tuple(dict.fromkeys(tried))


def _check(confidence: Float[np.ndarray, " queries"], risk: float, level: float) -> None:
    if not len(confidence) or np.isnan(confidence).any():
        raise SureshotError("Confidences are needed, one at least, and none of them NaN.")
    for name, value in (("risk", risk), ("level", level)):
        if not 0 < value < 1:
            raise SureshotError(f"{name} is {value}; it must be above 0 and below 1.")

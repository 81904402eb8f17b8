"""How well signals tell right answers from wrong ones, beside each other on the same queries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.metrics.bootstrap import Interval, intervals, of_columns
from sureshot.metrics.detection import (
    abstention_nauc,
    augrc,
    aurc,
    auroc,
    excess_aurc,
    risk_at_coverage,
)
from sureshot.metrics.reliability import brier, ece, ece_floor, nll
from sureshot.trust.signals import query_signals

_RESAMPLES = 200
_CELLS = 1 << 22  # scores looked at together
_TAU, _LARGEST = 5.0, 30.0  # of `sureshot.models.losses.evidential.exp_evidence`


@dataclass(frozen=True, slots=True)
class Order:
    """How one signal orders queries by whether they are answered right.

    Attributes:
        name: of the signal.
        auroc: how often a right answer has the larger confidence than a wrong one; 0.5 is chance.
        aurc: mean risk over all shares answered, the least sure left out; lower is better.
        excess_aurc: that less the risk of the best possible order.
        augrc: the generalised risk, half the chance of a wrong answer taken over a right one.
        risk_50: share of wrong answers among the surer half.
        risk_80: share of wrong answers among the surer four fifths.
        nauc: mteb's abstention figure; 0 is chance, 1 the best possible.
    """

    name: str
    auroc: Interval
    aurc: float
    excess_aurc: float
    augrc: float
    risk_50: float
    risk_80: float
    nauc: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "signal": self.name,
            "auroc": self.auroc.to_dict(),
            "aurc": self.aurc,
            "excess_aurc": self.excess_aurc,
            "augrc": self.augrc,
            "risk_50": self.risk_50,
            "risk_80": self.risk_80,
            "nauc": self.nauc,
        }


@dataclass(frozen=True, slots=True)
class Probability:
    """How true a probability of a right answer is.

    Attributes:
        name: of the signal.
        brier: mean squared error, beside that of always saying the base rate.
        base: Brier score of the base rate.
        nll: negative log-likelihood, nats.
        ece: expected calibration error in 15 bins.
        floor: ECE that a perfectly calibrated predictor with these probabilities would have.
    """

    name: str
    brier: Interval
    base: float
    nll: float
    ece: float
    floor: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "signal": self.name,
            "brier": self.brier.to_dict(),
            "brier_of_base_rate": self.base,
            "nll": self.nll,
            "ece": self.ece,
            "ece_floor": self.floor,
        }


def plain_confidences(
    scores: Float[np.ndarray, "queries videos"], temperature: float
) -> dict[str, Float64[np.ndarray, " queries"]]:
    """Confidences that need no labels: of the scores alone, higher is surer.

    The highest similarity, the margin and the standard deviation are those that mteb abstains by.
    The last three are one less the vacuity that DUQ reads as uncertainty, of evidence from raw
    similarities.

    Args:
        scores: similarities, finite.
        temperature: of the softmax, fitted on other queries.

    Raises:
        SureshotError: scores that are no scores, or a temperature out of range.
    """
    signals = query_signals(scores, temperature)
    return {
        "highest similarity": signals[:, 0],
        "margin": signals[:, 1],
        "standard deviation": scores.astype(np.float64).std(1),
        "softmax probability": signals[:, 3],
        "entropy": -signals[:, 4],
        "energy": signals[:, 0] - signals[:, 5],
        "DUQ 1-u, ReLU evidence": _belief(scores, lambda s: np.maximum(s, 0)),
        "DUQ 1-u, softplus evidence": _belief(scores, lambda s: np.logaddexp(0, s)),
        "DUQ 1-u, exp evidence": _belief(scores, lambda s: np.exp(np.minimum(s / _TAU, _LARGEST))),
    }


def _belief(
    scores: Float[np.ndarray, "queries videos"],
    evidence: Callable[[Float64[np.ndarray, "part videos"]], Float64[np.ndarray, "part videos"]],
) -> Float64[np.ndarray, " queries"]:
    """The share of the mass that evidence holds, which is all but the vacuity."""
    step = max(1, _CELLS // scores.shape[1])
    found = [
        evidence(scores[first : first + step].astype(np.float64)).mean(1)
        for first in range(0, len(scores), step)
    ]
    mean = np.concatenate(found)
    return mean / (mean + 1)


def orders(
    confidences: Mapping[str, Float[np.ndarray, " queries"]],
    right: Bool[np.ndarray, " queries"],
    video: Integer[np.ndarray, " queries"],
    rng: np.random.Generator,
    *,
    resamples: int = _RESAMPLES,
) -> list[Order]:
    """The rows of the table, in the order given.

    Args:
        confidences: by name, higher is surer.
        right: whether the first video is a right answer.
        video: of each query, by which the interval is drawn.
        rng: source of all chance.
        resamples: of the interval.
    """
    wrong = ~right
    rows = []
    for name, confidence in confidences.items():
        both = np.stack([confidence.astype(np.float64), right.astype(np.float64)], axis=1)
        drawn = intervals(both, video, {"auroc": of_columns(auroc)}, rng, resamples=resamples)
        rows.append(
            Order(
                name,
                drawn["auroc"],
                aurc(confidence, wrong),
                excess_aurc(confidence, wrong),
                augrc(confidence, wrong),
                risk_at_coverage(confidence, wrong, 0.5),
                risk_at_coverage(confidence, wrong, 0.8),
                abstention_nauc(confidence, right.astype(np.float64)),
            )
        )
    return rows


def probabilities(
    predicted: Mapping[str, Float[np.ndarray, " queries"]],
    right: Bool[np.ndarray, " queries"],
    video: Integer[np.ndarray, " queries"],
    rng: np.random.Generator,
    *,
    resamples: int = _RESAMPLES,
) -> list[Probability]:
    """How true each probability is; arguments as those of `orders`, values in [0, 1]."""
    rows = []
    base = brier(np.full(len(right), right.mean()), right)
    for name, probability in predicted.items():
        both = np.stack([probability.astype(np.float64), right.astype(np.float64)], axis=1)
        drawn = intervals(both, video, {"brier": of_columns(brier)}, rng, resamples=resamples)
        rows.append(
            Probability(
                name,
                drawn["brier"],
                base,
                nll(probability, right),
                ece(probability, right),
                ece_floor(probability, rng),
            )
        )
    return rows

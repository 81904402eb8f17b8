"""Rows of the trust report: what each number means, and how it is worked out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.metrics.blocks import row_blocks
from sureshot.metrics.bootstrap import Interval, Statistic, interval, mean_of, ratio_of
from sureshot.metrics.detection import (
    abstention_nauc,
    augrc,
    aurc,
    auroc_of,
    excess_aurc,
    fpr_at_tpr,
    risk_at_coverage,
)
from sureshot.metrics.reliability import brier, ece, ece_floor, nll, squared_errors
from sureshot.trust.assessment import ABSTAIN
from sureshot.trust.cross_fit import PredictedSets
from sureshot.trust.signals import query_signals

_PLACES = 6  # whose percentages are looked at one by one
_SUREST = 0.7  # share of the queries whose coverage is looked at by itself
_TAU, _LARGEST = 5.0, 30.0  # of `sureshot.models.losses.evidential.exp_evidence`


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """Results that were graded right or wrong, and the chance by which intervals are drawn.

    Attributes:
        right: whether each result is right.
        video: number of the video that the query of each result is about.
        rng: source of all chance.
        resamples: number of times that whole videos are drawn for an interval.
    """

    right: Bool[np.ndarray, " cases"]
    video: Integer[np.ndarray, " cases"]
    rng: np.random.Generator
    resamples: int

    def interval(self, statistic: Statistic) -> Interval:
        """A statistic of the results, and where it would lie for other videos."""
        return interval(statistic, self.video, self.rng, resamples=self.resamples)

    def share(
        self, hits: Bool[np.ndarray, " cases"], among: Bool[np.ndarray, " cases"] | None = None
    ) -> Interval:
        """Share of hits, in which each video counts once, however many queries it has."""
        _, place, count = np.unique(self.video, return_inverse=True, return_counts=True)
        weight = 1 / count[place]
        if among is not None:
            weight = weight * among
        return self.interval(ratio_of(hits * weight, weight))


@dataclass(frozen=True, slots=True)
class Order:
    """How one signal orders queries by whether they are answered right.

    Attributes:
        signal: name of the signal.
        auroc: how often a right answer has the larger confidence than a wrong one; 0.5 is chance.
        aurc: mean risk over all shares answered, the least sure left out; lower is better.
        excess_aurc: ``aurc`` less that of the best possible order.
        augrc: generalised risk, half the chance of a wrong answer taken over a right one.
        risk_50: share of wrong answers among the surer half.
        risk_80: share of wrong answers among the surer four fifths.
        nauc: abstention figure of mteb; 0 is chance, 1 the best possible.
    """

    signal: str
    auroc: Interval
    aurc: float
    excess_aurc: float
    augrc: float
    risk_50: float
    risk_80: float
    nauc: float


@dataclass(frozen=True, slots=True)
class Probability:
    """How true a probability of a right answer is.

    Attributes:
        signal: name of the probability.
        brier: mean squared error.
        brier_of_base_rate: mean squared error of always saying the share that is right.
        nll: negative log-likelihood, nats.
        ece: expected calibration error in 15 bins.
        ece_floor: calibration error that a perfect predictor with these probabilities would have.
    """

    signal: str
    brier: Interval
    brier_of_base_rate: float
    nll: float
    ece: float
    ece_floor: float


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """What is said of the results at one place, 1 the first, and the share that is right."""

    place: int
    said: float
    right: float


@dataclass(frozen=True, slots=True)
class SetRow:
    """Sets of one promised coverage.

    Coverages count every video once, however many queries it has; sizes are of all queries.

    Attributes:
        coverage: share of the sets that was promised to hold the target.
        covered: share of the sets that holds it.
        mean: mean number of videos in a set.
        median: median number of videos in a set.
        empty: share of the sets that hold nothing.
        worst_third: coverage in that third of the queries, by entropy, where it is lowest.
        answered: coverage among the 70 % with the highest probability of a right answer.
    """

    coverage: float
    covered: Interval
    mean: float
    median: float
    empty: float
    worst_third: float
    answered: float


@dataclass(frozen=True, slots=True)
class AbsentRow:
    """How well a signal tells queries whose video is there from those whose video is not.

    Attributes:
        signal: name of the signal.
        auroc: how often the query whose video is there has the larger value.
        fpr_95: share of the absent that pass where 95 % of the present do.
        caught: share of the absent that are called so where 10 % of the present are.
    """

    signal: str
    auroc: Interval
    fpr_95: float
    caught: float


def plain_confidences(
    scores: Float[np.ndarray, "queries videos"], temperature: float
) -> dict[str, Float64[np.ndarray, " queries"]]:
    """Confidences that need no labels: of the scores alone, higher is surer.

    The highest similarity, the margin and the standard deviation are those that mteb abstains by.
    The last three are one less the vacuity that DUQ reads as uncertainty, of evidence from raw
    similarities.

    Args:
        scores: finite similarities.
        temperature: temperature of the softmax, fitted on other queries.

    Raises:
        SureshotError: scores that are no scores, or a temperature out of range.
    """
    signals = query_signals(scores, temperature)
    return {
        "highest similarity": signals.top,
        "margin": signals.margin,
        "standard deviation": scores.astype(np.float64).std(1),
        "softmax probability": signals.top_logit,
        "entropy": -signals.entropy,
        "energy": signals.top - signals.top_less_lse,
        "DUQ 1-u, ReLU evidence": _belief(scores, lambda s: np.maximum(s, 0)),
        "DUQ 1-u, softplus evidence": _belief(scores, lambda s: np.logaddexp(0, s)),
        "DUQ 1-u, exp evidence": _belief(scores, lambda s: np.exp(np.minimum(s / _TAU, _LARGEST))),
    }


def orders(
    confidences: Mapping[str, Float[np.ndarray, " queries"]], graded: Graded
) -> tuple[Order, ...]:
    """How each confidence orders the queries.

    Args:
        confidences: confidence of each query by the name of the signal, higher is surer.
        graded: whether the first result of each query is right.
    """
    right = graded.right
    return tuple(
        Order(
            signal=name,
            auroc=graded.interval(auroc_of(confidence, right)),
            aurc=aurc(confidence, ~right),
            excess_aurc=excess_aurc(confidence, ~right),
            augrc=augrc(confidence, ~right),
            risk_50=risk_at_coverage(confidence, ~right, 0.5),
            risk_80=risk_at_coverage(confidence, ~right, 0.8),
            nauc=abstention_nauc(confidence, right),
        )
        for name, confidence in confidences.items()
    )


def probabilities(
    predicted: Mapping[str, Float[np.ndarray, " cases"]], graded: Graded
) -> tuple[Probability, ...]:
    """How true each probability is.

    Args:
        predicted: probability that each result is right by the name of the signal, 0 to 1.
        graded: whether each result is right.
    """
    right = graded.right
    return tuple(
        Probability(
            signal=name,
            brier=graded.interval(mean_of(squared_errors(probability, right))),
            brier_of_base_rate=brier(np.full(len(right), right.mean()), right),
            nll=nll(probability, right),
            ece=ece(probability, right),
            ece_floor=ece_floor(probability, graded.rng),
        )
        for name, probability in predicted.items()
    )


def place_rows(
    predicted: Float[np.ndarray, "queries results"], right: Bool[np.ndarray, "queries results"]
) -> tuple[PlaceRow, ...]:
    """How true the probabilities are at each of the first six places."""
    columns = enumerate(zip(predicted.T[:_PLACES], right.T, strict=False), 1)
    return tuple(
        PlaceRow(place, float(said.mean()), float(true.mean())) for place, (said, true) in columns
    )


def auroc_gain(
    ours: Float[np.ndarray, " queries"], theirs: Float[np.ndarray, " queries"], graded: Graded
) -> Interval:
    """AUROC of the one confidence less that of the other, on the same queries."""
    one, other = auroc_of(ours, graded.right), auroc_of(theirs, graded.right)
    return graded.interval(lambda weights: one(weights) - other(weights))


def set_row(
    sets: PredictedSets,
    entropy: Float64[np.ndarray, " queries"],
    p_top1: Float64[np.ndarray, " queries"],
    graded: Graded,
) -> SetRow:
    """How large the sets of one coverage are, and how often they hold the video.

    Args:
        sets: set of each query.
        entropy: entropy of the scores of each query.
        p_top1: probability that the first result of each query is right.
        graded: what each query is about.
    """
    third = _places(entropy) * 3 // len(entropy)
    surest = _places(-p_top1) < _SUREST * len(p_top1)
    groups = [graded.share(sets.holds, third == number).value for number in range(3)]
    return SetRow(
        coverage=sets.coverage,
        covered=graded.share(sets.holds),
        mean=float(sets.size.mean()),
        median=float(np.median(sets.size)),
        empty=float((sets.size == 0).mean()),
        worst_third=min(groups),
        answered=graded.share(sets.holds, surest).value,
    )


def absent_row(
    signal: str,
    present: Float[np.ndarray, " queries"],
    absent: Float[np.ndarray, " queries"],
    graded: Graded,
) -> AbsentRow:
    """How a signal tells each query from the same one without its own video.

    Args:
        signal: name of the signal.
        present: value of each query with its video in the gallery.
        absent: value of each query with its video taken out.
        graded: what each query is about.
    """
    values = np.concatenate([present, absent])
    there = np.repeat([1.0, 0.0], len(present))
    both = replace(graded, right=there == 1, video=np.tile(graded.video, 2))
    # Calling so many of the present absent, how many of the absent are caught.
    cut = np.sort(present)[int(ABSTAIN * len(present))]
    return AbsentRow(
        signal=signal,
        auroc=both.interval(auroc_of(values, there)),
        fpr_95=fpr_at_tpr(values, there),
        caught=float((absent < cut).mean()),
    )


def _belief(
    scores: Float[np.ndarray, "queries videos"],
    evidence: Callable[[Float64[np.ndarray, "part videos"]], Float64[np.ndarray, "part videos"]],
) -> Float64[np.ndarray, " queries"]:
    """The share of the mass that evidence holds, which is all but the vacuity."""
    means = [
        evidence(scores[part].astype(np.float64)).mean(1) for part in row_blocks(*scores.shape)
    ]
    mean = np.concatenate(means)
    return mean / (mean + 1)


def _places(values: Float64[np.ndarray, " queries"]) -> Int[np.ndarray, " queries"]:
    """Places from 0, the smallest value."""
    places = np.empty(len(values), int)
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    return places

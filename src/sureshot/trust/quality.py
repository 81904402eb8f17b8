"""How good the percentages of a card are, on queries that it was not fitted to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProbabilityQuality:
    """How good a probability was on the queries it was not fitted to.

    Attributes:
        cases: number of results that were judged.
        share: share of the cases that is right.
        auroc: how often a right case has the higher probability than a wrong one; 0.5 is chance.
        auroc_low: lower end of the 95 % interval of ``auroc`` over videos.
        auroc_high: upper end of that interval.
        brier: mean squared error of the probability.
        brier_base: mean squared error of always saying ``share``.
        ece: expected calibration error in 15 bins.
        ece_floor: calibration error that a perfect probability has on as many cases.
    """

    cases: int
    share: float
    auroc: float
    auroc_low: float
    auroc_high: float
    brier: float
    brier_base: float
    ece: float
    ece_floor: float


@dataclass(frozen=True)
class Quality:
    """What the certifying queries say.

    Attributes:
        top1: quality of the probability that the first result is relevant.
        result: quality of the probability that one of the first ten results is.
        absent_auroc: AUROC of the standing, queries whose relevant videos are all there against
            the same queries with all of them removed; None where that leaves no video.
    """

    top1: ProbabilityQuality
    result: ProbabilityQuality
    absent_auroc: float | None

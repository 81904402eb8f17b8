"""The uncertainties of systems as confidences: do they know when the first hit is wrong?

A doubt becomes a probability by a logistic curve, fitted to the captions of one half of the test
videos and judged on those of the other half, both ways. Sureshot's percentage is one already, by
what it learned on the validation set, and is judged as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from sureshot.metrics.detection import auroc
from sureshot.metrics.reliability import brier, ece
from sureshot.research.reproduction.ranks import AMBIGUITY, PERCENT, RunRanks, TableRanks
from sureshot.trust.logistic import Logistic

ENTROPY = "softmax entropy"
_ANY = ("best score", ENTROPY, PERCENT, AMBIGUITY, "Bayes")  # of no paper


@dataclass(frozen=True, slots=True)
class Doubt:
    """How much an uncertainty is worth, over the seeds of a row.

    Attributes:
        row: row of the table.
        name: name of the uncertainty.
        auroc: chance that a wrong first hit is doubted more than a right one, of each seed; 0.5
            knows nothing, below that it is upside down.
        own: the same of first hits that are not the caption's own video, whether they fit or not.
        ambiguity: rank correlation with the number of videos that fit a caption, of each seed;
            empty outside of made worlds.
        saved: share of the Brier score of the base rate that it saves as a probability, in percent,
            of each seed; 0 knows nothing, below that it misleads.
        off: calibration error of the probability in points, of each seed.
    """

    row: str
    name: str
    auroc: Sequence[float]
    own: Sequence[float]
    ambiguity: Sequence[float]
    saved: Sequence[float]
    off: Sequence[float]

    @property
    def is_own(self) -> bool:
        """Whether it is the system's own, and not one that any scores have."""
        return self.name not in _ANY


def doubts_of(ranks: TableRanks) -> list[Doubt]:
    """What each uncertainty of each row is worth, in the order of the rows."""
    found = []
    for row in dict.fromkeys(ranks.rows):
        runs = list(ranks.part(row).values())
        for name in dict.fromkeys(name for run in runs for name in run.doubts):
            # A calibration that found itself too bad gives no percentage.
            having = [run for run in runs if name in run.doubts]
            known = [_correlation(run, name) for run in having]
            pairs = [(run, _chances(run, name)) for run in having]
            found.append(
                Doubt(
                    row=row,
                    name=name,
                    auroc=[_detected(run.doubts[name], run.right) for run in having],
                    own=[_detected(run.doubts[name], run.texts <= 1) for run in having],
                    ambiguity=[value for value in known if not np.isnan(value)],
                    saved=[_saved(chance, run.right) for run, chance in pairs],
                    off=[100 * ece(chance, run.right) for run, chance in pairs],
                )
            )
    return found


def _correlation(run: RunRanks, name: str) -> float:
    from scipy.stats import spearmanr

    doubt, truth = run.doubts[name], run.doubts.get(AMBIGUITY)
    if truth is None or np.ptp(doubt) == 0 or np.ptp(truth) == 0:
        return float("nan")
    return float(spearmanr(doubt, truth).statistic)


def _chances(run: RunRanks, name: str) -> Float[np.ndarray, " captions"]:
    """Probability that the first hit of each caption is right, by a doubt."""
    doubt = run.doubts[name].astype(np.float64)
    if name == PERCENT:
        return np.clip(1 - doubt, 0, 1)
    chance = np.empty(len(doubt))
    half = run.owner % 2 == 0  # videos lie in no order that means anything
    for known in (half, ~half):
        if run.right[known].all() or not run.right[known].any():
            chance[~known] = run.right[known].mean()  # there is nothing to fit a curve to
            continue
        curve = Logistic.fit(doubt[known, None], run.right[known])
        chance[~known] = curve.probability(doubt[~known, None])
    return chance


def _saved(chance: Float[np.ndarray, " captions"], right: Bool[np.ndarray, " captions"]) -> float:
    rate = right.mean()
    return 100 * (1 - brier(chance, right) / (rate * (1 - rate))) if 0 < rate < 1 else float("nan")


def _detected(doubt: Float[np.ndarray, " captions"], right: Bool[np.ndarray, " captions"]) -> float:
    """AUROC of a doubt for what is not right; no number where all is right, or nothing."""
    return auroc(-doubt, right) if 0 < right.sum() < len(right) else float("nan")

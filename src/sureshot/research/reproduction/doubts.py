"""The uncertainties of systems as confidences: do they know when the first hit is wrong?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from sureshot.metrics.detection import auroc
from sureshot.research.reproduction.ranks import RunRanks, TableRanks

_TRUTH = "known ambiguity"


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
    """

    row: str
    name: str
    auroc: Sequence[float]
    own: Sequence[float]
    ambiguity: Sequence[float]


def doubts_of(ranks: TableRanks) -> list[Doubt]:
    """What each uncertainty of each row is worth, in the order of the rows."""
    found = []
    for row in dict.fromkeys(ranks.rows):
        runs = list(ranks.part(row).values())
        for name in runs[0].doubts:
            pairs = [_worth(run, name) for run in runs]
            fit, own, known = (list(values) for values in zip(*pairs, strict=True))
            known = [value for value in known if not np.isnan(value)]
            found.append(Doubt(row=row, name=name, auroc=fit, own=own, ambiguity=known))
    return found


def _worth(run: RunRanks, name: str) -> tuple[float, float, float]:
    from scipy.stats import spearmanr

    doubt = run.doubts[name]
    fit, own = _detected(doubt, run.right), _detected(doubt, run.texts <= 1)
    truth = run.doubts.get(_TRUTH)
    if truth is None or np.ptp(doubt) == 0 or np.ptp(truth) == 0:
        return fit, own, float("nan")
    return fit, own, float(spearmanr(doubt, truth).statistic)


def _detected(doubt: Float[np.ndarray, " captions"], right: Bool[np.ndarray, " captions"]) -> float:
    """AUROC of a doubt for what is not right; no number where all is right, or nothing."""
    return auroc(-doubt, right) if 0 < right.sum() < len(right) else float("nan")

"""What the papers claim, and which two rows of our tables tell whether it holds here.

The claims are in ``metrics/claims.csv``.
"""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from sureshot.research.reproduction.tables import Metric, measure_of
from sureshot.settings import build

Verdict = Literal["held", "not seen", "reversed", "not run"]
Scores = Mapping[tuple[str, int], Mapping[str, float]]  # of a row and a seed

_LEAST = {
    "R@1": 0.5,
    "rsum": 2.0,
    "geometric mean": 0.5,
}  # a smaller gap is no finding, however steady it is


@dataclass(frozen=True, slots=True)
class Claim:
    """A row is better than another.

    Attributes:
        paper: whose claim; "ours" for one of a control that the paper does not have.
        says: the claim in a sentence.
        table: where both rows are; empty where the claim cannot be tested.
        more: the row that is better, if the claim holds.
        less: the other row.
        printed: the paper's gap in points, in words; empty for ours.
        metric: what the gap is of.
        elsewhere: whether the gap is on the other data set.
        untested: why nothing here can tell; empty where two rows do.
    """

    paper: str
    says: str
    table: str = ""
    more: str = ""
    less: str = ""
    printed: str = ""
    metric: Metric = "R@1"
    elsewhere: bool = False
    untested: str = ""


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the file."""
    text = files("sureshot.metrics").joinpath("claims.csv").read_text("utf-8")
    claims = []
    for line in csv.DictReader(text.splitlines()):
        values: dict[str, Any] = {name: value for name, value in line.items() if value}
        values["elsewhere"] = line["elsewhere"] == "yes"
        claims.append(build(Claim, values))
    return tuple(claims)


@dataclass(frozen=True, slots=True)
class Finding:
    """What our runs say.

    Attributes:
        claim: the claim that was judged.
        verdict: the outcome, see `judge_claim`.
        gap: mean over the seeds of what the better row has more; None if a row is missing.
        deviation: standard deviation of the gap over the seeds; None for fewer than two.
    """

    claim: Claim
    verdict: Verdict
    gap: float | None = None
    deviation: float | None = None


def judge_claim(claim: Claim, scores: Scores, prefix: str = "") -> Finding:
    """Compare the two rows seed by seed.

    ``held`` if the mean gap is at least half a point of R@1 or of the geometric mean, or two of
    the sum of six, and more than two standard errors over the seeds; ``reversed`` if it is that far
    below 0; ``not seen`` between. A gap of one seed alone is judged by its size.

    Args:
        claim: what is claimed.
        scores: scores of the rows of its table, by row and seed.
        prefix: what the names of scores on the other data set begin with.
    """
    more = {seed: values for (row, seed), values in scores.items() if row == claim.more}
    less = {seed: values for (row, seed), values in scores.items() if row == claim.less}
    both = sorted(more.keys() & less.keys())
    if not both:
        return Finding(claim=claim, verdict="not run")
    gaps = [
        measure_of(more[seed], claim.metric, prefix) - measure_of(less[seed], claim.metric, prefix)
        for seed in both
    ]
    mean = float(np.mean(gaps))
    deviation = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else None
    error = 0.0 if deviation is None else 2 * deviation / len(gaps) ** 0.5
    verdict: Verdict = "not seen"
    if abs(mean) >= _LEAST[claim.metric] and abs(mean) > error:
        verdict = "held" if mean > 0 else "reversed"
    return Finding(claim=claim, verdict=verdict, gap=mean, deviation=deviation)

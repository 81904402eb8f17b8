"""What the papers claim, and what our runs say of it.

The claims are in ``metrics/claims.csv``: each names two rows of a table. They are judged by the
ranks of every query (`sureshot.research.reproduction.ranks`), all claims about a paper together
(`sureshot.metrics.verdicts`).
"""

import csv
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from sureshot.metrics.paired import (
    Gap,
    Measure,
    SeedRanks,
    mean_of_recalls,
    paired_gap,
    recall_at_one,
    sum_of_recalls,
)
from sureshot.metrics.verdicts import Comparison, Decision, decide
from sureshot.research.reproduction.ranks import TableRanks
from sureshot.settings import build

# fits: share of captions whose first hit fits, by what is true of a made world
ClaimMetric = Literal["R@1", "rsum", "geometric mean", "fits"]
_MEASURES: Mapping[ClaimMetric, Measure] = {
    "R@1": recall_at_one,
    "fits": recall_at_one,  # of ranks that are 1 where the first hit fits
    "rsum": sum_of_recalls,
    "geometric mean": mean_of_recalls,
}
_GAP = re.compile(r"\+(\d+(?:\.\d+)?)")
_SEED = 0  # of the videos that are drawn


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
        family: claims that are decided together; empty is those of the paper.
    """

    paper: str
    says: str
    table: str = ""
    more: str = ""
    less: str = ""
    printed: str = ""
    metric: ClaimMetric = "R@1"
    elsewhere: bool = False
    untested: str = ""
    family: str = ""

    @property
    def decided_with(self) -> str:
        """The claims that it is decided with."""
        return self.family or self.paper

    @property
    def printed_gap(self) -> float | None:
        """The paper's gap in points; None where it prints none.

        Examples:
            >>> Claim("DVTR", "more is better", printed="+2.2, MSVD, geometric mean").printed_gap
            2.2
        """
        found = _GAP.match(self.printed)
        return None if found is None else float(found[1])


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
    """What our runs say of a claim.

    Attributes:
        claim: the claim that was judged.
        decision: the verdict, and the smallest effect that would have been seen.
        gap: what the better row has more; None where a row or its ranks are missing.
    """

    claim: Claim
    decision: Decision
    gap: Gap | None = None


def judge_claims(
    claims: Sequence[Claim], tables: Mapping[str, Mapping[str, TableRanks]]
) -> list[Finding]:
    """The verdicts on claims, from the runs on one data set.

    Args:
        claims: the claims, in any order.
        tables: ranks of each table by its name, then by test set as of
            `sureshot.research.reproduction.ranks.read_table_ranks`.

    Returns:
        One finding a claim, in their order.
    """
    gaps = [_gap(claim, tables.get(claim.table, {})) for claim in claims]
    found: dict[int, Finding] = {}
    for family in dict.fromkeys(claim.decided_with for claim in claims):
        places = [n for n, claim in enumerate(claims) if claim.decided_with == family]
        decisions = decide(
            [
                Comparison(
                    gap=gaps[n],
                    printed=claims[n].printed_gap,
                    testable=not claims[n].untested,
                )
                for n in places
            ]
        )
        for n, decision in zip(places, decisions, strict=True):
            found[n] = Finding(claim=claims[n], decision=decision, gap=gaps[n])
    return [found[n] for n in range(len(claims))]


def _gap(claim: Claim, tests: Mapping[str, TableRanks]) -> Gap | None:
    names = list(tests)
    place = 1 if claim.elsewhere else 0
    if len(names) <= place:
        return None
    ranks = tests[names[place]]
    fits = claim.metric == "fits"
    if fits and not ranks.knows_fits:
        return None
    more, less = ranks.of_row(claim.more, fits=fits), ranks.of_row(claim.less, fits=fits)
    if more is None or less is None or len(_common(more, less)) < 2:
        return None
    draw = np.random.default_rng(_SEED)
    return paired_gap(more, less, _MEASURES[claim.metric], draw)


def _common(one: SeedRanks, other: SeedRanks) -> set[int]:
    return set(one.seeds) & set(other.seeds)

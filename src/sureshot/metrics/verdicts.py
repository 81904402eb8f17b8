r"""What a family of comparisons says about a paper's claims.

A claim says that one system has more than another, and the paper prints by how much. Two
hypotheses can be refused: that there is no gap, and that the gap is as large as printed. A verdict
is *supported* or *contradicted* where the first is refused, by the sign of the gap; *ruled out*
where only the second is; and *too noisy to tell* where neither is.

All comparisons of a paper are decided together, so that in at most 5 of 100 repetitions of the
whole family any verdict would be wrong. The smallest p-value is held against 5 % over the number of
claims, the next against 5 % over the claims still open, and so on (Holm). A claim has two p-values
but counts once: a gap that is truly as large as printed is not truly 0, so at most one of the two
hypotheses holds (Shaffer).

References:
    Holm, A simple sequentially rejective multiple test procedure, 1979.
    Shaffer, Modified sequentially rejective multiple test procedures, 1986.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sureshot.metrics.paired import Gap

Verdict = Literal[
    "supported",
    "contradicted",
    "ruled out",
    "too noisy to tell",
    "not testable on these data",
    "not run",
]
LEAST_SEEDS = 10  # fewer get no verdict
LEVEL = 0.05  # share of families in which any verdict may be wrong


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim and what was measured of it.

    Attributes:
        gap: what was measured; None where nothing was.
        printed: gap that the paper prints, above 0; None where it prints none.
        testable: whether these data could tell at all.
    """

    gap: Gap | None = None
    printed: float | None = None
    testable: bool = True

    @property
    def counts(self) -> bool:
        """Whether there are data and seeds enough for a verdict."""
        return self.testable and self.gap is not None and self.gap.seeds >= LEAST_SEEDS


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a claim.

    Attributes:
        verdict: what was found.
        visible: smallest true gap that would have been told from 0 with 80 % power, within its
            family; None without a verdict from data.
        smaller: whether a gap that is there is told to be smaller than printed.
    """

    verdict: Verdict
    visible: float | None = None
    smaller: bool = False


def decide(family: Sequence[Comparison], level: float = LEVEL) -> list[Decision]:
    """The verdicts on all claims of a paper.

    Args:
        family: the claims; those that cannot be tested or were not run take no part.
        level: largest share of families in which any verdict may be wrong.
    """
    open_ones: dict[int, dict[str, float]] = {}
    for place, one in enumerate(family):
        if one.counts and one.gap is not None:
            open_ones[place] = {"zero": one.gap.p_zero()}
            if one.printed is not None:
                open_ones[place]["printed"] = one.gap.p_at_least(one.printed)
    many = len(open_ones)
    refused: dict[int, set[str]] = {place: set() for place in open_ones}
    while open_ones:
        p, place, what = min(
            (p, place, what) for place, ps in open_ones.items() for what, p in ps.items()
        )
        if p > level / len(open_ones):
            break
        refused[place].add(what)
        del open_ones[place][what]
        if not open_ones[place]:
            del open_ones[place]
    return [
        _decision(one, refused.get(place), level / max(many, 1)) for place, one in enumerate(family)
    ]


def _decision(one: Comparison, refused: set[str] | None, level: float) -> Decision:
    if not one.testable:
        return Decision("not testable on these data")
    if refused is None or one.gap is None:
        return Decision("not run")
    visible = one.gap.visible(level)
    if "zero" in refused:
        verdict: Verdict = "supported" if one.gap.value > 0 else "contradicted"
        return Decision(verdict, visible, one.gap.value > 0 and "printed" in refused)
    return Decision("ruled out" if "printed" in refused else "too noisy to tell", visible)

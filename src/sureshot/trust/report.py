"""What was measured of trust: numbers for programs, and tables for a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from sureshot.metrics.bootstrap import Interval
from sureshot.metrics.reliability import Reliability
from sureshot.trust.card import Target
from sureshot.trust.table import Order, Probability

_WIDTH = 100

OURS = "P(first is right)"
BEST = "highest similarity"
SOFTMAX = "softmax"


@dataclass(frozen=True, slots=True)
class SetRow:
    """Sets of one promised coverage.

    Coverages count every video once, however many queries it has; sizes are of all queries.

    Attributes:
        coverage: promised.
        covered: share of the queries whose set holds the target.
        mean: videos a set.
        median: likewise.
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
        name: of the signal.
        auroc: how often the query whose video is there has the larger value.
        fpr_95: share of the absent that pass where 95 % of the present do.
        caught: share of the absent that are called so where 10 % of the present are.
    """

    name: str
    auroc: Interval
    fpr_95: float
    caught: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "signal": self.name,
            "auroc": self.auroc.to_dict(),
            "fpr_95": self.fpr_95,
            "caught": self.caught,
        }


@dataclass(frozen=True, slots=True)
class RiskRow:
    """What a certified risk is worth.

    Attributes:
        risk: certified.
        answered: share of the queries that is answered.
        wrong: share of these whose first result is wrong; None where none is answered.
        certified: calibrations that could certify it.
        asked: calibrations in all.
    """

    risk: float
    answered: float
    wrong: Interval | None
    certified: int
    asked: int


@dataclass(frozen=True, slots=True, eq=False)
class TrustReport:
    """How far answers can be believed; see `sureshot.trust.measure.measure`.

    Attributes:
        title: of the data and split.
        queries: how many.
        videos: in the gallery.
        asked: videos that the queries are about.
        right: whether the first result of each query is the annotated video.
        hubness: skewness of the 10-occurrence.
        resamples: of the intervals.
        seed: of all chance.
        correction: what was done to the scores before; empty if nothing.
        nothing: why nothing could be measured; empty if something was.
        refused: why nothing could be calibrated; then there are only orders.
        how: it was calibrated.
        warnings: what speaks against the numbers.
        orders: of the queries by each signal.
        gain: AUROC of ours less that of the highest similarity.
        probabilities: of a right first result.
        results: of each of the first ten results.
        target: of the sets.
        sets: of each coverage that could be promised.
        absent: signals where the video is not there.
        false_abstention: share of queries whose video is there and that would be called absent at
            10 %.
        risks: certified ones.
        reliability: bins of each probability.
        confidences: of each query by signal.
        sizes: of the set of each query by coverage.
    """

    title: str
    queries: int
    videos: int
    asked: int
    right: Bool[np.ndarray, " queries"]
    hubness: float
    resamples: int
    seed: int
    correction: str = ""
    nothing: str = ""
    refused: str = ""
    how: str = ""
    warnings: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    gain: Interval | None = None
    probabilities: tuple[Probability, ...] = ()
    results: tuple[Probability, ...] = ()
    target: Target = "annotated"
    sets: tuple[SetRow, ...] = ()
    absent: tuple[AbsentRow, ...] = ()
    false_abstention: Interval | None = None
    risks: tuple[RiskRow, ...] = ()
    reliability: Mapping[str, Reliability] = field(default_factory=dict)
    confidences: Mapping[str, Float[np.ndarray, " queries"]] = field(default_factory=dict)
    sizes: Mapping[float, Int[np.ndarray, " queries"]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; shares are 0 to 1."""
        return {
            "title": self.title,
            "queries": self.queries,
            "videos": self.videos,
            "queried_videos": self.asked,
            "right": float(self.right.mean()),
            "correction": self.correction,
            "nothing": self.nothing,
            "refused": self.refused,
            "calibration": self.how,
            "warnings": list(self.warnings),
            "orders": [row.to_dict() for row in self.orders],
            "auroc_gain": None if self.gain is None else self.gain.to_dict(),
            "probabilities": [row.to_dict() for row in self.probabilities],
            "results": [row.to_dict() for row in self.results],
            "target": self.target,
            "sets": [asdict(row) for row in self.sets],
            "absent": [row.to_dict() for row in self.absent],
            "false_abstention": (
                None if self.false_abstention is None else self.false_abstention.to_dict()
            ),
            "risks": [asdict(row) for row in self.risks],
            "reliability": [
                {"signal": name, **{key: values.tolist() for key, values in asdict(bins).items()}}
                for name, bins in self.reliability.items()
            ],
            "hubness_skewness_10": self.hubness,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def text(self) -> str:
        """Tables for a terminal of 100 columns; long sentences are broken."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield (
            f"trust: the first result is the annotated video for {_percent(self.right.mean())} of "
            f"{self.queries} queries about {self.asked} videos"
        )
        if self.correction:
            yield f"scores: less the {self.correction}"
        if self.nothing:
            yield from _warning(self.nothing)
            return
        yield from textwrap.wrap(self.how, _WIDTH)
        if self.refused:
            yield from _warning(f"Nothing is calibrated here. {self.refused}")
        for warning in self.warnings:
            yield from _warning(warning)
        yield f"[low, high]: 95 % of {self.resamples} resamples of whole videos, seed {self.seed}"
        yield from self._orders()
        if self.refused:
            return
        yield from self._probabilities()
        yield from self._sets()
        yield from self._absent()
        yield from self._risks()
        yield f"\nhubness: skewness of N_10 {self.hubness:.2f}; 0 without hubs"

    def _orders(self) -> Iterator[str]:
        yield "\nwhich answers are right (AUROC 0.5: chance; risk: wrong among the surest 50, 80 %)"
        heads = ["", "AUROC", "AURC", "E-AURC", "AUGRC", "risk 50", "risk 80", "nAUC"]
        yield from _aligned(
            heads,
            [
                [
                    row.name,
                    _ends(row.auroc),
                    *(f"{x:.3f}" for x in (row.aurc, row.excess_aurc, row.augrc)),
                    *(f"{x:.3f}" for x in (row.risk_50, row.risk_80, row.nauc)),
                ]
                for row in self.orders
            ],
        )
        if self.gain is not None:
            yield f"AUROC of {OURS} less that of {BEST}: {_ends(self.gain, '+.3f')}"

    def _probabilities(self) -> Iterator[str]:
        yield "\nis a probability true (perfect ECE: what a true one would have on so many queries)"
        yield from _probability_table(self.probabilities)
        yield f"\nthe same of each of the first {min(10, self.videos)} results"
        yield from _probability_table(self.results)

    def _sets(self) -> Iterator[str]:
        what = "the annotated video" if self.target == "annotated" else "any relevant video"
        yield f"\nsets made to hold {what} (third: by entropy; answered: the surest 70 %)"
        if not self.sets:
            yield "too few queries to promise any coverage"
            return
        heads = ["promised", "held", "mean size", "median", "empty", "worst third", "answered"]
        yield from _aligned(
            heads,
            [
                [
                    _percent(row.coverage),
                    _percents(row.covered),
                    f"{row.mean:.1f}",
                    f"{row.median:.0f}",
                    *(_percent(x) for x in (row.empty, row.worst_third, row.answered)),
                ]
                for row in self.sets
            ],
        )

    def _absent(self) -> Iterator[str]:
        yield "\nqueries beside themselves without their own video, all near ones still there"
        yield from _aligned(
            ["", "AUROC", "FPR95", "caught at 10 %"],
            [
                [row.name, _ends(row.auroc), f"{row.fpr_95:.3f}", _percent(row.caught)]
                for row in self.absent
            ],
        )
        if self.false_abstention is not None:
            yield (
                f"called absent at a nominal 10 % though it is there: "
                f"{_percents(self.false_abstention)}"
            )

    def _risks(self) -> Iterator[str]:
        yield "\nanswers given under a certified risk, and how many of them are wrong"
        yield from _aligned(
            ["risk at most", "answered", "wrong", "certified by"],
            [
                [
                    _percent(row.risk),
                    _percent(row.answered),
                    "none given" if row.wrong is None else _percents(row.wrong),
                    f"{row.certified} of {row.asked}",
                ]
                for row in self.risks
            ],
        )


def _probability_table(rows: Sequence[Probability]) -> list[str]:
    return _aligned(
        ["", "Brier", "of base rate", "NLL", "ECE", "perfect ECE"],
        [
            [
                row.name,
                _ends(row.brier),
                *(f"{x:.3f}" for x in (row.base, row.nll, row.ece, row.floor)),
            ]
            for row in rows
        ],
    )


def _aligned(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Lines with columns of equal width, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    ]


def _warning(text: str) -> list[str]:
    """Whole sentences, broken where they do not fit."""
    return textwrap.wrap(f"! {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _ends(found: Interval, form: str = ".3f") -> str:
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _percents(found: Interval) -> str:
    return f"{_percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"

"""What was measured of trust: numbers for programs, and tables for a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from sureshot.metrics.bootstrap import Interval, resampling_note
from sureshot.metrics.reliability import Reliability
from sureshot.settings import to_values
from sureshot.text import aligned, counted
from sureshot.trust.assessment import ABSTAIN
from sureshot.trust.signals import RESULTS
from sureshot.trust.table import AbsentRow, Order, PlaceRow, Probability, SetRow

_WIDTH = 100

OURS = "P(first is right)"
BEST = "highest similarity"
SOFTMAX = "softmax"
INSIDE = "p-value of its being there"


@dataclass(frozen=True, slots=True, eq=False)
class TrustReport:
    """How far answers can be believed; see `sureshot.trust.measure.measure`.

    Attributes:
        title: title of the data and split.
        queries: number of queries.
        videos: number of videos in the gallery.
        asked: number of videos that the queries are about.
        right: whether the first result of each query is the annotated video.
        hubness: skewness of the 10-occurrence.
        resamples: number of times that whole videos were drawn for the intervals.
        seed: seed of all chance.
        correction: what was done to the scores before; empty if nothing.
        nothing: why nothing could be measured; empty if something was.
        refused: why nothing could be calibrated; then there are only orders.
        how: how it was calibrated.
        warnings: what speaks against the numbers.
        orders: how each signal orders the queries by whether they are answered right.
        gain: AUROC of ours less that of the highest similarity.
        probabilities: how true each probability of a right first result is.
        results: how true each probability of one of the first ten results is.
        places: what is said of each of the first places, and how often it is right.
        sets: how the sets of each coverage did that could be promised.
        absent: how each signal tells queries whose video is there from those whose video is not.
        false_abstention: share of queries whose video is there and that would be called absent at
            10 %.
        reliability: bins of each probability, by its name.
        confidences: confidence of each query, by the name of the signal.
        sizes: number of videos in the set of each query, by coverage.
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
    places: tuple[PlaceRow, ...] = ()
    sets: tuple[SetRow, ...] = ()
    absent: tuple[AbsentRow, ...] = ()
    false_abstention: Interval | None = None
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
            "orders": to_values(self.orders),
            "auroc_gain": to_values(self.gain),
            "probabilities": to_values(self.probabilities),
            "results": to_values(self.results),
            "places": to_values(self.places),
            "sets": to_values(self.sets),
            "absent": to_values(self.absent),
            "false_abstention": to_values(self.false_abstention),
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
            f"Trust: the first result is the annotated video for {_percent(self.right.mean())} of "
            f"{counted(self.queries, 'query', 'queries')} about {counted(self.asked, 'video')}."
        )
        if self.correction:
            yield f"Scores are less the {self.correction}."
        if self.nothing:
            yield from _warning(self.nothing)
            return
        yield from _wrapped(self.how)
        if self.refused:
            yield from _warning(f"Nothing could be calibrated. {self.refused}")
        for warning in self.warnings:
            yield from _warning(warning)
        yield resampling_note(self.resamples, self.seed)
        yield from self._orders()
        if self.refused:
            return
        yield from self._probabilities()
        yield from self._sets()
        yield from self._absent()
        yield f"\nHubness: skewness of N_10 is {self.hubness:.2f}; 0 means no hubs."

    def _orders(self) -> Iterator[str]:
        yield "\nWhich signal tells right first results from wrong ones?"
        yield "AUROC 0.5 is chance; risk 50, risk 80: how many of the surest 50 or 80 % are wrong."
        yield from aligned(
            [
                ["", "AUROC", "AURC", "E-AURC", "AUGRC", "risk 50", "risk 80", "nAUC"],
                *(
                    [
                        row.signal,
                        _value(row.auroc),
                        *(f"{x:.3f}" for x in (row.aurc, row.excess_aurc, row.augrc)),
                        *(f"{x:.3f}" for x in (row.risk_50, row.risk_80, row.nauc)),
                    ]
                    for row in self.orders
                ),
            ]
        )
        if self.gain is not None:
            yield f"AUROC of {OURS} minus that of {BEST}: {_value(self.gain, '+.3f')}"

    def _probabilities(self) -> Iterator[str]:
        yield "\nDo the probabilities come true, for the first result?"
        yield "Best ECE: what a perfect probability would have with so few queries."
        yield from _probability_table(self.probabilities)
        yield f"\nAnd for each of the first {min(RESULTS, self.videos)} results?"
        yield from _probability_table(self.results)
        yield "\nWhat is said of each place, and how often it is right:"
        yield from aligned(
            [
                ["place", "said", "right"],
                *([f"{row.place}", _percent(row.said), _percent(row.right)] for row in self.places),
            ]
        )

    def _sets(self) -> Iterator[str]:
        yield "\nHow often do the sets hold the annotated video?"
        if not self.sets:
            yield "There are too few queries to promise any coverage."
            return
        yield from _wrapped(
            "Worst third: the third of the queries, by entropy, where they do so least often. "
            "Surest 70 %: by the probability of a right first result."
        )
        yield from aligned(
            [
                ["promised", "held", "mean size", "median", "empty", "worst third", "surest 70 %"],
                *(
                    [
                        _percent(row.coverage),
                        _percents(row.covered),
                        f"{row.mean:.1f}",
                        f"{row.median:.0f}",
                        *(_percent(x) for x in (row.empty, row.worst_third, row.answered)),
                    ]
                    for row in self.sets
                ),
            ]
        )

    def _absent(self) -> Iterator[str]:
        yield "\nDoes it show when the video is not there?"
        yield "Each query is asked with its video and without it; videos like it stay."
        yield from aligned(
            [
                ["", "AUROC", "FPR95", "caught at 10 %"],
                *(
                    [row.signal, _value(row.auroc), f"{row.fpr_95:.3f}", _percent(row.caught)]
                    for row in self.absent
                ),
            ]
        )
        if self.false_abstention is not None:
            yield (
                f"Called absent though the video is there: {_percents(self.false_abstention)} of "
                f"the queries; {100 * ABSTAIN:.0f} % are allowed."
            )


def _probability_table(rows: Sequence[Probability]) -> list[str]:
    return aligned(
        [
            ["", "Brier", "of base rate", "NLL", "ECE", "best ECE"],
            *(
                [
                    row.signal,
                    _value(row.brier),
                    f"{row.brier_of_base_rate:.3f}",
                    *(f"{x:.3f}" for x in (row.nll, row.ece, row.ece_floor)),
                ]
                for row in rows
            ),
        ]
    )


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Whole sentences, broken where they do not fit."""
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _warning(text: str) -> list[str]:
    return _wrapped(f"! {text}", "  ")


def _value(found: Interval, form: str = ".3f") -> str:
    return f"{found.value:{form}} {found.ends(form)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _percents(found: Interval) -> str:
    percent = Interval(100 * found.value, 100 * found.low, 100 * found.high)
    return f"{percent.value:.1f} % {percent.ends()}"

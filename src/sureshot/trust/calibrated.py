"""A calibration card with what it was made of, and the sets it promises on its own queries."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.errors import ArgumentError, option
from sureshot.settings import to_values
from sureshot.text import counted, percent, plain, printable
from sureshot.trust.card import Calibration, Own, save_card
from sureshot.trust.conformal import COVERAGES
from sureshot.trust.own import ALL, SETS, SLOPE
from sureshot.trust.signals import UNKNOWN, About


@dataclass(frozen=True, slots=True)
class Sets:
    """The conformal sets of one coverage, on the queries of the calibration.

    Attributes:
        coverage: share of queries whose set holds a right video, of those that have one.
        videos: mean number of videos in a set; None where there are too few labels to promise the
            coverage.
    """

    coverage: float
    videos: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Calibrated:
    """A card and what it was made of.

    Attributes:
        card: calibration card, which may say that it is refused.
        gallery: number of videos that were searched.
        sets: mean size of the sets at each coverage.
        absent: number of queries that were judged to have no right video here.
        not_found: number of queries of which nobody found a right video.
        left_out: number of queries about videos that are not in the index.
        labels: name of the file of judgements, if there was one.
        file: where the card lies; None where it was refused or not to be saved.
    """

    card: Calibration
    gallery: int
    sets: tuple[Sets, ...]
    absent: int = 0
    not_found: int = 0
    left_out: int = 0
    labels: str = ""
    file: Path | None = None

    def saved(self, file: Path) -> "Calibrated":
        """The same with its card in a file. A refused card is not written: what lay there stays.

        Raises:
            SureshotError: the file cannot be written.
        """
        if self.card.refused:
            return self
        save_card(self.card, file)
        return replace(self, file=file)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        card = self.card
        return {
            "card": None if self.file is None else printable(self.file),
            "refused": card.refused,
            "valid_for": to_values(card.valid_for),
            "gallery": self.gallery,
            "absent": self.absent,
            "not_found": self.not_found,
            "left_out": self.left_out,
            "quality": None if card.quality is None else to_values(card.quality),
            "own": None if card.own is None else to_values(card.own),
            "sets": [to_values(row) for row in self.sets],
        }

    def __repr__(self) -> str:
        """What the labels gave, in a few sentences."""
        if self.card.own is not None:
            return "\n".join([*self._moved(self.card.own), *self._place()])
        valid, refused = self.card.valid_for, self.card.refused
        queries = counted(valid.queries, "query", "queries")
        lines = [
            f"Learned from {queries} about {counted(valid.videos, 'video')} "
            f"({plain(valid.dataset)}){self._beside()}; {counted(self.gallery, 'video')} searched.",
            *self._measured(),
        ]
        if refused:
            stays = "A card from before, if there is one, stays."
            return "\n".join([*lines, f"No percentages and no card: {plain(refused)} {stays}"])
        lines += [
            "How many videos to look through, for the right one to be among them:",
            *(_set_line(row) for row in self.sets),
            f"All this holds for this model, libraries of {valid.smallest} to {valid.largest} "
            f"moments and queries like these. Noted as of {plain(valid.date)}.",
        ]
        return "\n".join([*lines, *self._place()])

    def _moved(self, own: Own) -> list[str]:
        """What judgements changed, and what more of them would."""
        queries = counted(own.queries, "judged query", "judged queries")
        more = {
            "level": f"From {SLOPE} judgements their spread is learned as well, from {ALL} every "
            "weight behind them.",
            "slope": f"From {ALL} judgements every weight behind them is learned.",
            "all": "Every weight behind them was learned anew.",
        }
        sets = "" if own.sets else f" From {SETS} right hits the lengths to look through are yours."
        return [
            f"Learned from {queries} ({plain(self.labels)}){self._beside()}.",
            f"The first hit was right for {percent(own.right)}. Percentages had said "
            f"{percent(own.said)} on average and now say {percent(own.says)}.",
            f"{more[own.free]}{sets}",
        ]

    def _place(self) -> list[str]:
        return [] if self.file is None else [f"Card: {plain(self.file)}"]

    def _beside(self) -> str:
        parts = [
            (self.absent, "with nothing right here"),
            # What is learned from judgements counts these: their first hits are wrong.
            (self.not_found if self.card.own is None else 0, "of which nothing right was found"),
            (self.left_out, "left out because their videos are not in the index"),
        ]
        return "".join(f", {count} more {what}" for count, what in parts if count)

    def _measured(self) -> list[str]:
        quality = self.card.quality
        if quality is None:
            return []
        first, hits = quality.top1, quality.result
        lines = [
            f"Measured on {first.cases} of these queries, which nothing was fitted to:",
            f"  The first hit is right for {100 * first.share:.0f} % of them.",
            f"  Right and wrong first hits are told apart with AUROC {first.auroc:.2f} "
            f"({first.auroc_low:.2f} to {first.auroc_high:.2f}); 0.5 is chance, 1 perfect.",
            f"  The percentages are off by {100 * first.ece:.0f} points; perfect ones would be off "
            f"by {100 * first.ece_floor:.0f} with so few queries.",
            f"  Brier score {first.brier:.3f}; always saying {100 * first.share:.0f} % has "
            f"{first.brier_base:.3f}. Of all hits {hits.brier:.3f}; always saying "
            f"{100 * hits.share:.0f} % has {hits.brier_base:.3f}.",
        ]
        if quality.absent_auroc is not None:
            lines += [
                "  Queries with nothing right here are told from the others with AUROC "
                f"{quality.absent_auroc:.2f}."
            ]
        return lines


def date_or_today(text: str) -> str:
    """A date as ``2026-11-30``; where none is given, today's in UTC.

    Raises:
        ArgumentError: it is no date.
    """
    try:
        return (
            date.fromisoformat(text).isoformat() if text else datetime.now(UTC).date().isoformat()
        )
    except ValueError:
        raise ArgumentError(f"{option('date', text)} is no date; write it as 2026-11-30.") from None


def sets_of(
    card: Calibration, scores: Float[np.ndarray, "queries videos"], about: About = UNKNOWN
) -> tuple[Sets, ...]:
    """How large the conformal sets of a card are on average, for each of `COVERAGES`.

    Args:
        card: calibration card that gives the sets.
        scores: scores of the queries that the sets are counted on.
        about: what else is known of them.
    """
    rows = []
    for coverage in COVERAGES:
        members = card.members(scores, coverage, about)
        rows.append(Sets(coverage, None if members is None else float(members.sum(1).mean())))
    return tuple(rows)


def _set_line(row: Sets) -> str:
    head = f"  for {100 * row.coverage:.0f} % of queries:"
    if row.videos is None:
        return f"{head} there are too few labels to promise that"
    return f"{head} {row.videos:.1f} on average"

"""A calibration card with what it was made of, and the sets it promises on its own queries."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.errors import ArgumentError, option
from sureshot.settings import to_values
from sureshot.text import counted, plain, printable
from sureshot.trust.card import Calibration, save_card
from sureshot.trust.conformal import COVERAGES

_RISKS = (0.1, 0.2, 0.3)  # of the certified ones those that are told


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
        file: where the card lies; None where it was refused or not to be saved.
    """

    card: Calibration
    gallery: int
    sets: tuple[Sets, ...]
    absent: int = 0
    not_found: int = 0
    left_out: int = 0
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
            "sets": [to_values(row) for row in self.sets],
            "certified": [to_values(row) for row in card.certificates],
        }

    def __repr__(self) -> str:
        """What the labels gave, in a few lines."""
        valid, refused = self.card.valid_for, self.card.refused
        queries = counted(valid.queries, "query", "queries")
        about = f"{queries} about {counted(valid.videos, 'video')} of {plain(valid.dataset)}"
        searched = f"{counted(self.gallery, 'video')} searched"
        lines = [f"{about}; {searched}{self._beside()}.", *self._measured()]
        if refused:
            stays = "A card from before, if there is one, stays."
            return "\n".join([*lines, f"No percentages and no card: {plain(refused)} {stays}"])
        lines += [
            "plausible videos, the right one among them:",
            *map(_set_line, self.sets),
            "certified, with 95 % confidence:",
            *self._certified(),
            f"Valid for this model, libraries of {valid.smallest} to {valid.largest} videos and "
            f"queries like these; noted as of {plain(valid.date)}.",
        ]
        return "\n".join(lines if self.file is None else [*lines, f"Card: {plain(self.file)}"])

    def _beside(self) -> str:
        parts = [
            (self.absent, "with nothing right here"),
            (self.not_found, "of which nothing right was found"),
            (self.left_out, "left out, their videos are not in the index"),
        ]
        return "".join(f"; {count} more {what}" for count, what in parts if count)

    def _measured(self) -> list[str]:
        quality = self.card.quality
        if quality is None:
            return []
        first, hits = quality.top1, quality.result
        lines = [
            f"measured on {first.cases} queries that nothing was fitted to:",
            f"  right first hits    {100 * first.share:.0f} %",
            f"  telling them apart  AUROC {first.auroc:.2f} ({first.auroc_low:.2f} to "
            f"{first.auroc_high:.2f}); 0.5 is chance, 1 perfect",
            f"  error of P(first)   Brier {first.brier:.3f}; always saying "
            f"{100 * first.share:.0f} % has {first.brier_base:.3f}",
            f"  said and true       {100 * first.ece:.0f} points apart; "
            f"{100 * first.ece_floor:.0f} with so few queries even if perfect",
            f"  error of P(hit)     Brier {hits.brier:.3f}; always the same has "
            f"{hits.brier_base:.3f}",
        ]
        if quality.absent_auroc is not None:
            lines += [f"  telling absent ones AUROC {quality.absent_auroc:.2f}"]
        return lines

    def _certified(self) -> list[str]:
        rows = [row for row in self.card.certificates if row.risk in _RISKS]
        return [
            f"  at most {100 * row.risk:.0f} % wrong    answers from {100 * row.threshold:.0f} % "
            f"up, {100 * row.coverage:.0f} % of the queries"
            for row in rows
        ] or ["  nothing: too few labels, or too many wrong answers among the surest"]


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


def sets_of(card: Calibration, scores: Float[np.ndarray, "queries videos"]) -> tuple[Sets, ...]:
    """How large the conformal sets of a card are on average, for each of `COVERAGES`.

    Args:
        card: calibration card that gives the sets.
        scores: scores of the queries that the sets are counted on.
    """
    rows = []
    for coverage in COVERAGES:
        members = card.members(scores, coverage)
        rows.append(Sets(coverage, None if members is None else float(members.sum(1).mean())))
    return tuple(rows)


def _set_line(row: Sets) -> str:
    head = f"  for {100 * row.coverage:.0f} % of queries  "
    if row.videos is None:
        return f"{head}too few labels to promise that"
    return f"{head}{row.videos:.1f} videos on average"

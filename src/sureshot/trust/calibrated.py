"""A calibration card with what it was made of, and the sets it promises on its own queries."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.settings import to_values
from sureshot.trust.card import Calibration
from sureshot.trust.conformal import COVERAGES


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


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A card and what it was made of.

    Attributes:
        card: calibration card, which may say that it is refused.
        gallery: number of videos that were searched.
        sets: mean size of the sets at each coverage.
        absent: number of queries that were judged to have no right video here.
        not_found: number of queries of which nobody found a right video.
        left_out: number of queries about videos that are not in the index.
    """

    card: Calibration
    gallery: int
    sets: tuple[Sets, ...]
    absent: int = 0
    not_found: int = 0
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        card = self.card
        return {
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


def today() -> str:
    """The date in UTC, as ``2026-11-30``."""
    return datetime.now(UTC).date().isoformat()


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

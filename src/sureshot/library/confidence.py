"""How sure the answer to one query is, by a card made on labelled queries.

A card lies beside an index or beside a model, as ``trust.json``; that of the index is asked first,
since it was made on the library itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from sureshot.errors import SureshotError
from sureshot.library.answer import Confidence, Hit, Status
from sureshot.library.videos import VideoScores
from sureshot.models.bank import Bank, home_of
from sureshot.trust.assessment import assess
from sureshot.trust.card import FILE, Calibration
from sureshot.trust.shift import shift_p_value

_QUERIES = 20  # fewer are not compared with the labelled ones
_SHIFTED = 0.01  # p-value from which they are said to differ
_STATUS: dict[str, Status] = {
    "confident": "confident",
    "several": "several plausible",
    "absent": "probably not here",
    "uncalibrated": "not calibrated",
}


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What a user asks of percentages.

    Attributes:
        coverage: share of queries whose set of plausible videos is to hold a right one, above 0 and
            below 1.
        risk: call an answer confident only if at most this share of such answers is wrong, with
            95 % confidence; None asks for a probability of 80 %.
    """

    coverage: float = 0.9
    risk: float | None = None


def find_card(
    index: str, model: str, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, bool, tuple[str, ...]]:
    """The calibration card for an index and its model.

    Args:
        index: location of the index; only a folder can hold a card.
        model: name of what searches it.
        fingerprint: digest that identifies that model.
        bank: its hub correction.

    Returns:
        The card, if there is one; whether it was made on the library itself; and what is wrong with
        cards that cannot be used.
    """
    warnings: list[str] = []
    known_as = None if bank is None else bank.digest
    for yours, path in ((True, Path(index) / FILE), (False, home_of(model) / FILE)):
        if not path.is_file():
            continue
        try:
            card = Calibration.from_json(path.read_text("utf-8"))
        except (SureshotError, OSError, UnicodeDecodeError) as error:
            warnings.append(f"{path} cannot be used: {error}")
            continue
        odd = card.mismatches(fingerprint, known_as)
        if not odd:
            return card, yours, tuple(warnings)
        warnings += odd
    return None, False, tuple(warnings)


def judged(
    card: Calibration,
    best: VideoScores,
    hits: Sequence[Hit],
    point: OperatingPoint,
    *,
    yours: bool = False,
) -> tuple[Status, Confidence | None, tuple[Hit, ...], tuple[str, ...]]:
    """What a card says of an answer.

    Videos that show the same pictures as a better hit are no rivals of it and are left out. Where
    the index has more videos than were scored, the rest counts as if each fitted as well as the
    worst of those that were. That is rather too much, but that a hub correction may lift one of
    them: where many videos are plausible it is said that there may be more.

    Args:
        card: calibration card that fits the model.
        best: scores of the best videos, best first.
        hits: hits of the answer.
        point: what the user asks for.
        yours: whether the card was made on the library itself.

    Returns:
        Status, the numbers behind it, the hits with theirs, and warnings.
    """
    scores = _rivals(best, hits)
    result = assess(
        card,
        scores,
        best.elsewhere,
        coverage=point.coverage,
        risk=point.risk,
        results=min(len(scores), 100),
    )
    status = _STATUS[result.status]
    if result.p_top1 is None or result.p_inside is None or result.p_relevant is None:
        return status, None, tuple(hits), result.warnings
    column = {path: place for place, path in enumerate(best.paths)}
    relevant = dict(zip(result.order.tolist(), result.p_relevant.tolist(), strict=True))
    members = None if result.members is None else set(result.members.tolist())
    judged_hits = tuple(
        replace(
            hit,
            relevant=relevant.get(column.get(hit.path, -1)),
            plausible=None if members is None else column.get(hit.path) in members,
        )
        for hit in hits
    )
    unseen = best.videos - len(best.paths)
    warnings = result.warnings
    if unseen > 0 and members is not None and len(members) > len(best.paths) // 4:
        warnings += (
            f"Only the nearest {len(best.paths)} of {best.videos} videos were looked at, so more "
            f"than {len(members)} may be plausible.",
        )
    confidence = Confidence(
        right=result.p_top1,
        present=result.p_inside,
        coverage=point.coverage,
        plausible=None if members is None else len(members),
        risk=point.risk,
        certified=None if point.risk is None else result.status == "confident",
        valid_for=describe_card(card),
        yours=yours,
    )
    return status, confidence, judged_hits, warnings


def drift(card: Calibration, confidences: Sequence[Confidence]) -> tuple[str, ...]:
    """A warning where queries score unlike those of a card: other queries, or absent videos.

    Nothing is said of fewer than 20 queries.
    """
    if len(confidences) < _QUERIES:
        return ()
    present = np.array([confidence.present for confidence in confidences])
    if shift_p_value(present, card.valid_for.certified) >= _SHIFTED:
        return ()
    return (
        f"These {len(confidences)} queries score unlike those the percentages were learned from: "
        "they are of another kind, or many of their videos are not there. Judge some of them and "
        "calibrate again (docs/trust.md).",
    )


def describe_card(card: Calibration) -> str:
    """What the labels of a card were of, and which libraries it holds for."""
    valid = card.valid_for
    return (
        f"{valid.queries} queries about {valid.videos} videos ({valid.dataset}, {valid.date}), in "
        f"libraries of {valid.smallest} to {valid.largest} videos"
    )


def _rivals(best: VideoScores, hits: Sequence[Hit]) -> Float[np.ndarray, " videos"]:
    """Scores of all videos of the index, those that copy a hit ruled out."""
    copies = {path for hit in hits for path in hit.copies}
    scores = np.array(
        [
            -np.inf if path in copies else score
            for path, score in zip(best.paths, best.scores.tolist(), strict=True)
        ]
    )
    unseen = best.videos - len(best.paths)
    return np.concatenate([scores, np.full(unseen, best.scores.min())]) if unseen > 0 else scores

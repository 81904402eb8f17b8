"""What can be said about the results of one query."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64, Int

from sureshot.trust.card import Calibration, Target

Status = Literal["confident", "several", "absent", "uncalibrated"]

ABSTAIN = 0.1  # share of the queries whose video is there that may be called absent
CONFIDENT = 0.8  # probability from which a first result is called confident


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What can be said about the results of one query.

    Attributes:
        status: ``confident``: the first result is very likely relevant; ``several``: there are
            plausible ones and no sure one; ``absent``: probably no relevant video is there;
            ``uncalibrated``: there are scores and nothing to say about them.
        p_top1: probability that the first result is relevant; None if uncalibrated.
        p_inside: p-value of "a relevant video is there"; None if uncalibrated.
        members: columns of the conformal set, best first; None where it cannot be promised.
        coverage: of the set.
        target: of the set.
        order: columns of the listed results, best first.
        p_relevant: probability that each of them is relevant; None if uncalibrated.
        warnings: what to keep in mind, whole sentences.
    """

    status: Status
    p_top1: float | None
    p_inside: float | None
    members: Int[np.ndarray, " members"] | None
    coverage: float
    target: Target
    order: Int[np.ndarray, " results"]
    p_relevant: Float64[np.ndarray, " results"] | None
    warnings: tuple[str, ...]


def assess(
    calibration: Calibration | None,
    scores: Float[np.ndarray, " videos"],
    elsewhere: float | None = None,
    *,
    coverage: float = 0.9,
    target: Target = "any",
    risk: float | None = None,
    abstain: float = ABSTAIN,
    results: int = 10,
) -> Assessment:
    """Judge the scores of one query.

    Args:
        calibration: a card that fits the model, see `Calibration.mismatches`; None is no card.
        scores: of all videos of the gallery, that order the results; ``-inf`` rules one out.
        elsewhere: what the query scores with videos from elsewhere; None for a model without any.
        coverage: of the set.
        target: of the set: ``any`` relevant video, or the ``annotated`` one.
        risk: call only such results confident that the share of wrong ones among them is
            certified to be at most this; None asks for a probability of at least 0.8.
        abstain: share of the queries whose video is there that may be called absent.
        results: how many are listed.

    Raises:
        SureshotError: scores that are no scores, or settings out of range.
    """
    if calibration is None or calibration.refused:
        why = "Nothing has been calibrated" if calibration is None else calibration.refused
        order = np.argsort(-scores, kind="stable")[:results]
        return Assessment(
            "uncalibrated", None, None, None, coverage, target, order, None, (_sentence(why),)
        )
    row = scores[None]
    order, relevant = calibration.p_relevant(row, results=results)
    p_top1 = float(calibration.p_top1(row)[0])
    apart = None if elsewhere is None else np.array([elsewhere])
    p_inside = float(calibration.p_inside(row, apart)[0])
    threshold, warnings = _threshold(calibration, risk)
    warnings += _outgrown(calibration, int((scores > -np.inf).sum()))
    chosen = calibration.members(scores, coverage, target)
    if chosen is None:
        members = None
        warnings.append(
            f"{calibration.reference(target).videos} labelled videos are too few to promise a set "
            f"with a coverage of {coverage}."
        )
    else:
        inside = np.flatnonzero(chosen)
        members = inside[np.argsort(-scores[inside], kind="stable")]
    status: Status = "confident" if p_top1 >= threshold else "several"
    if p_inside < abstain:
        status = "absent"
    return Assessment(
        status,
        p_top1,
        p_inside,
        members,
        coverage,
        target,
        order[0],
        relevant[0],
        tuple(warnings),
    )


def _threshold(calibration: Calibration, risk: float | None) -> tuple[float, list[str]]:
    if risk is None:
        return CONFIDENT, []
    found = calibration.certificate(risk)
    if found is None:
        return np.inf, [
            f"A risk of {risk} cannot be certified with this calibration, so no result is called "
            "confident."
        ]
    return found.threshold, []


def _outgrown(calibration: Calibration, videos: int) -> list[str]:
    low, high = calibration.valid_for.smallest, calibration.valid_for.largest
    if low <= videos <= high:
        return []
    if videos < low:
        return [
            f"The gallery has {videos} videos and was calibrated with {low} at least; the "
            f"percentages are those of {low}, rather too low than too high."
        ]
    return [
        f"The gallery has {videos} videos and was calibrated with {low} to {high}; probabilities "
        "are extrapolated. Calibrate again with `sureshot calibrate`."
    ]


def _sentence(text: str) -> str:
    return text if text.endswith(".") else text + "."

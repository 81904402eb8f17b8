"""What can be said about the results of one query."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64, Int

from sureshot.text import counted
from sureshot.trust.card import Calibration
from sureshot.trust.signals import RESULTS

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
        order: columns of the listed results, best first.
        warnings: what to keep in mind, whole sentences.
        p_top1: probability that the first result is relevant; None if uncalibrated.
        p_inside: p-value of "a relevant video is there"; None if uncalibrated.
        p_relevant: probability that each listed result is relevant; None if uncalibrated.
        members: columns of the conformal set, best first; None where it cannot be promised.
    """

    status: Status
    order: Int[np.ndarray, " results"]
    warnings: tuple[str, ...]
    p_top1: float | None = None
    p_inside: float | None = None
    p_relevant: Float64[np.ndarray, " results"] | None = None
    members: Int[np.ndarray, " members"] | None = None


def assess(
    calibration: Calibration | None,
    scores: Float[np.ndarray, " videos"],
    elsewhere: float | None = None,
    *,
    coverage: float = 0.9,
    risk: float | None = None,
    abstain: float = ABSTAIN,
    results: int = RESULTS,
) -> Assessment:
    """Judge the scores of one query.

    Args:
        calibration: a card that fits the model, see `Calibration.mismatches`; None is no card.
        scores: scores of all videos of the gallery, that order the results; ``-inf`` rules one
            out.
        elsewhere: what the query scores with videos from elsewhere; None for a model without any.
        coverage: share of queries whose set is to hold a relevant video, of those that have one.
        risk: call only such results confident that the share of wrong ones among them is
            certified to be at most this; None asks for a probability of at least 0.8.
        abstain: share of the queries whose video is there that may be called absent.
        results: number of results that are listed.

    Raises:
        SureshotError: scores that are no scores, or settings out of range.
    """
    if calibration is None or calibration.refused:
        why = "Nothing has been calibrated." if calibration is None else calibration.refused
        order = np.argsort(-scores, kind="stable")[:results]
        return Assessment(status="uncalibrated", order=order, warnings=(why.rstrip(".") + ".",))
    row = scores[None]
    order, relevant = calibration.p_relevant(row, results=results)
    p_top1 = float(calibration.p_top1(row)[0])
    known = None if elsewhere is None else np.array([elsewhere])
    p_inside = float(calibration.p_inside(row, known)[0])
    threshold, warnings = _threshold(calibration, risk)
    warnings += _outgrown(calibration, int((scores > -np.inf).sum()))
    members = None
    chosen = calibration.members(scores, coverage)
    if chosen is None:
        warnings.append(
            f"{calibration.any.videos} labelled videos are too few to promise a set with a "
            f"coverage of {coverage}."
        )
    else:
        inside = np.flatnonzero(chosen)
        members = inside[np.argsort(-scores[inside], kind="stable")]
    status: Status = "confident" if p_top1 >= threshold else "several"
    return Assessment(
        status="absent" if p_inside < abstain else status,
        order=order[0],
        warnings=tuple(warnings),
        p_top1=p_top1,
        p_inside=p_inside,
        p_relevant=relevant[0],
        members=members,
    )


def _threshold(calibration: Calibration, risk: float | None) -> tuple[float, list[str]]:
    if risk is None:
        return CONFIDENT, []
    certificate = calibration.certificate(risk)
    if certificate is None:
        return np.inf, [
            f"A risk of {risk} cannot be certified with this calibration, so no result is called "
            "confident."
        ]
    return certificate.threshold, []


def _outgrown(calibration: Calibration, videos: int) -> list[str]:
    low, high = calibration.valid_for.smallest, calibration.valid_for.largest
    if low <= videos <= high:
        return []
    if videos < low:
        return [
            f"Only {counted(videos, 'video')} here; percentages were learned on libraries of "
            f"{low} and more, and may be too low."
        ]
    return [
        f"{counted(videos, 'video')} here; percentages were learned on libraries of at most "
        f"{high}. Learn them again with `sureshot calibrate`."
    ]

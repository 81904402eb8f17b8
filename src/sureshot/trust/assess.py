"""What can be said about the results of one query."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64

from sureshot.text import counted
from sureshot.trust.card import Calibration
from sureshot.trust.signals import UNKNOWN, QueryContext

Status = Literal["confident", "several", "absent", "uncalibrated"]

ABSTAIN = 0.1  # share of the queries whose video is there that may look like absent ones
CONFIDENT = 0.8  # probability from which a first result is called confident


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What can be said about the results of one query.

    Attributes:
        status: ``confident``: the first result is very likely relevant; ``several``: there are
            plausible ones and no sure one; ``absent``: probably no relevant one is there;
            ``uncalibrated``: there are scores and nothing to say about them.
        warnings: what to keep in mind, whole sentences.
        p_relevant: probability that each result is relevant if a relevant one is there, never
            rising; None if uncalibrated.
        p_inside: p-value of "a relevant one is there"; None if uncalibrated.
        plausible: how many of the first results make up the set; None where it cannot be promised.
    """

    status: Status
    warnings: tuple[str, ...]
    p_relevant: Float64[np.ndarray, " results"] | None = None
    p_inside: float | None = None
    plausible: int | None = None


def assess(
    calibration: Calibration | None,
    scores: Float[np.ndarray, "queries results"],
    about: QueryContext = UNKNOWN,
    *,
    coverage: float = 0.9,
) -> list[Assessment]:
    """Judge the results of several queries to one gallery.

    What is said never contradicts itself. Where the first result is sure the set is that one alone;
    otherwise the percentages of a set add up to its coverage. An absent query gets no percentages,
    since those hold if a relevant result is there.

    Args:
        calibration: a card that fits the model, see `Calibration.mismatches`; None is no card.
        scores: finite scores of the best results of each query, descending; ``-inf`` after the last
            of at least one.
        about: what else is known of the queries, and the size of the gallery.
        coverage: share of queries whose set is to hold a relevant result, of those that have one.
    """
    if calibration is None or calibration.refused:
        why = "Nothing has been calibrated." if calibration is None else calibration.refused
        none = Assessment(status="uncalibrated", warnings=(why.rstrip(".") + ".",))
        return [none] * len(scores)
    rows = scores.astype(np.float64)
    every = calibration.p_relevant(rows, about, results=None)[1]
    inside = calibration.p_inside(rows, about).tolist()
    reach = calibration.reach(rows, coverage, about)
    counts = (rows > -np.inf).sum(1).tolist()
    found = []
    for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
        relevant = every[number, :count]
        warnings = _outgrown(calibration, about.videos or count)
        plausible = None
        if reach is None:
            warnings += (
                "Too few labelled videos to say how many to look through for a coverage of "
                f"{coverage}.",
            )
        else:
            near = int((row >= row[0] - reach[number]).sum())
            plausible = _agreeing(near, relevant, coverage)
        status: Status = "confident" if relevant[0] >= CONFIDENT else "several"
        found.append(
            Assessment(
                status="absent" if inside[number] < ABSTAIN else status,
                warnings=warnings,
                p_relevant=relevant,
                p_inside=inside[number],
                plausible=plausible,
            )
        )
    return found


def _agreeing(near: int, relevant: Float64[np.ndarray, " results"], coverage: float) -> int:
    """The size of a set that agrees with the percentages of its results."""
    if relevant[0] >= coverage:
        return 1
    needed = int(np.searchsorted(np.cumsum(relevant), coverage)) + 1
    return max(near, min(needed, len(relevant)))


def _outgrown(calibration: Calibration, videos: int) -> tuple[str, ...]:
    low, high = calibration.valid_for.smallest, calibration.valid_for.largest
    if videos < low:
        return (
            f"Only {counted(videos, 'moment')} indexed. Percentages were calibrated on {low} or "
            "more, so these may be too low.",
        )
    if videos > high:
        return (
            f"{counted(videos, 'moment')} indexed. Percentages were calibrated on at most {high}, "
            "so these may be too high. Ten judgements fix that (`sureshot judge`).",
        )
    return ()

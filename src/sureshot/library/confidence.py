"""How sure the answer to one query is, by a card made on labelled queries.

A card is stored with an index or with a model, as ``trust.json``; that of the index is asked first,
since it was made on the library itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float64

from sureshot.errors import SureshotError, option
from sureshot.files import CARD
from sureshot.library.ranking import Moment
from sureshot.library.results import Confidence, Hit, Status
from sureshot.models.hub_bank import Bank, home_of
from sureshot.paths import index_folder
from sureshot.text import counted, plain
from sureshot.trust.assess import Assessment, assess_each
from sureshot.trust.card import Calibration, load_card
from sureshot.trust.signals import QueryContext


def shift_p_value(p_inside: Float[np.ndarray, " queries"], videos: int) -> float:
    """p-value of "these queries are like the labelled ones", 0 to 1; small says they differ.

    Queries like the labelled ones have p-values of being inside that are spread evenly over 0 to
    1. The largest gap between their distribution and the even one is compared with what chance
    makes (the test of Kolmogorov and Smirnov for two samples). It cannot tell harder queries from
    queries whose videos are not there: both come with small values. It holds for queries that do
    not depend on each other; the same one asked again and again looks like a shift.

    Args:
        p_inside: p-value of each query that its video is there, see `Calibration.p_inside`.
        videos: number of labelled videos of the reference, `Nonconformity.videos`.

    Raises:
        SureshotError: no query, no labelled video, or values outside of 0 to 1.
    """
    from scipy.special import kolmogorov  # its import takes as long as a search

    if not len(p_inside) or videos < 1:
        raise SureshotError(
            f"{len(p_inside)} queries cannot be compared with {videos} labelled videos."
        )
    ordered = np.sort(p_inside.astype(np.float64))
    if not (ordered[0] >= 0 and ordered[-1] <= 1):
        raise SureshotError("A p-value is NaN or outside of 0 to 1.")
    count = len(ordered)
    # The share of labelled videos as strange as each query; its p-value counts the query as well.
    share = np.clip((ordered * (videos + 1) - 1) / videos, 0, 1)
    before, after = np.arange(count) / count, np.arange(1, count + 1) / count
    largest = max(float((after - share).max()), float((share - before).max()))
    root = np.sqrt(count * videos / (count + videos))
    return float(kolmogorov((root + 0.12 + 0.11 / root) * largest))


_QUERIES = 20  # fewer are not compared with the labelled ones
_SHIFTED = 0.01  # p-value from which they are said to differ
_STATUS: dict[str, Status] = {
    "confident": "confident",
    "several": "several plausible",
    "absent": "probably not here",
    "uncalibrated": "not calibrated",
}


@dataclass(frozen=True, slots=True, eq=False)
class RankedScores:
    """The moments that a query may mean.

    Every moment of a library counts, also several of one film; those that show the same pictures as
    a better one do not. They depend on the query and the library alone, not on how many hits of
    them are shown, so a hit has the same percentage in every answer.

    Attributes:
        moments: the best of them, best first; at least one.
        about: what else is known of the query, and how many moments there are in all.
    """

    moments: Sequence[Moment]
    about: QueryContext

    @property
    def scores(self) -> Float64[np.ndarray, " moments"]:
        """Score of each moment, descending."""
        return np.array([moment.score for moment in self.moments], np.float64)


def find_card(
    index: str, model: str, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, bool, tuple[str, ...]]:
    """The calibration card for an index and its model.

    Args:
        index: location of the index; a folder or S3 storage can hold a card.
        model: name of what searches it.
        fingerprint: digest that identifies that model.
        bank: its hub correction.

    Returns:
        The card, if there is one; whether it was made on the library itself; and what is wrong with
        cards that cannot be used.
    """
    place = index_folder(index)
    own, wrong = (None, ()) if place is None else _usable(place / CARD, fingerprint, bank)
    if own is not None:
        return own, True, ()
    card, more = model_card(model, fingerprint, bank)
    return card, False, (*wrong, *more)


def model_card(
    model: str, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, tuple[str, ...]]:
    """The calibration card that a model brings along, if it has one; and what is wrong with it.

    Args:
        model: name of the model.
        fingerprint: digest that identifies it.
        bank: its hub correction.
    """
    return _usable(home_of(model) / CARD, fingerprint, bank)


def _usable(
    path: Path, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, tuple[str, ...]]:
    try:
        if not path.exists():
            return None, ()
        card = load_card(path)
    except (SureshotError, OSError) as error:  # such as a folder that may not be entered
        return None, (f"{plain(path)} cannot be used: {plain(str(error))}",)
    odd = card.mismatches(fingerprint, None if bank is None else bank.digest)
    return (None, odd) if odd else (card, ())


Judged = tuple[Status, Confidence | None, tuple[Hit, ...], tuple[str, ...]]


def judged(
    card: Calibration,
    rivals: Sequence[RankedScores],
    hits: Sequence[Sequence[Hit]],
    coverage: float,
    *,
    personal: bool = False,
) -> list[Judged]:
    """What a card says of some answers from one library.

    Args:
        card: calibration card that fits the model.
        rivals: the moments that each query may mean.
        hits: hits of each answer.
        coverage: share of queries whose set of plausible moments is to hold a right one.
        personal: whether the card was made on the library itself.

    Returns:
        Status of each answer, the numbers behind it, the hits with theirs, and warnings.
    """
    if not rivals:
        return []
    scores = [one.scores for one in rivals]
    rows = np.full((len(scores), max(map(len, scores))), -np.inf)
    for row, values in zip(rows, scores, strict=True):
        row[: len(values)] = values
    results = assess_each(card, rows, _joined([one.about for one in rivals]), coverage=coverage)
    return [
        _of_one(card, result, values, answer, coverage, personal)
        for result, values, answer in zip(results, scores, hits, strict=True)
    ]


def _of_one(
    card: Calibration,
    result: Assessment,
    scores: Float64[np.ndarray, " moments"],
    hits: Sequence[Hit],
    coverage: float,
    personal: bool,
) -> Judged:
    status = _STATUS[result.status]
    if result.p_relevant is None or result.p_inside is None:
        return status, None, tuple(hits), result.warnings
    # The percentage of a moment depends on its score alone, so that of a copy is its original's.
    rising, best = np.unique(scores, return_index=True)
    relevant = np.interp([hit.score for hit in hits], rising, result.p_relevant[best]).tolist()
    least = np.inf if result.plausible is None else scores[result.plausible - 1]
    judged_hits = tuple(
        replace(
            hit,
            relevant=share,
            plausible=None if result.plausible is None else bool(hit.score >= least),
        )
        for hit, share in zip(hits, relevant, strict=True)
    )
    if status == "probably not here":  # percentages hold if it is here
        judged_hits = tuple(replace(hit, relevant=None, plausible=None) for hit in hits)
    confidence = Confidence(
        right=float(result.p_relevant[0]),
        present=result.p_inside,
        coverage=coverage,
        plausible=result.plausible,
        valid_for=describe_card(card),
        personal=personal,
    )
    return status, confidence, judged_hits, result.warnings


def _joined(about: Sequence[QueryContext]) -> QueryContext:
    """What is known of queries to one library, as of several queries."""
    background = [one.background for one in about if one.background is not None]
    words = [one.words for one in about if one.words is not None]
    return QueryContext(
        background=np.concatenate(background) if background else None,
        words=np.concatenate(words) if words else None,
        videos=about[0].videos,
    )


def drift(card: Calibration, confidences: Sequence[Confidence]) -> tuple[str, ...]:
    """A warning where queries score unlike those of a card; nothing is said of fewer than 20."""
    if len(confidences) < _QUERIES:
        return ()
    present = np.array([confidence.present for confidence in confidences])
    if shift_p_value(present, card.valid_for.certified) >= _SHIFTED:
        return ()
    weak = "or many of them are about what is not here" if np.median(present) < 0.5 else ""
    why = f"they are of another kind{', ' * bool(weak)}{weak}"
    return (
        f"These {len(confidences)} queries score unlike those the percentages were learned from: "
        f"{why}. Judge ten of them (`sureshot judge`), then `sureshot calibrate`.",
    )


def describe_card(card: Calibration) -> str:
    """What the labels of a card were of, and which libraries it holds for."""
    valid = card.valid_for
    personal = card.personal
    own = f"; then {counted(personal.queries, 'judgement')} of your own" if personal else ""
    return (
        f"{valid.queries} queries about {valid.videos} videos ({valid.dataset}, {valid.date}), in "
        f"libraries of {valid.smallest} to {valid.largest} moments{own}"
    )


def left_out(count: int, kept: int, min: float) -> tuple[str, ...]:
    """What to say of so many hits that are less likely right than was asked for.

    Args:
        count: hits that were left out.
        kept: hits that were not.
        min: the probability that was asked for.
    """
    wanted = f"the {100 * min:g}% asked for with {option('min')}"
    if count and not kept:
        return (f"No hit is as likely right as {wanted}; {count} left out.",)
    return (f"{counted(count, 'hit')} less likely right than {wanted} left out.",) if count else ()

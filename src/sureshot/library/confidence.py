"""How sure the answer to one query is, by a card made on labelled queries.

A card is stored with an index or with a model, as ``trust.json``; that of the index is asked first,
since it was made on the library itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float64

from sureshot.errors import SureshotError, option
from sureshot.files import CARD
from sureshot.library.results import Answer, Confidence, Hit, Status
from sureshot.models.hub_bank import Bank, home_of
from sureshot.paths import index_folder
from sureshot.text import counted, plain
from sureshot.trust.assess import assess
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
    return _kolmogorov(float((root + 0.12 + 0.11 / root) * largest))


def _kolmogorov(x: float) -> float:
    r"""Chance of a Kolmogorov statistic of at least x.

    .. math:: 2 \sum_k (-1)^{k-1} e^{-2 k^2 x^2}
       = 1 - \frac{\sqrt{2 \pi}}{x} \sum_k e^{-(2k - 1)^2 \pi^2 / 8 x^2}

    The first series is short where x is large, the second where it is small.
    """
    terms = np.arange(1, 8, dtype=np.float64)
    if x < 0.05:  # the second series would divide by almost 0 to get 1
        return 1.0
    if x < 1:
        odd = np.exp(-(((2 * terms - 1) * np.pi / x) ** 2) / 8)
        return 1 - float((2 * np.pi) ** 0.5 / x * odd.sum())
    signs = 1 - 2 * (np.arange(len(terms)) % 2)
    return 2 * float((signs * np.exp(-2 * (terms * x) ** 2)).sum())


_QUERIES = 20  # fewer are not compared with the labelled ones
_SHIFTED = 0.01  # p-value from which they are said to differ
_STATUS: dict[str, Status] = {
    "confident": "confident",
    "several": "several plausible",
    "absent": "probably not here",
    "uncalibrated": "not calibrated",
}


def find_card(
    index: str, model: str, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, bool, tuple[str, ...]]:
    """The calibration card for an index and its model.

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


def card_stamp(index: str) -> tuple[int, ...]:
    """Differs once the card of an index is another file; empty without one or in object storage."""
    if "://" in index:  # every look is a request
        return ()
    try:
        status = Path(index, CARD).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def model_card(
    model: str, fingerprint: str, bank: Bank | None
) -> tuple[Calibration | None, tuple[str, ...]]:
    """The calibration card that a model brings along, if it has one; and what is wrong with it."""
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


def judged(
    card: Calibration,
    answers: Sequence[Answer],
    rivals: Sequence[Sequence[float]],
    about: QueryContext,
    coverage: float,
    *,
    personal: bool = False,
) -> list[Answer]:
    """Answers from one library, with what a card says of them.

    Args:
        card: calibration card that fits the model.
        rivals: scores of the moments that each query may mean, descending, at least one.
        about: what else is known of the queries.
        coverage: share of queries whose set of plausible moments is to hold a right one.
        personal: whether the card was made on the library itself.
    """
    rows = np.full((len(rivals), max(map(len, rivals))), -np.inf)
    for row, scores in zip(rows, rivals, strict=True):
        row[: len(scores)] = scores
    found = []
    assessed = assess(card, rows, about, coverage=coverage)
    for answer, result, row in zip(answers, assessed, rows, strict=True):
        status = _STATUS[result.status]
        answer = replace(answer, status=status, warnings=(*answer.warnings, *result.warnings))
        if result.p_relevant is None or result.p_inside is None:
            found.append(answer)
            continue
        known = Confidence(
            right=float(result.p_relevant[0]),
            present=result.p_inside,
            coverage=coverage,
            plausible=result.plausible,
            valid_for=describe_card(card),
            personal=personal,
        )
        hits = answer.hits
        if status != "probably not here":  # percentages hold if it is here
            hits = _with_percentages(hits, row, result.p_relevant, result.plausible)
        found.append(replace(answer, confidence=known, hits=hits))
    return found


def _with_percentages(
    hits: Sequence[Hit],
    scores: Float64[np.ndarray, " moments"],
    relevant: Float64[np.ndarray, " known"],
    plausible: int | None,
) -> tuple[Hit, ...]:
    """Hits with the percentages of the moments that score as they do."""
    # The percentage of a moment depends on its score alone, so that of a copy is its original's.
    rising, best = np.unique(scores[: len(relevant)], return_index=True)
    shares = np.interp([hit.score for hit in hits], rising, relevant[best]).tolist()
    least = np.inf if plausible is None else float(scores[plausible - 1])
    return tuple(
        replace(hit, relevant=share, plausible=None if plausible is None else hit.score >= least)
        for hit, share in zip(hits, shares, strict=True)
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


def likely(answer: Answer, min: float) -> Answer:
    """An answer without the hits that are less likely right than asked for, which it says."""
    kept = tuple(h for h in answer.hits if h.relevant is None or h.relevant >= min)
    count = len(answer) - len(kept)
    if not count:
        return answer
    wanted = f"the {100 * min:g}% asked for with {option('min')}"
    note = f"{counted(count, 'hit')} less likely right than {wanted} left out."
    if not kept:
        note = f"No hit is as likely right as {wanted}; {count} left out."
    return replace(answer, hits=kept, warnings=(*answer.warnings, note))

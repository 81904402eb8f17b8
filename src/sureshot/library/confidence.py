"""How sure the answer to one query is, by a card made on labelled queries.

A card is kept with an index, with a model, or among the cards of this user, by the fingerprint of
the model. That of the index is asked first, since it was made on the library itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sureshot.errors import SureshotError, option
from sureshot.files import CARD
from sureshot.library.results import CONFIDENT, Answer, Confidence, Hit, Status
from sureshot.models.hub_bank import Bank, cards_of
from sureshot.paths import index_folder
from sureshot.text import counted, plain
from sureshot.trust.card import Calibration, load_card
from sureshot.trust.signals import RESULTS, QueryContext

_LONGEST = 50  # moments of a list that somebody looks through, at most


FoundCard: TypeAlias = tuple[Calibration | None, tuple[str, ...]]


def find_card(index: str | None, model: str, fingerprint: str, bank: Bank | None) -> FoundCard:
    """The calibration card for an index and its model, or for a model alone.

    Returns:
        The card, if there is one; and what is wrong with cards that cannot be used.
    """
    place = None if index is None else index_folder(index)
    wrong: list[str] = []
    for path in [*([] if place is None else [place / CARD]), *cards_of(model, fingerprint)]:
        try:
            if not path.exists():
                continue
            card = load_card(path)
        except (SureshotError, OSError) as error:  # such as a folder that may not be entered
            wrong.append(f"{plain(path)} cannot be used: {plain(str(error))}")
            continue
        odd = card.mismatches(fingerprint, None if bank is None else bank.digest)
        if not odd:
            return card, tuple(wrong)
        wrong += odd
    return None, tuple(wrong)


def card_stamp(index: str) -> tuple[int, ...]:
    """Differs once the card of an index is another file; empty without one or in object storage."""
    if "://" in index:  # every look is a request
        return ()
    try:
        status = Path(index, CARD).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def judged(
    card: Calibration,
    answer: Answer,
    rivals: Sequence[float],
    about: QueryContext,
    *,
    coverage: float,
    prior: float | None = None,
    whole: bool | None = None,
) -> Answer:
    """An answer with what a card says of it.

    Args:
        rivals: scores of the moments that the query may mean, descending, at least one.
        about: the context of this one query.
        coverage: share of queries whose set of plausible moments is to hold a right one.
        prior: share of searches for what is here; None is that of the card.
        whole: whether the query was compared with all that is there.
    """
    scores, every = np.array([rivals]), None if whole is None else np.array([whole])
    (here,) = card.p_present(scores, about, prior=prior).tolist()
    _, (right,) = card.p_right(scores, about, results=None, prior=prior, whole=every)
    members = card.members(scores, coverage, about)
    few = None if members is None else int(members.sum())
    if few is not None and few > max(1, min(_LONGEST, len(rivals) // 2)):
        few = None
    # The probability of a moment depends on its score alone; that of a copy is its original's.
    rising, best = np.unique(scores, return_index=True)
    shares = np.interp([hit.score for hit in answer], rising, right[best]).tolist()
    least = np.inf if few is None else rivals[few - 1]
    hits = tuple(
        replace(hit, probability=p, plausible=None if few is None else hit.score >= least)
        for hit, p in zip(answer, shares, strict=True)
    )
    footage = "photographs" if card.valid_for.photos else "other videos"
    known = Confidence(
        right=float(right[0]),
        coverage=coverage,
        plausible=few,
        expected=float(right[:RESULTS].sum()),
        prior=card.prior if prior is None else prior,
        valid_for=describe_card(card),
        personal=card.is_personal,
        reference="" if card.may_be_sure else footage,
        absent_below=card.absent_limits(1, about).item(),
    )
    absent = here < known.absent_below
    sure = CONFIDENT if card.may_be_sure else np.inf
    found = replace(
        answer,
        hits=hits,
        status="probably not here" if absent else status_of(hits, known),
        present=here,
        answerable="no" if absent else "yes" if here >= sure else "unknown",
        confidence=known,
    )
    moments, largest = about.videos or len(rivals), card.valid_for.largest
    if moments <= largest:
        return found
    return found.noted(
        f"{counted(moments, 'moment')} indexed. Percentages were calibrated on at most "
        f"{largest}, so these may be too high. Judging helps (`sureshot judge`)."
    )


def describe_card(card: Calibration) -> str:
    """What the labels of a card were of, and which libraries it holds for."""
    valid = card.valid_for
    personal = card.personal
    if valid.source == "judgements":
        return f"{counted(valid.queries, 'judgement')} of your own ({valid.dataset}, {valid.date})"
    own = f"; then {counted(personal.queries, 'judgement')} of your own" if personal else ""
    footage = counted(valid.videos, "photograph" if valid.photos else "video")
    return (
        f"{valid.queries} queries about {footage} ({valid.dataset}, {valid.date}), in "
        f"libraries of {valid.smallest} to {valid.largest} moments{own}"
    )


def status_of(hits: Sequence[Hit], known: Confidence) -> Status:
    """Whether an answer is sure: of pictures never by a card of other footage alone."""
    best = max(hits, key=lambda hit: hit.probability or 0.0, default=None)
    may_be_sure = not known.reference or (best is not None and best.source != "frames")
    return "confident" if may_be_sure and known.right >= CONFIDENT else "several plausible"


def given_present(answer: Answer) -> Answer:
    """An answer once it is known that what was asked for is there: its percentages are of that."""
    if answer.confidence is None or not answer.hits or not answer.present:
        return answer
    here, old = answer.present, answer.confidence
    known = replace(old, right=min(old.right / here, 1.0), expected=old.expected / here, prior=1.0)
    status = status_of(answer.hits, known)
    return replace(
        answer,
        hits=tuple(
            hit
            if hit.probability is None
            else replace(hit, probability=min(hit.probability / here, 1.0))
            for hit in answer.hits
        ),
        status=status,
        present=1.0,
        answerable="yes" if not known.reference or status == "confident" else "unknown",
        confidence=known,
    )


def at_least(min: float, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Hits that are right with at least a probability; all where none has one."""
    known = any(hit.probability is not None for hit in hits)
    return tuple(hit for hit in hits if not known or not min or (hit.probability or 0.0) >= min)


def likely(answer: Answer, min: float) -> Answer:
    """An answer without the hits that are less likely right than asked for, which it says."""
    kept = at_least(min, answer.hits)
    count = len(answer) - len(kept)
    if not count:
        return answer
    wanted = f"the {100 * min:g}% asked for with {option('min')}"
    note = f"{counted(count, 'hit')} less likely right than {wanted} left out."
    if not kept:
        note = f"No hit is as likely right as {wanted}; {count} left out."
    return replace(answer, hits=kept).noted(note)

"""A calibration card from judged queries of an index.

Where the model of the index brings a card along, judgements move it. Where it brings none, as any
CLIP, they move what holds for any model, which takes more of them.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sureshot.errors import SureshotError, option, reason_of
from sureshot.files import CARD
from sureshot.library.confidence import find_card
from sureshot.library.labels import (
    Label,
    given_labels_of_index,
    labels_of_index,
    located,
    read_labels,
    together,
    write,
)
from sureshot.library.ranking import Moment
from sureshot.library.search import Searcher, open_index
from sureshot.paths import IndexPlace, OpenIndex, absolute, index_folder, index_place
from sureshot.progress import Progress, Silent
from sureshot.store.index import Store
from sureshot.text import counted, plain
from sureshot.trust import fit
from sureshot.trust.card import Calibration
from sureshot.trust.signals import QueryContext


def calibrate(
    labels: str | Path | None = None,
    *,
    db: IndexPlace = None,
    model: str | Path | None = None,
    device: str | None = None,
    skip_unknown: bool = False,
    date: str = "",
    to: str | Path | None = None,
    save: bool = True,
    progress: Progress | None = None,
) -> fit.Calibrated:
    """Learn from judged queries how sure an answer is, so that searches show percentages.

    A label with times says whether a hit that meets them is right; one without is about the best
    moment of its video. How often something is here is counted too, but not in lists of all right
    answers.

    Labels from elsewhere that made the card of an index are kept next to it, and count together
    with what is judged of it, whichever came first: no click undoes them. Where the two disagree,
    what was judged of the index holds.

    Args:
        labels: file of judged queries, see `sureshot.library.labels`; None is that of the index,
            into which `sureshot.library.judge` writes.
        db: the index, opened, or by its place, which goes with ``model`` and ``device`` as of
            `sureshot.open_index`.
        skip_unknown: leave out queries about videos that are not in the index, as those of its
            own file always are.
        date: date to note on the card, such as 2026-11-30; today if empty.
        to: file of the card; None is in the index, where searches look for it.
        save: whether to write the card.

    Raises:
        SureshotError: the labels cannot be used or are too few; or there is no place for the card.
    """
    day = fit.date_or_today(date)
    searcher = open_index(db, model=model, device=device)
    in_index = save and to is None
    file = card_of_index(searcher) if in_index else absolute(to) if save and to else None
    videos = {video.path: video.digest for video in searcher.store.videos() if video.windows}
    is_own = labels is None
    if labels is None:
        labels, skip_unknown = labels_of_index(searcher.store.location), True
        if not labels.exists():
            raise SureshotError(
                "No hit of this index was judged yet. `sureshot search QUERY --judge` asks whether "
                f"hits are right; {fit.JUDGED} such searches are needed. Judgements in a file: "
                f"{option('labels', 'CARD')}."
            )
    known, left_out = located(read_labels(labels), labels, videos, skip_unknown=skip_unknown)
    given, names = known, [Path(labels).name]
    if is_own or in_index:
        own = labels_of_index(searcher.store.location)
        elsewhere = given_labels_of_index(searcher.store.location)
        other = elsewhere if absolute(labels) == own else own
        if other.exists() and other.stat().st_size:
            more, _ = located(read_labels(other), other, videos, skip_unknown=True)
            names.append(other.name)
            known = together([*more, *known] if is_own else [*known, *more])
    card = _adapted(searcher, known, Path(labels), day, progress or Silent())
    done = fit.Calibrated(
        card=card,
        gallery=len(videos),
        absent=sum(label.state == "absent" for label in known),
        not_found=sum(label.state == "not found" for label in known),
        left_out=left_out,
        labels=" and ".join(names),
    )
    if file is not None:
        done = done.saved(file)
        if in_index and absolute(labels) not in (own, elsewhere):
            write(elsewhere, given)
        searcher.refresh_card()
    return done


def card_of_index(index: OpenIndex) -> Path:
    """Where the card of an index is."""
    place = index_folder(index.location)
    if place is None:
        raise SureshotError(
            f"The index {index.location} is in a storage that cannot hold a calibration card. Name "
            f"a file for it with {option('to')}, or calibrate an index in a folder or in S3."
        )
    return place / CARD


def forget(db: IndexPlace = None) -> bool:
    """Delete the card of an index, so that its model's own is used again; whether there was one.

    Labels from elsewhere that it was learned from are forgotten as well; what was judged of the
    index stays.
    """
    store = Store.open(index_place(db))
    file = card_of_index(store)
    there = file.exists()
    try:
        file.unlink(missing_ok=True)
        given_labels_of_index(store.location).unlink(missing_ok=True)
    except OSError as error:
        raise SureshotError(f"{file} cannot be deleted: {reason_of(error)}.") from None
    if isinstance(db, Searcher):
        db.refresh_card()
    return there


def _adapted(
    searcher: Searcher, labels: Sequence[Label], file: Path, day: str, progress: Progress
) -> Calibration:
    """The card of the model, or what holds for any, moved towards judgements."""
    model, bank = searcher.encoder.fingerprint, searcher.bank
    card, _ = find_card(None, searcher.encoder.name, model, bank)
    given, labels = len(labels), [label for label in labels if not label.is_of_words]
    if len(labels) < (needed := fit.QUERIES if card is None else fit.JUDGED):
        words = given - len(labels)
        other = f", or learn from captioned photographs: {option('reference', 'FOLDER')}"
        besides = f" besides {words} about words, which they don't learn from" if words else ""
        raise SureshotError(
            f"{plain(file)} has {counted(len(labels), 'judged query', 'judged queries')}{besides}; "
            f"{needed} are needed. Judge some more with `sureshot search QUERY --judge`"
            f"{'' if card else other}."
        )
    known = []
    found = searcher.rivals([label.query for label in labels])
    for number, (label, rivals) in enumerate(zip(labels, found, strict=True), 1):
        known.append(_judged(label, *rivals))
        progress.update("scored", number, len(labels))
    if card is None:
        digest = None if bank is None else bank.digest
        card = fit.scale_free(known, model=model, bank=digest, dataset=file.name, date=day)
    return fit.adapt(card, known)


def _judged(label: Label, moments: Sequence[Moment], about: QueryContext) -> fit.JudgedQuery:
    """What a search of pictures finds for a judged query, and what is known of each hit."""
    label = label.of_frames()
    # Of a right video without times the best moment is meant; nothing is known of others.
    untimed = set(label.relevant) - {one.video for one in label.moments if one.is_timed}
    right, seen = [], set[Path]()
    for moment in moments:
        pieces = (label.verdict(one.path, one.start, one.end) for one in (moment, *moment.pieces))
        verdict = next((one for one in pieces if one is not None), None)
        if any(label.verdict(one.path, one.start, one.end) for one in moment.copies):
            verdict = True  # of copies one is shown, and another may be named
        if moment.path in seen & untimed:
            verdict = None
        seen.add(moment.path)
        right.append(-1 if verdict is None else int(verdict))
    return fit.JudgedQuery(
        scores=np.array([moment.score for moment in moments], np.float64),
        right=np.array(right),
        about=about,
        absent=label.state == "absent",
        present=label.state == "present",
        searched=not label.complete,
    )

"""A calibration card from judged queries of an index."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from sureshot.errors import SureshotError, option
from sureshot.library.labels import Label, located, read_labels
from sureshot.library.search import Searcher, as_searcher
from sureshot.library.videos import Told
from sureshot.places import absolute
from sureshot.trust.calibrated import Calibrated, date_or_today, sets_of
from sureshot.trust.card import FILE
from sureshot.trust.fitting import fit_card


def calibrate(
    labels: str | Path,
    *,
    db: str | Path | Searcher | None = None,
    model: str | None = None,
    device: str | None = None,
    lenient: bool = False,
    absent: float | None = None,
    date: str = "",
    to: str | Path | None = None,
    save: bool = True,
    told: Told | None = None,
) -> Calibrated:
    """Learn from judged queries how sure an answer is, so that searches show percentages.

    Each query is scored with every video of the index. It counts as about the first right video
    that its label names. Queries without a right video only say how often that happens: signals of
    such queries are made by taking the right videos of the others away. Those of which none was
    found among the judged hits count in the same way, since their first hit was wrong.

    Args:
        labels: file of judged queries, see `sureshot.library.labels`.
        db: the index, by its place or opened; None is the default index of this user.
        model: the model of the index, if its folder has moved.
        device: torch device; None takes a GPU where there is one.
        lenient: leave out queries about videos that are not in the index.
        absent: share of queries to reckon with whose video is not there; None is that of the
            labels.
        date: date to note on the card, such as 2026-11-30; today if empty.
        to: file of the card; None is in the index, where searches look for it.
        save: whether to write the card. One that is refused is never written.
        told: called with windows scored and windows there are.

    Raises:
        ArgumentError: the date is none.
        SureshotError: the labels cannot be used, are too few or too one-sided; or there is no place
            for the card.
    """
    day = date_or_today(date)
    searcher = as_searcher(db, model, device)
    file = None
    if save:
        file = card_of_index(searcher) if to is None else absolute(to)
    videos = [video.path for video in searcher.store.videos() if video.windows]
    known, left_out = located(read_labels(labels), labels, videos, lenient=lenient)
    present = [label for label in known if label.state == "present"]
    if not present:
        raise SureshotError(
            f"None of the {len(known)} queries of {labels} has a right video, so there is nothing "
            f"to calibrate on. Judge queries whose videos are in the index."
        )
    gallery = searcher.all_video_scores([label.query for label in present], told=told)
    relevant, about = _relevance(present, gallery.paths)
    card = fit_card(
        gallery.scores,
        relevant,
        about,
        elsewhere=gallery.elsewhere,
        model=searcher.encoder.fingerprint,
        bank=None if searcher.bank is None else searcher.bank.digest,
        dataset=Path(labels).name,
        date=day,
        absent=1 - len(present) / len(known) if absent is None else absent,
    )
    done = Calibrated(
        card=card,
        gallery=len(gallery.paths),
        sets=sets_of(card, gallery.scores),
        absent=sum(label.state == "absent" for label in known),
        not_found=sum(label.state == "not found" for label in known),
        left_out=left_out,
    )
    if file is not None:
        done = done.saved(file)
        searcher.refresh_card()
    return done


def card_of_index(searcher: Searcher) -> Path:
    """Where the card of an index lies.

    Raises:
        SureshotError: the index is in object storage, which can hold none.
    """
    location = searcher.store.location
    if "://" in location:
        raise SureshotError(
            f"The index {location} is in object storage, where no calibration card can lie. Name a "
            f"file for it with {option('to')}, or calibrate an index in a folder."
        )
    return Path(location) / FILE


def _relevance(
    labels: Sequence[Label], paths: Sequence[Path]
) -> tuple[Bool[np.ndarray, "queries videos"], Int[np.ndarray, " queries"]]:
    """Which videos are right for which query, and the column of the one that it is about."""
    column = {path: place for place, path in enumerate(paths)}
    relevant = np.zeros((len(labels), len(paths)), bool)
    about = np.zeros(len(labels), int)
    for row, label in enumerate(labels):
        # What another process removed since the labels were read is not here.
        columns = [column[path] for path in label.relevant if path in column]
        relevant[row, columns] = True
        about[row] = columns[0] if columns else 0
    return relevant, about

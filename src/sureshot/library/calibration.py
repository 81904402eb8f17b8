"""A calibration card from judged queries of an index."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from sureshot.errors import SureshotError, option
from sureshot.library.labels import Label, located, read_labels
from sureshot.library.search import Searcher
from sureshot.library.videos import Told
from sureshot.trust.calibrated import Calibrated, sets_of, today
from sureshot.trust.card import FILE
from sureshot.trust.fitting import fit_card


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


def calibrate_index(
    searcher: Searcher,
    file: str | Path,
    *,
    absent: float | None = None,
    date: str = "",
    lenient: bool = False,
    told: Told | None = None,
) -> Calibrated:
    """Calibrate an index on judged queries, each scored with every video of it.

    A query counts as about the first right video that its label names. Queries without a right
    video only say how often that happens: signals of such queries are made by taking the right
    videos of the others away. Those of which none was found among the judged hits count in the same
    way, since their first hit was wrong.

    Args:
        searcher: of the index.
        file: of the labels, see `sureshot.library.labels`.
        absent: share of queries to reckon with whose video is not there; None is that of the
            labels.
        date: of the calibration; today if empty.
        lenient: leave out queries about videos that are not in the index.
        told: called with windows scored and windows there are.

    Raises:
        SureshotError: the labels cannot be used, or are too few or too one-sided.
    """
    videos = [video.path for video in searcher.store.videos() if video.windows]
    labels, left_out = located(read_labels(file), file, videos, lenient=lenient)
    present = [label for label in labels if label.state == "present"]
    if not present:
        raise SureshotError(
            f"None of the {len(labels)} queries of {file} has a right video, so there is nothing "
            f"to calibrate on. Judge queries whose videos are in the index."
        )
    found = searcher.all_video_scores([label.query for label in present], told=told)
    relevant, about = _relevance(present, found.paths)
    card = fit_card(
        found.scores,
        relevant,
        about,
        elsewhere=found.elsewhere,
        model=searcher.encoder.fingerprint,
        bank=None if searcher.bank is None else searcher.bank.digest,
        dataset=Path(file).name,
        date=date or today(),
        absent=1 - len(present) / len(labels) if absent is None else absent,
    )
    counts = [sum(label.state == state for label in labels) for state in ("absent", "not found")]
    sets = sets_of(card, found.scores)
    return Calibrated(card, len(found.paths), sets, counts[0], counts[1], left_out)


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

"""A calibration card from judged queries of an index, or from a split of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from sureshot.errors import SureshotError
from sureshot.gallery import Told
from sureshot.labels import Label, located, read_labels
from sureshot.search import Searcher
from sureshot.settings import plain
from sureshot.trust.calibration import Calibration
from sureshot.trust.card import FILE
from sureshot.trust.fitting import fit

if TYPE_CHECKING:
    from sureshot.datasets import Split
    from sureshot.scorer import Scorer

COVERAGES = (0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Sets:
    """The conformal sets of one coverage, on the queries of the calibration.

    Attributes:
        coverage: share of queries whose set holds a right video, of those that have one.
        videos: in a set on average; None where there are too few labels to promise the coverage.
    """

    coverage: float
    videos: float | None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A card and what it was made of.

    Attributes:
        card: may say that it is refused.
        gallery: videos that were searched.
        sets: of each coverage.
        absent: queries that were judged to have no right video here.
        not_found: queries of which nobody found a right video.
        left_out: queries about videos that are not in the index.
    """

    card: Calibration
    gallery: int
    sets: tuple[Sets, ...]
    absent: int = 0
    not_found: int = 0
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        card = self.card
        return {
            "refused": card.refused,
            "valid_for": plain(card.valid_for),
            "gallery": self.gallery,
            "absent": self.absent,
            "not_found": self.not_found,
            "left_out": self.left_out,
            "quality": None if card.quality is None else plain(card.quality),
            "sets": [plain(row) for row in self.sets],
            "certified": [plain(row) for row in card.certificates],
        }


def today() -> str:
    """The date in UTC, as ``2026-11-30``."""
    return datetime.now(UTC).date().isoformat()


def card_of_index(searcher: Searcher) -> Path:
    """Where the card of an index lies.

    Raises:
        SureshotError: the index is in object storage, which can hold none.
    """
    location = searcher.store.location
    if "://" in location:
        raise SureshotError(
            f"The index {location} is in object storage, where no calibration card can lie. Name a "
            f"file for it with --to, or calibrate an index in a folder."
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
        file: of the labels, see `sureshot.labels`.
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
    card = fit(
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
    sets = _sets(card, found.scores)
    return Calibrated(card, len(found.paths), sets, counts[0], counts[1], left_out)


def calibrate_scores(
    scores: Float[np.ndarray, "queries videos"],
    owner: Int[np.ndarray, " queries"],
    elsewhere: Float[np.ndarray, " queries"] | None = None,
    *,
    model: str,
    bank: str | None,
    dataset: str,
    absent: float = 0.0,
    date: str = "",
) -> Calibrated:
    """Calibrate on the captions of a split, each of which is about one video.

    Other videos that fit a caption count as wrong, since nobody labelled them.

    Args:
        scores: that order the results.
        owner: column of the video of each caption.
        elsewhere: what each caption scores with videos that the model brings along.
        model: fingerprint of what `sureshot.retriever.load` gives.
        bank: of its hub correction, if it has one.
        dataset: title of the split.
        absent: share of queries to reckon with whose video is not there.
        date: of the calibration; today if empty.

    Raises:
        SureshotError: the captions are too few or too one-sided.
    """
    card = fit(
        scores,
        owner[:, None] == np.arange(scores.shape[1]),
        owner,
        sought=owner,
        elsewhere=elsewhere,
        model=model,
        bank=bank,
        dataset=dataset,
        date=date or today(),
        absent=absent,
    )
    return Calibrated(card, scores.shape[1], _sets(card, scores))


def card_of_model(scorer: "Scorer") -> Path:
    """Where the card of a checkpoint lies.

    Raises:
        SureshotError: it is an encoder alone, which has no folder of its own.
    """
    if scorer.model is None:
        raise SureshotError(
            f"{scorer.name} is no checkpoint, so it has no folder for a card. Name a file with "
            f"--to, or calibrate an index with --labels."
        )
    return Path(scorer.name).expanduser() / FILE


def check_unseen(scorer: "Scorer", split: "Split") -> None:
    """Refuse videos that a model was trained on, where its training data are at hand.

    On those it is right far more often than on any others, and would promise that.

    Raises:
        SureshotError: there are some.
    """
    from sureshot.datasets import check_disjoint
    from sureshot.training.recipe import Recipe

    try:
        recipe = Recipe.from_dict(scorer.recipe, Path.cwd()) if scorer.recipe else None
        trained = [] if recipe is None else recipe.splits()[0]
    except SureshotError:
        return  # the training data are not here
    for part in trained:
        try:
            check_disjoint(part, split)
        except SureshotError as error:
            raise SureshotError(
                f"{scorer.name} cannot be calibrated on what it was trained on. {error}"
            ) from None


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


def _sets(card: Calibration, scores: Float[np.ndarray, "queries videos"]) -> tuple[Sets, ...]:
    rows = []
    for coverage in COVERAGES:
        members = card.members(scores, coverage)
        rows.append(Sets(coverage, None if members is None else float(members.sum(1).mean())))
    return tuple(rows)

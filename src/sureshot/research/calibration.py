"""A calibration card from a split of a data set."""

from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from sureshot.datasets import Split
from sureshot.errors import SureshotError, option
from sureshot.models.scorer import Scorer
from sureshot.trust.calibrated import Calibrated, sets_of, today
from sureshot.trust.card import FILE
from sureshot.trust.fitting import fit_card


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
        model: fingerprint of what `sureshot.models.loading.load_searchable` gives.
        bank: of its hub correction, if it has one.
        dataset: title of the split.
        absent: share of queries to reckon with whose video is not there.
        date: of the calibration; today if empty.

    Raises:
        SureshotError: the captions are too few or too one-sided.
    """
    card = fit_card(
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
    return Calibrated(card, scores.shape[1], sets_of(card, scores))


def card_of_model(scorer: Scorer) -> Path:
    """Where the card of a checkpoint lies.

    Raises:
        SureshotError: it is an encoder alone, which has no folder of its own.
    """
    if scorer.model is None:
        raise SureshotError(
            f"{scorer.name} is no checkpoint, so it has no folder for a card. Name a file with "
            f"{option('to')}, or calibrate an index on judged queries."
        )
    return Path(scorer.name).expanduser() / FILE


def check_unseen(scorer: Scorer, split: Split) -> None:
    """Refuse videos that a model was trained on, where its training data are at hand.

    On those it is right far more often than on any others, and would promise that.

    Raises:
        SureshotError: there are some.
    """
    from sureshot.datasets import check_disjoint
    from sureshot.research.training.recipe import Recipe

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

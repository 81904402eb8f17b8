"""Sureshot's own percentage of each first hit, learned on the validation set of a run."""

import numpy as np
from jaxtyping import Float

from sureshot.errors import SureshotError
from sureshot.models.comparing import Comparing
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction.ranks import relevance
from sureshot.research.scores import similarity
from sureshot.trust.fitting import fit_card


def first_hit_percentages(
    how: Comparing, known: SplitFeatures, scores: Float[np.ndarray, "captions videos"]
) -> Float[np.ndarray, " captions"] | None:
    """Probability that the first hit of each caption is right.

    Args:
        how: the model that gave the scores.
        known: validation set, whose right answers the percentages are learned from.
        scores: scores of the captions that are asked, higher is better.

    Returns:
        Probabilities in [0, 1]; None where the validation set is too small to learn from.
    """
    try:
        card = fit_card(similarity(how, known), relevance(known.split), known.split.owner())
    except SureshotError:  # too few captions, or too few that are found or missed
        return None
    return None if card.refused else card.p_top1(scores)

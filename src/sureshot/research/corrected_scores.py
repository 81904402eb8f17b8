"""Scores of a split corrected by uncertainty, in both directions, for `sureshot.research.evaluate`.

The equations are those of `sureshot.models.scoring.rerank`; here is which uncertainty goes into
them, and what it looks at.
"""

import numpy as np
import torch
from jaxtyping import Float

from sureshot.errors import ArgumentError, option
from sureshot.metrics.lines import CorrectedScores
from sureshot.models.losses.evidential import opinion, relu_evidence
from sureshot.models.model import frozen
from sureshot.models.scorer import Scorer
from sureshot.models.scoring.rerank import candidate_bonus, rerank
from sureshot.models.systems.duq import Duq
from sureshot.research.features import SplitFeatures
from sureshot.research.scores import code_texts, code_videos

PRINTED, CANDIDATES = "duq_printed", "duq_candidates"  # the rule as printed, and one that can help
_TEXTS = 256  # re-ranked at once


def check_printed(scorer: Scorer) -> None:
    """Refuse a model whose system has no distances to re-rank by.

    Raises:
        ArgumentError: it is not DUQ.
    """
    if scorer.model is None or not isinstance(scorer.model.system, Duq):
        raise ArgumentError(
            f"{option('post', PRINTED)} takes similarities and distances of DUQ, and {scorer.name} "
            f"is not DUQ. Take {option('post', CANDIDATES)}, which needs scores alone."
        )


def printed_scores(
    scorer: Scorer, features: SplitFeatures, gamma: float
) -> tuple[CorrectedScores, CorrectedScores]:
    """The rule as printed: one matrix, its rows read for text to video, its columns for the other.

    Args:
        scorer: a model of DUQ.
        features: the split.
        gamma: both gammas of the rule.

    Raises:
        ArgumentError: the model is not DUQ.
    """
    check_printed(scorer)
    model = scorer.model
    assert model is not None and isinstance(model.system, Duq)
    videos = code_videos(scorer.raw, features, range(len(features.videos)))
    parts = []
    for first in range(0, len(features.texts), _TEXTS):
        chosen = range(first, min(first + _TEXTS, len(features.texts)))
        texts = code_texts(scorer.raw, features, chosen)
        with frozen(model):
            parts.append(model.system.printed(texts, videos, gamma).cpu().numpy())
    scores = np.concatenate(parts)
    name = f"DUQ re-ranking as printed, gamma {gamma:g}"
    return (
        CorrectedScores(
            name=f"{name} (looks at the query alone; its rank is the same for every gamma)",
            direction="t2v",
            scores=scores,
            gamma=gamma,
        ),
        CorrectedScores(
            name=f"{name} (looks at all test queries)", direction="v2t", scores=scores, gamma=gamma
        ),
    )


def candidate_scores(
    scores: Float[np.ndarray, "texts videos"],
    bank: Float[np.ndarray, "captions videos"],
    gamma: float,
) -> tuple[CorrectedScores, CorrectedScores]:
    r"""Scores with a share of each candidate's uncertainty added, which takes hubs down.

    .. math:: s'_{ij} = s_{ij} + \gamma \, \mathrm{sd}(S^{bank}) \, z(u_j)

    with u the vacuity of ReLU evidence and z its standard score among the candidates. Of a video u
    is taken over the captions of the bank; of a text, the candidate of video to text, over the
    tested videos, for want of a bank of others.

    Args:
        scores: raw scores, cosines or alike.
        bank: raw scores of captions that are not tested, such as those of training.
        gamma: share that is added; 0 leaves the scores as they are.
    """
    name = f"DUQ re-ranking by candidates, gamma {gamma:g}"
    return (
        CorrectedScores(
            name=f"{name} (bank: {len(bank)} training captions)",
            direction="t2v",
            scores=_by_candidate(scores, bank, gamma),
            gamma=gamma,
        ),
        CorrectedScores(
            name=f"{name} (looks at all test queries)",
            direction="v2t",
            scores=_by_candidate(scores.T, scores.T, gamma).T,
            gamma=gamma,
        ),
    )


def _by_candidate(
    scores: Float[np.ndarray, "queries candidates"],
    bank: Float[np.ndarray, "bank candidates"],
    gamma: float,
) -> Float[np.ndarray, "queries candidates"]:
    asked, known = (torch.from_numpy(np.array(one, np.float64)) for one in (scores, bank))
    vacuity = opinion(relu_evidence(known.T)).vacuity
    corrected: Float[np.ndarray, "queries candidates"]
    corrected = rerank(asked, candidate_bonus(vacuity, known), gamma).numpy()
    return corrected

"""Scores corrected by uncertainty: the rule of the DUQ paper, and one that can help."""

import torch
from jaxtyping import Float
from torch import Tensor


def rerank_as_printed(
    similarity: Float[Tensor, "queries candidates"],
    distance: Float[Tensor, "queries candidates"],
    similarity_vacuity: Float[Tensor, " queries"],
    distance_vacuity: Float[Tensor, " queries"],
    *,
    gamma_distance: float = 0.1,
    gamma_similarity: float = 0.1,
) -> Float[Tensor, "queries candidates"]:
    r"""The paper's product of similarity, closeness and the query's certainty.

    .. math:: s'_{ij} = e^{-\gamma_1 u^d_i} (1 - d_{ij}) \cdot e^{-\gamma_2 u^s_i} s_{ij}

    Two things to know before using it. Both u belong to the row: they multiply all candidates of a
    query by the same positive number, so **the ranking of a query cannot depend on them**, whatever
    the gammas. (What changes is the ranking of texts for a video, if it is read off the columns of
    the same matrix.) And the product of two negative factors is positive: a candidate that both
    branches reject (-0.3 and -0.3) beats one that both accept a little (0.28 and 0.28).
    `rerank` does neither.

    Args:
        similarity: cosines, in [-1, 1].
        distance: cosine distances, in [0, 2], for all pairs by one rule.
        similarity_vacuity: uncertainty of each query from its similarities, in (0, 1].
        distance_vacuity: the same from its distances.
        gamma_distance: 0.1 in the paper.
        gamma_similarity: 0.1 in the paper.

    Returns:
        Scores, higher is better, in [-2, 2].

    References:
        DUQ eq. 16, with the closing bracket that is missing in print.
    """
    factor = (-gamma_distance * distance_vacuity - gamma_similarity * similarity_vacuity).exp()
    return factor[:, None] * (1 - distance) * similarity


def candidate_bonus(
    vacuity: Float[Tensor, " candidates"], bank: Float[Tensor, "bank candidates"]
) -> Float[Tensor, " candidates"]:
    r"""What a candidate's uncertainty is worth, in units of the scores.

    .. math:: b_j = \mathrm{sd}(S^{bank}) \cdot \frac{u_j - \mathrm{mean}(u)}{\mathrm{sd}(u)}

    A hub, a video near to all queries, collects evidence from all of them and has a low vacuity.
    With evidence from cosines a **high** vacuity therefore marks a distinctive candidate, and the
    bonus is positive for it. Check that on validation data before turning to another evidence.

    Args:
        vacuity: uncertainty of each candidate over the bank, in (0, 1]: the vacuity of the
            transposed evidence of bank x candidates.
        bank: scores of a bank of queries, for instance the training texts. Never the queries under
            test: a score must not depend on what else is asked.

    Returns:
        Mean 0; all 0 where the candidates do not differ, or there is only one.

    Differs:
        The paper lowers the scores of uncertain items. For candidates that promotes the hubs.
    """
    spread = vacuity.std(correction=0)
    centred = vacuity - vacuity.mean()
    # Equal candidates leave a spread of rounding errors, which must not be blown up.
    alike = spread <= 8 * torch.finfo(vacuity.dtype).eps * vacuity.abs().amax()
    standard = torch.where(alike, 0, centred / torch.where(alike, 1, spread))
    return bank.std(correction=0) * standard


def rerank(
    scores: Float[Tensor, "queries candidates"],
    bonus: Float[Tensor, " candidates"],
    weight: float = 0.1,
) -> Float[Tensor, "queries candidates"]:
    """Scores with a share of each candidate's bonus added; weight 0 leaves them as they are.

    Args:
        scores: higher is better.
        bonus: what `candidate_bonus` gives for a bank of the same kind of scores.
        weight: share of the bonus, to be chosen on validation data; 0.1 to 0.3 are gentle.

    Examples:
        >>> rerank(torch.tensor([[0.5, 0.5]]), torch.tensor([-1.0, 1.0]))
        tensor([[0.4000, 0.6000]])
    """
    return scores + weight * bonus

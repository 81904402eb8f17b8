r"""Similarities as evidence, evidence as belief and vacuity, and a loss on both.

Evidence :math:`e \ge 0` for each of B candidates makes a Dirichlet distribution with parameters
:math:`\alpha = e + 1`. Its mean is the belief of a match, its lack of evidence the vacuity.
"""

from typing import Literal, NamedTuple, assert_never

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

EvidenceKind = Literal["relu", "softplus", "exp"]
Total = Literal["sum", "mean"]

_LARGEST = 30.0  # exponents beyond this are cut: e^30 is certainty, e^89 no number of 32 bits


class Opinion(NamedTuple):
    """What evidence amounts to. Vacuity and beliefs of a row have the sum 1.

    Attributes:
        belief: mass on each candidate, in [0, 1).
        vacuity: mass on none, in (0, 1]; 1 without any evidence.
    """

    belief: Float[Tensor, "*rows candidates"]
    vacuity: Float[Tensor, "*rows"]


def evidence(
    similarity: Float[Tensor, "*rows candidates"],
    kind: EvidenceKind = "relu",
    *,
    kappa: float | Float[Tensor, ""] = 1.0,
    offset: float | Float[Tensor, ""] = 0.0,
) -> Float[Tensor, "*rows candidates"]:
    r"""Evidence of similarities by the function named, of :math:`\kappa (s - m)`.

    With cosines and :math:`\kappa = 1`, as printed, evidence hardly exceeds 1 and one match cannot
    stand out against B candidates: for B = 32 the vacuity of the *ideal* matrix is 32/33, that of
    one in which everything matches everything 1/2. Vacuity is then high for distinctive queries and
    low for ambiguous ones, and the loss moves by no more than 6 % between none and perfect. With
    :math:`\kappa = 100` the ideal matrix has the vacuity 0.24.

    Args:
        similarity: any range.
        kind: function that makes the evidence: `relu_evidence`, `softplus_evidence` or
            `exp_evidence`, with their defaults.
        kappa: steepness, above 0.
        offset: m, the similarity at which evidence begins.
    """
    scaled = kappa * (similarity - offset)
    match kind:
        case "relu":
            return relu_evidence(scaled)
        case "softplus":
            return softplus_evidence(scaled)
        case "exp":
            return exp_evidence(scaled)
        case _:
            assert_never(kind)


def relu_evidence(similarity: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Positive similarities as they are, 0 for the others, which then get no gradient.

    References:
        DUQ, supplement, eq. A.
    """
    return functional.relu(similarity)


def softplus_evidence(
    similarity: Float[Tensor, "*n"], gamma: float = 1.0, threshold: float = 20.0
) -> Float[Tensor, "*n"]:
    r"""A smooth ReLU, :math:`\log(1 + e^{\gamma s}) / \gamma`, linear above the threshold.

    Args:
        similarity: any range.
        gamma: steepness, above 0.
        threshold: value of gamma s from which the function is s itself.

    References:
        DUQ, supplement, eq. B.
    """
    return functional.softplus(similarity, gamma, threshold)


def exp_evidence(similarity: Float[Tensor, "*n"], tau: float = 5.0) -> Float[Tensor, "*n"]:
    r"""Evidence :math:`e^{s / \tau}`, near 1 for every cosine at the paper's tau of 5.

    Args:
        similarity: any range.
        tau: temperature, above 0.

    References:
        DUQ, supplement, eq. C.

    Differs:
        Exponents are cut at 30, beyond which the sum of a row would overflow; no cosine comes near.
    """
    return (similarity / tau).clamp(max=_LARGEST).exp()


def opinion(evidence: Float[Tensor, "*rows candidates"]) -> Opinion:
    r"""Beliefs and vacuity from the evidence for each of B candidates.

    .. math:: b_j = e_j / S, \quad u = B / S, \quad S = \sum_j (e_j + 1), \quad u + \sum_j b_j = 1

    Vacuity depends on the number of candidates: those of two galleries compare only if these are of
    one size.

    Args:
        evidence: evidence for each candidate, at least 0; rows are the queries.

    References:
        DUQ eq. 2 and DUQ eq. 3.

    Differs:
        The released module returns 1 - u under the name of the uncertainty.

    Examples:
        >>> opinion(torch.tensor([2.0, 0.0]))
        Opinion(belief=tensor([0.5000, 0.0000]), vacuity=tensor(0.5000))
    """
    candidates = evidence.shape[-1]
    strength = evidence.sum(-1) + candidates
    return Opinion(evidence / strength[..., None], candidates / strength)


def evidential_rows(
    evidence: Float[Tensor, "rows candidates"], labels: Float[Tensor, "rows candidates"]
) -> Float[Tensor, " rows"]:
    r"""Expected squared error of each row's Dirichlet distribution: that of the mean, and variance.

    .. math:: L_i = \sum_j (y_{ij} - \hat p_{ij})^2
        + \frac{\hat p_{ij} (1 - \hat p_{ij})}{S_i + 1}, \quad
        \hat p_{ij} = \frac{e_{ij} + 1}{S_i}

    Args:
        evidence: evidence for each candidate, at least 0.
        labels: y. The p of a row have the sum 1, so labels with another sum leave a cost that no
            evidence can remove.

    Returns:
        The cost of each row, at least 0; for labels of sum 1 at most 2.

    References:
        DUQ eq. 6, the closed form of eq. 4 and 5.
    """
    alpha = evidence + 1
    strength = alpha.sum(-1, keepdim=True)
    mean = alpha / strength
    return ((labels - mean).square() + mean * (1 - mean) / (strength + 1)).sum(-1)


def evidential(
    evidence: Float[Tensor, "texts videos"],
    labels: Float[Tensor, "texts videos"] | None = None,
    *,
    total: Total = "sum",
) -> Float[Tensor, ""]:
    r"""The loss of `evidential_rows` for the texts, and for the videos on the transpose.

    .. math:: L = \frac1B \Big( \sum_i L_i + \sum_j L_j \Big)

    Args:
        evidence: evidence of each pair, at least 0; rows texts, columns videos.
        labels: y of the texts; their transpose holds for the videos. Without them, 1 on the
            diagonal and 0 elsewhere.
        total: ``sum`` of both directions as printed, or their ``mean``, half of it.

    References:
        DUQ eq. 7.

    Differs:
        The released code takes the mean of both directions.
    """
    if labels is None:
        rows, columns = evidence.shape
        labels = torch.eye(rows, columns, dtype=evidence.dtype, device=evidence.device)
    both = evidential_rows(evidence, labels).mean() + evidential_rows(evidence.T, labels.T).mean()
    match total:
        case "sum":
            return both
        case "mean":
            return 0.5 * both
        case _:
            assert_never(total)

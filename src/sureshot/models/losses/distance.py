"""Losses on a matrix of distances, where the matched pairs shall be the closest."""

from typing import Literal, assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from sureshot.models.losses.contrastive import info_nce
from sureshot.models.losses.evidential import EvidenceKind, Total, evidence, evidential
from sureshot.models.losses.negatives import Eta, weigh

Labels = Literal["matched", "unmatched", "unmatched_sum"]


def distance_loss(
    distance: Float[Tensor, "items items"], scale: float | Float[Tensor, ""], eta: Eta = None
) -> Float[Tensor, ""]:
    r"""Symmetric cross-entropy of picking the closest partner.

    .. math:: L = -\frac{1}{2B} \sum_i
        \log \frac{e^{-\lambda d_{ii}}}{\sum_j e^{-\lambda d_{ij}}}
        + \log \frac{e^{-\lambda d_{ii}}}{\sum_j e^{-\lambda d_{ji}}}

    At least 0, and satisfied once the matched pairs are closer by several times 1 / lambda. A batch
    of one pair costs 0.

    Args:
        distance: lower is better; rows texts, columns videos, matched on the diagonal.
        scale: lambda. A learned one gets no gradient from here: it belongs to the similarities.
        eta: how much each pair counts as a negative, see `sureshot.models.losses.negatives`.

    Differs:
        See `distance_loss_as_printed`, whose sign it puts right.
    """
    fixed = scale.detach() if isinstance(scale, Tensor) else scale
    return info_nce(-distance, fixed, eta=eta)


def distance_loss_as_printed(
    distance: Float[Tensor, "items items"], scale: float, eta: Eta = None
) -> Float[Tensor, ""]:
    r"""The paper's loss, whose logarithm has no minus and whose exponent none either.

    .. math:: L = \frac{1}{2B} \sum_i
        \log \frac{e^{\lambda d_{ii}}}{\sum_j e^{\lambda d_{ij}}}
        + \log \frac{e^{\lambda d_{ii}}}{\sum_j e^{\lambda d_{ji}}}

    Minimising it does bring matched pairs closer than others, but it is never satisfied: at most 0,
    it falls without end as they part, and its gradient is *largest* where they are parted already.
    A learned scale would run away for the same reason, so it is a fixed number here.

    Args:
        distance: lower is better; rows texts, columns videos, matched on the diagonal.
        scale: lambda.
        eta: how much each pair counts as a negative, see `sureshot.models.losses.negatives`.

    References:
        DUQ eq. 12.
    """
    return -info_nce(distance, scale, eta=eta)


def evidential_distance(
    distance: Float[Tensor, "items items"],
    labels: Labels = "matched",
    kind: EvidenceKind = "relu",
    *,
    kappa: float | Float[Tensor, ""] = 1.0,
    offset: float | Float[Tensor, ""] = 0.0,
    total: Total = "sum",
    eta: Eta = None,
) -> Float[Tensor, ""]:
    r"""The evidential loss of a matrix of cosine distances. A batch of one gives a finite number.

    Args:
        distance: cosine distances, in [0, 2]; matched on the diagonal.
        labels: what is evidence, and of what. ``unmatched_sum``, as printed: distance is evidence
            that a pair does *not* match, with the labels :math:`1 - I`. They have the sum B - 1
            while the mean of a Dirichlet distribution has the sum 1, so no matrix costs less than
            :math:`(B-2)^2 / (B-1)` in a direction: for B = 32 that is 29.03, where distances of 0
            cost 29.12 and the ideal ones 29.08. ``unmatched``: the same labels over B - 1.
            ``matched``: closeness :math:`1 - d` is evidence of a match, with the labels I, which
            trains the vacuity that a search reads.
        kind: kind of evidence, see `sureshot.models.losses.evidential.evidence`.
        kappa: steepness of the evidence.
        offset: distance, or closeness, at which evidence begins.
        total: ``sum`` of both directions or their ``mean``.
        eta: how much of the evidence of each pair that is not matched counts, see
            `sureshot.models.losses.negatives`.

    References:
        DUQ eq. 13, with ``unmatched_sum``.
    """
    items = len(distance)
    match labels:
        case "matched":
            found = evidence(1 - distance, kind, kappa=kappa, offset=offset)
            return evidential(weigh(found, eta), total=total)
        case "unmatched" | "unmatched_sum":
            target = 1 - torch.eye(items, dtype=distance.dtype, device=distance.device)
            if labels == "unmatched":
                target = target / max(items - 1, 1)
            found = evidence(distance, kind, kappa=kappa, offset=offset)
            return evidential(weigh(found, eta), target, total=total)
        case _:
            assert_never(labels)

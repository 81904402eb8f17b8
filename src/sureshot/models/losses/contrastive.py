"""Losses that ask each item to pick its partner from the batch.

A caption of another video may describe this one as well. Losses that push such pairs apart take
eta, rows texts and columns videos: 1 for a pair that surely does not match, 0 for one that may be a
right answer and is left alone. Matched pairs, on the diagonal, always count in full.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from sureshot.errors import SureshotError
from sureshot.models.shapes import Number, Scalar, Scores, Square, Vectors

Eta = Square | None


def weigh_logits(logits: Scores, eta: Eta) -> Scores:
    """Logits of which those of a negative count eta times in the sum of a softmax.

    Where eta is 0, no gradient reaches the logit.
    """
    if eta is None:
        return logits
    weights = _with_matched(eta)
    smallest = torch.finfo(weights.dtype).tiny  # its logarithm is a number and has a gradient
    return logits + weights.clamp(min=smallest).log().masked_fill(weights == 0, -torch.inf)


def weigh(values: Scores, eta: Eta) -> Scores:
    """Costs or evidence of pairs, those of a negative eta times."""
    return values if eta is None else _with_matched(eta) * values


def matched_pairs(items: Float[Tensor, "..."]) -> Bool[Tensor, "items items"]:
    """True on the diagonal of as many rows and columns as there are items."""
    return torch.eye(len(items), dtype=torch.bool, device=items.device)


def _with_matched(eta: Square) -> Square:
    """Eta with 1 for matched pairs."""
    return eta.masked_fill(matched_pairs(eta), 1)


Average = Literal["inside", "outside"]


def info_nce(similarity: Scores, scale: Number, eta: Eta = None) -> Scalar:
    r"""Symmetric cross-entropy of picking the partner: each text its video, each video its text.

    .. math:: L = -\frac1{2B} \sum_i \log \frac{e^{\lambda s_{ii}}}{\sum_j e^{\lambda s_{ij}}}
        + \log \frac{e^{\lambda s_{ii}}}{\sum_j e^{\lambda s_{ji}}}

    At least 0, and 0 in the limit of perfect separation. A batch of one pair costs 0.

    Args:
        similarity: higher is better, any range; matched on the diagonal.
        scale: lambda, 1 / temperature; 100 for CLIP.

    References:
        DUQ eq. 1; with ``eta`` DVTR eq. 13, which is printed for one direction.
    """
    if len(similarity) != similarity.shape[1]:
        raise SureshotError("{} texts and {} videos do not pair up.".format(*similarity.shape))
    logits = weigh_logits(scale * similarity, eta)
    return 0.5 * (_picking(logits) + _picking(logits.T))


def _picking(logits: Square) -> Scalar:
    """Mean cost of picking the own column of each row."""
    # Not a difference of two logsumexp: at scale 100 that leaves four digits in 32 bits.
    return (-logits.log_softmax(1).diagonal().contiguous()).mean()


def mil_nce(
    similarity: Float[Tensor, "items k items m"],
    scale: Number = 1.0,
    average: Average = "inside",
    eta: Eta = None,
) -> Scalar:
    r"""Each sample of an item picks any of its partner's samples from those of the whole batch.

    .. math:: L_{t \to v} = -\frac{1}{BK} \sum_{i,k} \log
        \frac{\sum_l e^{\lambda s(t_i^k, v_i^l)}}{\sum_{j,l} e^{\lambda s(t_i^k, v_j^l)}}

    and the same from the videos to the texts; the loss is the mean of the two.

    Args:
        scale: lambda. Cosines need one: with 1 and a batch of 64, matches at 1 and all others at -1
            still cost 2.25.
        average: where the positives are averaged. ``inside`` the logarithm, as printed: the least
            cost is 0, and one near sample is enough. ``outside``, as in the released code: every
            positive is wanted at the same time, and the least cost is log M (log K from the
            videos), never 0.

    References:
        UATVR eq. 11; DUQ, supplement, eq. G, is the same with cosines.

    Differs:
        The released code takes inner products of samples that are not normalised, without a scale.
    """
    logits = scale * similarity
    if eta is not None:
        logits = logits + weigh_logits(torch.zeros_like(eta), eta)[:, None, :, None]
    sides = logits, logits.permute(2, 3, 0, 1)
    return 0.5 * (_picking_own(sides[0], average) + _picking_own(sides[1], average))


def _picking_own(logits: Float[Tensor, "items k items m"], average: Average) -> Scalar:
    """Mean cost at which the samples of each item pick its partner's."""
    items, k, _, m = logits.shape
    shares = logits.reshape(items * k, items * m).log_softmax(1).view(logits.shape)
    # Only the partner's are added up: exponentials of -inf for all others take most of the time.
    own = shares.diagonal(dim1=0, dim2=2).movedim(1, -1)
    return -(own.logsumexp(-1) if average == "inside" else own).mean()


def key_nce(
    queries: Vectors,
    keys: Vectors,
    memory: Float[Tensor, "slots dim"],
    scale: Number,
    eta: Eta = None,
) -> Scalar:
    r"""Cross-entropy of picking the own key among those of the batch and of the memory.

    .. math:: L = -\frac1B \sum_i \log \frac{e^{\lambda q_i^\top k_i}}
        {\sum_j e^{\lambda q_i^\top k_j} + \sum_m e^{\lambda q_i^\top b_m}}

    At least 0; 0 for a batch of one and an empty memory. One direction only: the queries are of one
    side and the keys of the other.

    Args:
        keys: key i belongs to query i, the others are wrong answers. They get no gradient.
        memory: keys of earlier batches, all of them wrong answers; there may be none. No gradient.
        scale: lambda, 1 / temperature.
        eta: how much the key of each item of the batch counts as a negative of each query, rows
            queries; keys of the memory count in full.

    References:
        MoCo, He et al. 2020, eq. 1; HiT, Liu et al. 2021, section 3.3, which has one for each
        level and each direction.

    Differs:
        In MoCo only the own key and the memory are looked at. With the keys of the batch the loss
        is a contrastive one from the first step on, while the memory is still empty.
    """
    right = torch.arange(len(queries), device=queries.device)
    of_batch = weigh_logits(scale * queries @ keys.detach().T, eta)
    return cross_entropy(torch.cat([of_batch, scale * queries @ memory.detach().T], 1), right)

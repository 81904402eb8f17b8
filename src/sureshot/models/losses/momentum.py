"""The contrastive loss between queries of one network and keys of its slow copy."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from sureshot.models.losses.negatives import Eta, weigh_logits


def key_nce(
    queries: Float[Tensor, "items width"],
    keys: Float[Tensor, "items width"],
    memory: Float[Tensor, "slots width"],
    scale: float | Float[Tensor, ""],
    eta: Eta = None,
) -> Float[Tensor, ""]:
    r"""Cross-entropy of picking the own key among those of the batch and of the memory.

    .. math:: L = -\frac1B \sum_i \log \frac{e^{\lambda q_i^\top k_i}}
        {\sum_j e^{\lambda q_i^\top k_j} + \sum_m e^{\lambda q_i^\top b_m}}

    One direction only: the queries are of one side and the keys of the other.

    Args:
        queries: commonly unit vectors.
        keys: key i belongs to query i, the others are wrong answers. They get no gradient.
        memory: keys of earlier batches, all of them wrong answers; there may be none. No gradient.
        scale: lambda, 1 / temperature.
        eta: how much the key of each item of the batch counts as a negative of each query, rows
            queries; keys of the memory count in full.

    Returns:
        The loss, at least 0; 0 for a batch of one and an empty memory.

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

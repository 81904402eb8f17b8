"""How much each pair of a batch counts as a negative.

A caption of another video may describe this one as well. Losses that push such pairs apart take
eta, rows texts and columns videos: 1 for a pair that surely does not match, 0 for one that may be
a right answer and is left in peace. Matched pairs, on the diagonal, always count in full.

The equations stand at the losses: `info_nce` and `mil_margin`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Eta = Float[Tensor, "items items"] | None


def weigh_logits(logits: Float[Tensor, "texts videos"], eta: Eta) -> Float[Tensor, "texts videos"]:
    """Logits of which those of a negative count eta times in the sum of a softmax.

    Args:
        logits: one of each pair; with eta there are as many texts as videos, matched on the
            diagonal.
        eta: uncertainty of each pair in [0, 1]; None counts all in full. Where it is 0, no
            gradient reaches the logit.
    """
    if eta is None:
        return logits
    weights = _with_matched(eta)
    smallest = torch.finfo(weights.dtype).tiny  # its logarithm is a number and has a gradient
    return logits + weights.clamp(min=smallest).log().masked_fill(weights == 0, -torch.inf)


def weigh(values: Float[Tensor, "texts videos"], eta: Eta) -> Float[Tensor, "texts videos"]:
    """Costs or evidence of pairs, those of a negative eta times; arguments as above."""
    return values if eta is None else _with_matched(eta) * values


def _with_matched(eta: Float[Tensor, "items items"]) -> Float[Tensor, "items items"]:
    """Eta with 1 for matched pairs."""
    own = torch.eye(len(eta), dtype=torch.bool, device=eta.device)
    return eta.masked_fill(own, 1)

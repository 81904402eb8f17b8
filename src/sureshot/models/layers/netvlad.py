"""Tokens to one vector by what each adds to the centres it is near: NetVLAD."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize


class NetVlad(nn.Module):
    r"""Sums of differences to learned centres, over the tokens that lean to each.

    .. math:: V_k = \sum_n a_{nk}\,(x_n - c_k), \qquad a_n = \mathrm{softmax}_k(W x_n + b)

    each V_k at unit length, then all of them together.

    Args:
        dim: length of a token.
        clusters: K, centres.

    References:
        Arandjelović et al. 2016, section 3.1; the aggregation of CE, Liu et al. 2019, section 3.1.

    Differs:
        Both codes normalise a batch's assignments over the batch while they train, which lets the
        items of a batch see each other; here there is no such layer.
    """

    def __init__(self, dim: int, clusters: int) -> None:
        super().__init__()
        self.assign = nn.Linear(dim, clusters)
        self.centres = nn.Parameter(torch.randn(clusters, dim) / dim**0.5)

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch out"]:
        """One vector of K times ``dim`` numbers an item, at unit length.

        Args:
            tokens: what stands at padding has no influence.
            mask: True where a token is real; an item without any gives zeros.
        """
        padding = ~mask[..., None]
        tokens = tokens.masked_fill(padding, 0)
        shares = self.assign(tokens).softmax(-1).masked_fill(padding, 0)
        sums = torch.einsum("bnk,bnd->bkd", shares, tokens)
        sums = sums - shares.sum(1)[..., None] * self.centres
        return normalize(normalize(sums, dim=-1).flatten(1), dim=-1)

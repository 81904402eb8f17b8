"""Many tokens to fewer: those that lie together are merged, then look at the tokens they are of."""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.transformer import dividing

_NEIGHBOURS = 3  # that tell how crowded the place of a token is
_SPREAD = 0.02  # standard deviation of new weights in the attention, cut at a hundred of it
_NOTHING = 1e-6  # beside the weights of a cluster, as in the released code


class TokenMerging(nn.Module):
    r"""Half as many tokens, each the weighted mean of a cluster, after a look at all.

    .. math::
        x' = \mathrm{LN}(x + \mathrm{Conv}(x)), \quad e = w^\top x' + b, \quad
        y_c = \frac{\sum_{n \in c} e^{e_n} x'_n}{\sum_{n \in c} e^{e_n}}, \quad
        z = y + W_o\, \mathrm{softmax}\Big(\frac{q k^\top}{\sqrt d} + e\Big) v

    with clusters by `cluster`, a convolution over three neighbouring tokens, queries of
    :math:`\mathrm{LN}(y)`, and keys and values of :math:`\mathrm{LN}(x')`.

    Args:
        dim: length of a token.
        heads: attention heads; they divide ``dim``.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.

    References:
        TCFormer, Zeng et al. 2022, section 3.2 (clustering-based token merging), as the released
        code of DUQ has it.

    Differs:
        The released code breaks ties between tokens by a random draw, so that scores of videos
        with equal tokens differ from one run to the next; here the earlier token wins. It has no
        mask; here padding takes no part, and its length does not change the number of clusters.
    """

    def __init__(self, dim: int, heads: int = 8) -> None:
        super().__init__()
        self.heads = dividing(dim, heads)
        self.conv = nn.Conv1d(dim, dim, kernel_size=3, padding=1, bias=False)
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, 1)
        self.norm_attention = nn.LayerNorm(dim)
        self.queries = nn.Linear(dim, dim)
        self.keys_values = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        for layer in (self.queries, self.keys_values, self.out):
            nn.init.trunc_normal_(layer.weight, std=_SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(
        self, tokens: Float[Tensor, "items tokens dim"], mask: Bool[Tensor, "items tokens"]
    ) -> tuple[Float[Tensor, "items clusters dim"], Bool[Tensor, "items clusters"]]:
        """Merged tokens and which of them are real: half of an item's own, rounded up.

        Args:
            tokens: what stands at padding has no influence.
            mask: True where a token is real; real ones come first, and every item has at least one.
        """
        tokens = tokens.masked_fill(~mask[..., None], 0)
        tokens = self.norm(tokens + self.conv(tokens.transpose(1, 2)).transpose(1, 2))
        logits = self.score(tokens).squeeze(-1)
        place, real = cluster(tokens.detach(), mask)
        weights = logits.exp().masked_fill(~mask, 0)
        member = functional.one_hot(place, real.shape[1]).to(tokens.dtype) * weights[..., None]
        shares = member / (member.sum(1, keepdim=True) + _NOTHING)
        merged = torch.einsum("bnc,bnd->bcd", shares, tokens)
        keys, values = self.keys_values(self.norm_attention(tokens)).chunk(2, dim=-1)
        bias = logits.masked_fill(~mask, -torch.inf)[:, None, None]
        seen = functional.scaled_dot_product_attention(
            self._by_head(self.queries(self.norm_attention(merged))),
            self._by_head(keys),
            self._by_head(values),
            attn_mask=bias.expand(-1, -1, merged.shape[1], -1),
        )
        return merged + self.out(seen.transpose(1, 2).flatten(-2)), real

    def _by_head(self, rows: Float[Tensor, "items tokens dim"]) -> Float[Tensor, "..."]:
        return torch.unflatten(rows, -1, (self.heads, -1)).transpose(1, 2)


@torch.no_grad()
def cluster(
    tokens: Float[Tensor, "items tokens dim"], mask: Bool[Tensor, "items tokens"]
) -> tuple[Int64[Tensor, "items tokens"], Bool[Tensor, "items clusters"]]:
    r"""The cluster of each token, by density peaks among nearest neighbours.

    Centres are tokens in crowded places that are far from any more crowded one: the half of an
    item's tokens, rounded up, with the largest :math:`\rho_n \delta_n`, where

    .. math:: \rho_n = \exp\Big(-\frac13 \sum_{m \in \mathrm{NN}(n)} d_{nm}^2\Big), \qquad
        \delta_n = \min_{m: \rho_m > \rho_n} d_{nm}

    and NN are the three nearest tokens, itself among them. The other tokens join the nearest
    centre.

    Args:
        tokens: finite at padding too.
        mask: True where a token is real; every item has at least one.

    Returns:
        The number of each token's cluster, which means nothing at padding, and which clusters are
        real: the first of each item.

    References:
        DPC-KNN, Du et al. 2016.
    """
    count = mask.sum(1)
    distance = torch.cdist(tokens, tokens) / tokens.shape[2] ** 0.5
    both = mask[:, None] & mask[..., None]
    farthest = distance.masked_fill(~both, 0).amax((1, 2))[:, None, None]
    distance = distance.masked_fill(~both, torch.inf)
    near = distance.topk(min(_NEIGHBOURS, tokens.shape[1]), largest=False).values
    near = near.masked_fill(near.isinf(), 0)
    density = (-near.square().sum(-1) / count.clamp(max=_NEIGHBOURS)[:, None]).exp()
    density = density.masked_fill(~mask, -1)
    # More crowded: denser, or as dense and earlier.
    earlier = torch.ones_like(both[0]).tril(-1)
    denser = density[:, None] > density[..., None]
    denser |= (density[:, None] == density[..., None]) & earlier
    apart = torch.where(denser, distance, farthest).amin(-1)
    score = (apart * density).masked_fill(~mask, -torch.inf)
    clusters = math.ceil(int(count.max()) / 2)
    centres = score.topk(clusters).indices
    real = torch.arange(clusters, device=mask.device) < ((count + 1) // 2)[:, None]
    to_centres = distance.gather(1, centres[..., None].expand(-1, -1, tokens.shape[1]))
    place = to_centres.masked_fill(~real[..., None], torch.inf).argmin(1)
    # A centre belongs to itself, even where another lies at the same place.
    own = torch.arange(clusters, device=mask.device).expand_as(centres)
    own = torch.where(real, own, place.gather(1, centres))
    return place.scatter(1, centres, own), real

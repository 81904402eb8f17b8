"""Local tokens and a global feature to one vector that stands for the whole item."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.linear import linear, xavier
from sureshot.models.layers.pooling import TanhPooling, WeightedPooling
from sureshot.models.layers.transformer import Block

Residual = Literal["single", "double"]


class LocalAggregation(nn.Module):
    r"""DUQ's local feature aggregation: tokens and global feature look at each other, then pool.

    .. math::
        x = [\,g;\ l_1 \dots l_N\,], \qquad x' = x + \mathrm{Block}(x), \qquad
        z = \mathrm{LN}\big(\mathrm{MLP}(\textstyle\sum_n a_n x'_n)\big)

    with weights a as in `WeightedPooling` and Linear(D, 2D)-ReLU-Linear(2D, D) as the MLP.

    Args:
        dim: length of a token.
        heads: attention heads; they divide ``dim``.
        residual: ``double`` is the formula above, as the released code has it: the block adds its
            input already, so x enters twice. ``single`` is :math:`x' = \mathrm{Block}(x)`.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.

    References:
        DUQ, section 3.3 and figure 2. The paper gives no sizes; these are the released code's.

    Differs:
        The released code hands its tokens to an attention that takes the first axis for the
        sequence, so items of a batch look at each other and none looks at its own tokens: an
        item's vector changes with its company. Here attention runs over the tokens of one item.
        The released code also has no mask: padding takes part.
    """

    def __init__(self, dim: int, heads: int = 8, residual: Residual = "double") -> None:
        super().__init__()
        self.residual = residual
        self.block = Block(dim, heads)
        self.pool = WeightedPooling(dim)
        self.mlp = nn.Sequential(linear(dim, 2 * dim), nn.ReLU(), linear(2 * dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(
        self,
        whole: Float[Tensor, "batch dim"],
        tokens: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch dim"]:
        """One vector an item.

        Args:
            whole: the global feature: a sentence, or a pooled video.
            tokens: words, frames or patches; what stands at padding has no influence.
            mask: True where a token is real. An item may have none: the global feature remains.
        """
        tokens = torch.cat([whole[:, None], tokens.masked_fill(~mask[..., None], 0)], dim=1)
        mask = functional.pad(mask, (1, 0), value=True)
        seen = self.block(tokens, mask)
        if self.residual == "double":
            seen = tokens + seen
        return self.norm(self.mlp(self.pool(seen, mask)))


class PieAggregation(nn.Module):
    r"""The global feature, nudged by what attention finds in the tokens.

    .. math:: z = \mathrm{LN}\big(g + \sigma(W \textstyle\sum_n a_n x_n + b)\big), \qquad
        a = \mathrm{softmax}_n(w_2^\top \tanh(W_1 x_n))

    Args:
        dim: length of a token.
        hidden: width of the attention: half of ``dim`` in UATVR, twice ``dim`` in DUQ.
        whole: length of the global feature; None is ``dim``.

    References:
        PVSE, Song and Soleymani 2019, section 3.1, which UATVR and the first releases of DUQ's code
        take over through PCME.

    Differs:
        Both codes pass no mask, so that padding takes part.
    """

    def __init__(self, dim: int, hidden: int, whole: int | None = None) -> None:
        super().__init__()
        whole = whole or dim
        self.pool = TanhPooling(dim, hidden)
        self.linear = xavier(dim, whole)
        self.norm = nn.LayerNorm(whole)

    def forward(
        self,
        whole: Float[Tensor, "batch whole"],
        tokens: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch whole"]:
        """One vector an item.

        Args:
            whole: the global feature: a sentence, or a pooled video.
            tokens: words or frames; what stands at padding has no influence.
            mask: True where a token is real; every item has at least one.
        """
        return self.norm(whole + torch.sigmoid(self.linear(self.pool(tokens, mask))))


class PieDeviation(nn.Module):
    r"""Logarithm of the standard deviation that goes with `PieAggregation`.

    .. math:: \log \sigma = W \textstyle\sum_n a_n x_n + V g + b

    with an attention of its own.

    Args:
        dim: length of a token.
        hidden: width of the attention.

    References:
        PCME, Chun et al. 2021, section 3.2; UATVR and the first releases of DUQ's code use it.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.pool = TanhPooling(dim, hidden)
        self.linear = xavier(dim, dim)
        self.linear_whole = xavier(dim, dim)

    def forward(
        self,
        whole: Float[Tensor, "batch dim"],
        tokens: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch dim"]:
        """Arguments as those of `PieAggregation`; the natural logarithm of the deviation."""
        return self.linear(self.pool(tokens, mask)) + self.linear_whole(whole)

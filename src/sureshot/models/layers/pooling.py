"""Tokens to one vector an item, without looking at the other side: ``(tokens, mask) -> pooled``."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.linear import linear, xavier
from sureshot.models.layers.transformer import Block


def mean_of_units(
    frames: Float[Tensor, "videos frames dim"], mask: Bool[Tensor, "videos frames"]
) -> Float[Tensor, "videos dim"]:
    r"""Unit vector along the mean of each video's frames, every frame brought to unit length first.

    .. math:: v = \frac{m}{\lVert m \rVert}, \qquad
        m = \frac{1}{|F|} \sum_{f \in F} \frac{x_f}{\lVert x_f \rVert}

    Args:
        frames: frame vectors of any length; what stands at padding has no influence.
        mask: True where a frame is real.

    Returns:
        Unit vectors; zero for a video without a real frame, or whose frames cancel out.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3 (mean pooling).

    Differs:
        A video without a real frame gives NaN in the released code.

    Examples:
        >>> frames = torch.tensor([[[3.0, 0.0], [0.0, 5.0], [9.0, 9.0]]])
        >>> mean_of_units(frames, torch.tensor([[True, True, False]]))
        tensor([[0.7071, 0.7071]])
    """
    units = functional.normalize(frames.masked_fill(~mask[..., None], 0), dim=-1)
    return functional.normalize(masked_mean(units, mask), dim=-1)


def masked_mean(
    tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch dim"]:
    """Mean of each item's real tokens; zero where there is none."""
    total = tokens.masked_fill(~mask[..., None], 0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


class WeightedPooling(nn.Module):
    r"""Mean of tokens weighted by what an MLP thinks of each.

    .. math:: v = \sum_f a_f x_f, \qquad
        a = \mathrm{softmax}_f\big(w_2^\top \mathrm{ReLU}(W_1 x_f + b_1) + b_2\big)

    Args:
        dim: length of a token; the hidden layer is twice as wide.

    References:
        DUQ, supplement, figure 1 (MLP). The paper gives no sizes; these are the released code's.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.worth = nn.Sequential(linear(dim, 2 * dim), nn.ReLU(), linear(2 * dim, 1))

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch dim"]:
        """Pooled vectors, not normalised.

        Args:
            tokens: frames or words; what stands at padding has no influence.
            mask: True where a token is real; every item has at least one.
        """
        tokens = tokens.masked_fill(~mask[..., None], 0)
        return torch.einsum("bn,bnd->bd", token_shares(self.worth, tokens, mask), tokens)


class TanhPooling(WeightedPooling):
    r"""Mean of tokens with weights :math:`\mathrm{softmax}_n(w_2^\top \tanh(W_1 x_n))`.

    Args:
        dim: length of a token.
        hidden: rows of W₁.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        nn.Module.__init__(self)
        self.worth = nn.Sequential(
            xavier(dim, hidden, bias=False), nn.Tanh(), xavier(hidden, 1, bias=False)
        )


def token_shares(
    worth: nn.Module, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch tokens"]:
    """What each real token of an item counts, with sum 1: the softmax of what it is worth.

    Args:
        worth: network that gives one number a token.
        tokens: what is weighed; what stands at padding has no influence.
        mask: True where a token is real; every item has at least one.
    """
    return worth(tokens).squeeze(-1).masked_fill(~mask, -torch.inf).softmax(-1)


class SelfAttentionPooling(nn.Module):
    """One transformer block over the frames, then their mean.

    Args:
        dim: length of a frame's vector.
        heads: attention heads; they divide ``dim``.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.

    References:
        DUQ, supplement, figure 1 (SA).
    """

    def __init__(self, dim: int, heads: int = 8) -> None:
        super().__init__()
        self.block = Block(dim, heads)

    def forward(
        self, frames: Float[Tensor, "videos frames dim"], mask: Bool[Tensor, "videos frames"]
    ) -> Float[Tensor, "videos dim"]:
        """Pooled vectors, not normalised.

        Args:
            frames: what stands at padding has no influence.
            mask: True where a frame is real; every video has at least one.
        """
        return masked_mean(self.block(frames.masked_fill(~mask[..., None], 0), mask), mask)

"""Transformer over the tokens of one video or one text."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.errors import SureshotError
from sureshot.models.layers.linear import embedding, linear


class Block(nn.Module):
    r"""One transformer block that normalises before each of its two parts.

    .. math::
        y = x + \mathrm{Attention}(\mathrm{LN}(x)), \qquad
        \mathrm{Block}(x) = y + \mathrm{MLP}(\mathrm{LN}(y))

    The MLP is four times as wide as the tokens and bends with QuickGELU, as in CLIP.

    Args:
        dim: length of a token.
        heads: attention heads; they divide ``dim``.
        eps: what the layer norms add to a variance.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.

    References:
        CLIP, Radford et al. 2021, section 2.4.
    """

    def __init__(self, dim: int, heads: int = 8, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.heads = dividing(dim, heads)
        self.norm_attention = nn.LayerNorm(dim, eps=eps)
        self.queries_keys_values = linear(dim, 3 * dim)
        self.out = linear(dim, dim)
        self.norm_mlp = nn.LayerNorm(dim, eps=eps)
        self.widen = linear(dim, 4 * dim)
        self.narrow = linear(4 * dim, dim)

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """Tokens that have looked at the real tokens of their own item, and at no other item.

        Args:
            tokens: finite at padding too.
            mask: True where a token is real; every item has at least one.

        Returns:
            One token for each; those at padding mean nothing.
        """
        tokens = tokens + self._attend(self.norm_attention(tokens), mask)
        return tokens + self.narrow(quick_gelu(self.widen(self.norm_mlp(tokens))))

    def _attend(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens dim"]:
        split = self.queries_keys_values(tokens).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask[:, None, None, :]
        )
        return self.out(seen.transpose(1, 2).flatten(-2))


class Transformer(nn.Module):
    """Blocks one after another.

    Args:
        dim: length of a token.
        layers: how many blocks.
        heads: attention heads of each; they divide ``dim``.
        eps: what the layer norms add to a variance.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.
    """

    def __init__(self, dim: int, layers: int = 4, heads: int = 8, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim, heads, eps=eps) for _ in range(layers))

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """Tokens after all blocks; ``tokens`` and ``mask`` as `Block` takes them."""
        for block in self.blocks:
            tokens = block(tokens, mask)
        return tokens


class SequentialTransformer(nn.Module):
    r"""A transformer over frames in their order, added to the frames themselves.

    .. math:: y_n = x_n + \mathrm{Transformer}(x + p)_n

    With ``extra`` tokens, learned vectors that belong to no frame are appended: they look at the
    frames, are looked at, and come back after the frames, without a residual.

    The transformer is handed in rather than made here, so that a video's and a text's module, each
    with positions of its own, can share one.

    Args:
        transformer: the blocks. CLIP4Clip has four, with eight heads and ``eps`` 1e-12.
        dim: length of a token.
        positions: longest sequence.
        extra: learned tokens appended to every sequence.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3 (sequential type, "seqTransf"). UATVR, Fang et al.
        2023, section 3.2, for the extra tokens and for sharing the transformer.

    Differs:
        The released code of UATVR takes the extra tokens from the rows of the position table that
        follow the padded length, so that they change with the padding; here they have their own.
        Padding is masked by -inf where both codes add -1e6, which weighs the same: nothing.
    """

    def __init__(
        self, transformer: Transformer, dim: int, positions: int = 77, *, extra: int = 0
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.positions = embedding(positions, dim)
        self.extra = embedding(extra, dim) if extra else None

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch all_tokens dim"]:
        """Tokens that know their place and their neighbours, then the extra ones.

        Args:
            tokens: frames or words in their order. What stands at padding has no influence.
            mask: True where a token is real; every item has at least one unless there are extra
                tokens.

        Returns:
            ``tokens`` plus what the transformer says of them, zero at padding; then the extra
            tokens. `cover` gives the mask that goes with them.

        Raises:
            SureshotError: more tokens than positions.
        """
        count, known = tokens.shape[1], self.positions.num_embeddings
        if count > known:
            raise SureshotError(
                f"A sequence of {count} tokens is longer than the {known} positions this model "
                f"knows; sample at most {known}, or build it with more positions."
            )
        padding = ~mask[..., None]
        tokens = tokens.masked_fill(padding, 0)
        placed = tokens + self.positions.weight[:count]
        if self.extra is not None:
            appended = self.extra.weight.expand(len(tokens), -1, -1)
            placed = torch.cat([placed, appended], dim=1)
        seen = self.transformer(placed, self.cover(mask))
        own = (tokens + seen[:, :count]).masked_fill(padding, 0)
        return torch.cat([own, seen[:, count:]], dim=1)

    def cover(self, mask: Bool[Tensor, "batch tokens"]) -> Bool[Tensor, "batch all_tokens"]:
        """``mask`` extended over the extra tokens, which are always real."""
        extra = 0 if self.extra is None else self.extra.num_embeddings
        return functional.pad(mask, (0, extra), value=True)


def dividing(dim: int, heads: int) -> int:
    """``heads``, if they divide ``dim``.

    Raises:
        SureshotError: they do not.
    """
    if heads < 1 or dim % heads:
        raise SureshotError(
            f"{heads} attention heads do not divide tokens of length {dim}; choose a divisor."
        )
    return heads


def quick_gelu(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""CLIP's approximation of GELU, :math:`x \, \sigma(1.702 x)`."""
    return values * torch.sigmoid(1.702 * values)

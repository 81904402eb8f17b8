"""Transformer over the tokens of one video or one text."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.errors import SureshotError
from sureshot.models.shapes import Mask, Tokens

_SPREAD = 0.02  # standard deviation of new weights in CLIP and in everything built on it


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with weights from N(0, 0.02²) and biases of zero."""
    layer = nn.Linear(inputs, outputs)
    draw_linear(layer)
    return layer


def xavier(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and biases of zero, as in PVSE and PCME."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def draw_linear(module: nn.Module) -> None:
    """Draw all linear layers within a module again: weights from N(0, 0.02²), biases of zero."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=_SPREAD)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def draw_as_torch(module: nn.Module) -> None:
    """Draw all linear layers within a module as torch does by default; those of attentions too.

    An attention of torch has queries, keys and values by Glorot's rule, and biases of zero.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
            if name.endswith("queries_keys_values"):
                nn.init.xavier_uniform_(layer.weight)
            if name.endswith(("queries_keys_values", "block.out")):
                nn.init.zeros_(layer.bias)


def identity(dim: int) -> nn.Linear:
    """A linear layer that starts by passing its input on unchanged."""
    layer = nn.Linear(dim, dim)
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(rows: int, dim: int) -> nn.Embedding:
    """A table of learned vectors drawn from N(0, 0.02²)."""
    table = nn.Embedding(rows, dim)
    nn.init.normal_(table.weight, std=_SPREAD)
    return table


def places(positions: nn.Embedding, count: int) -> Float[Tensor, "count dim"]:
    """The first rows of a table of positions, as many as there are tokens."""
    known = positions.num_embeddings
    if count > known:
        raise SureshotError(
            f"A sequence of {count} tokens is longer than the {known} positions this model knows; "
            f"sample at most {known}, or train it with a higher system.longest."
        )
    return positions.weight[:count]


class Block(nn.Module):
    r"""One transformer block that normalises before each of its two parts.

    .. math::
        y = x + \mathrm{Attention}(\mathrm{LN}(x)), \qquad
        \mathrm{Block}(x) = y + \mathrm{MLP}(\mathrm{LN}(y))

    The MLP is four times as wide as the tokens and bends with QuickGELU, as in CLIP.

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

    def forward(self, tokens: Tokens, mask: Mask) -> Tokens:
        """Tokens that have looked at the real ones of their own item; padding means nothing."""
        tokens = tokens + self._attend(self.norm_attention(tokens), mask)
        return tokens + self.narrow(quick_gelu(self.widen(self.norm_mlp(tokens))))

    def _attend(self, tokens: Tokens, mask: Mask) -> Tokens:
        split = self.queries_keys_values(tokens).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask[:, None, None, :]
        )
        return self.out(seen.transpose(1, 2).flatten(-2))


class Transformer(nn.Module):
    """Blocks one after another."""

    def __init__(self, dim: int, layers: int = 4, heads: int = 8, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim, heads, eps=eps) for _ in range(layers))

    def forward(self, tokens: Tokens, mask: Mask) -> Tokens:
        """Tokens after all blocks."""
        for block in self.blocks:
            tokens = block(tokens, mask)
        return tokens


class SequentialTransformer(nn.Module):
    r"""A transformer over frames in their order, added to the frames themselves.

    .. math:: y_n = x_n + \mathrm{Transformer}(x + p)_n

    Args:
        transformer: the blocks, which a video's and a text's module may share. CLIP4Clip has four,
            with eight heads and ``eps`` 1e-12.
        extra: learned tokens appended to every sequence: they look at the frames, are looked at,
            and come back after the frames, without a residual.

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

    def forward(self, tokens: Tokens, mask: Mask) -> Float[Tensor, "items all_tokens dim"]:
        """Tokens plus what the transformer says of them, zero at padding; then the extra ones.

        `cover` gives the mask that goes with them.
        """
        count, padding = tokens.shape[1], ~mask[..., None]
        tokens = tokens.masked_fill(padding, 0)
        placed = tokens + places(self.positions, count)
        if self.extra is not None:
            appended = self.extra.weight.expand(len(tokens), -1, -1)
            placed = torch.cat([placed, appended], dim=1)
        seen = self.transformer(placed, self.cover(mask))
        own = (tokens + seen[:, :count]).masked_fill(padding, 0)
        return torch.cat([own, seen[:, count:]], dim=1)

    def cover(self, mask: Mask) -> Bool[Tensor, "items all_tokens"]:
        """``mask`` extended over the extra tokens, which are always real."""
        extra = 0 if self.extra is None else self.extra.num_embeddings
        return functional.pad(mask, (0, extra), value=True)


def dividing(dim: int, heads: int) -> int:
    """``heads``, if they divide ``dim``."""
    if heads < 1 or dim % heads:
        raise SureshotError(
            f"{heads} attention heads do not divide tokens of length {dim}; choose a divisor."
        )
    return heads


def quick_gelu(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""CLIP's approximation of GELU, :math:`x \, \sigma(1.702 x)`."""
    return values * torch.sigmoid(1.702 * values)


_SAME = {  # ours to that of the transformers library
    "norm_attention": "layer_norm1",
    "out": "self_attn.out_proj",
    "norm_mlp": "layer_norm2",
    "widen": "mlp.fc1",
    "narrow": "mlp.fc2",
}
_POSITIONS = "embeddings.position_embedding.weight"


def start_from_clip(module: SequentialTransformer, text: Mapping[str, Tensor]) -> None:
    """Copy CLIP's text positions, and its first text blocks, into a module that is not trained yet.

    Extra tokens are left as they are, and so are positions beyond CLIP's last.

    Args:
        text: as from ``CLIPModel.text_model.state_dict()`` of the transformers library.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3.
    """
    places_from_clip(module.positions, text)
    blocks_from_clip(module.transformer, text)


@torch.no_grad()
def places_from_clip(table: nn.Embedding, text: Mapping[str, Tensor], first: int = 0) -> None:
    """Copy CLIP's text positions from the one of this number on, as many as both have."""
    count = max(min(table.num_embeddings, len(text.get(_POSITIONS, ())) - first), 0)
    rows = table.weight[:count]
    rows.copy_(_like(rows, text, _POSITIONS, slice(first, first + count)))


def blocks_from_clip(transformer: Transformer, text: Mapping[str, Tensor]) -> None:
    """Copy CLIP's first text blocks into a transformer."""
    for number, block in enumerate(transformer.blocks):
        assert isinstance(block, Block)
        block_from_clip(block, text, number)


@torch.no_grad()
def block_from_clip(block: Block, text: Mapping[str, Tensor], number: int = 0) -> None:
    """Copy CLIP's text block of this number into a block."""
    prefix = f"encoder.layers.{number}."
    for kind in ("weight", "bias"):
        for ours, theirs in _SAME.items():
            parameter = block.get_submodule(ours).get_parameter(kind)
            parameter.copy_(_like(parameter, text, f"{prefix}{theirs}.{kind}"))
        packed = block.queries_keys_values.get_parameter(kind)
        for part, letter in zip(packed.chunk(3), "qkv", strict=True):
            part.copy_(_like(part, text, f"{prefix}self_attn.{letter}_proj.{kind}"))


def _like(ours: Tensor, text: Mapping[str, Tensor], name: str, rows: slice = slice(None)) -> Tensor:
    """CLIP's weight of that name, or rows of it, if it fits."""
    if name not in text:
        fewer = "" if name == _POSITIONS else "fewer blocks, or "
        raise SureshotError(f"This CLIP's text model has no {name}; choose {fewer}another CLIP.")
    theirs = text[name][rows]
    if theirs.shape != ours.shape:
        raise SureshotError(
            f"CLIP's {name} has the shape {tuple(theirs.shape)} where the model has "
            f"{tuple(ours.shape)}; build the model with CLIP's text width and no more positions."
        )
    return theirs

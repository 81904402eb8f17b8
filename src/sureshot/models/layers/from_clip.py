"""Starting weights for a sequential transformer from CLIP's text side."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sureshot.errors import SureshotError
from sureshot.models.layers.transformer import Block, SequentialTransformer, Transformer

_SAME = {  # ours to that of the transformers library
    "norm_attention": "layer_norm1",
    "out": "self_attn.out_proj",
    "norm_mlp": "layer_norm2",
    "widen": "mlp.fc1",
    "narrow": "mlp.fc2",
}
_POSITIONS = "embeddings.position_embedding.weight"


@torch.no_grad()
def start_from_clip(module: SequentialTransformer, text: Mapping[str, Tensor]) -> None:
    """Copy CLIP's text positions, and its first text blocks, into a module that is not trained yet.

    CLIP4Clip starts its transformer over frames from blocks that know sentences. Extra tokens are
    left as they are, and so are positions beyond CLIP's last.

    Args:
        module: takes as many positions and blocks as it has.
        text: weights of a text model of the transformers library, by the names they have within
            it, as from ``CLIPModel.text_model.state_dict()``.

    Raises:
        SureshotError: CLIP has fewer blocks, or vectors of another length.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3.
    """
    places_from_clip(module.positions, text)
    blocks_from_clip(module.transformer, text)


@torch.no_grad()
def places_from_clip(table: nn.Embedding, text: Mapping[str, Tensor], first: int = 0) -> None:
    """Copy CLIP's text positions from the one of this number on, as many as both have."""
    count = max(min(table.num_embeddings, len(text[_POSITIONS]) - first), 0)
    rows = table.weight[:count]
    rows.copy_(_like(rows, text, _POSITIONS, slice(first, first + count)))


@torch.no_grad()
def blocks_from_clip(transformer: Transformer, text: Mapping[str, Tensor]) -> None:
    """Copy CLIP's first text blocks into a transformer; arguments as for `start_from_clip`."""
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
        raise SureshotError(
            f"This CLIP's text model has no {name}; choose fewer blocks, or another CLIP."
        )
    theirs = text[name][rows]
    if theirs.shape != ours.shape:
        raise SureshotError(
            f"CLIP's {name} has the shape {tuple(theirs.shape)} where the model has "
            f"{tuple(ours.shape)}; build the model with CLIP's text width and no more positions."
        )
    return theirs

"""What a system reads: the features of texts and videos as tensors."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sureshot.encoders.features import TextFeatures, VideoFeatures


class TextTokens(NamedTuple):
    """Texts: a sentence vector each, padded word tokens, and a mask, True where one is real."""

    sentence: Float[Tensor, "texts dim"]
    words: Float[Tensor, "texts words dim"]
    mask: Bool[Tensor, "texts words"]


class VideoTokens(NamedTuple):
    """Videos: padded frame tokens, their cells and backbone features, and a mask of real frames."""

    frames: Float[Tensor, "videos frames dim"]
    patches: Float[Tensor, "videos frames patches dim"]
    backbone: Float[Tensor, "videos frames channels"]
    mask: Bool[Tensor, "videos frames"]


class Sizes(NamedTuple):
    """Sizes of an encoder's features: of the shared space and of the backbone."""

    dim: int
    channels: int


def text_tokens(features: TextFeatures, device: str | torch.device = "cpu") -> TextTokens:
    """Features of texts as 32-bit tensors on a device."""
    return TextTokens(
        torch.from_numpy(features.sentence).float().to(device),
        torch.from_numpy(features.words).float().to(device),
        torch.from_numpy(features.mask).to(device),
    )


def video_tokens(features: VideoFeatures, device: str | torch.device = "cpu") -> VideoTokens:
    """Features of videos as 32-bit tensors on a device."""
    return VideoTokens(
        torch.from_numpy(features.frames).float().to(device),
        torch.from_numpy(features.patches).float().to(device),
        torch.from_numpy(features.backbone).float().to(device),
        torch.from_numpy(features.mask).to(device),
    )


def without_first(mask: Bool[Tensor, "texts words"]) -> Bool[Tensor, "texts words"]:
    """A mask without the first word, an encoder's start of a sentence; of one word, with it."""
    first = torch.zeros(1, dtype=torch.long, device=mask.device)
    rest = mask.index_fill(1, first, False)
    return rest | (mask & ~rest.any(1, keepdim=True))

"""What a system reads: the features of texts and videos as tensors."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.encoders.protocol import TextFeatures, VideoFeatures


class TextTokens(NamedTuple):
    """Texts: a sentence vector each, padded word tokens, and a mask, True where one is real.

    Sentences are as long as the encoder gives them; only where it does not say, at unit length.
    """

    sentence: Float[Tensor, "texts dim"]
    words: Float[Tensor, "texts words dim"]
    mask: Bool[Tensor, "texts words"]


class _Videos(NamedTuple):
    frames: Float[Tensor, "videos frames dim"]
    patches: Float[Tensor, "videos frames patches dim"]
    backbone: Float[Tensor, "videos frames channels"]
    mask: Bool[Tensor, "videos frames"]
    experts: Float[Tensor, "videos rows size"]
    which: Bool[Tensor, "videos rows experts"]


class VideoTokens(_Videos):
    """Videos: padded frame tokens, their cells and backbone features, and a mask of real frames.

    Experts that were extracted beforehand come as rows below each other, whichever expert they are
    of, as `sureshot.models.encoders.experts.pack` has them: ``which`` is True where a row is real
    and of that expert. Left out, there are none.
    """

    __slots__ = ()

    def __new__(
        cls,
        frames: Tensor,
        patches: Tensor,
        backbone: Tensor,
        mask: Tensor,
        experts: Tensor | None = None,
        which: Tensor | None = None,
    ) -> "VideoTokens":
        """Tokens of these tensors, whose shapes are those of the fields."""
        if experts is None or which is None:
            experts, which = frames.new_zeros(len(frames), 0, 0), mask.new_zeros(len(mask), 0, 0)
        return super().__new__(cls, frames, patches, backbone, mask, experts, which)


class Sizes(NamedTuple):
    """What the features of videos are like.

    Attributes:
        dim: size of the space shared with texts.
        channels: size of the backbone features.
        experts: the experts extracted beforehand, in the order of their tokens.
        cells: whether frames come with their cells.
    """

    dim: int
    channels: int
    experts: ExpertSizes = ()
    cells: bool = True


def text_tokens(features: TextFeatures, device: str | torch.device = "cpu") -> TextTokens:
    """Features of texts as 32-bit tensors on a device."""
    sentence = torch.from_numpy(features.sentence).float()
    if features.length is not None:
        sentence = sentence * torch.from_numpy(features.length).float()[:, None]
    return TextTokens(
        sentence.to(device),
        torch.from_numpy(features.words).float().to(device),
        torch.from_numpy(features.mask).to(device),
    )


def video_tokens(features: VideoFeatures, device: str | torch.device = "cpu") -> VideoTokens:
    """Features of videos as 32-bit tensors on a device."""
    experts, which = features.experts, features.which
    return VideoTokens(
        torch.from_numpy(features.frames).float().to(device),
        torch.from_numpy(features.patches).float().to(device),
        torch.from_numpy(features.backbone).float().to(device),
        torch.from_numpy(features.mask).to(device),
        None if experts is None else torch.from_numpy(experts).float().to(device),
        None if which is None else torch.from_numpy(which).to(device),
    )


def without_first(mask: Bool[Tensor, "texts words"]) -> Bool[Tensor, "texts words"]:
    """A mask without the first word, an encoder's start of a sentence; of one word, with it."""
    first = torch.zeros(1, dtype=torch.long, device=mask.device)
    rest = mask.index_fill(1, first, False)
    return rest | (mask & ~rest.any(1, keepdim=True))

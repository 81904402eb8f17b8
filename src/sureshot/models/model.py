r"""From an encoder's features to the space a system works in.

The published systems start from a CLIP, whose texts and frames share a space already; there the
stem passes them on (``kind = "none"``). An encoder whose two halves were trained apart, such as the
bundled one, needs a map for each first (``kind = "linear"``), which is trained with the system:

.. math:: t' = W_t\,d(\sqrt{D}\,t), \quad w' = W_w\,d(n(w)), \quad f' = W_f\,d([n(f), n(b)])

with n a layer norm without weights, d dropout, f a frame in the encoder's space and b its backbone
features.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import nn
from torch.nn.functional import normalize

from sureshot.models.encoders.base import Cells
from sureshot.models.layers.pooling import standard
from sureshot.models.systems.base import Codes, Sizes, System, TextTokens, VideoTokens
from sureshot.settings import Ranged, Within


@dataclass(frozen=True, slots=True)
class StemConfig(Ranged):
    """How features reach a system: ``linear`` maps the encoder's vectors, ``none`` passes them."""

    key: ClassVar[str] = "stem"

    kind: Literal["none", "linear"] = "none"
    width: Annotated[int, Within(1, 100_000)] = 512  # that a linear stem maps to
    dropout: Annotated[float, Within(0, 0.99)] = 0.3  # share of the input features, in training
    backbone: bool = True  # whether a frame's backbone features are read, too
    words: bool = True  # whether word tokens are mapped; a system that reads none saves weights


class Stem(nn.Module):
    """Maps features into the space of a system; ``sizes`` are those of what it gives."""

    def __init__(self, config: StemConfig, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        # A linear map drops cells, but neither backbone nor experts.
        mapped = sizes._replace(dim=config.width, cells=False)
        self.sizes = sizes if config.kind == "none" else mapped
        if config.kind == "none":
            return
        self.dropout = nn.Dropout(config.dropout)
        self.sentence = nn.Linear(sizes.dim, config.width)
        self.word = nn.Linear(sizes.dim, config.width) if config.words else None
        self.frame = nn.Linear(sizes.dim + config.backbone * sizes.channels, config.width)

    def texts(self, tokens: TextTokens) -> TextTokens:
        """Texts in the system's space; padding words are zero."""
        if self.config.kind == "none":
            return tokens
        # Unit vectors are brought to unit variance, in which the weights' first values make sense.
        sentence = normalize(tokens.sentence, dim=-1) * tokens.sentence.shape[-1] ** 0.5
        words = tokens.words[..., :0].expand(-1, -1, 0)
        if self.word is not None:
            words = self.word(self.dropout(standard(tokens.words)))
            words = torch.where(tokens.mask[..., None], words, 0.0)
        return TextTokens(self.sentence(self.dropout(sentence)), words, tokens.mask)

    def videos(self, tokens: VideoTokens) -> VideoTokens:
        """Videos in the system's space, without patches; padding frames are zero."""
        if self.config.kind == "none":
            return tokens
        parts = [standard(tokens.frames)]
        if self.config.backbone and tokens.backbone.shape[-1]:
            parts.append(standard(tokens.backbone))
        frames = self.frame(self.dropout(torch.cat(parts, -1)))
        frames = torch.where(tokens.mask[..., None], frames, 0.0)
        return tokens._replace(frames=frames, patches=frames.new_zeros(*frames.shape[:2], 0, 0))


class Model(nn.Module):
    """An encoder's features in, codes out."""

    def __init__(self, stem: Stem, system: System) -> None:
        super().__init__()
        self.stem = stem
        self.system = system

    @property
    def cells(self) -> Cells:
        """Which patches of frames it reads."""
        return self.system.cells if self.stem.sizes.cells else "none"

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of texts."""
        return self.system.texts(self.stem.texts(tokens))

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        return self.system.videos(self.stem.videos(tokens))


@contextlib.contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, and back to the mode that the module was in."""
    was = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was)

"""CLIP4Clip (Luo et al. 2021): a video is the mean of its frames.

Or of what a transformer makes of them in their order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from torch import Tensor

from sureshot.models.layers.pooling import mean_of_units, unit
from sureshot.models.layers.transformer import SequentialTransformer, Transformer, start_from_clip
from sureshot.models.shapes import Frames, Scores
from sureshot.models.systems.base import Codes, Scale, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within


@dataclass(frozen=True, slots=True)
class Clip4ClipConfig(SystemConfig):
    """Settings of CLIP4Clip.

    Attributes:
        temporal: ``mean`` (meanP of the paper) or ``transformer`` (seqTransf).
        heads: attention heads of the transformer; CLIP's text network has one for 64 numbers.
    """

    temporal: Literal["mean", "transformer"] = "mean"
    layers: Annotated[int, Within(1, 100)] = 4
    heads: Annotated[int, Within(1, 1000)] = 8
    longest: Annotated[int, Within(1, 100_000)] = 77  # most frames the transformer can place
    scale: Scale = None


class TemporalSystem(System):
    """A system of sentences and frames, which may go through a transformer in their order first.

    Args:
        config: settings, with those of `Clip4ClipConfig` among them.
    """

    reads_words = False
    frozen = "embeddings"

    def __init__(self, config: Any, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.temporal = None
        if config.temporal == "transformer":
            blocks = Transformer(width, config.layers, config.heads, eps=1e-12)
            self.temporal = SequentialTransformer(blocks, width, config.longest)

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Start the transformer from CLIP's first text blocks, and its places from CLIP's."""
        if self.temporal is not None:
            start_from_clip(self.temporal, text)

    def frames(self, tokens: VideoTokens) -> Frames:
        """Frames as the transformer makes them, if there is one."""
        return tokens.frames if self.temporal is None else self.temporal(tokens.frames, tokens.mask)


class Clip4Clip(TemporalSystem):
    """CLIP4Clip without parameters (mean pooling) or with its sequential transformer."""

    Config = Clip4ClipConfig

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence at unit length."""
        return {"sentence": unit(tokens.sentence)}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The pooled video at unit length."""
        return {"video": mean_of_units(self.frames(tokens), tokens.mask)}

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Cosine of the sentence and the pooled video."""
        return texts["sentence"] @ videos["video"].T

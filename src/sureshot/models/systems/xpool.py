"""X-Pool (Gorti et al. 2022): every text pools a video's frames by its own attention."""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.layers.pooling import (
    CrossAttentionPooling,
    SelfAttentionPooling,
    WeightedPooling,
    fast_scores,
    mean_of_units,
    scores_direct,
    unit,
)
from sureshot.models.shapes import Scores, Texts
from sureshot.models.systems.base import Codes, Scale, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within

Pooling = Literal["mean", "mlp", "self_attention", "cross_attention"]


class PooledSimilarity(nn.Module):
    """Cosine of a text and of a video's pooled frames.

    Args:
        pooling: ``mean``, ``mlp`` and ``self_attention`` give a video one vector for all texts;
            ``cross_attention`` pools it again for each.
        dropout: share of ``cross_attention``'s last layer that training drops.

    References:
        DUQ, supplement, figure 1: Mean, MLP, SA, CA.
    """

    def __init__(self, pooling: Pooling, width: int, *, dropout: float = 0.3) -> None:
        super().__init__()
        self.pool: nn.Module | None = None
        match pooling:
            case "mlp":
                self.pool = WeightedPooling(width)
            case "self_attention":
                self.pool = SelfAttentionPooling(width)
            case "cross_attention":
                self.pool = CrossAttentionPooling(width, dropout)

    def videos(self, tokens: VideoTokens) -> Codes:
        """What a score needs of videos, and ``video``, their unit vector without any text."""
        mean = mean_of_units(tokens.frames, tokens.mask)
        if isinstance(self.pool, CrossAttentionPooling):
            return {"video": mean, "frames": tokens.frames, "mask": tokens.mask}
        if self.pool is None:
            return {"video": mean}
        return {"video": unit(self.pool(tokens.frames, tokens.mask))}

    def forward(self, texts: Texts, videos: Codes) -> Scores:
        """Cosines of sentences, not normalised, in [-1, 1]."""
        if not isinstance(self.pool, CrossAttentionPooling):
            return unit(texts) @ videos["video"].T
        frames, mask = videos["frames"], videos["mask"]
        # The fast form has no place for dropout, and gradients as well as scores without it.
        if self.training and self.pool.dropout.p > 0:
            return scores_direct(self.pool, texts, frames, mask)
        return fast_scores(self.pool, texts, frames, mask)

    def paired(
        self, texts: Float[Tensor, "pairs dim"], videos: Codes
    ) -> Float[Tensor, "pairs dim"]:
        """Unit vector of video i as text i sees it."""
        if not isinstance(self.pool, CrossAttentionPooling):
            return videos["video"]
        return unit(self.pool.paired(texts, videos["frames"], videos["mask"]))


class PooledSystem(System):
    """A system whose texts are sentences as they are, and whose videos are pooled frames."""

    pooled: PooledSimilarity

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence as it is."""
        return {"sentence": tokens.sentence}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The mean of the frames, each at unit length, and the frames for texts to look at."""
        return self.pooled.videos(tokens)

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Cosine of each text with each video as that text pools it."""
        return self.pooled(texts["sentence"], videos)

    def seen_vectors(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs dim"]:
        """Video i as text i pools it."""
        return self.pooled.paired(texts["sentence"], videos)


@dataclass(frozen=True, slots=True)
class XPoolConfig(SystemConfig):
    """Settings of X-Pool.

    Attributes:
        dropout: share of the layer behind the attention that training drops; 0.3 in the paper, 0.4
            on small data sets.
    """

    dropout: Annotated[float, Within(0, 0.99)] = 0.3
    scale: Scale = None


class XPool(PooledSystem):
    """X-Pool."""

    Config = XPoolConfig

    reads_words = False

    def __init__(self, config: XPoolConfig, width: int) -> None:
        super().__init__(config.scale)
        self.pooled = PooledSimilarity("cross_attention", width, dropout=config.dropout)

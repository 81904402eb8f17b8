"""X-Pool (Gorti et al. 2022): every text pools a video's frames by its own attention."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sureshot.models.losses.contrastive import info_nce
from sureshot.models.losses.negatives import Eta
from sureshot.models.systems.pooled import PooledSimilarity
from sureshot.models.systems.system import Codes, System, unit
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.settings import within


@dataclass(frozen=True, slots=True)
class XPoolConfig:
    """Settings of X-Pool.

    Attributes:
        dropout: share of the layer behind the attention that training drops; 0.3 in the paper, 0.4
            on small data sets.
        scale: first value of the logit scale; None is CLIP's own where a CLIP is trained too, and
            100 otherwise.
    """

    dropout: float = 0.3
    scale: float | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        within("system.dropout", self.dropout, 0, 0.99)
        within("system.scale", 100 if self.scale is None else self.scale, 0.01, 100)


class XPool(System):
    """X-Pool.

    Args:
        config: its settings.
        width: size of the vectors it reads.
    """

    Config = XPoolConfig

    weights: Mapping[str, float] = {"similarity": 1.0}
    reads_words = False

    def __init__(self, config: XPoolConfig, width: int) -> None:
        super().__init__(config.scale)
        self.pooled = PooledSimilarity("cross_attention", width, dropout=config.dropout)

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence as it is: its length enters the attention's layer norm only."""
        return {"sentence": tokens.sentence}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The frames, for texts to look at."""
        return self.pooled.videos(tokens)

    def similarity(self, texts: Codes, videos: Codes) -> Float[Tensor, "texts videos"]:
        """Cosine of each text with each video as that text pools it."""
        return self.pooled(texts["sentence"], videos)

    def losses(
        self,
        texts: Codes,
        videos: Codes,
        generator: torch.Generator | None = None,
        eta: Eta = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """The symmetric contrastive loss."""
        del generator
        return {"similarity": info_nce(self.similarity(texts, videos), self.scale, eta=eta)}

    def text_vectors(self, texts: Codes) -> Float[Tensor, "texts width"]:
        """The sentence at unit length."""
        return unit(texts["sentence"])

    def video_vectors(self, videos: Codes) -> Float[Tensor, "videos width"]:
        """The mean of the frames, each at unit length."""
        return videos["video"]

    def seen_vectors(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs width"]:
        """Video i as text i pools it."""
        return self.pooled.paired(texts["sentence"], videos)

"""X-Pool (Gorti et al. 2022): every text pools a video's frames by its own attention."""

from dataclasses import dataclass
from typing import Annotated

from sureshot.models.systems.pooled import PooledSimilarity, PooledSystem
from sureshot.models.systems.system import Scale, SystemConfig
from sureshot.settings import Within


@dataclass(frozen=True, slots=True)
class XPoolConfig(SystemConfig):
    """Settings of X-Pool.

    Attributes:
        dropout: share of the layer behind the attention that training drops; 0.3 in the paper, 0.4
            on small data sets.
        scale: first value of the logit scale; None is CLIP's own where a CLIP is trained too, and
            100 otherwise.
    """

    dropout: Annotated[float, Within(0, 0.99)] = 0.3
    scale: Scale = None


class XPool(PooledSystem):
    """X-Pool.

    Args:
        config: its settings.
        width: size of the vectors it reads.
    """

    Config = XPoolConfig

    reads_words = False

    def __init__(self, config: XPoolConfig, width: int) -> None:
        super().__init__(config.scale)
        self.pooled = PooledSimilarity("cross_attention", width, dropout=config.dropout)

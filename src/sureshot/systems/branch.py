"""The part of DUQ that makes a Gaussian of a sentence and its words, or a video and its frames."""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from sureshot.gaussian import Gaussian
from sureshot.layers.aggregation import LocalAggregation, PieAggregation
from sureshot.layers.distribution import GaussianHead

Aggregation = Literal["attention", "pie"]


class Branch(nn.Module):
    """From a global feature and local tokens to a Gaussian.

    Args:
        width: size of a token.
        aggregation: of the tokens, see `sureshot.layers.aggregation`.
        literal: as printed, see `sureshot.layers.distribution.GaussianHead`; the ``attention`` then
            has the double residual of the released code.
    """

    def __init__(self, width: int, aggregation: Aggregation, *, literal: bool) -> None:
        super().__init__()
        self.aggregate = (
            LocalAggregation(width, residual="double" if literal else "single")
            if aggregation == "attention"
            else PieAggregation(width, 2 * width)
        )
        self.head = GaussianHead(width, literal=literal)

    def forward(
        self,
        whole: Float[Tensor, "items width"],
        tokens: Float[Tensor, "items tokens width"],
        mask: Bool[Tensor, "items tokens"],
    ) -> Gaussian:
        """One Gaussian an item; what stands at padding has no influence."""
        gaussian: Gaussian = self.head(self.aggregate(whole, tokens, mask))
        return gaussian

"""From a feature to a Gaussian: where an item lies, and how far it may lie from there."""

import math
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.gaussian import Gaussian
from sureshot.models.layers.aggregation import (
    LocalAggregation,
    PieAggregation,
    PieDeviation,
)
from sureshot.models.layers.linear import draw_linear, identity, linear
from sureshot.models.layers.pooling import TanhPooling

_LEAST = 1e-6  # variance


class GaussianHead(nn.Module):
    r"""Mean and spread of an item from its aggregated feature z, both linear in z.

    .. math:: p(z \mid x) = \mathcal{N}\big(h^\mu(z),\ \mathrm{diag}(e^{2 h^\sigma(z)})\big)

    By default the mean starts as z itself and has unit length, and the noise of a sample starts
    about as long as the mean: a standard deviation of :math:`1/\sqrt{D}` in each dimension.

    Args:
        dim: length of the feature.
        init_log_var: logarithm of the variance to start from; -ln ``dim`` unless given. In literal
            mode it starts from 0.
        literal: whether to follow the print: two plain linear layers, with no length imposed on
            the mean.

    References:
        DUQ eq. 8.

    Differs:
        The equation has :math:`e^{h^\sigma}` where a Gaussian has its variance, the paper's
        sampling multiplies noise by it. We read it as the deviation: the head's output is doubled
        in literal mode, and otherwise is the logarithm of the variance itself.

        As printed, the spread starts from one in each dimension, so a sample of 512 dimensions is
        23 long where its mean is one: it says nothing about the item. The released code has no
        head for the mean, which is z at unit length, and gives the spread a layer norm, which
        makes the noise longer still. ``literal`` follows the print.
    """

    def __init__(
        self, dim: int, *, init_log_var: float | None = None, literal: bool = False
    ) -> None:
        super().__init__()
        self.literal = literal
        self.mean = linear(dim, dim) if literal else identity(dim)
        self.spread = linear(dim, dim)
        if not literal:
            start = -math.log(dim) if init_log_var is None else init_log_var
            nn.init.constant_(self.spread.bias, start)

    def forward(self, features: Float[Tensor, "batch dim"]) -> Gaussian:
        """One Gaussian an item, with a unit mean unless literal."""
        mean, spread = self.mean(features), self.spread(features)
        if self.literal:
            return Gaussian(mean=mean, log_var=2 * spread)
        return Gaussian(mean=functional.normalize(mean, dim=-1), log_var=spread)


class PieGaussianHead(nn.Module):
    """Mean and spread by attention over the tokens, as in UATVR and the first releases of DUQ.

    Args:
        dim: length of a token.
        hidden: width of the attentions: half of ``dim`` in UATVR, twice ``dim`` in DUQ.
        init_log_var: added to the logarithm of the variance from the start; 0 as in both codes, and
            -ln ``dim`` for noise about as long as the mean.
        xavier: how linear layers start: by Xavier's rule as in PCME, or from N(0, 0.02²) as in
            UATVR, whose code draws them once more after that.

    References:
        PCME, Chun et al. 2021, section 3.2.
    """

    def __init__(
        self, dim: int, hidden: int, *, init_log_var: float = 0.0, xavier: bool = True
    ) -> None:
        super().__init__()
        self.mean = PieAggregation(dim, hidden)
        self.deviation = PieDeviation(dim, hidden)
        if not xavier:
            draw_linear(self)
        nn.init.constant_(self.deviation.linear.bias, init_log_var / 2)

    def forward(
        self,
        whole: Float[Tensor, "batch dim"],
        tokens: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Gaussian:
        """One Gaussian an item, with a unit mean.

        Args:
            whole: the global feature: a sentence, or a pooled video.
            tokens: words or frames; what stands at padding has no influence.
            mask: True where a token is real; every item has at least one.
        """
        mean = functional.normalize(self.mean(whole, tokens, mask), dim=-1)
        return Gaussian(mean=mean, log_var=2 * self.deviation(whole, tokens, mask))


class HierarchicalGaussianHead(nn.Module):
    r"""Mean and variance from a global feature g and local tokens l, as in DVTR.

    .. math:: \mu = \mathrm{LN}\big(g + \sigma(W_\mu\,\mathrm{Attn}_\mu(l))\big), \qquad
        \Sigma = \zeta\big(W_\Sigma\,(g + \mathrm{Attn}_\Sigma(l))\big)

    with an attention pooling each, `sureshot.models.layers.pooling.TanhPooling`, and softplus
    as zeta.

    Args:
        dim: length of a token.
        whole: length of the global feature and of the Gaussian. Where it is another than ``dim``,
            the pooled tokens of the variance are brought to it by one more linear layer.
        literal: whether to follow the print: the mean as long as the layer norm makes it,
            :math:`\sqrt D`, and variances that start near 0.7. Otherwise the mean has unit length
            and noise starts about as long as it.

    References:
        DVTR eq. 3 and DVTR eq. 4 for videos, DVTR eq. 5 and DVTR eq. 6 for texts.

    Differs:
        In print the variance is a linear function, of which the next equation takes the root: no
        number where it is negative. Softplus, and 1e-6 more, keep it above 0 in both forms. The
        paper does not say how its self-attention becomes one vector, nor how deep its MLPs are:
        here attention pooling and one layer.
    """

    def __init__(self, dim: int, whole: int, *, literal: bool = False) -> None:
        super().__init__()
        self.literal = literal
        self.mean = PieAggregation(dim, max(dim // 2, 1), whole)
        self.pool = TanhPooling(dim, max(dim // 2, 1))
        self.fit: nn.Module = nn.Identity() if whole == dim else linear(dim, whole)
        self.variance = linear(whole, whole)
        if not literal:
            nn.init.constant_(self.variance.bias, math.log(math.expm1(1 / whole)))

    def forward(
        self,
        whole: Float[Tensor, "batch whole"],
        tokens: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Gaussian:
        """One Gaussian an item, with a unit mean unless literal.

        Args:
            whole: the global feature.
            tokens: words or frames; what stands at padding has no influence.
            mask: True where a token is real; every item has at least one.
        """
        mean = self.mean(whole, tokens, mask)
        variance = (
            functional.softplus(self.variance(whole + self.fit(self.pool(tokens, mask)))) + _LEAST
        )
        if not self.literal:
            mean = functional.normalize(mean, dim=-1)
        return Gaussian(mean=mean, log_var=variance.log())


Aggregation = Literal["attention", "pie"]


class Branch(nn.Module):
    """From a global feature and local tokens to a Gaussian.

    Args:
        width: size of a token.
        aggregation: how the tokens are aggregated, see `sureshot.models.layers.aggregation`.
        literal: whether to follow the print, see `GaussianHead`; the ``attention`` then has the
            double residual of the released code.
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

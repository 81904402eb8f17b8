r"""Diagonal Gaussians: an item as a distribution of vectors, and how far two of them are apart.

Spread is held as the logarithm of the variance and nothing else, so the deviation is
``exp(log_var / 2)`` everywhere: in sampling, in every divergence and in every distance.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.pooling import TanhPooling, WeightedPooling
from sureshot.models.layers.transformer import Block, draw_linear, identity, linear, xavier
from sureshot.models.shapes import Mask, Tokens, Vectors


class Gaussian(NamedTuple):
    """Items as normal distributions whose dimensions are independent."""

    mean: Float[Tensor, "*n d"]
    log_var: Float[Tensor, "*n d"]  # natural logarithm of the variance of each dimension


def gaussian_of(codes: Mapping[str, Tensor]) -> Gaussian:
    """The Gaussians among the codes of texts or videos, ``mean`` and ``log_var``."""
    return Gaussian(codes["mean"], codes["log_var"])


def draw_noise(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "..."]:
    """Standard normal numbers, on the device of the generator they are drawn from."""
    return torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)


def sample(gaussian: Gaussian, noise: Float[Tensor, "*n k d"]) -> Float[Tensor, "*n k d"]:
    r"""K vectors of each item, through which gradients reach its mean and its spread.

    .. math:: z^k = \mu + e^{\log\sigma^2 / 2} \, \epsilon^k

    Args:
        noise: standard normal numbers, K vectors for each item.

    References:
        DUQ eq. 9; the distribution is that of eq. 8.

    Differs:
        The released code takes one tensor for the deviation here and for the logarithm of the
        variance in the divergence. Its sampling comes with ``log_var = 2 * theirs``.
    """
    return gaussian.mean.unsqueeze(-2) + _deviation(gaussian).unsqueeze(-2) * noise


def draw_samples(
    gaussian: Gaussian, count: int, generator: torch.Generator | None = None
) -> Float[Tensor, "items k d"]:
    """K random vectors of each item; a seed gives the same on any device."""
    items, dim = gaussian.mean.shape
    # Drawn on the processor.
    noise = draw_noise((items, count, dim), generator or torch.default_generator)
    return sample(gaussian, noise.to(gaussian.mean))


def kl_to_prior(gaussian: Gaussian, prior_log_var: float = 0.0) -> Float[Tensor, "*n"]:
    r"""Kullback-Leibler divergence of each item from the prior N(0, v I), in nats.

    .. math:: \frac12 \sum_d \frac{\sigma_d^2 + \mu_d^2}{v} - 1 - \log\frac{\sigma_d^2}{v}

    At least 0, and 0 only for the prior itself.

    Args:
        prior_log_var: log v. 0 is the papers' N(0, I), whose samples have length :math:`\sqrt D`:
            next to a mean of length 1 they are nearly pure noise. ``-log(D)`` gives them length 1.

    References:
        DUQ eq. 14; the same term is in UATVR eq. 12.

    Differs:
        The released codes put the mean of a few samples for the mean, sum over the batch (so that
        the weight of the term grows with it), and read the logarithm of the deviation as that of
        the variance.

    Examples:
        >>> kl_to_prior(Gaussian(torch.tensor([[0.0, 2.0]]), torch.zeros(1, 2)))
        tensor([2.])
    """
    ratio = gaussian.log_var - prior_log_var
    # expm1(r) - r keeps its digits where the spread is close to the prior's.
    return 0.5 * (ratio.expm1() - ratio + gaussian.mean.square() * math.exp(-prior_log_var)).sum(-1)


def kl_between(p: Gaussian, q: Gaussian) -> Float[Tensor, "*n"]:
    r"""Divergence KL(p || q) of each item from its partner, in nats, at least 0.

    .. math:: \frac12 \sum_d \frac{\sigma_d^2 + (\mu_d - \mu'_d)^2}{\sigma'^2_d} - 1
        - \log\frac{\sigma_d^2}{\sigma'^2_d}
    """
    ratio = p.log_var - q.log_var
    apart = (p.mean - q.mean).square() * (-q.log_var).exp()
    return 0.5 * (ratio.expm1() - ratio + apart).sum(-1)


def wasserstein2(p: Gaussian, q: Gaussian) -> Float[Tensor, "*n"]:
    r"""Squared 2-Wasserstein distance of each item to its partner, at least 0.

    .. math:: \lVert \mu - \mu' \rVert^2 + \lVert \sigma - \sigma' \rVert^2
    """
    spread = (_deviation(p) - _deviation(q)).square()
    return ((p.mean - q.mean).square() + spread).sum(-1)


def shrunk_mean(gaussian: Gaussian) -> Float[Tensor, "*n d"]:
    """Means divided by the root mean square length of their samples."""
    power = gaussian.mean.square().sum(-1) + gaussian.log_var.exp().sum(-1)
    return gaussian.mean / power.sqrt()[..., None]


def _deviation(gaussian: Gaussian) -> Float[Tensor, "*n d"]:
    return (0.5 * gaussian.log_var).exp()


class LocalAggregation(nn.Module):
    r"""DUQ's local feature aggregation: tokens and global feature look at each other, then pool.

    .. math::
        x = [\,g;\ l_1 \dots l_N\,], \qquad x' = x + \mathrm{Block}(x), \qquad
        z = \mathrm{LN}\big(\mathrm{MLP}(\textstyle\sum_n a_n x'_n)\big)

    with weights a as in `WeightedPooling` and Linear(D, 2D)-ReLU-Linear(2D, D) as the MLP.

    Args:
        doubled: whether x enters twice, as above and in the released code, since the block adds it
            already; else :math:`x' = \mathrm{Block}(x)`.

    References:
        DUQ, section 3.3 and figure 2. The paper gives no sizes; these are the released code's.

    Differs:
        The released code hands its tokens to an attention that takes the first axis for the
        sequence, so items of a batch look at each other and none looks at its own tokens: an
        item's vector changes with its company. Here attention runs over the tokens of one item.
        The released code also has no mask: padding takes part.
    """

    def __init__(self, dim: int, heads: int = 8, *, doubled: bool = True) -> None:
        super().__init__()
        self.doubled = doubled
        self.block = Block(dim, heads)
        self.pool = WeightedPooling(dim)
        self.mlp = nn.Sequential(linear(dim, 2 * dim), nn.ReLU(), linear(2 * dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, whole: Vectors, tokens: Tokens, mask: Mask) -> Vectors:
        """One vector an item."""
        tokens = torch.cat([whole[:, None], tokens.masked_fill(~mask[..., None], 0)], dim=1)
        mask = functional.pad(mask, (1, 0), value=True)
        seen = self.block(tokens, mask)
        return self.norm(self.mlp(self.pool(tokens + seen if self.doubled else seen, mask)))


class PieAggregation(nn.Module):
    r"""The global feature, nudged by what attention finds in the tokens.

    .. math:: z = \mathrm{LN}\big(g + \sigma(W \textstyle\sum_n a_n x_n + b)\big), \qquad
        a = \mathrm{softmax}_n(w_2^\top \tanh(W_1 x_n))

    Args:
        hidden: rows of W₁: half of ``dim`` in UATVR, twice ``dim`` in DUQ.
        whole: length of the global feature; None is ``dim``.

    References:
        PVSE, Song and Soleymani 2019, section 3.1, which UATVR and the first releases of DUQ's code
        take over through PCME.

    Differs:
        Both codes pass no mask, so that padding takes part.
    """

    def __init__(self, dim: int, hidden: int, whole: int | None = None) -> None:
        super().__init__()
        whole = whole or dim
        self.pool = TanhPooling(dim, hidden)
        self.linear = xavier(dim, whole)
        self.norm = nn.LayerNorm(whole)

    def forward(
        self, whole: Float[Tensor, "items whole"], tokens: Tokens, mask: Mask
    ) -> Float[Tensor, "items whole"]:
        """One vector an item."""
        return self.norm(whole + torch.sigmoid(self.linear(self.pool(tokens, mask))))


class PieDeviation(nn.Module):
    r"""Logarithm of the standard deviation that goes with `PieAggregation`.

    .. math:: \log \sigma = W \textstyle\sum_n a_n x_n + V g + b

    with an attention of its own.

    References:
        PCME, Chun et al. 2021, section 3.2; UATVR and the first releases of DUQ's code use it.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.pool = TanhPooling(dim, hidden)
        self.linear = xavier(dim, dim)
        self.linear_whole = xavier(dim, dim)

    def forward(self, whole: Vectors, tokens: Tokens, mask: Mask) -> Vectors:
        """The natural logarithm of the deviation of each dimension."""
        return self.linear(self.pool(tokens, mask)) + self.linear_whole(whole)


_LEAST = 1e-6  # variance


class GaussianHead(nn.Module):
    r"""Mean and spread of an item from its aggregated feature z, both linear in z.

    .. math:: p(z \mid x) = \mathcal{N}\big(h^\mu(z),\ \mathrm{diag}(e^{2 h^\sigma(z)})\big)

    By default the mean starts as z itself and has unit length, and the noise of a sample starts
    about as long as the mean: a standard deviation of :math:`1/\sqrt{D}` in each dimension.

    Args:
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

    def __init__(self, dim: int, *, literal: bool = False) -> None:
        super().__init__()
        self.literal = literal
        self.mean = linear(dim, dim) if literal else identity(dim)
        self.spread = linear(dim, dim)
        if not literal:
            nn.init.constant_(self.spread.bias, -math.log(dim))

    def forward(self, features: Vectors) -> Gaussian:
        """One Gaussian an item, with a unit mean unless literal."""
        mean, spread = self.mean(features), self.spread(features)
        if self.literal:
            return Gaussian(mean=mean, log_var=2 * spread)
        return Gaussian(mean=functional.normalize(mean, dim=-1), log_var=spread)


class PieGaussianHead(nn.Module):
    """Mean and spread by attention over the tokens, as in UATVR and the first releases of DUQ.

    Args:
        init_log_var: added to the logarithm of the variance from the start; 0 as in both codes, and
            -ln ``dim`` for noise about as long as the mean.
        xavier: whether linear layers start by Xavier's rule as in PCME; else from N(0, 0.02²) as in
            UATVR, whose code draws them once more after that.

    References:
        PCME, Chun et al. 2021, section 3.2.
    """

    def __init__(self, dim: int, *, init_log_var: float, xavier: bool = True) -> None:
        super().__init__()
        hidden = max(dim // 2, 1)  # rows of the attentions' W₁, as in UATVR
        self.mean = PieAggregation(dim, hidden)
        self.deviation = PieDeviation(dim, hidden)
        if not xavier:
            draw_linear(self)
        nn.init.constant_(self.deviation.linear.bias, init_log_var / 2)

    def forward(self, whole: Vectors, tokens: Tokens, mask: Mask) -> Gaussian:
        """One Gaussian an item, with a unit mean."""
        mean = functional.normalize(self.mean(whole, tokens, mask), dim=-1)
        return Gaussian(mean=mean, log_var=2 * self.deviation(whole, tokens, mask))


class HierarchicalGaussianHead(nn.Module):
    r"""Mean and variance from a global feature g and local tokens l, as in DVTR.

    .. math:: \mu = \mathrm{LN}\big(g + \sigma(W_\mu\,\mathrm{Attn}_\mu(l))\big), \qquad
        \Sigma = \zeta\big(W_\Sigma\,(g + \mathrm{Attn}_\Sigma(l))\big)

    with a `TanhPooling` each and softplus as zeta.

    Args:
        whole: length of the global feature and of the Gaussian. Where it is another than ``dim``,
            one more linear layer brings the pooled tokens of the variance to it.
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

    def forward(self, whole: Float[Tensor, "items whole"], tokens: Tokens, mask: Mask) -> Gaussian:
        """One Gaussian an item, with a unit mean unless literal."""
        mean = self.mean(whole, tokens, mask)
        spread = self.variance(whole + self.fit(self.pool(tokens, mask)))
        variance = functional.softplus(spread) + _LEAST
        if not self.literal:
            mean = functional.normalize(mean, dim=-1)
        return Gaussian(mean=mean, log_var=variance.log())


Aggregation = Literal["attention", "pie"]


class Branch(nn.Module):
    """From a global feature and local tokens to a Gaussian.

    Args:
        literal: whether to follow the print, see `GaussianHead`; the ``attention`` then has the
            double residual of the released code.
    """

    def __init__(self, width: int, aggregation: Aggregation, *, literal: bool) -> None:
        super().__init__()
        self.aggregate = (
            LocalAggregation(width, doubled=literal)
            if aggregation == "attention"
            else PieAggregation(width, 2 * width)
        )
        self.head = GaussianHead(width, literal=literal)

    def forward(self, whole: Vectors, tokens: Tokens, mask: Mask) -> Gaussian:
        """One Gaussian an item."""
        gaussian: Gaussian = self.head(self.aggregate(whole, tokens, mask))
        return gaussian

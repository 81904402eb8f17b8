r"""Diagonal Gaussians: an item as a distribution of vectors, and how far two of them are apart.

Spread is held as the logarithm of the variance and nothing else, so the deviation is
``exp(log_var / 2)`` everywhere: in sampling, in every divergence and in every distance.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Gaussian(NamedTuple):
    """Items as normal distributions whose dimensions are independent.

    Attributes:
        mean: centre of each item.
        log_var: natural logarithm of the variance of each dimension, any real number.
    """

    mean: Float[Tensor, "*n d"]
    log_var: Float[Tensor, "*n d"]


def draw_noise(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "..."]:
    """Standard normal numbers, on the device of the generator they are drawn from.

    Examples:
        >>> one = draw_noise((2, 3), torch.Generator().manual_seed(1))
        >>> two = draw_noise((2, 3), torch.Generator().manual_seed(1))
        >>> torch.equal(one, two)
        True
    """
    return torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)


def sample(gaussian: Gaussian, noise: Float[Tensor, "*n k d"]) -> Float[Tensor, "*n k d"]:
    r"""K vectors of each item, through which gradients reach its mean and its spread.

    .. math:: z^k = \mu + e^{\log\sigma^2 / 2} \, \epsilon^k

    Args:
        gaussian: the items.
        noise: standard normal numbers, K vectors for each item. The same noise gives the same
            samples, so whoever draws it decides whether a score can be repeated.

    References:
        DUQ eq. 9; the distribution is that of eq. 8.

    Differs:
        The paper writes its second head's output as the variance where it defines the distribution
        and as the deviation where it samples; the released code also takes one tensor for the
        deviation here and for the logarithm of the variance in the divergence. Here it is the
        logarithm of the variance throughout. Numbers of the released sampling come with
        ``log_var = 2 * theirs``.
    """
    return gaussian.mean.unsqueeze(-2) + _deviation(gaussian).unsqueeze(-2) * noise


def draw_samples(
    gaussian: Gaussian, count: int, generator: torch.Generator | None = None
) -> Float[Tensor, "items k d"]:
    """Random vectors of each item; gradients as of `sample`.

    Args:
        gaussian: the items.
        count: K, vectors of each item.
        generator: where the noise comes from, on the processor, so that a seed gives the same on
            any device; None is torch's own.
    """
    items, dim = gaussian.mean.shape
    noise = draw_noise((items, count, dim), generator or torch.default_generator)
    return sample(gaussian, noise.to(gaussian.mean))


def kl_to_prior(gaussian: Gaussian, prior_log_var: float = 0.0) -> Float[Tensor, "*n"]:
    r"""Kullback-Leibler divergence of each item from the prior N(0, v I), in nats.

    .. math:: \frac12 \sum_d \frac{\sigma_d^2 + \mu_d^2}{v} - 1 - \log\frac{\sigma_d^2}{v}

    It is at least 0, and 0 only for the prior itself. The mean over a batch and the sum of both
    sides are the caller's.

    Args:
        gaussian: the items.
        prior_log_var: log v. 0 is the papers' N(0, I), whose samples have length :math:`\sqrt D`:
            beside a mean of length 1 they are nearly pure noise. ``-log(D)`` gives them length 1.

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


def kl_between(one: Gaussian, other: Gaussian) -> Float[Tensor, "*n"]:
    r"""Divergence KL(one || other) of each item from its partner, in nats, at least 0.

    .. math:: \frac12 \sum_d \frac{\sigma_d^2 + (\mu_d - \mu'_d)^2}{\sigma'^2_d} - 1
        - \log\frac{\sigma_d^2}{\sigma'^2_d}
    """
    ratio = one.log_var - other.log_var
    apart = (one.mean - other.mean).square() * (-other.log_var).exp()
    return 0.5 * (ratio.expm1() - ratio + apart).sum(-1)


def wasserstein2(one: Gaussian, other: Gaussian) -> Float[Tensor, "*n"]:
    r"""Squared 2-Wasserstein distance of each item to its partner, at least 0.

    .. math:: \lVert \mu - \mu' \rVert^2 + \lVert \sigma - \sigma' \rVert^2
    """
    spread = (_deviation(one) - _deviation(other)).square()
    return ((one.mean - other.mean).square() + spread).sum(-1)


def shrunk_mean(gaussian: Gaussian) -> Float[Tensor, "*n d"]:
    """Means divided by the root mean square length of their samples."""
    power = gaussian.mean.square().sum(-1) + gaussian.log_var.exp().sum(-1)
    return gaussian.mean / power.sqrt()[..., None]


def _deviation(gaussian: Gaussian) -> Float[Tensor, "*n d"]:
    return (0.5 * gaussian.log_var).exp()

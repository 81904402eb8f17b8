"""Sampling and divergences, against torch.distributions and the papers' numbers."""

import math

import pytest
import torch
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from sureshot.models.layers.gaussian import (
    Gaussian,
    draw_noise,
    kl_between,
    kl_to_prior,
    sample,
    wasserstein2,
)


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    mean = 3 * draw_noise(shape, generator, torch.float64)
    return Gaussian(mean, 2 * draw_noise(shape, generator, torch.float64) - 1)


def torchs(gaussian):
    return Independent(Normal(gaussian.mean, (0.5 * gaussian.log_var).exp()), 1)


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def test_samples_have_the_mean_and_the_deviation_of_their_item():
    gaussian = drawn(0, 3, 4)
    noise = draw_noise((3, 20000, 4), torch.Generator().manual_seed(1), torch.float64)
    samples = sample(gaussian, noise)
    assert samples.shape == (3, 20000, 4)
    assert torch.allclose(samples.mean(1), gaussian.mean, atol=0.1)
    assert torch.allclose(samples.std(1).log(), 0.5 * gaussian.log_var, atol=0.03)


def test_sampling_is_the_released_codes_with_twice_its_logarithm(golden):
    file = golden("duq_c89_local_prob")
    gaussian = Gaussian(double(file["outputs"]["mu"]), 2 * double(file["outputs"]["sigma"]))
    expected = double(file["outputs"]["samples"])
    assert torch.allclose(sample(gaussian, double(file["inputs"]["eps"])), expected, rtol=1e-6)


def test_gradients_reach_mean_and_spread():
    gaussian = drawn(2, 2, 3)
    noise = draw_noise((2, 4, 3), torch.Generator().manual_seed(0), torch.float64)
    for tensor in gaussian:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(lambda m, v: sample(Gaussian(m, v), noise), tuple(gaussian))


def test_noise_depends_on_the_generator_alone():
    one, two = (draw_noise((2, 5), torch.Generator().manual_seed(3)) for _ in range(2))
    torch.manual_seed(0)
    assert one.dtype == torch.float32
    assert torch.equal(one, two)
    assert not torch.equal(one, draw_noise((2, 5), torch.Generator().manual_seed(4)))


@pytest.mark.parametrize("prior_log_var", [0.0, -math.log(5), 1.5])
def test_divergence_from_the_prior_is_torchs(prior_log_var):
    gaussian = drawn(1, 6, 5)
    prior = Gaussian(double([[0.0] * 5] * 6), double([[prior_log_var] * 5] * 6))
    expected = kl_divergence(torchs(gaussian), torchs(prior))
    assert torch.allclose(kl_to_prior(gaussian, prior_log_var), expected, rtol=1e-9)
    assert torch.allclose(kl_to_prior(prior, prior_log_var), torch.zeros(6).double(), atol=1e-12)


def test_divergence_from_the_prior_is_pcmes(golden):
    file = golden("kl_unit_gaussian")
    video, text = (
        Gaussian(double(file["inputs"][f"mu_{side}"]), double(file["inputs"][f"s_{side}"]))
        for side in ("video", "text")
    )
    outputs = file["outputs"]
    assert kl_to_prior(video).sum().item() == pytest.approx(outputs["pcme_video_mu"], rel=1e-6)
    mean = kl_to_prior(video).mean().item() / video.mean.shape[-1]
    assert mean == pytest.approx(outputs["pcmepp_video_mu_mean"], rel=1e-6)
    # The released UATVR and DUQ: the mean of the samples for the mean, both sides added up.
    coded = sum(
        kl_to_prior(Gaussian(double(file["inputs"][f"samples_{side}"]).mean(1), own.log_var)).sum()
        for side, own in (("video", video), ("text", text))
    )
    assert coded.item() == pytest.approx(outputs["duq_samples"], rel=1e-6)
    # Read as the deviation, which their sampling does, the same numbers diverge otherwise.
    deviation = Gaussian(video.mean, 2 * video.log_var)
    assert kl_to_prior(deviation).sum().item() == pytest.approx(
        outputs["torch_log_std_sum"], rel=1e-6
    )


def test_divergence_between_items_is_torchs():
    one, other = drawn(3, 6, 5), drawn(4, 6, 5)
    expected = kl_divergence(torchs(one), torchs(other))
    assert torch.allclose(kl_between(one, other), expected, rtol=1e-9)
    assert torch.equal(kl_between(one, one), torch.zeros(6).double())


def test_wasserstein_is_the_general_formula_with_matrix_roots():
    one, other = drawn(5, 4, 3), drawn(6, 4, 3)
    for i in range(4):
        first, second = (
            MultivariateNormal(g.mean[i], g.log_var[i].exp().diag()) for g in (one, other)
        )
        root = second.covariance_matrix.sqrt()
        inner = root @ first.covariance_matrix @ root
        trace = (
            first.covariance_matrix.trace()
            + second.covariance_matrix.trace()
            - 2 * torch.linalg.eigvalsh(inner).sqrt().sum()
        )
        expected = (first.mean - second.mean).square().sum() + trace
        assert wasserstein2(one, other)[i].item() == pytest.approx(expected.item(), rel=1e-9)
    assert torch.equal(wasserstein2(one, one), torch.zeros(4).double())


def test_divergence_of_a_batch_without_items_is_empty():
    empty = Gaussian(torch.zeros(0, 3), torch.zeros(0, 3))
    assert kl_to_prior(empty).shape == (0,)


def test_not_a_number_comes_through():
    gaussian = Gaussian(torch.tensor([[0.0, torch.nan], [0.0, 0.0]]), torch.zeros(2, 2))
    assert kl_to_prior(gaussian).isnan().tolist() == [True, False]
    assert wasserstein2(gaussian, Gaussian(*reversed(gaussian))).isnan().tolist() == [True, False]

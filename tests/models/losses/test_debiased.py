"""What eta learns from, against loops over pairs."""

import itertools
import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import Gaussian, kl_between, wasserstein2
from sureshot.models.losses.debiased import (
    AMBIGUITY,
    FITS,
    alignment,
    alignment_as_printed,
    known_eta,
    known_spreads,
    matching_cost,
    matching_cost_as_printed,
    shuffled,
)

SIZE, WIDTH = 6, 4


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def etas(size=SIZE, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(size, size, generator=draw, dtype=torch.float64)


def gaussians(seed):
    mean = random(SIZE, WIDTH, seed=seed)
    unit = mean / mean.norm(dim=1, keepdim=True)
    return Gaussian(unit, 0.3 * random(SIZE, WIDTH, seed=seed + 1) - 1)


def test_alignment_as_printed_by_loops():
    one, other = gaussians(3), gaussians(7)
    texts, videos = random(SIZE, 3, WIDTH, seed=1), random(SIZE, 2, WIDTH, seed=2)
    for kind, apart in (("wasserstein", wasserstein2), ("kl", kl_between)):
        total = 0.0
        for i in range(SIZE):
            pairs = itertools.product(range(3), range(2))
            inner = sum(float(texts[i, k] @ videos[i, m]) for k, m in pairs) / 6
            total += (float(apart(one, other)[i]) - inner) / SIZE
        found = alignment_as_printed(one, other, texts, videos, kind)
        assert found.item() == pytest.approx(total, rel=1e-10)


def test_alignment_by_loops():
    one, other = gaussians(3), gaussians(7)
    total = 0.0
    for i in range(SIZE):
        own = Gaussian(one.mean[i], one.log_var[i]), Gaussian(other.mean[i], other.log_var[i])
        total += (float(wasserstein2(*own)) - float(own[0].mean @ own[1].mean)) / SIZE
        for j in range(SIZE):
            if j != i:
                far = Gaussian(other.mean[j], other.log_var[j])
                total += max(0.0, 2 - float(wasserstein2(own[0], far))) / SIZE / (SIZE - 1)
    assert alignment(one, other).item() == pytest.approx(total, rel=1e-9)


def test_matching_by_hand():
    logit = torch.tensor([[-2.0, 1.0], [0.5, -1.0]], dtype=torch.float64)

    def cost(x, y):
        p = 1 / (1 + math.exp(-x))
        return -(y * math.log(p) + (1 - y) * math.log(1 - p))

    expected = (cost(-2, 0.05) + cost(-1, 0.05)) / 2 + (cost(1, 0.95) + cost(0.5, 0.95)) / 2
    assert matching_cost(logit, 0.1).item() == pytest.approx(expected)
    assert matching_cost(logit[:1, :1]).isfinite()
    eta = torch.tensor([0.2, 0.6])
    assert matching_cost_as_printed(eta).item() == pytest.approx(-0.4)


def test_shuffling_keeps_the_numbers_and_the_diagonal():
    eta = etas()
    mixed = shuffled(eta, torch.Generator().manual_seed(0))
    assert torch.equal(mixed.diagonal(), eta.diagonal())
    assert not torch.equal(mixed, eta)
    torch.testing.assert_close(mixed.flatten().sort().values, eta.flatten().sort().values)
    again = shuffled(eta, torch.Generator().manual_seed(0))
    assert torch.equal(mixed, again)


GAUSSIAN = Gaussian(torch.eye(3), torch.full((3, 3), 9.0))


def test_a_video_that_a_caption_fits_is_no_negative_of_it():
    fits = torch.tensor([[True, False], [True, True]])
    assert known_eta({FITS: fits}).tolist() == [[0, 1], [0, 0]]


def test_the_spread_of_a_text_goes_with_its_ambiguity_and_means_stay():
    known = {AMBIGUITY: torch.tensor([0.0, 0.5, 1.0])}
    texts, videos = known_spreads(known, GAUSSIAN, GAUSSIAN)
    assert texts.log_var.exp().sum(-1) == pytest.approx([0.02, 1.0, 2.0])
    assert videos.log_var.exp().sum(-1) == pytest.approx([0.02] * 3)
    assert torch.equal(texts.mean, GAUSSIAN.mean)


def test_who_is_not_told_says_where_the_truth_is():
    with pytest.raises(SureshotError, match='only dataset = "synthetic" has it'):
        known_eta({})
    with pytest.raises(SureshotError, match='only dataset = "synthetic" has it'):
        known_spreads({}, GAUSSIAN, GAUSSIAN)

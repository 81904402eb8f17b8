"""The losses that probabilistic distances are compared with: loops and PCME's numbers."""

import math
import re

import pytest
import torch

from sureshot.models.losses.uncertainty import (
    match_cost,
    max_margin,
    mean_of_others,
    mil_margin,
    soft_contrastive,
    uniformity,
)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def pcme(golden):
    """Samples of images and of captions, PCME's settings by case, and its losses of them."""
    file = golden("pcme_soft_contrastive")
    images, captions = (
        torch.tensor(file["inputs"][f"{side}_samples"], dtype=torch.float64)
        for side in ("image", "caption")
    )
    cases = {name: [float(x) for x in case] for name, case in file["config"]["cases"].items()}
    return images, captions, cases, file["outputs"]


def slow_cost(text, video, matched, a, b, factor):
    """One pair of samples at a time."""
    total = 0.0
    for one in text:
        for other in video:
            distance = math.sqrt((one - other).square().sum().item() + 1e-6)
            p = 1 / (1 + math.exp(-factor * (b - a * distance)))
            total += p if matched else 1 - p
    return -math.log(total / (len(text) * len(video)))


@pytest.mark.parametrize("doubled", [False, True])
def test_cost_is_that_of_a_loop_over_samples(doubled):
    texts, videos = noise(0, 3, 2, 4), noise(1, 2, 3, 4)
    matched = torch.tensor([[True, False], [False, True], [True, False]])
    cost = match_cost(texts, videos, matched, 1.5, 2.0, doubled=doubled)
    for i in range(3):
        for j in range(2):
            pair = texts[i], videos[j], matched[i, j]
            expected = slow_cost(*pair, 1.5, 2.0, 2 if doubled else 1)
            assert cost[i, j].item() == pytest.approx(expected, rel=1e-9)


def test_the_doubled_sigmoid_summed_over_pairs_is_pcme(pcme):
    images, captions, cases, outputs = pcme
    matched = torch.eye(len(images)).bool()
    for case, (b, a, *_) in cases.items():
        total = soft_contrastive(images, captions, a, b, doubled=True, weighing="sum").item()
        assert total == pytest.approx(outputs[case]["i2t_loss"], rel=1e-6)
        cost = match_cost(images, captions, matched, a, b, doubled=True)
        own = cost.diagonal().sum().item()
        assert own == pytest.approx(outputs[case]["i2t_pos_loss"], rel=1e-6)
        assert total - own == pytest.approx(outputs[case]["i2t_neg_loss"], rel=1e-6)
        expected = outputs.get(f"nll_pairs_{case}")
        if expected is not None:
            assert cost.flatten().tolist() == pytest.approx(expected, rel=1e-6)


def test_balanced_is_the_mean_of_matches_plus_the_mean_of_others():
    texts, videos = noise(0, 4, 3, 5), noise(1, 4, 3, 5)
    own = torch.eye(4).bool()
    cost = match_cost(texts, videos, own, 2.0, 3.0)
    expected = cost[own].mean() + cost[~own].mean()
    assert torch.allclose(soft_contrastive(texts, videos, 2.0, 3.0), expected, rtol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1.0, 1e3])
def test_no_distance_overflows_in_thirty_two_bits(far):
    texts = torch.zeros(2, 2, 3, requires_grad=True)
    videos = torch.full((2, 2, 3), far)
    for doubled in (False, True):
        loss = soft_contrastive(texts, videos, 15.0, 15.0, doubled=doubled)
        (slope,) = torch.autograd.grad(loss, texts)
        assert loss.isfinite()
        assert slope.isfinite().all()
    if far == 1e3:  # a logarithm of a probability that 32 bits cannot hold
        expected = 15.0 * 1e3 * 3**0.5 - 15.0
        cost = match_cost(texts, videos, torch.eye(2).bool(), 15.0, 15.0)
        assert cost[0, 0].item() == pytest.approx(expected, rel=1e-6)


def test_small_distances_far_from_the_origin_keep_their_digits():
    texts, videos = (20 + 0.01 * noise(seed, 8, 7, 16).float() for seed in (0, 1))
    exact = soft_contrastive(texts.double(), videos.double(), 5.0, 1.0).item()
    assert soft_contrastive(texts, videos, 5.0, 1.0).item() == pytest.approx(exact, rel=1e-6)


def test_gradients_of_soft_contrastive_reach_steepness_and_shift():
    a, b = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (2.0, 3.0))
    inputs = noise(0, 2, 2, 3).requires_grad_(), noise(1, 2, 2, 3).requires_grad_(), a, b
    assert torch.autograd.gradcheck(soft_contrastive, inputs)


@pytest.mark.parametrize("margin", [0.0, 0.2, 1.0])
def test_margin_is_that_of_a_loop_over_pairs(margin):
    distance = noise(0, 4, 4).abs()
    every = hardest = 0.0
    for i in range(4):
        for line in (distance[i], distance[:, i]):
            terms = [max(0, margin + (distance[i, i] - line[j]).item()) for j in range(4) if j != i]
            every += sum(terms) / 8
            hardest += max(terms) / 8
    assert mil_margin(distance, margin).item() == pytest.approx(every, rel=1e-9)
    assert mil_margin(distance, margin, "hardest").item() == pytest.approx(hardest, rel=1e-9)


@pytest.mark.parametrize("negatives", ["all", "hardest"])
def test_margin_is_satisfied_by_pairs_that_are_closer(negatives):
    parted = 1 - torch.eye(4).double()
    assert mil_margin(parted, 0.9, negatives).item() == 0
    assert mil_margin(parted, 1.1, negatives).item() > 0
    distance = noise(0, 3, 3).abs().requires_grad_()
    assert torch.autograd.gradcheck(lambda d: mil_margin(d, 0.5, negatives), [distance])


def test_uniformity_is_pcmes_over_all_samples_of_both_sides(pcme):
    images, captions, cases, outputs = pcme
    samples = torch.cat([images, captions]).flatten(0, 1)
    pairs = [
        math.exp(-2 * (samples[i] - samples[j]).square().sum().item())
        for i in range(len(samples))
        for j in range(i)
    ]
    expected = math.log(sum(pairs) / len(pairs))
    assert uniformity(samples).item() == pytest.approx(expected, rel=1e-9)
    full, (b, a, weight, beta) = outputs["full"], cases["full"]
    assert expected == pytest.approx(full["uniform_loss"], rel=1e-6)
    pairs = soft_contrastive(images, captions, a, b, doubled=True, weighing="sum")
    whole = 2 * pairs + weight * uniformity(samples) + beta * full["vib_loss"]
    assert whole.item() == pytest.approx(full["loss"], rel=1e-6)


def test_vectors_that_spread_are_more_uniform():
    unit = torch.nn.functional.normalize(noise(0, 8, 3), dim=-1)
    crowded = torch.nn.functional.normalize(unit + 5, dim=-1)
    assert uniformity(unit) < uniformity(crowded) < 0
    assert uniformity(unit[:1].repeat(4, 1)).item() == pytest.approx(0, abs=1e-12)
    assert uniformity(1e3 * unit.float()).isfinite()  # no term of the sum is a number of 32 bits
    assert torch.autograd.gradcheck(uniformity, [noise(1, 4, 3).requires_grad_()])


def test_a_batch_of_one_gives_finite_losses():
    text, video = noise(0, 1, 3, 4).requires_grad_(), noise(1, 1, 3, 4)
    expected = match_cost(text, video, torch.ones(1, 1).bool(), 2.0, 3.0).item()
    assert soft_contrastive(text, video, 2.0, 3.0).item() == pytest.approx(expected)
    assert mil_margin(torch.tensor([[0.7]])).item() == 0
    assert mil_margin(torch.tensor([[0.7]]), 0.2, "hardest").item() == 0
    alone = uniformity(text[0, :1])
    assert alone.item() == 0
    (slope,) = torch.autograd.grad(alone, text)
    assert torch.equal(slope, torch.zeros_like(text))


def test_equal_samples_have_a_gradient():
    same = torch.ones(2, 2, 3, requires_grad=True)
    loss = soft_contrastive(same, same.detach(), 5.0, 5.0) + uniformity(same.flatten(0, 1))
    loss.backward()
    assert same.grad.isfinite().all()


def test_not_a_number_comes_through():
    texts, videos = noise(0, 2, 2, 3), noise(1, 2, 2, 3)
    texts[0, 1, 2] = torch.nan
    assert soft_contrastive(texts, videos, 2.0, 3.0).isnan()
    assert soft_contrastive(texts, videos, 2.0, 3.0, weighing="sum").isnan()
    assert uniformity(texts.flatten(0, 1)).isnan()
    distance = noise(0, 3, 3).abs()
    distance[0, 1] = torch.nan
    assert mil_margin(distance).isnan()
    assert mil_margin(distance, 0.2, "hardest").isnan()


def test_the_bidirectional_margin_is_the_mean_over_wrong_pairs_as_released(golden):
    told = golden("ce_max_margin")
    scores = told["inputs"]["similarity"]
    outputs = {
        float(re.findall(r"[\d.]+", name)[0]): loss
        for name, loss in told["outputs"].items()
        if name.endswith("_fixnormTrue")
    }
    for margin, expected in outputs.items():
        hinges = [
            max(0.0, margin + wrong - scores[i][i])
            for i in range(len(scores))
            for j in range(len(scores))
            if i != j
            for wrong in (scores[i][j], scores[j][i])
        ]
        found = max_margin(torch.tensor(scores, dtype=torch.float64), margin).item()
        assert found == pytest.approx(math.fsum(hinges) / len(hinges), rel=1e-12)
        assert found == pytest.approx(expected, abs=1e-6)


def test_the_bidirectional_margin_of_one_pair_is_nothing():
    assert max_margin(torch.tensor([[-0.3]])).item() == 0
    assert max_margin(torch.tensor([[torch.nan, 0.0], [0.0, 1.0]])).isnan()


def test_the_mean_of_others_leaves_the_matched_out():
    cost = noise(3, 4, 4)
    others = [cost[i, j].item() for i in range(4) for j in range(4) if i != j]
    assert mean_of_others(cost).item() == pytest.approx(sum(others) / 12)
    assert mean_of_others(cost[:1, :1]) == 0

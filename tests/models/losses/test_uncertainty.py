"""Evidence, belief and vacuity; the loss against torch's Dirichlet distribution."""

import math
import re

import pytest
import torch

from sureshot.models.losses.contrastive import info_nce
from sureshot.models.losses.uncertainty import (
    distance_loss,
    distance_loss_as_printed,
    evidence,
    evidential,
    evidential_distance,
    evidential_rows,
    match_cost,
    max_margin,
    mil_margin,
    opinion,
    soft_contrastive,
    uniformity,
)

# Similarities that the file of the released code names but does not hold.
CONSTANT = {
    "zero": lambda count: torch.zeros(count, count),
    "identity": torch.eye,
    "ones": lambda count: torch.ones(count, count),
}


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_loss_and_vacuity_are_the_released_codes(golden):
    file = golden("duq_um")
    for name, expected in file["outputs"].items():
        if name in file["inputs"]:
            similarity = torch.tensor(file["inputs"][name], dtype=torch.float64)
        else:
            similarity = CONSTANT[name.rstrip("0123456789")](len(expected["per_row"])).double()
        found, labels = evidence(similarity), torch.eye(len(similarity)).double()
        assert evidential(found, total="mean").item() == pytest.approx(expected["loss"], rel=1e-6)
        both = expected["loss_rows"] + expected["loss_cols"]
        assert evidential(found).item() == pytest.approx(both, rel=1e-6)
        rows = evidential_rows(found, labels).tolist()
        assert rows == pytest.approx(expected["per_row"], rel=1e-6)
        returned = (1 - opinion(found).vacuity).tolist()
        assert returned == pytest.approx(expected["returned_second"], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("s", [-300.0, -2.0, -0.1, 0.0, 0.3, 1.0, 7.0])
def test_functions_of_evidence_at_single_similarities(s):
    at = torch.tensor([s], dtype=torch.float64)
    assert evidence(at).item() == max(0, s)
    assert evidence(at, "softplus").item() == pytest.approx(math.log1p(math.exp(s)))
    assert evidence(at, "exp").item() == pytest.approx(math.exp(s / 5))


@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_steepness_and_offset_come_before_the_function(kind):
    similarity = noise(0, 3, 4).tanh()
    expected = evidence(20.0 * (similarity - 0.3), kind)
    assert torch.allclose(evidence(similarity, kind, kappa=20.0, offset=0.3), expected)
    assert evidential(evidence(torch.eye(3), kind, kappa=1000.0)).isfinite()


def test_labels_of_texts_hold_transposed_for_videos():
    found = noise(0, 3, 4).abs()
    labels = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]).double()
    expected = evidential_rows(found, labels).mean() + evidential_rows(found.T, labels.T).mean()
    assert torch.equal(evidential(found, labels), expected)
    assert torch.equal(evidential(found, labels, total="mean"), expected / 2)


def distances(seed, items):
    draw = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(items, items, generator=draw, dtype=torch.float64)


def test_losses_are_those_of_loops():
    distance, scale, items = distances(0, 5), 7.0, 5
    ours = printed = 0.0
    for i in range(items):
        for line in (distance[i], distance[:, i]):
            own = distance[i, i].item()
            near = math.exp(-scale * own) / sum(math.exp(-scale * d) for d in line.tolist())
            far = math.exp(scale * own) / sum(math.exp(scale * d) for d in line.tolist())
            ours -= math.log(near) / (2 * items)
            printed += math.log(far) / (2 * items)
    assert distance_loss(distance, scale).item() == pytest.approx(ours, rel=1e-9)
    assert distance_loss_as_printed(distance, scale).item() == pytest.approx(printed, rel=1e-9)


def test_a_learned_scale_gets_no_gradient_from_distances():
    scale = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    distance = distances(0, 3).requires_grad_()
    loss = distance_loss(distance, scale)
    assert torch.equal(loss, info_nce(-distance, 5.0))
    loss.backward()
    assert scale.grad is None
    assert distance.grad is not None


def test_distance_as_evidence_against_a_match():
    distance = distances(0, 5)
    target = 1 - torch.eye(5).double()
    found = evidence(distance, "softplus", kappa=4.0, offset=0.5)
    both = evidential_rows(found, target).mean() + evidential_rows(found.T, target).mean()
    options = {"kind": "softplus", "kappa": 4.0, "offset": 0.5}
    assert torch.allclose(evidential_distance(distance, "unmatched_sum", **options), both)
    mean = evidential_distance(distance, "unmatched_sum", total="mean", **options)
    assert torch.allclose(mean, both / 2)


def test_closeness_as_evidence_of_a_match():
    distance, target = distances(0, 5), torch.eye(5).double()
    found = evidence(1 - distance, kappa=4.0, offset=0.5)
    both = evidential_rows(found, target).mean() + evidential_rows(found.T, target).mean()
    assert torch.allclose(evidential_distance(distance, kappa=4.0, offset=0.5), both)
    mean = evidential_distance(distance, kappa=4.0, offset=0.5, total="mean")
    assert torch.allclose(mean, both / 2)


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


def test_the_bidirectional_margin_is_the_mean_over_wrong_pairs_as_released(golden):
    told = golden("ce_max_margin")
    scores = told["inputs"]["similarity"]
    outputs = {
        float(re.findall(r"[\d.]+", name)[0]): loss
        for name, loss in told["outputs"].items()
        if name.endswith("_fixnormTrue")
    }
    for margin, expected in outputs.items():
        found = max_margin(torch.tensor(scores, dtype=torch.float64), margin).item()
        assert found == pytest.approx(expected, abs=1e-6)

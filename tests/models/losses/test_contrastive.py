"""Picking partners: loops, floors and the released codes."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from sureshot.errors import SureshotError
from sureshot.models.losses.contrastive import info_nce, key_nce, mil_nce, weigh
from sureshot.models.losses.uncertainty import (
    distance_loss,
    distance_loss_as_printed,
    evidence,
    evidential,
    evidential_distance,
    max_margin,
    mil_margin,
)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bags(texts, videos):
    """Inner products of all samples."""
    return torch.einsum("ikd,jld->ikjl", texts, videos)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_info_nce_is_the_mean_cross_entropy_of_both_directions(scale):
    similarity = noise(0, 5, 5).tanh()
    target = torch.arange(5)
    both = cross_entropy(scale * similarity, target) + cross_entropy(scale * similarity.T, target)
    assert info_nce(similarity, scale).item() == pytest.approx(both.item() / 2, rel=1e-12)
    learned = torch.tensor(scale, dtype=torch.float64)
    assert info_nce(similarity, learned).item() == pytest.approx(both.item() / 2, rel=1e-12)


def test_pairs_that_are_none_are_refused():
    with pytest.raises(SureshotError, match="3 texts and 2 videos do not pair up"):
        info_nce(torch.zeros(3, 2), 1.0)


def test_averaging_outside_is_the_released_code(golden):
    file = golden("uatvr_milnce_bof")
    videos, texts, as_many = (
        torch.tensor(file["inputs"][name], dtype=torch.float64)
        for name in ("video_samples", "text_samples", "text_samples_equal")
    )
    outputs = file["outputs"]
    loss = mil_nce(bags(texts, videos), 1.0, "outside").item()
    assert loss == pytest.approx(outputs["loss"], rel=1e-6)
    loss = mil_nce(bags(as_many, videos), 1.0, "outside").item()
    both = (outputs["from_v_equal"] + outputs["from_t_equal"]) / 2
    assert loss == pytest.approx(both, rel=1e-6)
    count, samples = as_many.shape[:2]
    separated = 1000 * torch.eye(count).double()[:, None, :, None]
    separated = separated.expand(count, samples, count, samples)
    loss = mil_nce(separated, 1.0, "outside").item()
    assert loss == pytest.approx(outputs["perfect_separation"], rel=1e-6)


def test_videos_pick_their_texts_as_in_the_official_mil_nce_without_its_double_count(golden):
    file = golden("milnce_official")
    videos = torch.tensor(file["inputs"]["video"], dtype=torch.float64)
    count = len(videos)
    for candidates in file["config"]["candidates"]:
        texts = torch.tensor(file["inputs"][f"text_n{candidates}"], dtype=torch.float64)
        bag = bags(texts.reshape(count, candidates, -1), videos[:, None])[..., 0]
        assert bag.shape == (count, candidates, count)  # text, candidate, video
        own = torch.stack([bag[i, :, i] for i in range(count)]).logsumexp(1)
        rows = bag.flatten(0, 1).logsumexp(0)  # of a video over all texts
        columns = bag.logsumexp((1, 2))  # of the texts of a video over all videos
        official = (torch.logaddexp(rows, columns) - own).mean().item()
        assert official == pytest.approx(file["outputs"][f"loss_n{candidates}"], rel=1e-6)
        # The official loss counts each positive in both sums; ours separates the sums.
        positives = torch.eye(count).bool().repeat_interleave(candidates, 0)
        of_videos = (rows - own).mean().item()
        picked = bag.flatten(0, 1).softmax(0).masked_fill(~positives, 0).sum(0)
        assert of_videos == pytest.approx(-picked.log().mean().item(), rel=1e-9)
        of_texts = -(bag.flatten(0, 1).log_softmax(1)[positives]).mean().item()
        ours = mil_nce(bag[..., None]).item()
        assert ours == pytest.approx((of_videos + of_texts) / 2, rel=1e-9)
    assert file["outputs"]["perfect_loss_n1"] == pytest.approx(math.log(2))
    perfect = mil_nce(144 * torch.eye(count).double()[:, None, :, None]).item()
    assert perfect == pytest.approx(0, abs=1e-9)


ITEMS, WIDTH = 4, 6


def unit(*shape, seed):
    draw = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(*shape, generator=draw), dim=-1).double()


LOSSES = {
    "info_nce": lambda s, eta: info_nce(s, 100.0, eta=eta),
    "mil_nce": lambda s, eta: mil_nce(pairs(s), 10.0, eta=eta),
    "mil_nce averaged": lambda s, eta: mil_nce(pairs(s), 10.0, "outside", eta=eta),
    "distance": lambda s, eta: distance_loss(1 - s, 100.0, eta),
    "distance as printed": lambda s, eta: distance_loss_as_printed(1 - s, 100.0, eta),
    "evidential": lambda s, eta: evidential(weigh(evidence(s, kappa=20.0), eta)),
    "evidential of distances": lambda s, eta: evidential_distance(1 - s, eta=eta, kappa=20.0),
    "evidential as printed": lambda s, eta: evidential_distance(1 - s, "unmatched_sum", eta=eta),
    "margin": lambda s, eta: mil_margin(1 - s, 0.5, eta=eta),
    "hardest": lambda s, eta: mil_margin(1 - s, 0.5, "hardest", eta=eta),
    "max margin": lambda s, eta: max_margin(s, 0.5, eta),
}


def pairs(similarity):
    """Two samples of each item that say much the same."""
    wide = similarity[:, None, :, None].expand(-1, 2, -1, 2)
    return wide + 0.01 * unit(2, 2, seed=9)[:, None]


@pytest.mark.parametrize("name", LOSSES)
def test_a_negative_of_weight_zero_is_left_in_peace(name):
    """Whatever its similarity is: even where it is far above that of the matched pair."""
    similarity = (unit(ITEMS, WIDTH, seed=0) @ unit(ITEMS, WIDTH, seed=1).T).requires_grad_()
    eta = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    LOSSES[name](similarity, eta).backward()
    others = ~torch.eye(ITEMS, dtype=torch.bool)
    assert not similarity.grad[others].any()
    similarity.grad = None
    LOSSES[name](similarity, eta + 0.5).backward()
    assert similarity.grad[others].any()


def test_a_logit_counts_eta_times_in_both_directions():
    similarity = unit(ITEMS, WIDTH, seed=0) @ unit(ITEMS, WIDTH, seed=1).T
    eta = torch.rand(ITEMS, ITEMS, generator=torch.Generator().manual_seed(2)).double()
    odds = (10 * similarity).exp()
    expected = 0.0
    for i in range(ITEMS):
        row = odds[i, i] + sum(eta[i, k] * odds[i, k] for k in range(ITEMS) if k != i)
        column = odds[i, i] + sum(eta[k, i] * odds[k, i] for k in range(ITEMS) if k != i)
        expected -= ((odds[i, i] / row).log() + (odds[i, i] / column).log()) / (2 * ITEMS)
    torch.testing.assert_close(info_nce(similarity, 10.0, eta=eta), expected)


def test_keys_of_the_batch_take_weights_and_those_of_the_memory_none():
    queries, keys, memory = (unit(ITEMS, WIDTH, seed=seed) for seed in range(3))
    eta = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    assert key_nce(queries, keys, memory[:0], 10.0, eta) == 0
    odds = (10 * (queries * keys).sum(-1)).exp()
    expected = -(odds / (odds + (10 * queries @ memory.T).exp().sum(1))).log().mean()
    torch.testing.assert_close(key_nce(queries, keys, memory, 10.0, eta), expected)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_keys_and_memory_are_given_and_only_queries_and_scale_learn() -> None:
    parts = [drawn(3, 4, seed=seed).requires_grad_() for seed in range(3)]
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    key_nce(*parts, scale).backward()
    assert parts[0].grad is not None and parts[0].grad.abs().max() > 0
    assert parts[1].grad is None and parts[2].grad is None
    assert scale.grad is not None and scale.grad != 0

"""A negative of weight 0 is left in peace, one of weight 1 counts as ever."""

import pytest
import torch

from sureshot.models.losses.contrastive import info_nce, key_nce, mil_nce, weigh, weigh_logits
from sureshot.models.losses.uncertainty import (
    distance_loss,
    distance_loss_as_printed,
    evidence,
    evidential,
    evidential_distance,
    max_margin,
    mil_margin,
    soft_contrastive,
)

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


@pytest.mark.parametrize("name", LOSSES)
def test_weights_of_one_change_nothing(name):
    similarity = unit(ITEMS, WIDTH, seed=0) @ unit(ITEMS, WIDTH, seed=1).T
    ones = torch.ones(ITEMS, ITEMS, dtype=torch.float64)
    torch.testing.assert_close(LOSSES[name](similarity, ones), LOSSES[name](similarity, None))


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


def test_samples_of_negatives_are_left_in_peace():
    texts, videos = (unit(ITEMS, 3, WIDTH, seed=seed).requires_grad_() for seed in (0, 1))
    eta = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    for weighing in ("balanced", "sum"):
        loss = soft_contrastive(texts, videos, 5.0, 5.0, weighing=weighing, eta=eta)
        alone = [
            soft_contrastive(texts[i : i + 1], videos[i : i + 1], 5.0, 5.0, weighing=weighing)
            for i in range(ITEMS)
        ]
        expected = torch.stack(alone).sum() / (ITEMS if weighing == "balanced" else 1)
        torch.testing.assert_close(loss, expected)


def test_keys_of_the_batch_take_weights_and_those_of_the_memory_none():
    queries, keys, memory = (unit(ITEMS, WIDTH, seed=seed) for seed in range(3))
    eta = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    assert key_nce(queries, keys, memory[:0], 10.0, eta) == 0
    odds = (10 * (queries * keys).sum(-1)).exp()
    expected = -(odds / (odds + (10 * queries @ memory.T).exp().sum(1))).log().mean()
    torch.testing.assert_close(key_nce(queries, keys, memory, 10.0, eta), expected)


def test_no_weights_give_the_very_same_tensor():
    values = unit(ITEMS, ITEMS, seed=0)
    assert weigh(values, None) is values and weigh_logits(values, None) is values

"""Starting weights."""

import pytest
import torch
from torch import nn

from sureshot.models.layers.gaussian import LocalAggregation
from sureshot.models.layers.transformer import (
    draw_as_torch,
    draw_linear,
    embedding,
    identity,
    linear,
    xavier,
)


def test_new_weights_are_small_and_biases_zero():
    torch.manual_seed(0)
    layer = linear(300, 200)
    assert abs(layer.weight.std().item() - 0.02) < 0.0005
    assert abs(layer.weight.mean().item()) < 0.0005
    assert layer.bias.count_nonzero() == 0
    assert abs(embedding(300, 200).weight.std().item() - 0.02) < 0.0005


def test_glorots_weights_are_uniform_and_biases_zero():
    torch.manual_seed(0)
    layer = xavier(300, 200)
    bound = (6 / 500) ** 0.5
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert abs(layer.weight.std().item() - bound / 3**0.5) < 0.0005
    assert layer.bias.count_nonzero() == 0


def test_a_layer_without_a_bias():
    assert linear(3, 2, bias=False).bias is None
    assert xavier(3, 2, bias=False).bias is None


def test_identity_passes_on_what_it_gets():
    values = torch.randn(4, 7)
    assert torch.equal(identity(7)(values), values)


def test_the_seed_decides_the_weights():
    torch.manual_seed(5)
    one = linear(4, 4)
    torch.manual_seed(5)
    assert torch.equal(one.weight, linear(4, 4).weight)


def test_torchs_own_draw_is_wide_in_an_attention_and_has_biases_elsewhere() -> None:
    torch.manual_seed(0)
    made = LocalAggregation(64)
    draw_as_torch(made)
    attention = made.block.queries_keys_values
    assert attention.weight.std().item() == pytest.approx((2 / (64 + 192)) ** 0.5, rel=0.05)
    assert not attention.bias.any() and not made.block.out.bias.any()
    assert made.mlp[0].bias.std() > 0.05


def test_small_draws_reach_every_linear_layer_within() -> None:
    made = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64, bias=False)))
    draw_linear(made)
    assert made[0].weight.std() < 0.03 and made[1][0].weight.std() < 0.03
    assert not made[0].bias.any()

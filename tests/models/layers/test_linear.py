"""Starting weights."""

import torch

from sureshot.models.layers.linear import embedding, identity, linear, xavier


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

"""NetVLAD as loops."""

import math

import pytest
import torch

from sureshot.models.systems.ce import NetVlad
from tests.models.layers.weights import sample, shake


def unit(values: list[float]) -> list[float]:
    length = math.hypot(*values)
    return [value / length for value in values]


def by_loops(made: NetVlad, tokens: list[list[float]]) -> list[float]:
    weight, bias = made.assign.weight.tolist(), made.assign.bias.tolist()
    centres = made.centres.tolist()
    sums = [[0.0] * len(centres[0]) for _ in centres]
    for token in tokens:
        marks = [
            math.exp(b + math.fsum(w * x for w, x in zip(row, token, strict=True)))
            for row, b in zip(weight, bias, strict=True)
        ]
        for k, centre in enumerate(centres):
            for d, (x, c) in enumerate(zip(token, centre, strict=True)):
                sums[k][d] += marks[k] / sum(marks) * (x - c)
    return unit([value for row in sums for value in unit(row)])


@pytest.mark.parametrize("clusters", [1, 3])
def test_it_is_the_loop_and_padding_does_not_count(clusters: int) -> None:
    torch.manual_seed(0)
    made = NetVlad(4, clusters).double()
    shake(made)
    tokens = sample(3, 5, 4, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [1], [3]])
    tokens[~mask] = 1e4
    found = made(tokens, mask)
    assert found.shape == (3, 4 * clusters)
    for row in range(3):
        expected = by_loops(made, tokens[row, mask[row]].tolist())
        assert found[row].tolist() == pytest.approx(expected, abs=1e-9)


def test_no_token_gives_zeros_with_a_gradient() -> None:
    made = NetVlad(4, 2)
    tokens = sample(2, 3, 4).requires_grad_()
    mask = torch.tensor([[True, True, False], [False] * 3])
    found = made(tokens, mask)
    assert not found[1].any() and found[0].norm().item() == pytest.approx(1.0)
    found.sum().backward()
    assert tokens.grad is not None and tokens.grad.isfinite().all()
    assert not tokens.grad[1].any() and not tokens.grad[0, 2].any()
    assert all(weight.grad.isfinite().all() for weight in made.parameters())

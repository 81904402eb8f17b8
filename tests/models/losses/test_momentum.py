"""The loss against keys as loops, and who gets a gradient of it."""

import math

import pytest
import torch

from sureshot.models.losses.contrastive import key_nce


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_loops(queries: list, keys: list, memory: list, scale: float) -> float:
    total = 0.0
    for i, query in enumerate(queries):
        marks = [
            math.exp(scale * math.fsum(a * b for a, b in zip(query, key, strict=True)))
            for key in keys + memory
        ]
        total -= math.log(marks[i] / math.fsum(marks))
    return total / len(queries)


@pytest.mark.parametrize("slots", [0, 1, 7])
@pytest.mark.parametrize("items", [1, 4])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_it_is_the_loop(items: int, slots: int, scale: float) -> None:
    parts = drawn(items, 5), drawn(items, 5, seed=1), drawn(slots, 5, seed=2)
    expected = by_loops(*(part.tolist() for part in parts), scale)
    assert key_nce(*parts, scale).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_keys_and_memory_are_given_and_only_queries_and_scale_learn() -> None:
    parts = [drawn(3, 4, seed=seed).requires_grad_() for seed in range(3)]
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    key_nce(*parts, scale).backward()
    assert parts[0].grad is not None and parts[0].grad.abs().max() > 0
    assert parts[1].grad is None and parts[2].grad is None
    assert scale.grad is not None and scale.grad != 0


def test_one_pair_and_no_memory_cost_nothing_and_right_answers_little() -> None:
    one = drawn(1, 4)
    assert key_nce(one, one, one[:0], 3.0).item() == 0
    own = torch.eye(4, dtype=torch.float64)
    assert key_nce(own, own, -own, 100.0).item() < 1e-12
    assert key_nce(own, own.roll(1, 0), -own, 100.0).item() == pytest.approx(100.0)


def test_a_nan_is_not_hidden() -> None:
    queries, keys, memory = drawn(3, 4), drawn(3, 4, seed=1), drawn(2, 4, seed=2)
    for part in (queries, keys, memory):
        part[1, 0] = torch.nan
        assert key_nce(queries, keys, memory, 1.0).isnan()
        part[1, 0] = 0.0

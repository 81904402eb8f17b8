"""Clusters by hand and as loops; padding and company do not count."""

import math

import pytest
import torch
from torch import Tensor

from sureshot.models.systems.duq_released import TokenMerging, cluster
from tests.models.layers.weights import sample, shake


def groups(place: Tensor) -> set[frozenset[int]]:
    """Which tokens share a cluster."""
    return {
        frozenset(i for i, other in enumerate(place.tolist()) if other == number)
        for number in place.tolist()
    }


def test_clusters_are_those_of_the_definition() -> None:
    tokens = sample(1, 9, 4)
    place, real = cluster(tokens, torch.ones(1, 9, dtype=torch.bool))
    points = tokens[0].tolist()
    apart = [[math.dist(a, b) / 2 for b in points] for a in points]
    density = [math.exp(-sum(d * d for d in sorted(row)[:3]) / 3) for row in apart]
    farthest = max(map(max, apart))
    lonely = [
        min((apart[n][m] for m in range(9) if density[m] > density[n]), default=farthest)
        for n in range(9)
    ]
    centres = sorted(range(9), key=lambda n: -density[n] * lonely[n])[:5]
    nearest = [min(centres, key=lambda c: apart[n][c]) for n in range(9)]
    expected = {frozenset(n for n in range(9) if nearest[n] == c) for c in centres}
    assert groups(place[0]) == expected and real.sum() == 5


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_an_item_is_merged_as_if_it_were_alone(count: int) -> None:
    made = TokenMerging(8, heads=2).eval()
    shake(made)
    tokens = sample(2, 6, 8)
    mask = torch.tensor([[True] * 6, [True] * count + [False] * (6 - count)])
    tokens[1, count:] = 1e6
    merged, real = made(tokens, mask)
    alone, own = made(tokens[1:, :count], mask[1:, :count])
    assert real.sum(1).tolist() == [3, math.ceil(count / 2)]
    torch.testing.assert_close(merged[1][real[1]], alone[0][own[0]], rtol=1e-4, atol=1e-5)

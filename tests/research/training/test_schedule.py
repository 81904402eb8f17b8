"""The rate over a run, and what it applies to."""

import math

import pytest
import torch
from torch import nn

from sureshot.research.training.optim import groups, multiplier


@pytest.mark.parametrize("total", [1, 2, 7, 100])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5, 1.0])
def test_the_rate_rises_then_falls_and_never_stops(total, warmup):
    shares = [multiplier(step, total, warmup) for step in range(total)]
    rising = round(warmup * total)
    assert all(0 < share <= 1 for share in shares)
    assert shares[:rising] == sorted(shares[:rising])
    assert shares[rising:] == sorted(shares[rising:], reverse=True)
    if rising:
        assert shares[rising - 1] == 1


def test_values_by_hand():
    assert [multiplier(step, 10, 0.2) for step in (0, 1, 2)] == [0.5, 1.0, 1.0]
    assert multiplier(6, 10, 0.2) == pytest.approx(0.5)
    assert multiplier(9, 10, 0.2) == pytest.approx(0.5 * (1 + math.cos(math.pi * 7 / 8)))


def test_matrices_are_decayed_and_nothing_else_is():
    module = nn.ModuleDict({"line": nn.Linear(3, 2), "norm": nn.LayerNorm(2)})
    module.register_parameter("log_scale", nn.Parameter(torch.tensor(1.0)))
    encoder = nn.Linear(2, 2)
    encoder.bias.requires_grad_(False)
    made = groups([(module, 0.1), (encoder, 0.001)], 0.2)
    told = [(len(g["params"]), g["lr"], g["weight_decay"]) for g in made]
    assert told == [(1, 0.1, 0.2), (4, 0.1, 0.0), (1, 0.001, 0.2)]
    assert made[0]["params"][0] is module["line"].weight
    torch.optim.AdamW(made)


@pytest.mark.parametrize(
    ("kind", "shares"),
    [
        ("bert_adam", {0: 0.0, 1: 0.01, 2: 0.02, 100: 0.975528258, 500: 0.5}),
        ("hugging_face", {0: 0.0, 1: 0.01, 2: 0.02, 100: 1.0, 500: 0.586824089}),
    ],
)
def test_schedules_of_the_papers_codes(kind, shares):
    for step, share in shares.items():
        assert multiplier(step, 1000, 0.1, kind) == pytest.approx(share, abs=1e-8)


def test_without_warm_up_no_schedule_divides_by_zero():
    assert multiplier(0, 10, 0.0, "bert_adam") == multiplier(0, 10, 0.0, "hugging_face") == 1.0


def test_a_weight_that_two_modules_share_belongs_to_the_first():
    shared = nn.Linear(2, 2)
    one, other = nn.Sequential(shared), nn.Sequential(shared, nn.Linear(2, 2))
    made = groups([(one, 0.1), (other, 0.2)], 0.0, "all")
    assert [(group["rate"], len(group["params"])) for group in made] == [(0.1, 2), (0.2, 2)]

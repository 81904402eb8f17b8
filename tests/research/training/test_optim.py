"""Optimisers and schedules of the papers' codes, against torch and by hand.

The official steps of whole models are in tests/models/systems/test_whole_*.py.
"""

import copy

import pytest
import torch
from torch import nn

from sureshot.research.training.optim import BertAdam, groups, multiplier, new_optimiser


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


@pytest.mark.parametrize("kind", ["adamw", "bert_adam", "hugging_face"])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_past_its_last_step_a_run_changes_nothing_more(kind, warmup):
    assert [multiplier(step, 10, warmup, kind) for step in (10, 11, 15, 20)] == [0, 0, 0, 0]


def test_without_warm_up_no_schedule_divides_by_zero():
    assert multiplier(0, 10, 0.0, "bert_adam") == multiplier(0, 10, 0.0, "hugging_face") == 1.0


def test_a_weight_that_two_modules_share_belongs_to_the_first():
    shared = nn.Linear(2, 2)
    one, other = nn.Sequential(shared), nn.Sequential(shared, nn.Linear(2, 2))
    made = groups([(one, 0.1), (other, 0.2)], 0.0, "all")
    assert [(group["rate"], len(group["params"])) for group in made] == [(0.1, 2), (0.2, 2)]


def net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def stepped(module: nn.Module, optimiser: torch.optim.Optimizer, steps: int, size: float) -> None:
    draw = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for weight in module.parameters():
            weight.grad = size * torch.randn(weight.shape, generator=draw)
        optimiser.step()


def test_with_corrections_and_large_gradients_it_is_adamw():
    one, other = net(), net()
    ours = BertAdam(
        [{"params": list(one.parameters()), "lr": 0.01}],
        (0.9, 0.999),
        corrected=True,
        longest=None,
    )
    torchs = torch.optim.AdamW(other.parameters(), lr=0.01, weight_decay=0.0, eps=1e-12)
    stepped(one, ours, 5, 1e3)
    stepped(other, torchs, 5, 1e3)
    for weight, expected in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("corrected", [False, True])
def test_decay_takes_off_a_share_of_the_weight(corrected):
    weight = nn.Parameter(torch.tensor([2.0, -4.0]))
    group = {"params": [weight], "lr": 0.1, "weight_decay": 0.2}
    optimiser = BertAdam([group], (0.9, 0.98), corrected=corrected, longest=None)
    weight.grad = torch.zeros(2)
    optimiser.step()
    torch.testing.assert_close(weight.detach(), 0.98 * torch.tensor([2.0, -4.0]))


def test_a_gradient_of_one_tensor_is_shortened_by_itself():
    def moved(size: float, longest: float | None) -> torch.Tensor:
        weight = nn.Parameter(torch.zeros(4))
        group = {"params": [weight], "lr": 1.0}
        optimiser = BertAdam([group], (0.9, 0.98), corrected=False, longest=longest)
        for grad in (torch.ones(4), size * torch.ones(4)):
            weight.grad = grad
            optimiser.step()
        return weight.detach()

    torch.testing.assert_close(moved(1e3, 1.0), moved(1.0, 1.0))
    assert not torch.allclose(moved(1e3, None), moved(1.0, None))


def test_a_weight_without_a_gradient_stays():
    module = net()
    before = copy.deepcopy(module.state_dict())
    optimiser = new_optimiser("bert_adam", [(module, 0.1)], 0.2)
    module[0].weight.grad = torch.ones_like(module[0].weight)
    optimiser.step()
    changed = {n for n, w in module.state_dict().items() if not torch.equal(w, before[n])}
    assert changed == {"0.weight"}


@pytest.mark.parametrize(
    ("kind", "decayed"),
    [
        ("adamw", {"0.weight", "2.weight"}),
        ("bert_adam", {"0.weight", "1.weight", "2.weight"}),
        ("hugging_face", {name for name, _ in net().named_parameters()}),
    ],
)
def test_each_decays_what_its_code_decays(kind, decayed):
    module = net()
    optimiser = new_optimiser(kind, [(module, 0.1)], 0.2)
    names = {weight: name for name, weight in module.named_parameters()}
    found = {
        names[weight]
        for group in optimiser.param_groups
        if group["weight_decay"]
        for weight in group["params"]
    }
    assert found == decayed

"""What is kept of a run: all of it, or an error."""

import pytest
import torch
from torch import nn

from sureshot.errors import SureshotError
from sureshot.research.training.loop import (
    load_state,
    read_values,
    save_state,
)


def trained(steps=2, seed=0, width=3):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(width, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    net.register_parameter("tied", net[0].weight)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.1)
    for _ in range(steps):
        step(net, optimiser)
    return net, optimiser


def step(net, optimiser):
    net(torch.arange(12.0).view(4, 3) / 12).square().sum().backward()
    optimiser.step()
    optimiser.zero_grad()


def test_a_loaded_run_goes_on_as_the_saved_one(tmp_path):
    net, optimiser = trained()
    values = {"epoch": 2, "score": 0.1 + 0.2, "run": {"a": None}}
    save_state(tmp_path / "deep" / "state.safetensors", net, optimiser, values)
    other, memory = trained(seed=1)
    path = tmp_path / "deep" / "state.safetensors"
    assert read_values(path) == values
    load_state(path, other, memory)
    for _ in range(3):
        step(net, optimiser)
        step(other, memory)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    assert [file.name for file in path.parent.iterdir()] == ["state.safetensors"]


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    net, optimiser = trained()
    path = tmp_path / "state.safetensors"
    save_state(path, net, optimiser, {"epoch": 1})

    def full(tensors, name, header):
        name.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sureshot.research.training.loop.save_file", full)
    with pytest.raises(SureshotError, match=r"cannot be kept in .*No space left"):
        save_state(path, net, optimiser, {"epoch": 2})
    assert read_values(path) == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_a_file_that_does_not_fit_or_is_damaged_is_refused(tmp_path):
    net, optimiser = trained()
    path = tmp_path / "state.safetensors"
    save_state(path, net, optimiser, {})
    other = nn.Linear(2, 2)
    with pytest.raises(SureshotError, match=r"cannot go on: .*Unexpected key"):
        load_state(path, other, torch.optim.AdamW(other.parameters()))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SureshotError, match="cannot go on"):
        read_values(path)
    with pytest.raises(SureshotError, match="cannot go on"):
        load_state(path, net, optimiser)
    with pytest.raises(SureshotError, match="cannot go on"):
        read_values(tmp_path / "none.safetensors")

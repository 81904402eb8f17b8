"""Processes as torchrun starts them: through the real command, and what is asked of torch."""

import os
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed

from sureshot.cli.app import run
from sureshot.datasets import load_split
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.scores import similarity
from sureshot.research.training.distributed import from_torchrun, rank, world
from tests.cli.terminal import COMMAND
from tests.research.training.test_gather import three_steps
from tests.research.training.together import together
from tests.walls import walls


@pytest.fixture
def asked(monkeypatch):
    """What torch is asked for; no process group is made."""
    calls = []
    monkeypatch.setattr(distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(distributed, "init_process_group", lambda kind, timeout: calls.append(kind))
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: calls.append("left"))
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: calls.append(number))
    return calls


@pytest.mark.parametrize("size", [None, "1"])
def test_one_process_joins_nobody(monkeypatch, asked, size):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size:
        monkeypatch.setenv("WORLD_SIZE", size)
    with from_torchrun():
        assert (rank(), world()) == (0, 1)
    assert asked == []


@pytest.mark.parametrize(("gpu", "calls"), [(False, ["gloo"]), (True, [3, "nccl"])])
def test_processes_with_a_gpu_each_meet_over_nccl_others_over_gloo(monkeypatch, asked, gpu, calls):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    with from_torchrun():
        assert asked == calls
    assert asked == [*calls, "left"]


def test_a_process_that_fails_leaves_too(monkeypatch, asked):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="a fault"), from_torchrun():
        raise ValueError("a fault")
    assert asked[-1] == "left"


def test_who_has_joined_already_stays(monkeypatch, asked):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    with from_torchrun():
        pass
    assert asked == []


def train_and_leave():
    """Threads of gloo that are left when the group is, after steps that made torch import much."""
    three_steps()
    distributed.destroy_process_group()
    names = [Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    return [name for name in names if "runloop" in name]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are read from /proc")
def test_no_thread_of_the_group_is_left_behind_it():
    assert together(train_and_leave) == [[], []]


def test_two_processes_train_what_one_trains(tmp_path):
    place = walls(tmp_path / "walls")
    recipe = [str(place / "recipe.toml"), "--cache", str(tmp_path / "cache")]
    assert run(["train", *recipe, "--to", str(tmp_path / "one")]) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    both = [
        subprocess.Popen(
            [*COMMAND, "train", *recipe, "--to", str(tmp_path / "two"), "--json"],
            env=os.environ | shared | {"RANK": number, "LOCAL_RANK": number},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in ("0", "1")
    ]
    (first, told), (second, other) = (process.communicate(timeout=120) for process in both)
    assert [process.returncode for process in both] == [0, 0], (told, other)
    assert '"epoch"' in first and second == ""  # only the first one speaks
    assert "pairs.csv train, 6 videos" in told and "pairs.csv" not in other
    # What they compute is compared, not their weights: some weights change no score (the bias of an
    # attention's keys, to which the softmax is blind). Their gradients are nothing but rounding,
    # which Adam turns into whole steps, differently on every make of processor.
    held = extract(load_split("pairs", "test", place / "pairs.csv"), TinyEncoder(), frames=3)
    one, two = (
        similarity(load(tmp_path / name / "model", "cpu").raw, held) for name in ("one", "two")
    )
    np.testing.assert_allclose(two, one, atol=1e-4)

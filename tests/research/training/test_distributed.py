"""Two processes against one on the whole batch, by torchrun's means and by the command."""

import json
import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed, nn

from sureshot.cli.app import run
from sureshot.datasets import load_split
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.scores import similarity
from sureshot.research.training.distributed import (
    broadcast,
    from_torchrun,
    gathered,
    rank,
    same_start,
    union,
    world,
)
from sureshot.research.training.optim import groups
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.step import gradients, update
from tests.cli.terminal import spawn_all
from tests.research.training.together import together
from tests.research.training.toy import Pairs, model
from tests.walls import plan, walls

slow = pytest.mark.slow  # two processes go in every run in the last test
BATCHES = [[0, 3, 4, 7, 9, 10, 13], [2, 5, 8, 11], [1, 22, 14, 17, 6]]


def codes(rows, longest):
    made = torch.arange(rows * longest * 2, dtype=torch.float32).view(rows, longest, 2)
    return {"words": made, "mask": torch.ones(rows, longest, dtype=torch.bool)}


def join_uneven():
    """Process 0 holds three rows of two tokens, process 1 two rows of four, then none."""
    first = rank() == 0
    some = gathered(codes(3, 2) if first else codes(2, 4))
    none = gathered(codes(1, 2) if first else codes(0, 3))
    return {"some": some, "none": none, "world": world(), "told": broadcast(f"by {rank()}")}


def three_steps(micro=None, dropout=0.0, batches=BATCHES):
    """Weights after some steps; each process starts with weights of its own."""
    torch.set_num_threads(1)
    pairs, net = Pairs(), model(dropout, seed=rank()).train()
    same_start(net)
    optimiser = torch.optim.AdamW(groups([(net, 0.01)], 0.1))
    told, drawn = [], []

    def embed(rows):
        drawn.append(torch.rand(1).item())
        return net.texts(pairs.texts(rows)), net.videos(pairs.videos(rows))

    for step, rows in enumerate(batches):
        method = TrainingConfig(micro_batch=micro)
        losses = gradients(net.system, embed, rows, method, step=step)
        length = update(optimiser, net, net.system, share=1.0, clip=1.0)
        told.append([losses["loss"], losses["noise"], length])
    return {"told": told, "drawn": drawn, "weights": net.state_dict()}


def close(found, expected):
    torch.testing.assert_close(
        torch.tensor(found["told"]), torch.tensor(expected["told"]), atol=1e-5, rtol=1e-5
    )
    for name, weight in expected["weights"].items():
        torch.testing.assert_close(found["weights"][name], weight, atol=1e-6, rtol=0, msg=name)


FEW = [[0, 5], [3], [8, 11]]  # of the second batch one of two processes has no pair


def everything():
    """All that two processes are asked to do; to start them costs seconds."""
    return {
        "uneven": join_uneven(),
        "plain": three_steps(),
        "cached": three_steps(micro=2),
        "few": three_steps(batches=FEW),
        "few cached": three_steps(micro=1, batches=FEW),
        "dropout": three_steps(dropout=0.5),
        "all": union([("broken", rank())]),
    }


@pytest.fixture(scope="module")
def both():
    return together(everything)


@slow
def test_rows_come_in_the_order_of_the_batch_padded_to_the_longest(both):
    one, other = codes(3, 2), codes(2, 4)
    words = nn.functional.pad(one["words"], (0, 0, 0, 2))
    mask = nn.functional.pad(one["mask"], (0, 2))
    expected = {
        "words": torch.stack([words[0], other["words"][0], words[1], other["words"][1], words[2]]),
        "mask": torch.stack([mask[0], other["mask"][0], mask[1], other["mask"][1], mask[2]]),
    }
    assert [found["all"] for found in both] == [{("broken", 0), ("broken", 1)}] * 2
    for found in (process["uneven"] for process in both):
        assert (found["world"], found["told"]) == (2, "by 0")
        for name, tensor in expected.items():
            assert found["some"][name].dtype == tensor.dtype
            assert torch.equal(found["some"][name], tensor)
        assert found["none"]["words"].shape == (1, 3, 2)
        assert found["none"]["mask"].tolist() == [[True, True, False]]


@slow
@pytest.mark.parametrize("way", ["plain", "cached", "few", "few cached"])
def test_two_processes_take_the_steps_of_one(both, way):
    """Also where one of them has no pair."""
    alone = three_steps(batches=FEW if "few" in way else BATCHES)
    start = model().state_dict()
    for process in both:
        close(process[way], alone)
    moved = [(alone["weights"][name] - start[name]).abs().max() for name in start]
    assert max(moved) > 0.01
    assert torch.equal(alone["weights"]["system.unused.weight"], start["system.unused.weight"])


@slow
def test_with_dropout_both_processes_end_with_the_same_weights(both):
    one, other = (process["dropout"]["weights"] for process in both)
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())
    noise = [drawn for process in both for drawn in process["dropout"]["drawn"]]
    assert len(set(noise)) == len(noise) == 2 * len(BATCHES)  # each process has its own


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


BOTH = """
import json, os, sys
from sureshot.cli.app import run
for port, command in json.load(sys.stdin):
    os.environ["MASTER_PORT"] = port
    assert run(command) == 0
    for stream in (sys.stdout, sys.stderr):
        print(end="\\0", flush=True, file=stream)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """What one process trains and reproduces, in `one`, and what two do, in `two`."""
    place = tmp_path_factory.mktemp("distributed")
    walls(place / "walls")
    plan(place / "plan")
    with (place / "plan" / "plan.toml").open("a") as file:  # dropout draws in each process
        file.write(
            '[[cases]]\nsystems = ["duq"]\nsettings = { dropout = 0.0 }\nstem = { dropout = 0.0 }\n'
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(place / "plan"))
        assert [run(command) for command in commands(place, place / "one")] == [0, 0]
        yield place


@pytest.fixture(scope="module")
def printed(place):
    """For each command what each of two processes prints, to a reader and to a terminal."""
    shared = {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2"}
    ranks = [shared | {"RANK": number, "LOCAL_RANK": number} for number in ("0", "1")]
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        ports = [str(free.getsockname()[1]) for free in (one, other)]
    asked = list(zip(ports, commands(place, place / "two"), strict=True))
    both = spawn_all(ranks, stdin=json.dumps(asked).encode(), code=BOTH)
    assert [one.code for one in both] == [0, 0], both
    read = [zip(one.out.split("\0"), one.err.split("\0"), strict=True) for one in both]
    return dict(zip(("train", "reproduce"), zip(*read, strict=True), strict=False))


def commands(place, to):
    """To train and to reproduce a table, as by torchrun where a process finds its variables."""
    recipe, table = str(place / "walls" / "recipe.toml"), str(place / "plan" / "plan.toml")
    cache = ["--cache", str(place / "cache")]
    return [
        ["train", recipe, "--to", str(to / "run"), "--json", *cache],
        [
            "reproduce",
            "duq-s3",
            "--plan",
            table,
            "--seeds=1",
            "--claims",
            f"--to={to}/table",
            *cache,
        ],
    ]


def test_two_processes_reproduce_a_table_together(place, printed):
    (first, _), (second, _) = printed["reproduce"]
    table = place / "two" / "table"
    assert first.split() == [
        str(table / f"duq-s3.{kind}") for kind in ("md", "csv", "json", "png", "svg", "npz")
    ]
    assert second == ""
    scores = [
        [json.loads(path.read_text())["scores"] for path in sorted(runs.glob("*.json"))]
        for runs in (place / "one" / "table" / "runs", table / "runs")
    ]
    assert len(scores[0]) == 2 and not list((table / "runs").glob("*.run"))
    assert [one["R@1"] for one in scores[0]] == [one["R@1"] for one in scores[1]]


def test_two_processes_train_what_one_trains(place, printed):
    (first, told), (second, other) = printed["train"]
    assert '"epoch"' in first and second == ""  # only the first one speaks
    assert "pairs.csv train, 6 videos" in told and "pairs.csv" not in other
    # What they compute is compared, not their weights: some weights change no score (the bias of an
    # attention's keys, to which the softmax is blind). Their gradients are nothing but rounding,
    # which Adam turns into whole steps, differently on every make of processor.
    pairs = place / "walls" / "pairs.csv"
    held = extract(load_split("pairs", "test", pairs), TinyEncoder(), frames=3)
    one, two = (
        similarity(load(place / name / "run" / "model", "cpu").raw, held) for name in ("one", "two")
    )
    np.testing.assert_allclose(two, one, atol=1e-4)

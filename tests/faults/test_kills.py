"""Killed at any moment, nothing is lost: the next `index` gives what an undisturbed one gives."""

import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.faults.verbs import act
from tests.faults.world import SEED, Outcomes, World, by_parts, cases, healed
from tests.processes import barrier, finish, start
from tests.walls import walls

_CASES = cases(5, 110)
_TRAININGS = cases(0, 18)
_ABOUT = 1.5  # seconds that a verb takes, where few cases are not worth measuring it
_OF_INDEX = ("index", "index --force", "remove", "reset", "calibrate", "compact")


def run(verb: str, world: World, db: Path, out: Path, after: float | None) -> tuple[int, float]:
    """Run a verb and kill it so many seconds after its begin; its exit code and its seconds."""
    gate = barrier(2)
    process = start(act, verb, world, db, gate, out)
    gate.wait()
    began = time.monotonic()
    if after is not None:
        process.join(after)
        process.kill()
    (code,) = finish(process)
    return code or 0, time.monotonic() - began


@pytest.fixture(scope="module")
def takes() -> dict[str, float]:
    """Seconds that verbs take which nobody kills, as far as they are known."""
    return dict.fromkeys(_OF_INDEX, _ABOUT) if _CASES < 6 else {}


@by_parts(_CASES, 10)
def test_an_index_is_whole_after_a_kill_and_the_next_index(
    tmp_path: Path, world: World, outcomes: Outcomes, takes: dict[str, float], numbers: range
) -> None:
    db, out = tmp_path / "index", tmp_path / "out"
    for number in numbers:
        verb = _OF_INDEX[(number + SEED) % len(_OF_INDEX)]
        if verb not in takes:
            code, takes[verb] = run(verb, world, world.copy(db), out, None)
            assert code == 0 and "gave" in out.read_text(), (verb, out.read_text())
        after = random.Random(f"kills/{SEED}/{number}").uniform(0, takes[verb])
        code, _ = run(verb, world, world.copy(db), out, after)
        killed = "killed" if code == -signal.SIGKILL else "had ended"
        healed(db, world, f"{verb} {killed}", outcomes)


@by_parts(_TRAININGS, 6)  # none but by `make faults`, as each takes long
def test_a_killed_training_goes_on_to_the_same_weights(
    tmp_path: Path, world: World, outcomes: Outcomes, numbers: range
) -> None:
    out = tmp_path / "out"
    walls(tmp_path / "walls")
    run_of = tmp_path / "walls" / "run"
    run("train", world, run_of, out, None)  # its second run finds the features in the cache
    shutil.rmtree(run_of)
    code, takes = run("train", world, run_of, out, None)
    assert code == 0 and "gave" in out.read_text(), out.read_text()
    right = load_file(next(run_of.rglob("model.safetensors")))
    for number in numbers:
        draw = random.Random(f"train/{SEED}/{number}")
        shutil.rmtree(run_of)
        code = 1
        kills = 0
        while code:
            code, _ = run(
                "train", world, run_of, out, draw.uniform(0, takes) if kills < 3 else None
            )
            kills += code != 0
        found = load_file(next(run_of.rglob("model.safetensors")))
        kind = f"train killed {kills} times"
        if "gave" not in out.read_text():
            outcomes.fail(kind, out.read_text())
        elif not all(np.array_equal(found[name], right[name]) for name in right):
            outcomes.fail(kind, "other weights")
        else:
            outcomes.note(kind, "resumed, exact")

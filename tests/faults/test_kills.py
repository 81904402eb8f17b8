"""Killed at any moment, nothing is lost: the next `index` gives what an undisturbed one gives."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.faults.doom import KILLED
from tests.faults.verbs import act
from tests.faults.world import SEED, Outcomes, World, by_parts, cases, healed
from tests.processes import finish, start
from tests.walls import walls

_CASES = cases(5, 120)
_TRAININGS = cases(0, 18)
# What verbs take about, see `Doom`, where few cases are not worth measuring it.
_ABOUT = {
    "index": 0.5,
    "index --force": 0.9,
    "remove": 0.2,
    "reset": 110,
    "calibrate": 0.2,
    "compact": 0.1,
}
_OF_INDEX = tuple(_ABOUT)


def run(verb: str, world: World, db: Path, out: Path, killed_at: float = 0.0) -> bool:
    """Run a verb, killed at a moment of its work; whether it was."""
    out.unlink(missing_ok=True)
    (code,) = finish(start(act, verb, world, db, None, out, None, killed_at))
    assert code in (0, *KILLED), code
    return code != 0


def took(verb: str, world: World, db: Path, out: Path) -> float:
    """How much work a verb is, see `Doom`."""
    run(verb, world, db, out)
    ended = json.loads(out.read_text())
    assert "gave" in ended, (verb, ended)
    return float(ended["took"])


@pytest.fixture(scope="module")
def takes() -> dict[str, float]:
    """How much work verbs are, as far as it is known."""
    return dict(_ABOUT) if _CASES < 6 else {}


@by_parts(_CASES, 12)
def test_an_index_is_whole_after_a_kill_and_the_next_index(
    tmp_path: Path, world: World, outcomes: Outcomes, takes: dict[str, float], numbers: range
) -> None:
    db, out = tmp_path / "index", tmp_path / "out"
    for number in numbers:
        verb = _OF_INDEX[(number + SEED) % len(_OF_INDEX)]
        if verb not in takes:
            takes[verb] = took(verb, world, world.copy(db), out)
        at = random.Random(f"kills/{SEED}/{number}").uniform(1e-4, takes[verb])
        killed = run(verb, world, world.copy(db), out, at)
        kind = f"{verb} {'killed' if killed else 'had ended'}"
        if not killed and "gave" not in out.read_text():
            outcomes.fail(kind, out.read_text())
        healed(db, world, kind, outcomes)


@by_parts(_TRAININGS, 6)  # none but by `make faults`, as each takes long
def test_a_killed_training_goes_on_to_the_same_weights(
    tmp_path: Path, world: World, outcomes: Outcomes, numbers: range
) -> None:
    out = tmp_path / "out"
    walls(tmp_path / "walls")
    run_of = tmp_path / "walls" / "run"
    run("train", world, run_of, out)  # its second run finds the features in the cache
    shutil.rmtree(run_of)
    takes = took("train", world, run_of, out)
    right = load_file(next(run_of.rglob("model.safetensors")))
    for number in numbers:
        draw = random.Random(f"train/{SEED}/{number}")
        shutil.rmtree(run_of)
        kills = 0
        while kills < 3 and run("train", world, run_of, out, draw.uniform(0.05, takes)):
            kills += 1
        if kills == 3:
            run("train", world, run_of, out)
        found = load_file(next(run_of.rglob("model.safetensors")))
        kind = f"train killed {kills} times"
        if "gave" not in out.read_text():
            outcomes.fail(kind, out.read_text())
        elif not all(np.array_equal(found[name], right[name]) for name in right):
            outcomes.fail(kind, "other weights")
        else:
            outcomes.note(kind, "resumed, exact")

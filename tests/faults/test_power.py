"""What a loss of power leaves gives right answers or says what to do; indexing makes it right."""

import json
import random
import shutil
import sys
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.store.index import Store
from sureshot.store.tables import Tables
from tests.faults.disk import Disk
from tests.faults.doom import KILLED
from tests.faults.verbs import until_power_goes
from tests.faults.world import (
    SAID,
    SEED,
    Outcomes,
    World,
    ask,
    by_parts,
    cases,
    healed,
    names_fix,
    strange,
    videos_in,
)
from tests.processes import finish, start

_CASES = cases(1, 42)
_ABOUT = 0.5  # of the work of a verb, see `Doom`, where few cases are not worth measuring it
_VERBS = ("index", "index --force", "index anew", "compact", "remove", "calibrate")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are linked by /proc")


def test_what_was_not_synced_is_lost(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "old").write_text("old")
    disk = Disk(place, tmp_path / "notes")
    disk.begin()
    (place / "new").write_text("new")
    (place / "old").rename(place / "renamed")
    seen = set()
    for seed in range(40):
        after = disk.after_loss(tmp_path / "after", random.Random(seed))
        seen |= {(path.name, path.read_text()) for path in after.iterdir()}
        assert ("old" in {p.name for p in after.iterdir()}) != (after / "renamed").exists()
    assert seen >= {("old", "old"), ("renamed", "old"), ("new", "new"), ("new", "")}


def found_wrong(db: Path, verb: str, done: list[str], world: World) -> tuple[str, bool]:
    """What is wrong with the answers of an index after a loss of power, and whether it says so.

    Args:
        db: the index.
        verb: what was going on.
        done: videos of which it had said that they are indexed.
        world: what is right.
    """
    if not Store.exists(db):
        return ("" if verb == "index anew" and len(done) < 2 else "the index is gone"), False
    try:
        answers, told = ask(db)
    except SureshotError as error:
        return ("" if names_fix(str(error)) else f"error: {error}"), True
    if not Tables(str(db)).has_lines():  # not made yet: what is said is looked for in pictures
        answers[SAID] = []
    if odd := strange(answers, world.before, world.full):
        return f"strange hits {odd[:3]}", bool(told)
    # The row of a video is on the disk with the next video at the latest.
    lost = set(done[:-1]) if verb != "index --force" else set()
    lost -= videos_in(answers, words=False)  # words are read later
    if verb != "index anew":
        lost |= videos_in(world.before.answers) - videos_in(answers)
    if verb == "remove":
        lost -= {path.name for path in world.some()}
    return (f"{sorted(lost)} are not found" if lost and not told else ""), bool(told)


def run(verb: str, world: World, disk: Disk, notes: Path, killed_at: float) -> list[str]:
    """Run a verb on a copy of the index, killed at a moment; the videos that count as indexed."""
    db = world.copy(disk.place / "index")
    if verb == "index anew":
        shutil.rmtree(db)
    disk.begin()
    done, out = notes / "done", notes / "out"
    out.unlink(missing_ok=True)
    done.write_text("")
    (code,) = finish(start(until_power_goes, verb, world, disk, done, out, killed_at))
    assert code in (0, *KILLED), code
    return done.read_text().split()


@pytest.fixture(scope="module")
def takes() -> dict[str, float]:
    """How much work verbs are on a disk that stays, as far as it is known."""
    return dict.fromkeys(_VERBS, _ABOUT) if _CASES < 6 else {}


@by_parts(_CASES, 10)
def test_a_loss_of_power_costs_nothing_that_was_committed(
    tmp_path: Path, world: World, outcomes: Outcomes, takes: dict[str, float], numbers: range
) -> None:
    place, after, notes = tmp_path / "place", tmp_path / "after", tmp_path
    disk = Disk(place, tmp_path / "notes")
    for number in numbers:
        draw = random.Random(f"power/{SEED}/{number}")
        verb = _VERBS[(number + SEED) % len(_VERBS)]
        if verb not in takes:
            run(verb, world, disk, notes, 0)
            takes[verb] = json.loads((notes / "out").read_text())["took"]
        done = run(verb, world, disk, notes, draw.uniform(1e-4, takes[verb]))
        disk.after_loss(after, random.Random(f"{SEED}/{number}"))
        kind = f"power lost in {verb}"
        wrong, told = found_wrong(after / "index", verb, done, world)
        if wrong:
            outcomes.fail(kind, f"case {number}: {wrong}")
        else:
            outcomes.note(kind, "told" if told else "nothing committed is missing")
        healed(after / "index", world, kind, outcomes)

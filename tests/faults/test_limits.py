"""A full disk, wherever it is met, costs nothing that was indexed before."""

import contextlib
import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from tests.faults.verbs import act
from tests.faults.world import (
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

_CASES = cases(1, 60)
_VERBS = ("index", "index --force", "remove", "calibrate", "compact")
_ROOM = 9  # doublings of a page beyond what the index has; verbs end at some 20 to 100 pages
_FILES = 80  # likewise


def limited(
    kind: str, verb: str, world: World, db: Path, most: int | None, outcomes: Outcomes
) -> None:
    """Run a verb on a disk that is full, and count how it ends."""
    out = db.parent.parent / "out"
    code = finish(start(act, verb, world, db, None, out, most))
    ended = json.loads(out.read_text()) if code == [0] else {"trace": f"exit code {code}"}
    if "gave" not in ended and not names_fix(ended.get("error", "")):
        return outcomes.fail(kind, f"{verb}: {ended}")
    try:
        answers, told = ask(db)
    except SureshotError as error:
        return outcomes.fail(kind, f"{verb}: the old index is gone: {error}")
    if odd := strange(answers, world.before, world.full):
        return outcomes.fail(kind, f"{verb}: strange hits {odd[:3]}")
    gone = videos_in(world.before.answers) - videos_in(answers)
    # A search may say that a command was cut short and what puts that right; nothing may be gone.
    if (gone and verb != "remove") or not all(map(names_fix, told)):
        return outcomes.fail(kind, f"{verb}: {gone} are not found, told {told}")
    how = "went through" if "gave" in ended else "said that the disk is full"
    outcomes.note(kind, f"{how}, and a search what is half done" if told else how)
    return None


@by_parts(_CASES, 10)
def test_files_that_may_not_grow_cost_nothing_that_was_there(
    tmp_path: Path, world: World, outcomes: Outcomes, numbers: range
) -> None:
    for number in numbers:
        draw = random.Random(f"limits/{SEED}/{number}")
        verb, db = _VERBS[number % len(_VERBS)], world.copy(tmp_path / "top" / "index")
        limited(f"files limited: {verb}", verb, world, db, int(2 ** draw.uniform(0, 17)), outcomes)
        healed(db, world, f"files limited: {verb}", outcomes)


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system in memory at a place; skips the test where none may be made."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "sureshot", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def resize(place: Path, pages: int, files: int) -> None:
    """Leave so much room on a small disk; 0 is no limit."""
    limits = f"remount,size={pages * 4}k,nr_inodes={files}" if pages else "remount,size=64m"
    limits += "" if pages else ",nr_inodes=100000"
    subprocess.run(["mount", "-o", limits, str(place)], check=True)


@by_parts(max(1, _CASES // 2), 10)
@pytest.mark.parametrize("what", ["bytes", "files"])
def test_a_full_disk_costs_nothing_that_was_there(
    tmp_path: Path, world: World, outcomes: Outcomes, what: str, numbers: range
) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk):
        for number in numbers:
            draw = random.Random(f"disk/{what}/{SEED}/{number}")
            verb, kind = _VERBS[number % len(_VERBS)], f"disk full of {what}"
            resize(disk, 0, 0)
            db = world.copy(disk / "index")
            used = os.statvfs(disk)
            pages = (used.f_blocks - used.f_bfree) * used.f_frsize // 4096
            inodes = used.f_files - used.f_ffree
            if what == "bytes":
                resize(disk, pages + int(2 ** draw.uniform(0, _ROOM)), 100_000)
            else:
                resize(disk, 1 << 14, inodes + draw.randrange(_FILES))
            limited(f"{kind}: {verb}", verb, world, db, None, outcomes)
            resize(disk, 0, 0)
            healed(db, world, f"{kind}: {verb}", outcomes)

"""What people ask of an index, each to be run in a process of its own and harmed there."""

import json
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sureshot.errors import SureshotError
from sureshot.library.calibration import calibrate
from sureshot.library.catalog import remove, reset, status
from sureshot.library.index_result import Indexed
from sureshot.library.judging import judge_again
from sureshot.library.search import describe, open_index
from sureshot.research.training.run import train
from sureshot.store.index import Store
from tests.faults.disk import Disk
from tests.faults.doom import Doom
from tests.faults.world import World, ask, index

JUDGED = "white white blue"  # what `judge` says something of


def _calibrate(world: World, db: Path) -> None:
    calibrate(world.labels, db=db, skip_unknown=True, date="2026-11-22")


def _search(world: World, db: Path) -> Any:
    answers, told = ask(db)
    return {"answers": answers, "told": sorted(told)}


def _check(world: World, db: Path) -> Any:
    found = status(db, check=True)
    return {"faults": [fault.what for fault in found.faults or ()]}


def _judge(world: World, db: Path) -> Any:
    """What `search --judge` does once its hits are shown."""
    searcher = open_index(db)
    judge_again(searcher, JUDGED, lambda hit: "yes" if hit.start == 0 else "no")
    calibrate(db=searcher, date="2026-11-22")


def _describe(world: World, db: Path) -> Any:
    texts = ["red and green", "blue and white", "black"]
    return [one.text for one in describe(world.some()[0], texts, db=db)]


def _train(world: World, db: Path) -> Any:
    """``db`` is the folder of the run, beside ``recipe.toml``."""
    train(db.parent / "recipe.toml", to=db, resume=db.exists(), cache=db.parent / "cache")


VERBS: dict[str, Callable[[World, Path], Any]] = {
    "index": lambda world, db: index(db, [world.videos]) and None,
    "index --force": lambda world, db: index(db, world.half(), force=True) and None,
    "remove": lambda world, db: remove(world.some(), db=db) and None,
    "search": _search,
    "status --check": _check,
    "calibrate": _calibrate,
    "judge": _judge,
    "remove --exclude": lambda world, db: remove(world.some(), db=db, exclude=True) and None,
    "reset": lambda world, db: reset(db),
    "describe": _describe,
    "compact": lambda world, db: Store.open(db).compact(),
    "train": _train,
}


def act(
    verb: str,
    world: World,
    db: Path,
    gate: Any,
    out: Path,
    most: int | None = None,
    killed_at: float = 0.0,
    later: float = 0.0,
) -> None:
    """Do what a verb does, and write down how it ended and what it took.

    Args:
        verb: one of `VERBS`.
        world: what is harmed.
        db: the index.
        gate: a barrier, waited for before the verb begins; None without.
        out: file for what it gave, or for the error it ended with.
        most: bytes that any file may have from then on.
        killed_at: see `Doom`.
        later: seconds after the gate at which it begins.
    """
    if gate is not None:
        gate.wait()
        time.sleep(later)
    if most is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    doom = Doom(verb, killed_at)
    ended: dict[str, Any]
    try:
        ended = {"gave": VERBS[verb](world, db)}
    except SureshotError as error:
        ended = {"error": str(error)}
    except BaseException as error:
        ended = {"trace": f"{type(error).__name__}: {error}"}
    took = doom.escaped()
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    out.write_text(json.dumps({**ended, "took": took}))


def until_power_goes(
    verb: str, world: World, disk: Disk, done: Path, out: Path, killed_at: float
) -> None:
    """Do what a verb does while a disk notes what is synced.

    The names of videos that count as indexed go into ``done``, how much work it was into ``out``.
    """
    disk.watch()
    doom = Doom(verb, killed_at)
    _watched(verb, world, disk.place / "index", done)
    out.write_text(json.dumps({"took": doom.escaped()}))


def _watched(verb: str, world: World, db: Path, done: Path) -> None:
    if not verb.startswith("index"):
        VERBS[verb](world, db)
        return

    def observe(result: Indexed) -> None:
        names = done.read_text().split()
        if result.indexed > len(names) and result.current is not None:
            with done.open("a") as file:
                file.write(f"{result.current.name}\n")

    force = verb == "index --force"
    index(db, world.half() if force else [world.videos], force=force, progress=observe)

"""What people ask of an index, each to be run in a process of its own and harmed there."""

import json
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sureshot.errors import SureshotError
from sureshot.library.calibration import calibrate
from sureshot.library.contents import remove, reset, status
from sureshot.library.indexed import Indexed
from sureshot.library.search import describe
from sureshot.research.training.run import train
from sureshot.store.store import Store
from tests.faults.disk import Disk
from tests.faults.world import World, ask, index


def _index(world: World, db: Path) -> Any:
    index(db, [world.videos])


def _force(world: World, db: Path) -> Any:
    index(db, [world.videos], force=True)


def _remove(world: World, db: Path) -> Any:
    remove(world.some(), db=db)


def _search(world: World, db: Path) -> Any:
    answers, told = ask(db)
    return {"answers": answers, "told": sorted(told)}


def _check(world: World, db: Path) -> Any:
    found = status(db, check=True)
    return {"faults": [fault.what for fault in found.faults or ()]}


def _calibrate(world: World, db: Path) -> Any:
    calibrate(world.labels, db=db, lenient=True, date="2026-11-22")


def _reset(world: World, db: Path) -> Any:
    reset(db)


def _describe(world: World, db: Path) -> Any:
    texts = ["red and green", "blue and white", "black"]
    return [one.text for one in describe(world.some()[0], texts, db=db)]


def _compact(world: World, db: Path) -> Any:
    Store.open(db).compact()


def _train(world: World, db: Path) -> Any:
    """``db`` is the folder of the run, beside ``recipe.toml``."""
    train(db.parent / "recipe.toml", to=db, resume=db.exists(), cache=db.parent / "cache")


VERBS: dict[str, Callable[[World, Path], Any]] = {
    "index": _index,
    "index --force": _force,
    "remove": _remove,
    "search": _search,
    "status --check": _check,
    "calibrate": _calibrate,
    "reset": _reset,
    "describe": _describe,
    "compact": _compact,
    "train": _train,
}


def act(verb: str, world: World, db: Path, gate: Any, out: Path, most: int | None = None) -> None:
    """Do what a verb does, and write down how it ended.

    Args:
        verb: one of `VERBS`.
        world: what is harmed.
        db: the index.
        gate: a barrier, waited for before the verb begins; None without.
        out: file for what it gave, or for the error it ended with.
        most: bytes that any file may have from then on.
    """
    if gate is not None:
        gate.wait()
    if most is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    ended: dict[str, Any]
    try:
        ended = {"gave": VERBS[verb](world, db)}
    except SureshotError as error:
        ended = {"error": str(error)}
    except BaseException as error:
        ended = {"trace": f"{type(error).__name__}: {error}"}
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    out.write_text(json.dumps(ended))


def until_power_goes(verb: str, world: World, disk: Disk, gate: Any, done: Path) -> None:
    """Do what a verb does while a disk notes what is synced.

    Args:
        verb: one of `VERBS`, or ``index anew``.
        world: what is harmed.
        disk: the disk that the index is on.
        gate: a barrier, waited for before the verb begins.
        done: file for the names of videos that count as indexed.
    """
    gate.wait()
    disk.watch()
    db = disk.place / "index"
    if not verb.startswith("index"):
        VERBS[verb](world, db)
        return

    def observe(result: Indexed) -> None:
        names = done.read_text().split()
        if result.indexed > len(names) and result.current is not None:
            with done.open("a") as file:
                file.write(f"{result.current.name}\n")

    index(db, [world.videos], force=verb == "index --force", observe=observe)

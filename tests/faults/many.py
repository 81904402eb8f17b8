"""Kills of workers and machines of a Ray cluster while they index.

`python -m tests.faults.many FOLDER SEED KILLS` makes a cluster of three machines here, indexes
videos on it again and again, kills a worker or a machine at random moments, and holds each index
against what one process writes. It prints what is wrong, and how many kills there were of each.
"""

import os
import random
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sureshot.library import ray_workers
from sureshot.library.indexing import index
from sureshot.models.encoders.toy import COLOURS
from sureshot.store.maintenance import find_faults
from sureshot.store.tables import NAMES, Tables
from sureshot.store.writing import uncommitted_files
from tests.clips import coloured
from tests.encoded import contents

NODES = 3
_IN_A_RUN = 8  # kills; without an end to them nothing would be done
_MEMORY = 80_000_000  # bytes of each machine for what its processes share
# What a cluster does besides running workers costs more than this one's work.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_METRICS_COLLECTION": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_worker_niceness": "0",  # by itself 15, and they would starve beside other work
}
_LEAN = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}


@contextmanager
def cluster(machines: int = NODES) -> Iterator[Any]:
    """Machines of one core, all of them here."""
    os.environ |= _SETTINGS
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": _MEMORY, **_LEAN}
    # Machines are added by a thread, which may set no handler of signals.
    made = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
    try:
        for _ in range(machines - 1):
            add(made)
        yield made
    finally:
        made.shutdown()


def clips(folder: Path, count: int) -> Path:
    """Small videos of one to three scenes, and two files that are none."""
    names = list(COLOURS)
    for number in range(count):
        path = folder / f"{number % 4}" / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        scenes = [names[(number + scene) % len(names)] for scene in range(1 + number % 3)]
        coloured(path, scenes, rate=5)
    for name in ("empty.mp4", "text.mp4"):
        (folder / name).write_text(name)
    return folder


class Killer:
    """Kills workers and machines of a cluster at random moments while something is indexed.

    Args:
        made: the cluster.
        draw: random numbers.
    """

    def __init__(self, made: Any, draw: random.Random) -> None:
        self.kills: Counter[str] = Counter()
        self._cluster = made
        self._draw = draw
        self._over = threading.Event()

    def run(self, most: int) -> threading.Thread:
        """Kill in a thread of its own, so many at most."""
        thread = threading.Thread(target=self._run, args=(most,), daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Let it be."""
        self._over.set()

    def _run(self, most: int) -> None:
        while self.kills.total() < most:
            # A worker takes a second or more to begin: some die then, some at work.
            if self._over.wait(self._draw.uniform(0, 3)):
                return
            if any(hands()):
                self._kill()

    def _kill(self) -> None:
        others = [n for n in self._cluster.worker_nodes if n is not self._cluster.head_node]
        if others and self._draw.random() < 0.25:
            self._cluster.remove_node(self._draw.choice(others), allow_graceful=False)
            add(self._cluster)
            self.kills["machine"] += 1
            return
        if at_work := list(hands()):
            self.kills["worker"] += _killed(self._draw.choice(at_work))


def faults(place: Path, videos: Path, whole: tuple[list, list]) -> list[str]:
    """What an index has that it should not have, or lacks."""
    found = [fault.what for fault in find_faults(str(place))]
    ours, known = contents(place), {row["path"] for row in whole[0]}
    again = [row["path"] for row in ours[0] if row["transient"]]
    if ours != whole and not again:
        lacking = known - {row["path"] for row in ours[0]}
        found.append(f"{len(ours[0])} videos, {len(ours[1])} windows; {len(lacking)} lost")
    tables = Tables(str(place))
    left = sum(uncommitted_files(tables, name) for name in NAMES)
    return [*found, *([f"{left} files left over"] if left else [])]


def main(folder: Path, seed: int, kills: int) -> int:
    """Kills so often; how many indexes were wrong."""
    draw, wrong, runs, again = random.Random(seed), 0, 0, 0
    total: Counter[str] = Counter()
    videos = clips(folder / "videos", 60)
    index(videos, db=folder / "whole", model="tiny")
    whole = contents(folder / "whole")
    with cluster() as made:
        while total.total() < kills:
            place = folder / "index"
            shutil.rmtree(place, ignore_errors=True)
            # Now many commits of few videos, now few of many.
            ray_workers._COMMIT_EVERY = draw.choice((0.05, 0.05, 2.0))
            killer = Killer(made, draw)
            thread = killer.run(min(_IN_A_RUN, kills - total.total()))
            result = index(videos, db=place, model="tiny", ray=made.address)
            killer.stop()
            thread.join()
            # Another look, as a user has: it clears what ended workers wrote last.
            more = index(videos, db=place, model="tiny")
            found = faults(place, videos, whole)
            runs, again = runs + 1, again + more.indexed
            wrong += bool(found)
            total += killer.kills
            told = f"run {runs}: {dict(killer.kills)}, {result.summary} {result.warnings} {found}"
            print(told, flush=True)
    print(f"{runs} runs, {dict(total)} killed, {again} videos left for the next run, {wrong} wrong")
    return wrong


def add(made: Any, **more: Any) -> None:
    """One more machine."""
    made.add_node(num_cpus=1, object_store_memory=_MEMORY, include_log_monitor=False, **more)


def hands() -> Iterator[int]:
    """Process ids of workers of this user that encode."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::Hand"):
                yield int(entry.name)


def _killed(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])) > 0)

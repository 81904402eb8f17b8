"""A Ray cluster of several machines, all of them here, and what tests index on it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sureshot.models.encoders.toy import COLOURS
from tests.clips import coloured

NODES = 3
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
            if title.startswith(b"ray::RayWorker"):
                yield int(entry.name)

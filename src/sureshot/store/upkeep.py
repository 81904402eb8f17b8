"""Upkeep of an index as it grows: left-overs removed, small files joined, vectors indexed."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from sureshot.store.tables import Name, Tables

# Rows that are enough for a file. Larger files are left alone; were they not, each compaction would
# write the whole index anew. A window takes about 130 kB, a video 300 bytes.
_FULL_FILE: dict[Name, int] = {"windows": 2048, "videos": 65_536}
_COMPACTED_AT_ONCE = 256  # rows in memory
_IN_FLIGHT = 600.0  # seconds; windows without a video may be those of another indexer until then

SCANNED = 100_000  # windows that a search may compare one by one, which takes about 70 ms
PARTITIONS = 16
_VECTOR_INDEX = "vectors"


def sweep(tables: Tables) -> int:
    """Remove windows that belong to no indexed video and are old; returns of how many videos."""
    rows = tables.use("videos", lambda t: t.to_table(columns=["id", "windows"])).to_pydict()
    known = {video for video, count in zip(rows["id"], rows["windows"], strict=True) if count}
    old = f"written_at < {time.time() - _IN_FLIGHT}"
    rows = tables.use("windows", lambda t: t.to_table(columns=["video"], filter=old))
    orphans = sorted(set(rows["video"].unique().to_pylist()) - known)
    for video in orphans:
        # The age once more: another indexer may have written the video again by now.
        tables.drop("windows", f"video = '{video}' AND {old}")
    return len(orphans)


def compact(tables: Tables) -> None:
    """Join small files and delete superseded ones."""
    for name in _FULL_FILE:
        with _left_for_next_time():
            tables.use(name, partial(_join_files, rows=_FULL_FILE[name]))
            tables.use(name, lambda table: table.cleanup_old_versions(retain_versions=1))


def index_vectors(tables: Tables) -> bool:
    """Index the vectors if more than `SCANNED` are not; returns whether it was done.

    The index holds a few bits of each number of each vector (RaBitQ). It cuts a search short by
    comparing those first, with all windows: leaving partitions out, as such indexes usually do,
    loses up to half of the best windows where the query is a sentence (benchmarks/candidates.py).
    """
    built = False
    with _left_for_next_time():
        if tables.use("windows", _unindexed) > SCANNED:
            tables.use("windows", _build)
            built = True
    return built


def _join_files(table: Any, rows: int) -> None:
    table.optimize.compact_files(target_rows_per_fragment=rows, batch_size=_COMPACTED_AT_ONCE)


def _unindexed(table: Any) -> int:
    indices = [index for index in table.describe_indices() if index.name == _VECTOR_INDEX]
    return int(table.count_rows()) - sum(index.num_rows_indexed for index in indices)


def _build(table: Any) -> None:
    table.create_index(
        "vector",
        "IVF_RQ",
        name=_VECTOR_INDEX,
        metric="dot",
        num_partitions=PARTITIONS,
        replace=True,
    )


@contextlib.contextmanager
def _left_for_next_time() -> Iterator[None]:
    """Upkeep is never worth an error: the disk is full, or another process was quicker."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        yield

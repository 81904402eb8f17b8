"""Upkeep of an index as it grows: left-overs removed, small files joined, vectors indexed."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from lance.optimize import Compaction

from sureshot.store import segments
from sureshot.store.agreement import StoredOf, disagreeing, stored_by_video
from sureshot.store.catalogue import parts_of_videos, records
from sureshot.store.conditions import quoted
from sureshot.store.mending import damaged_videos
from sureshot.store.remote import is_remote
from sureshot.store.rows import VideoRecord
from sureshot.store.staging import unnamed
from sureshot.store.tables import Name, Tables
from sureshot.store.turns import nobody_else
from sureshot.store.written import check_rows
from sureshot.text import counted

# Rows that are enough for a file of a small index. Larger files are left alone; were they not, each
# compaction would write the whole index anew. A window takes about 10 kB, a video 300 bytes.
_FULL_FILE: dict[Name, int] = {"windows": 2048, "videos": 65_536}
# In a large index files are larger: the candidates of a search lie in as many files as there are,
# and to open one takes 0.15 ms.
_FILES = 16
_LARGEST_FILE = 65_536
_COMPACTED_AT_ONCE = 256  # rows in memory
IN_FLIGHT = 600.0  # seconds; windows without a video may be those of another indexer until then

_JOINED = "sureshot.joined"  # among the settings of a table: when its files were joined last


def sweep(tables: Tables) -> tuple[int, str]:
    """Remove windows that belong to no indexed video and are old.

    Returns:
        Number of videos they were of, and why none was removed where that is not safe: as long as a
        row of a video is damaged, or a video has other windows than it claims, windows that seem to
        belong to nobody may be its.
    """
    since = time.time() - in_flight(tables.location)
    orphans: list[str] = []
    lost = 0
    for videos, windows in parts_of_videos(tables, "id", "video"):
        stored, known = stored_by_video(tables, windows), records(tables, videos)[0]
        of = {record.id for record in known if record.windows}
        orphans += [i for i, there in stored.items() if i not in of and there.oldest < since]
        lost += sum(not _interrupted(record, stored) for record in disagreeing(known, stored))
    if not orphans:
        return 0, ""
    damaged = len(damaged_videos(tables))
    if lost or damaged or tables.trouble():
        return 0, _refusal(len(orphans), lost, damaged)
    old = f"written_at < {since}"
    for video in sorted(orphans):
        # The age once more: another indexer may have written the video again by now.
        tables.drop("windows", f"video = {quoted(video)} AND {old}")
    return len(orphans), ""


def _interrupted(record: VideoRecord, stored: dict[str, StoredOf]) -> bool:
    """Whether a video is just being written again, or a kill has ended that."""
    there = stored.get(record.id)
    return there is not None and there.newest > record.indexed_at


def _refusal(orphans: int, lost: int, damaged: int) -> str:
    why = []
    if lost:
        why.append(f"{counted(lost, 'video')} with other windows than the index claims")
    if damaged:
        why.append(f"{counted(damaged, 'damaged row', 'damaged rows')} in the table of videos")
    found = " and ".join(why) or "an older version of a table in use"
    return (
        f"Windows of {counted(orphans, 'video')} seem left over but were kept, as there "
        f"{'is' if lost + damaged < 2 else 'are'} {found}. `sureshot status --check` names them."
    )


def clear(tables: Tables) -> int:
    """Delete files that no version of a local index names, as a killed process leaves them.

    The caller has the turn.

    Returns:
        How many files of rows these were; none while anybody writes files to be named later.
    """
    cleared = 0
    with _left_for_next_time(), nobody_else(tables.location) as safe:
        for name in _FULL_FILE if safe and not tables.trouble() else ():
            if unnamed(tables, name):
                tables.sync()
                act = partial(_clean, all_unnamed=True)
                cleared += tables.change(name, act).data_files_removed
    return cleared


def compact(tables: Tables) -> None:
    """Join small files and delete superseded ones.

    The two newest versions of a table are kept. Both name the joined files, so that the index loses
    nothing with the manifest of the newest; older files go only when those are on the disk.
    """
    for name in _FULL_FILE:
        with _left_for_next_time():
            tables.change(name, partial(_join_files, tables=tables, name=name))
            tables.sync()
            stamp = {_JOINED: str(time.time())}
            tables.change(name, partial(_configure, values=stamp))
            tables.sync()
            tables.change(name, _clean)


def in_flight(location: str) -> float:
    """Seconds for which windows without a video may be those of another indexer.

    Machines that share a storage may differ by a quarter of an hour each way: S3 refuses more.
    """
    return 6 * IN_FLIGHT if is_remote(location) else IN_FLIGHT


def index_vectors(tables: Tables) -> bool:
    """Index the vectors of new windows if comparing them one by one takes long; whether it was."""
    done = False
    with _left_for_next_time():
        done = segments.add_segment(tables)
        tables.sync()
    return done


def _join_files(table: Any, tables: Tables, name: Name) -> None:
    full = full_file(table.count_rows(), _FULL_FILE[name])
    options = {"target_rows_per_fragment": full, "batch_size": _COMPACTED_AT_ONCE}
    joined = [task.execute(table) for task in Compaction.plan(table, options).tasks]
    for one in joined:
        check_rows(tables.location, name, one.new_fragments)
    if joined:
        Compaction.commit(table, joined)


def full_file(rows: int, least: int) -> int:
    """How many rows are enough for a file.

    Args:
        rows: how many the table has.
        least: what is enough in a small table.
    """
    full = least
    while full < _LARGEST_FILE and rows > _FILES * full:
        full *= 2
    return full


def _clean(table: Any, *, all_unnamed: bool = False) -> Any:
    return table.cleanup_old_versions(retain_versions=2, delete_unverified=all_unnamed)


def _configure(table: Any, values: dict[str, str]) -> None:
    table.update_config(values)


@contextlib.contextmanager
def _left_for_next_time() -> Iterator[None]:
    """Upkeep is never worth an error: the disk is full, or another process was quicker."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        yield

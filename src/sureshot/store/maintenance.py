"""Upkeep of an index as it grows: left-overs removed, small files joined, vectors indexed."""

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance.optimize import Compaction

from sureshot.errors import StoreError
from sureshot.paths import locate
from sureshot.progress import Progress, Silent
from sureshot.store import vector_search
from sureshot.store.integrity import (
    StoredOf,
    disagreeing,
    owners,
    parts_of_videos,
    records,
    stored_by_video,
    window_batches,
)
from sureshot.store.locks import exclusive, write_lock
from sureshot.store.remote import is_remote
from sureshot.store.repair import damaged_videos, leftovers
from sureshot.store.rows import (
    CHECKED,
    Header,
    VideoRecord,
    sound_throughout,
    sound_videos,
    video_record,
)
from sureshot.store.tables import NAMES, Name, Tables, as_store_error, check_rows
from sureshot.store.vector_search import quoted
from sureshot.store.writing import unnamed
from sureshot.text import counted, plain

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
    with _left_for_next_time(), exclusive(tables.location) as safe:
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
        done = vector_search.add_segment(tables)
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


_NAMED = 5  # videos that a sentence names
AGAIN = "`sureshot index FOLDER` encodes them again."
FORCED = "`sureshot index --force PATH` encodes them again."


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with an index.

    Attributes:
        what: what it is, in a sentence.
        fix: what to do about it, in a sentence.
    """

    what: str
    fix: str


def find_faults(location: str, progress: Progress | None = None) -> list[Fault]:
    """Everything that is wrong with an index that can be opened.

    All rows are read: about 10 kB a window.

    Args:
        location: place of the index.

    Raises:
        StoreError: it cannot be read.
    """
    tables = Tables(locate(location))
    header = tables.header()
    with as_store_error(tables.location, "read"), write_lock(tables.location):
        # Together, else a video that is just being written would seem lost.
        rows = tables.use("videos", lambda table: table.to_table())
        stored = stored_by_video(tables)
    sound = sound_videos(rows)
    records = [video_record(row) for row in rows.filter(pa.array(sound)).to_pylist()]
    found = [
        *_of_format(header),
        *_of_tables(tables),
        *_of_rows(int((~sound).sum())),
        *_of_lost(disagreeing(records, stored)),
    ]
    with as_store_error(tables.location, "read"):
        found += _of_windows(tables, records, progress or Silent())
        found += _of_search(tables, header)
    known = {record.id for record in records if record.windows}
    since = time.time() - in_flight(tables.location)
    found += _of_orphans(
        [i for i, there in stored.items() if i not in known and there.newest < since]
    )
    return found + _of_leftovers(tables.location)


def _of_format(header: Header) -> list[Fault]:
    if header.schema >= CHECKED:
        return []
    return [
        Fault(
            what=f"The index is of format {header.schema}, which has no checksums.",
            fix="`sureshot index FOLDER` adds them.",
        )
    ]


def _of_tables(tables: Tables) -> list[Fault]:
    """Versions that cannot be opened, or lack files."""
    found = []
    for sentence in tables.trouble():
        what, _, mend = sentence.rpartition(". ")
        found.append(Fault(what=f"{what}.", fix=mend))
    if found:
        return found
    return [
        Fault(
            what=f"The version before the newest of the table of {name} is damaged, which only "
            f"matters if the newest is damaged too.",
            fix="The next change of the index makes a new one.",
        )
        for name in NAMES
        if not tables.before_is_whole(name)
    ]


def _of_rows(damaged: int) -> list[Fault]:
    if not damaged:
        return []
    what = f"The table of videos has {counted(damaged, 'damaged row')}."
    return [Fault(what=what, fix="`sureshot index FOLDER` makes them anew.")]


def _of_lost(lost: list[VideoRecord]) -> list[Fault]:
    if not lost:
        return []
    names = _listed(plain(record.path) for record in lost)
    what = f"Other windows are stored than the index claims, or none, of {names}."
    return [Fault(what=what, fix=AGAIN)]


def _of_windows(
    tables: Tables, records: Collection[VideoRecord], progress: Progress
) -> list[Fault]:
    """Windows that are not what was written, by what searches read and by what they do not."""
    paths = {record.id: plain(record.path) for record in records}
    names: set[str] = set()
    count = tables.use("windows", lambda table: int(table.count_rows()))
    done = damaged = 0
    progress.update("windows checked", 0, count)
    columns = tables.use("windows", lambda table: list(table.schema.names))
    for rows in window_batches(tables, columns):
        sound = sound_throughout(rows)
        damaged += int((~sound).sum())
        ids = owners(rows.filter(pa.array(~sound)))
        names |= {paths[i] for i in ids if i in paths}
        done += len(rows)
        progress.update("windows checked", done, max(count, done))
    if not damaged:
        return []
    of = f" of {_listed(names)}" if names else ""
    are = "is" if damaged == 1 else "are"
    what = f"{counted(damaged, 'window')}{of} {are} not what was written."
    return [Fault(what=what, fix=FORCED)]


def _of_search(tables: Tables, header: Header) -> list[Fault]:
    """Whether a search runs through, with the index of vectors where there is one."""
    near = {"column": "vector", "q": np.ones(header.width, np.float16), "k": 1, "metric": "dot"}

    def act(table: Any) -> None:
        table.to_table(columns=["key", "_distance"], nearest=near)

    try:
        with as_store_error(tables.location, "search"):
            tables.use("windows", act)
    except StoreError as error:
        return [Fault(what=str(error), fix="`sureshot reset`, then index again.")]
    return []


def _of_orphans(orphans: list[str]) -> list[Fault]:
    if not orphans:
        return []
    what = f"Windows of {counted(len(orphans), 'video')} belong to no indexed video."
    return [Fault(what=what, fix="`sureshot index FOLDER` removes them once all else is sound.")]


def _of_leftovers(location: str) -> list[Fault]:
    found = leftovers(location)
    if not found:
        return []
    names = _listed(path.name for path in found)
    what = f"An ended process has left {names}."
    return [Fault(what=what, fix="`sureshot index FOLDER` removes them.")]


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return f"{', '.join(every[:_NAMED])}{more}"

"""Upkeep of an index as it grows, and the check of all of it."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from lance.optimize import Compaction

from sureshot.errors import StoreError
from sureshot.paths import locate
from sureshot.progress import Progress
from sureshot.store.integrity import StoredOf, compared, damaged_windows, quoted
from sureshot.store.lines import Lines, index_lines
from sureshot.store.locks import exclusive, write_lock
from sureshot.store.remote import is_remote
from sureshot.store.repair import leftovers
from sureshot.store.rows import Header
from sureshot.store.tables import FAILURES, Name, Tables, as_store_error, check_rows
from sureshot.store.vector_search import add_segment
from sureshot.store.writing import uncommitted_files
from sureshot.text import counted, listed, plain

# Rows that are enough for a file of a small index. Larger files are left alone; were they not, each
# compaction would write the whole index again. A window takes about 10 kB, a video 300 bytes.
_FULL_FILE: dict[Name, int] = {"windows": 2048, "videos": 65_536, "lines": 16_384}
# In a large index files are larger: the candidates of a search are in as many files as there are,
# and to open one takes 0.15 ms.
_FILES = 16
_LARGEST_FILE = 65_536
_COMPACTED_AT_ONCE = 256  # rows in memory
_IN_FLIGHT = 600.0  # seconds; windows without a video may be those of another indexer until then
_JOINED = "sureshot.joined"  # among the settings of a table: when its files were joined last
_NAMED = 5  # videos that a sentence names


def sweep(tables: Tables) -> tuple[int, str]:
    """Remove windows that belong to no indexed video and are old; of how many videos they were.

    A sentence says why none was removed where that is not safe: as long as a row of a video is
    damaged, or a video has other windows than it claims, windows that seem to be of no video may be
    its.
    """
    since = time.time() - in_flight(tables.location)
    orphans: list[str] = []
    lost = damaged = 0
    for part in compared(tables):
        orphans += [video for video, there in part.strays().items() if there.oldest < since]
        damaged += len(part.damaged)
        # Of one that is just being written again, or was when it was killed, they are newer.
        newest = {video: there.newest for video, there in part.stored.items()}
        lost += sum(newest.get(known.id, 0.0) <= known.indexed_at for known in part.lost())
    if orphans and (lost or damaged or tables.trouble()):
        return 0, _refusal(len(orphans), lost, damaged)
    for video in sorted(orphans):
        # The age once more: another indexer may have written the video again by now.
        tables.drop("windows", f"video = {quoted(video)} AND written_at < {since}")
    return len(orphans), ""


def _refusal(orphans: int, lost: int, damaged: int) -> str:
    why = [f"{counted(lost, 'video')} with other windows than the index claims"] if lost else []
    why += [f"{counted(damaged, 'damaged row')} in the table of videos"] if damaged else []
    found = " and ".join(why) or "an older version of a table in use"
    return (
        f"Windows of {counted(orphans, 'video')} seem left over but were kept, as there "
        f"{'is' if lost + damaged < 2 else 'are'} {found}. `sureshot status --check` names them."
    )


def in_flight(location: str) -> float:
    """Seconds for which windows without a video may be those of another indexer.

    Machines that share a storage may differ by a quarter of an hour each way: S3 refuses more.
    """
    return 6 * _IN_FLIGHT if is_remote(location) else _IN_FLIGHT


def clear(tables: Tables) -> int:
    """Delete files that no version of a local index names, as a killed process leaves them.

    The caller has the write lock. Gives how many files of rows these were; none while another
    process writes files to be committed.
    """
    cleared = 0
    with _if_possible(), exclusive(tables.location) as safe:
        for name in tables.names if safe and not tables.trouble() else ():
            if uncommitted_files(tables, name):
                tables.sync()
                act = partial(_clean, all_unnamed=True)
                cleared += tables.change(name, act).data_files_removed
    return cleared


def compact(tables: Tables) -> None:
    """Join small files, delete superseded ones, and index vectors if a search would take long.

    The two newest versions of a table are kept. Both name the joined files, so that the index loses
    nothing with the manifest of the newest; older files go only when those are on the disk.
    """
    for name in tables.names:
        with _if_possible():
            tables.change(name, partial(_join_files, location=tables.location, name=name))
            tables.sync()
            tables.change(name, lambda table: table.update_config({_JOINED: str(time.time())}))
            tables.sync()
            tables.change(name, _clean)
            tables.forget_checksums(name)
    index_vectors(tables)


def _join_files(table: Any, location: str, name: Name) -> None:
    full = full_file(table.count_rows(), _FULL_FILE[name])
    options = {"target_rows_per_fragment": full, "batch_size": _COMPACTED_AT_ONCE}
    joined = [task.execute(table) for task in Compaction.plan(table, options).tasks]
    for task in joined:
        check_rows(location, name, task.new_fragments)
    if joined:
        Compaction.commit(table, joined)


def full_file(rows: int, least: int) -> int:
    """How many rows are enough for a file."""
    full = least
    while full < _LARGEST_FILE and rows > _FILES * full:
        full *= 2
    return full


def _clean(table: Any, *, all_unnamed: bool = False) -> Any:
    return table.cleanup_old_versions(retain_versions=2, delete_unverified=all_unnamed)


def index_vectors(tables: Tables) -> bool:
    """Index the vectors of new windows if comparing them one by one takes long; whether it was."""
    done = False
    with _if_possible():
        done = add_segment(tables)
        if tables.has_lines():
            done |= index_lines(tables)
        tables.sync()
    return done


def _if_possible() -> contextlib.suppress:
    """Upkeep is never worth an error: the disk is full, or another process was quicker."""
    return contextlib.suppress(*FAILURES)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with an index, and what to do about it, a sentence each."""

    what: str
    fix: str


def find_faults(location: str, progress: Progress | None = None) -> list[Fault]:
    """Everything that is wrong with an index that can be opened.

    All rows are read: about 6 kB per window.
    """
    tables = Tables(locate(location))
    for name in tables.names:
        tables.check_again(name, thorough=True)
    header = tables.header()
    try:
        with as_store_error(tables.location, "read"):
            return _faults(tables, header, progress)
    finally:
        tables.check_is(header)


def _faults(tables: Tables, header: Header, progress: Progress | None) -> list[Fault]:
    with write_lock(tables.location):
        parts = list(compared(tables))
    words = Lines(tables, header).faults()
    found = _of_tables(tables)
    if damaged := sum(len(part.damaged) for part in parts):
        what = f"The table of videos has {counted(damaged, 'damaged row')}."
        found.append(Fault(what, "`sureshot index FOLDER` makes them again."))
    if lost := [plain(known.path) for part in parts for known in part.lost()]:
        of = listed(sorted(set(lost)), _NAMED)
        what = f"Other windows are stored than the index claims, or none, of {of}."
        found.append(Fault(what, "`sureshot index FOLDER` encodes them again."))
    damaged, ids = damaged_windows(tables, progress)
    if damaged:
        names = [plain(known.path) for part in parts for known in part.named(ids)]
        of = f" of {listed(sorted(set(names)), _NAMED)}" if names else ""
        are = "is" if damaged == 1 else "are"
        what = f"{counted(damaged, 'window')}{of} {are} not what was written."
        found.append(Fault(what, "`sureshot index --force PATH` encodes them again."))
    found += [Fault(what, "`sureshot index --force PATH` reads them again.") for what in words]
    found += _of_search(tables, header)
    since = time.time() - in_flight(tables.location)
    strays: list[StoredOf] = [there for part in parts for there in part.strays().values()]
    if orphans := sum(there.newest < since for there in strays):
        what = f"Windows of {counted(orphans, 'video')} belong to no indexed video."
        fix = "`sureshot index FOLDER` removes them once all else is sound."
        found.append(Fault(what, fix))
    with write_lock(tables.location):  # who deletes an index has it until all is gone
        left = leftovers(tables.location)
    if left:
        names = [path.name for path in left]
        what = f"An ended process has left {listed(sorted(set(names)), _NAMED)}."
        found.append(Fault(what, "`sureshot index FOLDER` removes them."))
    return found


def _of_tables(tables: Tables) -> list[Fault]:
    """Versions that cannot be opened, or lack files."""
    found = []
    for sentence in tables.trouble():
        what, _, fix = sentence.rpartition(". ")
        found.append(Fault(f"{what}.", fix))
    if found:
        return found
    return [
        Fault(
            f"The version before the newest of the table of {name} is damaged, which only "
            f"matters if the newest is damaged too.",
            "The next change of the index makes a new one.",
        )
        for name in tables.names
        if not tables.before_is_whole(name)
    ]


def _of_search(tables: Tables, header: Header) -> Iterator[Fault]:
    """Whether a search runs through, with the index of vectors where there is one."""
    near = {"column": "vector", "q": np.ones(header.width, np.float16), "k": 1, "metric": "dot"}
    near["use_index"] = "windows" not in tables.unindexed

    def act(table: Any) -> None:
        table.to_table(columns=["key", "_distance"], nearest=near)

    try:
        with as_store_error(tables.location, "search"):
            tables.use("windows", act)
    except StoreError as error:
        yield Fault(str(error), "`sureshot reset`, then index again.")

"""What damage and killed processes leave is repaired or removed, and indexes are deleted."""

import contextlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from sureshot.errors import StoreError, option
from sureshot.files import CARD, restore_folder
from sureshot.paths import absolute
from sureshot.s3 import SCHEME
from sureshot.store.integrity import damaged_videos, each, window_batches
from sureshot.store.lines import index_lines
from sureshot.store.locks import LOCKS, exclusive, make_locks, write_lock
from sureshot.store.remote import delete_tables, is_remote
from sureshot.store.rows import Header, VideoRecord, from_text, sound, video_rows
from sureshot.store.tables import (
    ASIDE,
    EVERY,
    FAILURES,
    INDEXES,
    NEW,
    Name,
    Tables,
    as_store_error,
    check_rows,
    is_there,
    plain_errors,
)
from sureshot.store.vector_search import add_segment
from sureshot.text import counted

Result = TypeVar("Result")

_GONE = ".gone-"  # in the name of what is being deleted
_IN_MAKING = 600.0  # seconds; a table takes well below one to be made
_PATIENCE = 10.0  # seconds that a deletion waits for others that write
_WINDOWS_AT_ONCE = 1024
_BYTES_AT_ONCE = 1 << 20
_UNKNOWN = -1  # size and time of a file of which the row is lost: no file has these


def repair_index(tables: Tables, header: Header, *, all_lost: bool = False) -> list[str]:
    """Make an index one that can be written to, without losing a video; sentences on what was done.

    What killed processes left is deleted, a broken newest version is moved aside, damaged rows of
    videos are made again from the windows. With ``all_lost`` the table of videos was made again.
    """
    make_locks(tables.location)
    tidy(tables.location)
    done = [
        f"The newest version of the table of {name} was damaged, so the one before it was taken; "
        f"what it lacks is indexed again."
        for name in tables.move_broken_aside()
    ]
    done += [said for name in tables.names if (said := _rewrite_damaged(tables, name))]
    for name in sorted(tables.unindexed):
        tables.change(name, lambda t: [t.drop_index(one.name) for one in t.describe_indices()])
        tables.check_again(name)
        index_lines(tables) if name == "lines" else add_segment(tables)
        done.append(f"The index of {INDEXES[name]} was damaged and was made again.")
    damaged = damaged_videos(tables)
    if damaged:
        tables.drop("videos", f"_rowid IN ({', '.join(map(str, damaged))})")
    if damaged or done or all_lost:
        found = _adopt(tables, header)
        if damaged or found:
            done.append(
                f"{counted(max(len(damaged), found), 'video')} had a damaged or lost entry in "
                f"the index, which was made again; each is encoded again when it is met."
            )
    return done


def _rewrite_damaged(tables: Tables, name: Name) -> str:
    """Put the sound rows of damaged files into new ones; a sentence if there were any."""
    damaged, deadly = tables.damaged(name)
    if not damaged:
        return ""

    def act(table: Any) -> None:
        parts = [table.get_fragment(number) for number in damaged - deadly]
        parts = [part for part in parts if part is not None and _readable(part)]
        rows = pa.RecordBatchReader.from_batches(table.schema, _sound_batches(parts))
        new = write_fragments(rows, table, mode="append") if parts else []
        check_rows(tables.location, name, new)
        gone = [part.fragment_id for part in table.get_fragments() if part.fragment_id in damaged]
        operation = lance.LanceOperation.Update(gone, [], new)
        lance.LanceDataset.commit(table, operation, read_version=table.version)

    tables.change(name, act, deadly=True)
    tables.check_again(name)
    files = counted(len(damaged), "file")
    return f"{files} of the table of {name} had damage; what was sound in it was kept."


def _sound_batches(parts: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        for batch in part.to_batches(batch_size=_WINDOWS_AT_ONCE):
            rows = pa.Table.from_batches([batch])
            yield from rows.filter(pa.array(sound(rows))).to_batches()


def _adopt(tables: Tables, header: Header) -> int:
    """Write a row for each video that has sound windows and no row; how many.

    Their files count as changed, so the next `index` that meets them encodes them again; until then
    they are found as before.
    """
    ids = {record.id for record in each(tables)}
    lost: dict[str, VideoRecord] = {}
    for rows in window_batches(tables):
        windows = rows.filter(pa.array(sound(rows))).select(["video", "path", "end", "check"])
        for window in windows.to_pylist():
            video = window["video"]
            path = from_text(window["path"])
            none = VideoRecord(path=path, kind="file", size=_UNKNOWN, mtime_ns=_UNKNOWN)
            if video in ids or none.id != video:
                continue
            before = lost.get(video, none)
            lost[video] = replace(
                before,
                duration=max(window["end"], before.duration),
                windows=before.windows + 1,
                check_windows=before.check_windows + window["check"],
            )
    if lost:
        tables.upsert("videos", video_rows(list(lost.values()), header))
    return len(lost)


def retry_without_bad_files(tables: Tables, act: Callable[[bool], Result]) -> Result:
    """What ``act`` makes of an index; again, with True, without the files by which it failed."""
    try:
        return act(False)
    except FAILURES:
        with write_lock(tables.location):
            if not sum(_drop_bad_files(tables, name) for name in tables.names):
                raise
        return act(True)


def _drop_bad_files(tables: Tables, name: Name) -> int:
    """Take files out of a table of which no rows can be made; how many.

    It is an error if one cannot be read at all, as by a disk that is away: that proves nothing. In
    object storage, which may fail for a moment, only a file that is gone does.
    """

    def act(table: Any) -> int:
        _, deadly = tables.damaged(name)
        parts = table.get_fragments()
        bad = [part for part in parts if part.fragment_id in deadly or not _readable(part)]
        folder, remote = absolute(tables.location) / f"{name}.lance", is_remote(tables.location)
        bad = [part for part in bad if not _reads_whole(part, folder) or not remote]
        if bad:
            numbers = [part.fragment_id for part in bad]
            operation = lance.LanceOperation.Delete([], numbers, "damaged")
            lance.LanceDataset.commit(table, operation, read_version=table.version)
        return len(bad)

    dropped = tables.change(name, act, deadly=True)
    tables.check_again(name)
    return dropped


def _readable(fragment: Any) -> bool:
    """Whether all rows of a part of a table can be read, if need be at the second attempt."""
    for _ in range(2):
        try:
            with plain_errors():
                for _ in fragment.to_batches(batch_size=_WINDOWS_AT_ONCE):
                    pass
            return True
        except FAILURES:
            pass
    return False


def _reads_whole(fragment: Any, table: Path) -> bool:
    """Read the files of a part of a table, whatever is in them; whether all of them are there."""
    deleted = fragment.deletion_file()
    paths = [table / "data" / file.path for file in fragment.data_files()]
    paths += [table / deleted] if deleted else []
    found = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            while file.read(_BYTES_AT_ONCE):
                pass
            found += 1
    return found == len(paths)


def delete_index(location: str) -> None:
    """Delete an index with its calibration card, and nothing else in its folder.

    Everything is renamed first, so a kill leaves an index, or none, or one that says it is half
    made; what it leaves of the files, the next call deletes.
    """
    if is_remote(location):
        _delete_remote(location)
        return
    gone = contextlib.suppress(FileNotFoundError)  # another process has deleted it meanwhile
    ended = exclusive(location, patience=_PATIENCE)
    with as_store_error(location, "delete"), gone, ended as free:
        if free is False:
            raise StoreError(
                f"Another process is writing to the index at {location}, so it was not deleted. "
                f"Wait until that has ended, or end it, then run the same command again."
            )
        with write_lock(location):
            _delete_local(Path(location))


def _delete_local(folder: Path) -> None:
    # `videos` first: without it an index is half made, which opening it reports.
    there = [t for t in (folder / f"{n}.lance" for n in reversed(EVERY)) if is_there(t)]
    _check_ours(str(folder))
    if there:
        card = [folder / CARD] if is_there(folder / CARD) else []
        for path in (*there[:-1], *card, there[-1]):
            path.rename(f"{path}{_GONE}{uuid.uuid4().hex}")
    tidy(str(folder), at_once=True)
    for name in LOCKS if folder.is_dir() else ():
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it is a link, or holds other files
        folder.rmdir()


def _delete_remote(location: str) -> None:
    if not location.startswith(SCHEME):
        raise StoreError(f"{location} is object storage; delete it with the tools of that storage.")
    with as_store_error(location, "delete"):
        _check_ours(location)
        delete_tables(location, tuple(reversed(EVERY)))
        (absolute(location) / CARD).unlink(missing_ok=True)


def _check_ours(location: str) -> None:
    """Refuse to delete what is not a table of ours; a damaged one of ours is accepted."""
    for name in EVERY:
        if not Tables(location).is_ours(name):
            raise StoreError(
                f"{location}/{name}.lance is not part of an index of Sureshot, so nothing was "
                f"deleted. Move it away, or choose another place with {option('db')}."
            )


def tidy(location: str, *, at_once: bool = False) -> None:
    """Delete what killed processes have left next to a local index.

    At once, tables go as well that another process might be making just now.
    """
    if is_remote(location):
        return
    with as_store_error(location, "clear the left-overs of"):
        restore_folder(Path(location) / CARD)
        for path in leftovers(location, at_once=at_once):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def leftovers(location: str, *, at_once: bool = False) -> list[Path]:
    """What `tidy` deletes, but for hidden files of the card."""
    if is_remote(location):
        return []
    folder, found = Path(location), []
    for name in EVERY:
        found += [*folder.glob(f"{name}.lance{_GONE}*"), *folder.glob(f"{name}.lance{ASIDE}*")]
        for made in folder.glob(f"{name}.lance{NEW}*"):
            with contextlib.suppress(FileNotFoundError):  # it is in its place by now
                if at_once or time.time() - made.stat().st_mtime > _IN_MAKING:
                    found.append(made)
    return sorted([*found, *folder.glob(f"{CARD}{_GONE}*")])

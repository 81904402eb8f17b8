"""Rows of videos that were lost or damaged, made anew from the windows that are still there."""

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import lance
import pyarrow as pa

from sureshot.errors import StoreError, option
from sureshot.files import restore_folder
from sureshot.paths import absolute
from sureshot.s3 import SCHEME
from sureshot.settings import to_values
from sureshot.store.integrity import StoredOf, stored_by_video, window_batches
from sureshot.store.locks import LOCKS, make_locks, write_lock
from sureshot.store.remote import delete_tables, is_remote
from sureshot.store.rows import (
    CHECKED,
    KEY,
    SEARCHED,
    WINDOW_CHECKS,
    Header,
    VideoRecord,
    checked_videos,
    checked_windows,
    from_text,
    sound_videos,
    sound_windows,
    video_record,
    video_rows,
)
from sureshot.store.tables import (
    ASIDE,
    NAMES,
    NEW,
    Name,
    Tables,
    as_store_error,
    check_rows,
    is_there,
    plain_errors,
)
from sureshot.text import counted
from sureshot.trust.card import FILE as CARD

_FORMATS_ROWS_AT_ONCE = 256
_UNREAD = ("patches", "backbone")  # nine tenths of their bytes


def upgrade(tables: Tables, header: Header) -> list[str]:
    """Give every row its checksums, drop what none reads, then say so in the header.

    Killed midway, the index is one of its old format still, and the next call goes on.

    Returns:
        A sentence for people; none where the format is not an older one.

    Raises:
        OSError: it cannot be written, as on a full disk. The index stays as it was.
    """
    if header.schema >= CHECKED:
        return []
    _add(tables, "windows", WINDOW_CHECKS, checked_windows)
    tables.change("windows", _drop_unread)
    stored = stored_by_video(tables)

    def checked(rows: pa.Table) -> pa.Table:
        return checked_videos(_with_sums(rows, stored))

    _add(tables, "videos", ("check_windows", "check"), checked)
    tables.sync()
    values = {KEY.decode(): json.dumps(to_values(header) | {"schema": CHECKED})}
    tables.change("windows", lambda table: table.update_schema_metadata(values))
    tables.sync()
    return ["This index was of an older format; its rows have checksums from now on."]


def _add(
    tables: Tables, name: Name, columns: tuple[str, ...], checked: Callable[[pa.Table], pa.Table]
) -> None:
    """Add columns to a table that another table of the same rows has."""

    def act(table: Any) -> None:
        if set(columns) <= set(table.schema.names):
            return
        empty = checked(table.schema.empty_table())
        schema = pa.schema([empty.schema.field(column) for column in columns])

        @lance.batch_udf(output_schema=schema)  # type: ignore[untyped-decorator]
        def values(batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = checked(pa.Table.from_batches([batch])).select(list(columns))
            return rows.cast(schema).combine_chunks().to_batches()[0]

        parts = table.get_fragments()
        before = [file.path for part in parts for file in part.data_files()]
        made = [part.merge_columns(values, batch_size=_FORMATS_ROWS_AT_ONCE) for part in parts]
        # A table without files has no fragment that could tell its new schema.
        if not made:
            table.add_columns(list(schema))
            return
        fragments = [fragment for fragment, _ in made]
        check_rows(tables.location, name, fragments, before)
        merge = lance.LanceOperation.Merge(fragments, made[0][1])
        lance.LanceDataset.commit(table, merge, read_version=table.version)

    tables.change(name, act)


def _drop_unread(table: Any) -> None:
    """Take out what formats 1 and 2 kept and no search reads; compaction gives its bytes back."""
    there = [name for name in _UNREAD if name in table.schema.names]
    if there:
        table.drop_columns(there)


def _with_sums(rows: pa.Table, stored: dict[str, StoredOf]) -> pa.Table:
    sums = [stored[i].check if i in stored else 0 for i in rows.column("id").to_pylist()]
    return rows.append_column("check_windows", pa.array(sums, pa.int64()))


_GONE = ".gone-"  # in the name of what is being deleted
_IN_MAKING = 600.0  # seconds; a table takes well below one to be made


def delete_index(location: str) -> None:
    """Delete an index with its calibration card, and nothing else that lies in its folder.

    Everything is renamed first, so a kill leaves an index, or none, or one that says it is half
    made; what it leaves of the files, the next call deletes.

    Raises:
        StoreError: it is in a storage other than S3, something in its place is not an index, or
            its files cannot be deleted.
    """
    if is_remote(location):
        _delete_remote(location)
        return
    folder = Path(location)
    with as_store_error(location, "delete"), write_lock(location):
        # `videos` first: without it an index is half made, which whoever opens it is told.
        there = [t for t in (folder / f"{n}.lance" for n in reversed(NAMES)) if is_there(t)]
        for table in there:
            _check_ours(table)
        if there:
            card = [folder / CARD] if is_there(folder / CARD) else []
            for path in (*there[:-1], *card, there[-1]):
                path.rename(f"{path}{_GONE}{uuid.uuid4().hex}")
    tidy(location, at_once=True)
    with as_store_error(location, "delete"):
        for name in LOCKS if folder.is_dir() else ():
            (folder / name).unlink(missing_ok=True)
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def tidy(location: str, *, at_once: bool = False) -> None:
    """Delete what killed processes have left beside a local index.

    Args:
        location: place of the index.
        at_once: whether tables go that another process might be making just now.

    Raises:
        StoreError: it cannot be deleted.
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
    """What killed processes have left beside a local index, but for hidden files of its card.

    Args:
        location: place of the index.
        at_once: whether tables count that another process might be making just now.
    """
    if is_remote(location):
        return []
    folder, found = Path(location), []
    for name in NAMES:
        found += [*folder.glob(f"{name}.lance{_GONE}*"), *folder.glob(f"{name}.lance{ASIDE}*")]
        for made in folder.glob(f"{name}.lance{NEW}*"):
            if at_once or time.time() - made.stat().st_mtime > _IN_MAKING:
                found.append(made)
    return sorted([*found, *folder.glob(f"{CARD}{_GONE}*")])


def _delete_remote(location: str) -> None:
    if not location.startswith(SCHEME):
        raise StoreError(f"{location} is object storage; delete it with the tools of that storage.")
    with as_store_error(location, "delete"):
        for name in NAMES:
            if not Tables(location).is_ours_remote(name):
                raise StoreError(_not_ours(f"{location}/{name}.lance"))
        # `videos` first: without it an index is half made, which whoever opens it is told.
        delete_tables(location, tuple(reversed(NAMES)))
        (absolute(location) / CARD).unlink(missing_ok=True)


def _check_ours(folder: Path) -> None:
    """Refuse to delete what is not a table of ours; a damaged one of ours is accepted."""
    if not Tables.is_ours(folder):
        raise StoreError(_not_ours(folder))


def _not_ours(table: Path | str) -> str:
    return (
        f"{table} is not part of an index of Sureshot, so nothing was deleted. Move it "
        f"away, or choose another place with {option('db')}."
    )


_ROWS_AT_ONCE = 4096
_UNKNOWN = -1  # size and time of a file of which the row is lost: no file has these


def make_ready(tables: Tables, header: Header, *, all_lost: bool = False) -> list[str]:
    """Clear and mend an index and bring it to the present format; sentences on what was done.

    Args:
        tables: the index.
        header: what it says of itself.
        all_lost: whether all rows of videos may be lost, see `repair_index`.
    """
    make_locks(tables.location)
    tidy(tables.location)
    said = repair_index(tables, header, all_lost=all_lost)
    return said + upgrade(tables, tables.header())


def repair_index(tables: Tables, header: Header, *, all_lost: bool = False) -> list[str]:
    """Make an index one that can be written to, without losing a video; sentences on what was done.

    A broken newest version is moved aside, damaged rows of videos are made anew.

    Args:
        tables: the index, of any format.
        header: what it says of itself.
        all_lost: whether the table of videos was made anew, so that all rows may be lost.
    """
    said = [
        f"The newest version of the table of {name} was damaged, so the one before it was taken; "
        f"what it lacks is indexed again."
        for name in tables.move_broken_aside()
    ]
    damaged = _drop_damaged_videos(tables)
    if damaged or said or all_lost:
        rows = tables.use("videos", lambda table: table.to_table())
        found = _adopt(tables, header, [video_record(row) for row in rows.to_pylist()])
        if damaged or found:
            said.append(
                f"{counted(max(damaged, len(found)), 'video')} had a damaged or lost entry in the "
                f"index, which was made anew; its file is encoded again when it is met."
            )
    return said


def damaged_videos(tables: Tables) -> list[int]:
    """Numbers of the damaged rows of the table of videos."""

    def act(table: Any) -> list[int]:
        bad: list[int] = []
        for batch in table.to_batches(with_row_id=True, batch_size=_ROWS_AT_ONCE):
            rows = pa.Table.from_batches([batch])
            sound = sound_videos(rows.drop_columns(["_rowid"]))
            bad += rows.column("_rowid").filter(pa.array(~sound)).to_pylist()
        return bad

    return tables.use("videos", act)


def _drop_damaged_videos(tables: Tables) -> int:
    """Take damaged rows out of the table of videos; how many."""
    bad = damaged_videos(tables)
    if bad:
        tables.drop("videos", f"_rowid IN ({', '.join(map(str, bad))})")
    return len(bad)


def _adopt(tables: Tables, header: Header, known: Sequence[VideoRecord]) -> list[VideoRecord]:
    """Write a row for each video that has sound windows and no row; these videos.

    Their files count as changed, so the next `index` that meets them encodes them again; until then
    they are found as before.
    """
    ids = {record.id for record in known}
    lost: dict[str, VideoRecord] = {}
    for rows in window_batches(tables, (*SEARCHED, *WINDOW_CHECKS)):
        whole = rows.filter(pa.array(sound_windows(rows)))
        whole = whole.select(
            [n for n in ("video", "path", "end", "check") if n in whole.column_names]
        )
        for row in whole.to_pylist():
            if row["video"] not in ids and _id_of(row["path"]) == row["video"]:
                lost[row["video"]] = _grown(lost.get(row["video"]), row)
    found = list(lost.values())
    if found:
        rows = video_rows(found, header)
        # An older format has no checksums yet; its upgrade, which comes next, gives them to all.
        tables.upsert("videos", rows.select(tables.use("videos", lambda table: table.schema.names)))
    return found


def _grown(before: VideoRecord | None, window: dict[str, object]) -> VideoRecord:
    """A record with one window more."""
    path, end = from_text(str(window["path"])), float(str(window["end"]))
    check = int(str(window.get("check") or 0))
    return VideoRecord(
        path=path,
        kind="file",
        size=_UNKNOWN,
        mtime_ns=_UNKNOWN,
        duration=max(end, before.duration if before else 0.0),
        windows=1 + (before.windows if before else 0),
        check_windows=check + (before.check_windows if before else 0),
    )


def _id_of(text: str) -> str:
    return VideoRecord(path=from_text(text), kind="file", size=0, mtime_ns=0).id


Result = TypeVar("Result")

_AT_ONCE = 1024  # rows in memory
_MORE = 1 << 20  # bytes of a file at once
FAILED = (OSError, ValueError, RuntimeError, pa.ArrowException)


def retry_without_bad_files(tables: Tables, act: Callable[[bool], Result]) -> Result:
    """What ``act`` makes of an index; again without the files by which it failed, if any.

    Args:
        tables: the index; the caller has no turn.
        act: gets whether files were taken out.
    """
    try:
        return act(False)
    except FAILED:
        if is_remote(tables.location):
            raise
        with write_lock(tables.location):
            if not sum(_drop_from(tables, name) for name in NAMES):
                raise
        return act(True)


def _drop_from(tables: Tables, name: Name) -> int:
    """Take files out of a table of which no rows can be made; how many.

    Raises:
        OSError: a file could not be read at all, as by a disk that is away: that proves nothing.
    """

    def act(table: Any) -> int:
        bad = [f.fragment_id for f in table.get_fragments() if not _readable(f)]
        for fragment in (table.get_fragment(number) for number in bad):
            for path in _files_of(fragment, Path(tables.location) / f"{name}.lance"):
                _read_bytes(path)
        if bad:
            operation = lance.LanceOperation.Delete([], bad, "damaged")
            lance.LanceDataset.commit(table, operation, read_version=table.version)
        return len(bad)

    return tables.change(name, act)


def _readable(fragment: Any) -> bool:
    """Whether all rows of a part of a table can be read, if need be at the second attempt."""
    for _ in range(2):
        try:
            with plain_errors():
                for _ in fragment.to_batches(batch_size=_AT_ONCE):
                    pass
            return True
        except FAILED:
            pass
    return False


def _files_of(fragment: Any, table: Path) -> Iterator[Path]:
    yield from (table / "data" / file.path for file in fragment.data_files())
    if fragment.deletion_file():
        yield table / fragment.deletion_file()


def _read_bytes(path: Path) -> None:
    """Read a file whose content does not matter, if it is there.

    Raises:
        OSError: it is there and cannot be read.
    """
    try:
        with path.open("rb") as file:
            while file.read(_MORE):
                pass
    except FileNotFoundError:
        pass

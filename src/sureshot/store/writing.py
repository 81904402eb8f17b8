"""Rows in files that no version of a table names yet, and the commit that takes them in.

Files are written by any machine that sees the index, and committed by one.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from sureshot.errors import StoreError
from sureshot.s3 import object_path
from sureshot.store.integrity import id_list
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    Header,
    VideoRecord,
    from_text,
    renamed,
    sound_throughout,
    sum_of_checks,
    to_text,
    video_rows,
)
from sureshot.store.tables import CONFLICTS, Name, Tables, check_rows, is_there, numbers, sync_paths
from sureshot.text import counted

_KEPT = 2  # versions whose files are needed


def stage(tables: Tables, name: Name, rows: pa.Table) -> list[str]:
    """Write rows into files on the disk; descriptions of the files, as `put` takes them."""
    data = _data(tables, name)

    def act(table: Any) -> list[str]:
        made = write_fragments(rows, table, mode="append")
        check_rows(tables.location, name, made)
        return [json.dumps(fragment.to_json()) for fragment in made]

    staged = tables.use(name, act)
    if data is not None:
        sync_paths([*(data / path for path in _paths(staged)), data])
    return staged


def put(tables: Tables, name: Name, staged: Sequence[str], *, instead: str) -> None:
    """Take staged rows in, and those out that meet an SQL condition, in one commit.

    Raises:
        StoreError: a file with staged rows is not there.
    """
    data = _data(tables, name)
    gone = [path for path in _paths(staged) if data is not None and not is_there(data / path)]
    if gone:
        are = "is" if len(gone) == 1 else "are"
        raise StoreError(
            f"{counted(len(gone), 'file')} with encoded windows {are} not at {data}, such as "
            f"{gone[0]}. The index must lie where all machines that write to it see one folder."
        )
    new = [lance.FragmentMetadata.from_json(one) for one in staged]

    def act(table: Any) -> None:
        operation = _replacing(table, new, instead)
        lance.LanceDataset.commit(table, operation, read_version=table.version)

    for left in reversed(range(CONFLICTS)):
        try:
            return tables.change(name, act)
        except CommitConflictError:
            if not left:
                raise
    return None


def unnamed(tables: Tables, name: Name) -> int:
    """How many files of rows lie in a local table that its last versions do not name."""
    data = _data(tables, name)
    if data is None or not data.is_dir():
        return 0
    named = set()
    for number in numbers(data.parent)[:_KEPT]:
        table = lance.dataset(str(data.parent), version=number)
        named |= {file.path for part in table.get_fragments() for file in part.data_files()}
    return len({entry.name for entry in os.scandir(data)} - named)


def _replacing(table: Any, new: list[Any], instead: str) -> Any:
    """The operation that adds files of rows and takes out rows that meet a condition."""
    old = table.scanner(columns=[], filter=instead, with_row_address=True).to_table()
    touched = sorted({address >> 32 for address in old.column("_rowaddr").to_pylist()})
    if not touched:
        return lance.LanceOperation.Append(new)
    less = {number: table.get_fragment(number).delete(instead) for number in touched}
    return lance.LanceOperation.Update(
        removed_fragment_ids=[number for number, fragment in less.items() if fragment is None],
        updated_fragments=[fragment for fragment in less.values() if fragment is not None],
        new_fragments=new,
    )


def _data(tables: Tables, name: Name) -> Path | None:
    """Folder of the files of rows of a local table."""
    return None if is_remote(tables.location) else Path(tables.location) / f"{name}.lance" / "data"


def _paths(staged: Sequence[str]) -> list[str]:
    """Names of the files of staged rows."""
    return [file["path"] for one in staged for file in json.loads(one)["files"]]


@dataclass(frozen=True, slots=True)
class StagedVideo:
    """A video that only has to be committed.

    Attributes:
        record: the video, indexed or failed.
        files: descriptions of the files with its windows, as `sureshot.store.writing.stage` gives
            them; none of a failed video.
    """

    record: VideoRecord
    files: tuple[str, ...] = ()


def parcel_of(tables: Tables, record: VideoRecord, rows: pa.Table) -> StagedVideo:
    """The windows of a video in files on the disk.

    Args:
        tables: the index.
        record: the video, indexed, not failed.
        rows: its windows as rows of the table of windows, one at least.
    """
    known = replace(
        record,
        windows=len(rows),
        check_windows=sum_of_checks(rows),
        # Its row counts as written no earlier than its windows, whatever the clock says then.
        indexed_at=max(rows.column("written_at").to_pylist()),
    )
    return StagedVideo(known, tuple(stage(tables, "windows", rows)))


def parcel_of_copy(tables: Tables, old: VideoRecord, new: VideoRecord) -> StagedVideo | None:
    """A video with the windows of another that shares its content; None if these are not sound."""
    rows = tables.use("windows", lambda table: table.to_table(filter=f"video = '{old.id}'"))
    if len(rows) != old.windows or sum_of_checks(rows) != old.check_windows:
        return None
    if not sound_throughout(rows).all():
        return None
    return parcel_of(tables, replace(new, duration=old.duration, note=old.note), renamed(rows, new))


def deliver(tables: Tables, header: Header, parcels: Sequence[StagedVideo]) -> None:
    """Take videos in, in place of what was known of them. The caller has the turn.

    The windows of all come with one commit, which also takes older ones away, and are on the disk
    before the rows of the videos are written. Killed in between, the videos are encoded again.

    Args:
        tables: the index.
        header: what it says of itself.
        parcels: videos, each once; of none nothing is done.
    """
    whole = [parcel for parcel in parcels if parcel.files]
    failed = [parcel.record.id for parcel in parcels if not parcel.files]
    if whole:
        files = [file for parcel in whole for file in parcel.files]
        instead = _of([parcel.record.id for parcel in whole])
        put(tables, "windows", files, instead=instead)
        tables.sync()
    if parcels:
        tables.upsert("videos", video_rows([parcel.record for parcel in parcels], header))
    # Failed ones last: killed between the two, no row must claim windows that are gone.
    if failed and tables.use("windows", lambda table: table.count_rows(_of(failed))):
        tables.drop("windows", _of(failed))


def drop_videos(tables: Tables, known: Sequence[VideoRecord]) -> None:
    """Take videos and their windows out, but for what is written of them from now on."""
    ids = id_list([record.id for record in known])
    # Where writers cannot take turns, one may be at it; what it writes is to stay.
    until = max(time.time(), *(record.indexed_at for record in known))
    # The videos first: a window without its video is an orphan that `sweep` removes.
    tables.drop("videos", f"id IN ({ids}) AND indexed_at <= {until!r}")
    tables.drop("windows", f"video IN ({ids}) AND written_at <= {until!r}")


def _of(videos: Sequence[str]) -> str:
    """Condition on a window: it belongs to one of some videos, by either of what says so."""
    ids = id_list(videos)
    return f"(video IN ({ids}) OR left(key, {len(videos[0])}) IN ({ids}))"


_EXCLUDED = "sureshot.excluded."  # before each pattern


def stored_patterns(tables: Tables) -> tuple[str, ...]:
    """The patterns, in their order as texts."""
    settings = tables.use("videos", lambda table: table.config())
    kept = (name.removeprefix(_EXCLUDED) for name in settings if name.startswith(_EXCLUDED))
    return tuple(sorted(str(from_text(text)) for text in kept))


def store_patterns(tables: Tables, patterns: Sequence[str], *, excluded: bool) -> None:
    """Keep patterns from now on, or forget them."""
    named = (to_text(object_path(pattern) or Path(pattern)) for pattern in patterns)
    values = {_EXCLUDED + name: "" if excluded else None for name in named}
    if values:
        tables.change("videos", lambda table: table.update_config(values))

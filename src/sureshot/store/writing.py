"""Staged videos, whose windows are in files that no version names yet, and the commit of them.

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
from lance.fragment import write_fragments

from sureshot.errors import StoreError
from sureshot.store.integrity import id_list, sound_by_video
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    Header,
    VideoRecord,
    renamed,
    sum_of_checks,
    video_rows,
)
from sureshot.store.tables import Name, Tables, check_rows, is_there, sync_paths, versions
from sureshot.text import counted

_KEPT = 2  # versions whose files are needed
_SHARED = ("duration", "note", "shot", "shot_from")  # what the same content has in common


@dataclass(frozen=True, slots=True)
class StagedVideo:
    """A video, indexed or failed, that only has to be committed."""

    record: VideoRecord
    files: tuple[str, ...] = ()  # descriptions of those with its windows, and maybe of others


def stage(tables: Tables, record: VideoRecord, rows: pa.Table) -> StagedVideo:
    """Write the windows of a video into files, which are on the disk when this returns."""
    return _staged(record, rows, _write(tables, rows))


def stage_copies(
    tables: Tables, copies: Sequence[tuple[VideoRecord, VideoRecord]]
) -> list[StagedVideo | None]:
    """Videos with the windows of others, each of which has the same content; all in one file.

    Copies are pairs of a video that the index has, and the one that is to have its windows. It is
    None if these are not there as they were written.
    """
    there = sound_by_video(tables, "windows", (old.id for old, _ in copies))
    made: dict[str, pa.Table] = {}
    for old, new in copies:
        own = there.get(old.id)
        if own and (len(own), sum_of_checks(own)) == (old.windows, old.check_windows):
            made[new.id] = renamed(own, new)
    files = _write(tables, pa.concat_tables(made.values())) if made else ()
    shared = [{name: getattr(old, name) for name in _SHARED} for old, _ in copies]
    return [
        _staged(replace(new, **same), made[new.id], files) if new.id in made else None
        for (_, new), same in zip(copies, shared, strict=True)
    ]


def _write(tables: Tables, rows: pa.Table) -> tuple[str, ...]:
    """Write windows into files, which are on the disk then; descriptions of these."""
    data = _data(tables, "windows")

    def act(table: Any) -> tuple[str, ...]:
        made = write_fragments(rows, table, mode="append")
        check_rows(tables.location, "windows", made)
        return tuple(json.dumps(fragment.to_json()) for fragment in made)

    files = tables.use("windows", act)
    if data is not None:
        sync_paths([*(data / path for path in _paths(files)), data])
    return files


def _staged(record: VideoRecord, rows: pa.Table, files: tuple[str, ...]) -> StagedVideo:
    known = replace(
        record,
        windows=len(rows),
        check_windows=sum_of_checks(rows),
        # Its row counts as written no earlier than its windows, whatever the clock says then.
        indexed_at=max(rows.column("written_at").to_pylist()),
    )
    return StagedVideo(known, files)


def commit(tables: Tables, header: Header, videos: Sequence[StagedVideo]) -> None:
    """Take videos in, each once, in place of what was known. The caller has the write lock.

    The windows of all come with one commit, which also takes older ones away, and are on the disk
    before the rows of the videos are written. Killed in between, the videos are encoded again.
    """
    encoded = [video for video in videos if video.files]
    failed = [video.record.id for video in videos if not video.files]
    if encoded:
        files = [*dict.fromkeys(file for video in encoded for file in video.files)]
        _check_there(tables, files)
        new = [lance.FragmentMetadata.from_json(file) for file in files]
        old = _of([video.record.id for video in encoded])

        tables.commit("windows", lambda table: replace_rows(table, new, old))
        tables.sync()
    changed = _changed(tables, [video.record for video in encoded])
    tables.upsert("videos", video_rows([video.record for video in videos], header))
    if changed:  # what was said and written in the file that was there before
        tables.drop("lines", _of(changed))
    # Failed ones last: killed between the two, no row must claim windows that are gone.
    for name in tables.names[:-1] if failed else ():
        if tables.count(name, _of(failed)):
            tables.drop(name, _of(failed))


def _changed(tables: Tables, records: Sequence[VideoRecord]) -> list[str]:
    """Ids of videos that have lines perhaps, and another content than before."""
    if "lines" not in tables.names or not records:
        return []
    digests = {record.id: record.digest for record in records}
    condition = f"id IN ({id_list(list(digests))})"
    rows = tables.rows("videos", ["id", "digest"], condition).to_pylist()
    return [row["id"] for row in rows if row["digest"] and row["digest"] != digests[row["id"]]]


def drop_videos(tables: Tables, known: Sequence[VideoRecord]) -> None:
    """Take videos and their windows out, but for what is written of them from now on."""
    ids = id_list([record.id for record in known])
    # Where writers have no locks, one may be at it; what it writes is to stay.
    until = max(time.time(), *(record.indexed_at for record in known))
    # The videos first: a window without its video is an orphan that `sweep` removes.
    tables.drop("videos", f"id IN ({ids}) AND indexed_at <= {until!r}")
    for name in tables.names[:-1]:
        tables.drop(name, f"video IN ({ids}) AND written_at <= {until!r}")


def uncommitted_files(tables: Tables, name: Name) -> int:
    """How many files of rows of a local table its last versions do not name."""
    data = _data(tables, name)
    if data is None or not data.is_dir():
        return 0
    found = {entry.name for entry in os.scandir(data)}
    for number in versions(data.parent)[:_KEPT]:
        table = lance.dataset(str(data.parent), version=number)
        found -= {file.path for part in table.get_fragments() for file in part.data_files()}
    return len(found)


def replace_rows(table: Any, new: Sequence[Any], old: str) -> None:
    """Add files of rows and take out rows that meet a condition, in one commit."""
    rows = table.scanner(columns=[], filter=old, with_row_address=True).to_table()
    touched = sorted({address >> 32 for address in rows.column("_rowaddr").to_pylist()})
    left = {number: table.get_fragment(number).delete(old) for number in touched}
    operation = lance.LanceOperation.Append(new)
    if left:
        operation = lance.LanceOperation.Update(
            removed_fragment_ids=[number for number, fragment in left.items() if fragment is None],
            updated_fragments=[fragment for fragment in left.values() if fragment is not None],
            new_fragments=new,
        )
    lance.LanceDataset.commit(table, operation, read_version=table.version)


def _check_there(tables: Tables, files: Sequence[str]) -> None:
    data = _data(tables, "windows")
    gone = [path for path in _paths(files) if data is not None and not is_there(data / path)]
    if gone:
        are = "is" if len(gone) == 1 else "are"
        raise StoreError(
            f"{counted(len(gone), 'file')} with encoded windows {are} not at {data}, such as "
            f"{gone[0]}. The index must be where all machines that write to it see one folder."
        )


def _of(videos: Sequence[str]) -> str:
    """Condition on a window: it belongs to one of some videos, by either of what says so."""
    ids = id_list(videos)
    return f"(video IN ({ids}) OR left(key, {len(videos[0])}) IN ({ids}))"


def _data(tables: Tables, name: Name) -> Path | None:
    """Folder of the files of rows of a local table."""
    return None if is_remote(tables.location) else Path(tables.location) / f"{name}.lance" / "data"


def _paths(files: Sequence[str]) -> list[str]:
    """Names of files of rows by their descriptions."""
    return [file["path"] for text in files for file in json.loads(text)["files"]]

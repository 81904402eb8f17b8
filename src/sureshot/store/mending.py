"""Rows of videos that were lost or damaged, made anew from the windows that are still there."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sureshot.store.agreement import window_batches
from sureshot.store.checks import SEARCHED, WINDOW_CHECKS, sound_videos, sound_windows
from sureshot.store.formats import upgrade
from sureshot.store.header import Header
from sureshot.store.removal import tidy
from sureshot.store.rows import VideoRecord, from_text, video_record, video_rows
from sureshot.store.tables import Tables
from sureshot.store.turns import make_locks
from sureshot.text import counted

_ROWS_AT_ONCE = 4096
_UNKNOWN = -1  # size and time of a file of which the row is lost: no file has these


def make_ready(tables: Tables, header: Header, *, all_lost: bool = False) -> list[str]:
    """Clear and mend an index and bring it to the present format; sentences on what was done.

    Args:
        tables: the index.
        header: what it says of itself.
        all_lost: whether all rows of videos may be lost, see `mend_index`.
    """
    make_locks(tables.location)
    tidy(tables.location)
    said = mend_index(tables, header, all_lost=all_lost)
    return said + upgrade(tables, tables.header())


def mend_index(tables: Tables, header: Header, *, all_lost: bool = False) -> list[str]:
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

"""What the index claims of each video against the windows that are stored of it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.store.catalogue import id_list, parts_of_videos, records
from sureshot.store.checks import SEARCHED, WINDOW_CHECKS, sound_windows
from sureshot.store.rows import VideoRecord
from sureshot.store.tables import Tables, plain_errors

_ROWS_AT_ONCE = 1024
_MOST_READ = 100_000  # windows, about 1 GB


@dataclass(frozen=True, slots=True)
class StoredOf:
    """What is stored of one video.

    Attributes:
        windows: how many windows.
        check: sum of their checksums; 0 in an index of a format without.
        oldest: when the first of them was written, seconds since the epoch.
        newest: when the last of them was written.
    """

    windows: int
    check: int
    oldest: float
    newest: float


def stored_by_video(tables: Tables, condition: str | None = None) -> dict[str, StoredOf]:
    """What is stored of each video, by its id; of a damaged id too.

    Args:
        tables: the index.
        condition: which windows count; None takes all.
    """

    def act(table: Any) -> pa.Table:
        names = [name for name in ("video", "written_at", "check") if name in table.schema.names]
        return table.to_table(columns=names, filter=condition)

    rows = tables.use("windows", act)
    if "check" not in rows.column_names:
        rows = rows.append_column("check", pa.array([0] * len(rows), pa.uint32()))
    rows = rows.set_column(0, "video", rows.column("video").cast(pa.binary()))
    wanted = [("video", "count"), ("check", "sum"), ("written_at", "min"), ("written_at", "max")]
    grouped = rows.group_by("video").aggregate(wanted).to_pylist()
    return {
        (row["video"] or b"").decode("utf-8", "replace"): StoredOf(
            windows=row["video_count"],
            check=row["check_sum"] or 0,
            oldest=row["written_at_min"] or 0.0,
            newest=row["written_at_max"] or 0.0,
        )
        for row in grouped
    }


def disagreeing(known: Sequence[VideoRecord], stored: dict[str, StoredOf]) -> list[VideoRecord]:
    """The indexed videos of which other windows are stored than they claim, or none."""
    none = StoredOf(windows=0, check=0, oldest=0.0, newest=0.0)
    found = []
    for record in known:
        there = stored.get(record.id, none)
        if record.windows and (record.windows, record.check_windows) != (
            there.windows,
            there.check,
        ):
            found.append(record)
    return found


def lost_videos(tables: Tables) -> list[VideoRecord]:
    """The indexed videos of which other windows are stored than they claim, or none.

    The caller has the turn, else a video that is just being written would seem lost.
    """
    found: list[VideoRecord] = []
    for videos, windows in parts_of_videos(tables, "id", "video"):
        found += disagreeing(records(tables, videos)[0], stored_by_video(tables, windows))
    return found


def videos_with_damage(tables: Tables, known: Collection[VideoRecord]) -> list[VideoRecord]:
    """The indexed videos of whose windows something that searches read is not what was written.

    Args:
        tables: the index; of more than 100,000 windows none is read.
        known: videos that are left out.
    """
    if tables.use("windows", lambda table: int(table.count_rows())) > _MOST_READ:
        return []
    ids = sorted(videos_of_damaged_windows(tables) - {record.id for record in known})
    return records(tables, f"windows > 0 AND id IN ({id_list(ids)})")[0]


def videos_of_damaged_windows(tables: Tables) -> set[str]:
    """Ids of videos of whose windows something that searches read is not what was written.

    A window so damaged that it does not name its video counts for none.
    """
    found: set[str] = set()
    for rows in window_batches(tables, ("vector", *SEARCHED, *WINDOW_CHECKS)):
        found |= owners(rows.filter(pa.array(~sound_windows(rows))))
    return found


def window_batches(tables: Tables, columns: Collection[str]) -> Iterator[pa.Table]:
    """Rows of the table of windows, so many at once that they take little memory.

    Args:
        tables: the index.
        columns: names; those that the format does not have are left out.
    """

    def act(table: Any) -> Any:
        names = [name for name in table.schema.names if name in columns]
        return table.scanner(columns=names, batch_size=_ROWS_AT_ONCE, batch_readahead=2).to_reader()

    with plain_errors():
        for batch in tables.use("windows", act):
            yield pa.Table.from_batches([batch])


def owners(rows: pa.Table) -> set[str]:
    """Ids of videos that rows of the table of windows name, by ``video`` or as part of ``key``."""
    found: set[str] = set()
    for name in ("video", "key"):
        if name in rows.column_names:
            texts = pc.unique(rows.column(name).cast(pa.binary())).to_pylist()
            found |= {text[:32].decode("ascii", "replace") for text in texts if text}
    return found

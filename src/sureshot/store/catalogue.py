"""The table of videos read a part at a time, so that a million of them take no more memory."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.places import video_id
from sureshot.store.checks import sound_videos
from sureshot.store.rows import VideoRecord, video_record
from sureshot.store.tables import Tables

_PART = 20_000  # videos read at once
_ROWS_AT_ONCE = 65_536  # of one column
_AHEAD = 2  # batches that are read ahead; Lance's sixteen hold half a column of a million rows


def parts_of_videos(tables: Tables, *columns: str) -> Iterator[tuple[str | None, ...]]:
    """Conditions that part the videos of an index, each of which meets one part's.

    Args:
        tables: the index.
        columns: names of columns that hold ids of videos, damaged ones too; for each there is a
            condition, None where all videos are one part.
    """
    count = tables.use("videos", lambda table: int(table.count_rows()))
    many = min(4096, math.ceil(count / _PART))
    if many < 2:
        yield (None,) * len(columns)
        return
    # Ids are digests, of which as many begin with one number as with another.
    begins = [f"'{number * 65536 // many:04x}'" for number in range(1, many)]
    for first, end in zip([None, *begins], [*begins, None], strict=True):
        yield tuple(_between(column, first, end) for column in columns)


def records(tables: Tables, condition: str | None = None) -> tuple[list[VideoRecord], int]:
    """Videos that meet a condition, and how many damaged rows were left out."""

    def act(table: Any) -> pa.Table:
        return table.scanner(filter=condition, batch_readahead=_AHEAD).to_table()

    rows = tables.use("videos", act)
    sound = sound_videos(rows)
    kept = rows.filter(pa.array(sound)).to_pylist()
    return [video_record(row) for row in kept], int((~sound).sum())


def each(tables: Tables) -> Iterator[VideoRecord]:
    """Every video, in no order; one that comes or goes meanwhile may be among them or not."""
    for (condition,) in parts_of_videos(tables, "id"):
        yield from records(tables, condition)[0]


def at_paths(tables: Tables, paths: Iterable[Path]) -> list[VideoRecord]:
    """The videos at some paths that the index knows."""
    return _with(tables, "id", [video_id(path) for path in paths])


def of_sizes(tables: Tables, sizes: Iterable[int]) -> list[VideoRecord]:
    """The indexed videos that have one of some sizes in bytes."""
    return [record for record in _with(tables, "size", sorted(set(sizes))) if record.windows]


def _with(tables: Tables, column: str, values: Sequence[str] | Sequence[int]) -> list[VideoRecord]:
    """Videos that have one of some values in a column.

    A long list within an SQL condition would take a quarter of a millisecond a value.
    """

    def act(table: Any) -> pa.Table:
        places, first = [], 0
        wanted = pa.array(values, table.schema.field(column).type)
        scan = table.scanner(columns=[column], batch_size=_ROWS_AT_ONCE, batch_readahead=_AHEAD)
        for batch in scan.to_batches():
            found = pc.is_in(batch.column(column), value_set=wanted)
            places += [first + place for place in pc.indices_nonzero(found).to_pylist()]
            first += len(batch)
        return table.take(places)

    if not values:
        return []
    rows = tables.use("videos", act)
    return [video_record(row) for row in rows.filter(pa.array(sound_videos(rows))).to_pylist()]


def id_list(ids: Sequence[str]) -> str:
    """Ids of videos as the list of an SQL condition."""
    return ", ".join(f"'{one}'" for one in ids) or "''"


def _between(column: str, first: str | None, end: str | None) -> str:
    if first is None:
        return f"({column} < {end} OR {column} IS NULL)"
    return f"{column} >= {first}" + ("" if end is None else f" AND {column} < {end}")

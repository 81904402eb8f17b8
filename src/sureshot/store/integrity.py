"""What the index claims of each video against the windows that are stored of it."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.errors import StoreError
from sureshot.paths import video_id
from sureshot.store.locks import write_lock
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    SEARCHED,
    WINDOW_CHECKS,
    VideoRecord,
    sound_vectors,
    sound_videos,
    sound_windows,
    video_record,
)
from sureshot.store.tables import NAMES, Tables, as_store_error, plain_errors
from sureshot.text import counted, plain

_PART = 20_000  # videos read at once
_CATALOGUE_ROWS_AT_ONCE = 65_536  # of one column
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
        scan = table.scanner(
            columns=[column], batch_size=_CATALOGUE_ROWS_AT_ONCE, batch_readahead=_AHEAD
        )
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


MOST = 20_000  # windows; 10 MB of the bundled model's vectors, read and checked in 60 ms


class VectorCheck:
    """Checks the vectors of a table of windows, those of each file once."""

    def __init__(self) -> None:
        self._sound: set[str] = set()  # files

    def damaged(self, table: Any) -> pa.Table:
        """Keys and paths of the windows of a version whose vectors are not what was written.

        None where there are more windows than `MOST`, or in a format without checksums.
        """
        fresh = {}
        if "check_vector" in table.schema.names and table.count_rows() <= MOST:
            for fragment in table.get_fragments():
                files = "+".join(part.path for part in fragment.data_files())
                if files not in self._sound:
                    fresh[files] = fragment
        columns = ["key", "path", "vector", "check_vector"]
        if not fresh:
            return pa.table({"key": pa.array([], pa.string()), "path": pa.array([], pa.string())})
        rows = table.scanner(columns=columns, fragments=list(fresh.values())).to_table()
        sound = sound_vectors(rows)
        if sound.all():
            self._sound |= set(fresh)
        return rows.filter(pa.array(~sound)).select(["key", "path"])


class Claims:
    """Holds what an index claims against what it has, once for each version of its tables.

    Args:
        tables: the index.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._said: tuple[tuple[int, ...], list[str]] = (), []  # of these versions

    def trouble(self) -> list[str]:
        """Sentences on windows that are lost or nobody's; none where all is as claimed.

        Of more than `MOST` windows it is only seen how many there are.
        """
        try:
            with as_store_error(self._tables.location, "read"):
                versions = tuple(self._tables.use(name, lambda t: t.version) for name in NAMES)
                if versions != self._said[0]:
                    self._said = versions, self._look()
        except StoreError as error:
            return [str(error)]  # a search does without the table of videos, but not in silence
        return self._said[1]

    def _look(self) -> list[str]:
        count = self._tables.use("windows", lambda table: int(table.count_rows()))
        if count > MOST and count == self._tables.use("videos", _claimed):
            return []
        if count <= MOST and not self._sentences():
            return []
        with write_lock(
            self._tables.location
        ):  # else a video that is just being written would seem lost
            return self._sentences()

    def _sentences(self) -> list[str]:
        rows = self._tables.use("videos", lambda table: table.to_table())
        sound = sound_videos(rows)
        records = [video_record(row) for row in rows.filter(pa.array(sound)).to_pylist()]
        stored = stored_by_video(self._tables)
        strays = stored.keys() - {record.id for record in records if record.windows}
        said = on_lost(disagreeing(records, stored))
        if strays and sound.all() and not is_remote(self._tables.location):
            are = "is" if len(strays) == 1 else "are"
            said.append(
                f"Among what is searched {are} {counted(len(strays), 'video')} that the index does "
                f"not list, as a command that was ended leaves it. `sureshot index FOLDER` puts "
                f"that right."
            )
        return said


def on_lost(lost: Sequence[VideoRecord]) -> list[str]:
    """A sentence on videos whose windows are not those that the index claims.

    Args:
        lost: videos; of none nothing is said.
    """
    if not lost:
        return []
    have = "has" if len(lost) == 1 else "have"
    return [
        f"{counted(len(lost), 'video')} {have} lost windows, such as {plain(lost[0].path)}. "
        f"`sureshot index FOLDER` indexes them again."
    ]


def _claimed(table: Any) -> int:
    return int(pc.sum(table.to_table(columns=["windows"]).column("windows")).as_py() or 0)

"""What an index claims of each video against the windows that are stored of it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.errors import StoreError
from sureshot.progress import Progress, Silent
from sureshot.store.locks import write_lock
from sureshot.store.remote import is_remote
from sureshot.store.rows import CHECKED, VideoRecord, sound, texts_of, video_record
from sureshot.store.tables import NAMES, Name, Tables, as_store_error, plain_errors
from sureshot.text import counted, plain

MAX_CHECKED = 20_000  # windows; 10 MB of the bundled model's vectors, read and checked in 60 ms
_PART = 20_000  # videos read at once
_WINDOWS_AT_ONCE = 1024
_VALUES_AT_ONCE = 65_536  # of one column
_AHEAD = 2  # batches that are read ahead; Lance's sixteen hold half a column of a million rows


def _parts(tables: Tables) -> Iterator[tuple[str | None, str | None]]:
    """Conditions on videos and on windows, which part both, damaged ids included; None for all."""
    count = math.ceil(tables.count("videos") / _PART)
    if count < 2:
        yield None, None
        return
    # Ids are digests, of which as many begin with one number as with another.
    many = min(4096, count)
    begins = [f"'{number * 65536 // many:04x}'" for number in range(1, many)]
    for first, end in zip([None, *begins], [*begins, None], strict=True):
        yield _between("id", first, end), _between("video", first, end)


def _between(column: str, first: str | None, end: str | None) -> str:
    if first is None:
        return f"({column} < {end} OR {column} IS NULL)"
    return f"{column} >= {first}" + ("" if end is None else f" AND {column} < {end}")


def records(tables: Tables) -> tuple[list[VideoRecord], list[int]]:
    """Every video, and the row ids of damaged ones, which are left out."""
    rows, damaged = _sound_rows(tables)
    return _records_of(rows), damaged


def _sound_rows(tables: Tables, condition: str | None = None) -> tuple[pa.Table, list[int]]:
    def act(table: Any) -> pa.Table:
        scan = table.scanner(filter=condition, batch_readahead=_AHEAD, with_row_id=True)
        return scan.to_table()

    rows = tables.use("videos", act)
    ids, rows = rows.column("_rowid"), rows.drop_columns(["_rowid"])
    right = sound(rows)
    return rows.filter(pa.array(right)), ids.filter(pa.array(~right)).to_pylist()


def _records_of(rows: pa.Table) -> list[VideoRecord]:
    return [video_record(row) for row in rows.to_pylist()]


def each(tables: Tables, below: Set[str] | None = None) -> Iterator[VideoRecord]:
    """Every video, in no order; one that comes or goes meanwhile may be among them or not.

    Of a large index most time goes into paths. With ``below``, texts of some of these, no others
    are made than of videos at or below them, and of failed ones.
    """
    for condition, _ in _parts(tables):
        rows, _ = _sound_rows(tables, condition)
        if below is not None:
            named = zip(rows["path"].to_pylist(), rows["reason"].to_pylist(), strict=True)
            near = [bool(why) or _is_in(path, below) for path, why in named]
            rows = rows.filter(pa.array(near, pa.bool_()))
        yield from _records_of(rows)


def _is_in(path: str, folders: Set[str]) -> bool:
    """Whether a path, or a folder that it is in, is one of some."""
    while path not in folders:
        path, slash, _ = path.rpartition("/")
        if not slash:
            return "/" in folders
    return True


def damaged_videos(tables: Tables) -> list[int]:
    """Row ids of the damaged rows of the table of videos."""
    return [row for condition, _ in _parts(tables) for row in _sound_rows(tables, condition)[1]]


def records_with(
    tables: Tables, column: str, values: Sequence[str] | Sequence[int]
) -> list[VideoRecord]:
    """Videos that have one of some values in a column.

    A long list within an SQL condition would take a quarter of a millisecond per value.
    """

    def act(table: Any) -> pa.Table:
        places, first = [], 0
        wanted = pa.array(values, table.schema.field(column).type)
        scan = table.scanner(columns=[column], batch_size=_VALUES_AT_ONCE, batch_readahead=_AHEAD)
        for batch in scan.to_batches():
            found = pc.is_in(batch.column(column), value_set=wanted)
            places += [first + place for place in pc.indices_nonzero(found).to_pylist()]
            first += len(batch)
        return table.take(places)

    if not values:
        return []
    rows = tables.use("videos", act)
    return _records_of(rows.filter(pa.array(sound(rows))))


def sound_by_video(tables: Tables, name: Name, ids: Iterable[str]) -> dict[str, pa.Table]:
    """The sound rows that a table of windows or of lines has of some videos, by their ids."""
    condition = f"video IN ({id_list(sorted(set(ids)))})"
    rows = tables.use(name, lambda table: table.to_table(filter=condition))
    rows = rows.filter(pa.array(sound(rows)))
    places: dict[str, list[int]] = defaultdict(list)
    for place, video in enumerate(rows.column("video").to_pylist()):
        places[video].append(place)
    return {video: rows.take(pa.array(own)) for video, own in places.items()}


def id_list(ids: Iterable[str]) -> str:
    """Ids of videos as the list of an SQL condition."""
    return ", ".join(map(quoted, ids)) or "''"


def quoted(text: str) -> str:
    """Text as an SQL literal; a damaged id may have a quote in it, too."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class StoredOf:
    """Windows that are stored of one video."""

    windows: int = 0
    check: int = 0  # sum of their checksums
    oldest: float = 0.0  # when the first of them was written, seconds since the epoch
    newest: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an index, or a part of it, claims and has."""

    known: pa.Table  # sound rows of videos
    damaged: list[int]  # row ids of damaged ones
    stored: dict[str, StoredOf]  # by the id of its video, which may be a damaged one

    def lost(self) -> list[VideoRecord]:
        """The indexed videos of which other windows are stored than they claim, or none."""

        def is_lost(video: str, windows: int, check: int) -> bool:
            there = self.stored.get(video, StoredOf())
            return windows > 0 and (windows, check) != (there.windows, there.check)

        names = "id", "windows", "check_windows"
        claims = zip(*(self.known[name].to_pylist() for name in names), strict=True)
        return self.named(one[0] for one in claims if is_lost(*one))

    def named(self, ids: Iterable[str]) -> list[VideoRecord]:
        """The videos among these that have one of some ids."""
        wanted = pa.array(ids, pa.string())
        return _records_of(self.known.filter(pc.is_in(self.known["id"], value_set=wanted)))

    def strays(self) -> dict[str, StoredOf]:
        """Windows of no indexed video."""
        indexed = set(self.known.filter(pc.field("windows") > 0)["id"].to_pylist())
        return {video: there for video, there in self.stored.items() if video not in indexed}


def compared(tables: Tables) -> Iterator[Comparison]:
    """Each part of an index.

    Without the write lock a video that is just being written seems lost.
    """
    for videos, windows in _parts(tables):
        yield Comparison(*_sound_rows(tables, videos), _stored_by_video(tables, windows))


def _stored_by_video(tables: Tables, condition: str | None) -> dict[str, StoredOf]:
    rows = tables.rows("windows", ["video", "written_at", "check"], condition)
    wanted = [("video", "count"), ("check", "sum"), ("written_at", "min"), ("written_at", "max")]
    found = rows.group_by("video").aggregate(wanted)
    numbers = found.drop_columns(["video"]).to_pylist()
    return {
        video: StoredOf(
            windows=row["video_count"],
            check=row["check_sum"] or 0,
            oldest=row["written_at_min"] or 0.0,
            newest=row["written_at_max"] or 0.0,
        )
        for video, row in zip(texts_of(found["video"]), numbers, strict=True)
    }


def damaged_windows(tables: Tables, progress: Progress | None = None) -> tuple[int, set[str]]:
    """How many windows are not what was written, and the ids of videos that they name."""
    progress = progress or Silent()
    count, done, damaged, ids = tables.count("windows"), 0, 0, set[str]()
    progress.update("windows checked", 0, count)
    for rows in window_batches(tables):
        bad = rows.filter(pa.array(~sound(rows)))
        damaged, ids, done = damaged + len(bad), ids | _owners(bad), done + len(rows)
        progress.update("windows checked", done, max(count, done))
    return damaged, ids


def window_batches(tables: Tables) -> Iterator[pa.Table]:
    """All rows of the table of windows, so many at once that they take little memory."""

    def act(table: Any) -> Any:
        return table.scanner(batch_size=_WINDOWS_AT_ONCE, batch_readahead=_AHEAD).to_reader()

    with plain_errors():
        for batch in tables.use("windows", act):
            yield pa.Table.from_batches([batch])


def _owners(rows: pa.Table) -> set[str]:
    """Ids of videos that windows name, by ``video`` or as part of ``key``."""
    return {text[:32] for name in ("video", "key") for text in texts_of(rows[name]) if text}


class VectorCheck:
    """Checks the vectors of a table of windows, those of each file once."""

    def __init__(self) -> None:
        self._sound: set[str] = set()  # files

    def damaged(self, table: Any) -> pa.Table:
        """Row ids of the windows of a version whose vectors are not what was written.

        None of more than `MAX_CHECKED` windows.
        """
        fresh = {}
        if table.count_rows() <= MAX_CHECKED:
            for fragment in table.get_fragments():
                files = "+".join(part.path for part in fragment.data_files())
                if files not in self._sound:
                    fresh[files] = fragment
        if not fresh:
            return pa.table({"_rowid": pa.array([], pa.uint64())})
        wanted = list(fresh.values())
        rows = table.scanner(list(CHECKED), fragments=wanted, with_row_id=True).to_table()
        right = sound(rows.drop_columns(["_rowid"]))
        if right.all():
            self._sound |= set(fresh)
        return rows.filter(pa.array(~right)).select(["_rowid"])


class ClaimsCheck:
    """Compares what an index claims with what it has, once for each version of its tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: tuple[tuple[int, ...], list[str]] = (), []  # of these versions

    def trouble(self) -> list[str]:
        """Sentences on windows that are lost or of no video; none where all is as claimed.

        Of more than `MAX_CHECKED` windows only their number is compared.
        """
        try:
            with as_store_error(self._tables.location, "read"):
                versions = tuple(self._tables.use(name, lambda t: t.version) for name in NAMES)
                if versions != self._found[0]:
                    self._found = versions, self._compare()
        except StoreError as error:
            return [str(error)]  # a search does without the table of videos, but not in silence
        return self._found[1]

    def _compare(self) -> list[str]:
        if self._agree():
            return []
        # Most often somebody was just between the commits of windows and of their videos.
        with write_lock(self._tables.location):
            return [] if self._agree() else self._sentences()

    def _agree(self) -> bool:
        """Whether as many windows are there as videos have; of few it is looked at which."""
        count = self._tables.count("windows")
        if count > MAX_CHECKED:
            claims = self._tables.rows("videos", ["windows"])
            return count == (pc.sum(claims["windows"]).as_py() or 0)
        return not self._sentences()

    def _sentences(self) -> list[str]:
        parts = list(compared(self._tables))
        lost = [record for part in parts for record in part.lost()]
        strays = sum(len(part.strays()) for part in parts)
        damaged = any(part.damaged for part in parts)
        sentences = []
        if lost:
            have = "has" if len(lost) == 1 else "have"
            sentences.append(
                f"{counted(len(lost), 'video')} {have} lost windows, such as "
                f"{plain(lost[0].path)}. `sureshot index FOLDER` indexes them again."
            )
        if strays and not damaged and not is_remote(self._tables.location):
            are = "is" if strays == 1 else "are"
            sentences.append(
                f"Among what is searched {are} {counted(strays, 'video')} that the index does "
                f"not list, as a command that was ended leaves it. `sureshot index FOLDER` puts "
                f"that right."
            )
        return sentences

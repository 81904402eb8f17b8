"""Windows read from an index, each verified by its checksum, and the index of their vectors."""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float
from lance.dataset import serialize_row_addrs

from sureshot.errors import StoreError
from sureshot.store.integrity import ClaimsCheck, VectorCheck, quoted
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    StoredWindows,
    VideoRecord,
    from_text,
    query_vector,
    sound,
    stored_windows,
    to_text,
)
from sureshot.store.tables import Name, Tables, check_written, state_of
from sureshot.text import listed, plain, printable

SCANNED = 20_000  # windows that a search may compare one by one, which takes about 15 ms
PARTITIONS = 16
_LARGEST = 4_000_000  # windows of a segment that is left alone, as 1 GB has to be read for more
_GROWTH = 2  # a segment is made again where others bring at least its size divided by this
_NAME, _COLUMN = "vectors", "vector"
_NAMED = 3  # damaged videos that a sentence names
# Every partition is looked at: a sentence is far from all pictures, and the partitions nearest to
# it need not hold the best ones.
_NEAREST: dict[str, Any] = {"column": _COLUMN, "metric": "dot", "nprobes": PARTITIONS}


@dataclass(frozen=True, slots=True)
class VideoSet:
    """The only videos that a search looks at.

    Attributes:
        words: what they have in common, to follow "nothing is indexed".
        note: what to know about the choice; mostly nothing.
    """

    ids: frozenset[str]
    words: str
    note: str = ""


Selection: TypeAlias = Path | VideoSet  # the videos at or below a path, or a set
Folders: TypeAlias = str | Path | Sequence[str | Path]  # paths or names, of one or of any


def said(selection: Selection) -> str:
    """What is selected, to follow "nothing is indexed"."""
    if isinstance(selection, VideoSet):
        return selection.words
    return f"at or below {printable(selection)}"


def is_selected(video: VideoRecord, selection: Selection | None) -> bool:
    """Whether a video is among those selected; all of them are where nothing is."""
    if isinstance(selection, VideoSet):
        return video.id in selection.ids
    return selection is None or video.path.is_relative_to(selection)


def path_is(path: Path) -> str:
    """Condition on a row: it is of the video at this path."""
    return f"path = {quoted(to_text(path))}"


class SelectedRows:
    """Options of a scan of a table for the rows of selected videos.

    Those of a set are looked up once for each version: an SQL condition that names its ids would be
    parsed and compared for every scan, at 4 microseconds per id.
    """

    def __init__(self, column: str = "video") -> None:
        self._column = column  # that has the id of the video
        self._known: tuple[Any, bytes] = None, b""  # of a version and a set

    def options(self, table: Any, selection: Selection | None, *more: str) -> dict[str, Any]:
        """For a table and more SQL conditions, each of which a row has to meet."""
        wanted: dict[str, Any] = {}
        if isinstance(selection, VideoSet):
            wanted["row_addr_allowlist"] = self._rows(table, selection)
        elif selection is not None:
            folder = quoted(to_text(selection).rstrip("/") + "/")
            more = (f"({path_is(selection)} OR starts_with(path, {folder}))", *more)
        return wanted | ({"filter": " AND ".join(more), "prefilter": True} if more else {})

    def count(self, table: Any, selection: Selection | None, *more: str) -> int:
        """How many rows these are."""
        scan = table.scanner(columns=[], with_row_id=True, **self.options(table, selection, *more))
        return int(scan.count_rows())

    def _rows(self, table: Any, selection: VideoSet) -> bytes:
        state, (known, rows) = (state_of(table), selection.ids), self._known
        if known != state:
            ids = pa.array(selection.ids, pa.string())
            scan = table.scanner(columns=[self._column], with_row_id=True, batch_readahead=2)
            parts = [
                one["_rowid"].filter(pc.is_in(one[self._column], value_set=ids))
                for one in scan.to_batches()
            ]
            rows = serialize_row_addrs(pa.chunked_array(parts, pa.uint64()).to_pylist())
            self._known = state, rows
        return rows


class Finder:
    """Finds windows in an index."""

    def __init__(self, tables: Tables, dim: int) -> None:
        self._tables = tables
        self._dim = dim
        self._vectors = VectorCheck()
        self._claims = ClaimsCheck(tables)
        self._damaged: tuple[int, frozenset[str]] = (0, frozenset())  # of a version: paths
        self._all: tuple[Any, StoredWindows | None] = (None, None)  # of a version
        self._selected = SelectedRows()

    def nearest(
        self,
        vector: Float[np.ndarray, " dim"],
        k: int,
        selection: Selection | None = None,
        exclude: Path | None = None,
        *,
        hub_corrected: bool = False,
    ) -> StoredWindows:
        """The windows nearest to a query of unit length, as candidates for an exact score.

        Damaged ones are left out, see `trouble`.
        """
        count = k

        def act(table: Any) -> StoredWindows:
            nonlocal count
            while True:
                rows, right = self._near(table, vector, count, hub_corrected, selection, exclude)
                if right.sum() >= k or len(rows) < count:
                    return stored_windows(rows.filter(pa.array(right)).slice(0, k), self._dim)
                count += int((~right).sum())

        return self._tables.read("windows", act)

    def nearest_many(
        self,
        vectors: Float[np.ndarray, "queries dim"],
        k: int,
        selection: Selection | None = None,
        *,
        hub_corrected: bool = False,
    ) -> list[StoredWindows]:
        """What `nearest` gives for each query, from one pass over the index."""

        def act(table: Any) -> pa.Table | None:
            rows, right = self._near(table, vectors, k, hub_corrected, selection)
            return rows if right.all() else None

        rows = self._tables.read("windows", act)
        if rows is None:  # one by one, as others then take the place of damaged ones
            return [self.nearest(v, k, selection, hub_corrected=hub_corrected) for v in vectors]
        query = rows.column("query_index").to_numpy()
        parts = [rows.filter(pa.array(query == number)) for number in range(len(vectors))]
        return [stored_windows(part, self._dim) for part in parts]

    def all_windows(self, limit: int) -> StoredWindows | None:
        """All windows but damaged ones, in no order; None if there are more than so many.

        They are read once for each version of the index, and must not be changed.
        """

        def act(table: Any) -> StoredWindows | None:
            (state, known), now = self._all, state_of(table)
            if state == now and (known is None or len(known.keys) <= limit):
                return known
            found = None
            if table.count_rows() <= limit:
                rows, right = self._rows(table, columns=["packed"])
                found = stored_windows(rows.filter(pa.array(right)), self._dim)
            self._all = now, found
            return found

        return self._tables.read("windows", act)

    def count(self, selection: Selection | None) -> int:
        """Number of windows of all videos, or of those selected."""
        return self._tables.read("windows", lambda t: self._selected.count(t, selection))

    def windows(self, condition: str, order: str) -> StoredWindows:
        """The windows that meet an SQL condition, in the order of a column."""

        def act(table: Any) -> tuple[pa.Table, Bool[np.ndarray, " rows"], frozenset[str]]:
            rows = table.to_table(columns=["packed", order], filter=condition, with_row_id=True)
            right = sound(rows)
            if not right.all():
                self._tables.doubt("windows")
            return rows, right, _paths_of(table, rows.filter(pa.array(~right)))

        rows, right, damaged = self._tables.read("windows", act)
        if not right.all():
            raise StoreError(damage(self._tables.location, damaged))
        return stored_windows(rows.sort_by(order), self._dim)

    def trouble(self) -> list[str]:
        """What searches of the newest version left out or did not find, as sentences."""
        _, names = self._damaged
        sentences = []
        if names:
            sentences = [f"{damage(self._tables.location, names)} They were left out."]
        return [*sentences, *self._claims.trouble()]

    def _near(
        self,
        table: Any,
        vectors: Float[np.ndarray, "*queries dim"],
        k: int,
        hub_corrected: bool,
        selection: Selection | None = None,
        exclude: Path | None = None,
    ) -> tuple[pa.Table, Bool[np.ndarray, " rows"]]:
        """The k rows nearest to each query, and which of them are sound."""
        width = table.schema.field(_COLUMN).type.list_size
        queries = query_vector(vectors, width, hub_corrected=hub_corrected)
        others = [f"NOT {path_is(exclude)}"] if exclude is not None else []
        return self._rows(
            table,
            columns=["packed", "_distance"],
            nearest={
                **_NEAREST,
                "q": queries.astype(np.float16),
                "k": k,
                "use_index": "windows" not in self._tables.unindexed,
            },
            **self._selected.options(table, selection, *others),
        )

    def _rows(self, table: Any, **wanted: Any) -> tuple[pa.Table, Bool[np.ndarray, " rows"]]:
        """Rows as Lance is asked for them, and which of them are sound, their vectors included."""
        wrong = self._vectors.damaged(table)
        rows = table.scanner(with_row_id=True, **wanted).to_table()
        right = sound(rows)
        if len(wrong):
            among = pc.is_in(rows.column("_rowid"), wrong.column("_rowid"))
            right &= ~among.to_numpy(zero_copy_only=False)
        names: frozenset[str] = frozenset()
        if len(wrong) or not right.all():
            self._tables.doubt("windows")
            names = _paths_of(table, wrong) | _paths_of(table, rows.filter(pa.array(~right)))
        version, known = self._damaged
        if names or version != table.version:
            same = version == table.version
            self._damaged = table.version, names | (known if same else frozenset())
        return rows, right


def _paths_of(table: Any, rows: pa.Table) -> frozenset[str]:
    """Paths of rows by their ids, to be printed, as far as they can be read."""
    if not len(rows):
        return frozenset()
    ids = ", ".join(map(str, rows.column("_rowid").to_pylist()))
    found = table.to_table(columns=["path"], filter=f"_rowid IN ({ids})")
    texts: Sequence[bytes | None] = found.column("path").cast(pa.binary()).to_pylist()
    return frozenset(plain(from_text((text or b"?").decode("utf-8", "replace"))) for text in texts)


def damage(location: str, names: Collection[str]) -> str:
    """A sentence on damaged windows of an index."""
    return (
        f"The index at {plain(location)} is damaged: windows of {listed(sorted(names), _NAMED)} "
        "are not what was written. `sureshot index FOLDER` encodes them again."
    )


def add_segment(tables: Tables, name: Name = "windows") -> bool:
    """Make a segment of rows that have none, if more than `SCANNED`; whether it was done.

    Killed midway, the index is as it was; what was written is removed with old versions.
    """
    chosen = tables.use(name, _due)
    if not chosen:
        return False

    def act(table: Any) -> None:
        made = make_segment(table, chosen)
        if not is_remote(tables.location):
            folder = Path(tables.location) / f"{name}.lance" / "_indices" / str(made.uuid)
            check_written(folder.iterdir())
        table.commit_existing_index_segments(_NAME, _COLUMN, [made])

    tables.change(name, act)
    return True


def make_segment(table: Any, fragments: Collection[int]) -> Any:
    """Write a segment of some fragments; ``commit_existing_index_segments`` takes it in."""
    return table.create_index_uncommitted(
        _COLUMN,
        "IVF_RQ",
        name=_NAME,
        metric="dot",
        num_partitions=PARTITIONS,
        fragment_ids=sorted(fragments),
        replace=True,  # of the segments of these fragments, not of others
    )


def _due(table: Any) -> frozenset[int]:
    """Fragments of the segment that is to be made; none where there is none to make."""
    rows = {f.fragment_id: f.physical_rows - f.num_deletions for f in table.get_fragments()}
    found = [index for index in table.describe_indices() if index.name == _NAME]
    return due(rows, [part.fragment_ids & rows.keys() for one in found for part in one.segments])


def due(rows: dict[int, int], there: Sequence[Set[int]]) -> frozenset[int]:
    """Which fragments, of so many windows each, a new segment is made of, given those there are."""
    chosen = frozenset(rows).difference(*there)
    count = sum(rows[number] for number in chosen)
    if count <= SCANNED:
        return frozenset()
    for part in sorted(there, key=lambda part: sum(rows[number] for number in part)):
        size = sum(rows[number] for number in part)
        if size > min(_GROWTH * count, _LARGEST):
            break
        chosen, count = chosen | part, count + size
    return chosen

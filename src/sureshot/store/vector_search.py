"""Windows read from an index, each held against its checksum."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from sureshot.errors import StoreError
from sureshot.store.integrity import Claims, VectorCheck
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    SEARCHED,
    STORED_COLUMNS,
    WINDOW_CHECKS,
    StoredWindows,
    asking,
    from_text,
    names_in,
    sound_packed,
    sound_windows,
    stored_windows,
    to_text,
)
from sureshot.store.tables import Tables, as_store_error, check_written
from sureshot.text import plain

SCANNED = 20_000  # windows that a search may compare one by one, which takes about 15 ms
PARTITIONS = 16
_LARGEST = 4_000_000  # windows of a segment that is left alone, as 1 GB has to be read for more
_GROWTH = 2  # a segment is made anew where others bring at least its size divided by this
_NAME = "vectors"
_COLUMN = "vector"


def add_segment(tables: Tables) -> bool:
    """Make a segment of windows that have none, if they are more than `SCANNED`.

    Killed midway, the index is as it was; what was written is removed with old versions.

    Returns:
        Whether it was done.

    Raises:
        OSError, ValueError, RuntimeError: it cannot be written, or another process was quicker.
    """
    chosen = tables.use("windows", _due)
    if not chosen:
        return False

    def act(table: Any) -> None:
        made = make_segment(table, chosen)
        if not is_remote(tables.location):
            folder = Path(tables.location) / "windows.lance" / "_indices" / str(made.uuid)
            check_written(folder.iterdir())
        table.commit_existing_index_segments(_NAME, _COLUMN, [made])

    tables.change("windows", act)
    return True


def make_segment(table: Any, fragments: Collection[int]) -> Any:
    """Write a segment of some files; it counts once ``commit_existing_index_segments`` has it.

    Args:
        table: the table of windows.
        fragments: numbers of its fragments, those of whole segments where they are in one.
    """
    return table.create_index_uncommitted(
        _COLUMN,
        "IVF_RQ",
        name=_NAME,
        metric="dot",
        num_partitions=PARTITIONS,
        fragment_ids=sorted(fragments),
        replace=True,  # of the segments of these fragments, not of others
    )


def segments(table: Any) -> list[frozenset[int]]:
    """Fragments of each segment there is."""
    found = [index for index in table.describe_indices() if index.name == _NAME]
    return [frozenset(part.fragment_ids) for index in found for part in index.segments]


def _due(table: Any) -> frozenset[int]:
    """Fragments of the segment that is to be made; none where there is none to make."""
    rows = {f.fragment_id: f.physical_rows - f.num_deletions for f in table.get_fragments()}
    there = [frozenset(part & rows.keys()) for part in segments(table)]
    return due(rows, there)


def due(rows: dict[int, int], there: Sequence[frozenset[int]]) -> frozenset[int]:
    """Which fragments a new segment is made of.

    Args:
        rows: number of windows of each fragment.
        there: fragments of each segment.
    """
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


def path_is(path: Path) -> str:
    """Condition on a row: it belongs to the video at this path."""
    return f"path = {quoted(to_text(path))}"


@dataclass(frozen=True, slots=True)
class VideoSet:
    """Some videos that a search looks at, and no others.

    Attributes:
        ids: ids of the videos.
        words: what they have in common, to be read by people.
    """

    ids: frozenset[str]
    words: str

    def __str__(self) -> str:
        return self.words


Selection: TypeAlias = Path | VideoSet  # which videos: those at or below a path, or some


def path_below(path: Selection, column: str = "video") -> str:
    """Condition on a row: its video lies at or below this path, or is one of some.

    Args:
        path: folder or file that the videos lie at or below, or some of them by name.
        column: column that has the ids of videos.
    """
    if isinstance(path, VideoSet):
        return (
            f"{column} IN ({', '.join(f'{quoted!r}' for quoted in sorted(path.ids)) or repr('')})"
        )
    folder = to_text(path).rstrip("/") + "/"
    return f"({path_is(path)} OR starts_with(path, {quoted(folder)}))"


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


_NAMED = 3  # damaged videos that a sentence names
# Every partition is looked at: a sentence lies far from all pictures, and the partitions nearest to
# it need not hold the best ones (benchmarks/candidates.py).
_NEAR: dict[str, Any] = {"column": "vector", "metric": "dot", "nprobes": PARTITIONS}


class Finder:
    """Finds windows in an index.

    Args:
        tables: the index.
        dim: size of its vectors.
    """

    def __init__(self, tables: Tables, dim: int) -> None:
        self._tables = tables
        self._dim = dim
        self._vectors = VectorCheck()
        self._claims = Claims(tables)
        self._damaged: tuple[int, frozenset[str]] = (0, frozenset())  # of a version: paths
        self._every: tuple[tuple[Any, ...], StoredWindows | None] = ((), None)  # of a version

    def nearest(
        self,
        vector: Float[np.ndarray, " dim"],
        k: int,
        under: Selection | None = None,
        exclude: Path | None = None,
        *,
        hub_corrected: bool = False,
    ) -> StoredWindows:
        """The windows whose vectors lie nearest, as candidates for an exact score.

        Damaged ones are left out, see `trouble`.

        Args:
            vector: the query, unit length.
            k: how many windows.
            under: only videos at or below this path.
            exclude: leave this video out.
            hub_corrected: whether the model's hub correction counts too.
        """
        near, condition = dict(_NEAR), _condition(under, exclude)

        def act(table: Any) -> pa.Table:
            wrong = self._vectors.damaged(table)
            if len(wrong):
                self._tables.doubt("windows")
            self._note(table.version, wrong)
            near["q"] = asking(vector, _width(table), hub_corrected=hub_corrected).astype(
                np.float16
            )
            most = k
            while True:
                rows = table.to_table(
                    columns=[*_columns(table), "_distance"],
                    nearest=near | {"k": most},
                    filter=condition,
                    prefilter=True,
                )
                sound = _sound(rows) & ~_among(rows, wrong)
                if not sound.all():
                    self._tables.doubt("windows")
                self._note(table.version, rows.filter(pa.array(~sound)))
                if sound.sum() >= k or len(rows) < most:
                    return rows.filter(pa.array(sound)).slice(0, k)
                most += int((~sound).sum())

        with as_store_error(self._tables.location, "read"):
            return stored_windows(self._tables.use("windows", act), self._dim)

    def every(self, most: int) -> StoredWindows | None:
        """All windows but damaged ones, in no order; None if there are more than so many.

        They are read once for each version of the index. Nobody may change them.
        """

        def act(table: Any) -> StoredWindows | None:
            # An index that was made anew in the same place has the same numbers of versions.
            files = [part.path for one in table.get_fragments() for part in one.data_files()]
            (state, known), now = self._every, (table.version, *files)
            if state == now and (known is None or len(known.keys) <= most):
                return known
            found = None
            if table.count_rows() <= most:
                wrong = self._vectors.damaged(table)
                rows = table.to_table(columns=_columns(table))
                sound = _sound(rows) & ~_among(rows, wrong)
                if not sound.all():
                    self._tables.doubt("windows")
                self._note(table.version, wrong)
                self._note(table.version, rows.filter(pa.array(~sound)))
                found = stored_windows(rows.filter(pa.array(sound)), self._dim)
            self._every = now, found
            return found

        with as_store_error(self._tables.location, "read"):
            return self._tables.use("windows", act)

    def nearest_many(
        self,
        vectors: Float[np.ndarray, "queries dim"],
        k: int,
        under: Selection | None = None,
        *,
        hub_corrected: bool = False,
    ) -> list[StoredWindows]:
        """What `nearest` gives for each query, from one pass over the index."""

        def act(table: Any) -> pa.Table | None:
            if len(self._vectors.damaged(table)):
                return None
            q = [asking(v, _width(table), hub_corrected=hub_corrected) for v in vectors]
            rows = table.to_table(
                columns=[*_columns(table), "_distance"],
                nearest=_NEAR | {"q": np.stack(q).astype(np.float16), "k": k},
                filter=_condition(under, None),
                prefilter=True,
            )
            return rows if _sound(rows).all() else None

        with as_store_error(self._tables.location, "read"):
            rows = self._tables.use("windows", act)
        if rows is None:  # one by one, as others then take the place of damaged ones
            return [self.nearest(v, k, under, hub_corrected=hub_corrected) for v in vectors]
        query = rows.column("query_index").to_numpy()
        parts = [rows.filter(pa.array(query == number)) for number in range(len(vectors))]
        return [stored_windows(part, self._dim) for part in parts]

    def windows(self, condition: str, order: str) -> StoredWindows:
        """The windows that meet an SQL condition, in the order of a column.

        Raises:
            StoreError: some are damaged.
        """

        def act(table: Any) -> tuple[pa.Table, np.ndarray]:
            columns = dict.fromkeys([*_columns(table), order])
            rows = table.to_table(columns=list(columns), filter=condition)
            sound = _sound(rows)
            if not sound.all():
                self._tables.doubt("windows")
            return rows, sound

        with as_store_error(self._tables.location, "read"):
            rows, sound = self._tables.use("windows", act)
        if not sound.all():
            names = _names(rows.filter(pa.array(~sound)))
            raise StoreError(damage(self._tables.location, names))
        return stored_windows(rows.sort_by(order), self._dim)

    def trouble(self) -> list[str]:
        """What searches of the newest version left out or did not find, as sentences."""
        _, names = self._damaged
        left_out = "They were left out."
        said = [f"{damage(self._tables.location, names)} {left_out}"] if names else []
        return [*said, *self._claims.trouble()]

    def _note(self, version: int, rows: pa.Table) -> None:
        before, names = self._damaged
        if not len(rows) and before == version:
            return
        self._damaged = (version, (names if before == version else frozenset()) | _names(rows))


def _condition(under: Selection | None, exclude: Path | None) -> str | None:
    """Which windows are looked at; None is all of them."""
    wanted = [path_below(under)] if under is not None else []
    if exclude is not None:
        wanted.append(f"NOT {path_is(exclude)}")
    return " AND ".join(wanted) or None


def _width(table: Any) -> int:
    """How many numbers a vector has in the format of a table."""
    return table.schema.field("vector").type.list_size


def damage(location: str, names: Collection[str]) -> str:
    """A sentence on damaged windows of an index.

    Args:
        location: place of the index.
        names: the videos they are of, as they may be printed.
    """
    shown = sorted(names)[:_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return (
        f"The index at {plain(location)} is damaged: windows of {', '.join(shown)}{more} are not "
        f"what was written. `sureshot index FOLDER` encodes them again."
    )


def _columns(table: Any) -> list[str]:
    """What is read of a window: with checksums where its format has them."""
    if "packed" in table.schema.names:
        return ["packed"]
    checks = [name for name in WINDOW_CHECKS if name in table.schema.names]
    return [*(n for n in SEARCHED if n != "packed"), *checks] if checks else list(STORED_COLUMNS)


def _sound(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which windows are what was written, as far as was read of them."""
    return sound_packed(rows) if "packed" in rows.column_names else sound_windows(rows)


def _among(rows: pa.Table, wrong: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which windows are among those whose vectors are not what was written."""
    if not len(wrong):
        return np.zeros(len(rows), bool)
    keys = rows.column("key") if "key" in rows.column_names else _keys(rows)
    return pc.is_in(keys, wrong.column("key")).to_numpy(zero_copy_only=False)


def _keys(rows: pa.Table) -> pa.Array:
    known = names_in(rows.column("packed").to_pylist())
    return pa.array([names[0] if names else None for names in known], pa.string())


def _names(rows: pa.Table) -> frozenset[str]:
    """Paths of rows, as far as they can be read, to be printed."""
    if "packed" in rows.column_names:
        known = names_in(rows.column("packed").to_pylist())
        return frozenset(plain(from_text(names[1] if names else "?")) for names in known)
    texts: Sequence[bytes | None] = rows.column("path").cast(pa.binary()).to_pylist()
    return frozenset(plain(from_text((text or b"?").decode("utf-8", "replace"))) for text in texts)

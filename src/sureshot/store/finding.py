"""Windows read from an index, each held against its checksum."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from sureshot.errors import StoreError
from sureshot.store.checks import SEARCHED, WINDOW_CHECKS, sound_windows
from sureshot.store.claims import Claims
from sureshot.store.conditions import Under, path_below, path_is
from sureshot.store.hubs import asking
from sureshot.store.packed import names_in, sound_packed
from sureshot.store.rows import STORED_COLUMNS, StoredWindows, from_text, stored_windows
from sureshot.store.segments import PARTITIONS
from sureshot.store.tables import Tables, guard
from sureshot.store.vectors import VectorCheck
from sureshot.text import plain

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
        under: Under | None = None,
        exclude: Path | None = None,
        *,
        less_hubs: bool = False,
    ) -> StoredWindows:
        """The windows whose vectors lie nearest, as candidates for an exact score.

        Damaged ones are left out, see `trouble`.

        Args:
            vector: the query, unit length.
            k: how many windows.
            under: only videos at or below this path.
            exclude: leave this video out.
            less_hubs: whether the model's hub correction counts too.
        """
        near, condition = dict(_NEAR), _condition(under, exclude)

        def act(table: Any) -> pa.Table:
            wrong = self._vectors.damaged(table)
            if len(wrong):
                self._tables.doubt("windows")
            self._note(table.version, wrong)
            near["q"] = asking(vector, _width(table), less_hubs=less_hubs).astype(np.float16)
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

        with guard(self._tables.location, "read"):
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

        with guard(self._tables.location, "read"):
            return self._tables.use("windows", act)

    def nearest_many(
        self,
        vectors: Float[np.ndarray, "queries dim"],
        k: int,
        under: Under | None = None,
        *,
        less_hubs: bool = False,
    ) -> list[StoredWindows]:
        """What `nearest` gives for each query, from one pass over the index."""

        def act(table: Any) -> pa.Table | None:
            if len(self._vectors.damaged(table)):
                return None
            q = [asking(v, _width(table), less_hubs=less_hubs) for v in vectors]
            rows = table.to_table(
                columns=[*_columns(table), "_distance"],
                nearest=_NEAR | {"q": np.stack(q).astype(np.float16), "k": k},
                filter=_condition(under, None),
                prefilter=True,
            )
            return rows if _sound(rows).all() else None

        with guard(self._tables.location, "read"):
            rows = self._tables.use("windows", act)
        if rows is None:  # one by one, as others then take the place of damaged ones
            return [self.nearest(v, k, under, less_hubs=less_hubs) for v in vectors]
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

        with guard(self._tables.location, "read"):
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


def _condition(under: Under | None, exclude: Path | None) -> str | None:
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

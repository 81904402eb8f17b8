"""The index: videos and their windows, written whole and searched by vector.

A video's windows are written first, its row in ``videos`` after them: that row is what makes the
video count as indexed, so an interruption between the two only repeats one video.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from sureshot.errors import StoreError, option
from sureshot.places import locate
from sureshot.settings import to_values
from sureshot.store.header import Header, IndexSettings
from sureshot.store.rows import (
    STORED_COLUMNS,
    EncodedWindow,
    StoredWindows,
    VideoRecord,
    from_text,
    path_below,
    path_is,
    renamed,
    stored_windows,
    to_text,
    video_record,
    video_row,
    video_schema,
    window_key,
    window_rows,
    window_schema,
)
from sureshot.store.tables import Name, Tables, guard
from sureshot.store.upkeep import PARTITIONS, compact, index_vectors, sweep

_EXCLUDED = "sureshot.excluded."  # before each pattern, among the settings of the table of videos
_COMPACT_EVERY = 64  # commits; each one adds a small file and a line to the next manifests


class Store:
    """An index. Open with `Store.open` or `Store.create`, any number of processes at once.

    Attributes:
        location: folder or object-storage URI.
        settings: how its videos were cut and sampled.
        fingerprint: digest that identifies the encoder that wrote it.
        dim: size of its vectors.
    """

    def __init__(self, tables: Tables, header: Header) -> None:
        self.location = tables.location
        self.settings = header.settings
        self.fingerprint = header.fingerprint
        self.dim = header.dim
        self._header = header
        self._tables = tables
        self._commits = 0

    @classmethod
    def create(
        cls,
        location: str | Path,
        settings: IndexSettings,
        fingerprint: str,
        dim: int,
        channels: int,
    ) -> "Store":
        """Open the index at ``location``, making an empty one where there is none.

        Raises:
            StoreError: there is one, but by another model or with other settings; or none can be
                made there.
        """
        tables = Tables(locate(location))
        if not tables.exists():
            header = Header(settings=settings, fingerprint=fingerprint, dim=dim, channels=channels)
            tables.create(header)
        store = cls(tables, tables.header())
        store.check_model(settings.model, fingerprint)
        # The same model may have moved to another folder; all else must agree.
        settings = replace(settings, model=store.settings.model)
        if store.settings != settings:
            theirs, ours = to_values(store.settings), to_values(settings)
            differ = ", ".join(f"{k} = {v!r}" for k, v in theirs.items() if v != ours[k])
            raise StoreError(
                f"The index at {store.location} was built with other settings ({differ}). Index "
                f"with the same ones, or choose another place with {option('db')}, or run "
                f"`sureshot reset`."
            )
        return store

    @classmethod
    def open(cls, location: str | Path) -> "Store":
        """Open an existing index.

        Raises:
            StoreError: there is none, it is damaged, or a newer Sureshot wrote it.
        """
        tables = Tables(locate(location))
        if not tables.exists():
            raise StoreError(
                f"There is no index at {tables.location}. Make one with `sureshot index FOLDER`, "
                f"or name another place with {option('db')}."
            )
        return cls(tables, tables.header())

    @staticmethod
    def exists(location: str | Path) -> bool:
        """Whether an index lies at this place: sound, damaged, or left half made.

        Raises:
            StoreError: the place cannot be looked at.
        """
        return Tables(locate(location)).exists()

    @staticmethod
    def delete(location: str | Path) -> None:
        """Delete an index and nothing else that may lie in its folder.

        Raises:
            StoreError: it is in object storage, something in its place is not an index, or its
                files cannot be deleted.
        """
        Tables(locate(location)).delete()

    def check_model(self, model: str, fingerprint: str) -> None:
        """Refuse an encoder other than the one that wrote the index.

        Raises:
            StoreError: the vectors would not compare; the message says what to do.
        """
        if fingerprint == self.fingerprint:
            return
        theirs = self.settings.model
        if model == theirs:
            what, fix = f"another version of the model {theirs!r} than the one here", "Index"
        else:
            what, fix = (
                f"the model {theirs!r}, not by {model!r}",
                f"Use {option('model', theirs)}, or index",
            )
        raise StoreError(
            f"The index at {self.location} was written by {what}, and vectors of different models "
            f"do not compare. {fix} again, into another place ({option('db')}) or after "
            f"`sureshot reset`."
        )

    def videos(self) -> list[VideoRecord]:
        """Every video the index knows, failed ones included, in the order of their paths."""
        rows = self._read("videos", columns=video_schema(self._header).names)
        return sorted((video_record(row) for row in rows.to_pylist()), key=lambda r: r.path)

    def excluded(self) -> tuple[str, ...]:
        """Patterns of what is left out, in their order as texts."""
        with guard(self.location, "read"):
            settings = self._tables.use("videos", lambda table: table.config())
        kept = (name.removeprefix(_EXCLUDED) for name in settings if name.startswith(_EXCLUDED))
        return tuple(sorted(str(from_text(text)) for text in kept))

    def set_excluded(self, patterns: Sequence[str], *, excluded: bool) -> None:
        """Remember patterns of what is left out, or forget them.

        Args:
            patterns: patterns of `sureshot.media.excluded.Excluded`.
            excluded: whether what they match is left out from now on.

        Raises:
            StoreError: the index cannot be written.
        """
        if not patterns:
            return
        values = {_EXCLUDED + to_text(Path(p)): "" if excluded else None for p in patterns}
        with guard(self.location, "write to"):
            self._tables.use("videos", lambda table: table.update_config(values))

    def write(self, record: VideoRecord, windows: Sequence[EncodedWindow]) -> None:
        """Store a video, replacing what was known of it. Whole or not at all, also when killed.

        Args:
            record: the video, indexed, not failed.
            windows: its windows, one at least, in the order of time.

        Raises:
            StoreError: the disk is full or cannot be written; what was there before is unharmed.
        """
        with guard(self.location, "write to"):
            self._put_windows(record.id, window_rows(record, windows, self._header))
            self._put_video(replace(record, windows=len(windows)))
        self._committed()

    def fail(self, record: VideoRecord) -> None:
        """Remember that a video could not be indexed, and drop what it gave earlier."""
        with guard(self.location, "write to"):
            # Its row first: killed between the two, no row must claim windows that are gone.
            self._put_video(replace(record, windows=0))
            self._drop_windows(record.id, 0)
        self._committed()

    def copy(self, old: VideoRecord, new: VideoRecord) -> bool:
        """Give ``new`` the windows of ``old``, whose content it shares, without encoding anything.

        Returns:
            Whether they were all there; if not (another process took them away), nothing was done.
        """
        with guard(self.location, "write to"):
            names = window_schema(self._header).names
            rows = self._read("windows", columns=names, filter=f"video = '{old.id}'")
            if len(rows) != old.windows:
                return False
            self._put_windows(new.id, renamed(rows, new))
            self._put_video(replace(new, windows=old.windows, duration=old.duration, note=old.note))
        self._committed()
        return True

    def touch(self, record: VideoRecord) -> None:
        """Note that only what is known of the file has changed: its windows stay as they are."""
        with guard(self.location, "write to"):
            self._put_video(record)
        self._committed()

    def remove(self, records: Sequence[VideoRecord]) -> None:
        """Forget videos and their windows."""
        with guard(self.location, "write to"):
            for first in range(0, len(records), 500):
                ids = ", ".join(f"'{r.id}'" for r in records[first : first + 500])
                # The videos first: a window without its video is an orphan that `sweep` removes.
                self._tables.drop("videos", f"id IN ({ids})")
                self._tables.drop("windows", f"video IN ({ids})")
                self._committed()

    def count(self, under: Path | None = None) -> int:
        """Number of windows, or of those of videos at or below a path."""
        condition = None if under is None else path_below(under)
        with guard(self.location, "read"):
            return int(self._tables.use("windows", lambda table: table.count_rows(condition)))

    def count_videos(self, under: Path | None = None) -> int:
        """Number of videos that can be found, or of those at or below a path."""
        condition = "windows > 0" if under is None else f"windows > 0 AND {path_below(under)}"
        with guard(self.location, "read"):
            return int(self._tables.use("videos", lambda table: table.count_rows(condition)))

    def nearest(
        self,
        vector: Float[np.ndarray, " dim"],
        k: int,
        under: Path | None = None,
        exclude: Path | None = None,
    ) -> StoredWindows:
        """The ``k`` windows whose pooled vectors lie nearest, as candidates for an exact score.

        Args:
            vector: the query, unit length.
            k: how many.
            under: only videos at or below this path.
            exclude: leave this video out.
        """
        return stored_windows(self._nearest(vector, k, STORED_COLUMNS, under, exclude), self.dim)

    def windows_of(self, path: Path) -> StoredWindows:
        """All windows of one video in the order of time; none if it is not indexed."""
        rows = self._read("windows", columns=list(STORED_COLUMNS), filter=path_is(path))
        return stored_windows(rows.sort_by("start"), self.dim)

    def windows_in(self, videos: Sequence[VideoRecord]) -> StoredWindows:
        """All windows of some videos, each video's together and in the order of time."""
        return self._among("video", [video.id for video in videos])

    def sweep(self) -> int:
        """Remove windows left by an interrupted write; returns of how many videos.

        Only those written over ten minutes ago, so that another indexer's video in flight is safe.
        """
        with guard(self.location, "write to"):
            return sweep(self._tables)

    def compact(self) -> None:
        """Join small files, drop superseded ones and keep a large index quick to search."""
        compact(self._tables)
        self.index_vectors()

    def index_vectors(self) -> bool:
        """Index the vectors if so many are not that comparing them one by one takes long.

        Returns:
            Whether an index was built.
        """
        return index_vectors(self._tables)

    def bytes_on_disk(self) -> int:
        """Size of a local index; 0 for one in object storage."""
        return self._tables.bytes_on_disk()

    def _nearest(
        self,
        vector: Float[np.ndarray, " dim"],
        k: int,
        columns: Sequence[str],
        under: Path | None,
        exclude: Path | None,
    ) -> pa.Table:
        wanted = [path_below(under)] if under is not None else []
        if exclude is not None:
            wanted.append(f"NOT {path_is(exclude)}")
        near = {"column": "vector", "q": vector.astype(np.float16), "k": k, "metric": "dot"}
        # Every partition is looked at: a sentence lies far from all pictures, and the partitions
        # nearest to it need not hold the best ones (benchmarks/candidates.py).
        near |= {"nprobes": PARTITIONS, "refine_factor": 2}
        return self._read(
            "windows",
            columns=[*columns, "_distance"],
            nearest=near,
            filter=" AND ".join(wanted) or None,
            prefilter=True,
        )

    def _read(self, name: Name, **wanted: Any) -> pa.Table:
        """Rows of a table, by the arguments of Lance's ``to_table``."""
        with guard(self.location, "read"):
            return self._tables.use(name, lambda table: table.to_table(**wanted))

    def _among(self, column: str, values: Sequence[str]) -> StoredWindows:
        """The windows whose id of this kind is one of some, in the order of their keys."""
        listed = ", ".join(f"'{value}'" for value in values) or "''"
        condition = f"{column} IN ({listed})"
        rows = self._read("windows", columns=list(STORED_COLUMNS), filter=condition)
        return stored_windows(rows.sort_by("key"), self.dim)

    def _put_windows(self, video: str, rows: pa.Table) -> None:
        """New windows in, changed ones over, surplus ones of a longer version out."""
        self._tables.upsert("windows", rows)
        self._drop_windows(video, len(rows))

    def _drop_windows(self, video: str, kept: int) -> None:
        surplus = f"video = '{video}' AND key >= '{window_key(video, kept)}'"
        # Not within the upsert: that joins the whole table, 1.4 s at a million windows, not 0.15.
        if self._tables.use("windows", lambda table: table.count_rows(surplus)):
            self._tables.drop("windows", surplus)

    def _put_video(self, record: VideoRecord) -> None:
        self._tables.upsert("videos", video_row(record, self._header))

    def _committed(self) -> None:
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            self.compact()

"""Rows of an index: the values we work with, the tables they are stored in, and the way between.

Vectors and tokens are stored as 16-bit floats: half the size, and the rounding, 5e-4 of a value,
is far below what tells two frames apart.
"""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, UInt8

from sureshot.media.signature import SIZE
from sureshot.models.encoders.protocol import VideoFeatures
from sureshot.models.mean_frames import mean_pool
from sureshot.objects.path import object_path
from sureshot.places import video_id
from sureshot.store.checks import WINDOW_CHECKS, checked_videos, checked_windows
from sureshot.store.header import PACKED, Header
from sureshot.store.hubs import with_hubs
from sureshot.store.packed import Packed, packed_value, packed_window

STORED_COLUMNS = ("key", "path", "start", "end", "times", "signatures", "frames")
_ESCAPE = 0xF700  # private-use characters that stand for bytes of a path, see `to_text`
_ESCAPED = re.compile("[\uf780-\uf7ff]")
# Makes Lance see that two writers insert the same row, which is then stored once.
_PRIMARY = {b"lance-schema:unenforced-primary-key": b"true"}


@dataclass(frozen=True, slots=True)
class VideoRecord:
    """What the index knows of one video.

    Attributes:
        path: absolute path of the file or folder of frames.
        kind: ``file`` or ``frames``.
        size: bytes when it was indexed.
        mtime_ns: modification time when it was indexed.
        digest: digest of its content, empty where it could not be read.
        duration: seconds, up to the last frame that could be decoded.
        windows: how many windows it was cut into; 0 for a failed one.
        reason: why it failed; empty for an indexed video.
        transient: whether the failure may go away by itself and is worth another try next time.
        note: what was wrong with an indexed video, empty if nothing.
        indexed_at: seconds since the epoch.
        check_windows: sum of the checksums of its windows, which tells them from older ones.
    """

    path: Path
    kind: Literal["file", "frames"]
    size: int
    mtime_ns: int
    digest: str = ""
    duration: float = 0.0
    windows: int = 0
    reason: str = ""
    transient: bool = False
    note: str = ""
    indexed_at: float = 0.0
    check_windows: int = 0

    @property
    def id(self) -> str:
        """Digest of the path: one video a path."""
        return video_id(self.path)


@dataclass(frozen=True, slots=True)
class EncodedWindow:
    """A window ready to be stored: where it lies, and its frames as vectors of the encoder."""

    start: float
    end: float
    times: Float[np.ndarray, " frames"]
    signatures: UInt8[np.ndarray, "frames 288"]
    frames: Float[np.ndarray, "frames dim"]


@dataclass(frozen=True, slots=True)
class StoredWindows:
    """Windows read back, padded to one number of frames; rows as the store returned them.

    Attributes:
        keys: identity of each window.
        paths: the video each belongs to.
        start: seconds.
        end: seconds.
        times: seconds of each frame, 0 where padded.
        signatures: near-duplicate signature of each frame, zero where padded.
        frames: frame vectors, zero where padded.
        mask: True where a frame is real.
    """

    keys: list[str]
    paths: list[Path]
    start: Float[np.ndarray, " windows"]
    end: Float[np.ndarray, " windows"]
    times: Float[np.ndarray, "windows frames"]
    signatures: UInt8[np.ndarray, "windows frames 288"]
    frames: Float[np.ndarray, "windows frames dim"]
    mask: Bool[np.ndarray, "windows frames"]

    @property
    def features(self) -> VideoFeatures:
        """What a model compares of the windows."""
        return VideoFeatures.of_frames(self.frames, self.mask)


def window_key(video: str, number: int) -> str:
    """Identity of a window; keys of one video sort like their numbers."""
    return f"{video}-{number:06}"


def to_text(path: Path) -> str:
    """A path as UTF-8 text, with U+F700 + b for a byte b that is not UTF-8.

    A name that really holds one of U+F780-F7FF has its three bytes written that way, so that no two
    paths share a text.
    """
    return "".join(
        "".join(chr(_ESCAPE + b) for b in os.fsencode(c))
        if "\udc80" <= c <= "\udcff" or "\uf780" <= c <= "\uf7ff"
        else c
        for c in os.fspath(path)
    )


def from_text(text: str) -> Path:
    """The path that `to_text` wrote."""
    if (named := object_path(text)) is not None:
        return named
    if not _ESCAPED.search(text):
        return Path(text)
    return Path(
        os.fsdecode(
            b"".join(
                bytes([ord(c) - _ESCAPE]) if "\uf780" <= c <= "\uf7ff" else c.encode() for c in text
            )
        )
    )


def from_texts(texts: Sequence[str]) -> list[Path]:
    """The paths of many rows, of which few differ."""
    known = {text: from_text(text) for text in set(texts)}
    return [known[text] for text in texts]


def video_schema(header: Header) -> pa.Schema:
    """Columns of the table of videos."""
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=_PRIMARY),
            ("path", pa.string()),
            ("kind", pa.string()),
            ("size", pa.int64()),
            ("mtime_ns", pa.int64()),
            ("digest", pa.string()),
            ("duration", pa.float64()),
            ("windows", pa.int32()),
            ("reason", pa.string()),
            ("transient", pa.bool_()),
            ("note", pa.string()),
            ("indexed_at", pa.float64()),
            ("check_windows", pa.int64()),
            ("check", pa.uint32()),
        ],
        metadata=header.to_metadata(),
    )


def window_schema(header: Header) -> pa.Schema:
    """Columns of the table of windows."""
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False, metadata=_PRIMARY),
            ("video", pa.string()),
            ("path", pa.string()),
            ("start", pa.float64()),
            ("end", pa.float64()),
            ("written_at", pa.float64()),
            *((("packed", pa.binary()),) if header.schema >= PACKED else _apart(header.dim)),
            ("vector", pa.list_(pa.float16(), header.width)),
            *((name, pa.uint32()) for name in WINDOW_CHECKS),
        ],
        metadata=header.to_metadata(),
    )


def _apart(dim: int) -> tuple[tuple[str, pa.DataType], ...]:
    """The columns that formats up to 4 have in place of the packed one."""
    return (
        ("times", pa.list_(pa.float32())),
        ("signatures", pa.binary()),
        ("frames", pa.list_(pa.list_(pa.float16(), dim))),
    )


def video_rows(records: Sequence[VideoRecord], header: Header) -> pa.Table:
    """Records as rows of the table of videos, stamped with now, or a later time that they have."""
    now, rows = time.time(), []
    for record in records:
        row = {name: getattr(record, name) for name in VideoRecord.__slots__}
        row |= {"id": record.id, "path": to_text(record.path)}
        row["indexed_at"] = max(now, record.indexed_at)
        # What ffmpeg says of a file may quote bytes of it.
        row |= {name: row[name].encode("utf-8", "replace").decode() for name in ("reason", "note")}
        rows.append(row)
    return checked_videos(pa.Table.from_pylist(rows, schema=video_schema(header)))


def video_record(row: dict[str, Any]) -> VideoRecord:
    """The record that a row of the table of videos holds."""
    values = {name: row[name] for name in VideoRecord.__slots__ if name in row}
    return VideoRecord(**values | {"path": from_text(row["path"])})


def window_rows(record: VideoRecord, windows: Sequence[EncodedWindow], header: Header) -> pa.Table:
    """Windows of a video as a table, at least one."""
    schema = window_schema(header)
    pooled = [mean_pool(w.frames[None], np.ones((1, len(w.times)), bool))[0] for w in windows]
    columns = (
        _identity(record, len(windows))
        | {
            "start": pa.array([w.start for w in windows], pa.float64()),
            "end": pa.array([w.end for w in windows], pa.float64()),
            "vector": _halves(with_hubs(np.stack(pooled), header)),
        }
        | {name: pa.nulls(len(windows), pa.uint32()) for name in WINDOW_CHECKS}
    )
    if header.schema >= PACKED:
        columns["packed"] = _packed(record, windows)
    else:
        columns |= {
            "times": pa.array(
                [w.times.astype(np.float32) for w in windows], pa.list_(pa.float32())
            ),
            "signatures": pa.array([w.signatures.tobytes() for w in windows], pa.binary()),
            "frames": _tokens([w.frames for w in windows]),
        }
    return checked_windows(pa.table([columns[name] for name in schema.names], schema=schema))


def renamed(rows: pa.Table, record: VideoRecord) -> pa.Table:
    """The windows of one video as windows of another with the same content."""
    rows = rows.sort_by("start")
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= _identity(record, len(rows))
    if "packed" in columns:
        columns["packed"] = _packed(record, [packed_window(v) for v in rows["packed"].to_pylist()])
    return checked_windows(pa.table(columns, schema=rows.schema))


def stored_windows(rows: pa.Table, dim: int) -> StoredWindows:
    """Rows of the table of windows, sound, with `STORED_COLUMNS` or packed, as padded arrays."""
    if "packed" in rows.column_names:
        windows = [packed_window(value) for value in rows["packed"].to_pylist()]
    else:
        windows = _unpacked(rows, dim)
    counts = np.array([len(window.times) for window in windows], int)
    longest = int(counts.max(initial=1))
    mask = np.arange(longest)[None, :] < counts[:, None]

    def padded(parts: list[np.ndarray], kind: type, *shape: int) -> np.ndarray:
        found: np.ndarray = np.zeros((len(windows), longest, *shape), kind)
        if parts:
            found[mask] = np.concatenate(parts)
        return found

    return StoredWindows(
        keys=[window.key for window in windows],
        paths=from_texts([window.path for window in windows]),
        start=np.array([window.start for window in windows]),
        end=np.array([window.end for window in windows]),
        times=padded([window.times for window in windows], np.float64),
        signatures=padded([window.signatures for window in windows], np.uint8, SIZE),
        frames=padded([window.frames for window in windows], np.float32, dim),
        mask=mask,
    )


def _packed(record: VideoRecord, windows: Sequence[EncodedWindow | Packed]) -> pa.Array:
    """Windows of a video, each as one value."""
    path = to_text(record.path)
    keys = [window_key(record.id, number) for number in range(len(windows))]
    values = [
        packed_value(
            Packed(
                key=key,
                path=path,
                start=w.start,
                end=w.end,
                times=w.times,
                signatures=w.signatures,
                frames=w.frames,
            )
        )
        for key, w in zip(keys, windows, strict=True)
    ]
    return pa.array(values, pa.binary())


def _unpacked(rows: pa.Table, dim: int) -> list[Packed]:
    """Windows of a format that has a column for each value."""
    if not len(rows):
        return []
    tokens = rows["frames"].combine_chunks()
    frames = tokens.flatten().flatten().to_numpy().reshape(-1, dim)
    times = [np.asarray(t, np.float32) for t in rows["times"].to_pylist()]
    ends = np.cumsum([len(t) for t in times])
    found = []
    named = rows.select(["key", "path", "start", "end"]).to_pylist()
    raw = rows["signatures"].to_pylist()
    for row, (seen, end) in enumerate(zip(times, ends.tolist(), strict=True)):
        noted = np.frombuffer(raw[row], np.uint8).reshape(len(seen), -1)
        signatures = np.zeros((len(seen), SIZE), np.uint8)  # formats 1 and 2 noted no colours
        signatures[:, : noted.shape[1]] = noted
        own = frames[end - len(seen) : end]
        found.append(Packed(**named[row], times=seen, signatures=signatures, frames=own))
    return found


def _identity(record: VideoRecord, count: int) -> dict[str, pa.Array]:
    """The columns that say whose windows these are and when they were written."""
    return {
        "key": pa.array([window_key(record.id, i) for i in range(count)], pa.string()),
        "video": pa.array([record.id] * count, pa.string()),
        "path": pa.array([to_text(record.path)] * count, pa.string()),
        "written_at": pa.array([time.time()] * count, pa.float64()),
    }


def _halves(rows: Float[np.ndarray, "n d"]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(rows.astype(np.float16).ravel()), rows.shape[1]
    )


def _tokens(parts: Sequence[Float[np.ndarray, "_ d"]]) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _halves(np.concatenate(parts)))


def union(lists: Sequence[StoredWindows]) -> StoredWindows:
    """The windows of all lists, each once."""
    if len(lists) == 1:
        return lists[0]
    longest = max(one.mask.shape[1] for one in lists)

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        widths = [[(0, 0), (0, longest - p.shape[1])] + [(0, 0)] * (p.ndim - 2) for p in parts]
        return np.concatenate([np.pad(p, w) for p, w in zip(parts, widths, strict=True)])

    keys = [key for one in lists for key in one.keys]
    rows = sorted({key: row for row, key in reversed(list(enumerate(keys)))}.values())
    paths = [path for one in lists for path in one.paths]
    return StoredWindows(
        keys=[keys[row] for row in rows],
        paths=[paths[row] for row in rows],
        start=np.concatenate([one.start for one in lists])[rows],
        end=np.concatenate([one.end for one in lists])[rows],
        times=joined([one.times for one in lists])[rows],
        signatures=joined([one.signatures for one in lists])[rows],
        frames=joined([one.frames for one in lists])[rows],
        mask=joined([one.mask for one in lists])[rows],
    )

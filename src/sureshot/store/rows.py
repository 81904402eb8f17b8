"""Rows of an index: the values we work with, their Arrow tables, and checksums of both.

Vectors and tokens are stored as 16-bit floats: half the size, and the rounding, 5e-4 of a value,
is far below what tells two frames apart. Frames in a row that are equal are stored once: of what
is sampled from films, half hardly differs from the frame before and so has its vector.

Each row has one checksum, ``check``, over all its columns but ``packed``. That column has all that
a search reads of a window in one value, as every further column is a read of its own for each row,
and so carries the checksum of its content itself.
"""

import json
import os
import re
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, UInt8

from sureshot.errors import ModelError, StoreError, SureshotError, option
from sureshot.media.dates import VideoDate, video_date
from sureshot.media.signature import SIZE
from sureshot.models.encoders.base import VideoFeatures, mean_pool
from sureshot.models.hub_bank import bank_of, home_of
from sureshot.models.huggingface import BANK, is_checkpoint
from sureshot.models.similarity import HubCorrected, MeanFrames
from sureshot.paths import video_id
from sureshot.s3 import object_path
from sureshot.settings import Ranged, Within, build, parse_json, to_values

# Raised with every change of the format; an index of any other one is refused.
SCHEMA_VERSION = 8
KEY = b"sureshot"  # of the header in the metadata of the table of windows
CHECKED = ("key", "video", "path", "start", "end", "written_at", "vector", "check")
LINE_WIDTH = 384  # of the sentence vector of a line
_EIGHT = 8  # a vector index takes widths that are multiples of this
_ESCAPE = 0xF700  # private-use characters that stand for bytes of a path, see `to_text`
# Makes Lance see that two writers insert the same row, which is then stored once.
_PRIMARY = {b"lance-schema:unenforced-primary-key": b"true"}

Decode = Literal["auto", "all", "keyframes"]


@dataclass(frozen=True, slots=True)
class IndexSettings(Ranged):
    """How videos are cut and sampled. Two windows compare only if these agree, so an index has one.

    Attributes:
        model: name of the encoder, as `sureshot.models.load.load_searchable` takes it.
        frames: frames sampled uniformly from each window, 1 to 64.
        window: longest window in seconds, 1 to 30.
        scenes: whether a change of scene ends a window.
        decode: ``all`` frames, ``keyframes`` only, or ``auto``: all but those that no other is
            worked out from, where enough are left to find cuts, and those less than 1.5 s before a
            keyframe that looks like what is shown before them.
        frame_rate: frames per second that a folder of frames stands for.
        decode_window: seconds of which ``frames`` are compared to find where a scene fades into
            another, 1 to 30; 0 finds cuts only.
        still: a frame that differs from the last one encoded by less takes its vector: in levels of
            256, on average over the twelfth that differs most, 0 to 64; 0 encodes each.
    """

    model: str = "bundled"
    frames: Annotated[int, Within(1, 64)] = 12
    window: Annotated[float, Within(1.0, 30.0)] = 30.0
    scenes: bool = True
    decode: Decode = "auto"
    frame_rate: Annotated[float, Within(0.001, 1000.0)] = 1.0
    decode_window: Annotated[float, Within(0.0, 30.0)] = 10.0
    still: Annotated[float, Within(0.0, 64.0)] = 24.0


@dataclass(frozen=True, slots=True)
class Header:
    """What must agree between an index and whoever reads or extends it."""

    settings: IndexSettings
    fingerprint: str
    dim: int
    schema: int = SCHEMA_VERSION  # number of its format
    index_id: str = ""  # drawn when it was made; another index in its place has another one

    @property
    def width(self) -> int:
        """How many numbers a stored vector has: more than `dim`, see `stored_vector`."""
        return (self.dim // _EIGHT + 1) * _EIGHT

    def to_metadata(self) -> dict[bytes, bytes]:
        """As metadata of an Arrow schema."""
        return {KEY: json.dumps(to_values(self)).encode()}

    def check_model(self, location: str, model: str, fingerprint: str) -> None:
        """Refuse an encoder other than the one that wrote the index at a place."""
        if fingerprint == self.fingerprint:
            return
        theirs = self.settings.model
        what, fix = f"another version of the model {theirs!r} than the one here", "Index"
        if model != theirs:
            what = f"the model {theirs!r}, not by {model!r}"
            fix = f"Use {option('model', theirs)}, or index"
        raise StoreError(
            f"The index at {location} was written by {what}, and vectors of different models "
            f"do not compare. {fix} again, into another place ({option('db')}) or after "
            f"`sureshot reset`."
        )

    def check_settings(self, location: str, settings: IndexSettings) -> None:
        """Refuse settings other than those of the index at a place."""
        # The same model may have moved to another folder; all else must agree.
        settings = replace(settings, model=self.settings.model)
        if self.settings != settings:
            theirs, ours = to_values(self.settings), to_values(settings)
            differ = ", ".join(f"{k} = {v!r}" for k, v in theirs.items() if v != ours[k])
            raise StoreError(
                f"The index at {location} was built with other settings ({differ}). Index "
                f"with the same ones, or choose another place with {option('db')}, or run "
                f"`sureshot reset`."
            )

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, location: str) -> "Header":
        """The header that `to_metadata` wrote."""
        if not is_ours(metadata):
            raise StoreError(
                f"What is at {location} is not an index of Sureshot. Choose another place with "
                f"{option('db')}."
            )
        assert metadata is not None
        damaged = StoreError(
            f"The header of the index at {location} is damaged. `sureshot reset` removes the "
            f"index; then index your folder again."
        )
        try:
            values = parse_json(metadata[KEY])
        except ValueError:
            raise damaged from None
        if not isinstance(values, dict) or type(values.get("schema")) is not int:
            raise damaged
        # Before anything else is looked at: another format may mean something else by it.
        if (schema := values["schema"]) > SCHEMA_VERSION:
            raise StoreError(
                f"The index at {location} was written by a newer Sureshot (format {schema}, this "
                f"one reads {SCHEMA_VERSION}). Install the newest one."
            )
        if schema < SCHEMA_VERSION:
            raise StoreError(
                f"The index at {location} has format {schema}, and this Sureshot reads "
                f"{SCHEMA_VERSION}. `sureshot reset` removes the index; then index your folder "
                f"again."
            )
        known = {field.name for field in fields(cls)}
        try:
            return build(cls, {name: value for name, value in values.items() if name in known})
        except SureshotError:
            raise damaged from None


def is_ours(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Whether a table with this metadata belongs to an index of Sureshot, sound or not."""
    return KEY in (metadata or {})


@dataclass(frozen=True, slots=True)
class VideoRecord:
    """What the index knows of one video.

    Attributes:
        path: absolute path of the file or folder of frames.
        size: bytes when it was indexed, like ``mtime_ns``.
        digest: of its content, empty where it could not be read.
        duration: seconds, up to the last frame that could be decoded.
        windows: how many windows it was cut into; 0 for a failed one.
        reason: why it failed; empty for an indexed video.
        transient: whether the failure may go away by itself and is worth another try next time.
        note: what was wrong with an indexed video, empty if nothing.
        indexed_at: seconds since the epoch.
        check_windows: sum of the checksums of its windows, which tells them from older ones.
        shot: when it was recorded, as `sureshot.media.dates.Shot` has it; empty where the file does
            not say.
        shot_from: what of the file says so.
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
    shot: str = ""
    shot_from: str = ""

    @property
    def id(self) -> str:
        """Digest of the path."""
        return video_id(self.path)

    @property
    def date(self) -> VideoDate:
        """When it was recorded, by its file or its name; else when that file last changed."""
        return video_date(self.shot, self.shot_from, self.mtime_ns, self.path.name)


@dataclass(frozen=True, slots=True)
class EncodedWindow:
    """A window of a video, times in seconds, and its frames as vectors of the encoder."""

    start: float
    end: float
    times: Float[np.ndarray, " frames"]
    signatures: UInt8[np.ndarray, "frames 288"]
    frames: Float[np.ndarray, "frames dim"]


@dataclass(frozen=True, slots=True)
class StoredWindows:
    """Windows read back, padded with zeros to one number of frames; all times are in seconds."""

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

    def escaped(found: re.Match[str]) -> str:
        return "".join(chr(_ESCAPE + byte) for byte in os.fsencode(found[0]))

    return re.sub("[\udc80-\udcff\uf780-\uf7ff]", escaped, os.fspath(path))


def from_text(text: str) -> Path:
    """The path that `to_text` wrote."""
    if (named := object_path(text)) is not None:
        return named
    if not re.search("[\uf780-\uf7ff]", text):
        return Path(text)
    # By way of what Python itself has for such bytes: three in a row may be one of our own letters.
    odd = re.sub("[\uf780-\uf7ff]", lambda found: chr(ord(found[0]) - _ESCAPE + 0xDC00), text)
    return Path(os.fsdecode(odd.encode("utf-8", "surrogateescape")))


_VIDEOS = """
    id string, path string, kind string, size int64, mtime_ns int64, digest string,
    duration float64, windows int32, reason string, transient bool, note string,
    indexed_at float64, check_windows int64, shot string, shot_from string, check uint32
"""
_WINDOWS = """
    key string, video string, path string, start float64, end float64, written_at float64,
    packed binary, vector float16s, check uint32
"""
_LINES = """
    key string, video string, path string, source string, language string, start float64,
    end float64, text string, stamp string, written_at float64, vector float16s, check uint32
"""


def video_schema(header: Header) -> pa.Schema:
    """Columns of the table of videos."""
    return _schema(header, _VIDEOS)


def window_schema(header: Header) -> pa.Schema:
    """Columns of the table of windows."""
    return _schema(header, _WINDOWS, header.width)


def line_schema(header: Header) -> pa.Schema:
    """Columns of the table of lines.

    A row is a line, or says in ``stamp`` what of one source of a video was read; it has no text.
    """
    return _schema(header, _LINES, LINE_WIDTH)


def _schema(header: Header, columns: str, width: int = 0) -> pa.Schema:
    """Columns, the first of which is the key; vectors are of so many numbers."""
    vector = pa.list_(pa.float16(), width)
    named = (column.split() for column in columns.split(","))
    fields = [
        pa.field(name, vector if kind == "float16s" else pa.type_for_alias(kind))
        for name, kind in named
    ]
    fields[0] = fields[0].with_nullable(False).with_metadata(_PRIMARY)
    return pa.schema(fields, metadata=header.to_metadata())


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
    return with_checksums(pa.Table.from_pylist(rows, schema=video_schema(header)))


def texts_of(column: pa.ChunkedArray) -> list[str]:
    """Texts of a column, of which some may be damaged or missing."""
    values = column.cast(pa.binary()).to_pylist()
    return [(value or b"").decode("utf-8", "replace") for value in values]


def video_record(row: dict[str, Any]) -> VideoRecord:
    """The record that a row of the table of videos holds."""
    values = {name: row[name] for name in VideoRecord.__slots__}
    return VideoRecord(**values | {"path": from_text(row["path"])})


def window_rows(record: VideoRecord, windows: Sequence[EncodedWindow], header: Header) -> pa.Table:
    """Windows of a video as a table, at least one."""
    schema = window_schema(header)
    pooled = [mean_pool(w.frames[None], np.ones((1, len(w.times)), bool))[0] for w in windows]
    vectors = stored_vector(np.stack(pooled), header).astype(np.float16)
    columns = _identity(record, windows) | {
        "start": pa.array([w.start for w in windows], pa.float64()),
        "end": pa.array([w.end for w in windows], pa.float64()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), header.width),
        "check": pa.nulls(len(windows), pa.uint32()),
    }
    return with_checksums(pa.table([columns[name] for name in schema.names], schema=schema))


def renamed(rows: pa.Table, record: VideoRecord) -> pa.Table:
    """The windows of one video as windows of another with the same content."""
    rows = rows.sort_by("start")
    windows = [unpack(value)[2] for value in rows.column("packed").to_pylist()]
    columns = {name: rows.column(name) for name in rows.column_names} | _identity(record, windows)
    return with_checksums(pa.table(columns, schema=rows.schema))


def _identity(record: VideoRecord, windows: Sequence[EncodedWindow]) -> dict[str, pa.Array]:
    """The columns that say whose windows these are and when they were written."""
    path, count = to_text(record.path), len(windows)
    keys = [window_key(record.id, number) for number in range(count)]
    packed = [pack(key, path, window) for key, window in zip(keys, windows, strict=True)]
    return {
        "key": pa.array(keys, pa.string()),
        "video": pa.array([record.id] * count, pa.string()),
        "path": pa.array([path] * count, pa.string()),
        "written_at": pa.array([time.time()] * count, pa.float64()),
        "packed": pa.array(packed, pa.binary()),
    }


def stored_windows(rows: pa.Table, dim: int) -> StoredWindows:
    """Sound rows of the table of windows, of which ``packed`` was read, as padded arrays."""
    found = [unpack(value) for value in rows.column("packed").to_pylist()]
    windows = [window for _, _, window in found]
    counts = np.array([len(window.times) for window in windows], int)
    longest = int(counts.max(initial=1))
    mask = np.arange(longest)[None, :] < counts[:, None]

    def padded(parts: list[np.ndarray], kind: type, *shape: int) -> np.ndarray:
        array: np.ndarray = np.zeros((len(windows), longest, *shape), kind)
        if parts:
            array[mask] = np.concatenate(parts)
        return array

    paths = {text: from_text(text) for text in {path for _, path, _ in found}}  # few differ
    return StoredWindows(
        keys=[key for key, _, _ in found],
        paths=[paths[path] for _, path, _ in found],
        start=np.array([window.start for window in windows]),
        end=np.array([window.end for window in windows]),
        times=padded([window.times for window in windows], np.float64),
        signatures=padded([window.signatures for window in windows], np.uint8, SIZE),
        frames=padded([window.frames for window in windows], np.float32, dim),
        mask=mask,
    )


def union(lists: Sequence[StoredWindows]) -> StoredWindows:
    """The windows of all lists, each once."""
    if len(lists) == 1:
        return lists[0]
    longest = max(windows.mask.shape[1] for windows in lists)
    keys = [key for windows in lists for key in windows.keys]
    rows = sorted({key: row for row, key in reversed(list(enumerate(keys)))}.values())
    paths = [path for windows in lists for path in windows.paths]

    def joined(name: str) -> np.ndarray:
        parts = [getattr(windows, name) for windows in lists]
        if parts[0].ndim > 1:
            rest = [(0, 0)] * (parts[0].ndim - 2)
            parts = [np.pad(part, [(0, 0), (0, longest - part.shape[1]), *rest]) for part in parts]
        return np.concatenate(parts)[rows]

    arrays = ("start", "end", "times", "signatures", "frames", "mask")
    return StoredWindows(
        keys=[keys[row] for row in rows],
        paths=[paths[row] for row in rows],
        **{name: joined(name) for name in arrays},
    )


_SUM = struct.Struct("<I")
_HEAD = struct.Struct("<dd4I")  # start, end; bytes of key and path, numbers of frames and pictures
_NAMES = _SUM.size + _HEAD.size  # where the key begins


def pack(key: str, path: str, window: EncodedWindow) -> bytes:
    """A window with its names as one value.

    CRC-32 of the rest, head, names, times, which picture each frame is, pictures.
    """
    names = key.encode(), path.encode()
    signatures = np.ascontiguousarray(window.signatures, np.uint8)
    frames = np.ascontiguousarray(window.frames, "<f2")
    whole = np.concatenate([signatures, frames.view(np.uint8)], axis=1)
    new = np.append(True, (whole[1:] != whole[:-1]).any(1))
    pictures = np.cumsum(new, dtype="<u2") - np.uint16(1)
    counts = len(window.times), int(new.sum())
    body = b"".join(
        [
            _HEAD.pack(window.start, window.end, *map(len, names), *counts),
            *names,
            np.ascontiguousarray(window.times, "<f4").tobytes(),
            pictures.tobytes(),
            signatures[new].tobytes(),
            frames[new].tobytes(),
        ]
    )
    return _SUM.pack(zlib.crc32(body)) + body


def unpack(value: bytes) -> tuple[str, str, EncodedWindow]:
    """Key, path and window of a sound value."""
    start, end, keyed, pathed, count, shown = _HEAD.unpack_from(value, _SUM.size)
    path_at = _NAMES + keyed
    times_at = path_at + pathed
    times = np.frombuffer(value, "<f4", count, times_at)
    pictures = np.frombuffer(value, "<u2", count, at := times_at + times.nbytes)
    signatures = np.frombuffer(value, np.uint8, shown * SIZE, at := at + pictures.nbytes)
    frames = np.frombuffer(value, "<f2", offset=at + signatures.nbytes)
    return (
        value[_NAMES:path_at].decode(),
        value[path_at:times_at].decode(),
        EncodedWindow(
            start=start,
            end=end,
            times=times,
            signatures=signatures.reshape(shown, SIZE)[pictures],
            frames=frames.reshape(shown, -1)[pictures],
        ),
    )


def sound(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows of either table are what was written, as far as they were read.

    Without ``check`` only ``packed`` can be verified; with it all other columns have to be there.
    """
    right = np.ones(len(rows), bool)
    if "check" in rows.column_names:
        right &= np.array(rows.column("check").to_pylist(), object) == _checksums(rows)
    if "packed" in rows.column_names:
        keys = [b""] * len(rows)
        if "key" in rows.column_names:
            keys = rows.column("key").cast(pa.binary()).to_pylist()
        right &= np.fromiter(map(_is_sound, rows.column("packed").to_pylist(), keys), bool)
    return right


def _is_sound(value: bytes | None, key: bytes | None) -> bool:
    if value is None or key is None or len(value) < _NAMES or not value.startswith(key, _NAMES):
        return False
    return zlib.crc32(memoryview(value)[_SUM.size :]) == _SUM.unpack_from(value)[0]


def sum_of_checks(rows: pa.Table) -> int:
    """What tells the windows of a video from other ones: the sum of their checksums."""
    return sum(rows.column("check").to_pylist())


def with_checksums(rows: pa.Table) -> pa.Table:
    """Rows of either table with their checksums; what these were before is replaced."""
    at = rows.column_names.index("check")
    sums = pa.array(_checksums(rows), pa.uint32())
    return rows.set_column(at, rows.schema.field("check"), sums)


def _checksums(rows: pa.Table) -> list[int]:
    """CRC-32 of each row: of all its numbers, then its texts with a zero between them."""
    if not len(rows):
        return []
    numbers, texts = [], []
    for name in sorted(set(rows.column_names) - {"check", "packed"}):
        array = rows.column(name).combine_chunks()
        if pa.types.is_string(array.type):
            # As bytes: damaged text need not be text. A missing one is like none that was written.
            texts.append([b"\xff" if t is None else t for t in array.cast(pa.binary()).to_pylist()])
        else:
            numbers += [_bytes_of(array), array.is_valid().to_numpy(False)[:, None].view(np.uint8)]
    lines = np.ascontiguousarray(np.concatenate(numbers, axis=1))
    words = zip(*texts, strict=True)
    return [
        zlib.crc32(b"\0".join(some), zlib.crc32(line))
        for line, some in zip(lines, words, strict=True)
    ]


def _bytes_of(array: pa.Array) -> UInt8[np.ndarray, "rows width"]:
    """The bytes of each value of a column of numbers or of vectors; zeros where one is missing."""
    count = len(array)
    if pa.types.is_fixed_size_list(array.type):
        valid = array.is_valid().to_numpy(False)
        flat = array.flatten().to_numpy(zero_copy_only=False).reshape(-1, array.type.list_size)
        values = np.zeros((count, array.type.list_size), flat.dtype)
        values[valid] = flat
    else:
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values).view(np.uint8).reshape(count, -1)


def stored_vector(
    pooled: Float[np.ndarray, "windows dim"], header: Header
) -> Float[np.ndarray, "windows width"]:
    """Pooled unit vectors as an index stores them: with what the hub correction takes off."""
    more = np.zeros((len(pooled), header.width - pooled.shape[1]), pooled.dtype)
    correction = _correction(header.settings.model, header.fingerprint)
    if correction is not None:
        one = np.ones((len(pooled), 1), bool)
        more[:, 0] = correction.videos(VideoFeatures.of_frames(pooled[:, None], one)).offsets
    return np.concatenate([pooled, more], axis=1)


def query_vector(
    vector: Float[np.ndarray, "*queries dim"], width: int, *, hub_corrected: bool
) -> Float[np.ndarray, "*queries width"]:
    """Queries of unit length as they are multiplied with stored vectors."""
    more = np.zeros((*vector.shape[:-1], width - vector.shape[-1]), vector.dtype)
    more[..., 0] = -float(hub_corrected)
    return np.concatenate([vector, more], axis=-1)


@lru_cache(maxsize=4)
def _correction(model: str, fingerprint: str) -> HubCorrected | None:
    """The hub correction of an encoder alone; None where there is none that can be used."""
    home = home_of(model)
    if home is None or not (home / BANK).is_file():
        return None
    try:
        bank = None if is_checkpoint(home) else bank_of(model, fingerprint)
    except ModelError:  # a search says so; it costs candidates only
        return None
    return None if bank is None else HubCorrected(MeanFrames(), bank)

"""Rows of an index: the values we work with, the tables they are stored in, and the way between.

Vectors and tokens are stored as 16-bit floats: half the size, and the rounding, 5e-4 of a value,
is far below what tells two frames apart.
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
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Float16, UInt8

from sureshot.errors import ModelError, StoreError, SureshotError, option
from sureshot.media.signature import SIZE
from sureshot.models.encoders.base import VideoFeatures, mean_pool
from sureshot.models.hub_bank import FILE, bank_of, home_of
from sureshot.models.similarity import HubCorrected, MeanFrames
from sureshot.paths import video_id
from sureshot.s3 import object_path
from sureshot.settings import Ranged, Within, build, parse_json, to_values

COLUMN = "packed"
_HEAD = struct.Struct("<dd4I")
_SUMS = struct.Struct("<II")
_AT = _SUMS.size + _HEAD.size


class Packed(NamedTuple):
    """What one value holds.

    Attributes:
        key: identity of the window.
        path: the path of its video as `sureshot.store.rows.to_text` writes it.
        start: seconds.
        end: seconds.
        times: seconds of each frame, of which there is one at least.
        signatures: near-duplicate signature of each frame.
        frames: frame vectors.
    """

    key: str
    path: str
    start: float
    end: float
    times: Float[np.ndarray, " frames"]
    signatures: UInt8[np.ndarray, "frames 288"]
    frames: Float16[np.ndarray, "frames dim"]


def packed_value(window: Packed) -> bytes:
    """A window as one value."""
    key, path = window.key.encode(), window.path.encode()
    signatures = np.ascontiguousarray(window.signatures, np.uint8).tobytes()
    sizes = len(key), len(path), len(window.times), len(signatures)
    head = _HEAD.pack(window.start, window.end, *sizes) + key + path
    body = b"".join(
        [
            head,
            np.ascontiguousarray(window.times, "<f4").tobytes(),
            signatures,
            np.ascontiguousarray(window.frames, "<f2").tobytes(),
        ]
    )
    named = struct.pack("<I", zlib.crc32(head))
    return struct.pack("<I", zlib.crc32(body, zlib.crc32(named))) + named + body


def packed_window(value: bytes) -> Packed:
    """The window in a sound value."""
    start, end, keyed, pathed, count, signed = _HEAD.unpack_from(value, _SUMS.size)
    at = _AT + keyed
    path = value[at : at + pathed].decode()
    at += pathed
    times = np.frombuffer(value, "<f4", count, at)
    at += times.nbytes
    signatures = np.frombuffer(value, np.uint8, signed, at).reshape(count, SIZE)
    at += signed
    frames = np.frombuffer(value, "<f2", offset=at).reshape(count, -1)
    return Packed(
        key=value[_AT : _AT + keyed].decode(),
        path=path,
        start=start,
        end=end,
        times=times,
        signatures=signatures,
        frames=frames,
    )


def is_sound(value: bytes | None) -> bool:
    """Whether a value is what was written."""
    if value is None or len(value) < _AT:
        return False
    return zlib.crc32(memoryview(value)[4:]) == _SUMS.unpack_from(value)[0]


def sound_packed(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows have the packed value that was written."""
    return np.array([is_sound(value) for value in rows.column(COLUMN).to_pylist()], bool)


def names_in(values: Sequence[bytes | None]) -> list[tuple[str, str] | None]:
    """Key and path of the window in each value, also of a damaged one whose names are sound."""
    return [_names_in(value or b"") for value in values]


def _names_in(value: bytes) -> tuple[str, str] | None:
    if len(value) < _AT:
        return None
    _, known = _SUMS.unpack_from(value)
    *_, keyed, pathed, _, _ = _HEAD.unpack_from(value, _SUMS.size)
    end = _AT + keyed + pathed
    if end > len(value) or zlib.crc32(memoryview(value)[_SUMS.size : end]) != known:
        return None
    return value[_AT : _AT + keyed].decode(), value[_AT + keyed : end].decode()


Decode = Literal["auto", "all", "keyframes"]


@dataclass(frozen=True, slots=True)
class IndexSettings(Ranged):
    """How videos are cut and sampled. Two windows compare only if these agree, so an index has one.

    Attributes:
        model: name of the encoder, as `sureshot.models.load.load_searchable` takes it.
        frames: frames sampled uniformly from each window, 1 to 64.
        window: longest window in seconds, 1 to 30.
        scenes: whether a change of scene ends a window.
        decode: ``all`` frames, ``keyframes`` only, or ``auto``: keyframes for videos over ten
            minutes that have enough of them to lose no sample.
        frame_rate: frames per second that a folder of frames stands for.
        look: seconds of which ``frames`` are looked at for where a scene fades into another, 1 to
            30; 0 finds cuts only, as all indexes of format 1 do.
    """

    model: str = "bundled"
    frames: Annotated[int, Within(1, 64)] = 12
    window: Annotated[float, Within(1.0, 30.0)] = 30.0
    scenes: bool = True
    decode: Decode = "auto"
    frame_rate: Annotated[float, Within(0.001, 1000.0)] = 1.0
    look: Annotated[float, Within(0.0, 30.0)] = 10.0


# 1 had windows by cuts and length alone; 1 and 2 no checksums, and cells of frames none read; 1 to
# 3 vectors without what the hub correction takes off; 1 to 4 a column for each value of a window. 1
# and 2 are brought to 3; 3 and 4 stay what they are.
SCHEMA_VERSION = 5
CHECKED = 3  # formats from this one on can be written to
PACKED = 5  # formats from this one on have all that a search reads of a window in one value
_EIGHT = 8  # a vector index takes widths that are multiples of this
KEY = b"sureshot"


@dataclass(frozen=True, slots=True)
class Header:
    """What must agree between an index and whoever reads or extends it.

    Attributes:
        settings: how its videos were cut and sampled.
        fingerprint: digest that identifies the encoder that wrote it.
        dim: size of its vectors.
        schema: number of the format that it is in.
        made: name drawn when it was made, so that another one in its place has another; empty in
            one of an older Sureshot.
    """

    settings: IndexSettings
    fingerprint: str
    dim: int
    schema: int = SCHEMA_VERSION
    made: str = ""

    @property
    def width(self) -> int:
        """How many numbers a stored vector has: more than `dim`, see `sureshot.store.rows`."""
        return self.dim if self.schema <= CHECKED else (self.dim // _EIGHT + 1) * _EIGHT

    def to_metadata(self) -> dict[bytes, bytes]:
        """As metadata of an Arrow schema."""
        return {KEY: json.dumps(to_values(self)).encode()}

    def check_model(self, location: str, model: str, fingerprint: str) -> None:
        """Refuse an encoder other than the one that wrote the index at a place.

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
            f"The index at {location} was written by {what}, and vectors of different models "
            f"do not compare. {fix} again, into another place ({option('db')}) or after "
            f"`sureshot reset`."
        )

    def check_settings(self, location: str, settings: IndexSettings) -> None:
        """Refuse settings other than those of the index at a place.

        Raises:
            StoreError: they differ; the message says in what.
        """
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
        """The header that `to_metadata` wrote.

        Raises:
            StoreError: somebody else wrote this, a newer Sureshot did, or it is damaged.
        """
        if not ours(metadata):
            raise StoreError(
                f"What lies at {location} is not an index of Sureshot. Choose another place with "
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
        # Before anything else is looked at: a newer format may mean something else by it.
        if values["schema"] > SCHEMA_VERSION:
            raise StoreError(
                f"The index at {location} was written by a newer Sureshot (format "
                f"{values['schema']}, this one reads up to {SCHEMA_VERSION}). "
                f"Upgrade with: pip install --upgrade sureshot"
            )
        known = {field.name for field in fields(cls)}
        settings = values.get("settings")
        if values["schema"] == 1 and isinstance(settings, dict):
            values["settings"] = {**settings, "look": 0.0}
        try:
            return build(cls, {name: value for name, value in values.items() if name in known})
        except SureshotError:
            raise damaged from None


def ours(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Whether a table with this metadata belongs to an index of Sureshot, sound or not."""
    return KEY in (metadata or {})


def with_hubs(
    pooled: Float[np.ndarray, "windows dim"], header: Header
) -> Float[np.ndarray, "windows width"]:
    """Pooled vectors as an index stores them.

    Args:
        pooled: unit vectors.
        header: what the index says of itself.
    """
    width = header.width - pooled.shape[1]
    if not width:
        return pooled
    more = np.zeros((len(pooled), width), pooled.dtype)
    how = _correction(header.settings.model, header.fingerprint)
    if how is not None:
        one = np.ones((len(pooled), 1), bool)
        more[:, 0] = how.videos(VideoFeatures.of_frames(pooled[:, None], one)).offsets
    return np.concatenate([pooled, more], axis=1)


def asking(
    vector: Float[np.ndarray, " dim"], width: int, *, hub_corrected: bool
) -> Float[np.ndarray, " width"]:
    """A query as it is multiplied with stored vectors.

    Args:
        vector: the query, unit length.
        width: numbers of a stored vector; those of formats up to 3 have no correction.
        hub_corrected: whether the correction is taken off.
    """
    more = np.zeros(width - len(vector), vector.dtype)
    more[:1] = -float(hub_corrected)
    return np.concatenate([vector, more])


@lru_cache(maxsize=4)
def _correction(model: str, fingerprint: str) -> HubCorrected | None:
    """The hub correction of an encoder alone; None where there is none that can be used."""
    if not (home_of(model) / FILE).is_file():
        return None
    from sureshot.models.checkpoint import is_checkpoint  # it imports torch

    try:
        bank = None if is_checkpoint(home_of(model)) else bank_of(model, fingerprint)
    except ModelError:  # a search says so; it costs candidates only
        return None
    return None if bank is None else HubCorrected(MeanFrames(), bank)


WINDOW_CHECKS = ("check_vector", "check")
# What a window has beside its vector: in format 5 ``packed``, before that the three before it.
SEARCHED = (
    *("key", "video", "path", "start", "end", "written_at"),
    *("times", "signatures", "frames", "packed"),
)
_ABSENT = b"\xffabsent"  # in place of a value that is missing, as none is in a sound row


def checked_windows(rows: pa.Table) -> pa.Table:
    """Rows of the table of windows with their checksums; what these were before is replaced."""
    rows = _with(rows, "check_vector", _sums(rows, ("vector",)))
    return _with(rows, "check", _sums(rows, _values_of_windows(rows)))


def checked_videos(rows: pa.Table) -> pa.Table:
    """Rows of the table of videos with their checksums; what these were before is replaced."""
    return _with(rows, "check", _sums(rows, _values_of_videos(rows)))


def sound_windows(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows have what was written, as far as a search reads them.

    Args:
        rows: columns `SEARCHED` and `WINDOW_CHECKS`, as far as the format has them; without the
            latter all rows count as sound.
    """
    return _sound(rows, "check", _values_of_windows(rows))


def sound_vectors(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows have the vector that was written."""
    return _sound(rows, "check_vector", ("vector",))


def sound_throughout(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows of the table of windows have all that was written."""
    return sound_windows(rows) & sound_vectors(rows)


def sound_videos(rows: pa.Table) -> Bool[np.ndarray, " rows"]:
    """Which rows of the table of videos have what was written."""
    return _sound(rows, "check", _values_of_videos(rows))


def sum_of_checks(rows: pa.Table) -> int:
    """What tells the windows of a video from other ones: the sum of their checksums."""
    return sum(rows.column("check").to_pylist())


def _values_of_windows(rows: pa.Table) -> tuple[str, ...]:
    return tuple(name for name in (*SEARCHED, "check_vector") if name in rows.column_names)


def _values_of_videos(rows: pa.Table) -> tuple[str, ...]:
    return tuple(sorted(name for name in rows.column_names if name != "check"))


def _with(rows: pa.Table, name: str, sums: Sequence[int]) -> pa.Table:
    column = pa.array(sums, pa.uint32())
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    return rows.append_column(pa.field(name, pa.uint32()), column)


def _sound(rows: pa.Table, check: str, columns: Sequence[str]) -> Bool[np.ndarray, " rows"]:
    if check not in rows.column_names:
        return np.ones(len(rows), bool)
    known = rows.column(check).to_pylist()
    return np.array([k == s for k, s in zip(known, _sums(rows, columns), strict=True)], bool)


def _sums(rows: pa.Table, columns: Sequence[str]) -> list[int]:
    """CRC-32 of each row over the lengths and the bytes of its values."""
    lengths = struct.Struct(f"<{len(columns)}I")
    crc = zlib.crc32
    sums = []
    for values in zip(*(_bytes(rows.column(name)) for name in columns), strict=True):
        total = crc(lengths.pack(*map(len, values)))
        for value in values:
            total = crc(value, total)
        sums.append(total)
    return sums


def _bytes(column: pa.ChunkedArray) -> Sequence[Any]:
    """The bytes of each value of a column."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # without any chunk
        return []
    return _bytes_of(array)


def _bytes_of(array: pa.Array) -> Sequence[Any]:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # As bytes: damaged text need not be text.
        values = array.cast(pa.binary()).to_pylist()
        return [_ABSENT if value is None else value for value in values]
    if _absent(array):
        return [_ABSENT if _absent(one) else _bytes_of(one)[0] for one in _single(array)]
    if pa.types.is_list(kind):
        ends = array.offsets.to_numpy()
        leaf = array.values.slice(ends[0], ends[-1] - ends[0])
        leaf, width = _leaf(leaf)
        raw, ends = _raw(leaf), (ends - ends[0]) * width * leaf.type.bit_width // 8
        return [raw[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    leaf, width = _leaf(array)
    raw, size = _raw(leaf), width * max(leaf.type.bit_width, 8) // 8
    return [raw[at : at + size] for at in range(0, len(array) * size, size)]


def _leaf(array: pa.Array) -> tuple[pa.Array, int]:
    """The numbers in lists of one length, and how many make one value."""
    width = 1
    while pa.types.is_fixed_size_list(array.type):
        width *= array.type.list_size
        array = array.flatten()
    return array, width


def _raw(numbers: pa.Array) -> memoryview:
    plain = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    return memoryview(plain.view(np.uint8).data) if len(plain) else memoryview(b"")


def _absent(array: pa.Array) -> bool:
    """Whether a value is missing at any depth."""
    if array.null_count:
        return True
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        return _absent(array.flatten())
    return False


def _single(array: pa.Array) -> Sequence[pa.Array]:
    return [array.slice(at, 1) for at in range(len(array))]


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

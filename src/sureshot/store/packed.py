"""A window in one value: all that a search reads of it.

Lance reads every column of a row on its own, so that two hundred candidates in eleven columns cost
several times what comparing a million vectors does (LOG.md). From format 5 on they are one column:

    4 bytes      CRC-32 of all that follows
    4 bytes      CRC-32 of the next 32 bytes, the key and the path
    8 + 8        start and end in seconds, doubles
    4 x 4        bytes of the key, bytes of the path, frames, bytes of the signatures
    ...          key, path as text, times in seconds (floats), signatures, frame vectors (halves)

All numbers are little-endian.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Float16, UInt8

from sureshot.media.signature import SIZE

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

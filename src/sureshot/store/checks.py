"""Checksums of rows: what tells a damaged row from a sound one.

Every row has a CRC-32 of its values. A window has two: one of its vector, which Lance compares
without our reading it; and one of all the rest, which covers the first number as well, so that it
stands for the whole window.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool

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

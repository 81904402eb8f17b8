"""A window in one value comes back as it was, and any change of the value is seen."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.store.rows import (
    Packed,
    is_sound,
    names_in,
    packed_value,
    packed_window,
    sound_packed,
)

DRAW = np.random.default_rng(0)


def window(frames: int = 3, dim: int = 8, path: str = "/v/a é.mp4") -> Packed:
    return Packed(
        "0123456789abcdef-000001",
        path,
        1 / 3,
        30.5,
        DRAW.random(frames).astype(np.float32),
        DRAW.integers(0, 256, (frames, 288), np.uint8),
        DRAW.standard_normal((frames, dim)).astype(np.float16),
    )


@given(st.integers(1, 20), st.integers(1, 9), st.text(max_size=30))
def test_a_window_comes_back(frames: int, dim: int, name: str) -> None:
    path = "/" + name.encode("utf-8", "replace").decode()
    made = window(frames, dim, path)
    value = packed_value(made)
    back = packed_window(value)
    assert is_sound(value) and names_in([value]) == [(made.key, path)]
    assert (back.key, back.path, back.start, back.end) == made[:4]
    np.testing.assert_array_equal(back.times, made.times)
    np.testing.assert_array_equal(back.signatures, made.signatures)
    np.testing.assert_array_equal(back.frames, made.frames)


def test_every_flipped_bit_and_every_cut_is_seen() -> None:
    value = packed_value(window(1, 2))
    for at in range(len(value)):
        for bit in range(8):
            assert not is_sound(value[:at] + bytes([value[at] ^ (1 << bit)]) + value[at + 1 :])
        assert not is_sound(value[:at])
    assert not is_sound(value + b"\0")
    assert not is_sound(None)
    rows = pa.table({"packed": pa.array([value, value[:-1], None], pa.binary())})
    assert sound_packed(rows).tolist() == [True, False, False]


def test_names_are_told_where_they_are_sound_and_not_guessed() -> None:
    made = window()
    value = bytearray(packed_value(made))
    value[-1] ^= 1  # in the frames
    assert names_in([bytes(value)]) == [(made.key, made.path)]
    value[40] ^= 1  # in the names
    assert names_in([bytes(value), None, b"", bytes(20), b"\xff" * 100]) == [None] * 5


@pytest.mark.parametrize("kind", [np.float32, np.float64, ">f2"])
def test_whatever_numbers_come_are_written_as_halves(kind: str) -> None:
    made = window()
    back = packed_window(packed_value(made._replace(frames=made.frames.astype(kind))))
    assert back.frames.dtype == np.dtype("<f2")
    np.testing.assert_array_equal(back.frames, made.frames)

"""A changed value of a row is seen, whatever it is; what was written is sound."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sureshot.store.rows import (
    SEARCHED,
    WINDOW_CHECKS,
    Header,
    checked_windows,
    sound_vectors,
    sound_videos,
    sound_windows,
    video_rows,
    window_rows,
)
from tests.encoded import SETTINGS, flipped, random_windows, record

HEADER = Header(settings=SETTINGS, fingerprint="f", dim=24)
ROWS = window_rows(record("/v.mp4"), random_windows(4), HEADER)
OLD = window_rows(record("/v.mp4"), random_windows(4), replace(HEADER, schema=4))
EACH = [(rows, name) for rows in (ROWS, OLD) for name in rows.column_names if name in SEARCHED]


def changed(rows: pa.Table, column: str) -> pa.Table:
    """The rows with another value in the third one."""
    values = rows.column(column).to_pylist()
    values[2] = flipped(values[2])
    field = rows.schema.field(column)
    return rows.set_column(rows.column_names.index(column), field, pa.array(values, field.type))


def test_what_was_written_is_sound_however_it_is_cut() -> None:
    again = pa.concat_tables([ROWS.slice(3, 1), ROWS.slice(0, 2)])
    for rows in (ROWS, ROWS.slice(1, 2), again, ROWS.slice(0, 0), ROWS.take([3, 1])):
        for sound in (sound_windows, sound_vectors):
            assert sound(rows).tolist() == [True] * len(rows)


@pytest.mark.parametrize(("rows", "column"), [*EACH, *((ROWS, name) for name in WINDOW_CHECKS)])
def test_a_changed_value_of_a_window_is_seen(rows: pa.Table, column: str) -> None:
    assert sound_windows(changed(rows, column)).tolist() == [True, True, False, True]


def test_a_changed_vector_is_seen() -> None:
    assert sound_vectors(changed(ROWS, "vector")).tolist() == [True, True, False, True]


@pytest.mark.parametrize("column", video_rows([record("/v.mp4")], HEADER).column_names)
def test_a_changed_value_of_a_video_is_seen(column: str) -> None:
    rows = video_rows([record(f"/{n}.mp4", note="n") for n in range(4)], HEADER)
    rows = rows.combine_chunks()
    assert sound_videos(rows).all()
    assert sound_videos(changed(rows, column)).tolist() == [True, True, False, True]


@pytest.mark.parametrize(("rows", "column"), [*EACH, (ROWS, "vector")])
def test_a_missing_value_is_seen(rows: pa.Table, column: str) -> None:
    values = rows.column(column).to_pylist()
    values[1] = None
    field = rows.schema.field(column).with_nullable(True)
    array = pa.array(values, field.type)
    rows = rows.set_column(rows.column_names.index(column), field, array)
    sound = sound_vectors(rows) if column == "vector" else sound_windows(rows)
    assert sound.tolist() == [True, False, True, True]


def test_bytes_that_moved_from_one_value_to_the_next_are_seen() -> None:
    paths = [f"{path}0" for path in ROWS.column("path").to_pylist()]
    keys = [key[:-1] for key in ROWS.column("key").to_pylist()]
    rows = ROWS.set_column(ROWS.column_names.index("path"), "path", pa.array(paths))
    rows = rows.set_column(rows.column_names.index("key"), "key", pa.array(keys))
    assert not sound_windows(rows).any()


def test_rows_without_checksums_count_as_sound() -> None:
    rows = ROWS.drop_columns(list(WINDOW_CHECKS))
    assert sound_windows(rows).all() and sound_vectors(rows).all()
    added = checked_windows(rows)
    assert added.column_names == ROWS.column_names
    for name in WINDOW_CHECKS:
        assert added.column(name).to_pylist() == ROWS.column(name).to_pylist()
    assert len(set(added.column("check").to_pylist())) == 4


def test_windows_of_different_numbers_of_frames_are_told_apart() -> None:
    windows = [w for n in (1, 3, 2) for w in random_windows(1, frames=n, seed=n)]
    rows = window_rows(record("/v.mp4"), windows, replace(HEADER, schema=4))
    assert sound_windows(rows).all()
    times = np.array([len(t) for t in rows.column("times").to_pylist()])
    assert times.tolist() == [1, 3, 2]

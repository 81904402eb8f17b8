"""Values survive the way into Arrow tables and back."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.models.encoders.base import mean_pool
from sureshot.store.rows import (
    Header,
    IndexSettings,
    from_text,
    renamed,
    sound_windows,
    stored_windows,
    to_text,
    video_record,
    video_rows,
    window_key,
    window_rows,
    window_schema,
)
from tests.encoded import pointing, random_windows, record

HEADER = Header(IndexSettings(model="tiny"), "f", 24)


@given(st.binary(min_size=1, max_size=40).filter(lambda b: b"\0" not in b))
def test_any_path_survives_as_utf8_text(name: bytes) -> None:
    path = Path(os.fsdecode(b"/" + name))
    text = to_text(path)
    text.encode("utf-8")
    assert from_text(text) == path


@pytest.mark.parametrize("name", ["\uf780", "\uf7ff", "a\uf7e9b", "\uf6ff\uf800", "\udce9", "é"])
def test_names_with_the_characters_used_for_escaping_survive(name: str) -> None:
    assert from_text(to_text(Path("/v") / name)) == Path("/v") / name


def test_a_stray_byte_and_the_character_that_stands_for_it_differ() -> None:
    assert to_text(Path("/\udce9")) != to_text(Path("/\uf7e9"))


def test_the_text_of_a_folder_begins_the_texts_of_its_files() -> None:
    folder = Path(os.fsdecode(b"/v\xe9/\xc3"))
    assert to_text(folder / "a.mp4").startswith(to_text(folder) + "/")


def test_a_record_survives() -> None:
    whole = record(
        os.fsdecode(b"/v\xe9.mp4"),
        size=2**40,
        mtime_ns=2**62 + 1,
        digest="d",
        duration=1 / 3,
        windows=4,
        reason="r",
        transient=True,
        note="n",
    )
    (row,) = video_rows([whole], HEADER).to_pylist()
    back = video_record(row)
    assert back.indexed_at > 1.6e9
    assert (back.path, back.size, back.mtime_ns, back.duration) == (
        whole.path,
        whole.size,
        whole.mtime_ns,
        whole.duration,
    )
    assert (back.windows, back.reason, back.transient, back.note) == (4, "r", True, "n")


def test_a_reason_that_quotes_stray_bytes_is_stored() -> None:
    (row,) = video_rows([record("/v.mp4", reason="no such file: \udce9")], HEADER).to_pylist()
    assert row["reason"] == "no such file: ?"


def test_ids_tell_paths_apart_whatever_their_bytes() -> None:
    names = [b"/a", b"/b", b"/a/", b"/\xe9", b"/\xc3\xa9", b"/\xef\x9f\xa9"]
    ids = {record(os.fsdecode(name)).id for name in names}
    assert len(ids) == len(names) - 1  # "/a/" is "/a"


def test_keys_of_a_video_sort_like_their_windows() -> None:
    keys = [window_key("v", number) for number in (0, 9, 10, 99, 100, 99_999, 100_000)]
    assert keys == sorted(keys)


@pytest.mark.parametrize("schema", [3, 4, 5])
def test_windows_survive_within_the_rounding_of_16_bits(schema: int) -> None:
    windows = [*random_windows(2, frames=3), *random_windows(1, frames=5, seed=1)]
    rows = window_rows(record("/v.mp4"), windows, replace(HEADER, schema=schema))
    assert ("packed" in rows.column_names) == (schema == 5)
    back = stored_windows(rows, 24)
    assert back.frames.shape == (3, 5, 24)
    assert back.mask.sum(1).tolist() == [3, 3, 5]
    for number, window in enumerate(windows):
        real = back.mask[number]
        np.testing.assert_allclose(back.frames[number][real], window.frames, rtol=5e-4, atol=1e-7)
        np.testing.assert_allclose(back.times[number][real], window.times)
        np.testing.assert_array_equal(back.signatures[number][real], window.signatures)
        assert (back.start[number], back.end[number]) == (window.start, window.end)
    assert not back.frames[~back.mask].any()
    assert not back.signatures[~back.mask].any()
    assert not back.times[~back.mask].any()


def test_the_stored_vector_is_the_mean_pool_of_the_frames() -> None:
    windows = random_windows(4)
    rows = window_rows(record("/v.mp4"), windows, HEADER)
    vectors = np.array(rows["vector"].to_pylist(), np.float32)
    frames = np.stack([w.frames for w in windows])
    expected = mean_pool(frames, np.ones(frames.shape[:2], bool))
    # Behind it stands what the hub correction takes off, nothing here; see store/hubs.py.
    dim = expected.shape[1]
    np.testing.assert_allclose(vectors[:, :dim], expected, rtol=5e-4, atol=1e-7)
    assert vectors.shape[1] > dim and not vectors[:, dim:].any()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_a_frame_of_zeros_is_stored_as_zeros() -> None:
    rows = window_rows(record("/v.mp4"), pointing([np.zeros(24)]), HEADER)
    assert not np.array(rows["vector"].to_pylist()).any()
    assert stored_windows(rows, 24).mask.tolist() == [[True]]


@pytest.mark.parametrize("schema", [4, 5])
def test_no_rows_are_no_windows(schema: int) -> None:
    back = stored_windows(window_schema(replace(HEADER, schema=schema)).empty_table(), 24)
    assert back.keys == []
    assert back.frames.shape == (0, 1, 24)


@pytest.mark.parametrize("schema", [4, 5])
def test_renamed_windows_are_those_of_the_other_video_written_now(schema: int) -> None:
    header = replace(HEADER, schema=schema)
    rows = window_rows(record("/old.mp4"), random_windows(3), header)
    at = rows.column_names.index("written_at")
    rows = rows.set_column(at, "written_at", pa.array([1.0] * 3))
    shuffled = rows.take([2, 0, 1])
    new = renamed(shuffled, record("/new.mp4"))
    assert pc.unique(new["path"]).to_pylist() == ["/new.mp4"]
    assert pc.unique(new["video"]).to_pylist() == [record("/new.mp4").id]
    assert new["key"].to_pylist() == [window_key(record("/new.mp4").id, i) for i in range(3)]
    assert new["start"].to_pylist() == [0, 10, 20]
    assert min(new["written_at"].to_pylist()) > 1.6e9  # else a sweep would take them for left-overs
    before, after = stored_windows(rows, 24), stored_windows(new, 24)
    np.testing.assert_array_equal(after.frames, before.frames)
    np.testing.assert_array_equal(after.signatures, before.signatures)
    assert after.keys == new["key"].to_pylist() and set(after.paths) == {Path("/new.mp4")}
    assert sound_windows(new).all()

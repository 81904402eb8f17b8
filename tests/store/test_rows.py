"""Values survive the way into Arrow tables and back, and any change of them on the way is seen."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sureshot.errors import StoreError
from sureshot.models.encoders.base import VideoFeatures, mean_pool
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.hub_bank import bank_of
from sureshot.models.similarity import similarity_for
from sureshot.settings import build, to_values
from sureshot.store.index import Store
from sureshot.store.rows import (
    SCHEMA_VERSION,
    EncodedWindow,
    Header,
    IndexSettings,
    from_text,
    is_ours,
    pack,
    query_vector,
    renamed,
    sound,
    stored_vector,
    stored_windows,
    to_text,
    union,
    unpack,
    video_record,
    video_rows,
    window_key,
    window_rows,
    window_schema,
    with_checksums,
)
from tests.encoded import flipped, pointing, random_windows, record

HEADER = Header(IndexSettings(model="tiny", frames=5, window=7.5), "f", 24)
VALUES = json.loads(HEADER.to_metadata()[b"sureshot"])
WINDOWS = window_rows(record("/v.mp4"), random_windows(4), HEADER)
VIDEOS = video_rows(
    [record(f"/{n}.mp4", note="n", shot="s", shot_from="f") for n in range(4)], HEADER
).combine_chunks()


@given(st.binary(min_size=1, max_size=40).filter(lambda b: b"\0" not in b))
@example("a\uf7e9b\uf780".encode())
@example("\uf6ff\uf800é".encode())
def test_any_path_survives_as_utf8_text(name: bytes) -> None:
    path = Path(os.fsdecode(b"/" + name))
    text = to_text(path)
    text.encode("utf-8")
    assert from_text(text) == path


def test_texts_and_ids_tell_paths_apart_whatever_their_bytes() -> None:
    assert to_text(Path("/\udce9")) != to_text(Path("/\uf7e9"))
    folder = Path(os.fsdecode(b"/v\xe9/\xc3"))
    assert to_text(folder / "a.mp4").startswith(to_text(folder) + "/")
    names = [b"/a", b"/b", b"/a/", b"/\xe9", b"/\xc3\xa9", b"/\xef\x9f\xa9"]
    ids = {record(os.fsdecode(name)).id for name in names}
    assert len(ids) == len(names) - 1  # "/a/" is "/a"


def test_a_record_survives() -> None:
    known = {"size": 2**40, "mtime_ns": 2**62 + 1, "digest": "d", "duration": 1 / 3, "windows": 4}
    whole = record(os.fsdecode(b"/v\xe9.mp4"), reason="r", transient=True, note="n", **known)
    (row,) = video_rows([whole], HEADER).to_pylist()
    back = video_record(row)
    assert back.indexed_at > 1.6e9
    assert replace(back, indexed_at=0.0) == whole
    (row,) = video_rows([record("/v.mp4", reason="no such file: \udce9")], HEADER).to_pylist()
    assert row["reason"] == "no such file: ?"


def test_windows_survive_within_the_rounding_of_16_bits() -> None:
    windows = [*random_windows(2, frames=3), *random_windows(1, frames=5, seed=1)]
    rows = window_rows(record("/v.mp4"), windows, HEADER)
    back = stored_windows(rows, 24)
    assert back.frames.shape == (3, 5, 24)
    assert back.mask.sum(1).tolist() == [3, 3, 5]
    for number, window in enumerate(windows):
        real = back.mask[number]
        np.testing.assert_allclose(back.frames[number][real], window.frames, rtol=5e-4, atol=1e-7)
        np.testing.assert_allclose(back.times[number][real], window.times)
        np.testing.assert_array_equal(back.signatures[number][real], window.signatures)
        assert (back.start[number], back.end[number]) == (window.start, window.end)
    for padded in (back.frames, back.signatures, back.times):
        assert not padded[~back.mask].any()


def test_equal_frames_in_a_row_are_stored_once_and_come_back_as_they_were() -> None:
    (window,) = random_windows(1, frames=3)
    shown = np.array([0, 0, 0, 1, 1, 0, 2])
    times, signatures, frames = (
        v[shown] for v in (np.arange(3.0), window.signatures, window.frames)
    )
    repeated = replace(window, times=times, signatures=signatures, frames=frames)
    value = pack("key", "/v.mp4", repeated)
    *_, back = unpack(value)
    np.testing.assert_array_equal(back.frames, frames.astype(np.float16))
    np.testing.assert_array_equal(back.signatures, signatures)
    np.testing.assert_array_equal(back.times, times)
    per_picture = signatures.shape[1] + 2 * frames.shape[1]
    one_each = replace(repeated, times=times[2:], signatures=signatures[2:], frames=frames[2:])
    assert len(value) - len(pack("key", "/v.mp4", one_each)) < per_picture
    # A frame of which only the signature or only the vector differs is a picture of its own.
    for changed in (replace(window, signatures=signatures[:3]), replace(window, frames=frames[:3])):
        *_, back = unpack(pack("key", "/v.mp4", changed))
        np.testing.assert_array_equal(back.frames, changed.frames.astype(np.float16))
        np.testing.assert_array_equal(back.signatures, changed.signatures)


def test_the_stored_vector_is_the_mean_pool_of_the_frames() -> None:
    windows = random_windows(4)
    vectors = np.array(WINDOWS["vector"].to_pylist(), np.float32)
    frames = np.stack([w.frames for w in windows])
    expected = mean_pool(frames, np.ones(frames.shape[:2], bool))
    np.testing.assert_allclose(vectors[:, :24], expected, rtol=5e-4, atol=1e-7)
    assert vectors.shape[1] == 32 and not vectors[:, 24:].any()  # no hub correction
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_no_rows_are_no_windows_and_a_frame_of_zeros_is_one() -> None:
    back = stored_windows(window_schema(HEADER).empty_table(), 24)
    assert back.keys == []
    assert back.frames.shape == (0, 1, 24)
    rows = window_rows(record("/v.mp4"), pointing([np.zeros(24)]), HEADER)
    assert not np.array(rows["vector"].to_pylist()).any()
    assert stored_windows(rows, 24).mask.tolist() == [[True]]


def test_renamed_windows_are_those_of_the_other_video_written_now() -> None:
    at = WINDOWS.column_names.index("written_at")
    rows = WINDOWS.set_column(at, "written_at", pa.array([1.0] * 4))
    new = renamed(rows.take([2, 0, 3, 1]), record("/new.mp4"))
    assert pc.unique(new["path"]).to_pylist() == ["/new.mp4"]
    assert pc.unique(new["video"]).to_pylist() == [record("/new.mp4").id]
    assert new["key"].to_pylist() == [window_key(record("/new.mp4").id, i) for i in range(4)]
    assert new["start"].to_pylist() == [0, 10, 20, 30]
    assert min(new["written_at"].to_pylist()) > 1.6e9  # else a sweep would take them for left-overs
    before, after = stored_windows(rows, 24), stored_windows(new, 24)
    np.testing.assert_array_equal(after.frames, before.frames)
    np.testing.assert_array_equal(after.signatures, before.signatures)
    assert after.keys == new["key"].to_pylist() and set(after.paths) == {Path("/new.mp4")}
    assert sound(new).all()


def test_a_union_has_each_window_once_padded_to_the_longest() -> None:
    one = stored_windows(window_rows(record("/a"), random_windows(3), HEADER), 24)
    rows = window_rows(record("/b"), random_windows(2, frames=5, seed=1), HEADER)
    other = stored_windows(rows, 24)
    both = union([one, other, one])
    assert both.keys == [*one.keys, *other.keys]
    assert both.mask.sum(1).tolist() == [3, 3, 3, 5, 5]
    np.testing.assert_array_equal(both.frames[3:], other.frames)
    np.testing.assert_array_equal(both.frames[:3, :3], one.frames)


DRAW = np.random.default_rng(0)


def window(frames: int = 3, dim: int = 8, kind: str = "<f2") -> EncodedWindow:
    return EncodedWindow(
        1 / 3,
        30.5,
        DRAW.random(frames).astype(np.float32),
        DRAW.integers(0, 256, (frames, 288), np.uint8),
        DRAW.standard_normal((frames, dim)).astype(np.float16).astype(kind),
    )


@given(
    st.integers(1, 20),
    st.integers(1, 9),
    st.text(max_size=30),
    st.sampled_from(["<f2", "<f4", "<f8", ">f2"]),
)
def test_a_packed_window_comes_back(frames: int, dim: int, name: str, kind: str) -> None:
    path = "/" + name.encode("utf-8", "replace").decode()
    made = window(frames, dim, kind)
    value = pack("0123456789abcdef-000001", path, made)
    key, there, back = unpack(value)
    assert packed_sound(value) == [True] and (key, there) == ("0123456789abcdef-000001", path)
    assert (back.start, back.end) == (made.start, made.end)
    np.testing.assert_array_equal(back.times, made.times)
    np.testing.assert_array_equal(back.signatures, made.signatures)
    assert back.frames.dtype == np.dtype("<f2")
    np.testing.assert_array_equal(back.frames, made.frames)


def packed_sound(*values: bytes | None) -> list[bool]:
    return sound(pa.table({"packed": pa.array(values, pa.binary())})).tolist()


def test_every_flipped_bit_and_every_cut_of_a_packed_window_is_seen() -> None:
    value = pack("key", "/v.mp4", window(1, 2))
    cases: list[bytes | None] = [value + b"\0", None]
    for at in range(len(value)):
        flips = (bytes([value[at] ^ (1 << bit)]) for bit in range(8))
        cases += [value[:at], *(value[:at] + flip + value[at + 1 :] for flip in flips)]
    assert packed_sound(value) == [True]
    assert not any(packed_sound(*cases))


def changed(rows: pa.Table, column: str, row: int, value: object) -> pa.Table:
    """The rows with another value in one of them."""
    values = rows.column(column).to_pylist()
    values[row] = value
    field = rows.schema.field(column).with_nullable(True)
    return rows.set_column(
        rows.column_names.index(column), field, pa.array(values, field.type, from_pandas=False)
    )


def test_what_was_written_is_sound_however_it_is_cut() -> None:
    again = pa.concat_tables([WINDOWS.slice(3, 1), WINDOWS.slice(0, 2)])
    for rows in (WINDOWS, WINDOWS.slice(1, 2), again, WINDOWS.slice(0, 0), WINDOWS.take([3, 1])):
        assert sound(rows).tolist() == [True] * len(rows)
        assert sound(rows.select(["packed"])).all() and sound(rows.drop_columns("packed")).all()
    assert len(set(WINDOWS.column("check").to_pylist())) == 4
    assert with_checksums(WINDOWS).equals(WINDOWS)


@pytest.mark.parametrize(
    ("rows", "column"),
    [(rows, name) for rows in (WINDOWS, VIDEOS) for name in rows.column_names],
)
def test_a_changed_or_missing_value_is_seen(rows: pa.Table, column: str) -> None:
    assert sound(rows).all()
    other = flipped(rows.column(column).to_pylist()[2])
    assert sound(changed(rows, column, 2, other)).tolist() == [True, True, False, True]
    assert sound(changed(rows, column, 1, None)).tolist() == [True, False, True, True]


def test_values_in_the_wrong_place_are_seen() -> None:
    vector = WINDOWS.column("vector").to_pylist()[1]
    rows = changed(WINDOWS, "vector", 1, [*vector[:3], None, *vector[4:]])
    assert sound(rows).tolist() == [True, False, True, True]
    rows = changed(WINDOWS, "packed", 1, WINDOWS.column("packed").to_pylist()[2])
    assert sound(rows).tolist() == [True, False, True, True]
    paths = [f"{path}0" for path in WINDOWS.column("path").to_pylist()]
    keys = [key[:-1] for key in WINDOWS.column("key").to_pylist()]
    rows = WINDOWS.drop_columns("packed")
    rows = rows.set_column(rows.column_names.index("path"), "path", pa.array(paths))
    rows = rows.set_column(rows.column_names.index("key"), "key", pa.array(keys))
    assert not sound(rows).any()  # bytes moved from one value to the next


def read(text: bytes) -> Header:
    return Header.from_metadata({b"sureshot": text}, "/place")


def test_a_header_survives_and_what_it_lacks_takes_the_default() -> None:
    assert Header.from_metadata(HEADER.to_metadata(), "/place") == HEADER
    settings = IndexSettings("m", 7, 2.5, False, "keyframes", 24.0)
    assert build(IndexSettings, json.loads(json.dumps(to_values(settings)))) == settings
    assert build(IndexSettings, {"window": 20}) == IndexSettings(window=20.0)


@pytest.mark.parametrize("metadata", [None, {}, {b"other": b"{}"}])
def test_what_another_program_wrote_is_not_taken_for_ours(metadata: dict | None) -> None:
    assert not is_ours(metadata)
    with pytest.raises(StoreError, match=r"/place is not an index of Sureshot.*--db"):
        Header.from_metadata(metadata, "/place")


WITHOUT = [{k: v for k, v in VALUES.items() if k != gone} for gone in ("settings", "dim")]
WRONG = [VALUES | {"settings": {"frames": 0}}, VALUES | {"fingerprint": 7}, VALUES | {"dim": "24"}]


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\xff", b"[]", b"{}", b'{"schema": "1"}', b'{"schema": true}'),
        *(json.dumps(values).encode() for values in (*WITHOUT, *WRONG)),
    ],
)
def test_a_broken_header_names_the_place_and_the_fix(text: bytes) -> None:
    assert is_ours({b"sureshot": text})
    with pytest.raises(StoreError, match=r"/place is damaged.*sureshot reset"):
        read(text)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (SCHEMA_VERSION + 1, "newer Sureshot.*Install the newest one"),
        (SCHEMA_VERSION - 1, "has format 7, and this Sureshot reads 8. `sureshot reset`"),
    ],
)
def test_another_format_is_refused_before_anything_else_is_read(schema: int, words: str) -> None:
    text = json.dumps({"schema": schema, "settings": "in a way we do not know"})
    with pytest.raises(StoreError, match=f"/place .*{words}"):
        read(text.encode())


def unit(count: int, dim: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_a_product_of_stored_and_query_vectors_is_the_score() -> None:
    encoder = BundledEncoder()
    similarity = similarity_for(encoder, bank_of(encoder.name, encoder.fingerprint))
    assert similarity.hub_corrected and not similarity_for(encoder).hub_corrected
    header = Header(settings=IndexSettings(), fingerprint=encoder.fingerprint, dim=encoder.dim)
    pooled, queries = unit(20, encoder.dim), unit(4, encoder.dim, seed=1)
    stored = stored_vector(pooled, header)
    coded = similarity.videos(VideoFeatures.of_frames(pooled[:, None], np.ones((20, 1), bool)))
    width = stored.shape[1]
    asked = np.stack([query_vector(query, width, hub_corrected=True) for query in queries])
    np.testing.assert_allclose(asked @ stored.T, similarity.similarity(queries, coded), atol=1e-5)
    plain = np.stack([query_vector(query, width, hub_corrected=False) for query in queries])
    np.testing.assert_allclose(plain @ stored.T, queries @ pooled.T, atol=1e-5)


def test_a_search_takes_the_windows_that_score_best_as_candidates(tmp_path: Path) -> None:
    encoder = BundledEncoder()
    similarity = similarity_for(encoder, bank_of(encoder.name, encoder.fingerprint))
    store = Store.create(tmp_path, IndexSettings(), encoder.fingerprint, encoder.dim)
    query, *noise = unit(401, encoder.dim)
    # Hubs are nearer to the query, and to every caption of the bank as well.
    captions = similarity._captions.mean(0) / np.linalg.norm(similarity._captions.mean(0))
    pooled = np.stack(noise)
    pooled[:200] = 0.2 * pooled[:200] + 0.55 * query + 0.8 * captions
    pooled[200:] = 0.92 * pooled[200:] + 0.35 * query
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    store.write(record("/v.mp4"), pointing(pooled))
    coded = similarity.videos(VideoFeatures.of_frames(pooled[:, None], np.ones((400, 1), bool)))
    scores = similarity.similarity(query[None], coded)[0]
    best = set((10.0 * np.argsort(-scores)[:10]).tolist())
    assert best <= set(store.finder.nearest(query, 12, hub_corrected=True).start.tolist())
    assert not best & set(store.finder.nearest(query, 12).start.tolist())

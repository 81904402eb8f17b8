"""An index of an older format opens, is searched, and gets its checksums from the next `index`."""

import contextlib
import json
import signal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from sureshot.errors import StoreError
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.repair import upgrade
from sureshot.store.rows import CHECKED, WINDOW_CHECKS, Header
from sureshot.store.tables import Tables
from tests import processes
from tests.encoded import SETTINGS, contents, random_windows, record, spoil

QUERY = np.eye(24, dtype=np.float32)[0]


@pytest.fixture(params=[1, 2])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An index as it was before checksums: of three videos, one of which failed."""
    store = of_format_3(tmp_path / "index")
    for number in range(2):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    store.fail(record("/bad.mp4", reason="is damaged"))
    return as_format(tmp_path / "index", request.param)


def of_format_3(place: Path) -> Store:
    """An empty index whose vectors have no room for a hub correction."""
    tiny = TinyEncoder()
    header = Header(settings=SETTINGS, fingerprint=tiny.fingerprint, dim=tiny.dim, schema=CHECKED)
    Tables(str(place)).create(header)
    return Store.open(place)


def as_format(place: Path, number: int) -> Path:
    windows, videos = lance.dataset(place / "windows.lance"), lance.dataset(place / "videos.lance")
    windows.drop_columns(list(WINDOW_CHECKS))
    windows.add_columns(unread)
    videos.drop_columns(["check", "check_windows"])
    values = json.loads(windows.schema.metadata[b"sureshot"]) | {"schema": number}
    if number == 1:
        del values["settings"]["look"]
    windows.update_schema_metadata({"sureshot": json.dumps(values)})
    return place


TOKENS = pa.list_(pa.list_(pa.float16(), 24))
UNREAD = pa.schema([("patches", TOKENS), ("backbone", TOKENS)])


@lance.batch_udf(output_schema=UNREAD)
def unread(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cells and features of frames, which these formats kept."""
    noise = np.random.default_rng(0).standard_normal((batch.num_rows, 30, 24)).astype(np.float16)
    column = pa.array([list(one) for one in noise], TOKENS)
    return pa.record_batch([column, column], schema=UNREAD)


def test_an_older_index_is_read_as_it_is(old: Path) -> None:
    before = contents(old)
    store = Store.open(old)
    assert len(store.nearest(QUERY, 5).keys) == 5
    assert [(v.path.name, v.windows) for v in store.videos()] == [
        ("0.mp4", 3),
        ("1.mp4", 3),
        ("bad.mp4", 0),
    ]
    assert (store.lost(thorough=True), store.trouble()) == ([], [])
    assert contents(old) == before


def test_the_next_index_gives_every_row_its_checksums(old: Path) -> None:
    before, look = contents(old), Store.open(old).settings.look
    (said,) = Store.open(old).repair()
    assert "older format" in said
    assert contents(old) == before
    store = Store.open(old)
    assert store.settings.look == look
    assert store._header.schema == CHECKED
    assert (store.repair(), store.lost(thorough=True)) == ([], [])
    assert all(video.check_windows for video in store.videos() if video.windows)
    spoil(store, record("/1.mp4").id, "frames")
    assert [video.path.name for video in store.lost(thorough=True)] == ["1.mp4"]


def test_an_index_of_format_3_stays_one_and_is_written_to(tmp_path: Path) -> None:
    store = of_format_3(tmp_path / "index")
    store.write(record("/v.mp4"), random_windows(3))
    vectors = lance.dataset(tmp_path / "index" / "windows.lance").schema.field("vector").type
    assert vectors.list_size == 24
    store = Store.open(tmp_path / "index")
    assert (store.repair(), store.lost(thorough=True), store._header.schema) == ([], [], CHECKED)
    assert len(store.nearest(QUERY, 2, hub_corrected=True).keys) == 2


def test_what_no_search_reads_is_dropped_with_its_bytes(old: Path) -> None:
    before, answer = Store.open(old).bytes_on_disk(), Store.open(old).nearest(QUERY, 5)
    store = Store.open(old)
    store.repair()
    store.compact()
    store.compact()  # two versions are kept
    assert store.bytes_on_disk() < before / 2
    assert not set(UNREAD.names) & set(lance.dataset(old / "windows.lance").schema.names)
    np.testing.assert_array_equal(store.nearest(QUERY, 5).frames, answer.frames)


def test_writing_upgrades_first(old: Path) -> None:
    store = Store.open(old)
    store.write(record("/new.mp4"), random_windows(2))
    assert store.copy(store.videos()[0], record("/copy.mp4"))
    assert store._header.schema == CHECKED
    assert (store.count(), store.lost(thorough=True)) == (11, [])


def test_an_upgrade_killed_at_any_step_is_finished_by_the_next(tmp_path: Path) -> None:
    for step in range(5):
        store = of_format_3(tmp_path / str(step))
        store.write(record("/v.mp4"), random_windows(3))
        place = as_format(tmp_path / str(step), 2)
        killed = processes.start(processes.mend, place, step)
        assert processes.finish(killed) == [-signal.SIGKILL if step < 4 else 0]
        store = Store.open(place)
        assert len(store.nearest(QUERY, 3).keys) == 3
        store.repair()
        assert (store._header.schema, store.lost(thorough=True)) == (CHECKED, [])


def test_a_video_whose_row_is_lost_is_mended_on_the_way(old: Path) -> None:
    tables = Tables(str(old))
    row = tables.use("videos", lambda table: table.to_table(filter="path = '/1.mp4'"))
    tables.drop("videos", "path = '/1.mp4'")
    before = set((old / "videos.lance" / "data").iterdir())
    tables.upsert("videos", row)
    (newest,) = set((old / "videos.lance" / "data").iterdir()) - before
    newest.write_bytes(newest.read_bytes()[:10])
    told = Store.open(old).repair()
    assert all(word in said for word, said in zip(("newest", "lost", "older"), told, strict=True))
    store = Store.open(old)
    first, made, bad = store.videos()
    assert (first.windows, made.windows, bad.reason) == (3, 3, "is damaged")
    assert (made.path, made.size) == (Path("/1.mp4"), -1)  # so its file counts as changed
    assert (store.repair(), store.lost(thorough=True), store.trouble()) == ([], [], [])


def test_an_upgrade_deletes_no_file_that_was_there_before(old: Path) -> None:
    tables = Tables(str(old))
    tables.use("windows", lambda table: table.to_table())  # remembers where columns lie
    files = list((old / "windows.lance" / "data").iterdir())
    for file in files:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    with contextlib.suppress(OSError, ValueError, StoreError):
        upgrade(tables, tables.header())
    assert all(file.exists() for file in files)

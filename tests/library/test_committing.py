"""What is packed is committed soon, never lost, and told."""

import time
from pathlib import Path

import pytest

from sureshot.library import indexing
from sureshot.library.indexing import Committing
from sureshot.library.results import Indexed
from sureshot.media.discover import Source
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.writing import StagedVideo
from tests.encoded import make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


@pytest.fixture
def told() -> list[int]:
    """Videos indexed, each time that it was told."""
    return []


@pytest.fixture
def run(store: Store, told: list[int]) -> Committing:
    result = Indexed(index=store.location)
    return Committing(
        store, result, {Path("/2.mp4")}, lambda r: told.append(r.indexed), time.monotonic()
    )


def packed(store: Store, number: int) -> StagedVideo:
    return store.stage(record(f"/{number}.mp4"), random_windows(2, seed=number))


def test_the_first_is_committed_at_once_and_the_rest_together(
    store: Store, run: Committing, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_EVERY", 1e9)
    with staging_lock(store.location):
        for number in range(4):
            run.take([packed(store, number)])
        assert told == [1, 1, 1, 1] and len(store.videos()) == 1
        assert run.mended == 0
        run.finish()
    assert told[-1] == 4 and len(store.videos()) == 4
    assert run.mended == 1  # of the lost ones the second is there again
    versions = store._tables.use("windows", lambda table: len(table.versions()))
    run.finish()
    assert versions == store._tables.use("windows", lambda table: len(table.versions()))


def test_what_waits_does_not_wait_for_the_end_of_a_long_film(
    store: Store, run: Committing, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    film = Source(path=Path("/film.mp4"), kind="file", size=1000, mtime_ns=1)
    with staging_lock(store.location):
        monkeypatch.setattr(indexing, "_EVERY", 1e9)
        for number in range(2):
            run.take([packed(store, number)])
        run.advance(film, 0.1, 60.0)
        assert told[-1] == 1
        monkeypatch.setattr(indexing, "_EVERY", 0.0)
        run.advance(film, 0.2, 120.0)
    assert told[-1] == 2 and len(store.videos()) == 2

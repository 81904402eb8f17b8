"""Shares of a library are planned apart: none touches what belongs to another."""

import shutil
from pathlib import Path

import pytest

from sureshot.library.indexing import ingest
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.paths import Shard
from sureshot.store.index import Store
from tests.clips import coloured
from tests.encoded import contents, make_store

SHARES = [Shard(number, 3) for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of a second of each colour."""
    folder = tmp_path_factory.mktemp("clips")
    for number, colour in enumerate(COLOURS):
        coloured(folder / f"{number}.mp4", [colour], seconds=1, rate=5)
    return folder


@pytest.fixture
def videos(clips: Path, tmp_path: Path) -> Path:
    return shutil.copytree(clips, tmp_path / "videos")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def test_all_shares_together_are_the_whole(store: Store, videos: Path, tmp_path: Path) -> None:
    results = [ingest(store, TinyEncoder(), [videos], shard=share) for share in SHARES]
    assert sum(result.found for result in results) == len(COLOURS)
    assert all(result.missing == result.unchanged == 0 for result in results)
    whole = make_store(tmp_path / "whole")
    ingest(whole, TinyEncoder(), [videos])
    assert contents(store.location) == contents(whole.location)


def test_a_share_forgets_only_its_own_videos(store: Store, videos: Path) -> None:
    ingest(store, TinyEncoder(), [videos])
    paths = [record.path for record in store.videos()]
    for path in paths[:6]:
        path.unlink()
    mine = {path for path in paths[:6] if SHARES[0].has(path)}
    result = ingest(store, TinyEncoder(), [videos], shard=SHARES[0], prune=True)
    assert result.pruned == len(mine)
    assert {record.path for record in store.videos()} == {*paths} - mine
    store.set_excluded([str(videos)], excluded=True)
    left = [path for path in paths if path not in mine]
    result = ingest(store, TinyEncoder(), [videos], shard=SHARES[1])
    assert result.forgotten == sum(SHARES[1].has(path) for path in left)


def test_a_share_copies_what_moved_away_from_another(store: Store, videos: Path) -> None:
    ingest(store, TinyEncoder(), [videos])
    old = next(r.path for r in store.videos() if not SHARES[0].has(r.path))
    new = next(p for n in range(99) if SHARES[0].has(p := videos / f"new-{n}.mp4"))
    shutil.move(old, new)
    result = ingest(store, TinyEncoder(), [videos], shard=SHARES[0])
    assert (result.copied, result.moved, result.indexed) == (1, 0, 0)
    assert {old, new} <= {record.path for record in store.videos()}


def test_what_cannot_be_read_and_was_named_is_told_by_every_share(
    store: Store, videos: Path
) -> None:
    gone = videos / "gone.mp4"
    for share in SHARES:
        result = ingest(store, TinyEncoder(), [videos, gone], shard=share)
        assert [path for path, _ in result.failed] == [gone]

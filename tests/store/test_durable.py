"""What counts as indexed is on the disk; what a loss of power takes is encoded again."""

import os
import shutil
from pathlib import Path

import pytest

from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.locks import LOCKS
from sureshot.store.tables import Durable, Tables, sync_paths
from tests.encoded import fail, make_store, random_windows, record


class PowerError(Exception):
    """The power goes."""


class Disk:
    """Knows which files were synced, and can lose the others."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.safe = place, {}
        sync = os.fsync

        def fsync(opened: int) -> None:
            sync(opened)
            self.safe[os.fstat(opened).st_ino] = os.fstat(opened).st_size

        monkeypatch.setattr(os, "fsync", fsync)

    def unsafe(self) -> list[Path]:
        """Files of the tables, and folders with a new name, that were not synced as they are."""
        files = [p for p in self.place.rglob("*") if p.is_file() and p.suffix != ".json"]
        return [p for p in files if self.safe.get(p.stat().st_ino) != p.stat().st_size]

    def lose_power(self, to: Path) -> Path:
        """A copy of the index in which files that were not synced are there but empty."""
        unsafe = {p.relative_to(self.place) for p in self.unsafe()}
        shutil.copytree(self.place, to)
        for path in unsafe:
            os.truncate(to / path, 0)
        return to


def test_each_file_and_the_name_of_each_new_folder_is_synced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, table = Disk(tmp_path, monkeypatch), tmp_path / "table"
    (table / "_versions").mkdir(parents=True)
    (table / "_versions" / "1").write_text("one")
    durable = Durable([table])
    durable.sync()
    assert disk.unsafe() == [] and table.stat().st_ino in disk.safe
    disk.safe.clear()
    durable.sync()
    assert not disk.safe
    (table / "_indices" / "of vectors").mkdir(parents=True)
    (table / "_indices" / "of vectors" / "index.idx").write_text("two")
    durable.sync()
    folders = (table, table / "_indices", table / "_indices" / "of vectors")
    assert {folder.stat().st_ino for folder in folders} <= set(disk.safe)
    assert {path.name for path in disk.unsafe()} == {"1"}
    sync_paths([tmp_path / "gone"])


def test_windows_are_on_the_disk_before_the_row_of_their_video_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, upsert, seen = Disk(tmp_path / "index", monkeypatch), Tables.upsert, []
    store = make_store(tmp_path / "index")

    def watched(self: Tables, name, rows) -> None:
        seen.append((name, [p for p in disk.unsafe() if p.name not in LOCKS]))
        upsert(self, name, rows)

    store.write(record("/first.mp4"), random_windows(2))
    monkeypatch.setattr(Tables, "upsert", watched)
    store.write(record("/v.mp4"), random_windows(3))
    store.write(record("/v.mp4"), random_windows(2))
    assert seen == [("videos", [])] * 2
    store.sync()
    assert [path for path in disk.unsafe() if path.name not in LOCKS] == []


@pytest.mark.parametrize("commit", range(12))
def test_a_loss_of_power_at_any_commit_costs_at_most_what_was_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: int
) -> None:
    place = tmp_path / "index"
    disk, left = Disk(place, monkeypatch), [commit]
    store = make_store(place)
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    store.compact()
    change = Tables.change

    def until_power_is_lost(self: Tables, name, act, **more):
        done = change(self, name, act, **more)
        left[0] -= 1
        if left[0] < 0:
            raise PowerError
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "change", until_power_is_lost)
        with pytest.raises(PowerError):
            for number in (1, 3, 4):
                store.write(record(f"/{number}.mp4"), random_windows(2, seed=number + 5))
            fail(store, record("/3.mp4", reason="is damaged"))
            store.compact()
            while True:
                fail(store, record("/5.mp4", reason="is empty"))
    after = Store.open(disk.lose_power(tmp_path / "after"))
    assert after.count() >= 6
    told = after.trouble()
    said = after.repair()
    # Of one table that fell back a search says so, and which videos have lost windows by it.
    assert len(said) >= sum("lost windows" not in sentence for sentence in told)
    lost = {known.path.name for known in after.lost(thorough=True)}
    assert lost <= {"1.mp4", "3.mp4", "4.mp4"}
    sound = {known.path.name for known in after.videos() if known.windows} - lost
    assert {"0.mp4", "2.mp4"} <= sound
    for number in (1, 3, 4):  # what the next `index` does
        after.write(record(f"/{number}.mp4"), random_windows(2, seed=number + 5))
    assert after.lost(thorough=True) == []
    assert Store.open(after.location).trouble() == []
    assert after.fingerprint == TinyEncoder().fingerprint

"""Tables are made once, read while others rewrite them, and deleted without anything else.

Damage of every kind is one sentence with the place and the fix in it, never a trace.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from sureshot.errors import StoreError
from sureshot.files import write_json
from sureshot.store.index import Store
from sureshot.store.locks import LOCKS
from sureshot.store.tables import Tables, as_store_error
from tests import processes
from tests.encoded import SETTINGS, fail, make_store, pointing, random_windows, record

NAMES = ["videos", "windows"]
RESET = "sureshot reset"
FIX = "sureshot index FOLDER"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three videos with three windows each."""
    where = tmp_path_factory.mktemp("sound") / "index"
    store = make_store(where)
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    return where


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return shutil.copytree(sound, tmp_path / "index")


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda p: p.stat().st_mtime_ns)


def every_use(place: Path) -> list[Callable[[], object]]:
    """Whatever one can do with an index, but delete it."""

    def opened() -> Store:
        return Store.open(place)

    return [
        lambda: opened().videos(),
        lambda: opened().count(),
        lambda: opened().finder.nearest(np.eye(24, dtype=np.float32)[0], 5),
        lambda: opened().windows_of(Path("/1.mp4")),
        lambda: opened().write(record("/1.mp4"), random_windows(2)),
        lambda: fail(opened(), record("/1.mp4", reason="r")),
        lambda: opened().copy([(record("/1.mp4", windows=3), record("/new.mp4"))]),
        lambda: opened().remove([record("/1.mp4")]),
        lambda: opened().sweep(),
        lambda: opened().compact(),
        lambda: make_store(place),
    ]


def errors_of(place: Path) -> list[str]:
    """The messages of every use that fails; anything but a `StoreError` is raised."""
    messages = []
    for use in every_use(place):
        try:
            use()
        except StoreError as error:
            messages.append(str(error))
    return messages


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def overwrite(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(path.stat().st_size))


NOISE = ("data", overwrite)
DAMAGE = [("_versions", cut), ("_versions", empty), ("_versions", overwrite), ("_versions", None)]
DAMAGE += [("data", cut), NOISE, ("data", None), ("", None)]


@pytest.mark.parametrize(
    ("name", "folder", "damage"),
    [
        # Random bytes where Lance expects sizes take it seconds.
        pytest.param(name, *one, marks=[pytest.mark.slow] * (name == "windows" and one == NOISE))
        for name in NAMES
        for one in DAMAGE
    ],
)
def test_damage_is_reported_with_the_place_and_the_fix(
    place: Path, name: str, folder: str, damage: Callable[[Path], None] | None
) -> None:
    harmed = place / f"{name}.lance" / folder
    if damage is None:
        shutil.rmtree(harmed)
        harmed.mkdir()
    for path in harmed.iterdir():
        if path.suffix != ".json" and damage is not None:
            damage(path)
    messages = errors_of(place)
    assert messages
    for message in messages:
        assert str(place) in message
        assert RESET in message or FIX in message
        assert "\n" not in message
    Store.delete(place)
    assert not place.exists()


def test_an_index_half_made_says_so_and_is_completed_with_its_windows(place: Path) -> None:
    before = [(r.path, r.windows, r.check_windows) for r in Store.open(place).videos()]
    shutil.rmtree(place / "videos.lance")  # made last and deleted first: so a kill leaves it
    assert Store.exists(place)
    with pytest.raises(StoreError, match=rf"{place} is half made.*{FIX}.*{RESET}"):
        Store.open(place)
    with pytest.raises(StoreError, match=r"written by .*tiny.*sureshot reset"):
        Store.create(place, SETTINGS, "another", 24)
    store = Store.open(place, complete=True)
    assert [(r.path, r.windows, r.check_windows) for r in store.videos()] == before
    assert {r.size for r in store.videos()} == {-1}  # so each is encoded again when it is met
    assert store.lost(thorough=True) == []
    store.write(record("/1.mp4"), random_windows(3, seed=1))
    assert store.count() == 9


def test_a_table_without_a_header_is_somebody_elses_and_is_not_deleted(place: Path) -> None:
    lance.dataset(place / "windows.lance").update_schema_metadata({}, replace=True)
    for manifest in sorted((place / "windows.lance" / "_versions").glob("*.manifest"))[1:]:
        manifest.unlink()
    with pytest.raises(StoreError, match=rf"{place} is not an index of Sureshot.*--db"):
        Store.open(place)
    with pytest.raises(StoreError, match="not part of an index of Sureshot, so nothing was"):
        Store.delete(place)
    assert all((place / f"{name}.lance" / "data").is_dir() for name in NAMES)


def test_a_file_at_the_place_is_no_index_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StoreError, match="There is no index"):
        Store.open(tmp_path / "file")
    with pytest.raises(StoreError, match=rf"Cannot create the index at {tmp_path}/file.*--db"):
        make_store(tmp_path / "file")
    Store.delete(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_place_of_a_table_is_told_and_stays(place: Path, name: str) -> None:
    shutil.rmtree(place / f"{name}.lance")
    (place / f"{name}.lance").write_text("precious")
    messages = errors_of(place)
    assert messages
    assert all(str(place) in m and "--db" in m for m in messages)
    with pytest.raises(StoreError, match=rf"{name}.lance is not part of an index"):
        Store.delete(place)
    assert (place / f"{name}.lance").read_text() == "precious"
    assert len([p for p in place.iterdir() if p.is_dir()]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_other_things_in_place_of_a_table_is_not_deleted(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / f"{name}.lance" / "data").mkdir(parents=True)
    (tmp_path / f"{name}.lance" / "letters.txt").write_text("precious")
    with pytest.raises(StoreError, match="nothing was deleted"):
        Store.delete(tmp_path)
    assert (tmp_path / f"{name}.lance" / "letters.txt").read_text() == "precious"


def test_a_lance_table_of_another_program_is_not_deleted(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "windows.lance")
    with pytest.raises(StoreError, match=f"{tmp_path} is not an index of Sureshot"):
        make_store(tmp_path)
    with pytest.raises(StoreError, match="nothing was deleted"):
        Store.delete(tmp_path)
    assert lance.dataset(tmp_path / "windows.lance").count_rows() == 1


def test_what_else_is_in_the_folder_stays_but_the_card_goes(place: Path) -> None:
    (place / "trust.json").write_text("{}")
    (place / "notes.txt").write_text("precious")
    (place / "windows.lance.bak").mkdir()
    Store.delete(place)
    assert sorted(p.name for p in place.iterdir()) == ["notes.txt", "windows.lance.bak"]
    (place / "trust.json").write_text("somebody's")
    Store.delete(place)  # where there is no index there is no card of one
    assert (place / "trust.json").exists()


def test_behind_a_link_an_index_is_deleted_and_a_table_is_not(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "other")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    Store.delete(tmp_path / "link")
    assert not list((tmp_path / "other").iterdir()) and (tmp_path / "link").is_symlink()
    shutil.move(place / "windows.lance", tmp_path / "elsewhere")
    (place / "windows.lance").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="nothing was deleted"):
        Store.delete(place)
    assert Store.open(place).count() == 9


@pytest.mark.parametrize("name", ["a b%25", "c#d?e", "é — 視頻", "[x]*", "it's"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    make_store(tmp_path / name / "index").write(record("/v.mp4"), random_windows(1))
    assert Store.open(tmp_path / name / "index").count() == 1
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_relative_places_do_not_move_with_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = make_store("index")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.write(record("/v.mp4"), random_windows(1))
    assert store.location == f"{tmp_path}/index"
    assert Store.open("../index").count() == Store.open(f"file://{tmp_path}/index").count() == 1


def test_object_storage_holds_an_index_too(tmp_path: Path) -> None:
    # An object store within this process: the path that s3:// takes through Lance, minus network.
    uri = f"shared-memory://tests/{tmp_path.name}"
    assert not Store.exists(uri)
    with pytest.raises(StoreError, match=f"There is no index at {uri}"):
        Store.open(uri)
    store = make_store(uri)
    assert make_store(uri).count() == 0
    store.write(record("/v.mp4"), pointing(np.eye(24)))
    assert Store.open(uri).finder.nearest(np.eye(24, dtype=np.float32)[3], 1).start.tolist() == [
        30.0
    ]
    store.compact()
    assert store.bytes_on_disk() == 0
    with pytest.raises(StoreError, match="tools of that storage"):
        Store.delete(uri)


def test_object_storage_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for use in (Store.exists, Store.open, make_store):
        with pytest.raises(StoreError, match=r"index at nowhere://b/i: .*Check the address"):
            use("nowhere://b/i")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="sureshot-test-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("rights", [0o555, 0o000])
def test_where_one_may_not_write_the_fix_is_another_place(shared: Path, rights: int) -> None:
    shared.chmod(rights)
    message = processes.error_of(processes.without_rights, processes.index, shared / "index", [])
    assert message.startswith("StoreError: Cannot ")
    assert str(shared) in message
    assert "may write to with --db" in message


def test_an_index_that_may_only_be_read_can_be_searched(shared: Path) -> None:
    make_store(shared).write(record("/steady.mp4"), random_windows(5))
    for path in [shared, *shared.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert processes.error_of(processes.without_rights, processes.read, shared, 0.1) == ""
    message = processes.error_of(processes.without_rights, processes.churn, shared, 0.1)
    assert message.startswith("StoreError: Cannot write to the index")
    assert "may write to with --db" in message


def test_of_processes_that_create_at_once_one_wins_and_none_loses(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(10)]
    gate = processes.barrier(3)
    makers = [processes.start(processes.create, places, gate) for _ in range(3)]
    assert processes.finish(*makers) == [0, 0, 0]
    for place in places:
        assert len(Store.open(place).videos()) == 3
        assert Store.open(place).count() == 3
        names = {path.name for path in place.iterdir()}
        assert names - {*LOCKS} == {"videos.lance", "windows.lance"}


def test_readers_and_writers_never_notice_that_others_compact(tmp_path: Path) -> None:
    store = make_store(tmp_path / "index")
    store.write(record("/steady.mp4"), random_windows(5))
    workers = [
        processes.start(work, tmp_path / "index", 2.0)
        for work in (processes.churn, processes.churn, processes.read)
    ]
    assert processes.finish(*workers) == [0, 0, 0]
    videos = store.videos()
    assert len(videos) == 11
    assert store.count() == sum(r.windows for r in videos) == 25


def test_a_read_is_repeated_on_the_next_version_when_its_files_vanish(place: Path) -> None:
    tables, versions = Tables(str(place)), []

    def act(table) -> int:
        versions.append(table.version)
        if len(versions) == 1:
            Store.open(place).remove([record("/0.mp4")])
            Store.open(place).compact()
        return len(table.to_table())

    assert tables.use("windows", act) == 6
    assert len(versions) == 2
    assert versions[0] < versions[1]


def test_a_file_that_is_missing_for_good_is_looked_for_twice_only(place: Path) -> None:
    tables, seen = Tables(str(place)), []
    tables.use("windows", lambda table: table.version)
    shutil.rmtree(place / "windows.lance" / "data")

    def act(table) -> int:
        seen.append(table.version)
        return len(table.to_table())

    with pytest.raises((OSError, ValueError), match="ot found"):
        tables.use("windows", act)
    assert len(seen) == 2


def test_an_index_made_anew_at_the_same_place_is_not_mixed_up_with_the_old_one(
    place: Path,
) -> None:
    old = Store.open(place)
    assert old.count() == 9
    shutil.rmtree(place)
    new = make_store(place)
    for number in range(3):  # up to the same version
        new.write(record(f"/new{number}.mp4"), random_windows(1))
    assert old.count() == 3
    assert {str(r.path) for r in old.videos()} == {f"/new{n}.mp4" for n in range(3)}


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(28, "No space left on device"), "free some space"),
        (OSError(122, "Disk quota exceeded"), "free some space"),
        (OSError(30, "Read-only file system"), "--db"),
        (OSError("Retryable commit conflict for version 3"), "run the same command again"),
        (ValueError("anything, /rustc/deep/in/lance.rs:3:4"), RESET),
        (RuntimeError(""), RESET),
        (ValueError("Arrow error: data is not UTF-8"), RESET),
        (ValueError("cannot decode /quota/conflict/read-only/windows.lance/data/1"), RESET),
    ],
)
def test_errors_are_one_sentence_and_a_fix(error: Exception, fix: str) -> None:
    with (
        pytest.raises(StoreError, match=r"^Cannot write to the index at /quota/") as caught,
        as_store_error("/quota/conflict/read-only", "write to"),
    ):
        raise error
    assert fix in str(caught.value)
    assert "rustc" not in str(caught.value)


def test_of_a_storage_only_words_of_ours_are_said() -> None:
    text = "Generic S3 error: Error performing GET http://u:p@host/b: <Code>ExpiredToken</Code>"
    with pytest.raises(StoreError) as raised, as_store_error("s3://films/index", "read"):
        raise OSError(text)
    said = str(raised.value)
    assert "the credentials have expired" in said and "Check the address" in said
    assert "host" not in said


def test_commits_leave_nothing_in_memory(tmp_path: Path) -> None:
    make_store(tmp_path / "db")
    store = Store.open(tmp_path / "db")
    kept = []
    for number in range(150):
        fail(store, record(f"{number}.mp4", reason="is empty"))
        if number in (79, 149):
            kept.append(store._tables._session.size_bytes())
    # Without a bound Lance keeps what it read of every version: 17 MB of 230, and no end.
    assert kept[0] < kept[1] < 9e6


def test_ctrl_c_while_lance_is_at_work_stays_ctrl_c(place: Path) -> None:
    def act(table: object) -> None:
        # Lance 14 hands it on like this, which must not read as a damaged index.
        raise OSError("LanceError(IO): External error: KeyboardInterrupt:, rust/lance-datafusion")

    with pytest.raises(KeyboardInterrupt), as_store_error(str(place), "read"):
        Tables(str(place)).use("windows", act)


def test_ctrl_c_at_any_moment_is_neither_an_error_nor_lost(place: Path) -> None:
    draw = random.Random(0)
    for _ in range(4):
        after = draw.uniform(0.05, 0.3)
        assert processes.error_after_ctrl_c(after, processes.churn, place, 20.0).startswith(
            "KeyboardInterrupt"
        )
    assert Store.open(place).count() >= 9


def test_all_files_of_an_index_have_the_rights_that_the_user_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        store = make_store(tmp_path / "index")
        store.write(record("/v.mp4"), random_windows(3))
        store.remove(store.videos())
        store.compact()
        write_json(tmp_path / "index" / "trust.json", {})
    finally:
        os.umask(before)
    found = {(p.is_dir(), p.stat().st_mode & 0o777) for p in (tmp_path / "index").rglob("*")}
    assert found == {(True, 0o775), (False, 0o664)}

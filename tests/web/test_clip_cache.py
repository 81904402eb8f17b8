"""Films that were made to be played."""

import errno
import os
import subprocess
import threading
import time

import pytest

from sureshot.errors import SureshotError, VideoError
from sureshot.web.media import ClipCache
from sureshot.web.schema import DiskFullError


def filling(size: int, made: list[int] | None = None):
    def make(path):
        if made is not None:
            made.append(size)
        path.write_bytes(b"x" * size)

    return make


def test_a_film_is_made_once_and_kept(tmp_path) -> None:
    cache, made = ClipCache(tmp_path / "films"), []
    one = cache.film("a", filling(5, made))
    assert cache.film("a", filling(5, made)) == one and made == [5]
    assert cache.film("b", filling(5, made)) != one


def test_what_is_there_is_known(tmp_path) -> None:
    cache = ClipCache(tmp_path)
    assert not cache.has("a")
    cache.film("a", filling(5))
    assert cache.has("a") and not cache.has("b")


def test_fifty_who_ask_at_once_have_it_made_once(tmp_path) -> None:
    cache, made = ClipCache(tmp_path), []

    def slowly(path):
        time.sleep(0.05)
        filling(5, made)(path)

    threads = [threading.Thread(target=cache.film, args=("a", slowly)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [5]


def test_the_oldest_go_when_there_is_too_much(tmp_path) -> None:
    cache = ClipCache(tmp_path, most=25)
    paths = [cache.film(name, filling(10)) for name in "ab"]
    for age, path in zip((20, 10), paths, strict=True):
        os.utime(path, (time.time() - age,) * 2)
    cache.film("a", filling(10))  # asked for again: no longer the oldest
    cache.film("c", filling(10))
    assert [path.exists() for path in paths] == [True, False]


def test_a_film_that_cannot_be_made_leaves_nothing(tmp_path) -> None:
    def fail(path):
        path.write_bytes(b"half")
        raise VideoError("is damaged")

    with pytest.raises(VideoError, match="is damaged"):
        ClipCache(tmp_path).film("a", fail)
    assert not list(tmp_path.iterdir())


def test_with_a_full_disk_older_films_make_room_or_a_sentence_says_so(tmp_path) -> None:
    cache = ClipCache(tmp_path)
    old = cache.film("old", filling(10))

    def full(path):
        if old.exists() or path.parent.name.startswith(".b"):
            raise SureshotError("could not be written") from OSError(errno.ENOSPC, "no space left")
        filling(10)(path)

    assert cache.film("a", full).exists() and not old.exists()

    def always(path):
        raise OSError(errno.ENOSPC, "no space left")

    with pytest.raises(DiskFullError, match="no room for a film"):
        cache.film("b", always)


def test_a_disk_that_is_really_full(tmp_path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a small file system")
    try:
        cache = ClipCache(disk / "films")
        old = cache.film("old", filling(600_000))
        assert cache.film("new", filling(600_000)).exists() and not old.exists()
        with pytest.raises(DiskFullError, match="no room for a film"):
            cache.film("larger", filling(2_000_000))
        assert cache.film("small", filling(1000)).stat().st_size == 1000
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_cannot_be_made_is_told(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match="cannot be written"):
        ClipCache(tmp_path / "file").film("a", filling(1))

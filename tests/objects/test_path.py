"""Addresses of objects are used as paths."""

import pickle
import threading
from pathlib import Path

import pytest

from sureshot.files import replace_file, write_text
from sureshot.s3 import ObjectPath, is_plain_key, object_path
from tests.buckets import BUCKET, Bucket


def test_an_address_keeps_its_form_and_its_relatives() -> None:
    path = ObjectPath("s3://films/1999/a b.mp4")
    assert str(path) == path.__fspath__() == "s3://films/1999/a b.mp4"
    assert (path.bucket, path.key, path.suffix) == ("films", "1999/a b.mp4", ".mp4")
    assert str(path.parent) == "s3://films/1999"
    assert str(path.with_name("c")) == "s3://films/1999/c"
    assert path.is_relative_to(ObjectPath("s3://films/1999"))
    assert not path.is_relative_to(ObjectPath("s3://films/19"))
    assert not path.is_relative_to(Path("/films"))
    assert str(ObjectPath("s3://films") / "x") == "s3://films/x"
    assert path == pickle.loads(pickle.dumps(path))
    assert hash(path) == hash(ObjectPath("s3://films/1999/a b.mp4"))
    assert path.is_absolute()
    assert path.absolute() is path.resolve() is path.expanduser() is path
    assert path.samefile("s3://films/1999/a b.mp4")


def test_a_path_made_of_an_address_is_understood() -> None:
    assert str(object_path(Path("s3://films/a.mp4"))) == "s3://films/a.mp4"
    assert object_path("s3:/films/a.mp4") is None
    assert object_path(Path("/s3:/films")) is None


def test_an_address_does_not_leave_its_folder() -> None:
    with pytest.raises(ValueError, match=r"no '\.\.'"):
        object_path("s3://films/a/../../other/b.mp4")
    assert [is_plain_key(key) for key in ("a/b", "a//b", "/a", "a/../b", "./a", "a/")] == [
        True,
        *[False] * 5,
    ]


def test_objects_and_what_lies_above_them_are_there(bucket: Bucket) -> None:
    bucket.put("a/b.mp4", b"123")
    folder, file = ObjectPath(f"s3://{BUCKET}/a"), ObjectPath(f"s3://{BUCKET}/a/b.mp4")
    assert (folder.is_dir(), folder.is_file(), folder.exists()) == (True, False, True)
    assert (file.is_dir(), file.is_file(), file.exists()) == (False, True, True)
    assert file.stat().st_size == 3
    assert file.lstat().st_mtime_ns == file.stat().st_mtime_ns
    assert not ObjectPath(f"s3://{BUCKET}/a/b").exists()
    assert not file.is_symlink()
    assert ObjectPath(f"s3://{BUCKET}").is_dir()
    assert [one.key for one in folder.below()] == ["a/b.mp4"]
    assert folder.of_key("x/y") == ObjectPath(f"s3://{BUCKET}/x/y")
    with pytest.raises(OSError, match="no such bucket"):
        ObjectPath("s3://nowhere/a").exists()
    with pytest.raises(OSError, match="no folders"):
        folder.iterdir()


def test_an_object_is_written_whole_and_deleted(bucket: Bucket) -> None:
    path = ObjectPath(f"s3://{BUCKET}/index/trust.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "{}\n")
    assert path.read_bytes() == b"{}\n"
    assert len(path.etag()) == 32
    with pytest.raises(RuntimeError), replace_file(path) as fresh:
        fresh.write_text("half")
        raise RuntimeError
    assert path.read_bytes() == b"{}\n"
    with pytest.raises(OSError, match="written whole"):
        path.open("wb")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        path.unlink()
    path.unlink(missing_ok=True)


def test_lines_of_several_writers_are_all_kept(bucket: Bucket) -> None:
    path = ObjectPath(f"s3://{BUCKET}/judged.jsonl")

    def write(writer: int) -> None:
        for number in range(5):
            path.append(f"{writer} {number}\n".encode())

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_bytes().decode().splitlines()
    assert sorted(lines) == sorted(f"{w} {n}" for w in range(3) for n in range(5))
    for writer in range(3):
        mine = [line for line in lines if line.startswith(f"{writer} ")]
        assert mine == [f"{writer} {n}" for n in range(5)]

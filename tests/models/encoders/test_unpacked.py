"""Weights out of the archive of a package."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from sureshot.errors import ModelError
from sureshot.models.encoders.bundled import unpacked

FILES = {"model.bin": b"weights" * 1000, "words.json": b"{}"}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as packages bring it, with a file more; the cache lies beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "model.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in (FILES | {"other.txt": b"not asked for"}).items():
            opened.writestr(name, data)
    return tmp_path / "model.zip"


def test_the_files_that_are_wanted_come_out_once(archive: Path) -> None:
    folder = unpacked(archive, DIGESTS, "some-model")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    stamps = [path.stat().st_mtime_ns for path in sorted(folder.iterdir())]
    assert unpacked(archive, DIGESTS, "some-model") == folder
    assert [path.stat().st_mtime_ns for path in sorted(folder.iterdir())] == stamps


def test_a_copy_that_was_damaged_is_unpacked_again(archive: Path) -> None:
    folder = unpacked(archive, DIGESTS, "some-model")
    (folder / "model.bin").write_bytes(b"half")
    assert (unpacked(archive, DIGESTS, "some-model") / "model.bin").read_bytes() == FILES[
        "model.bin"
    ]


def test_without_a_cache_the_files_are_there_too(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    folder = unpacked(archive, DIGESTS, "some-model")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def test_other_weights_than_the_tested_ones_are_refused(archive: Path) -> None:
    with pytest.raises(ModelError, match=r"not the one Sureshot was tested with.*some-model"):
        unpacked(archive, DIGESTS | {"model.bin": "0" * 64}, "some-model")


def test_a_damaged_archive_says_what_to_install_again(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:50])
    with pytest.raises(ModelError, match="--force-reinstall --no-deps some-model"):
        unpacked(archive, DIGESTS, "some-model")
    with pytest.raises(ModelError, match="--force-reinstall"):
        unpacked(archive.with_name("none.zip"), DIGESTS, "some-model")

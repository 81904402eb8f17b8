"""A disk that loses its power: what was not synced may be gone, empty, cut short or undone.

Files count as on the disk up to the size they had when they were synced, names when their folder
was. What was not is dropped or kept by lot, each file and name by itself.
"""

import contextlib
import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

_BLOCK = 512  # bytes


class Disk:
    """Notes what is synced of a folder, in this process and in those it starts.

    Args:
        place: the folder.
        notes: folder for the notes, on the same file system and outside of the first.
    """

    def __init__(self, place: Path, notes: Path) -> None:
        self.place, self.notes = place, notes

    def begin(self) -> None:
        """Take all that is there as being on the disk."""
        shutil.rmtree(self.notes, ignore_errors=True)
        self.notes.mkdir(parents=True)
        for folder, _, files in os.walk(self.place):
            for path in (folder, *(f"{folder}/{name}" for name in files)):
                opened = os.open(path, os.O_RDONLY)
                self._note(opened, self._seen(opened))
                os.close(opened)

    def watch(self) -> None:
        """Note from now on what this process syncs."""
        sync: Callable[[int], None] = os.fsync

        def fsync(opened: int) -> None:
            seen = self._seen(opened)
            sync(opened)
            self._note(opened, seen)

        os.fsync = fsync  # type: ignore[assignment]

    def after_loss(self, to: Path, draw: random.Random) -> Path:
        """What the disk would hold had the power gone now."""
        sizes: dict[int, int] = {}
        names: dict[int, dict[str, int]] = {}
        for line in (self.notes / "log").read_text().splitlines():
            one = json.loads(line)
            if one["names"] is None:
                sizes[one["inode"]] = one["size"]
            else:
                names[one["inode"]] = one["names"]
        shutil.rmtree(to, ignore_errors=True)
        self._folder(self.place, to, names, sizes, draw)
        return to

    def _folder(
        self,
        here: Path,
        to: Path,
        names: dict[int, dict[str, int]],
        sizes: dict[int, int],
        draw: random.Random,
    ) -> None:
        to.mkdir()
        now = {entry.name: entry.inode() for entry in os.scandir(here)}
        safe = names.get(here.stat().st_ino, {})
        there = {name: inode for name, inode in now.items() if safe.get(name) == inode}
        for name in sorted(now.keys() - there.keys()):
            old = [n for n, inode in safe.items() if inode == now[name] and n not in there]
            if draw.random() < 0.5:
                there[name] = now[name]  # it was on the disk all the same
            elif old:
                there[old[0]] = now[name]  # the renaming is undone
        for name in sorted(safe.keys() - there.keys()):
            if safe[name] not in there.values() and draw.random() < 0.5:
                there[name] = safe[name]  # the deletion is undone
        by_inode = {inode: name for name, inode in now.items()}
        for name, inode in sorted(there.items()):
            path = here / by_inode[inode] if inode in by_inode else self.notes / str(inode)
            if path.is_dir():
                self._folder(path, to / name, names, sizes, draw)
            elif path.exists():
                (to / name).write_bytes(_kept(path.read_bytes(), sizes.get(inode, 0), draw))

    def _seen(self, opened: int) -> dict[str, object]:
        found = os.fstat(opened)
        names = None
        if stat.S_ISDIR(found.st_mode):
            names = {entry.name: entry.inode() for entry in os.scandir(opened)}
        return {"inode": found.st_ino, "size": found.st_size, "names": names}

    def _note(self, opened: int, seen: dict[str, object]) -> None:
        if seen["names"] is None:
            # Another name, so that neither its content nor its number is gone with the first.
            link = self.notes / str(seen["inode"])
            # Gone, or linked by another thread.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(os.readlink(f"/proc/self/fd/{opened}"), link)  # noqa: PTH115
        log = os.open(self.notes / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, (json.dumps(seen) + "\n").encode())
        os.close(log)


def _kept(data: bytes, safe: int, draw: random.Random) -> bytes:
    """What remains of a file of which so many bytes were synced."""
    if safe >= len(data):
        return data
    until = draw.randrange(safe, len(data) + 1) // _BLOCK * _BLOCK
    match draw.choice(("whole", "empty", "cut", "zeros")):
        case "whole":
            return data
        case "empty":
            return data[:safe]
        case "cut":
            return data[: max(safe, until)]
    return data[: max(safe, until)] + bytes(len(data) - max(safe, until))

"""Keeps an index current with some folders, until it is stopped.

* What the system reports of a folder is looked at, and all of it now and then, as nothing is
  reported of a share on the network, nor of a disk that appears in a folder.
* A file that is still being written waits until it has stood still.
* Of object storage nothing is reported, and objects are written whole: it is indexed now and then.
* What is not there now is not gone: a video is forgotten only if its file was seen to go while its
  folder stayed where it is, on the same disk. A folder or a disk that went takes nothing along.
"""

import contextlib
import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import watchfiles

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.library.catalog import away_sentence, count_away, forget_films
from sureshot.library.index_result import Indexed
from sureshot.library.indexing import index, is_on_disk
from sureshot.media.discover import (
    IMAGE_SUFFIXES,
    VIDEO_SUFFIXES,
    Excluded,
    Source,
    discover,
    frame_files,
    is_away,
    is_folder,
    worth_a_look,
)
from sureshot.media.subtitles import FOLDERS, SUFFIXES
from sureshot.paths import IndexPlace, absolute, as_list, exists_at, index_place
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from sureshot.text import counted, listed, plain

_TICK = 1.0  # seconds between looks at what waits
_GROUPED = 500  # milliseconds for which changes are gathered
_PAUSE = 60.0  # seconds after an error, such as a full disk
_FEW = 200  # files that are indexed by their names; of more, all folders are gone through
_NAMED = 3  # files that a sentence names
_LOST = "\ufffd"  # in the place of what is not UTF-8 in a name that is reported


def watch(
    paths: str | Path | Sequence[str | Path],
    *,
    db: IndexPlace = None,
    settle: float = 10.0,
    every: float = 600.0,
    prune: bool = True,
    started: Callable[[Indexed], None] = lambda result: None,
    say: Callable[[str], None] = print,
    stop: threading.Event | None = None,
    progress: Callable[[Indexed], None] = lambda result: None,
    **options: Any,
) -> None:
    """Index folders, and then what changes in them, until Ctrl-C or ``stop``.

    Args:
        paths: folders, which need not be there yet; one or several.
        settle: seconds for which a new file must not change before it is indexed.
        every: seconds after which everything is looked at, whatever was reported; of object storage
            nothing ever is.
        prune: whether videos are forgotten whose files are deleted meanwhile. What is in a folder,
            or on a disk, that is itself not there is never forgotten.
        started: called with what the first look at everything gave.
        say: called with each sentence on what happened since.
        stop: ends it when set.
        progress: called during the first look.
        options: those of `sureshot.index` that say how videos are indexed.

    Raises:
        ArgumentError: no path is named, one is a file, or a number is out of its range.
        SureshotError: the first look failed, see `sureshot.index`.
    """
    for name, value in (("settle", settle), ("every", every)):
        if not 0 < value < 1e7:
            raise ArgumentError(f"{option(name)} is {value:g}; give seconds above 0.")
    tops = [absolute(path) for path in as_list(paths)]
    if not tops:
        raise ArgumentError("There is nothing to watch; name folders.")
    for top in tops:
        if not isinstance(top, ObjectPath) and top.is_file():
            raise ArgumentError(f"{plain(top)} is a file; name the folder that it is in.")
    with contextlib.suppress(KeyboardInterrupt):
        Watcher(
            tops,
            db,
            settle=settle,
            every=every,
            prune=prune,
            started=started,
            say=say,
            stop=stop or threading.Event(),
            progress=progress,
            options=options,
        ).run()


@dataclass(eq=False, repr=False)
class Watcher:
    """What waits to be indexed or forgotten; the arguments are those of `watch`."""

    tops: Sequence[Path]
    db: IndexPlace
    _: KW_ONLY
    settle: float
    every: float
    prune: bool
    started: Callable[[Indexed], None]
    say: Callable[[str], None]
    stop: threading.Event
    progress: Callable[[Indexed], None]
    options: dict[str, Any]

    def __post_init__(self) -> None:
        self._place = index_place(self.db)
        self._folders = [top for top in self.tops if not isinstance(top, ObjectPath)]
        self._buckets = [top for top in self.tops if isinstance(top, ObjectPath)]
        # What tells each folder from another in its place; None where there is none.
        self._stamps: list[tuple[int, int] | None] = self._read_stamps()
        # Size and time of files that are to be indexed, and since when they are so.
        self._pending: dict[Path, tuple[tuple[int, int], float]] = {}
        self._gone: dict[Path, float] = {}  # and when that was seen
        self._words: set[Path] = set()  # videos next to which subtitles changed
        self._failed: set[tuple[Path, str]] = set()  # in buckets, as was said
        self._refused = ""  # why no bucket can be indexed, as was said
        self._asked = -math.inf  # when they were asked for that
        self._devices: dict[Path, int] = {}  # of folders that hold videos
        self._excluded = Excluded(())
        self._resting = 0.0

    def run(self) -> None:
        """Go on until stopped, or interrupted."""
        for top, stamp in zip(self._folders, self._stamps, strict=True):
            if stamp is None:
                self.say(_away(top))
        looked: float | None = None
        while not self.stop.is_set():
            for touched in self._changes():
                if looked is None:  # from here on nothing that changes goes unseen
                    there = [*self._there(), *self._open_buckets()]
                    if not there:
                        continue
                    result = index(there, db=self.db, progress=self.progress, **self.options)
                    self.started(result)
                    self._failed |= self._in_buckets(result)
                    if result.interrupted:
                        return
                    self._note_devices()
                    looked = time.monotonic()
                due = time.monotonic() - looked >= self.every
                looked = time.monotonic() if due else looked
                self._step(touched, everything=due)
            if self._notice_folders() and looked is not None:
                looked = -math.inf

    def _step(self, touched: set[Path], *, everything: bool) -> None:
        """Take in what changed, and do what is due."""
        try:
            if touched or everything:
                store = self._store()
                self._excluded = Excluded(store.excluded() if store else ())
                met = self._met(touched)  # also notes what went, which is nowhere to be found
                self._consider(self._sources(self._there() if everything else met))
            if everything:
                self._take_in_buckets()
            if time.monotonic() >= self._resting:
                self._act()
        except SureshotError as error:
            self.say(str(error))
            self._resting = time.monotonic() + _PAUSE

    def _there(self) -> list[Path]:
        return [top for top in self._folders if exists_at(top)]

    def _read_stamps(self) -> list[tuple[int, int] | None]:
        found: list[tuple[int, int] | None] = []
        for top in self._folders:
            try:
                status = top.stat()
                found.append((status.st_dev, status.st_ino))
            except OSError:
                found.append(None)
        return found

    def _notice_folders(self) -> bool:
        """Say which of the folders came or went; whether one came."""
        before, self._stamps = self._stamps, self._read_stamps()
        came = False
        for top, was, now in zip(self._folders, before, self._stamps, strict=True):
            if was != now:
                came |= now is not None
                self.say(_away(top) if now is None else f"{plain(top)} is there now.")
        return came

    def _changes(self) -> Iterator[set[Path]]:
        """Paths that changed, every second; ends when one of the folders comes or goes."""
        watched = self._there()
        try:
            reported = watchfiles.watch(
                *watched,
                watch_filter=None,
                debounce=_GROUPED,
                rust_timeout=int(1000 * _TICK),
                yield_on_timeout=True,
                stop_event=self.stop,
                ignore_permission_denied=True,
            )
            for changes in reported if watched else ():
                yield {Path(path) for _, path in changes}
                if self._read_stamps() != self._stamps:
                    return
        # Of too many folders, of one that went just now, or of a name that is not UTF-8.
        except (OSError, RuntimeError) as error:
            if self._read_stamps() != self._stamps:
                return
            self.say(
                f"The system does not report changes here ({plain(str(error))}); everything is "
                f"looked at every {self.every:g} s instead."
            )
        while not self.stop.wait(_TICK) and self._read_stamps() == self._stamps:
            yield set()

    def _store(self) -> Store | None:
        return Store.open(self._place) if Store.exists(self._place) else None

    def _leaves_out(self, path: Path) -> bool:
        """Whether a path is not to be looked at: hidden, excluded, or of the index itself."""
        tops = [top for top in self.tops if path.is_relative_to(top)]
        top = max(tops, key=lambda top: len(top.parts), default=None)  # one may be in another
        if top is None or any(part.startswith(".") for part in path.relative_to(top).parts):
            return True
        return path.is_relative_to(self._place) or self._excluded.matches(path, self.tops)

    def _met(self, touched: set[Path]) -> list[Path]:
        """The videos, and folders that may hold some, at paths that were touched."""
        met, subtitles = set[Path](), list[Path]()
        for path in touched:
            while _LOST in path.name:
                path = path.parent
            if path in self.tops or self._leaves_out(path):
                continue
            suffix = path.suffix.lower()
            if not os.path.lexists(path):
                self._pending.pop(path, None)
                self._gone[path] = time.monotonic()
            if suffix in SUFFIXES:
                subtitles.append(path)
            elif suffix in IMAGE_SUFFIXES:
                with contextlib.suppress(OSError):
                    met |= {path.parent} if frame_files(path.parent) else set()
            elif is_folder(path) or (suffix in VIDEO_SUFFIXES and worth_a_look(path)):
                met.add(path)
        self._words |= {v for v in _videos_of(subtitles) if not self._leaves_out(v)}
        return sorted(path for path in met if met.isdisjoint(path.parents))

    def _sources(self, paths: Sequence[Path]) -> list[Source]:
        found = discover(paths, self._leaves_out)
        return [source for source in found if isinstance(source, Source)]

    def _consider(self, sources: Sequence[Source]) -> None:
        """Have those wait that the index does not know as they are."""
        store = self._store() if sources else None
        known = store.at([source.path for source in sources]) if store else {}
        for source in sources:
            path, stamp = source.path, (source.size, source.mtime_ns)
            record = known.get(path)
            if record and stamp == (record.size, record.mtime_ns):
                self._pending.pop(path, None)
            elif self._pending.get(path, (None, 0.0))[0] != stamp:
                # What is as it was for long need not prove it. A clock may be ahead, too.
                fresh = time.time() - source.mtime_ns / 1e9 < self.settle
                since = time.monotonic() if fresh or path in self._pending else -math.inf
                self._pending[path] = stamp, since

    def _due(self) -> list[Path]:
        now = time.monotonic()
        return [path for path, (_, since) in self._pending.items() if now - since >= self.settle]

    def _act(self) -> None:
        """Index and forget what is due."""
        self._consider(self._sources(self._due()))  # not all that goes on changing is reported
        due = self._due()
        words = self._words - self._pending.keys()
        if due or words:
            self._index([*due, *sorted(words)])
            for path in due:
                self._pending.pop(path, None)
            self._words -= words
            self._consider(self._sources([path for path in due if exists_at(path)]))
        elif self._gone:
            # A file that moved gives its windows away first. Something may go on changing for ever.
            self._forget(2 * self.settle if self._pending else 0.0)

    def _index(self, paths: Sequence[Path]) -> None:
        chosen = [path for path in paths if exists_at(path)]
        if not chosen:
            return
        chosen = chosen if len(chosen) <= _FEW else self._there()
        result = index(chosen, db=self.db, thorough=False, **self.options)
        self._tell(result, _named(chosen))
        if result.interrupted:
            raise KeyboardInterrupt
        self._note_devices()

    def _open_buckets(self) -> Sequence[Path]:
        """All buckets if one of them can be indexed; says why if none can, and asks seldom then."""
        if not self._buckets or (
            self._refused and time.monotonic() - self._asked < min(self.every, _PAUSE)
        ):
            return []
        self._asked = time.monotonic()
        refused = ""
        for bucket in self._buckets:
            try:
                if exists_at(bucket):
                    self._refused = ""
                    return self._buckets
                refused = f"There is nothing at {plain(bucket)}."
            except SureshotError as error:
                refused = str(error)
        if refused != self._refused:
            self.say(f"{refused} Watching goes on.")
        self._refused = refused
        return []

    def _take_in_buckets(self) -> None:
        """Bring the index up to date with all buckets."""
        was_refused = self._refused
        if not self._open_buckets():
            return
        options = {"prune": self.prune, "thorough": False, **self.options}
        result = index(self._buckets, db=self.db, **options)
        names, failed = ", ".join(map(plain, self._buckets)), self._in_buckets(result)
        news = result.indexed + result.moved + result.copied or result.lines
        if news or was_refused or not failed <= self._failed:
            self._tell(result, names)
        if result.pruned:
            went = counted(result.pruned, "video")
            self.say(f"{names}: {went} deleted in storage, removed from the index.")
        self._failed |= failed
        if result.interrupted:
            raise KeyboardInterrupt

    def _in_buckets(self, result: Indexed) -> set[tuple[Path, str]]:
        return {(path, why) for path, why in result.failed if isinstance(path, ObjectPath)}

    def _tell(self, result: Indexed, what: str) -> None:
        """Say what a run did, and to what."""
        new = sum(result.lines.values())
        words = f" {counted(new, 'new line')} of words." if new else ""
        self.say(f"{what}: {result.summary.partition(': ')[2]}{words}")
        for path, reason in result.failed:
            self.say(f"failed: {plain(path)}: {plain(reason)}")
        for path, note in result.notes:
            self.say(f"damaged, indexed as far as possible: {plain(path)}: {plain(note)}")
        for path, note in result.left_out:
            self.say(f"words: {plain(path)}: {plain(note)}")
        for warning in result.warnings:
            self.say(f"note: {plain(warning)}")

    def _note_devices(self) -> None:
        """Remember on which disks the folders of the videos are."""
        store = self._store()
        for folder in store.folders() if store else ():
            if folder not in self._devices and not isinstance(folder, ObjectPath):
                with contextlib.suppress(OSError):
                    self._devices[folder] = folder.stat().st_dev

    def _forget(self, least: float) -> None:
        """Forget the videos at or below paths that went so many seconds ago, if for good."""
        now = time.monotonic()
        gone = {path for path, since in self._gone.items() if now - since >= least}
        if not gone:
            return
        store = self._store()
        went = [
            record
            for record in (store.each_video(gone) if store else ())
            if not gone.isdisjoint((record.path, *record.path.parents)) and not is_on_disk(record)
        ]
        deleted, away = list[VideoRecord](), list[VideoRecord]()
        for record in went:
            (away if self._is_away(record) else deleted).append(record)
        if store and deleted and self.prune:
            store.remove(deleted)
            forget_films(deleted)
        if deleted:
            done = "removed from the index" if self.prune else "still indexed"
            self.say(f"{_named([one.path for one in deleted])}: deleted on disk, {done}.")
        if away:
            number, folders = count_away(away)
            where = away_sentence(number, folders) if number else _named([r.path for r in away])
            self.say(f"Not there now, still indexed: {where}")
        for path in gone:  # not before: to write may have failed
            self._gone.pop(path, None)

    def _is_away(self, record: VideoRecord) -> bool:
        """Whether a file that went may come back with its folder or its disk."""
        folder = record.path.parent
        try:
            device = folder.stat().st_dev
        except OSError:
            return True
        return is_away(record.path) or device != self._devices.get(folder, device)


def _away(top: Path) -> str:
    return (
        f"{plain(top)} is not there now. Nothing of it is forgotten, and watching goes on when it "
        "is back."
    )


def _named(paths: Sequence[Path]) -> str:
    return listed([plain(path.name) for path in paths], _NAMED)


def _videos_of(subtitles: Iterable[Path]) -> set[Path]:
    """The videos that files of subtitles may be of: next to them, or to a folder ``Subs``."""
    begun: dict[Path, set[str]] = defaultdict(set)  # by folder, how names of its videos may begin
    for path in subtitles:
        folder = path.parent
        inside = [one for one in (folder, folder.parent) if one.name.lower() in FOLDERS]
        if inside:
            begun[inside[0].parent].add("")  # any
        else:
            begun[folder] |= {path.name[:end] for end in range(1, len(path.name))}
    found = set[Path]()
    for folder, stems in begun.items():
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                mine = "" in stems or path.stem in stems
                found |= {path} if mine and path.suffix.lower() in VIDEO_SUFFIXES else set()
    return found

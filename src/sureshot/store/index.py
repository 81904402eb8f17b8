"""The index: videos and their windows, written whole and searched by vector.

A video's windows are written first, its row in ``videos``, by which it counts as indexed, after
them: an interruption between the two only repeats one video. The windows are on the disk before the
row is written, and the row before the next one at the latest.
"""

import contextlib
import difflib
import json
import shlex
import time
import unicodedata
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from sureshot.errors import StoreError, option
from sureshot.media.discover import is_unplugged
from sureshot.paths import Shard, absolute, locate, video_id
from sureshot.s3 import object_path
from sureshot.store import integrity, maintenance, repair, writing
from sureshot.store.lines import Lines, WordsRead
from sureshot.store.locks import staging_lock, write_lock
from sureshot.store.remote import is_remote
from sureshot.store.rows import (
    EncodedWindow,
    Header,
    IndexSettings,
    StoredWindows,
    VideoRecord,
    from_text,
    texts_of,
    to_text,
    video_rows,
    window_rows,
)
from sureshot.store.tables import Tables, as_store_error, state_of
from sureshot.store.vector_search import (
    Finder,
    Folders,
    SelectedRows,
    Selection,
    VideoSet,
    is_selected,
    path_is,
    said,
)
from sureshot.store.writing import StagedVideo
from sureshot.text import composed, counted, listed, plain, printable

_COMPACT_EVERY = 64  # commits; each one adds a small file and a line to the next manifests
_REMOVED_AT_ONCE = 500  # videos
_MAX_READ = 100_000  # windows, about 1 GB
_NAMED = 5  # shards or folders that a sentence names
# Names among the settings of the table of videos, or how they begin.
_SHARD = "sureshot.shard."  # goes on with the paths, N and K of each
_WORDS = "sureshot.words"
_EXCLUDED = "sureshot.excluded."  # goes on with a pattern


def _nothing_named(path: Path, name: str, folders: Iterable[Path]) -> str:
    """Where nothing is indexed, with the folder whose name is nearest to the one that was given."""

    def folded(text: str) -> str:
        letters = unicodedata.normalize("NFKD", text.casefold())
        return "".join(letter for letter in letters if not unicodedata.combining(letter))

    known = {folded(folder.name): folder.name for folder in folders}
    near = difflib.get_close_matches(folded(Path(name).name), known, n=1)
    meant = f"; the nearest name is {plain(known[near[0]])}" if near else ""
    return f"at or below {plain(path)}, and no folder is named {name}{meant}"


def _as_named(folder: Path) -> list[str]:
    """The names on the way to a folder as they are printed, in lower case, accents in one form."""
    return [composed(printable(name)).casefold() for name in folder.parts]


def refuse_unplugged(location: str) -> None:
    """Refuse an index on a disk that is not there, below whose place another would be made."""
    folder = Path(location)
    if not is_remote(location) and not folder.exists() and is_unplugged(folder):
        raise StoreError(
            f"The index at {location} is on a disk that is not there. Connect the disk, or choose "
            f"another place with {option('db')}; if it is no disk, mkdir -p {shlex.quote(location)}"
        )


class Store:
    """An index. Open with `Store.open` or `Store.create`, any number of processes at once.

    Every method raises `StoreError` where the index cannot be read or written.
    """

    def __init__(self, tables: Tables, header: Header, stamp: tuple[int, ...] = ()) -> None:
        self.location = tables.location
        self.settings = header.settings
        self.fingerprint = header.fingerprint
        self.dim = header.dim
        self._header = header
        self._tables, self._stamp = tables, stamp
        self.finder = Finder(tables, header.dim)
        self.lines = Lines(tables, header)
        self._commits = 0
        self._damaged_rows = 0

    @classmethod
    def create(
        cls, location: str | Path, settings: IndexSettings, fingerprint: str, dim: int
    ) -> "Store":
        """Open the index at a place, or make an empty one.

        One of another model or with other settings is refused.
        """
        tables = Tables(locate(location))
        if not tables.exists():
            refuse_unplugged(tables.location)
            header = Header(settings=settings, fingerprint=fingerprint, dim=dim)
            with as_store_error(tables.location, "create"), write_lock(tables.location, make=True):
                tables.create(header)
        store = cls._open(tables)
        store.check_model(settings.model, fingerprint)
        store._header.check_settings(store.location, settings)
        return store

    @classmethod
    def open(cls, location: str | Path, *, complete: bool = False, cached: bool = False) -> "Store":
        """Open an existing index.

        Args:
            complete: whether to make one whole that is half made, which takes the right to write.
            cached: whether one in S3 storage is read from a local copy, brought when needed.
        """
        tables = Tables(locate(location), cached=cached)
        if not tables.exists():
            refuse_unplugged(tables.location)
            raise StoreError(
                f"There is no index at {tables.location}. Make one with `sureshot index FOLDER`, "
                f"or name another place with {option('db')}."
            )
        if tables.half_made() and not complete:
            raise StoreError(
                f"The index at {tables.location} is half made, as a command that was ended leaves "
                f"it. `sureshot index FOLDER` makes it whole, `sureshot reset` removes it."
            )
        return cls._open(tables)

    @classmethod
    def _open(cls, tables: Tables) -> "Store":
        stamp = tables.stamp()
        half_made, header = tables.half_made(), tables.header()
        if half_made:
            with as_store_error(tables.location, "repair"), write_lock(tables.location):
                tables.create(header)
                repair.repair_index(tables, header, all_lost=True)
        return cls(tables, header, stamp)

    @staticmethod
    def exists(location: str | Path) -> bool:
        """Whether there is an index at this place: sound, damaged, or left half made."""
        return Tables(locate(location)).exists()

    @staticmethod
    def delete(location: str | Path) -> None:
        """Delete an index and nothing else in its folder."""
        repair.delete_index(locate(location))

    @property
    def is_remote(self) -> bool:
        """Whether it is in object storage, so that looking there takes time."""
        return not self._stamp

    def is_replaced(self) -> bool:
        """Whether another index, or none, is in its place by now."""
        if self.is_remote:  # an outage says nothing of the index, and is raised
            return self._tables.header().index_id != self._header.index_id
        now = self._tables.stamp()
        if now == self._stamp:
            return False
        try:
            other = self._tables.header().index_id != self._header.index_id
        except StoreError:
            other = True
        self._stamp = self._stamp if other else now
        return other

    def check_model(self, model: str, fingerprint: str) -> None:
        """Refuse an encoder other than the one that wrote the index: vectors would not compare."""
        self._header.check_model(self.location, model, fingerprint)

    def videos(self) -> list[VideoRecord]:
        """Every video the index knows, failed ones included, in the order of their paths.

        Damaged rows are left out, see `trouble`.
        """
        with as_store_error(self.location, "read"):
            found, damaged = integrity.records(self._tables)
        self._damaged_rows = len(damaged)
        return sorted(found, key=lambda record: record.path)

    def state(self) -> tuple[Any, ...]:
        """What changes in this process with each change of the table of videos."""
        return self._tables.read("videos", state_of)

    def paths(self) -> Any:
        """The texts of the paths of all videos that can be found, an arrow array in no order."""
        with as_store_error(self.location, "read"):
            paths = self._tables.rows("videos", ["path"], "windows > 0")["path"]
        if self._tables.damaged("videos")[0]:
            found = [to_text(one.path) for one in self.videos() if one.windows]
            paths = pa.array(found, pa.string())
        return paths

    def each_video(self, below: Iterable[Path] | None = None) -> Iterator[VideoRecord]:
        """Every video in no order, a part at a time; damaged rows are left out.

        Or those at or below some paths, and all that failed.
        """
        folders = None if below is None else {to_text(path).rstrip("/") or "/" for path in below}
        with as_store_error(self.location, "read"):
            yield from integrity.each(self._tables, folders)

    def folders(self) -> set[Path]:
        """The folders that hold videos, also failed ones."""
        with as_store_error(self.location, "read"):
            paths = self._tables.rows("videos", ["path"])["path"]
        texts = {text.rpartition("/")[0] or "/" for text in texts_of(paths)}
        return set(map(from_text, texts))

    def at(self, paths: Iterable[Path]) -> dict[Path, VideoRecord]:
        """What the index knows of the videos at some paths."""
        with as_store_error(self.location, "read"):
            ids = [video_id(path) for path in paths]
            return {one.path: one for one in integrity.records_with(self._tables, "id", ids)}

    def of_sizes(self, sizes: Iterable[int]) -> list[VideoRecord]:
        """The indexed videos that have one of some sizes in bytes."""
        with as_store_error(self.location, "read"):
            found = integrity.records_with(self._tables, "size", [*set(sizes)])
        return [known for known in found if known.windows]

    def lost(self, *, thorough: bool = False) -> list[VideoRecord]:
        """Videos whose windows are not all there as they were written; unreadable files go.

        Thoroughly, all windows are read, of at most 100,000.
        """

        def act(_: bool) -> list[VideoRecord]:
            with write_lock(self.location):
                parts = integrity.compared(self._tables)
                lost = {record.id: record for part in parts for record in part.lost()}
            if thorough and self._tables.count("windows") <= _MAX_READ:
                ids = integrity.damaged_windows(self._tables)[1] - lost.keys()
                found = integrity.records_with(self._tables, "id", sorted(ids))
                lost |= {record.id: record for record in found if record.windows}
            return sorted(lost.values(), key=lambda record: record.path)

        with as_store_error(self.location, "read"):
            return repair.retry_without_bad_files(self._tables, act)

    def repair(self) -> list[str]:
        """Make the index one that can be written to; sentences on what was done."""

        def act(lost: bool) -> list[str]:
            with write_lock(self.location):
                done = repair.repair_index(self._tables, self._header, all_lost=lost)
                self._header = self._tables.header()
            return done

        with as_store_error(self.location, "repair"):
            return repair.retry_without_bad_files(self._tables, act)

    def trouble(self) -> list[str]:
        """What reading met so far that is damaged, as sentences with the fix in them."""
        more = [*self.finder.trouble(), *self.lines.trouble()]  # which look at more tables
        sentences = self._tables.trouble()
        if self._damaged_rows:
            sentences.append(
                f"The table of videos at {self.location} has "
                f"{counted(self._damaged_rows, 'damaged row')}. `sureshot index FOLDER` fixes that."
            )
        return [*sentences, *more]

    def excluded(self) -> tuple[str, ...]:
        """Patterns of what is left out, in their order as texts."""
        settings = self._settings()
        kept = (name.removeprefix(_EXCLUDED) for name in settings if name.startswith(_EXCLUDED))
        return tuple(sorted(str(from_text(text)) for text in kept))

    def set_excluded(self, patterns: Sequence[str], *, excluded: bool) -> None:
        """Remember patterns of `sureshot.media.discover.Excluded`, or forget them."""
        named = (to_text(object_path(pattern) or Path(pattern)) for pattern in patterns)
        self._remember({_EXCLUDED + name: "" if excluded else None for name in named})

    def words(self) -> str:
        """What is remembered of which words are read; empty at first."""
        return self._settings().get(_WORDS, "")

    def set_words(self, wanted: str) -> None:
        """Remember which words are read."""
        self._remember({_WORDS: wanted})

    def note_shard(self, shard: Shard, paths: Sequence[Path], *, finished: bool) -> None:
        """Remember that a shard of the videos at some paths was begun, or indexed to its end.

        Once all of the videos are indexed together, what is remembered of their shards is dropped.
        """
        tops = sorted(map(to_text, paths))
        known = self._settings()
        values: dict[str, str | None] = {}
        if shard.of > 1:
            name = f"{_SHARD}{zlib.crc32(repr(tops).encode()):08x}.{shard.of}.{shard.number}"
            if finished or name not in known:
                values[name] = json.dumps({"paths": tops, "finished": finished})
        elif finished:
            for name in filter(lambda name: name.startswith(_SHARD), known):
                named = map(from_text, json.loads(known[name])["paths"])
                if all(any(path.is_relative_to(top) for top in paths) for path in named):
                    values[name] = None
        self._remember(values)

    def missing_shards(self) -> list[str]:
        """Sentences on shards that were not indexed to their end where others were begun."""
        known = self._settings()
        done: dict[tuple[int, tuple[str, ...]], set[int]] = {}
        for name in filter(lambda name: name.startswith(_SHARD), known):
            *_, of, number = name.split(".")
            value = json.loads(known[name])
            shards = done.setdefault((int(of), tuple(value["paths"])), set())
            shards |= {int(number)} if value["finished"] else set()
        return [
            _on_missing(of, paths, numbers)
            for (of, paths), numbers in sorted(done.items())
            if len(numbers) < of
        ]

    def write(self, record: VideoRecord, windows: Sequence[EncodedWindow]) -> None:
        """Store a video, replacing what was known of it. Whole or not at all, also when killed."""
        with staging_lock(self.location):
            self.commit([self.stage(record, windows)])

    def stage(self, record: VideoRecord, windows: Sequence[EncodedWindow]) -> StagedVideo:
        """A video with its windows on the disk, to be committed here or elsewhere.

        No search sees it until then, and it stays only while whoever commits has `staging_lock`.
        """
        with as_store_error(self.location, "write to"):
            rows = window_rows(record, windows, self._header)
            return writing.stage(self._tables, record, rows)

    def commit(self, videos: Sequence[StagedVideo]) -> None:
        """Store videos, each once, replacing what was known of them; a failed one has no windows.

        On a full disk, and where staged files are gone, what was there before is unharmed.
        """
        if videos:
            with self._writing():
                writing.commit(self._tables, self._header, videos)
            self._committed()

    def copy(self, copies: Sequence[tuple[VideoRecord, VideoRecord]]) -> list[VideoRecord | None]:
        """Give videos the windows and words of others, without encoding anything; in one commit.

        Copies are pairs of a video that is there, and one with the same content. Of each second one
        comes what is known from now on, or None, and nothing is done, if the windows of the first
        were not all there and sound.
        """
        if not copies:
            return []
        with staging_lock(self.location), self._writing():
            staged = writing.stage_copies(self._tables, copies)
            if made := [video for video in staged if video]:
                writing.commit(self._tables, self._header, made)
                pairs = zip(copies, staged, strict=True)
                self.lines.copy([(old, video.record) for (old, _), video in pairs if video])
        self._committed()
        return [None if video is None else video.record for video in staged]

    def touch(self, records: Sequence[VideoRecord]) -> None:
        """Note that only what is known of files has changed: their windows stay as they are.

        Nothing is done for a video that another process has written or removed meanwhile.
        """
        if not records:
            return
        with self._writing():
            there = integrity.records_with(self._tables, "id", [record.id for record in records])
            known = {record.path: record.check_windows for record in there}
            same = [r for r in records if known.get(r.path) == r.check_windows]
            if same:
                self._tables.upsert("videos", video_rows(same, self._header))
        self._committed()

    def remove(self, records: Sequence[VideoRecord]) -> None:
        """Forget videos, windows and lines, but for what is written of them from now on."""
        for first in range(0, len(records), _REMOVED_AT_ONCE):
            with self._writing():
                writing.drop_videos(self._tables, records[first : first + _REMOVED_AT_ONCE])
            self._committed()

    def words_read(self) -> dict[str, dict[str, tuple[str, int]]]:
        """Which words were read, see `Lines.known`; files that cannot be read go."""
        with as_store_error(self.location, "read"):
            return repair.retry_without_bad_files(self._tables, lambda _: self.lines.known())

    def write_lines(self, read: Sequence[WordsRead]) -> None:
        """Store what was read of videos, see `Lines.write`."""
        if read:
            self.lines.write(read)
            self._committed()

    def sync(self) -> None:
        """Wait until all that was written is on the disk."""
        with as_store_error(self.location, "write to"):
            self._tables.sync()

    def count(self, selection: Selection | None = None) -> int:
        """Number of windows of all videos, or of those selected."""
        return self.finder.count(selection)

    def count_videos(self, selection: Selection | None = None) -> int:
        """Number of videos that can be found, or of those of them selected."""
        rows = SelectedRows("id")
        return self._tables.read("videos", lambda t: rows.count(t, selection, "windows > 0"))

    def select(self, folders: Folders, among: Collection[VideoRecord] | None = None) -> Selection:
        """The videos of a folder, or of any of several, which are named as in `_folder`.

        Folders are those of the videos ``among`` which to look, or of all in the index.
        """
        named = [folders] if isinstance(folders, str | Path) else list(folders)
        parts = [self._folder(one, among) for one in named]
        if len(parts) == 1:
            return parts[0]
        videos = self.videos() if among is None else among
        ids = [{v.id for v in videos if is_selected(v, part)} for part in parts]
        notes = [part.note for part in parts if isinstance(part, VideoSet) and part.note]
        pairs = zip(parts, ids, strict=True)
        notes += [f"Nothing is indexed {said(part)}." for part, found in pairs if not found]
        return VideoSet(
            ids=frozenset[str]().union(*ids),
            words=" or ".join(dict.fromkeys(map(said, parts))) or "in no folder",
            note=" ".join(dict.fromkeys(notes)),
        )

    def _folder(self, folder: str | Path, among: Collection[VideoRecord] | None) -> Selection:
        """The videos at or below a path; where there are none, those in folders of that name.

        ``Animals`` and ``Videos/Animals`` name each such folder, wherever it is, in any case. What
        is not UTF-8 in a name may be given as it is printed, and an accent in either of its forms.
        """
        path, text = absolute(folder), str(folder)
        is_path = text.startswith((".", "~")) or path == Path(folder) or not Path(folder).parts
        if is_path and text.isascii():
            return path
        if among is None and self.count_videos(path):
            return path
        videos = self.videos() if among is None else among
        if any(video.path.is_relative_to(path) for video in videos):
            return path
        folders = {parent for video in videos for parent in video.path.parents}
        names = _as_named(path if is_path else Path(folder))
        named = {f for f in folders if _as_named(f)[-len(names) :] == names}
        named = {f for f in named if named.isdisjoint(f.parents)}
        if not named and is_path:
            return path
        if not named:
            return VideoSet(frozenset(), _nothing_named(path, plain(text), folders))
        if len(named) < 2:
            return next(iter(named))
        shown = listed(sorted(map(plain, named)), _NAMED)
        return VideoSet(
            ids=frozenset(v.id for v in videos if not named.isdisjoint(v.path.parents)),
            words=f"in folders named {plain(text)}",
            note=f"{len(named)} folders are named {plain(text)}, and all were searched: {shown}.",
        )

    def windows_of(self, path: Path) -> StoredWindows:
        """All windows of one video in the order of time; none if it is not indexed."""
        return self.finder.windows(path_is(path), order="start")

    def sweep(self) -> tuple[int, str]:
        """Remove windows over ten minutes old that an interrupted write has left.

        Gives the number of videos they were of, and why none was removed where that is not safe.
        """
        with self._writing():
            swept = maintenance.sweep(self._tables)
            if self._tables.has_lines():
                self.lines.sweep(time.time() - maintenance.in_flight(self.location))
            return swept

    def clear(self) -> int:
        """Delete files that killed processes wrote and did not commit; how many.

        Nothing is deleted while another process may still commit.
        """
        with self._writing():
            return maintenance.clear(self._tables)

    def compact(self) -> None:
        """Join small files, drop superseded ones and keep a large index quick to search."""
        with staging_lock(self.location):
            maintenance.compact(self._tables)

    def bytes_on_disk(self) -> int:
        """Size of an index; 0 where that cannot be asked."""
        return self._tables.bytes_on_disk()

    def _settings(self) -> dict[str, str]:
        """What is remembered besides videos; it can be read whatever files of rows are damaged."""
        return self._tables.read("videos", lambda table: table.config(), deadly=True)

    def _remember(self, values: Mapping[str, str | None]) -> None:
        """Change what `_settings` gives; None forgets."""
        if values:
            with self._writing():
                self._tables.commit("videos", lambda t: t.update_config(values), deadly=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with as_store_error(self.location, "write to"), write_lock(self.location):
            yield

    def _committed(self) -> None:
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            self.compact()


def _on_missing(of: int, paths: Sequence[str], done: set[int]) -> str:
    count = of - len(done)
    first = list(islice((n for n in range(1, of + 1) if n not in done), min(count, _NAMED)))
    names = [*map(str, first), *([f"{count - len(first):,} more"] if count > len(first) else [])]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    what, have = ("Shard", "has") if count == 1 else ("Shards", "have")
    shown = " ".join(plain(from_text(path)) for path in paths)
    return (
        f"{what} {listed} of {of} of {shown} {have} not been indexed yet. "
        f"`sureshot index {plain(shlex.join(paths))} {option('shard', f'{first[0]}/{of}')}` "
        f"indexes {'it' if count == 1 else 'the first of them'}."
    )

"""From folders to an index: find, decode, encode, write. Can go on after every video.

A video is written when its last window is encoded, or with others within a second of that, so
whatever ends the run, what is written stays.
"""

import glob
import math
import os
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from sureshot.errors import ArgumentError, QueryError, SureshotError, option
from sureshot.library.catalog import away_sentence, count_away, forget_films
from sureshot.library.encoding import (
    Packing,
    VideoProgress,
    as_trained,
    content_digest,
    files_of,
    pack_videos,
    record_of,
)
from sureshot.library.index_result import Indexed
from sureshot.library.lines import Wanted, WordReader, Words, check_words
from sureshot.library.ray_workers import RayPool, on_ray
from sureshot.media.discover import (
    PHOTO_SUFFIXES,
    VIDEO_SUFFIXES,
    Excluded,
    Source,
    Unreadable,
    as_pattern,
    discover,
    frame_files,
    is_silent,
    is_unplugged,
)
from sureshot.models.encoders.base import Encoder
from sureshot.models.load import load_searchable
from sureshot.paths import (
    WHOLE,
    IndexPlace,
    Shard,
    absolute,
    absolute_model,
    as_list,
    exists_at,
    expand,
    index_place,
)
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.rows import Decode, IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo
from sureshot.text import counted, plain

_PHOTO = "is a photo, and only videos are indexed; to search with it: sureshot search --like {}"
_PAGE = 4096  # videos looked up in the index at once
_AT_ONCE = 500  # videos removed or renamed in one commit
_COPIED = 4000  # windows that are copied at once, some 30 MB
_Twins = Sequence[tuple[VideoRecord, Source]]  # what the index has, and a file with its content
_EVERY = 1.0  # seconds: a commit waits for the disk, as long as a short clip takes to encode
# Videos of an index by their size, then by their kind and digest.
_BySize: TypeAlias = defaultdict[int, defaultdict[tuple[str, str], list[VideoRecord]]]


@dataclass(eq=False, repr=False)
class Run:
    """One run over the videos at or below some paths; the arguments are those of `index`.

    It finds them, deals with what need not be decoded, and commits what is packed, at most once a
    second. ``packing`` encodes in place of this process.
    """

    store: Store
    encoder: Encoder
    paths: Sequence[Path]
    _: KW_ONLY
    force: bool = False
    prune: bool = False
    shard: Shard = WHOLE
    roots: Sequence[Path] | None = None
    progress: Callable[[Indexed], None] = lambda result: None
    workers: int | None = None
    packing: Callable[[Sequence[Source]], Packing] | None = None
    words: Wanted | None = None
    thorough: bool = True

    def __post_init__(self) -> None:
        self.result = Indexed(index=self.store.location)
        self.lost: set[Path] = set()  # videos whose windows are not there as they were written
        self.fixed = 0  # of those
        self._tops = [absolute(path) for path in self.paths]
        self._excluded = Excluded(self.store.excluded())
        bounds = self.roots
        self._bounds = None if bounds is None else [absolute(root).resolve() for root in bounds]
        self._outside: list[Path] = []
        self._begun: dict[Path, VideoProgress] = {}
        self._waiting: list[StagedVideo] = []
        self._began = time.monotonic()
        self._last = -math.inf  # commit, so that the first video can be found at once

    def ingest(self) -> Indexed:
        """Bring the index up to date. Ctrl-C sets ``interrupted``, and what was written stays."""
        store, result = self.store, self.result
        packing = self.packing or partial(pack_videos, store, self.encoder, workers=self.workers)
        result.warnings += store.repair()
        lost = store.lost(thorough=self.thorough)
        self.lost = {record.path for record in lost if self.shard.has(record.path)}
        store.note_shard(self.shard, self.paths, finished=False)
        try:
            self.report()
            with staging_lock(store.location), ExitStack() as held:
                sources = self.find()
                packed = held.enter_context(closing(packing(self.todo(sources))))
                try:
                    for one in packed:
                        self.take(one)
                finally:
                    self.finish()
                self.forget(sources)
                WordReader(
                    store=store,
                    wanted=self.words or Wanted.of(store, None, None),
                    result=result,
                    progress=self.report,
                    roots=self.paths if self.roots is None else self.roots,
                    force=self.force,
                ).read(sources)
                result.warnings += filter(None, [store.sweep()[1]])
                changed = result.indexed + result.pruned + result.moved + result.copied
                if changed + result.forgotten + sum(result.lines.values()):
                    store.compact()
                store.note_shard(self.shard, self.paths, finished=True)
        except KeyboardInterrupt:
            result.interrupted = True
        store.sync()
        store.clear()
        if result.indexed:
            result.engine = getattr(self.encoder, "engine", "")
        result.warnings += _on_lost(len(self.lost), self.fixed)
        result.bytes_begun, result.seconds_begun = 0, 0.0
        result.elapsed = time.monotonic() - self._began
        return result

    def find(self) -> list[Source]:
        """Every video of the share at or below the paths; what cannot be looked at is noted."""
        result, sources = self.result, list[Source]()
        for source in discover(self.paths, self._leaves_out):
            if isinstance(source, Unreadable):
                # What was named and cannot be read concerns everybody.
                if self.shard.has(source.path) or source.path in self._tops:
                    result.failed.append((source.path, source.reason))
                    result.found += (
                        source.path.suffix.lower() in VIDEO_SUFFIXES
                        and os.path.lexists(source.path)
                    )
            elif source.path in self._tops and source.path.suffix.lower() in PHOTO_SUFFIXES:
                result.failed.append((source.path, _PHOTO.format(shlex.quote(source.path.name))))
            elif self.shard.has(source.path) and self._is_inside(source):
                sources.append(source)
                result.found += 1
                result.bytes_found += source.size
                if result.found % 200 == 0:
                    self.progress(result)
        if self._outside:
            links = counted(len(self._outside), "link leads", "links lead")
            result.warnings.append(
                f"{links} out of the folders that may be indexed, such as "
                f"{plain(self._outside[0])}; nothing there was looked at."
            )
        return sources

    def _leaves_out(self, path: Path) -> bool:
        if not self._is_inside(path):
            return True
        left = self._excluded.matches(path, self._tops)
        self.result.excluded += left
        return left

    def _is_inside(self, what: Path | Source) -> bool:
        """Whether a path, or each file of a video, is below the roots, links followed."""
        if self._bounds is None:
            return True
        path = what if isinstance(what, Path) else what.path
        try:
            files = [what] if isinstance(what, Path) else files_of(what)
            inside = all(any(f.resolve().is_relative_to(r) for r in self._bounds) for f in files)
        except (OSError, RuntimeError):  # of links that lead in a circle
            inside = False
        if not inside:
            self._outside.append(path)
        return inside

    def todo(self, sources: Sequence[Source]) -> list[Source]:
        """The sources that must be decoded; everything else is dealt with here."""
        if self.force:
            return list(sources)
        left: list[Source] = []
        for first in range(0, len(sources), _PAGE):
            page = sources[first : first + _PAGE]
            known, by_size = self._known(page)
            new: set[Path] = set()
            twins: list[tuple[VideoRecord, Source]] = []
            windows = 0  # of the twins
            for source in page:
                record = known.get(source.path)
                if record and _stamped(record, source):
                    if not self._is_done(record):
                        new.add(source.path)
                elif (twin := _same_content(source, record, by_size[source.size])) is None:
                    new.add(source.path)
                else:
                    twins.append((twin, source))
                    windows += twin.windows
                if len(twins) == _AT_ONCE or windows >= _COPIED:
                    new.update(self._take_over(twins, by_size))
                    twins, windows = [], 0
            new.update(self._take_over(twins, by_size))
            left += [source for source in page if source.path in new]
        return left

    def _known(self, page: Sequence[Source]) -> tuple[dict[Path, VideoRecord], _BySize]:
        """What the index has of some sources, and the videos that may be their twins."""
        found = self.store.at([source.path for source in page])
        known = {path: record for path, record in found.items() if path not in self.lost}
        by_size: _BySize = defaultdict(lambda: defaultdict(list))
        new = {s.size for s in page if s.path not in known or not _stamped(known[s.path], s)}
        for record in self.store.of_sizes(new) if new else ():
            if record.path not in self.lost:
                by_size[record.size][record.kind, record.digest].append(record)
        return known, by_size

    def _is_done(self, record: VideoRecord) -> bool:
        """Count a video that is as it was; whether it need not be tried again."""
        if not record.reason:
            self.result.unchanged += 1
        elif not record.transient:
            self.result.known_failures += 1
        else:
            return False
        self._passed(record.size)
        return True

    def _passed(self, size: int) -> None:
        self.result.bytes_done += size
        self.progress(self.result)

    def _take_over(self, twins: _Twins, by_size: _BySize) -> list[Path]:
        """Give videos the windows of those with the same content; what was only touched is noted.

        All in a few commits. What moved is taken out after what it moved to is in.

        Returns:
            Those whose windows another process has taken away.
        """
        touched = [(r, source) for r, source in twins if r.path == source.path]
        self.store.touch([replace(r, mtime_ns=source.mtime_ns) for r, source in touched])
        self.result.unchanged += len(touched)
        pairs = [(r, source) for r, source in twins if r.path != source.path]
        try:
            lost = self._copy(pairs, by_size)
        except KeyboardInterrupt:
            # Copies may be in, and are known from now on, so what they moved from goes.
            there = self.store.at([source.path for _, source in pairs]).values()
            known = {record.digest for record in there}
            self.store.remove([r for r, _ in pairs if r.digest in known and self._has_moved(r)])
            raise
        for _, source in twins:
            if source.path not in lost:
                self._passed(source.size)
        return lost

    def _copy(self, pairs: _Twins, by_size: _BySize) -> list[Path]:
        copies = self.store.copy([(r, record_of(s, digest=r.digest)) for r, s in pairs])
        moved: dict[Path, VideoRecord] = {}
        lost = []
        for (twin, source), copy in zip(pairs, copies, strict=True):
            if copy is None:
                lost.append(source.path)
                continue
            same = by_size[source.size][twin.kind, twin.digest]
            same.append(copy)
            if twin.path in moved or not self._has_moved(twin):
                self.result.copied += 1
            else:
                moved[twin.path] = twin
                same.remove(twin)
                self.result.moved += 1
        self.store.remove([*moved.values()])
        return lost

    def _has_moved(self, twin: VideoRecord) -> bool:
        """Whether a video whose content is elsewhere, too, is no longer where it was."""
        return self.shard.has(twin.path) and _is_gone_for_good(twin)

    def take(self, packed: StagedVideo | VideoProgress) -> None:
        """Commit a video, now or with those that come within a second; or note how far one is."""
        if isinstance(packed, StagedVideo):
            self._waiting.append(packed)
        else:
            begun = self._begun.setdefault(packed.path, packed)
            # A window is encoded when what follows it is decoded already.
            self._begun[packed.path] = max(begun, packed, key=lambda video: video.seconds)
        self._commit(_EVERY)  # what is done must not wait for the end of a long film
        self.report()

    def finish(self) -> None:
        """Commit all that waits."""
        if self._waiting:
            self._commit(0.0)
            self.report()

    def report(self) -> None:
        """Report the result so far."""
        self.result.bytes_begun = sum(video.bytes for video in self._begun.values())
        self.result.seconds_begun = sum(video.seconds for video in self._begun.values())
        self.result.elapsed = time.monotonic() - self._began
        self.progress(self.result)

    def _commit(self, pause: float) -> None:
        if not self._waiting or time.monotonic() - self._last < pause:
            return
        staged, self._waiting = self._waiting, []
        due = [video for video in staged if not self._still_holds(video.record)]
        try:
            self.store.commit(due)
        except KeyboardInterrupt:
            # They may be committed or not. Once more, so that the result of the run is true.
            self.store.commit(due)
            raise
        finally:
            for video in staged:
                self._note(video.record)
        self._last = time.monotonic()

    def _still_holds(self, now: VideoRecord) -> bool:
        """Whether a video was indexed again by force and is out of reach just now."""
        old = self.store.at([now.path]).get(now.path) if now.reason and now.transient else None
        return old is not None and not old.reason and _stamped(old, now)

    def _note(self, record: VideoRecord) -> None:
        result = self.result
        self._begun.pop(record.path, None)
        result.current = record.path
        result.bytes_done += record.size
        if record.reason:
            result.failed.append((record.path, record.reason))
            return
        self.fixed += record.path in self.lost
        result.indexed += 1
        result.windows += record.windows
        result.seconds += record.duration
        if record.note:
            result.notes.append((record.path, record.note))

    def forget(self, sources: Sequence[Source]) -> None:
        """Remove what was indexed at or below the paths and is excluded now, or gone.

        What is gone is only counted, unless it is to be pruned; what is on a disk, or below a path,
        that is itself not there is counted in any case. What is known of a file that failed, here
        or elsewhere, goes with the file.
        """
        tops = frozenset(self._tops)
        here = frozenset(top for top in self._tops if _is_there(top))
        # To ask a storage for each object would take long; a listing has them all.
        listed = {source.path for source in sources if isinstance(source.path, ObjectPath)}
        dropped, missing = list[VideoRecord](), list[VideoRecord]()
        for record in self.store.each_video(tops):
            fate = self._fate(record, tops, here, listed)
            if fate == "missing" and self.prune:
                fate = "pruned"
            if fate in ("forgotten", "pruned", "missing", "away"):
                setattr(self.result, fate, getattr(self.result, fate) + 1)
            if fate in ("forgotten", "pruned", "failed before"):
                dropped.append(record)
            if fate == "missing":
                missing.append(record)
            if len(dropped) == _AT_ONCE:
                self._drop(dropped)
                dropped = []
        self._drop(dropped)
        number, folders = count_away(missing)
        if number:
            where, prune_them = away_sentence(number, folders), option("prune", True)
            self.result.warnings.append(f"Not there: {where} {prune_them} would forget them.")

    def _drop(self, records: Sequence[VideoRecord]) -> None:
        self.store.remove(records)
        forget_films(records)

    def _fate(
        self, record: VideoRecord, tops: Set[Path], here: Set[Path], listed: Set[Path]
    ) -> str:
        """What becomes of a video of the index; empty where it stays."""
        path = record.path
        if not self.shard.has(path):
            return ""
        inside = path in tops or not tops.isdisjoint(path.parents)
        if inside and self._excluded.matches(path, self._tops):
            return "forgotten"
        # Of objects it is not asked, one by one.
        if record.reason and not isinstance(path, ObjectPath) and _is_gone_for_good(record):
            return "failed before"
        if not inside or path in listed:
            return ""
        away = path not in here and here.isdisjoint(path.parents)
        # A storage that cannot be asked for all is not asked for each.
        if not (away and isinstance(path, ObjectPath)) and is_on_disk(record):
            return ""
        return "away" if away or is_unplugged(path) else "missing"


def _same_content(
    source: Source,
    record: VideoRecord | None,
    same_size: Mapping[tuple[str, str], Sequence[VideoRecord]],
) -> VideoRecord | None:
    """The video of an index whose content a file has: its own, if it was only touched."""
    if not same_size:
        return None
    try:
        digest = content_digest(source)
    except OSError:
        return None  # decoding meets the same error and notes it
    if record and not record.reason and record.digest == digest:
        return record
    return next(iter(same_size.get((source.kind, digest), ())), None)


def _stamped(record: VideoRecord, now: Source | VideoRecord) -> bool:
    """Whether a file has the size and time that a record knows of it."""
    return (record.size, record.mtime_ns) == (now.size, now.mtime_ns)


def _is_there(path: Path) -> bool:
    """Whether something is at a path; False, too, where its storage cannot be asked."""
    try:
        return exists_at(path)
    except SureshotError:
        return False


def is_on_disk(record: VideoRecord) -> bool:
    """Whether a video is still on disk, as far as one may look."""
    try:
        # Not `exists`, which takes any error for a no from Python 3.14 on.
        return bool(frame_files(record.path) if record.kind == "frames" else record.path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # may not be looked at, which is not the same as gone
        return True


def _is_gone_for_good(record: VideoRecord) -> bool:
    """Whether the file of a video is gone, and not with its disk."""
    path = record.path
    return not (is_silent(path) or is_on_disk(record) or is_unplugged(path))


def _include_again(store: Store, patterns: Sequence[str]) -> None:
    """Take patterns, or paths that `sureshot.library.remove` excluded, off what is left out."""
    known = store.excluded()
    chosen = []
    for pattern in patterns:
        written = (pattern, os.fspath(absolute(pattern)))  # `remove` takes a bare name for a path
        names = [name for text in written for name in (text, glob.escape(text)) if name in known]
        names = list(dict.fromkeys(names))
        if not names:
            raise _not_excluded(pattern, known)
        chosen += names
    store.set_excluded(chosen, excluded=False)


def _not_excluded(pattern: str, known: Sequence[str]) -> QueryError:
    are = f"these are: {', '.join(map(plain, known))}" if known else "nothing is"
    return QueryError(f"{plain(pattern)} is not excluded; {are}.")


_MOST_THREADS = 64


def index(
    paths: str | Path | Sequence[str | Path],
    *,
    db: IndexPlace = None,
    model: str | Path | None = None,
    device: str | None = None,
    engine: str | None = None,
    frames: int | None = None,
    window: float | None = None,
    scenes: bool | None = None,
    decode: Decode | None = None,
    frame_rate: float | None = None,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    force: bool = False,
    prune: bool = False,
    workers: int | None = None,
    shard: str | None = None,
    ray: str | None = None,
    roots: Sequence[str | Path] | None = None,
    words: Words | None = None,
    speech: str | Path | None = None,
    thorough: bool = True,
    progress: Callable[[Indexed], None] = lambda result: None,
) -> Indexed:
    """Make videos searchable, or bring their index up to date: only what is new costs time.

    ``model``, ``frames``, ``window``, ``scenes``, ``decode`` and ``frame_rate`` are settled when an
    index is made (`sureshot.store.rows.IndexSettings`). Left out, they are those of the index, or
    the defaults for a new one; a trained model has a number of frames of its own.

    Args:
        paths: videos, folders of videos, folders of numbered frames; one or several.
        db: place of the index, or an open one; None is the default index of this user.
        model: ``bundled``, a folder or the name of a model on the hub.
        device: torch device; None takes a GPU where there is one.
        engine: ``onnxruntime``, ``openvino`` or ``torch``; None takes the first that works.
        exclude: patterns of what is left out from now on, see `sureshot.media.discover.Excluded`;
            the index remembers them, and forgets what it has of that.
        include: patterns that are excluded no more.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. What is below a path, or on a
            disk, that is itself not there is left alone.
        workers: decoding threads, None takes half the cores, at most four; with ``ray`` processes
            on the machines, None takes one for two cores.
        shard: ``3/16`` deals with the third of sixteen shares, for as many processes anywhere.
        ray: where a Ray cluster answers whose machines encode, ``auto`` for the one of this
            machine; they must see the videos and the index under the same paths.
        roots: folders outside of which nothing is indexed, whatever links lead there; for a server
            or a job. None for no such bounds.
        words: which words of the videos are read: ``none``, ``subtitles``, in files next to them
            and in them, or ``all`` that can be read here; None is as before, at first
            ``subtitles``. Words that are there already stay.
        speech: folder or hub name of a model that hears speech; with it words are ``all``.
        thorough: hold every stored window against its checksum first, of at most 100,000.
        progress: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.

    Raises:
        SureshotError: an argument has no meaning, none of the paths exists, the model cannot be
            loaded here, the index has other settings or is of another model, or it cannot be read
            or written. Videos written before stay.
    """
    share = WHOLE if shard is None else Shard.parse(shard)
    if ray is None and workers is not None and not 1 <= workers <= _MOST_THREADS:
        raise ArgumentError(
            f"{option('workers', str(workers))} is not from 1 to {_MOST_THREADS}, the decoding "
            f"threads of one machine; more are for {option('ray')}."
        )
    chosen = [expand(path) for path in as_list(paths)]
    if not chosen:
        raise QueryError("Name videos or folders that hold some.")
    exclude, include = (list(map(as_pattern, as_list(given))) for given in (exclude, include))
    # Before an index is made or a model fetched for a mistyped path. If only some are missing, the
    # others are indexed: a nightly run must not stop at an unplugged drive.
    if not any(map(_is_there, chosen)):
        missing = ", ".join(plain(path) for path in chosen if not exists_at(path))
        raise QueryError(f"There is nothing at {missing}; name videos or folders that hold some.")
    place = index_place(db)
    is_new = not Store.exists(place)
    settings = IndexSettings() if is_new else Store.open(place, complete=True).settings
    asked = {
        "model": absolute_model(model) if model else None,
        "frames": frames,
        "window": window,
        "scenes": scenes,
        "decode": decode,
        "frame_rate": frame_rate,
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    try:
        settings = replace(settings, **given)
    except SureshotError as error:
        raise ArgumentError(str(error)) from None
    check_words(words, speech)
    if is_new and include:  # before an index is made, whose settings would stay
        raise _not_excluded(include[0], ())
    with ExitStack() as held:
        cluster = None if ray is None else held.enter_context(on_ray(ray))
        encoder = load_searchable(settings.model, device, engine)
        if is_new:
            settings = replace(as_trained(settings, encoder), **given)
        store = Store.create(place, settings, encoder.fingerprint, encoder.dim)
        _include_again(store, include)
        store.set_excluded(exclude, excluded=True)
        wanted = Wanted.of(store, words, speech)
        pool = None
        if cluster is not None:
            pool = RayPool(
                cluster, store, encoder, chosen, device=device, engine=engine, workers=workers
            )
        result = Run(
            store,
            encoder,
            chosen,
            force=force,
            prune=prune,
            shard=share,
            roots=None if roots is None else [expand(root) for root in as_list(roots)],
            progress=progress,
            workers=workers,
            packing=None if pool is None else pool.pack,
            thorough=thorough,
            words=wanted,
        ).ingest()
        result.warnings += pool.warnings() if pool else []
        return result


def _on_lost(lost: int, fixed: int) -> list[str]:
    """What to say of videos whose windows were not all there when the run began."""
    said = []
    if fixed:
        were = "was" if fixed == 1 else "were"
        said.append(f"{counted(fixed, 'video')} had lost windows and {were} indexed again.")
    if lost > fixed:
        said.append(
            f"{counted(lost - fixed, 'video')} with lost windows could not be indexed again in "
            f"this run; `sureshot status --check` names them."
        )
    return said

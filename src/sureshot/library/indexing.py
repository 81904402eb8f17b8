"""From folders to an index: find, decode, encode, write. Can go on after every video.

A video is written when its last window is encoded, or with others within a second of that, so
whatever ends the run, what is written stays.
"""

import glob
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sureshot.errors import ArgumentError, QueryError, option
from sureshot.library.encoding import (
    Packing,
    content_digest,
    pack_here,
    pages,
    record_of,
)
from sureshot.library.ray_workers import RayPool, on_ray
from sureshot.library.results import Indexed
from sureshot.media.discover import Excluded, Source, Unreadable, as_pattern, discover, frame_files
from sureshot.models.encoders.base import Encoder
from sureshot.models.load import Retriever, load_searchable
from sureshot.paths import WHOLE, Shard, absolute, absolute_model, exists_at, expand, index_place
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.rows import Decode, IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo
from sureshot.text import counted, plain

_Progress = Callable[[Indexed], None]


def find_sources(
    paths: Sequence[Path],
    excluded: Excluded,
    shard: Shard,
    result: Indexed,
    progress: _Progress,
) -> list[Source]:
    """Every video of a share at or below the paths; what cannot be looked at is noted."""
    tops = [absolute(path) for path in paths]

    def leave_out(path: Path) -> bool:
        left = excluded.matches(path, tops)
        result.excluded += left
        return left

    sources: list[Source] = []
    for source in discover(paths, leave_out):
        # What was named and cannot be read concerns everybody.
        if not (shard.has(source.path) or (isinstance(source, Unreadable) and source.path in tops)):
            continue
        if isinstance(source, Unreadable):
            result.failed.append((source.path, source.reason))
            continue
        sources.append(source)
        result.found += 1
        result.bytes_found += source.size
        if result.found % 200 == 0:
            progress(result)
    return sources


class Planner:
    """Deals with what need not be decoded, and lists the rest.

    Args:
        shard: which videos are this run's; of others none is removed.
        lost: paths of videos whose windows are not there as they were written.
        force: whether to decode what is already there, failed files included.
    """

    def __init__(self, store: Store, shard: Shard, lost: Collection[Path], *, force: bool) -> None:
        self._store = store
        self._shard = shard
        self._lost = lost
        self._force = force

    def todo(self, sources: Sequence[Source], result: Indexed, progress: _Progress) -> list[Source]:
        """The sources that must be decoded; everything else is dealt with here."""
        left: list[Source] = []
        for page in pages(sources):
            known, by_size = self._known(page)
            for source in page:
                if self._force or not self._up_to_date(
                    source, known.get(source.path), by_size[source.size], result
                ):
                    left.append(source)
                else:
                    result.bytes_done += source.size
                    progress(result)
        return left

    def _known(
        self, page: Sequence[Source]
    ) -> tuple[dict[Path, VideoRecord], dict[int, list[VideoRecord]]]:
        """What the index has of some sources, and the videos that may be their twins, by size."""
        by_size: dict[int, list[VideoRecord]] = defaultdict(list)
        if self._force:
            return {}, by_size
        known = {
            path: record
            for path, record in self._store.at([source.path for source in page]).items()
            if path not in self._lost
        }
        new = {s.size for s in page if s.path not in known or not stamped(known[s.path], s)}
        for record in self._store.of_sizes(new) if new else ():
            if record.path not in self._lost:
                by_size[record.size].append(record)
        return known, by_size

    def _up_to_date(
        self,
        source: Source,
        record: VideoRecord | None,
        same_size: list[VideoRecord],
        result: Indexed,
    ) -> bool:
        """Whether the index has this video, or could be given it without decoding."""
        if record and stamped(record, source):
            if not record.reason:
                result.unchanged += 1
            elif not record.transient:
                result.known_failures += 1
            return not record.transient
        if not same_size:
            return False
        try:
            digest = content_digest(source)
        except OSError:
            return False  # decoding meets the same error and notes it
        if record and not record.reason and record.digest == digest:
            # Touched, not changed.
            self._store.touch(replace(record, mtime_ns=source.mtime_ns))
            result.unchanged += 1
            return True
        twins = [r for r in same_size if (r.kind, r.digest) == (source.kind, digest)]
        return bool(twins) and self._take_over(twins[0], source, same_size, result)

    def _take_over(
        self,
        twin: VideoRecord,
        source: Source,
        same_size: list[VideoRecord],
        result: Indexed,
    ) -> bool:
        """Give a video the windows of its twin; False if another process has taken them away."""
        copy = self._store.copy(twin, record_of(source, digest=twin.digest))
        if copy is None:
            return False
        same_size.append(copy)
        if is_on_disk(twin) or not self._shard.has(twin.path):
            result.copied += 1
        else:
            self._store.remove([twin])
            same_size.remove(twin)
            result.moved += 1
        return True


def stamped(record: VideoRecord, now: Source | VideoRecord) -> bool:
    """Whether a file has the size and time that a record knows of it."""
    return (record.size, record.mtime_ns) == (now.size, now.mtime_ns)


def is_on_disk(record: VideoRecord) -> bool:
    """Whether a video is still on disk, as far as one may look."""
    try:
        return bool(frame_files(record.path)) if record.kind == "frames" else record.path.exists()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # may not be looked at, which is not the same as gone
        return True


_EVERY = 1.0  # seconds: a commit waits for the disk, as long as a short clip takes to encode


class Committing:
    """Commits what is packed, at most once a second, and keeps the result of the run.

    Args:
        result: what the run has done, kept up to date here.
        lost: paths of videos whose windows were not there as they were written.
        progress: called with the result after every step.
        began: when the run began, by `time.monotonic`.

    Attributes:
        mended: how many of the lost videos are there again.
    """

    def __init__(
        self,
        store: Store,
        result: Indexed,
        lost: Collection[Path],
        progress: Callable[[Indexed], None],
        began: float,
    ) -> None:
        self.mended = 0
        self._store, self._result, self._lost, self._progress = store, result, lost, progress
        self._begun: dict[Path, tuple[int, float]] = {}  # bytes and seconds done of a video
        self._waiting: list[StagedVideo] = []
        self._began = began
        self._last = -math.inf  # commit, so that the first video can be found at once

    def advance(self, source: Source, share: float, seconds: float) -> None:
        """Note how far a video is, as `sureshot.library.encoding.encode_videos` tells it."""
        size, until = self._begun.get(source.path, (0, 0.0))
        self._begun[source.path] = max(size, int(share * source.size)), max(until, seconds)
        self._commit(_EVERY)  # what is done must not wait for the end of a long film
        self.tell()

    def take(self, staged: Sequence[StagedVideo]) -> None:
        """Commit videos, now or with those that come within a second."""
        self._waiting += staged
        self._commit(_EVERY)
        self.tell()

    def finish(self) -> None:
        """Commit all that waits."""
        if self._waiting:
            self._commit(0.0)
            self.tell()

    def tell(self) -> None:
        """Tell of the result so far."""
        self._result.bytes_begun = sum(size for size, _ in self._begun.values())
        self._result.seconds_begun = sum(seconds for _, seconds in self._begun.values())
        self._result.elapsed = time.monotonic() - self._began
        self._progress(self._result)

    def _commit(self, pause: float) -> None:
        if not self._waiting or time.monotonic() - self._last < pause:
            return
        staged, self._waiting = self._waiting, []
        _settle(self._store, staged, self._result)
        for record in (video.record for video in staged):
            self.mended += record.path in self._lost and not record.reason
            self._begun.pop(record.path, None)
        self._last = time.monotonic()


def _settle(store: Store, staged: Sequence[StagedVideo], result: Indexed) -> None:
    """Commit videos and note what became of them."""
    due = [video for video in staged if not _still_holds(store, video.record)]
    try:
        store.commit(due)
    except KeyboardInterrupt:
        # They may be committed or not. Once more, so that the result of the run is true.
        store.commit(due)
        _note(result, staged)
        raise
    _note(result, staged)


def _still_holds(store: Store, now: VideoRecord) -> bool:
    """Whether a video was indexed again by force and is out of reach just now."""
    old = store.at([now.path]).get(now.path) if now.reason and now.transient else None
    return old is not None and not old.reason and stamped(old, now)


def _note(result: Indexed, staged: Sequence[StagedVideo]) -> None:
    for record in (video.record for video in staged):
        result.current = record.path
        result.bytes_done += record.size
        if record.reason:
            result.failed.append((record.path, record.reason))
            continue
        result.indexed += 1
        result.windows += record.windows
        result.seconds += record.duration
        if record.note:
            result.notes.append((record.path, record.note))


def exclude_too(store: Store, patterns: Sequence[str]) -> None:
    """Remember patterns of what is left out from now on."""
    store.set_excluded([as_pattern(pattern) for pattern in patterns], excluded=True)


def include_again(store: Store, patterns: Sequence[str]) -> None:
    """Take patterns, or paths that `sureshot.library.remove` excluded, off what is left out."""
    known = store.excluded()
    chosen = []
    for pattern in map(as_pattern, patterns):
        names = [name for name in (pattern, glob.escape(pattern)) if name in known]
        if not names:
            are = f"these are: {', '.join(map(plain, known))}" if known else "nothing is"
            raise QueryError(f"{plain(pattern)} is not excluded; {are}.")
        chosen += names
    store.set_excluded(chosen, excluded=False)


def forget_excluded(
    store: Store,
    paths: Sequence[Path],
    excluded: Excluded,
    mine: Callable[[Path], bool] = lambda path: True,
) -> int:
    """Remove what was indexed at or below some paths before it was excluded.

    Args:
        excluded: what is left out.
        mine: whether the video at a path may be removed.

    Returns:
        How many videos that were.
    """
    if not excluded.patterns:
        return 0
    tops = [absolute(path) for path in paths]
    here = (r for r in store.each_video() if any(r.path.is_relative_to(top) for top in tops))
    chosen = [r for r in here if excluded.matches(r.path, tops) and mine(r.path)]
    store.remove(chosen)
    return len(chosen)


_MOST_THREADS = 64
_AT_ONCE = 500  # videos removed in one commit


def index(
    paths: str | Path | Sequence[str | Path],
    *,
    db: str | Path | None = None,
    model: str | None = None,
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
    progress: Callable[[Indexed], None] = lambda result: None,
) -> Indexed:
    """Make videos searchable, or bring their index up to date: only what is new costs time.

    ``model``, ``frames``, ``window``, ``scenes``, ``decode`` and ``frame_rate`` are settled when an
    index is made (`sureshot.store.rows.IndexSettings`). Left out, they are those of the index, or
    the defaults for a new one; a trained model has a number of frames of its own.

    Args:
        paths: videos, folders of videos, folders of numbered frames; one or several.
        db: folder or object-storage URI of the index; None is the default index of this user.
        model: ``bundled``, a folder or the name of a model on the hub.
        device: torch device; None takes a GPU where there is one.
        engine: ``torch`` or ``openvino``; None takes OpenVINO where it is installed.
        frames: frames sampled from each window.
        window: longest window in seconds.
        scenes: whether a change of scene begins a window.
        decode: frames that are decoded: ``all``, ``keyframes`` or ``auto``.
        frame_rate: frames a second in a folder of frames.
        exclude: patterns of what is left out from now on, see `sureshot.media.discover.Excluded`;
            the index remembers them, and forgets what it has of that.
        include: patterns that are excluded no more.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        workers: decoding threads, None takes half the cores, at most four; with ``ray`` processes
            on the machines, None takes one for two cores.
        shard: ``3/16`` deals with the third of sixteen shares, for as many processes anywhere.
        ray: where a Ray cluster answers whose machines encode, ``auto`` for the one of this
            machine; they must see the videos and the index under the same paths.
        progress: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.

    Raises:
        ArgumentError: there is no such share, or no such number of workers.
        QueryError: none of the paths exists; or a pattern to include is not excluded.
        SureshotError: a setting is out of range.
        ModelError: the model cannot be loaded here.
        StoreError: the index has other settings or is of another model, or it cannot be read or
            written. Videos written before stay.
    """
    share = WHOLE if shard is None else Shard.parse(shard)
    if ray is None and workers is not None and not 1 <= workers <= _MOST_THREADS:
        raise ArgumentError(
            f"{option('workers', str(workers))} is not from 1 to {_MOST_THREADS}, the decoding "
            f"threads of one machine; more are for {option('ray')}."
        )
    chosen = [expand(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    # Before an index is made or a model fetched for a mistyped path. If only some are missing, the
    # others are indexed: a nightly run must not stop at an unplugged drive.
    if not any(exists_at(path) for path in chosen):
        missing = ", ".join(plain(path) for path in chosen)
        raise QueryError(f"There is nothing at {missing}; name videos or folders that hold some.")
    place = index_place(db)
    is_new = not Store.exists(place)
    settings = IndexSettings() if is_new else Store.open(place, complete=True).settings
    asked = {
        "model": absolute_model(model) if model else None,
        "frames": frames,
        "window": None if window is None else float(window),
        "scenes": scenes,
        "decode": decode,
        "frame_rate": None if frame_rate is None else float(frame_rate),
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    settings = replace(settings, **given)
    with ExitStack() as held:
        cluster = None if ray is None else held.enter_context(on_ray(ray))
        encoder = load_searchable(settings.model, device, engine)
        if isinstance(encoder, Retriever) and frames is None and is_new:
            settings = replace(settings, frames=encoder.frames)
        store = Store.create(place, settings, encoder.fingerprint, encoder.dim)
        include_again(store, include)
        exclude_too(store, exclude)
        packing, said = pack_here(store, encoder, workers), list[str]()
        if cluster is not None:
            crew = RayPool(
                cluster, store, encoder, chosen, device=device, engine=engine, hands=workers
            )
            packing, said = crew.packing, crew.warnings
        result = ingest(
            store,
            encoder,
            chosen,
            force=force,
            prune=prune,
            shard=share,
            progress=progress,
            packing=packing,
        )
        result.warnings += said
        return result


def ingest(
    store: Store,
    encoder: Encoder,
    paths: Sequence[Path],
    *,
    force: bool = False,
    prune: bool = False,
    shard: Shard = WHOLE,
    progress: Callable[[Indexed], None] = lambda result: None,
    workers: int | None = None,
    packing: Packing | None = None,
) -> Indexed:
    """Bring the index up to date with the videos at or below the paths.

    The other arguments are those of `index`.

    Args:
        store: index, opened for the model of the encoder.
        shard: which videos are this run's; all others are left as they are.
        packing: who encodes; None is this process.

    Returns:
        What the run did. ``interrupted`` is set if Ctrl-C ended it; what was written stays.
    """
    packing = packing or pack_here(store, encoder, workers)
    began = time.monotonic()
    result = Indexed(index=store.location)
    result.warnings += store.repair()
    excluded = Excluded(store.excluded())
    # What is not there as it was written is encoded again.
    lost = {r.path for r in store.lost(thorough=True) if shard.has(r.path)}
    committing = Committing(store, result, lost, progress, began)
    try:
        committing.tell()
        with staging_lock(store.location), ExitStack() as held:
            sources = find_sources(paths, excluded, shard, result, progress)
            plan = Planner(store, shard, lost, force=force)
            todo = plan.todo(sources, result, progress)
            packed = held.enter_context(closing(packing(todo, committing.advance)))
            try:
                for staged in packed:
                    committing.take(staged)
            finally:
                committing.finish()
            result.forgotten = forget_excluded(store, paths, excluded, shard.has)
            _forget_missing(store, paths, sources, shard, prune, result)
            result.warnings += filter(None, [store.sweep()[1]])
            if result.indexed + result.pruned + result.moved + result.copied + result.forgotten:
                store.compact()
    except KeyboardInterrupt:
        result.interrupted = True
    store.sync()
    store.clear()
    if result.indexed:
        result.engine = getattr(encoder, "engine", "")
    result.warnings += _on_lost(len(lost), committing.mended)
    result.bytes_begun, result.seconds_begun = 0, 0.0
    result.elapsed = time.monotonic() - began
    return result


def _on_lost(lost: int, mended: int) -> list[str]:
    """What to say of videos whose windows were not all there when the run began.

    Args:
        lost: how many there were.
        mended: how many of them this run has encoded again.
    """
    said = []
    if mended:
        were = "was" if mended == 1 else "were"
        said.append(f"{counted(mended, 'video')} had lost windows and {were} indexed again.")
    if lost > mended:
        said.append(
            f"{counted(lost - mended, 'video')} with lost windows could not be indexed again in "
            f"this run; `sureshot status --check` names them."
        )
    return said


def _forget_missing(
    store: Store,
    paths: Sequence[Path],
    sources: Sequence[Source],
    shard: Shard,
    prune: bool,
    result: Indexed,
) -> None:
    tops = [top for top in map(absolute, paths) if exists_at(top)]
    # To ask a storage for each object would take long; a listing has them all.
    listed = {source.path for source in sources if isinstance(source.path, ObjectPath)}
    gone: list[VideoRecord] = []
    for record in store.each_video():
        mine = shard.has(record.path) and any(record.path.is_relative_to(top) for top in tops)
        if not mine or record.path in listed or is_on_disk(record):
            continue
        result.missing += not prune
        result.pruned += prune
        if prune:
            gone.append(record)
        if len(gone) == _AT_ONCE:
            store.remove(gone)
            gone = []
    store.remove(gone)

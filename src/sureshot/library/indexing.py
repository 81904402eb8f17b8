"""From folders to an index: find, decode, encode, write. Can go on after every video.

A video is written when its last window is encoded, so whatever ends the run, what is written stays.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sureshot.errors import QueryError
from sureshot.library.encode import EncodedVideo, content_digest, encode_videos
from sureshot.library.excluding import exclude_too, forget_excluded, include_again
from sureshot.library.indexed import Indexed
from sureshot.media.discover import Source, Unreadable, discover, frame_files
from sureshot.media.excluded import Excluded
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.loading import load_searchable
from sureshot.models.retriever import Retriever
from sureshot.places import absolute, absolute_model, exists_at, index_place
from sureshot.store.header import Decode, IndexSettings
from sureshot.store.rows import EncodedWindow, VideoRecord
from sureshot.store.store import Store
from sureshot.text import counted, plain

_OLD = (
    "This index was made when scenes ended at hard cuts only, and goes on so. For times that "
    "follow fades as well, remove it with `sureshot reset` and index your videos again."
)


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
    observe: Callable[[Indexed], None] = lambda result: None,
) -> Indexed:
    """Make videos searchable, or bring their index up to date: only what is new costs time.

    ``model``, ``frames``, ``window``, ``scenes``, ``decode`` and ``frame_rate`` are settled when an
    index is made (`sureshot.store.header.IndexSettings`). Left out, they are those of the index, or
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
        exclude: patterns of what is left out from now on, see `sureshot.media.excluded.Excluded`;
            the index remembers them, and forgets what it has of that.
        include: patterns that are excluded no more.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        workers: decoding threads; None takes half the cores, at most four.
        observe: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.

    Raises:
        QueryError: none of the paths exists; or a pattern to include is not excluded.
        SureshotError: a setting is out of range.
        ModelError: the model cannot be loaded here.
        StoreError: the index has other settings or is of another model, or it cannot be read or
            written. Videos written before stay.
    """
    chosen = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
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
    encoder = load_searchable(settings.model, device, engine)
    if isinstance(encoder, Retriever) and frames is None and is_new:
        settings = replace(settings, frames=encoder.frames)
    store = Store.create(place, settings, encoder.fingerprint, encoder.dim)
    include_again(store, include)
    exclude_too(store, exclude)
    return ingest(
        store, encoder, chosen, force=force, prune=prune, observe=observe, workers=workers
    )


def ingest(
    store: Store,
    encoder: Encoder,
    paths: Sequence[Path],
    *,
    force: bool = False,
    prune: bool = False,
    observe: Callable[[Indexed], None] = lambda result: None,
    workers: int | None = None,
) -> Indexed:
    """Bring the index up to date with the videos at or below the paths.

    Args:
        store: index, opened for the model of the encoder.
        encoder: the encoder.
        paths: files and folders; folders are searched whole.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        observe: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.
        workers: decoding threads; None takes half the cores, at most four.

    Returns:
        What the run did. ``interrupted`` is set if Ctrl-C ended it; what was written stays.

    Raises:
        StoreError: the index cannot be written. Videos written before stay.
    """
    began = time.monotonic()
    result = Indexed(index=store.location)
    result.warnings += store.mend()
    excluded = Excluded(store.excluded())
    before = {record.path: record for record in store.videos()}
    # What is not there as it was written is encoded again.
    lost = {record.path for record in store.lost(thorough=True)}
    known = {path: record for path, record in before.items() if path not in lost}
    mended = 0
    begun: dict[Path, tuple[int, float]] = {}

    def advance(source: Source, share: float, seconds: float) -> None:
        size, until = begun.get(source.path, (0, 0.0))
        begun[source.path] = max(size, int(share * source.size)), max(until, seconds)
        tell()

    def tell() -> None:
        result.bytes_begun = sum(size for size, _ in begun.values())
        result.seconds_begun = sum(seconds for _, seconds in begun.values())
        result.elapsed = time.monotonic() - began
        observe(result)

    try:
        tell()
        sources = _find(paths, excluded, result, observe)
        todo = _plan(store, known, sources, force, result, observe)
        encoding = encode_videos(todo, store.settings, encoder, workers=workers, advance=advance)
        with closing(encoding) as videos:
            for video in videos:
                _settle(store, before.get(video.source.path), video, result)
                mended += video.source.path in lost and video.error is None
                begun.pop(video.source.path, None)
                tell()
        result.forgotten = forget_excluded(store, paths, excluded)
        _forget_missing(store, paths, {s.path for s in sources}, prune, result)
        result.warnings += filter(None, [store.sweep()[1]])
        if result.indexed + result.pruned + result.moved + result.copied + result.forgotten:
            store.compact()
    except KeyboardInterrupt:
        result.interrupted = True
    store.sync()
    if result.indexed:
        result.engine = getattr(encoder, "engine", "")
    result.warnings += _on_lost(len(lost), mended)
    if result.indexed and store.settings.scenes and not store.settings.look:
        result.warnings.append(_OLD)
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


def _plan(
    store: Store,
    known: Mapping[Path, VideoRecord],
    sources: Sequence[Source],
    force: bool,
    result: Indexed,
    observe: Callable[[Indexed], None],
) -> list[Source]:
    """The sources that must be decoded; everything else is dealt with here."""
    by_size: dict[int, list[VideoRecord]] = defaultdict(list)
    for record in known.values():
        if not record.reason:
            by_size[record.size].append(record)
    todo = []
    for source in sources:
        if force or not _up_to_date(
            store, source, known.get(source.path), by_size[source.size], result
        ):
            todo.append(source)
        else:
            result.bytes_done += source.size
            observe(result)
    return todo


def _find(
    paths: Sequence[Path],
    excluded: Excluded,
    result: Indexed,
    observe: Callable[[Indexed], None],
) -> list[Source]:
    """Every video at or below the paths; what cannot be looked at is noted."""
    tops = [absolute(path) for path in paths]

    def leave_out(path: Path) -> bool:
        left = excluded.matches(path, tops)
        result.excluded += left
        return left

    sources: list[Source] = []
    for source in discover(paths, leave_out):
        if isinstance(source, Unreadable):
            result.failed.append((source.path, source.reason))
            continue
        sources.append(source)
        result.found += 1
        result.bytes_found += source.size
        if result.found % 200 == 0:
            observe(result)
    return sources


def _up_to_date(
    store: Store,
    source: Source,
    record: VideoRecord | None,
    same_size: list[VideoRecord],
    result: Indexed,
) -> bool:
    """Whether the index has this video, or could be given it without decoding."""
    if record and _stamped(record, source):
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
        store.touch(replace(record, mtime_ns=source.mtime_ns))
        result.unchanged += 1
        return True
    twins = [r for r in same_size if (r.kind, r.digest) == (source.kind, digest)]
    return bool(twins) and _take_over(store, twins[0], source, same_size, result)


def _take_over(
    store: Store,
    twin: VideoRecord,
    source: Source,
    same_size: list[VideoRecord],
    result: Indexed,
) -> bool:
    """Give a video the windows of its twin; False if another process has taken them away."""
    copy = store.copy(twin, _record(source, digest=twin.digest))
    if copy is None:
        return False
    same_size.append(copy)
    if _there(twin):
        result.copied += 1
    else:
        store.remove([twin])
        same_size.remove(twin)
        result.moved += 1
    return True


def _settle(store: Store, old: VideoRecord | None, video: EncodedVideo, result: Indexed) -> None:
    """Write a video and note what became of it; ``old`` is what was known of it before."""
    record = _finished(video)
    try:
        _write(store, old, record, video.windows)
    except KeyboardInterrupt:
        # It may be written or not. Once more, so that the result of the run is true.
        _write(store, old, record, video.windows)
        _note(result, record, len(video.windows))
        raise
    _note(result, record, len(video.windows))


def _write(
    store: Store,
    old: VideoRecord | None,
    record: VideoRecord,
    windows: Sequence[EncodedWindow],
) -> None:
    if not record.reason:
        store.write(record, windows)
    elif not (record.transient and old and not old.reason and _stamped(old, record)):
        store.fail(record)
    # Else it was indexed again by force and is out of reach just now: what is there still holds.


def _stamped(record: VideoRecord, now: Source | VideoRecord) -> bool:
    return (record.size, record.mtime_ns) == (now.size, now.mtime_ns)


def _record(source: Source, **known: object) -> VideoRecord:
    blank = VideoRecord(
        path=source.path, kind=source.kind, size=source.size, mtime_ns=source.mtime_ns
    )
    return replace(blank, **known)  # type: ignore[arg-type]


def _finished(video: EncodedVideo) -> VideoRecord:
    if video.error is not None:
        reason, transient = str(video.error), video.error.transient
        return _record(video.source, reason=reason, transient=transient)
    duration = video.windows[-1].end
    return _record(video.source, digest=video.digest, note=video.note, duration=duration)


def _note(result: Indexed, record: VideoRecord, count: int) -> None:
    result.current = record.path
    result.bytes_done += record.size
    if record.reason:
        result.failed.append((record.path, record.reason))
        return
    result.indexed += 1
    result.windows += count
    result.seconds += record.duration
    if record.note:
        result.notes.append((record.path, record.note))


def _forget_missing(
    store: Store, paths: Sequence[Path], found: set[Path], prune: bool, result: Indexed
) -> None:
    tops = [top for top in map(absolute, paths) if exists_at(top)]
    below = (r for r in store.videos() if any(r.path.is_relative_to(top) for top in tops))
    gone = [record for record in below if record.path not in found and not _there(record)]
    if prune:
        store.remove(gone)
        result.pruned = len(gone)
    else:
        result.missing = len(gone)


def _there(record: VideoRecord) -> bool:
    """Whether a video is still on disk, as far as one may look."""
    try:
        return bool(frame_files(record.path)) if record.kind == "frames" else record.path.exists()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # may not be looked at, which is not the same as gone
        return True

"""From folders to an index: find, decode, encode, write. Resumable at every video.

A video is written when its last window is encoded, so whatever ends the run, what is written stays.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from sureshot.library.encode import EncodedVideo, content_digest, encode_videos
from sureshot.media.discover import Source, Unreadable, discover, frame_files
from sureshot.models.encoders.protocol import Encoder
from sureshot.store.rows import EncodedWindow, VideoRecord
from sureshot.store.store import Store


@dataclass(slots=True)
class Report:
    """What a run did; handed to the observer as it grows, and returned at the end.

    Attributes:
        found: videos at or below the paths.
        bytes_found: their size.
        bytes_done: size of those dealt with, for progress.
        bytes_begun: of the videos being encoded now, about as much as is encoded.
        indexed: videos decoded, encoded and written.
        unchanged: videos that the index already had.
        moved: videos found again under another name, not encoded again.
        copied: videos whose content was already there under another name.
        failed: paths that could not be indexed, with reasons.
        notes: paths that were indexed in spite of some damage, with what it was.
        known_failures: files that failed in an earlier run, unchanged since, not tried again.
        pruned: videos removed because their files are gone.
        missing: videos whose files are gone and which stay until ``prune``.
        windows: windows written.
        seconds: length of the videos indexed.
        elapsed: seconds the run took.
        current: the video dealt with last.
        interrupted: whether the run was stopped before its end.
    """

    found: int = 0
    bytes_found: int = 0
    bytes_done: int = 0
    bytes_begun: int = 0
    indexed: int = 0
    unchanged: int = 0
    moved: int = 0
    copied: int = 0
    failed: list[tuple[Path, str]] = field(default_factory=list)
    notes: list[tuple[Path, str]] = field(default_factory=list)
    known_failures: int = 0
    pruned: int = 0
    missing: int = 0
    windows: int = 0
    seconds: float = 0.0
    elapsed: float = 0.0
    current: Path | None = None
    interrupted: bool = False


def ingest(
    store: Store,
    encoder: Encoder,
    paths: Sequence[Path],
    *,
    force: bool = False,
    prune: bool = False,
    observe: Callable[[Report], None] = lambda report: None,
    workers: int | None = None,
) -> Report:
    """Bring the index up to date with the videos at or below the paths.

    Args:
        store: opened for this encoder's model.
        encoder: that encoder.
        paths: files and folders; folders are searched whole.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        observe: called with the growing report after every step; may raise KeyboardInterrupt.
        workers: decoding threads; None takes half the cores, at most four.

    Returns:
        The report. ``interrupted`` is set if Ctrl-C ended the run; what was written stays.

    Raises:
        StoreError: the index cannot be written. Videos written before stay.
    """
    began = time.monotonic()
    report = Report()
    known = {record.path: record for record in store.videos()}
    begun: dict[Path, int] = {}

    def advance(source: Source, share: float) -> None:
        begun[source.path] = max(begun.get(source.path, 0), int(share * source.size))
        tell()

    def tell() -> None:
        report.bytes_begun = sum(begun.values())
        report.elapsed = time.monotonic() - began
        observe(report)

    try:
        todo = _plan(store, known, paths, force, report, observe)
        encoding = encode_videos(todo, store.settings, encoder, workers=workers, advance=advance)
        with closing(encoding) as videos:
            for video in videos:
                _settle(store, known.get(video.source.path), video, report)
                begun.pop(video.source.path, None)
                tell()
        _forget_missing(store, paths, prune, report)
        store.sweep()
        if report.indexed + report.pruned + report.moved + report.copied:
            store.compact()
    except KeyboardInterrupt:
        report.interrupted = True
    report.elapsed = time.monotonic() - began
    return report


def _plan(
    store: Store,
    known: Mapping[Path, VideoRecord],
    paths: Sequence[Path],
    force: bool,
    report: Report,
    observe: Callable[[Report], None],
) -> list[Source]:
    """The sources that must be decoded; everything else is dealt with here."""
    by_size: dict[int, list[VideoRecord]] = defaultdict(list)
    for record in known.values():
        if not record.reason:
            by_size[record.size].append(record)
    todo = []
    for source in _find(paths, report, observe):
        if force or not _up_to_date(
            store, source, known.get(source.path), by_size[source.size], report
        ):
            todo.append(source)
        else:
            report.bytes_done += source.size
            observe(report)
    return todo


def _find(paths: Sequence[Path], report: Report, observe: Callable[[Report], None]) -> list[Source]:
    """Every video at or below the paths; what cannot be looked at is reported."""
    sources: list[Source] = []
    for found in discover(paths):
        if isinstance(found, Unreadable):
            report.failed.append((found.path, found.reason))
            continue
        sources.append(found)
        report.found += 1
        report.bytes_found += found.size
        if report.found % 200 == 0:
            observe(report)
    return sources


def _up_to_date(
    store: Store,
    source: Source,
    record: VideoRecord | None,
    same_size: list[VideoRecord],
    report: Report,
) -> bool:
    """Whether the index has this video, or could be given it without decoding."""
    if record and _stamped(record, source):
        if not record.reason:
            report.unchanged += 1
        elif not record.transient:
            report.known_failures += 1
        return not record.transient
    if not same_size:
        return False
    try:
        digest = content_digest(source)
    except OSError:
        return False  # decoding meets the same error and reports it
    if record and not record.reason and record.digest == digest:
        # Touched, not changed.
        store.touch(replace(record, mtime_ns=source.mtime_ns))
        report.unchanged += 1
        return True
    twins = [r for r in same_size if (r.kind, r.digest) == (source.kind, digest)]
    return bool(twins) and _take_over(store, twins[0], source, same_size, report)


def _take_over(
    store: Store,
    twin: VideoRecord,
    source: Source,
    same_size: list[VideoRecord],
    report: Report,
) -> bool:
    """Give a video the windows of its twin; False if another process has taken them away."""
    new = _record(source, digest=twin.digest)
    if not store.copy(twin, new):
        return False
    same_size.append(replace(new, windows=twin.windows, duration=twin.duration, note=twin.note))
    if _there(twin):
        report.copied += 1
    else:
        store.remove([twin])
        same_size.remove(twin)
        report.moved += 1
    return True


def _settle(store: Store, old: VideoRecord | None, video: EncodedVideo, report: Report) -> None:
    """Write and report what became of a video; ``old`` is what was known of it before."""
    record = _finished(video)
    try:
        _write(store, old, record, video.windows)
    except KeyboardInterrupt:
        # It may be written or not. Once more, so that the report of the run is true.
        _write(store, old, record, video.windows)
        _note(report, record, len(video.windows))
        raise
    _note(report, record, len(video.windows))


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
    blank = VideoRecord(source.path, source.kind, source.size, source.mtime_ns)
    return replace(blank, **known)  # type: ignore[arg-type]


def _finished(video: EncodedVideo) -> VideoRecord:
    if video.error is not None:
        reason, transient = str(video.error), video.error.transient
        return _record(video.source, reason=reason, transient=transient)
    duration = video.windows[-1].end
    return _record(video.source, digest=video.digest, note=video.note, duration=duration)


def _note(report: Report, record: VideoRecord, count: int) -> None:
    report.current = record.path
    report.bytes_done += record.size
    if record.reason:
        report.failed.append((record.path, record.reason))
        return
    report.indexed += 1
    report.windows += count
    report.seconds += record.duration
    if record.note:
        report.notes.append((record.path, record.note))


def _forget_missing(store: Store, paths: Sequence[Path], prune: bool, report: Report) -> None:
    tops = [Path(os.path.abspath(p.expanduser())) for p in paths]  # noqa: PTH100
    tops = [top for top in tops if os.path.exists(top)]  # noqa: PTH110 - no error where one may not look
    gone = [
        record
        for record in store.videos()
        if any(record.path.is_relative_to(top) for top in tops) and not _there(record)
    ]
    if prune:
        store.remove(gone)
        report.pruned = len(gone)
    else:
        report.missing = len(gone)


def _there(record: VideoRecord) -> bool:
    """Whether a video is still on disk, as far as one may look."""
    try:
        return bool(frame_files(record.path)) if record.kind == "frames" else record.path.exists()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # may not be looked at, which is not the same as gone
        return True

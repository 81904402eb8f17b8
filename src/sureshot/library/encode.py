"""Videos to encoded windows: threads decode, the caller's thread encodes in batches.

Both halves give the interpreter free while they work, so decoding hides behind encoding.
"""

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sureshot.errors import VideoError
from sureshot.library.stretches import Stretches
from sureshot.media.ahead import beat, stream
from sureshot.media.discover import Source, frame_files
from sureshot.media.video import open_video, unreadable
from sureshot.media.windows import Window, windows
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.encoders.together import Prepared, encode_together
from sureshot.objects.path import ObjectPath
from sureshot.store.header import IndexSettings
from sureshot.store.rows import EncodedWindow

_BATCH = 32  # frames encoded at once, windows of several videos together
_AHEAD = 12  # decoded windows that may wait for the encoder
# Told of a video, of which share of it is encoded, and up to which second.
Advance = Callable[[Source, float, float], None]


@dataclass(frozen=True, slots=True)
class EncodedVideo:
    """What became of one video.

    Attributes:
        source: the file or folder.
        windows: its windows in the order of time; empty if it failed.
        digest: digest of its content, as `content_digest` gives it; empty if it failed.
        note: what was wrong with it but did not stop it.
        error: why it failed, if it did.
    """

    source: Source
    windows: list[EncodedWindow]
    digest: str = ""
    note: str = ""
    error: VideoError | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """One decoded window on its way to the encoder.

    Attributes:
        source: the video.
        window: times and pictures.
        prepared: the pictures as the encoder takes them.
        share: part of the video that has passed with this window, from 0 to 1; 0 where its
            length is not known.
    """

    source: Source
    window: Window
    prepared: Prepared
    share: float


@dataclass(frozen=True, slots=True)
class _End:
    """All windows of a video have been sent, or it failed with an error."""

    source: Source
    digest: str = ""
    note: str = ""
    error: VideoError | None = None


def encode_videos(
    sources: Sequence[Source],
    settings: IndexSettings,
    encoder: Encoder,
    *,
    workers: int | None = None,
    advance: Advance = lambda source, share, seconds: None,
) -> Generator[EncodedVideo, None, None]:
    """Decode and encode videos; each comes out as soon as it is complete, in no fixed order.

    To end early, close it (`contextlib.closing`); the decoding threads end with it.

    Args:
        sources: what to read; at most a few windows of each are in memory at once.
        settings: how to cut and sample.
        encoder: called from this thread only, but for `Encoder.prepare`.
        workers: decoding threads; None takes half the cores, at most four.
        advance: called after each window with the share of its video that is encoded, from 0 to 1,
            as far as the length that the video claims is true, and with where the window ends.
    """
    decode = partial(_decode, settings=settings, encoder=encoder)
    decoding = stream(decode, sources, waiting=_AHEAD, workers=workers, stuck=_given_up)
    with contextlib.closing(decoding) as messages:
        yield from _encoded(messages, settings, encoder, advance)


def encode_video(source: Source, settings: IndexSettings, encoder: Encoder) -> EncodedVideo:
    """Decode and encode one video.

    Raises:
        VideoError: it cannot be read; the message is the reason, without the path.
    """
    (video,) = encode_videos([source], settings, encoder, workers=1)
    if video.error is not None:
        raise video.error
    return video


def content_digest(source: Source) -> str:
    """Digest of a video's bytes, equal for copies whatever their names.

    Of an object it is what the storage tells its content by, as reading it whole costs a download.
    Copies have the same, but not where they were uploaded in other parts.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(source.path, ObjectPath):
        return f"etag-{source.path.etag()}"
    digest = hashlib.blake2b(digest_size=20)
    files = frame_files(source.path) if source.kind == "frames" else [source.path]
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                beat()
                digest.update(block)
    return digest.hexdigest()


def _decode(source: Source, settings: IndexSettings, encoder: Encoder) -> Iterator[_Part | _End]:
    """The windows of one video, then its end."""
    try:
        note = yield from _decode_windows(source, settings, encoder)
        digest = content_digest(source)
        if _stamp(source) != (source.size, source.mtime_ns):
            raise VideoError("changed while it was being read", transient=True)
        yield _End(source=source, digest=digest, note=note)
    except VideoError as error:
        yield _End(source=source, error=error)
    except OSError as error:
        yield _End(source=source, error=unreadable(error))
    except Exception as error:
        # Foreign files reach corners of ffmpeg nobody has seen; one of them must not cost the rest
        # of the folder. The reason is kept and shown like any other.
        reason = f"cannot be decoded ({type(error).__name__}: {error})"
        yield _End(source=source, error=VideoError(reason))


def _given_up(source: Source) -> _End:
    """The end of a video whose decoder does not come back."""
    return _End(source=source, error=VideoError("was given up, as decoding it hung"))


def _decode_windows(
    source: Source, settings: IndexSettings, encoder: Encoder
) -> Generator[_Part, None, str]:
    """The windows of one video; returns what was wrong with it."""
    step = settings.window / settings.frames
    longest = min(settings.look, settings.window) if _looks(settings) else settings.window
    count = 0
    with open_video(source, decode=settings.decode, step=step, rate=settings.frame_rate) as video:
        for window in windows(
            video,
            longest=longest,
            samples=settings.frames,
            size=encoder.frame_size,
            scenes=settings.scenes,
        ):
            share = min(window.end / video.duration, 1.0) if video.duration else 0.0
            prepared = encoder.prepare(window.images)
            yield _Part(source=source, window=window, prepared=prepared, share=share)
            count += 1
    if not count:
        raise VideoError("holds no frame that can be decoded")
    return video.note


def _looks(settings: IndexSettings) -> bool:
    """Whether windows are put together anew by what their frames show."""
    return settings.scenes and settings.look > 0


def _stamp(source: Source) -> tuple[int, int]:
    """Size and modification time of a video now, as `sureshot.media.discover` takes them."""
    files = frame_files(source.path) if source.kind == "frames" else [source.path]
    stats = [file.stat() for file in files]
    if not stats:
        raise VideoError("has vanished", transient=True)
    return sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats)


def _encoded(
    messages: Iterator[_Part | _End],
    settings: IndexSettings,
    encoder: Encoder,
    advance: Advance,
) -> Iterator[EncodedVideo]:
    """Encode windows in batches across videos; a video comes out when it is complete."""
    done: dict[Path, Stretches] = defaultdict(partial(_stretches, settings))
    waiting: list[_Part] = []

    def flush() -> None:
        encoded_parts = encode_together(encoder, [part.prepared for part in waiting])
        for part, features in zip(waiting, encoded_parts, strict=True):
            window = part.window
            encoded = EncodedWindow(
                start=window.start,
                end=window.end,
                times=window.times,
                signatures=window.signatures,
                frames=features.frames,
            )
            done[part.source.path].add(encoded, follows=window.follows)
            advance(part.source, part.share, window.end)
        waiting.clear()

    ended: list[_End] = []
    for message in messages:
        if isinstance(message, _Part):
            waiting.append(message)
        else:
            ended.append(message)
        # Short videos fill a batch together, so that each costs its share only.
        if sum(len(p.prepared) for p in waiting) >= _BATCH or not waiting or len(ended) >= _AHEAD:
            flush()
            yield from (_complete(end, done.pop(end.source.path, None)) for end in ended)
            ended = []
    flush()
    yield from (_complete(end, done.pop(end.source.path, None)) for end in ended)


def _stretches(settings: IndexSettings) -> Stretches:
    """What the windows of one video come into."""
    return Stretches(settings.window, settings.frames, by_frames=_looks(settings))


def _complete(end: _End, encoded: Stretches | None) -> EncodedVideo:
    """A video all of whose messages have come; what a failed one gave so far is dropped."""
    if end.error is not None:
        return EncodedVideo(source=end.source, windows=[], error=end.error)
    windows = [] if encoded is None else encoded.windows()
    return EncodedVideo(source=end.source, windows=windows, digest=end.digest, note=end.note)

"""Videos to encoded windows: threads decode, the caller's thread encodes in batches.

Both halves give the interpreter free while they work, so decoding hides behind encoding.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from sureshot.errors import VideoError
from sureshot.media.dates import Shot, read_shot
from sureshot.media.discover import Source, frame_files, open_regular
from sureshot.media.frames import Frame
from sureshot.media.video import open_video, unreadable
from sureshot.media.windows import SHORTEST, Window, evenly, windows
from sureshot.media.workers import heartbeat, report, stream
from sureshot.models.encoders.base import Encoder, Prepared, encode_together, unit_vectors
from sureshot.models.load import Retriever
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow, IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo

# Seconds for which a part must save what frames vary by to be worth its price:
_NOISE = 10.0  # the variance of frames side by side
_SPREAD = 1.0  # the variance of all frames
_LEAST = 1e-6  # so that equal frames are never parted


def as_trained(settings: IndexSettings, encoder: Encoder) -> IndexSettings:
    """Settings that show an encoder as many frames as it was trained on, if it is a trained model.

    One whose encoder was trained too has seen frames with vectors of their own.
    """
    if not isinstance(encoder, Retriever):
        return settings
    still = 0.0 if encoder.is_tuned else settings.still
    return replace(settings, frames=encoder.frames, still=still)


def parts(
    frames: Float[np.ndarray, "frames dim"],
    lasting: Float[np.ndarray, " frames"],
    *,
    price: float,
    shortest: float,
    longest: float,
) -> list[int]:
    r"""The first frame of each part of a stretch, so parted that every part varies little.

    .. math:: \min_{\text{parts } P} \sum_{p \in P} \Big( \beta + \sum_{f \in p} w_f
        \Big\lVert x_f - \frac{\sum_{g \in p} w_g x_g}{\sum_{g \in p} w_g} \Big\rVert^2 \Big)

    Args:
        frames: frame vectors in the order of time, compared at unit length.
        lasting: seconds that each frame stands for, above 0.
        price: what a part costs, as `price_of` works it out.
        shortest, longest: seconds, left only where nothing else is possible.

    References:
        Harchaoui and Cappé 2007, Retrospective Multiple Change-Point Estimation with Kernels, with
        a linear kernel; the least cost is found by dynamic programming.
    """
    vectors = unit_vectors(frames.astype(np.float64))
    passed = np.concatenate([[0.0], np.cumsum(lasting)])
    sums = np.concatenate(
        [np.zeros((1, frames.shape[1])), np.cumsum(vectors * lasting[:, None], 0)]
    )
    squares = np.concatenate([[0.0], np.cumsum(lasting * (vectors**2).sum(1))])
    least = np.zeros(len(frames) + 1)  # the cost of what comes from each frame on
    ends = np.zeros(len(frames), int)
    for first in reversed(range(len(frames))):
        last = int(np.searchsorted(passed, passed[first] + longest + 1e-6, side="right"))
        after = np.arange(first + 1, max(last, first + 2))
        seconds = passed[after] - passed[first]
        mean = ((sums[after] - sums[first]) ** 2).sum(1) / seconds
        cost = price + squares[after] - squares[first] - mean + least[after]
        cost[seconds < shortest - 1e-6] += squares[-1] + price
        # Of equal costs the longest part's: what stands still is parted by length, from its start.
        best = len(after) - 1 - int(np.round(cost[::-1], 9).argmin())
        least[first], ends[first] = cost[best], after[best]
    firsts = [0]
    while ends[firsts[-1]] < len(frames):
        firsts.append(int(ends[firsts[-1]]))
    return firsts


def price_of(
    frames: Float[np.ndarray, "frames dim"], lasting: Float[np.ndarray, " frames"]
) -> float:
    """What another part must save to be worth it, on the scale of the encoder and of the video.

    A change counts if it is large next to what all frames of the video differ by, and next to what
    frames side by side differ by: a film of many scenes has the first, a shaky shot the second.

    The frames are those of a whole video, as `parts` takes them. The price is in squared lengths of
    unit vectors times seconds, above 0.
    """
    vectors = unit_vectors(frames.astype(np.float64))
    mean = np.average(vectors, axis=0, weights=lasting)
    spread = float(np.average(((vectors - mean) ** 2).sum(1), weights=lasting))
    steps = ((vectors[1:] - vectors[:-1]) ** 2).sum(1) / 2
    noise = float(np.median(steps)) if len(steps) else 0.0
    return max(_NOISE * noise, _SPREAD * spread, _LEAST)


_LARGEST = float(np.finfo(np.float16).max)  # as which vectors are stored
_UNUSABLE = "cannot be searched, as the model's vectors of it are no numbers (NaN)"
_BLOCK = 90  # windows, at most 15 minutes, after which a long film is settled so far


class SceneMerger:
    """The windows of one video as they come from the encoder.

    A block at a time is settled and keeps only the frames that will be stored, so that memory grows
    with a film no faster than its index. A scene that goes on over the end of a block is two
    windows, as one is that is too long.

    Windows are put together again if the settings say so; else they are left as they come.
    """

    def __init__(self, settings: IndexSettings) -> None:
        self._settings = settings
        self._settled: list[EncodedWindow] = []
        self._waiting: list[tuple[EncodedWindow, bool]] = []
        self.is_unusable = False  # one of its vectors has what is no number, or cannot be stored

    def add(self, window: EncodedWindow, *, follows: bool) -> None:
        """Take another window, and whether it goes on with the scene of the one before it."""
        if not np.abs(window.frames).max() <= _LARGEST:  # so it is with NaN
            self.is_unusable = True
            return
        self._waiting.append((window, follows))
        if len(self._waiting) == _BLOCK:
            self._settle()

    def windows(self) -> list[EncodedWindow]:
        """All windows that are to be stored, in the order of time."""
        self._settle()
        return sorted(self._settled, key=lambda window: window.start)

    def _settle(self) -> None:
        windows = sorted(self._waiting, key=lambda pair: pair[0].start)
        if windows and _looks(self._settings):
            longest, most = self._settings.window, self._settings.frames
            self._settled += by_scene(windows, longest=longest, max_frames=most)
        else:
            self._settled += [window for window, _ in windows]
        self._waiting = []


def by_scene(
    windows: Sequence[tuple[EncodedWindow, bool]], *, longest: float, max_frames: int
) -> list[EncodedWindow]:
    """Windows of one video parted where its frames say that the scene changes.

    They come in the order of time, each with whether it goes on with the scene of the one before
    it, as far as colours tell. Of more than ``max_frames`` as many evenly over a window are kept.
    """
    firsts = [row for row, (_, goes_on) in enumerate(windows) if not (row and goes_on)]
    ranges = pairwise([*firsts, len(windows)])
    runs = [[window for window, _ in windows[first:after]] for first, after in ranges]
    stretches = [
        EncodedWindow(
            start=run[0].start,
            end=run[-1].end,
            times=np.concatenate([w.times for w in run]),
            signatures=np.concatenate([w.signatures for w in run]),
            frames=np.concatenate([w.frames for w in run]),
        )
        for run in runs
    ]
    price = price_of(
        np.concatenate([s.frames for s in stretches]),
        np.concatenate([np.diff(_edges(s)) for s in stretches]),
    )
    return [part for s in stretches for part in _parted(s, price, longest, max_frames)]


def _edges(window: EncodedWindow) -> Float[np.ndarray, " edges"]:
    """Seconds between which each frame stands for what is shown, one more than frames."""
    between = (window.times[1:] + window.times[:-1]) / 2
    return np.concatenate([[window.start], between, [window.end]])


def _parted(
    window: EncodedWindow, price: float, longest: float, max_frames: int
) -> Iterator[EncodedWindow]:
    edges = _edges(window)
    firsts = parts(window.frames, np.diff(edges), price=price, shortest=SHORTEST, longest=longest)
    for first, after in pairwise([*firsts, len(window.times)]):
        start, end = edges[first].item(), edges[after].item()
        rows = first + np.array(evenly(window.times[first:after], start, end, max_frames))
        yield EncodedWindow(
            start=start,
            end=end,
            times=window.times[rows],
            signatures=window.signatures[rows],
            frames=window.frames[rows],
        )


_BATCH = 32  # frames encoded at once, windows of several videos together
_AHEAD = 12  # decoded windows that may wait for the encoder
_REPORTED = 1.0  # seconds of decoding after which it is said how far it is, window or not


@dataclass(frozen=True, slots=True)
class VideoProgress:
    """How much of a video is encoded: about so many of its bytes, and up to which second."""

    path: Path
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class EncodedVideo:
    """A video, or why it failed, and its windows in the order of time; none of a failed one."""

    record: VideoRecord
    windows: list[EncodedWindow]


@dataclass(frozen=True, slots=True)
class _Part:
    """One decoded window on its way to the encoder, and how far its video is with it."""

    window: Window
    prepared: Prepared
    progress: VideoProgress


def encode_videos(
    sources: Sequence[Source],
    settings: IndexSettings,
    encoder: Encoder,
    *,
    workers: int | None = None,
    near: float | None = None,
) -> Generator[EncodedVideo | VideoProgress, None, None]:
    """Decode and encode videos; each comes out as soon as it is complete, in no fixed order.

    After each window, and now and then in one that takes long, comes how far its video is, as far
    as the length that the video claims is true. To end early, close it (`contextlib.closing`); the
    decoding threads end with it.

    Args:
        encoder: called from this thread only, but for `Encoder.prepare`.
        workers: decoding threads; None takes half the cores, at most four.
        near: read only what is no further from this second than a window may last; no digest.
    """
    decode = partial(_decode, settings=settings, encoder=encoder, near=near)
    hung = VideoError("was given up, as decoding it hung")
    given_up = partial(_failed, error=hung)
    decoding = stream(decode, sources, waiting=_AHEAD, workers=workers, stuck=given_up)
    # Its threads wait for work by spinning, which costs the decoders and the network a third.
    with closing(decoding) as messages, threadpool_limits(1, user_api="blas"):
        yield from _encoded(messages, settings, encoder)


def encode_video(
    source: Source, settings: IndexSettings, encoder: Encoder, near: float | None = None
) -> EncodedVideo:
    """Decode and encode one video, or what is near a second of it; VideoError where that fails."""
    encoded = encode_videos([source], settings, encoder, workers=1, near=near)
    (video,) = (one for one in encoded if isinstance(one, EncodedVideo))
    starts = video.windows[0].start if video.windows else np.inf
    if near is not None and settings.window < near < starts:  # to seek led elsewhere
        return encode_video(source, settings, encoder)
    if video.record.reason:
        raise VideoError(video.record.reason, transient=video.record.transient)
    return video


def content_digest(source: Source) -> str:
    """Digest of a video's bytes, equal for copies whatever their names.

    Of an object it is what the storage knows its content by, if anything, as reading it whole costs
    a download. Copies have the same, but not where they were uploaded in other parts.
    """
    path = source.path
    if isinstance(path, ObjectPath) and (etag := (source.etag or path.look().etag).strip('"')):
        return f"etag-{etag}"
    digest = hashlib.blake2b(digest_size=20)
    for path in files_of(source):
        with open_regular(path) as file:
            while block := file.read(1 << 20):
                heartbeat()
                digest.update(block)
    return digest.hexdigest()


_Message = _Part | VideoProgress | VideoRecord


def _decode(
    source: Source, settings: IndexSettings, encoder: Encoder, near: float | None
) -> Iterator[_Message]:
    """The windows of one video, then what is known of it, or why it failed."""
    try:
        note, end, shot = yield from _decode_windows(source, settings, encoder, near)
        digest = content_digest(source) if near is None else ""
        stats = [file.stat() for file in files_of(source)]
        if not stats:
            raise VideoError("has vanished", transient=True)
        size, newest = sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats)
        if (size, newest) != (source.size, source.mtime_ns):
            raise VideoError("changed while it was being read", transient=True)
        yield record_of(
            source, duration=end, digest=digest, note=note, shot=shot.time, shot_from=shot.source
        )
    except VideoError as error:
        yield _failed(source, error)
    except OSError as error:
        yield _failed(source, unreadable(error))
    except Exception as error:
        # Foreign files reach untested corners of ffmpeg; one of them must not cost the rest
        # of the folder. The reason is kept and shown like any other.
        reason = f"cannot be decoded ({type(error).__name__}: {error})"
        yield _failed(source, VideoError(reason))


def _failed(source: Source | VideoRecord, error: VideoError) -> VideoRecord:
    return record_of(source, reason=str(error), transient=error.transient)


def _decode_windows(
    source: Source, settings: IndexSettings, encoder: Encoder, near: float | None
) -> Generator[_Part, None, tuple[str, float, Shot]]:
    """The windows of one video; returns what was wrong, where it ends, when it was recorded."""
    longest = min(settings.decode_window, settings.window) if _looks(settings) else settings.window
    count = 0
    rate = settings.frame_rate
    with open_video(source, decode=settings.decode, gap=SHORTEST, rate=rate) as video:

        def far(seconds: float) -> VideoProgress:
            share = min(seconds / video.duration, 1.0) if video.duration else 0.0  # or unknown
            return VideoProgress(source.path, int(share * source.size), seconds)

        if near is not None:
            video.seek(near, settings.window)
        until = np.inf if near is None else near + settings.window
        for window in windows(
            _reported(video, far, until),
            longest=longest,
            samples=settings.frames,
            size=encoder.frame_size,
            scenes=settings.scenes,
            still=settings.still,
        ):
            yield _Part(window, encoder.prepare(window.images), far(window.end))
            count += 1
    if not count:
        raise VideoError("holds no frame that can be decoded")
    return video.note, video.end, read_shot(source, video.metadata)


def _reported(
    frames: Iterable[Frame], far: Callable[[float], VideoProgress], until: float
) -> Iterator[Frame]:
    """The frames up to the first one after a time; how far they are is reported now and then."""
    spent, began = 0.0, time.monotonic()
    for frame in frames:
        spent += time.monotonic() - began
        if spent >= _REPORTED:
            report(far(frame.time))
            spent = 0.0
        yield frame
        if frame.time > until:  # and until it comes up the one before it is shown
            return
        began = time.monotonic()


def _looks(settings: IndexSettings) -> bool:
    """Whether windows are put together again by what their frames show."""
    return settings.scenes and settings.decode_window > 0


def files_of(source: Source) -> list[Path]:
    """The files that a video consists of."""
    return frame_files(source.path) if source.kind == "frames" else [source.path]


def _encoded(
    messages: Iterator[_Message], settings: IndexSettings, encoder: Encoder
) -> Iterator[EncodedVideo | VideoProgress]:
    """Encode windows in batches across videos; a video comes out when it is complete."""
    mergers: dict[Path, SceneMerger] = defaultdict(partial(SceneMerger, settings))
    waiting: list[_Part] = []
    ended: list[VideoRecord] = []

    def flush() -> Iterator[EncodedVideo | VideoProgress]:
        encoded = encode_together(encoder, [part.prepared for part in waiting])
        for part, features in zip(waiting, encoded, strict=True):
            window = part.window
            one = EncodedWindow(
                start=window.start,
                end=window.end,
                times=window.times,
                signatures=window.signatures,
                frames=features.frames[window.shown],
            )
            mergers[part.progress.path].add(one, follows=window.follows)
            yield part.progress
        waiting.clear()
        for record in ended:
            merger = mergers.pop(record.path, SceneMerger(settings))
            if merger.is_unusable and not record.reason:
                record = _failed(record, VideoError(_UNUSABLE))
            if record.reason:  # what a failed one gave so far is dropped
                yield EncodedVideo(record, [])
                continue
            whole = merger.windows()
            end = max(record.duration, whole[-1].end)
            yield EncodedVideo(replace(record, duration=end), whole)
        ended.clear()

    for message in messages:
        if isinstance(message, VideoProgress):
            # Decoding is what takes long, so that nothing is gained by waiting for a whole batch.
            yield from flush()
            yield message
            continue
        if isinstance(message, _Part):
            waiting.append(message)
        else:
            ended.append(message)
        # Short videos fill a batch together, so that each costs its share only.
        if sum(len(p.prepared) for p in waiting) >= _BATCH or not waiting or len(ended) >= _AHEAD:
            yield from flush()
    yield from flush()


# What becomes of some videos, and now and then how far one is; closed to end early.
Packing = Generator[StagedVideo | VideoProgress, None, None]


def pack_videos(
    store: Store, encoder: Encoder, sources: Sequence[Source], *, workers: int | None = None
) -> Packing:
    """Write the windows of what `encode_videos` gives next to the index."""
    with closing(encode_videos(sources, store.settings, encoder, workers=workers)) as videos:
        for video in videos:
            if isinstance(video, VideoProgress):
                yield video
            elif video.record.reason:
                yield StagedVideo(video.record)
            else:
                yield store.stage(video.record, video.windows)


def record_of(source: Source | VideoRecord, **known: Any) -> VideoRecord:
    """What an index knows of a source by looking at it, and some more."""
    return VideoRecord(
        path=source.path, kind=source.kind, size=source.size, mtime_ns=source.mtime_ns, **known
    )

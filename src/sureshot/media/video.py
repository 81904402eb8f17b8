"""Decode a file or a folder of frames in one pass, whatever the container.

PyAV carries its own ffmpeg. What files get wrong is handled here: damage in the middle, a missing
end, missing or jumping times. Rotation, alpha and pixel formats are handled in `frames`.
"""

import contextlib
import errno
import itertools
import math
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import av
import av.error
import numpy as np
from av.stream import Disposition
from jaxtyping import UInt8

from sureshot.errors import VideoError
from sureshot.media.container import TimeBudget, limit_decoder, open_container, within_budget
from sureshot.media.discover import Source, frame_files, open_regular
from sureshot.media.frames import FileFrame, Frame, ImageFrame, Scalers, is_photo, read_image
from sureshot.media.packets import Needed
from sureshot.media.workers import heartbeat
from sureshot.text import plain

_DEFAULT_STEP = 0.04  # seconds between frames where a file does not say
_SET_BACK = 1.0  # seconds: a clock that falls by more was set back; by less, it trembles
_LEAP = 43_200.0  # seconds: no pause is that long, but a 33-bit clock set back leaps 26 hours ahead


class Clock:
    """Times that begin near 0 and never fall, whatever the clock of the file does."""

    def __init__(self, stream: Any) -> None:
        rate = getattr(stream, "average_rate", 0) or getattr(stream, "guessed_rate", 0)
        self._step = 1 / float(rate) if rate and 0.001 < float(rate) < 1000 else _DEFAULT_STEP
        self._tick = float(stream.time_base or 0)
        self._ahead = 0.0  # seconds that packets are moved by
        self._newest: float | None = None
        self.now = -self._step  # the last time given
        self.was_set = False  # in the middle of the file
        self.start: float | None = None  # what the file's clock says at time 0, once it is known
        if stream.start_time is not None and stream.time_base:
            self.start = start_of(stream)

    def correct(self, packet: Any) -> Any:
        """The same packet, made to follow the one before it if the clock was set back in between.

        Two recordings in one file do that. A damaged frame may come out of the decoder late, too,
        but packets are stored in the order of their decoding time.
        """
        if packet.dts is None or not self._tick:
            return packet
        decoded = packet.dts * self._tick
        if self._newest is not None:
            passed = decoded + self._ahead - self._newest
            if not -_SET_BACK <= passed <= _LEAP:
                self.was_set = True
                self._ahead = self._newest + self._step - decoded
        self._newest = decoded + self._ahead
        if ticks := round(self._ahead / self._tick):
            packet.dts += ticks
            if packet.pts is not None:
                packet.pts += ticks
        return packet

    def lead(self, container: Any, stream: Any, stamp: float, budget: TimeBudget) -> None:
        """Lead a file whose clock was set back to its last keyframe at or before a second of this.

        Only its packets, read from the start, say where that is; none of them is decoded.
        """
        place, found = 0, vars(self).copy()
        for packet in map(self.correct, container.demux(stream)):
            budget.step()
            if not packet.is_keyframe or None in (packet.pts, packet.pos):
                continue
            if packet.pts * packet.time_base > stamp:
                break
            place, found = packet.pos, vars(self).copy()
        vars(self).update(found)
        container.seek(place, unsupported_byte_offset=True)

    def time_of(self, stamp: float | None) -> float:
        """Seconds from the start of a frame that the file puts at ``stamp``, or nowhere."""
        if stamp is None or not math.isfinite(stamp):
            self.now += self._step
        else:
            self.start = stamp if self.start is None else self.start
            self.now = max(self.now, stamp - self.start)
        self.now = max(self.now, 0.0)
        return self.now


_LARGE = 700  # pixels of the shorter side of frames that are shrunk to less than half
_CUT_SHORT = 1.0  # seconds, or 2 % if that is more, that may be missing at the end without a note
# Formats whose head states a length, which is not guessed from what there is of the file.
_STATING = frozenset({"matroska,webm", "flv", "mov,mp4,m4a,3gp,3g2,mj2"})
_ASF = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")  # begins the properties of a WMV file
_STILL = 1.0  # seconds that a last picture or the sound goes on, to count; sound often ends later
_HEAD = 1 << 13  # bytes that hold the properties of a file
_SEEK = 5.0  # seconds ahead from which seeking beats decoding
_STILLS = 600_000_000  # bytes that decoders of stills hold together; a page asks for a hundred
_OPENING = 150_000_000  # bytes that ffmpeg may take to look into one
_PATIENCE = 10.0  # seconds; the page gives a still up after 30
_BACK = (0.0, 10.0, math.inf)  # seconds: how far before its aim a seek is tried
_INSTANT = 1e-3  # seconds: times closer together are one
# What ffmpeg says about nonsense besides "invalid data"; no system says so about reading.
_NONSENSE = frozenset({errno.EINVAL, errno.EPERM, errno.EBUSY})
_UNSEEKABLE = frozenset({"gif", "apng", "webp"})  # each frame is painted over the one before
JOINED = frozenset({"mpegts", "mpeg"})  # recordings may follow each other, each with its clock
_LOOKS = 16  # places at which the clock of such a file is looked at
_FILES = 10_000  # of which what was seen is remembered


class Video:
    """An open video: an iterator over its frames."""

    def __init__(self, duration: float) -> None:
        self.duration = duration  # that the container claims; 0 without a believable claim
        self.note = ""  # what went wrong but did not stop it
        # Once all is read, seconds up to which the last picture stands still, as a slide does while
        # the sound goes on; 0 where it does not.
        self.end = 0.0
        self.held = 0  # bytes that its decoder holds, about
        self.metadata: list[Mapping[str, str]] = []  # of the file, then of each track of pictures
        self.frames: Iterator[Frame] = iter(())  # that are left to read
        self._seek: Callable[[float, float], None] | None = None

    def __iter__(self) -> Iterator[Frame]:
        return self.frames

    def seek(self, time: float, back: float = 0.0) -> bool:
        """Begin with the last keyframe ``back`` seconds before ``time``; whether that was tried.

        To be called before the first frame is read. Some files land elsewhere or begin at their
        start all the same; the frames know their times.
        """
        if self._seek is None or time <= back:
            return False
        self._seek(time, back)
        return True

    def remark(self, remark: str) -> None:
        """Add to the note."""
        self.note = f"{self.note}; {remark}" if self.note else remark

    def remark_damage(self, time: float) -> None:
        """Note where the damage of a file begins."""
        if "damaged" not in self.note:
            # The end of the file may have been read already.
            rest = f"; {self.note}" if self.note else ""
            self.note = f"is damaged near {max(time, 0):.0f} s{rest}"


@contextlib.contextmanager
def open_video(
    source: Source,
    *,
    decode: str = "auto",
    gap: float = 0.0,
    rate: float = 1.0,
    budget: TimeBudget | None = None,
) -> Iterator[Video]:
    """Open a video for one pass; VideoError is the reason why nothing in it can be read.

    Args:
        decode: ``all``, ``keyframes`` or ``auto``, as in `IndexSettings`.
        gap: seconds before a keyframe that ``auto`` leaves out, at most, where nothing changes.
        rate: frames per second of a folder of frames.
        budget: what a file may cost before the rest is left out with a note; None goes by its size.
    """
    with contextlib.ExitStack() as opened:
        if source.kind == "frames":
            files = frames_in(source.path)
            video = Video(len(files) / rate)
            video.frames = _read_folder(video, files, rate)
        elif is_photo(source.path):
            video = Video(0.0)
            video.frames = iter([ImageFrame(0.0, read_image(source.path), source.path)])
        else:
            with reading():
                video = _open_file(source, opened, decode, gap, budget)
        try:
            yield video
        finally:
            # The video and its frames name each other: without this a decoder, whose frames are
            # large, would wait in memory for the garbage collector.
            video.frames, video._seek = iter(()), None


def _open_file(
    source: Source, opened: contextlib.ExitStack, decode: str, gap: float, budget: TimeBudget | None
) -> Video:
    budget = budget or TimeBudget(file_size(source.path))
    container = opened.enter_context(open_container(source.path, budget))
    stream = picture_stream(container)
    video = Video(_claimed_duration(container, stream))
    video.held = limit_decoder(stream)
    tracks = [dict(track.metadata) for track in container.streams.video]
    video.metadata = [dict(container.metadata), *tracks]
    context = stream.codec_context
    if decode == "keyframes":
        context.skip_frame = "NONKEY"
    elif decode == "auto" and min(context.width, context.height) >= _LARGE:
        # What it smooths, edges of blocks, hardly shows in a picture that is shrunk so much.
        context.options = {**context.options, "skip_loop_filter": "all"}
    clock = Clock(stream)
    # Without a known length times are mere guesses, but for Matroska, where each cluster has one.
    timed = video.duration or container.format.name == "matroska,webm"
    if timed and container.format.name not in _UNSEEKABLE:
        video._seek = partial(_seek_to, container, clock, budget, video.duration)
    stated = _stated_duration(container, stream, source.path)
    packets = _packets(video, container, stream, clock, budget, stated)
    packets = (p for p in packets if p.size or p.pts is None)  # an empty one repeats a picture
    # A keyframe of a GIF is one by name only.
    spares = decode == "auto" and container.format.name not in _UNSEEKABLE
    needed = Needed(packets, context, gap) if spares else None
    video.frames = within_budget(_decode(video, packets, needed, stream, clock), budget)
    return video


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raise what the system or ffmpeg says of a video as the `VideoError` of it."""
    try:
        yield
    except (av.error.FFmpegError, OSError) as error:
        raise unreadable(error) from None


@reading()
def file_size(path: Path) -> int:
    """Bytes of a file; what is no file, or an empty one, is refused before ffmpeg waits for it."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise VideoError("has vanished", transient=True) from None
    if not stat.S_ISREG(status.st_mode):
        raise VideoError("is not a regular file")
    if status.st_size == 0:
        raise VideoError("is empty (0 bytes)")
    return status.st_size


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have what is said of a video be a sentence that begins with its path."""
    try:
        yield
    except VideoError as error:
        raise VideoError(f"{plain(path)} {error}.", transient=error.transient) from None


def picture_stream(container: Any) -> Any:
    """The first stream of moving pictures; cover art does not count."""
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            if stream.codec_context is None:
                raise VideoError("uses a codec this build of ffmpeg cannot decode")
            return stream
    raise VideoError("has no video stream")


def start_of(stream: Any) -> float:
    """Where a stream begins by the clock of its file, in seconds; 0 where that does not say."""
    return float((stream.start_time or 0) * (stream.time_base or 0))


def _claimed_duration(container: Any, stream: Any) -> float:
    """What the file says about its length, as a hint. Over a week is not believed."""
    of_stream = float((stream.duration or 0) * (stream.time_base or 0))
    claims = of_stream, (container.duration or 0) / av.time_base
    return next((claim for claim in claims if 0 < claim < 7 * 86400), 0.0)


def _seek_to(
    container: Any, clock: Clock, budget: TimeBudget, end: float, time: float, back: float
) -> None:
    # A format that cannot seek, or that leads before its begin, is read on from where it is,
    # which ends at the same frame. So is one that PyAV trips over, see `_packets`.
    with budget.call(), contextlib.suppress(av.error.FFmpegError, OSError, IndexError):
        start = clock.start or 0.0
        if is_seekable(container):
            aim = max(min(time, end or time) - back, 0.0)
            container.seek(round((aim + start) * av.time_base))
        elif container.format.name in JOINED:
            clock.lead(container, picture_stream(container), start + time - back, budget)


_runs: dict[tuple[Any, ...], bool] = {}  # what was seen of files


def is_seekable(container: Any) -> bool:
    """Whether a time leads to one place in an open file; not where its clock was set back."""
    if container.format.name not in JOINED:
        return container.format.name not in _UNSEEKABLE
    file = container.name, container.size, container.start_time, container.duration
    if file not in _runs:
        stream = picture_stream(container)
        stamps: list[int] = []
        for part in range(_LOOKS):
            container.seek(part * container.size // _LOOKS, unsupported_byte_offset=True)
            # Not every packet says its time.
            known = (packet.dts for packet in container.demux(stream) if packet.dts is not None)
            stamps += itertools.islice(known, 1)
        container.seek(0, unsupported_byte_offset=True)
        if len(_runs) >= _FILES:
            _runs.clear()
        _runs[file] = stamps == sorted(stamps)
    return _runs[file]


def _decode(
    video: Video, packets: Iterator[Any], needed: Needed | None, stream: Any, clock: Clock
) -> Iterator[Frame]:
    """Frames in the order shown."""
    ratio, scalers = pixel_ratio(stream), Scalers()
    any_frame = False
    for packet in packets if needed is None else needed:
        try:
            frames = packet.decode()
            if needed is not None and packet is needed.empty:
                stream.codec_context.flush_buffers()
        except av.error.FFmpegError:  # as many as there may be: the budget of time bounds them
            video.remark_damage(clock.now)
            continue
        for frame in frames:
            if frame.width < 1 or frame.height < 1:
                continue
            any_frame = True
            time = clock.time_of(frame.time)
            if frame.is_corrupt:
                video.remark_damage(clock.now)
            one = FileFrame(time, frame, ratio, scalers)
            if needed is not None:
                needed.show(one, frame.pts)
            yield one
    if not any_frame:
        raise VideoError("holds no frame that can be decoded")


def _packets(
    video: Video, container: Any, stream: Any, clock: Clock, budget: TimeBudget, stated: float
) -> Iterator[Any]:
    """Packets up to the end or to where the file breaks off."""
    ends: dict[int, float] = {stream.index: 0.0}  # seconds up to which each stream goes
    try:
        # Of all streams: where none reaches the length that a file states, it is cut short.
        for packet in container.demux():
            budget.step()
            # At the end comes an empty packet for each stream, by which its decoder gives its last
            # pictures; their `stream_index` is 0 for all of them.
            number = packet.stream.index
            if number == stream.index:
                clock.correct(packet)
            shown = ((packet.pts or 0) + (packet.duration or 0)) * (packet.time_base or 0)
            ends[number] = max(ends.get(number, 0.0), float(shown))
            if number != stream.index:
                continue
            if packet.is_corrupt:
                video.remark_damage(clock.now)
            yield packet
    except IndexError:
        pass  # PyAV trips over a stream that came up midway, when all of ours has been read
    except VideoError as error:
        if clock.now < 0:
            raise
        read = ends[stream.index] - (clock.start or 0.0)
        video.remark(f"is left out from {read:.0f} s on, as it {error}")
        return
    except av.error.FFmpegError as error:
        video.remark(f"breaks off near {ends[stream.index]:.0f} s ({_explain(error)})")
    except OSError as error:
        raise unreadable(error) from None
    _note_end(video, container, stream, clock, ends, stated)


def _note_end(
    video: Video,
    container: Any,
    stream: Any,
    clock: Clock,
    ends: Mapping[int, float],
    stated: float,
) -> None:
    """Note how far a file goes that was read as far as it goes, and whether that is too early."""
    if not clock.was_set:
        shown = [stream.index, *(one.index for one in container.streams.audio)]
        last = max(ends.get(number, 0.0) for number in shown) - (clock.start or 0.0)
        video.end = last if last - clock.now > _STILL else 0.0
    # Only the pictures' own length is theirs: the sound of a sound container may well go on.
    alone = stream.duration or len(container.streams) == 1
    until = ends[stream.index] if alone else max(ends.values())
    stated = 0.0 if clock.was_set else stated
    start = start_of(stream)
    until -= min(start, 0.0)  # of a recording in which the clock of its broadcast ran over
    if stated - until > max(_CUT_SHORT, 0.02 * stated):
        start = max(start, 0.0)
        before = start if start < until else 0.0  # Matroska counts from 0 of its clock
        video.remark(f"ends early: {until - before:.0f} s of {stated - before:.0f} s")


def _stated_duration(container: Any, stream: Any, path: Path) -> float:
    """Seconds that the head of a file states, whatever is left of the file; 0 if none."""
    alone = stream.duration or len(container.streams) == 1
    states = alone or container.format.name in _STATING
    stated = _claimed_duration(container, stream) if states else 0.0
    if container.format.name not in ("avi", "asf"):
        return stated
    # Of these ffmpeg gives the length of what is there.
    with open_regular(path) as file:
        head = file.read(_HEAD) or b""
    with contextlib.suppress(struct.error):
        if head[:4] == b"RIFF" and head[24:28] == b"avih":
            step, count = struct.unpack_from("<I12xI", head, 32)
            return max(stated, step * count / 1e6)
        if (place := head.find(_ASF)) > 0:
            ticks, ahead = struct.unpack_from("<Q8xQ", head, place + 64)
            return max(stated, ticks / 1e7 - ahead / 1e3)
    return stated


def picture_delay(path: Path) -> float:
    """Seconds from where players count, the beginning of a file, to its first picture.

    0 of folders of frames, and of what cannot be read.
    """
    with contextlib.suppress(av.error.FFmpegError, OSError, VideoError), open_container(path) as it:
        return max(start_of(picture_stream(it)) - (it.start_time or 0) / av.time_base, 0.0)
    return 0.0


def pixel_ratio(stream: Any) -> float:
    """Width of a pixel over its height: they need not be square, within reason."""
    ratio = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
    return float(ratio) if ratio and 0.2 < float(ratio) < 5 else 1.0


def unreadable(error: BaseException) -> VideoError:
    """The error of a video that the system or ffmpeg did not read."""
    # ffmpeg's own "invalid data" is no OSError; what the system refuses may be granted next time.
    transient = isinstance(error, OSError) and error.errno not in _NONSENSE
    return VideoError(_explain(error), transient=transient)


def _explain(error: BaseException) -> str:
    """Why, in words a person can act on."""
    number = getattr(error, "errno", None)
    if isinstance(error, av.error.InvalidDataError | av.error.EOFError) or number in _NONSENSE:
        return "is not a video, or is damaged or cut short"
    if isinstance(error, av.error.PatchWelcomeError):
        return "uses a feature this build of ffmpeg cannot decode"
    return str(getattr(error, "strerror", None) or error).lower()


@reading()
def frames_in(folder: Path) -> list[Path]:
    """The files of a folder of frames; VideoError if it is not one (any more)."""
    try:
        files = frame_files(folder)
    except FileNotFoundError:
        raise VideoError("has vanished", transient=True) from None
    if not files:
        raise VideoError("is not a folder of numbered frames")
    return files


def _read_folder(video: Video, files: list[Path], rate: float) -> Iterator[Frame]:
    broken: list[VideoError] = []
    for number, path in enumerate(files):
        try:
            picture = read_image(path)
        except VideoError as error:
            broken.append(VideoError(f"{path.name!r} {error}", transient=error.transient))
            video.note = f"{len(broken)} of {len(files)} frames cannot be read: {broken[0]}"
        else:
            heartbeat()
            yield ImageFrame(number / rate, picture, path)
    if len(broken) == len(files):
        transient = any(error.transient for error in broken)
        raise VideoError(f"holds no frame that can be read: {broken[0]}", transient=transient)


def frames_at(
    path: Path, times: Sequence[float], *, side: int, rate: float = 1.0
) -> list[UInt8[np.ndarray, "height width 3"]]:
    """The RGB frames on screen at given times, by seeking.

    Args:
        times: seconds, rising; the first and last frame stand in for what is beyond them.
        side: most pixels of the shorter side.
        rate: frames per second of a folder of frames.
    """
    if path.is_dir():
        if not 0 < rate < math.inf:
            raise VideoError(f"cannot be shown at a frame rate of {rate:g}; give one above 0")
        files = frames_in(path)
        numbers = [math.floor((time + _INSTANT) * rate) for time in times]
        shown = [files[min(max(number, 0), len(files) - 1)] for number in numbers]
        return [ImageFrame(0.0, read_image(file), file).image(side) for file in shown]
    images: list[UInt8[np.ndarray, "height width 3"]] = []
    current = following = None
    frames: Iterator[Frame] = iter(())
    seeks = True
    with contextlib.ExitStack() as opened, _Room(min(len(times), 2)) as room:
        for time in times:
            if current is None or (seeks and time - current.time > _SEEK):
                nearer = contextlib.ExitStack()
                first, rest = nearer.enter_context(
                    _open_before(path, time, room if current is None else None)
                )
                # A GIF, or a film with one keyframe, begins at its start however far one seeks: to
                # do that for each time would take as often as long.
                seeks = current is None or first.time > current.time
                if seeks:
                    opened.close()
                    opened.push(nearer)
                    current, frames, following = first, rest, None
                else:
                    nearer.close()
            while (following := following or next(frames, None)) is not None:
                if following.time > time + _INSTANT:
                    break
                current, following = following, None
            assert current is not None
            images.append(current.image(side))
    return images


class _Room:
    """Memory that decoders of stills share; a context manager for those of one call."""

    _changed = threading.Condition()
    _free = _STILLS

    def __init__(self, decoders: int) -> None:
        self._decoders = decoders  # of one video that are open at once
        self._taken = 0

    def take(self, held: int) -> None:
        """Give back what was taken, and wait until others leave room for decoders of so many bytes.

        Where none of them ends for long they hang, and are not waited for.
        """
        with _Room._changed:
            self._give_back()
            wanted = min(held * self._decoders, _STILLS)
            while _Room._free < wanted and _Room._changed.wait(_PATIENCE):
                pass
            _Room._free -= wanted
            self._taken = wanted

    def _give_back(self) -> None:
        _Room._free += self._taken
        self._taken = 0
        _Room._changed.notify_all()

    def __enter__(self) -> "_Room":
        return self

    def __exit__(self, *_error: object) -> None:
        with _Room._changed:
            self._give_back()


@contextlib.contextmanager
def _open_before(
    path: Path, time: float, room: _Room | None
) -> Iterator[tuple[Frame, Iterator[Frame]]]:
    """The last frame of a video that a seek can find at or before a time, and those after it."""
    for back in _BACK:
        if room:
            room.take(_OPENING)
        with open_video(Source(path, "file"), decode="all") as video:
            if room:
                room.take(video.held)
            sought = video.seek(time, back)
            try:
                first = next(video.frames)
            except VideoError:
                if not sought:
                    raise
                continue
            if not sought or first.time <= time + _INSTANT:
                yield first, video.frames
                return

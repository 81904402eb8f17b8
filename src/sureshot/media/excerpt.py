"""Read a range of a video for a clip, and find out how a browser can play a whole file.

* Time 0 is the first frame, whatever clock the file carries, as in the index.
* A frame is on screen until the next one comes; the last one for as long as it claims.
* Reading starts from a key frame before the range, and further back where that one is too late.
* Pictures and sound are read through separate handles, so bad interleaving costs no memory.
* A damaged packet or image is skipped, as in a player: what came before stays on screen.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import av
import av.error
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.packet import Packet
from av.video.frame import VideoFrame
from jaxtyping import Float32

from sureshot.errors import SureshotError, VideoError
from sureshot.files import replace_file
from sureshot.media.container import TimeBudget, limit_decoder, open_container, within_budget
from sureshot.media.discover import open_regular
from sureshot.media.frames import is_photo, read_image
from sureshot.media.mp4 import Picture, Sound, write_clip
from sureshot.media.timecode import read_timing
from sureshot.media.video import (
    JOINED,
    Clock,
    file_size,
    frames_in,
    is_seekable,
    picture_stream,
    reading,
    start_of,
)
from sureshot.paths import is_folder_at, is_taken
from sureshot.s3 import ObjectPath
from sureshot.text import plain

_BACK = (0.0, 2.0, 10.0, 60.0, math.inf)  # seconds; how far back to look for a key frame
_INSTANT = 0.001  # seconds; a frame on screen for less is left out
_STILL = 1.0  # seconds; sound that ends at most so much later than the pictures is left out
_SLACK = 0.05  # seconds; sound this far out of step is shifted rather than cut or padded
_APART = 10.0  # seconds by which streams of a file lie apart in it, at most; a sound may have ended
_LATE = 0.2  # seconds by which pictures may begin after the sound in what a browser plays as it is
_STEP = 0.04  # seconds that a frame lasts where the file does not say
_AAC_RATES = frozenset({8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000})

_Frame = TypeVar("_Frame", VideoFrame, AudioFrame)
_Shot: TypeAlias = tuple[float, VideoFrame, Fraction | None]  # its second and the shape of pixels


@reading()
def footage(
    source: Path, start: float, end: float, frame_rate: float
) -> tuple[Iterator[Picture], Iterator[Sound]]:
    """What a video, or a folder of numbered frames, shows and plays, in seconds from ``start``.

    Start and end count from the first frame; the frame rate is for a folder, as a video knows its
    own. VideoError here or while iterating is the reason, without the path.
    """
    if source.is_dir() or is_photo(source):
        files = frames_in(source) if source.is_dir() else [source]
        return _folder_pictures(files, start, end, frame_rate), iter(())
    if not source.exists():
        raise VideoError("does not exist; was it moved, or is a drive missing?")
    return _video_pictures(source, start, end), _sounds(source, start, end)


def _folder_pictures(
    images: list[Path], start: float, end: float, rate: float
) -> Iterator[Picture]:
    _refuse_late(start, len(images) / rate)
    for index in range(math.floor(start * rate), len(images)):
        if index / rate >= end:
            return
        try:
            pixels = np.asarray(read_image(images[index], None))
        except VideoError:
            if len(images) == 1:
                raise
            continue  # one damaged image; the one before it stays on screen
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgb24")
        yield from _shown((index / rate, frame, None), (index + 1) / rate, start, end)


def _video_pictures(source: Path, start: float, end: float) -> Iterator[Picture]:
    held: _Shot | None = None
    for shot in _frames(source, VideoFrame, start):
        if held is not None:
            if shot[0] <= held[0]:
                continue  # the clock of a damaged file jumps back; wait until it has caught up
            yield from _shown(held, shot[0], start, end)
        if shot[0] >= end:
            return
        held = shot
    if held is None:
        raise VideoError("has no picture that can be decoded; is it a video?")
    finish = held[0] + _duration(held[1])
    if finish + _STILL < end and (heard := _end_of_sound(source)) > finish + _STILL:
        finish = heard  # the last picture stays on screen as long as there is sound
    _refuse_late(start, finish)
    yield from _shown(held, finish, start, end)


def _end_of_sound(source: Path) -> float:
    """Seconds from the first picture to where the sound ends, as the file says; 0 without any."""
    with open_container(source) as container:
        if not container.streams.audio:
            return 0.0
        video, sound = picture_stream(container), container.streams.audio[0]
        zero = start_of(video)
        if sound.duration and sound.time_base:
            return start_of(sound) + float(sound.duration * sound.time_base) - zero
        return ((container.start_time or 0) + (container.duration or 0)) / av.time_base - zero


def _refuse_late(start: float, finish: float) -> None:
    if finish <= start + _INSTANT:
        raise VideoError(f"ends at {finish:g} s; give a start before that")


def _shown(shot: _Shot, until: float, start: float, end: float) -> Iterator[Picture]:
    """The picture that a frame makes until the next one comes, if it falls into the range."""
    time, frame, aspect = shot
    first, last = max(time, start) - start, min(until, end) - start
    if last - first > _INSTANT:
        yield Picture(time=first, until=last, frame=frame, aspect=aspect)


def _sounds(source: Path, start: float, end: float) -> Iterator[Sound]:
    """The sound of the range without gaps: silence where the source has none."""
    at = 0
    for position, rate, samples in _samples(source, start, end):
        limit = round(min(end - start, 1e9) * rate)
        if at and abs(position - at) <= _SLACK * rate:
            position = at
        while at < min(position, limit):
            hush = np.zeros((len(samples), min(rate, position - at)), np.float32)
            yield Sound(at / rate, rate, hush)
            at += hush.shape[1]
        kept = samples[:, max(0, at - position) : max(0, limit - position)]
        if kept.size:
            yield Sound(at / rate, rate, np.ascontiguousarray(kept))
            at += kept.shape[1]


def _samples(
    source: Path, start: float, end: float
) -> Iterator[tuple[int, int, Float32[np.ndarray, "channels samples"]]]:
    """Where samples belong in the cut, their rate, and the samples: mono or stereo in [-1, 1]."""
    shape, layout, rate, converter = None, "", 0, AudioResampler()
    for time, frame, _ in _frames(source, AudioFrame, start - 0.1):
        if time >= end:
            return
        now = frame.format.name, frame.layout.name, frame.sample_rate
        if shape != now:
            shape = now
            layout = layout or ("mono" if frame.layout.nb_channels == 1 else "stereo")
            rate = rate or (frame.sample_rate if frame.sample_rate in _AAC_RATES else 48_000)
            converter = AudioResampler("fltp", layout, rate)
        position = round((time - start) * rate)
        for part in converter.resample(frame):
            samples = np.clip(np.nan_to_num(part.to_ndarray()), -1, 1).astype(np.float32)
            yield position, rate, samples
            position += samples.shape[1]


def _frames(
    source: Path, kind: type[_Frame], moment: float
) -> Iterator[tuple[float, _Frame, Fraction | None]]:
    """Frames, their times and pixel shapes, from a key frame at or before ``moment`` on."""
    budget = TimeBudget(file_size(source))
    for back in _BACK:
        with reading(), open_container(source, budget) as container:
            video = picture_stream(container)
            stream = video if kind is VideoFrame else next(iter(container.streams.audio), None)
            if stream is None or stream.codec_context is None:
                return
            limit_decoder(video)
            # Read now: a stream of a closed file points into freed memory.
            aspect = video.sample_aspect_ratio and Fraction(video.sample_aspect_ratio)
            zero = start_of(video)
            clock, aim = Clock(stream), zero + moment - back
            runs = back < moment and is_seekable(container)
            seek = runs or (back < moment and container.format.name in JOINED)
            if seek:
                try:
                    if runs:
                        container.seek(round(aim / float(stream.time_base or 1)), stream=stream)
                    else:
                        clock.lead(container, stream, aim, budget)
                except (av.FFmpegError, OSError, IndexError):  # as where it leads before the start
                    continue
            packets = map(clock.correct, container.demux(stream))
            decoded = _decoded(packets, kind, zero, math.nan if seek else 0.0, budget)
            frames = within_budget(decoded, budget)
            first = next(frames, None)
            if seek and (first is None or not first[0] <= moment + _INSTANT):
                continue  # the key frame is too late: look further back
            if first is not None:
                yield from ((time, frame, aspect) for time, frame in chain([first], frames))
            return


def _decoded(
    packets: Iterator[Packet], kind: type[_Frame], zero: float, time: float, budget: TimeBudget
) -> Iterator[tuple[float, _Frame]]:
    """Frames and their times up to the end or to where the file breaks off.

    A frame without a time follows the one before it; the first one is at ``time``.
    """
    # PyAV raises IndexError at the end of files whose streams appear midway.
    with suppress(av.FFmpegError, IndexError):
        for packet in packets:
            budget.step()
            frames = []
            with suppress(av.FFmpegError):  # one damaged packet; players skip it, too
                frames = packet.decode()
            for frame in frames:
                if isinstance(frame, kind):
                    time = time if frame.time is None else frame.time - zero
                    yield time, frame
                    time += _duration(frame)


def _duration(frame: VideoFrame | AudioFrame) -> float:
    """Seconds that the frame claims to last."""
    return float(frame.duration * (frame.time_base or 0)) or _STEP


Way = Literal["direct", "remux", "clip"]
MP4, WEBM = "video/mp4", "video/webm"
_COMMON = {"h264", "vp8", "vp9", "av1"}  # codecs of pictures that browsers play
_IN_MP4 = {"h264", "vp9", "av1"}
_HEARD = {MP4: {"aac", "mp3", "opus", "flac"}, WEBM: {"opus", "vorbis"}}
_PIXELS = {"yuv420p", "yuvj420p"}  # eight bits, colours halved
_REMUXED = {"matroska,webm", "mpegts", "flv"}  # containers that tell the time of each packet


@dataclass(frozen=True, slots=True)
class Playable:
    """How a browser can play a video.

    A browser cannot be asked: some show a black picture for a codec they do not know, without any
    error. What every browser of today plays is played as it is (``direct``); of the rest the
    streams are put into an MP4 (``remux``), or a part is encoded again (``clip``).
    """

    way: Way
    type: str  # media type of what is played


_CLIP = Playable("clip", MP4)


def playable(path: Path) -> Playable:
    """How a video, or a folder of frames, can be played; VideoError where it cannot be read."""
    if path.is_dir():
        return _CLIP
    with reading(), open_container(path) as container:
        return _way(container, path)


def remux(path: Path, target: Path) -> None:
    """Copy the streams of a video whose way to play is ``remux`` into an MP4."""
    options = {"movflags": "+faststart", "avoid_negative_ts": "make_zero"}
    with (
        open_container(path) as source,
        av.open(str(target), "w", format="mp4", options=options) as copy,
    ):
        streams = [*source.streams.video[:1], *source.streams.audio[:1]]
        # Opaque: for a codec that is decoded by a library (dav1d, opus) there is no encoder here.
        copies = {s.index: copy.add_stream_from_template(s, opaque=True) for s in streams}
        clocks = {s.index: Clock(s) for s in streams}  # set back between two recordings in one file
        with reading():
            for packet in _ordered(source.demux(streams)):
                clocks[packet.stream_index].correct(packet)
                packet.stream = copies[packet.stream_index]
                copy.mux(packet)


def keyframe_before(path: Path, start: float) -> float:
    """Second of the last frame at or before ``start`` that a copy of the streams can begin with.

    VideoError where the video cannot be cut without encoding it again.
    """
    with _sought(path, start) as (_, packets, zero):
        return _time(next(packets), zero)


def copy_streams(path: Path, target: Path, start: float, end: float) -> None:
    """Copy pictures and sound from what `keyframe_before` gave to a second; nothing is encoded.

    The suffix of the target says the container. A timecode goes on from that of the source.
    """
    timing = None
    with suppress(VideoError):
        timing = read_timing(path)
    with _sought(path, start) as (source, packets, zero), av.open(str(target), "w") as copy:
        heard = [sound for sound in source.streams.audio if sound.codec_context]  # known ones
        streams = [picture_stream(source), *heard]
        copies = {s.index: copy.add_stream_from_template(s, opaque=True) for s in streams}
        if timing and timing.first:
            first = timing.timecode(round(start * timing.rate))
            copies[streams[0].index].metadata["timecode"] = first
            copies[streams[0].index].codec_context.framerate = timing.rate  # it is counted by
        left = {*copies}  # sound may come later in the file than the pictures of its time
        for packet in _ordered(packets):
            if packet.stream_index not in copies:
                continue
            time = _time(packet, zero)
            is_picture = packet.stream_index == streams[0].index
            beyond = float(packet.dts * packet.time_base) - zero - end
            if beyond >= 0:
                left.discard(packet.stream_index)
                if not left or beyond > _APART:
                    break
                continue
            # A picture that is shown later may be what earlier ones are worked out from.
            if start - _INSTANT <= time and (is_picture or time < end):
                shift = round((zero + start) / packet.time_base)
                packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
                packet.stream = copies[packet.stream_index]
                copy.mux(packet)


@contextmanager
def _sought(path: Path, start: float) -> Iterator[tuple[Any, Iterator[Packet], float]]:
    """An open video, its packets from a keyframe at or before a second on, and its second 0."""
    if path.is_dir() or is_photo(path):
        raise VideoError("is made of pictures, which cannot be cut without encoding them")
    budget = TimeBudget(file_size(path))
    for back in _BACK:
        with reading(), open_container(path, budget) as container:
            if not is_seekable(container):
                raise VideoError("cannot be cut without encoding it")
            stream = picture_stream(container)
            zero = start_of(stream)
            if back < start:
                goal = (zero + start - back) / float(stream.time_base or 1)
                with suppress(av.FFmpegError, OSError):
                    container.seek(round(goal), stream=stream)
            packets = container.demux()
            for packet in packets:
                is_first = packet.stream_index == stream.index and packet.is_keyframe
                if is_first and packet.pts is not None:
                    break
            else:
                if back < start:  # it went to a place behind the last keyframe
                    continue
                raise VideoError("has no keyframe to begin with")
            if _time(packet, zero) <= start + _INSTANT or back >= start:
                yield container, chain([packet], packets), zero
                return


def _time(packet: Packet, zero: float) -> float:
    """Second of the video at which a packet is shown or heard."""
    return float((packet.pts or 0) * (packet.time_base or 0)) - zero


def _ordered(packets: Iterator[Any]) -> Iterator[Any]:
    """Packets that all know when they are decoded; Matroska leaves it out of a stream's first."""
    waiting: dict[int, list[Any]] = {}
    begun: set[int] = set()
    for packet in packets:
        stream = packet.stream_index
        if not packet.size or stream in begun:
            if packet.size and packet.dts is not None:
                yield packet
            continue
        waiting.setdefault(stream, []).append(packet)
        if packet.dts is not None:
            begun.add(stream)
            yield from _dated(waiting.pop(stream), packet.dts)
    for early in waiting.values():
        yield from _dated(early, early[-1].pts or 0)


def _dated(packets: list[Any], last: int) -> Iterator[Any]:
    """Packets that are decoded one after another, the last of them at a time."""
    step = max(packets[-1].duration or 1, 1)
    for back, packet in zip(range(len(packets) - 1, -1, -1), packets, strict=True):
        packet.dts = last - back * step
        yield packet


def _way(container: Any, path: Path) -> Playable:
    pictures, sounds = container.streams.video, container.streams.audio
    if not pictures or pictures[0].codec_context is None:
        raise VideoError("has no video stream")
    context = pictures[0].codec_context
    codec = context.codec.canonical_name
    began = start_of(pictures[0])
    if began - (container.start_time or 0) / av.time_base > _LATE:
        return _CLIP  # a player counts from its sound, and the index from its pictures
    square = Fraction(pictures[0].sample_aspect_ratio or 1) == 1  # browsers differ about others
    if codec not in _COMMON or context.pix_fmt not in _PIXELS or not square:
        return _CLIP
    heard = {sound.codec_context and sound.codec_context.codec.canonical_name for sound in sounds}
    name = container.format.name
    late = abs(began) > _LATE  # browsers count from 0 of the file's clock
    if "mp4" in name and codec in _IN_MP4 and _HEARD[MP4].issuperset(heard):
        return Playable("remux" if late else "direct", MP4)
    if name == "matroska,webm" and _is_webm(path) and codec != "h264" and not late:
        return Playable("direct", WEBM) if _HEARD[WEBM].issuperset(heard) else _CLIP
    if name in _REMUXED and codec in _IN_MP4 and _HEARD[MP4].issuperset(heard):
        return Playable("remux", MP4)
    return _CLIP


def _is_webm(path: Path) -> bool:
    """Whether a Matroska file says that it is the kind that browsers take."""
    with open_regular(path) as file:
        return b"webm" in (file.read(64) or b"")


def cut(
    source: Path,
    start: float,
    end: float,
    target: Path,
    *,
    frame_rate: float = 1.0,
    overwrite: bool = False,
    side: int | None = None,
) -> Path:
    """Write an mp4 of what a video shows, and plays, from second to second.

    Args:
        source: a video, or a folder of images in natural name order.
        start: seconds from the first frame; below 0 counts as 0.
        end: seconds from the first frame; beyond the last frame counts as the end of the video.
        target: a file named `.mp4` in an existing folder. Appears only when it is complete.
        frame_rate: frames per second of a folder; a video knows its own.
        overwrite: replace an existing `target`. The source itself is never replaced.
        side: see `write_clip`.
    """
    start = max(start, 0.0)
    try:
        _check(source, start, end, target, frame_rate, overwrite)
        with replace_file(target) as fresh:
            pictures, sounds = footage(source, start, end, frame_rate)
            if not write_clip(fresh, pictures, sounds, side=side):
                raise VideoError(f"shows nothing from {start:g} s to {end:g} s; widen the range")
    except VideoError as error:
        raise VideoError(f"{plain(source)} {error}") from error
    except (av.FFmpegError, OSError) as error:
        raise SureshotError(
            f"{plain(target)} could not be written ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error
    return target


def _check(
    source: Path, start: float, end: float, target: Path, frame_rate: float, overwrite: bool
) -> None:
    """Refuse what is bound to fail or would harm the source."""
    if not start < end:
        raise SureshotError(
            f"there is nothing from {start:g} s to {end:g} s; give an end after the start"
        )
    if not 0 < frame_rate < math.inf:
        raise SureshotError(f"a frame rate of {frame_rate:g} is not possible; give one above 0")
    if target.suffix.lower() != ".mp4":
        raise SureshotError(f"{plain(target)} would be an mp4; give it a name that ends in .mp4")
    if not isinstance(target, ObjectPath) and not is_folder_at(target.parent):
        raise SureshotError(f"the folder {plain(target.parent)} does not exist; create it first")
    with suppress(OSError):  # one of the two does not exist
        if source.samefile(target):
            raise SureshotError(f"{plain(target)} is the source itself; choose another target")
    if is_taken(target) and not overwrite:
        raise SureshotError(
            f"{plain(target)} exists already; choose another name, or allow to overwrite it"
        )

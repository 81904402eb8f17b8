"""How a browser can play a video, by what its file holds.

A browser cannot be asked: some show a black picture of a codec that they do not know, and say
nothing. What every browser of today plays is played as it is; all else is laid anew or encoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import av.error

from sureshot.errors import VideoError
from sureshot.media.container import open_container
from sureshot.media.video import unreadable

Way = Literal["direct", "remux", "clip"]
MP4, WEBM = "video/mp4", "video/webm"
_COMMON = {"h264", "vp8", "vp9", "av1"}  # codecs of pictures that browsers play
_IN_MP4 = {"h264", "vp9", "av1"}
_HEARD = {MP4: {"aac", "mp3", "opus", "flac"}, WEBM: {"opus", "vorbis"}}
_PIXELS = {"yuv420p", "yuvj420p"}  # eight bits, colours halved
_LAID_ANEW = {"matroska,webm", "mpegts", "flv"}  # containers that tell the time of each packet


@dataclass(frozen=True, slots=True)
class Playable:
    """A way to play a video.

    Attributes:
        way: ``direct``, the file as it is; ``remux``, its streams in an mp4; ``clip``, a part of
            it encoded anew.
        type: media type of what is played.
    """

    way: Way
    type: str


_CLIP = Playable("clip", MP4)


def playable(path: Path) -> Playable:
    """How a video can be played.

    Args:
        path: a file or a folder of frames.

    Raises:
        VideoError: it cannot be read; the message is the reason, without the path.
    """
    if path.is_dir():
        return _CLIP
    try:
        with open_container(path) as container:
            return _way(container, path)
    except (av.error.FFmpegError, OSError) as error:
        raise unreadable(error) from None


def lay_anew(path: Path, target: Path) -> None:
    """Put the streams of a video into an mp4 as they are.

    Args:
        path: a file whose way to play is ``remux``.
        target: a file in an existing folder; replaced if it exists.

    Raises:
        VideoError: the video cannot be read, or its streams do not fit.
        OSError: the target cannot be written.
    """
    options = {"movflags": "+faststart", "avoid_negative_ts": "make_zero"}
    with (
        open_container(path) as source,
        av.open(str(target), "w", format="mp4", options=options) as film,
    ):
        streams = [*source.streams.video[:1], *source.streams.audio[:1]]
        laid = {stream.index: film.add_stream_from_template(stream) for stream in streams}
        try:
            for packet in _ordered(source.demux(streams)):
                packet.stream = laid[packet.stream_index]
                film.mux(packet)
        except av.error.InvalidDataError as error:
            raise unreadable(error) from None


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
    if codec not in _COMMON or context.pix_fmt not in _PIXELS or not _square(pictures[0]):
        return _CLIP
    heard = [sound.codec_context.codec.canonical_name for sound in sounds if sound.codec_context]
    if len(heard) != len(sounds):
        return _CLIP
    name = container.format.name
    if "mp4" in name and codec in _IN_MP4 and _HEARD[MP4].issuperset(heard):
        return Playable("direct", MP4)
    if name == "matroska,webm" and _is_webm(path) and codec != "h264":
        return Playable("direct", WEBM) if _HEARD[WEBM].issuperset(heard) else _CLIP
    if name in _LAID_ANEW and codec in _IN_MP4 and _HEARD[MP4].issuperset(heard):
        return Playable("remux", MP4)
    return _CLIP


def _square(stream: Any) -> bool:
    """Whether pixels are square; browsers differ about others."""
    return Fraction(stream.sample_aspect_ratio or 1) == 1


def _is_webm(path: Path) -> bool:
    """Whether a Matroska file says that it is the kind that browsers take."""
    with path.open("rb") as file:
        return b"webm" in file.read(64)

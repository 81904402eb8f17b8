"""Write MP4 that plays everywhere: H.264, yuv420p, AAC.

* Times are kept, so a variable frame rate stays variable.
* A picture is flattened onto white, turned upright, converted to 8 bit, limited range, even sides.
* The first picture sets size and colour matrix; later ones of another size get black borders.

Not covered: tone mapping of HDR (the colour tags are carried over), deinterlacing, mirrored display
matrices.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.container import OutputContainer
from av.video.frame import PictureType, VideoFrame
from jaxtyping import Float32, UInt8

from sureshot.media.frames import flatten, has_alpha
from sureshot.media.signature import shrunk

_TICKS = 60_000  # per second; exact for 24, 25, 30, 50, 60 and 30000/1001 frames per second
# Without B-frames every frame is stored at the very time at which it is shown.
_X264 = {"crf": "17", "preset": "fast", "bf": "0"}  # looks like the source
_QUICK = {"crf": "24", "preset": "superfast", "bf": "0"}  # a preview, soon deleted
_FINE = {"crf": "18", "preset": "veryfast"}  # synthetic videos
_BT709 = 1
_LIMITED = 1
_MATRICES = {1: 1, 5: 5, 6: 5, 9: 9}  # H.264's numbers -> the converter's: BT.709, 601, 601, 2020


@dataclass(frozen=True)
class Picture:
    """A frame, and the seconds of the clip during which it is on screen."""

    time: float
    until: float
    frame: VideoFrame
    aspect: Fraction | None = None  # width of a pixel over its height, where that is known


@dataclass(frozen=True)
class Sound:
    """Mono or stereo samples in [-1, 1], and the second of the clip at which they start."""

    time: float
    rate: int
    samples: Float32[np.ndarray, "channels samples"]


def write_clip(
    path: Path, pictures: Iterator[Picture], sounds: Iterator[Sound], *, side: int | None = None
) -> bool:
    """Write pictures and sound; False when there was no picture and nothing was written.

    Args:
        pictures: in the order of time, without overlap.
        sounds: in the order of time, without gaps; what outlasts the pictures is left out.
        side: most pixels of the shorter side, for a clip that is quick to make rather than good;
            None keeps every pixel.
    """
    first, sound = next(pictures, None), next(sounds, None)
    if first is None:
        return False
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        writer = _Writer(container, first, sound, side)
        pieces: Iterator[Picture | Sound] = heapq.merge(
            chain([first], pictures),
            chain([sound] if sound else [], sounds),
            key=attrgetter("time"),
        )
        until = 0.0
        for piece in pieces:
            if isinstance(piece, Picture):
                writer.show(piece)
                until = piece.until
            elif piece.time < until:
                writer.play(piece)
        writer.finish()
    return True


def write_frames(
    path: Path, frames: Sequence[UInt8[np.ndarray, "height width 3"]], rate: int
) -> None:
    """Write RGB frames of one size with even sides, at least one, at ``rate`` per second."""
    height, width, _ = frames[0].shape
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate, options=dict(_FINE))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.thread_count = 1  # the file is the same however many cores there are
        stream.codec_context.time_base = Fraction(1, rate)
        for number, pixels in enumerate(frames):
            frame = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


class _Writer:
    """The tracks of an open MP4: one of pictures and, where there is sound, one of sound."""

    def __init__(
        self, container: OutputContainer, first: Picture, sound: Sound | None, side: int | None
    ) -> None:
        self._side = side
        self._mux = container.mux
        frame = first.frame
        is_rgb = frame.format.is_rgb or frame.format.has_palette
        is_turned = _quarter_turns(frame) % 2
        self._matrix = _BT709 if is_rgb else frame.colorspace
        size = _even_size(frame, side)
        self._size = size[::-1] if is_turned else size
        track = container.add_stream("libx264", 30, dict(_X264 if side is None else _QUICK))
        track.width, track.height = self._size
        track.pix_fmt, track.codec_context.time_base = "yuv420p", Fraction(1, _TICKS)
        track.color_range, track.colorspace = _LIMITED, self._matrix
        track.color_primaries = _BT709 if is_rgb else frame.color_primaries
        track.color_trc = _BT709 if is_rgb else frame.color_trc
        if aspect := first.aspect:
            track.codec_context.sample_aspect_ratio = 1 / aspect if is_turned else aspect
        self._video = track
        self._lasts: dict[int, int] = {}  # ticks by time; encoders forget how long a frame lasts
        self._audio = None
        if sound is not None:
            self._layout = "mono" if len(sound.samples) == 1 else "stereo"
            self._audio = container.add_stream("aac", rate=sound.rate)
            self._audio.layout = self._layout

    def show(self, picture: Picture) -> None:
        frame = self._prepared(picture.frame)
        frame.time_base, frame.pict_type = Fraction(1, _TICKS), PictureType.NONE
        frame.pts = round(picture.time * _TICKS)
        self._lasts[frame.pts] = round(picture.until * _TICKS) - frame.pts
        self._mux_video(frame)

    def play(self, sound: Sound) -> None:
        if self._audio is not None:
            frame = AudioFrame.from_ndarray(sound.samples, "fltp", self._layout)
            frame.sample_rate, frame.time_base = sound.rate, Fraction(1, sound.rate)
            frame.pts = round(sound.time * sound.rate)
            self._mux(self._audio.encode(frame))

    def finish(self) -> None:
        """Flush the encoders."""
        self._mux_video(None)
        if self._audio is not None:
            self._mux(self._audio.encode())

    def _mux_video(self, frame: VideoFrame | None) -> None:
        for packet in self._video.encode(frame):
            packet.duration = self._lasts.pop(packet.pts or 0, packet.duration)
            self._mux(packet)

    def _prepared(self, frame: VideoFrame) -> VideoFrame:
        """The frame as a player would show it, in the format and size of the clip."""
        turns = _quarter_turns(frame)
        if has_alpha(frame.format):
            rgba = frame.to_ndarray(format="rgba").astype(np.uint8)
            frame = VideoFrame.from_ndarray(flatten(rgba), "rgb24")
        frame = self._converted(frame)
        if turns:
            frame = _turned(frame, turns)
        if (frame.width, frame.height) != self._size:
            frame = self._converted(_bordered(frame, *self._size))
        return frame

    def _converted(self, frame: VideoFrame) -> VideoFrame:
        """The frame in 8 bit, limited range, with even sides and the colour matrix of the clip."""
        other = frame.colorspace != self._matrix
        return frame.reformat(
            *_even_size(frame, self._side),
            "yuv420p",
            dst_colorspace=_MATRICES.get(self._matrix) if other else None,
            dst_color_range=_LIMITED,
        )


def _quarter_turns(frame: VideoFrame) -> int:
    """Turns by 90 degrees to the left that make the frame upright, 0 to 3."""
    return round(frame.rotation / 90) % 4


def _even_size(frame: VideoFrame, side: int | None) -> tuple[int, int]:
    """Width and height with the shorter side at most ``side``, both rounded up to even."""
    width, height = frame.width, frame.height
    if side is not None:
        width, height = shrunk(width, height, side)
    return width + width % 2, height + height % 2


def _turned(frame: VideoFrame, turns: int) -> VideoFrame:
    """A yuv420p frame turned to the left, plane by plane, so that no colour changes."""
    width, height = frame.width, frame.height
    luma, chroma = np.split(frame.to_ndarray().ravel(), [width * height])
    turned = np.rot90(luma.reshape(height, width), turns)
    small = np.rot90(chroma.reshape(2, height // 2, width // 2), turns, (1, 2))
    flat = np.concatenate([turned.ravel(), small.ravel()])
    result = VideoFrame.from_ndarray(flat.reshape(-1, turned.shape[1]), "yuv420p")
    result.colorspace, result.color_range = frame.colorspace, frame.color_range
    return result


def _bordered(frame: VideoFrame, width: int, height: int) -> VideoFrame:
    """The whole frame, as large as fits, in the middle of a black one of this size."""
    scale = min(width / frame.width, height / frame.height)
    inner = max(1, round(frame.width * scale)), max(1, round(frame.height * scale))
    pixels = frame.to_ndarray(format="rgb24", width=inner[0], height=inner[1])
    canvas = np.zeros((height, width, 3), np.uint8)
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    canvas[top : top + inner[1], left : left + inner[0]] = pixels
    return VideoFrame.from_ndarray(canvas, "rgb24")

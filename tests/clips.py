"""Small real videos for tests, written with PyAV."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from jaxtyping import Float, UInt8

from sureshot.media.signature import Patterns
from sureshot.models.encoders.toy import COLOURS


def coloured(
    path: Path,
    colours: Sequence[str],
    *,
    seconds: float = 2.0,
    rate: int = 10,
    size: tuple[int, int] = (64, 48),
    codec: str = "libx264",
    pixels: str = "yuv420p",
) -> Path:
    """A video that shows each colour of `TinyEncoder` for so many seconds, one after another.

    A little texture that moves keeps frames from being flat and encoders from dropping them.
    """
    width, height = size
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        stream.codec_context.time_base = Fraction(1, rate)
        number = 0
        for colour in colours:
            for _ in range(round(seconds * rate)):
                picture = np.empty((height, width, 3), np.uint8)
                picture[:] = COLOURS[colour]
                at = number * 3 % (width - 8)
                picture[4:8, at : at + 8] = 128
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts = number
                container.mux(stream.encode(frame))
                number += 1
        container.mux(stream.encode(None))
    return path


def film(
    path: Path,
    pictures: Sequence[np.ndarray],
    *,
    rate: int = 10,
    times: Sequence[int] | None = None,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    every: int = 12,
    turned: float | None = None,
    mirrored: bool = False,
    options: Mapping[str, str] | None = None,
) -> Path:
    """A video of these pictures, RGB or with alpha, all of one size.

    Args:
        path: its suffix says the container.
        pictures: as arrays of bytes.
        rate: pictures per second.
        times: milliseconds of each picture, where they do not come evenly.
        codec: name of the encoder.
        pixels: its pixel format.
        every: pictures from one keyframe to the next.
        turned: degrees, counter-clockwise, that a player is asked to turn the pictures by.
        mirrored: whether it is asked to mirror them after that.
        options: of the encoder.
    """
    height, width, channels = pictures[0].shape
    ticks = rate if times is None else 1000
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        stream.gop_size = every
        stream.options = dict(options or {})
        stream.codec_context.time_base = Fraction(1, ticks)
        if turned is not None:
            stream.set_display_rotation(turned, hflip=mirrored)
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, "rgba" if channels == 4 else "rgb24")
            frame.pts = number if times is None else times[number]
            frame.time_base = Fraction(1, ticks)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def greys(levels: Sequence[float], size: tuple[int, int] = (32, 32)) -> list[np.ndarray]:
    """Flat pictures of these grey levels; the size is width and height."""
    return [np.full((size[1], size[0], 3), round(level), np.uint8) for level in levels]


def patterns(count: int, size: tuple[int, int] = (96, 64), seed: int = 0) -> list[np.ndarray]:
    """Pictures with large soft blotches, each unlike the others."""
    from PIL import Image

    coarse = np.random.default_rng(seed).integers(0, 256, (count, 5, 6, 3), np.uint8)
    return [np.asarray(Image.fromarray(c).resize(size, Image.Resampling.BICUBIC)) for c in coarse]


def remuxed(path: Path, target: Path, **options: str) -> Path:
    """The same video stream in another container or laid out differently, not encoded again."""
    with av.open(path) as source, av.open(target, "w", options=options) as container:
        stream = container.add_stream_from_template(source.streams.video[0], opaque=True)
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                container.mux(packet)
    return target


def sound(path: Path, *, cover: bool = False) -> Path:
    """Half a second of silence, with or without a cover picture."""
    with av.open(path, "w") as container:
        audio = container.add_stream("aac", rate=44_100)
        audio.layout = "mono"
        if cover:
            from av.stream import Disposition

            image = container.add_stream("mjpeg", rate=1)
            image.width, image.height, image.pix_fmt = 64, 48, "yuvj420p"
            image.disposition = Disposition.attached_pic
            picture = av.VideoFrame.from_ndarray(greys([99], (64, 48))[0], "rgb24")
            container.mux([*image.encode(picture), *image.encode(None)])
        for number in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
            frame.sample_rate, frame.pts = 44_100, number * 1024
            container.mux(audio.encode(frame))
        container.mux(audio.encode(None))
    return path


def blocks(
    count: int, colours: Sequence[str], size: tuple[int, int] = (96, 64), seed: int = 0
) -> list[np.ndarray]:
    """Pictures of large blocks in these colours of `TinyEncoder`, none like another."""
    palette = np.array([COLOURS[colour] for colour in colours], np.uint8)
    chosen = np.random.default_rng(seed).integers(0, len(palette), (count, 4, 6))
    rows, columns = size[1] // 4, size[0] // 6
    return [palette[c].repeat(rows, 0).repeat(columns, 1) for c in chosen]


def similarity(
    one: UInt8[np.ndarray, "frames 288"], others: UInt8[np.ndarray, "videos frames2 288"]
) -> Float[np.ndarray, " videos"]:
    """Share of the frames of ``one`` with a pattern that have a copy in each other video."""
    width = max(len(one), others.shape[1])
    every = np.zeros((len(others) + 1, width, 288), np.uint8)
    every[0, : len(one)], every[1:, : others.shape[1]] = one, others
    patterns = Patterns(every)
    other, frame = patterns.alike([0])
    found = np.zeros(every.shape[:2], bool)
    found[other // width, frame] = True
    telling = patterns.telling[0]
    return found[1:, telling].mean(-1) if telling.any() else np.zeros(len(others))

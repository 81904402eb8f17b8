"""Clips whose frames tell their own time by their grey level."""

from collections import deque
from fractions import Fraction

import av
import numpy as np


def grey_clip(
    path,
    codec="libx264",
    pixels="yuv420p",
    sound="",
    rate=10,
    times=None,
    heard=(0.0, 4.0),
    **options,
):
    """A clip of 4 s, 64x48, that gets 60 grey levels lighter every second.

    Args:
        times: milliseconds at which frames come up, where that is not `rate` times a second.
        heard: seconds between which it has sound, a tone of 440 Hz; no packets outside of it.
    """
    stamps, ticks = times or range(4 * rate), 1000 if times else rate
    tones = deque(range(round(heard[0] * 10), round(heard[1] * 10)) if sound else ())
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, rate, options)
        video.width, video.height, video.pix_fmt, video.gop_size = 64, 48, pixels, rate
        video.codec_context.time_base = Fraction(1, ticks)
        audio = container.add_stream(sound, 48_000) if sound else None
        if audio:
            audio.layout, audio.bit_rate = "mono", 64_000
        for stamp in stamps:
            while tones and tones[0] / 10 <= stamp / ticks:
                container.mux(audio.encode(_tone(tones.popleft())))
            level = np.full((48, 64, 3), round((stamp - stamps[0]) * 60 / ticks) % 256, np.uint8)
            frame = av.VideoFrame.from_ndarray(level, "rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = stamp, Fraction(1, ticks)
            container.mux(video.encode(frame))
        container.mux(video.encode())
        for tenth in tones:
            container.mux(audio.encode(_tone(tenth)))
        if audio:
            container.mux(audio.encode())
    return path


def _tone(tenth):
    first = tenth * 4800
    wave = 0.5 * np.sin(2 * np.pi * 440 * np.arange(first, first + 4800) / 48_000)
    frame = av.AudioFrame.from_ndarray(wave.astype(np.float32)[None], "fltp", "mono")
    frame.sample_rate, frame.pts, frame.time_base = 48_000, first, Fraction(1, 48_000)
    return frame


def watch(path):
    """Time, seconds on screen and second of the source clip of every frame, by its grey level."""
    with av.open(str(path)) as container:
        return [
            (
                frame.time,
                float(frame.duration * frame.time_base),
                frame.to_ndarray(format="rgb24").mean() / 60,
            )
            for frame in container.decode(video=0)
        ]


def listen(path):
    """Loudness of every tenth of a second."""
    with av.open(str(path)) as container:
        sound = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
    tenths = sound[: len(sound) // 4800 * 4800].reshape(-1, 4800)
    return np.sqrt((tenths**2).mean(1))

"""Sample frames from a whole video, or from one stretch of it."""

import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from sureshot.errors import VideoError
from sureshot.media.discover import Source
from sureshot.media.frames import Frame
from sureshot.media.sampling_rule import Sampling, sampled_numbers
from sureshot.media.signature import FrameSize
from sureshot.media.video import open_video
from sureshot.media.windows import fitted, windows

_WHOLE = 1e9  # seconds: no video is cut
_INSTANT = 1e-3  # seconds: times closer together are one


def sample_frames(
    path: Path,
    count: int,
    size: FrameSize,
    *,
    start: float | None = None,
    end: float | None = None,
    sampling: Sampling | None = None,
    draw: np.random.Generator | None = None,
) -> UInt8[np.ndarray, "frames height width 3"]:
    """RGB frames of a video; VideoError says why none can be decoded.

    Times of a folder of frames are not known, so it can be sampled whole and by number only.

    Args:
        path: a video, a folder of numbered frames, or a photo.
        count: most frames; a shorter video gives all it has, a photo one.
        start: seconds; None is the beginning.
        end: seconds; None is the end.
        draw: random numbers for a sampling that draws; None seeds them with 0.
    """
    source = Source(path, "frames" if path.is_dir() else "file")
    stretch = start or 0.0, _WHOLE if end is None else end
    rule = sampling or Sampling()
    if source.kind == "frames" and (start is not None or end is not None or rule.fps is not None):
        raise VideoError(
            "is a folder of frames, which does not say how many were taken a second, so a part of "
            "it or frames by the second cannot be found; make a video of it (ffmpeg -framerate R)"
        )
    if rule.kind == "uniform" and rule.fps is None:
        with open_video(source, decode="all") as video:
            inside = _inside(video, *stretch)
            cut = windows(inside, longest=_WHOLE, samples=count, size=size, scenes=False)
            window = next(cut, None)
        images = [] if window is None else list(window.images)
    else:
        draw = draw or np.random.default_rng(0)
        images = _picked(source, count, size, stretch, rule, draw)
    if not images:
        where = "" if start is None and end is None else f" from {stretch[0]:g} to {stretch[1]:g} s"
        raise VideoError(f"holds no frame that can be decoded{where}")
    return np.stack([fitted(image, images[0]) for image in images])


def _picked(
    source: Source,
    count: int,
    size: FrameSize,
    stretch: tuple[float, float],
    rule: Sampling,
    draw: np.random.Generator,
) -> list[UInt8[np.ndarray, "height width 3"]]:
    """Frames by number; where all frames count, a first pass counts them."""
    first = stretch[0]
    if rule.kind == "phase" and rule.fps is not None:
        first += draw.random() / rule.fps
    if rule.fps is not None:
        with open_video(source, decode="all") as video:
            looked = _looked_at(_inside(video, *stretch), rule.fps, first)
            most = count if rule.kind == "head" else None
            images = [frame.image(size) for frame in itertools.islice(looked, most)]
        return [images[number] for number in sampled_numbers(len(images), count, rule.kind, draw)]
    total = count
    if rule.kind != "head":
        with open_video(source, decode="all") as video:
            total = sum(1 for _ in _inside(video, *stretch))
    wanted = set(sampled_numbers(total, count, rule.kind, draw).tolist())
    with open_video(source, decode="all") as video:
        frames = itertools.islice(_inside(video, *stretch), max(wanted, default=-1) + 1)
        return [frame.image(size) for number, frame in enumerate(frames) if number in wanted]


def _inside(frames: Iterable[Frame], start: float, end: float) -> Iterator[Frame]:
    later = (frame for frame in frames if frame.time >= start)
    return itertools.takewhile(lambda frame: frame.time <= end, later)


def _looked_at(frames: Iterator[Frame], fps: float, first: float) -> Iterator[Frame]:
    """So many frames per second; the very first one if ``first`` is beyond the end."""
    due, earliest = first, None
    for frame in frames:
        earliest = earliest or frame
        if frame.time >= due - _INSTANT:
            yield frame
            due = first + (math.floor((frame.time - first + _INSTANT) * fps) + 1) / fps
    if earliest is not None and due == first:
        yield earliest

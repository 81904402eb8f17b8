"""Frames sampled from a whole video, or from one stretch of it."""

import itertools
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from sureshot.errors import VideoError
from sureshot.media.discover import IMAGE_SUFFIXES, Source
from sureshot.media.frame import ImageFrame, read_image
from sureshot.media.size import FrameSize
from sureshot.media.video import open_video
from sureshot.media.windows import windows

_WHOLE = 1e9  # seconds: no video is cut


def sample_frames(
    path: Path, count: int, size: FrameSize, *, start: float | None = None, end: float | None = None
) -> UInt8[np.ndarray, "frames height width 3"]:
    """RGB frames sampled uniformly.

    Args:
        path: a video, a folder of numbered frames, or a photo.
        count: frames at most; a shorter video gives all it has, a photo one.
        size: size of the frames.
        start: seconds; None is the beginning.
        end: seconds; None is the end.

    Raises:
        VideoError: no frame can be decoded; the message is the reason, without the path.
        OSError: the path cannot be read.
    """
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return ImageFrame(0.0, read_image(path), path).image(size)[None]
    kind: Literal["file", "frames"] = "frames" if path.is_dir() else "file"
    source = Source(path=path, kind=kind, size=0, mtime_ns=0)
    first, last = start or 0.0, _WHOLE if end is None else end
    with open_video(source, decode="all") as video:
        inside = itertools.takewhile(
            lambda frame: frame.time <= last, (frame for frame in video if frame.time >= first)
        )
        whole = windows(inside, longest=_WHOLE, samples=count, size=size, scenes=False)
        window = next(whole, None)
    if window is None:
        where = "" if start is None and end is None else f" from {first:g} to {last:g} s"
        raise VideoError(f"holds no frame that can be decoded{where}")
    return window.images

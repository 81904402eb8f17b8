"""A small film from pictures, as any player reads it."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from jaxtyping import UInt8

_FINE = {"crf": "18", "preset": "veryfast"}  # nearly all that was drawn is kept


def write_pictures(
    path: Path, pictures: Sequence[UInt8[np.ndarray, "height width 3"]], rate: int
) -> None:
    """Write pictures as an MP4 in H.264, without sound.

    Args:
        path: the file; its folder is there.
        pictures: RGB, all of one size with even sides, at least one.
        rate: pictures a second.

    Raises:
        OSError: it cannot be written.
    """
    height, width, _ = pictures[0].shape
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate, options=dict(_FINE))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.thread_count = 1  # the file is the same however many cores there are
        stream.codec_context.time_base = Fraction(1, rate)
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))

"""Frames of a video kept as one JPEG, one below the other.

The colours of neighbouring pixels are not shared, so that frames whose height is a multiple of 8
do not touch each other.
"""

import re
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from sureshot.errors import VideoError
from sureshot.files import replace_file

_QUALITY = 95
_LONGEST = 65_500  # lines that a JPEG can have


def write_filmstrip(path: Path, frames: UInt8[np.ndarray, "frames height width 3"]) -> None:
    """Write the file whole or not at all.

    Raises:
        OSError: it cannot be written.
        ValueError: the frames are higher together than a JPEG can be.
    """
    from PIL import Image

    count, height, width, _ = frames.shape
    if count * height > _LONGEST:
        raise ValueError(f"{count} frames of {height} lines are more than a JPEG can hold")
    strip = Image.fromarray(frames.reshape(count * height, width, 3))
    with replace_file(path) as fresh:
        comment = f"{count} frames".encode()
        strip.save(fresh, "JPEG", quality=_QUALITY, subsampling=0, comment=comment)


def read_filmstrip(path: Path) -> UInt8[np.ndarray, "frames height width 3"]:
    """The frames of such a file, a few grey levels from what was written.

    Raises:
        VideoError: there is none, or it is damaged.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=("JPEG",)) as strip:
            count = re.fullmatch(rb"(\d+) frames", strip.info.get("comment", b""))
            pixels = np.asarray(strip.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise VideoError(f"the kept frames in {path.name} cannot be read: {error}") from None
    if count is None or len(pixels) % int(count.group(1)):
        raise VideoError(f"{path.name} holds no kept frames")
    return pixels.reshape(int(count.group(1)), -1, *pixels.shape[1:])

"""Pictures out of videos, and searches that begin with one."""

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from sureshot.errors import QueryError, VideoError
from sureshot.library.answer import Answer
from sureshot.library.search import Searcher
from sureshot.media.frame import read_image
from sureshot.media.video import frames_at
from sureshot.text import plain, printable

_QUALITY = 82


def still(path: Path, at: float, *, side: int, rate: float = 1.0) -> bytes:
    """What a video shows at one time, as a JPEG.

    Args:
        path: a file or a folder of frames.
        at: seconds; the first and last frame stand in for what lies beyond them.
        side: shorter side of the picture, in pixels at most.
        rate: frames per second of a folder of frames.

    Raises:
        VideoError: the video cannot be read; the message names it.
    """
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(_shown(path, at, side, rate)).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def like_photo(searcher: Searcher, data: bytes, name: str, **wanted: Any) -> Answer:
    """Moments that look like a photo.

    Args:
        searcher: the opened index.
        data: bytes of an image file.
        name: what to call it.
        wanted: how many hits and where, as for `Searcher.like`.

    Raises:
        QueryError: it is no image.
    """
    with tempfile.TemporaryDirectory(prefix="sureshot-") as folder:
        given = Path(folder, "given")
        given.write_bytes(data)
        try:
            # Never to ffmpeg as it came: some of its formats are lists of other files to read.
            picture = read_image(given)
        except VideoError as error:
            raise QueryError(
                f"{plain(name)} is not a picture that can be read ({error}); give a JPEG or a PNG."
            ) from None
        return _like(searcher, np.asarray(picture), Path(folder), name, wanted)


def like_frame(searcher: Searcher, path: Path, at: float, **wanted: Any) -> Answer:
    """Moments that look like the one frame that a video shows at a time.

    Args:
        searcher: the opened index.
        path: a video.
        at: seconds.
        wanted: how many hits and where, as for `Searcher.like`.

    Raises:
        VideoError: the video cannot be read; the message names it.
    """
    picture = _shown(path, at, 720, searcher.store.settings.frame_rate)
    with tempfile.TemporaryDirectory(prefix="sureshot-") as folder:
        return _like(searcher, picture, Path(folder), f"{printable(path)}@{at:g}", wanted)


def _shown(path: Path, at: float, side: int, rate: float) -> UInt8[np.ndarray, "height width 3"]:
    try:
        return frames_at(path, [at], side=side, rate=rate)[0]
    except VideoError as error:
        raise VideoError(f"{plain(path)} {error}.", transient=error.transient) from None


def _like(
    searcher: Searcher,
    picture: UInt8[np.ndarray, "height width 3"],
    folder: Path,
    name: str,
    wanted: dict[str, Any],
) -> Answer:
    from PIL import Image

    file = folder / "picture.png"
    Image.fromarray(picture).save(file)
    return replace(searcher.like(file, **wanted), query=name)

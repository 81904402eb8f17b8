"""Random changes of frames, one draw for all frames of a video, as the papers' codes train with.

Differs:
    The codes draw from random numbers that are not kept; here a video's draw follows from the seed,
    the epoch and the video, so that a run that goes on sees the frames it would have seen.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import UInt8

from sureshot.media.signature import FrameSize, Resize, shrunk

if TYPE_CHECKING:
    from PIL import Image

Augment = Literal["none", "crop_flip", "rand_augment"]

_SCALE = (0.5, 1.0)  # share of a frame's area that a crop keeps
_RATIO = (3 / 4, 4 / 3)  # width of a crop over its height
_TRIES = 10
_CHANGES, _CHANCE = 4, 0.5  # changes drawn for a video, and how often each is made
_STRENGTH, _SPREAD, _STRONGEST = 7.0, 0.5, 10.0  # of a change, and its deviation
_GREY = (124, 116, 104)  # mean colour of photographs, beyond the edge of a turned one


def augmented(kind: Augment, size: FrameSize, side: int, draw: np.random.Generator) -> FrameSize:
    """What makes changed images of the whole frames of one video.

    Args:
        kind: ``none`` gives ``size`` as it is. ``crop_flip`` cuts one box out of each frame, half
            of its area to all of it, and mirrors every second video. ``rand_augment`` makes up to
            four of fifteen changes of colour and shape (``rand-m7-n4-mstd0.5-inc1``).
        size: how frames are resized without a change.
        side: pixels along the square that the network reads.
        draw: random numbers of this video.
    """
    if kind == "none":
        return size
    if kind == "crop_flip":
        numbers, mirrored = draw.random((_TRIES, 4)), bool(draw.random() < 0.5)

        def cut(frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
            from PIL import Image

            found = crop_box(frame.shape[0], frame.shape[1], numbers)
            picture = Image.fromarray(frame).resize(
                (side, side), Image.Resampling.BILINEAR, box=found
            )
            pixels = np.asarray(picture)
            return pixels[:, ::-1] if mirrored else pixels

        return cut
    changes = _drawn_changes(draw)

    def changed(frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        from PIL import Image

        picture = Image.fromarray(_resize(size)(frame))
        for change in changes:
            picture = change(picture)
        return np.asarray(picture)

    return changed


def crop_box(height: int, width: int, numbers: np.ndarray) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a random crop, in pixels.

    Args:
        height: rows of the frame.
        width: columns of the frame.
        numbers: random numbers in [0, 1): a row for each try at area, ratio, left and top. If no
            try is within the frame, it is the largest crop in the middle of a ratio allowed.
    """
    for area, ratio, left, top in numbers:
        pixels = height * width * (_SCALE[0] + area * (_SCALE[1] - _SCALE[0]))
        shape = math.exp(math.log(_RATIO[0]) + ratio * math.log(_RATIO[1] / _RATIO[0]))
        wide, high = round(math.sqrt(pixels * shape)), round(math.sqrt(pixels / shape))
        if 0 < wide <= width and 0 < high <= height:
            x, y = int(left * (width - wide + 1)), int(top * (height - high + 1))
            return float(x), float(y), float(x + wide), float(y + high)
    wide = min(width, round(height * _RATIO[1]))
    high = min(height, round(width / _RATIO[0]))
    across, down = (width - wide) / 2, (height - high) / 2
    return across, down, across + wide, down + high


def _resize(size: FrameSize) -> Resize:
    if callable(size):
        return size

    def small(frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        from PIL import Image

        shape = shrunk(frame.shape[1], frame.shape[0], size)
        return np.asarray(Image.fromarray(frame).resize(shape, Image.Resampling.BOX))

    return small


_Change = Callable[["Image.Image"], "Image.Image"]


def _drawn_changes(draw: np.random.Generator) -> list[_Change]:
    made: list[_Change] = []
    for name in draw.choice(sorted(_MAKERS), _CHANGES):
        strength = float(np.clip(draw.normal(_STRENGTH, _SPREAD), 0, _STRONGEST)) / _STRONGEST
        sign = -1.0 if draw.random() < 0.5 else 1.0
        if draw.random() < _CHANCE:
            made.append(_MAKERS[name](strength, sign))
    return made


def _enhanced(name: str) -> Callable[[float, float], _Change]:
    """Colour, contrast, brightness or sharpness, up to 0.9 more or less of it."""

    def make(strength: float, sign: float) -> _Change:
        def change(picture: "Image.Image") -> "Image.Image":
            from PIL import ImageEnhance

            enhance = getattr(ImageEnhance, name)(picture)
            found: Image.Image = enhance.enhance(max(0.1, 1 + sign * strength * 0.9))
            return found

        return change

    return make


def _operated(name: str, argument: Callable[[float], int] | None = None) -> Callable[..., _Change]:
    """An operation of `PIL.ImageOps`, with a number that the strength gives or none."""

    def make(strength: float, sign: float) -> _Change:
        def change(picture: "Image.Image") -> "Image.Image":
            from PIL import ImageOps

            given = () if argument is None else (argument(strength),)
            found: Image.Image = getattr(ImageOps, name)(picture, *given)
            return found

        return change

    return make


def _moved(
    matrix: Callable[[float, int, int], tuple[float, ...]], limit: float
) -> Callable[[float, float], _Change]:
    """An affine map; limit: of the share of a frame or the slope that it moves by."""

    def make(strength: float, sign: float) -> _Change:
        def change(picture: "Image.Image") -> "Image.Image":
            from PIL import Image

            data = matrix(sign * strength * limit, *picture.size)
            affine, bicubic = Image.Transform.AFFINE, Image.Resampling.BICUBIC
            return picture.transform(picture.size, affine, data, bicubic, fillcolor=_GREY)

        return change

    return make


def _turned(strength: float, sign: float) -> _Change:
    def change(picture: "Image.Image") -> "Image.Image":
        from PIL import Image

        angle = sign * strength * 30
        return picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=_GREY)

    return change


def _brightened_where_dark(strength: float, sign: float) -> _Change:
    def change(picture: "Image.Image") -> "Image.Image":
        return picture.point([min(255, v + int(strength * 110)) if v < 128 else v for v in _LEVELS])

    return change


_LEVELS = [level for _ in range(3) for level in range(256)]
_MAKERS: Mapping[str, Callable[[float, float], _Change]] = {
    "autocontrast": _operated("autocontrast"),
    "equalize": _operated("equalize"),
    "invert": _operated("invert"),
    "posterize": _operated("posterize", lambda strength: max(1, 4 - int(strength * 4))),
    "solarize": _operated("solarize", lambda strength: 256 - int(strength * 256)),
    "solarize_add": _brightened_where_dark,
    "rotate": _turned,
    "color": _enhanced("Color"),
    "contrast": _enhanced("Contrast"),
    "brightness": _enhanced("Brightness"),
    "sharpness": _enhanced("Sharpness"),
    "shear_x": _moved(lambda by, w, h: (1, by, 0, 0, 1, 0), 0.3),
    "shear_y": _moved(lambda by, w, h: (1, 0, 0, by, 1, 0), 0.3),
    "translate_x": _moved(lambda by, w, h: (1, 0, by * w, 0, 1, 0), 0.45),
    "translate_y": _moved(lambda by, w, h: (1, 0, 0, 0, 1, by * h), 0.45),
}

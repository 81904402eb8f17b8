"""Random changes of frames, one draw for all frames of a video, as the papers' codes train with.

Differs:
    The codes draw from random numbers that are not kept; here a video's draw follows from the seed,
    the epoch and the video, so that a run that goes on sees the frames it would have seen.
"""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import UInt8

from sureshot.media.signature import FrameSize, shrunk

if TYPE_CHECKING:
    from PIL import Image

Augment = Literal["none", "crop_flip", "rand_augment"]

_SCALE = (0.5, 1.0)  # share of a frame's area that a crop keeps
_RATIO = (3 / 4, 4 / 3)  # width of a crop over its height
SHORTEST_CROP = math.sqrt(_SCALE[0] * _RATIO[0])  # its shorter side over that of a square frame
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

            box = crop_box(frame.shape[0], frame.shape[1], numbers)
            picture = Image.fromarray(frame)
            pixels = np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR, box=box))
            return pixels[:, ::-1] if mirrored else pixels

        return cut
    changes = _drawn_changes(draw)

    def changed(frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        from PIL import Image

        picture = Image.fromarray(size(frame) if callable(size) else frame)
        if not callable(size):
            shape = shrunk(*picture.size, size)
            picture = picture.resize(shape, Image.Resampling.BOX)
        for name, strength, sign in changes:
            picture = change(picture, name, strength, sign)
        return np.asarray(picture)

    return changed


def crop_box(height: int, width: int, numbers: np.ndarray) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a random crop, in pixels.

    Args:
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


def _drawn_changes(draw: np.random.Generator) -> list[tuple[str, float, float]]:
    """Name, strength and sign of each change that is made of a video."""
    made = []
    for name in draw.choice(CHANGES, _CHANGES):
        strength = float(np.clip(draw.normal(_STRENGTH, _SPREAD), 0, _STRONGEST)) / _STRONGEST
        sign = -1.0 if draw.random() < 0.5 else 1.0
        if draw.random() < _CHANCE:
            made.append((name, strength, sign))
    return made


CHANGES = (
    "autocontrast",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "invert",
    "posterize",
    "rotate",
    "sharpness",
    "shear_x",
    "shear_y",
    "solarize",
    "solarize_add",
    "translate_x",
    "translate_y",
)


def change(picture: "Image.Image", name: str, strength: float, sign: float) -> "Image.Image":
    """A picture after one of the changes; strength is within [0, 1]."""
    from PIL import Image, ImageEnhance, ImageOps

    by, (width, height) = sign * strength, picture.size
    affine = {
        "shear_x": (1, by * 0.3, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, by * 0.3, 1, 0),
        "translate_x": (1, 0, by * 0.45 * width, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, by * 0.45 * height),
    }
    bicubic = Image.Resampling.BICUBIC
    if name in affine:
        how = Image.Transform.AFFINE
        return picture.transform(picture.size, how, affine[name], bicubic, fillcolor=_GREY)
    if name == "rotate":
        return picture.rotate(by * 30, bicubic, fillcolor=_GREY)
    if name == "posterize":
        return ImageOps.posterize(picture, max(1, 4 - int(strength * 4)))
    if name == "solarize":
        return ImageOps.solarize(picture, 256 - int(strength * 256))
    if name == "solarize_add":  # brighter where it is dark
        levels = [min(255, v + int(strength * 110)) if v < 128 else v for v in range(256)]
        return picture.point(levels * 3)
    changed: Image.Image
    if name in ("autocontrast", "equalize", "invert"):
        changed = getattr(ImageOps, name)(picture)
    else:  # up to 0.9 more or less colour, contrast, brightness or sharpness
        changed = getattr(ImageEnhance, name.title())(picture).enhance(max(0.1, 1 + by * 0.9))
    return changed

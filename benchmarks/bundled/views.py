"""What a step of the whole network sees of a frame, and frames as phones take them.

A frame is cropped, mirrored and changed in colour, and some are blurred, dark and grainy, crushed
by JPEG or small. Frames here are 8-bit RGB, rows first.
"""

import io
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageEnhance, ImageFilter

Frame = UInt8[np.ndarray, "h w 3"]

SEEN = 224  # pixels of the side of a square with as many as a frame that is trained on
_SHAPES = ((1, 1), (4, 3), (3, 4), (3, 2), (16, 9))  # width and height; few, to be seen together
_SQUARE, _CROPPED, _COLOURED = 0.5, 0.6, 0.5  # shares of the frames
_SMALLEST = 0.45  # of a frame's area that is left of it
_SHORT = 240  # pixels of the shorter side that strengths of blur are meant for


def view(frame: Frame, draw: np.random.Generator, spoiled: float) -> Frame:
    """A frame as it is seen once.

    Args:
        frame: of any size.
        draw: by which it is chosen what happens.
        spoiled: share of the frames that look as if a phone had taken them badly.
    """
    image = Image.fromarray(frame)
    width, height = image.size
    apart = [abs(np.log(width / height * h / w)) for w, h in _SHAPES]
    shape = _SHAPES[0 if draw.random() < _SQUARE else int(np.argmin(apart))]
    ratio = shape[0] / shape[1]
    kept = draw.uniform(_SMALLEST, 1) if draw.random() < _CROPPED else 1.0
    box = np.array((min(width, height * ratio), min(height, width / ratio))) * kept**0.5
    left, top = draw.uniform(0, np.maximum(np.array(image.size) - box, 0))
    if draw.random() < spoiled:
        image = spoil(image, draw)
    side = SEEN * ratio**0.5, SEEN / ratio**0.5
    size = (round(side[0] / 4) * 4, round(side[1] / 4) * 4)
    image = image.resize(size, Image.Resampling.BICUBIC, (left, top, left + box[0], top + box[1]))
    if draw.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if draw.random() < _COLOURED:
        kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
        for kind in draw.permutation(len(kinds))[:2]:
            image = kinds[kind](image).enhance(draw.uniform(0.65, 1.4))
    return np.asarray(image)


def spoil(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    """One or two of what phones do to pictures, each weak or strong."""
    kinds = (_blurred, _dark, _crushed, _small)
    for kind in draw.permutation(len(kinds))[: draw.integers(1, 3)]:
        image = kinds[kind](image, draw)
    return image


def _blurred(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    return blur(image, draw.uniform(0.5, 3.2))


def _dark(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    light, grain = draw.uniform(0.15, 0.7), draw.uniform(2, 11)
    return darken(image, light, grain, draw, grey=draw.random() < 0.4)


def _crushed(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    return crush(image, int(draw.integers(8, 40)))


def _small(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    share = draw.uniform(0.25, 0.6)
    size = (max(8, round(image.width * share)), max(8, round(image.height * share)))
    return image.resize(size, Image.Resampling.BILINEAR).resize(
        image.size, Image.Resampling.BILINEAR
    )


def blur(image: Image.Image, radius: float) -> Image.Image:
    """Out of focus by a radius of pixels, of 240 of the shorter side."""
    return image.filter(ImageFilter.GaussianBlur(radius * min(image.size) / _SHORT))


def darken(
    image: Image.Image,
    light: float,
    grain: float,
    draw: np.random.Generator,
    grey: bool = False,
) -> Image.Image:
    """A share of the light, and a sensor's grain of a deviation in levels of 255."""
    noise = draw.normal(0, grain, (image.height, image.width, 1 if grey else 3))
    return Image.fromarray(np.clip(np.asarray(image) * light + noise, 0, 255).astype(np.uint8))


def crush(image: Image.Image, quality: int) -> Image.Image:
    """Through a JPEG."""
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=quality)
    return Image.open(packed).convert("RGB")


def upright(image: Image.Image) -> Image.Image:
    """The middle of it, of 9 by 16."""
    width = min(image.width, round(image.height * 9 / 16))
    left = (image.width - width) // 2
    return image.crop((left, 0, left + width, image.height))


# What galleries of bad frames are made of.
BAD: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "blurred": lambda image, _: blur(image, 3),
    "dark": lambda image, draw: darken(image, 0.25, 8, draw),
    "crushed": lambda image, _: crush(image, 12),
    "upright": lambda image, _: upright(image),
}


def bad(frames: Sequence[Frame], number: int) -> list[Frame]:
    """Frames of an item as a phone takes them badly, each item in another way by its number."""
    draw = np.random.default_rng(number)
    kind = list(BAD.values())[number % len(BAD)]
    return [np.asarray(kind(Image.fromarray(frame), draw)) for frame in frames]

"""The pictures of made videos: one moving shape on a grey ground, with a trail behind it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, UInt8

from sureshot.datasets.made_facts import Scene

SIDE = 64  # pixels of a frame
RATE = 4  # frames a second
PER_SCENE = 4  # frames of a scene
_COLOURS = {
    "red": (225, 40, 40),
    "green": (40, 175, 60),
    "blue": (50, 80, 230),
    "yellow": (240, 215, 40),
    "white": (245, 245, 245),
    "purple": (150, 50, 190),
}
_RADIUS = {"small": 7.0, "large": 12.0}  # pixels
_CENTRES = {
    "top left": (16.0, 16.0),
    "top right": (16.0, 48.0),
    "bottom left": (48.0, 16.0),
    "bottom right": (48.0, 48.0),
}  # row, column
_STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
_STEP = 2.0  # pixels from frame to frame
_TRAIL = 10  # pixels behind the shape that it has left a shadow on
_JITTER = 1.5  # pixels that a shape lies off the middle of its place, at most
_MIDDLES = np.arange(SIDE) + 0.5  # of pixels
_GROUND, _NOISE = (60, 130), 6.0  # grey levels of the ground, deviation of its texture


def frames_of(
    scenes: Sequence[Scene], draw: np.random.Generator
) -> UInt8[np.ndarray, "frames side side 3"]:
    """RGB frames of a video, `PER_SCENE` of each scene.

    A caption never tells how bright the ground is, its texture and where exactly a shape begins;
    these are drawn.

    Args:
        scenes: what is shown, in this order.
        draw: source of what no caption tells.
    """
    noise = draw.normal(draw.uniform(*_GROUND), _NOISE, (SIDE, SIDE, 1))
    ground = np.repeat(noise, 3, axis=2)
    pictures = []
    for scene in scenes:
        centre = np.array(_CENTRES[scene["place"]]) + draw.uniform(-_JITTER, _JITTER, 2)
        step = np.array(_STEPS[scene["direction"]], float)
        for number in range(PER_SCENE):
            at = centre + step * _STEP * (number - (PER_SCENE - 1) / 2)
            pictures.append(_painted(ground.copy(), scene, at, step))
    return np.stack(pictures)


def _painted(
    picture: Float[np.ndarray, "side side 3"],
    scene: Scene,
    at: Float[np.ndarray, " 2"],
    step: Float[np.ndarray, " 2"],
) -> UInt8[np.ndarray, "side side 3"]:
    radius, colour = _RADIUS[scene["size"]], np.array(_COLOURS[scene["colour"]], float)
    for behind in range(_TRAIL, 0, -2):  # the trail tells in a single frame where it comes from
        back = at - step * (radius * 0.6 + behind)
        spot = _covered("circle", back, radius * 0.35)
        picture[spot] = 0.55 * picture[spot] + 0.45 * colour
    picture[_covered(scene["shape"], at, radius)] = colour
    return np.clip(picture, 0, 255).astype(np.uint8)


def _covered(
    shape: str, at: Float[np.ndarray, " 2"], radius: float
) -> Bool[np.ndarray, "side side"]:
    """The pixels of a shape."""
    down, right = _MIDDLES[:, None] - at[0], _MIDDLES[None] - at[1]
    far = np.hypot(down, right)
    match shape:
        case "circle":
            return far <= radius
        case "ring":
            return (far <= radius) & (far >= radius * 0.55)
        case "square":
            return np.maximum(abs(down), abs(right)) <= radius * 0.85
        case "cross":
            thin = np.minimum(abs(down), abs(right)) <= radius * 0.3
            return thin & (np.maximum(abs(down), abs(right)) <= radius)
        case _:  # triangle, its point up
            return (down <= radius * 0.8) & (abs(right) <= (down + radius) * 0.55)

"""Frames to what a vision network reads: resized, cropped, rescaled, normalised.

Follows ``preprocessor_config.json`` as the image processors of transformers do, without them: they
need an object a frame, this needs one call. Torch resizes bytes with the filters of Pillow, lines
first, and rounds between the two directions as Pillow does; a value differs by one of the 256
levels in few places, by two next to hard edges, and takes a third of the time or less
(``python -m benchmarks.preprocessing``). Whole decoded frames are resized, by `resize` while a
video is decoded: whatever had shrunk them before would be seen in the result.

Differs:
    From version 13 on Pillow resizes columns first where that is faster, which shows where an
    upright frame is widened. We keep the order that the checkpoints were trained on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.models.encoders.snapshot import IMAGES, PROCESSOR, Snapshot

Family = Literal["clip", "siglip"]
_FILTERS: Mapping[object, Literal["bilinear", "bicubic"]] = {2: "bilinear", 3: "bicubic"}
_SLIVER = 32  # times as long as wide: more of a frame is not worth the memory
_FIX = "Give a checkpoint that resizes or crops every frame to the square its network reads."


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What happens to a frame before a network reads it.

    Attributes:
        side: pixels along a side of the square that comes out; what is larger is cropped around the
            centre, what is smaller is surrounded by black.
        resize_to: the shorter side or (height, width) to resize to, in pixels; None for neither.
        method: the filter that resizes.
        values: what each of the 256 levels of a byte becomes, for red, green and blue.
    """

    side: int
    resize_to: int | tuple[int, int] | None
    method: Literal["bilinear", "bicubic"]
    values: Float[np.ndarray, "3 256"]

    @classmethod
    def read(cls, snapshot: Snapshot, family: Family, side: int) -> "Preprocessing":
        """What a model's folder asks for, with the defaults of its family where it says nothing.

        Args:
            snapshot: the folder.
            family: whose defaults to take.
            side: pixels along a side of the square that the network reads.

        Raises:
            ModelError: it asks for something unknown here, or for another square.
        """
        nested = snapshot.settings(PROCESSOR).get("image_processor")
        given = nested if isinstance(nested, dict) else snapshot.settings(IMAGES)
        asked = _defaults(family, side) | {k: v for k, v in given.items() if v is not None}
        resize = _size(asked["size"]) if asked["do_resize"] else None
        if asked["do_resize"] and (resize is None or asked["resample"] not in _FILTERS):
            how = f"size {asked['size']} and resample {asked['resample']}"
            raise snapshot.refuse(f"its frames are resized in a way unknown here ({how})", _FIX)
        crop = _size(asked.get("crop_size")) if asked["do_center_crop"] else resize
        if crop not in (side, (side, side)) or (crop == side and not asked["do_center_crop"]):
            reason = f"its network reads squares of {side} pixels, its preprocessing gives {crop}"
            raise snapshot.refuse(reason, _FIX)
        try:
            values = _values(asked)
        except (TypeError, ValueError):
            reason = "its frames are normalised by something not a number"
            fix = f"Correct image_mean, image_std and rescale_factor in {IMAGES}."
            raise snapshot.refuse(reason, fix) from None
        method = _FILTERS.get(asked["resample"], "bicubic")
        return cls(side=side, resize_to=resize, method=method, values=values)

    @property
    def shorter(self) -> int:
        """The shorter side, in pixels, that a frame has after resizing."""
        match self.resize_to:
            case None:
                return self.side
            case int():
                return self.resize_to
            case _:
                return min(self.resize_to)

    def apply(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Float[np.ndarray, "frames 3 side side"]:
        """Frames of one size as the network reads them; they may lie in memory in any order."""
        frames = self._resized(frames)
        (top, to_top), (left, to_left) = (_window(n, self.side) for n in frames.shape[1:3])
        square = np.zeros((len(frames), 3, self.side, self.side), np.uint8)
        square[:, :, to_top, to_left] = frames[:, top, left].transpose(0, 3, 1, 2)
        return self.values[np.arange(3)[:, None, None], square]

    def resize(self, frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        """The first step of `apply`, which then has nothing left to resize.

        Args:
            frame: a whole frame; of a sliver the middle is taken, which is all that `apply` crops.
        """
        most = _SLIVER * min(frame.shape[:2])
        if isinstance(self.resize_to, int) and max(frame.shape[:2]) > most:
            # As odd or even as before, so that the middle stays the middle.
            kept = (min(length, most - (length - most) % 2) for length in frame.shape[:2])
            rows, columns = map(_window, frame.shape[:2], kept)
            frame = frame[rows[0], columns[0]]
        return self._resized(frame[None])[0]

    def _resized(
        self, frames: UInt8[np.ndarray, "frames h w 3"]
    ) -> UInt8[np.ndarray, "frames height width 3"]:
        """Frames in the size that they have before they are cropped."""
        import torch

        size = frames.shape[1:3]
        target = size if self.resize_to is None else _target(self.resize_to, *size)
        if target == size:
            return frames
        # Torch warns about memory that cannot be written and refuses negative strides. The colours
        # of a pixel stay together, which is several times as fast as a plane for each.
        pixels = torch.from_numpy(np.require(frames, requirements=["C", "W"])).permute(0, 3, 1, 2)
        resized = torch.nn.functional.interpolate(
            pixels, size=target, mode=self.method, antialias=True, align_corners=False
        )
        return resized.permute(0, 2, 3, 1).numpy()


def _defaults(family: Family, side: int) -> dict[str, Any]:
    """What the image processor of a family does untold, at the size its network reads."""
    if family == "clip":
        mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
        shape: dict[str, Any] = {"size": side, "do_center_crop": True, "crop_size": side}
    else:
        mean, std = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
        shape = {"size": {"height": side, "width": side}, "do_center_crop": False}
    switches = {"do_resize": True, "do_rescale": True, "do_normalize": True}
    numbers = {"resample": 3, "rescale_factor": 1 / 255, "image_mean": mean, "image_std": std}
    return shape | switches | numbers


def _size(given: object) -> int | tuple[int, int] | None:
    """A shorter side or a (height, width); None where it is written in neither way."""
    match given:
        case bool():
            return None
        case int():
            return given
        case {"shortest_edge": int(short), **others} if not any(others.values()):
            return short
        case {"height": int(height), "width": int(width)}:
            return height, width
        case _:
            return None


def _values(asked: Mapping[str, Any]) -> Float[np.ndarray, "3 256"]:
    """Rescaling and normalising of every level, in the precision and order of the library."""
    levels = np.arange(256, dtype=np.float64)
    if asked["do_rescale"]:
        levels = levels * float(asked["rescale_factor"])
    values = np.broadcast_to(levels.astype(np.float32), (3, 256))
    if asked["do_normalize"]:
        mean = np.broadcast_to(np.asarray(asked["image_mean"], np.float32), 3)
        std = np.broadcast_to(np.asarray(asked["image_std"], np.float32), 3)
        values = (values - mean[:, None]) / std[:, None]
    return np.ascontiguousarray(values)


def _target(resize: int | tuple[int, int], height: int, width: int) -> tuple[int, int]:
    """(height, width) after resizing; the longer side is cut to whole pixels, never rounded up."""
    if isinstance(resize, tuple):
        return resize
    longer = int(resize * max(height, width) / min(height, width))
    return (longer, resize) if width <= height else (resize, longer)


def _window(length: int, side: int) -> tuple[slice, slice]:
    """Which pixels of a line to keep, and where they go in a line of ``side`` pixels."""
    start, kept = (length - side) // 2, min(length, side)
    source, target = max(start, 0), max(-start, 0)
    return slice(source, source + kept), slice(target, target + kept)

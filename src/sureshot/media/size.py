"""How large a decoded frame is wanted."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import UInt8

# What makes an image of a whole RGB frame; called by the threads that decode, several at once.
Resize: TypeAlias = Callable[[UInt8[np.ndarray, "h w 3"]], UInt8[np.ndarray, "height width 3"]]
# The shorter side in pixels, at most, that an area filter shrinks a frame to while its colours are
# converted; or a function for those who must have its pixels as they are.
FrameSize: TypeAlias = int | Resize

_LONGEST = 8  # a sliver of a frame is cut down to this many times the side asked for


def shrunk(width: float | int, height: int, side: int) -> tuple[int, int]:
    """Width and height in the same shape whose shorter side is at most ``side``; never enlarged.

    Args:
        width: columns of the frame in square pixels, any fraction.
        height: rows of the frame.
        side: pixels along the shorter side of the result.

    Examples:
        >>> shrunk(640, 360, 224)
        (398, 224)
    """
    scale = min(1.0, side / min(width, height))
    most = _LONGEST * side
    return tuple(max(1, min(round(length * scale), most)) for length in (width, height))  # type: ignore[return-value]

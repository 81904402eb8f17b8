"""Frames are kept as long as there is room."""

from pathlib import Path

import numpy as np

from sureshot.datasets.split import Item
from sureshot.research.features import FrameMemory


def test_what_fits_is_kept_and_the_rest_is_not():
    memory = FrameMemory(room=30)
    first, other, small = (Item(name, Path(name)) for name in "abc")
    frames = np.zeros((1, 3, 2, 3), np.uint8)  # 18 bytes
    memory.put(first, frames)
    memory.put(first, frames)
    memory.put(other, frames)
    memory.put(small, frames[:, :, :1])
    assert memory.get(first) is frames
    assert memory.get(other) is None
    assert memory.get(small) is not None

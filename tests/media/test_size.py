"""Sizes of frames."""

import numpy as np
import pytest

from sureshot.media.signature import FrameSize, shrunk


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        ((640, 360), 224, (398, 224)),
        ((360, 640), 224, (224, 398)),
        ((320, 240), 224, (299, 224)),
        ((100, 50), 224, (100, 50)),
        ((682.67, 480), 240, (341, 240)),
        ((2000, 8), 24, (192, 8)),
        ((1, 1), 24, (1, 1)),
    ],
)
def test_the_shorter_side_is_at_most_what_was_asked_for(size, side, expected):
    assert shrunk(*size, side) == expected


def test_a_size_is_a_number_or_a_function():
    whole: FrameSize = np.ascontiguousarray
    assert callable(whole) and not callable(224)

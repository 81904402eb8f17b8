"""Pictures show what the facts say, and nothing of them twice the same."""

import numpy as np
import pytest

from sureshot.datasets.synthetic import FACTS, PER_SCENE, SIDE, frames_of

SCENE = {
    "colour": "red",
    "shape": "square",
    "size": "large",
    "place": "top left",
    "direction": "right",
}


def shown(seed=0, **facts):
    return frames_of([{**SCENE, **facts}], np.random.default_rng(seed)).astype(int)


def covered(frame):
    """Where a frame is red, without the trail."""
    return (frame[..., 0] > 200) & (frame[..., 1] < 80)


def centre(frame):
    return np.argwhere(covered(frame)).mean(0)


def test_a_video_has_frames_of_each_scene():
    frames = frames_of([SCENE, {**SCENE, "place": "bottom right"}], np.random.default_rng(0))
    assert frames.shape == (2 * PER_SCENE, SIDE, SIDE, 3)
    assert centre(frames[0].astype(int)).max() < SIDE / 2 < centre(frames[-1].astype(int)).min()


@pytest.mark.parametrize(
    ("direction", "axis", "sign"), [("left", 1, -1), ("right", 1, 1), ("up", 0, -1), ("down", 0, 1)]
)
def test_the_shape_moves_and_leaves_its_trail_behind(direction, axis, sign):
    frames = shown(direction=direction)
    moved = centre(frames[-1]) - centre(frames[0])
    assert moved[axis] * sign > 4
    assert abs(moved[1 - axis]) < 1
    redder = (frames[2][..., 0] - frames[2][..., 1] > 25) & ~covered(frames[2])
    trail = np.argwhere(redder).mean(0)
    assert (centre(frames[2]) - trail)[axis] * sign > 5


def test_every_value_of_a_fact_looks_different():
    for fact, values in FACTS.items():
        seen = [shown(**{fact: value})[1] for value in values]
        for first, one in enumerate(seen):
            for other in seen[:first]:
                assert (abs(one - other).max(-1) > 60).sum() > 20


def test_what_no_caption_tells_is_drawn():
    assert (shown(0) == shown(0)).all()
    assert abs(shown(0)[0, -1, -1] - shown(1)[0, -1, -1]).max() > 0

"""Features: stacking pads and masks, and the shapes are really checked."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.models.encoders.base import FrameFeatures, TextFeatures, stack


def video(frames, seed=0, patches=2):
    dice = np.random.default_rng(seed)
    return FrameFeatures(
        frames=dice.normal(size=(frames, 4)).astype(np.float32),
        patches=dice.normal(size=(frames, patches, 4)).astype(np.float32),
        backbone=dice.normal(size=(frames, 5)).astype(np.float32),
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 3))
def test_stack_keeps_every_frame_and_pads_with_zeros(counts, patches):
    videos = [video(count, seed, patches) for seed, count in enumerate(counts)]
    stacked = stack(videos)
    assert stacked.mask.sum(1).tolist() == counts
    assert stacked.frames.shape == (len(counts), max(counts), 4)
    assert stacked.patches.shape == (len(counts), max(counts), patches, 4)
    for row, one in enumerate(videos):
        real = stacked.mask[row]
        assert real[: counts[row]].all()
        for name in ("frames", "patches", "backbone"):
            padded = getattr(stacked, name)[row]
            assert np.array_equal(padded[real], getattr(one, name))
            assert (padded[~real] == 0).all()


def test_stack_copies():
    one = video(2)
    stack([one]).frames[:] = 0
    assert one.frames.any()


@pytest.mark.shapes
def test_features_of_unequal_sizes_are_refused():
    with pytest.raises(jaxtyping.TypeCheckError):
        FrameFeatures(
            frames=np.zeros((2, 4), np.float32),
            patches=np.zeros((3, 1, 4), np.float32),
            backbone=np.zeros((2, 5), np.float32),
        )
    with pytest.raises(jaxtyping.TypeCheckError):
        TextFeatures(
            sentence=np.zeros((1, 4), np.float32),
            words=np.zeros((1, 2, 4), np.float32),
            mask=np.zeros((1, 2), np.float32),
            truncated=np.zeros(1, bool),
        )

"""Pooling equals slow loops, whatever the padding holds; so does the similarity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sureshot.models.encoders.base import cosine, mean_pool, pool_grid


def slow_mean_pool(frames, mask):
    pooled = []
    for video, real in zip(frames, mask, strict=True):
        total = [0.0] * video.shape[1]
        for frame, is_real in zip(video, real, strict=True):
            if is_real:
                total = [t + float(x) for t, x in zip(total, frame, strict=True)]
        length = sum(t * t for t in total) ** 0.5
        pooled.append([t / length if length else 0.0 for t in total])
    return np.array(pooled)


@st.composite
def videos(draw):
    """Frames of any scale, and a mask with at least one real frame a video."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, frames, dim = (draw(st.integers(1, 5)) for _ in range(3))
    scale = draw(st.sampled_from([1e-20, 1.0, 1e20]))
    mask = dice.random((count, frames)) < 0.6
    mask[:, 0] = True
    return (dice.normal(0, scale, (count, frames, dim))).astype(np.float32), mask


@given(videos())
def test_mean_pool_equals_a_slow_loop(video):
    frames, mask = video
    assert np.allclose(mean_pool(frames, mask), slow_mean_pool(frames, mask), atol=1e-5)


@given(videos(), st.sampled_from([0.0, 7.0, np.inf, np.nan]))
def test_padding_may_hold_anything(video, rubbish):
    # Padding was masked by a product, which makes NaN of what is not finite.
    frames, mask = video
    spoilt = np.where(mask[..., None], frames, np.float32(rubbish))
    more = np.full((len(frames), 3, frames.shape[2]), rubbish, np.float32)
    longer = np.concatenate([spoilt, more], axis=1)
    mask = np.pad(mask, ((0, 0), (0, 3)))
    assert np.allclose(mean_pool(longer, mask), mean_pool(frames, mask[:, :-3]), atol=1e-6)


@given(videos())
def test_what_is_pooled_has_unit_length_and_the_type_of_the_frames(video):
    frames, mask = video
    pooled = mean_pool(frames, mask)
    assert pooled.dtype == np.float32
    # Tiny and huge vectors once pooled to zero.
    assert np.allclose(np.linalg.norm(pooled, axis=1), 1, atol=1e-5)


def test_frames_that_are_zero_or_cancel_out_pool_to_zero():
    frames = np.array([[[0, 0], [0, 0]], [[1, 2], [-1, -2]]], np.float32)
    assert mean_pool(frames, np.ones((2, 2), bool)).tolist() == [[0, 0], [0, 0]]


def test_a_longer_frame_weighs_more():
    frames = np.array([[[3, 0], [0, 1]]], np.float32)
    assert mean_pool(frames, np.ones((1, 2), bool)) == pytest.approx(np.array([[3, 1]]) / 10**0.5)


def test_frames_are_left_as_they_were():
    frames = np.ones((1, 2, 3), np.float32)
    mean_pool(frames, np.ones((1, 2), bool))
    assert (frames == 1).all()


def slow_pool_grid(patches, side):
    """Rows and columns of patches, shared out among cells, the larger shares first."""
    frames, count, dim = patches.shape
    across = round(count**0.5)
    shares = [across // side + (cell < across % side) for cell in range(side)]
    edges = [sum(shares[:cell]) for cell in range(side + 1)]
    cells = np.zeros((frames, side * side, dim))
    for frame in range(frames):
        for row in range(side):
            for column in range(side):
                inside = [
                    patches[frame, y * across + x]
                    for y in range(edges[row], edges[row + 1])
                    for x in range(edges[column], edges[column + 1])
                ]
                cells[frame, row * side + column] = np.mean(inside, axis=0)
    return cells


@pytest.mark.parametrize(("across", "side"), [(4, 2), (7, 3), (14, 3), (5, 4), (3, 1)])
def test_pool_grid_equals_a_slow_loop(across, side):
    patches = np.random.default_rng(0).normal(size=(2, across * across, 3))
    assert np.allclose(pool_grid(patches, side), slow_pool_grid(patches, side))


@pytest.mark.parametrize("count", [0, 1, 4, 9, 10, 50])
def test_patches_that_are_few_or_no_square_come_back_as_they_are(count):
    patches = np.random.default_rng(0).normal(size=(2, count, 3))
    assert pool_grid(patches, 3) is patches


def units(count):
    numbers = npst.arrays(np.float64, (count, 4), elements=st.floats(-1, 1))
    lengths = numbers.filter(lambda a: (np.linalg.norm(a, axis=1) > 1e-3).all())
    return lengths.map(lambda a: a / np.linalg.norm(a, axis=1, keepdims=True))


@given(units(3), units(5))
def test_rows_are_texts_and_columns_videos_within_minus_one_and_one(texts, videos):
    scores = cosine(texts, videos)
    assert scores.shape == (3, 5)
    assert np.abs(scores).max() <= 1 + 1e-9
    for row, text in enumerate(texts):
        for column, video in enumerate(videos):
            expected = sum(a * b for a, b in zip(text, video, strict=True))
            assert scores[row, column] == pytest.approx(expected, abs=1e-12)


def test_higher_is_better():
    texts = np.array([[1.0, 0.0]])
    assert cosine(texts, np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])).tolist() == [
        [1.0, 0.6, 0.0, -1.0]
    ]


def test_a_zero_vector_scores_nothing():
    assert cosine(np.array([[0.6, 0.8]]), np.zeros((1, 2))).tolist() == [[0.0]]


@given(units(4), units(4))
def test_the_order_of_the_videos_changes_no_score(texts, videos):
    assert np.allclose(cosine(texts, videos)[:, ::-1], cosine(texts, videos[::-1]), atol=1e-12)


def test_inputs_are_left_alone():
    texts, videos = np.eye(2), np.eye(2)[::-1].copy()
    cosine(texts, videos)
    assert texts.tolist() == np.eye(2).tolist()
    assert videos.tolist() == np.eye(2)[::-1].tolist()

"""The similarity that everything is ranked by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sureshot.scoring.pooled import cosine


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

"""Galleries of every size that hold what is sought."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.fit import draw_present, gallery_sizes


def rng(seed=0):
    return np.random.default_rng(seed)


RELEVANT = np.array([[1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]] * 2000, bool)


def test_sizes_go_from_a_tenth_to_all():
    assert gallery_sizes(5000, count=3, smallest=0.1) == (500, 1581, 5000)
    assert gallery_sizes(7, count=5) == (2, 3, 4, 5, 7)
    assert gallery_sizes(2) == (2,)
    assert gallery_sizes(1) == (1,)
    assert gallery_sizes(50, count=1) == (50,)
    for bad in ({"videos": 0}, {"videos": 5, "count": 0}, {"videos": 5, "smallest": 0.0}):
        with pytest.raises(SureshotError, match="cannot be drawn"):
            gallery_sizes(**bad)


@pytest.mark.parametrize("size", [1, 3, 6])
def test_a_relevant_video_is_in_and_no_video_twice(size):
    drawn = draw_present(RELEVANT, size, rng())
    assert drawn.shape == (4000, size)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert np.take_along_axis(RELEVANT, drawn, 1).any(1).all()


def test_the_others_are_drawn_evenly():
    drawn = draw_present(RELEVANT, 3, rng())[1::2]  # video 2 is put in, two of five others come
    share = np.bincount(drawn.ravel(), minlength=6) / len(drawn)
    np.testing.assert_allclose(share, [0.4, 0.4, 1, 0.4, 0.4, 0.4], atol=0.04)
    # Of two relevant ones each is put in half of the time, and comes along like any other.
    drawn = draw_present(RELEVANT, 3, rng())[::2]
    share = np.bincount(drawn.ravel(), minlength=6) / len(drawn)
    np.testing.assert_allclose(share, [0.7, 0.4, 0.4, 0.4, 0.4, 0.7], atol=0.04)


def test_draws_are_seeded():
    first = draw_present(RELEVANT, 2, rng(1))
    assert (draw_present(RELEVANT, 2, rng(1)) == first).all()
    assert (draw_present(RELEVANT, 2, rng(2)) != first).any()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(SureshotError, match="Query 1 has no relevant"):
        draw_present(np.array([[True, False], [False, False]]), 1, rng())
    for size in (0, 7):
        with pytest.raises(SureshotError, match="1 to 6"):
            draw_present(RELEVANT, size, rng())

"""Cuts are found, motion, fades and flicker are not taken for cuts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sureshot.media.windows import CutDetector, colour_change, colour_shares
from sureshot.models.encoders.toy import COLOURS
from tests.clips import patterns

PICTURES = arrays(np.uint8, st.tuples(st.integers(2, 9), st.integers(2, 9), st.just(3)))


def flat(*colour):
    return np.full((24, 32, 3), colour if len(colour) == 3 else colour[0], np.uint8)


def cuts(pictures):
    """Numbers of the pictures with which a scene begins."""
    detector = CutDetector()
    return [number for number, picture in enumerate(pictures) if detector.is_cut(picture)]


@pytest.mark.parametrize(("one", "other"), list(combinations(COLOURS, 2)))
def test_any_two_colours_make_a_cut(one, other):
    # Red and magenta differ in one channel only, which once was too little.
    assert cuts([flat(*COLOURS[one])] * 5 + [flat(*COLOURS[other])] * 5) == [5]


def test_the_first_picture_is_no_cut():
    assert cuts([flat(0)]) == []


def test_pictures_of_different_scenes_make_cuts():
    scenes = patterns(6, (32, 24))
    assert cuts([scene for scene in scenes for _ in range(8)]) == [8, 16, 24, 32, 40]


def test_a_picture_that_moves_slowly_is_never_cut():
    wide = patterns(1, (200, 24))[0]
    assert cuts(wide[:, left : left + 32] for left in range(0, 160, 2)) == []


def test_a_slow_fade_is_never_cut():
    # Whole bins, unshared, made a cut of one grey level more.
    assert cuts(flat(level) for level in range(0, 256, 4)) == []
    assert cuts(flat(level) for level in [127, 128] * 20) == []


def test_a_video_that_flickers_all_the_time_is_cut_once_at_most():
    assert len(cuts([flat(0), flat(255)] * 20)) <= 1
    unrelated = patterns(40, (32, 24), seed=1)
    assert len(cuts(unrelated)) <= 1


def test_a_cut_is_found_in_a_restless_video_if_it_stands_out():
    dice = np.random.default_rng(0)
    levels = np.repeat([40, 220], 20)[:, None] + dice.integers(-6, 7, (40, 3))
    assert cuts(flat(*colour) for colour in levels) == [20]


def test_a_change_of_layout_alone_is_a_cut():
    left, right = flat(0), flat(0)
    left[:, :16] = right[:, 16:] = 255
    assert cuts([left] * 4 + [right] * 4) == [4]


def test_pictures_before_and_after_a_cut_are_told_apart():
    detector = CutDetector()
    assert not detector.is_after(flat(0))
    detector.is_cut(flat(0))
    assert not detector.is_after(flat(0))
    detector.is_cut(flat(200))
    assert [detector.is_after(flat(level)) for level in (0, 20, 180, 200)] == [0, 0, 1, 1]


@given(PICTURES, PICTURES)
def test_change_is_a_share_and_symmetric(one, other):
    shares = colour_shares(one), colour_shares(other)
    change = colour_change(*shares)
    assert 0 <= change <= 1 + 1e-9
    assert change == colour_change(*reversed(shares))
    assert colour_change(shares[0], shares[0]) == 0


@given(PICTURES)
def test_each_histogram_sums_to_one(picture):
    shares = colour_shares(picture)
    assert np.allclose(shares.sum(-1), 1) and (shares >= 0).all()


def test_shares_equal_a_slow_count():
    picture = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    slow = np.zeros((4, 3, 10))
    for y in range(6):
        for x in range(8):
            for channel in range(3):
                place = float(picture[y, x, channel]) * 9 / 255
                lower = min(int(place), 8)
                quarter = 2 * (y >= 3) + (x >= 4)
                slow[quarter, channel, lower] += (1 - (place - lower)) / 12
                slow[quarter, channel, lower + 1] += (place - lower) / 12
    assert np.allclose(colour_shares(picture), slow)

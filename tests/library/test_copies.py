"""Moments that show the same pictures: what is folded, and under what."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.library.ranking import Copies, join_adjacent
from tests.clips import similarity
from tests.library.test_moments import BACKGROUND, pictures, windows

FLAT = np.zeros((4, 288), np.uint8)


def copies_of(videos, shown) -> Copies:
    return Copies(windows(*videos)[0], shown)


def folded(shown, most=10, scores=None):
    """Numbers of the kept videos with those of their copies, each video showing one window."""
    count = len(shown)
    scores = scores or [1 - i / 100 for i in range(count)]
    videos = [[(0, 2, score)] for score in scores]
    moments = join_adjacent(*windows(*videos), per_video=3)
    kept = copies_of(videos, np.stack(shown)).merge(moments, most)
    return [(int(m.path.stem), [int(c.stem) for c in m.copies]) for m in kept]


def test_a_video_that_shows_the_same_pictures_is_folded_under_the_better_one():
    one, other = pictures(4, 1), pictures(4, 2)
    darker = one.copy()
    darker[:, :256] = one[:, :256] // 2 + 20
    assert folded([one, other, darker]) == [(0, [2]), (1, [])]


def test_a_copy_is_recognised_by_three_of_four_frames():
    one, other = pictures(4, 1), pictures(4, 2)
    assert folded([one, np.concatenate([one[1:], other[:1]])]) == [(0, [1])]
    assert folded([one, np.concatenate([one[2:], other[:2]])]) == [(0, []), (1, [])]


def test_frames_without_a_pattern_make_no_copies():
    assert folded([FLAT, FLAT, FLAT + 255]) == [(0, []), (1, []), (2, [])]


def test_the_number_of_hits_is_kept_and_copies_of_kept_ones_are_still_told():
    one, two, three = pictures(4, 1), pictures(4, 2), pictures(4, 3)
    assert folded([one, two, three, one, two], most=2) == [(0, [3]), (1, [4])]


def test_a_shot_that_one_video_repeats_stays_two_moments():
    shown = np.stack([pictures(4)] * 2 + [FLAT] * 5)
    paths, start, end, scores = windows([(0, 2, 1.0), (10, 12, 0.99)], BACKGROUND)
    kept = Copies(paths, shown).merge(join_adjacent(paths, start, end, scores, per_video=2), 2)
    assert [(m.path, m.start, m.copies) for m in kept] == [(paths[0], 0, []), (paths[0], 10, [])]


def test_a_copy_of_a_long_shot_is_folded_though_another_of_its_windows_scores_best():
    first, second = pictures(4, 1), pictures(4, 2)
    shown = np.stack([first, second, first, second, *[FLAT] * 5])
    long = [(0, 2, 1.0), (2, 4, 0.99)], [(0, 2, 0.97), (2, 4, 0.98)], BACKGROUND
    kept = copies_of(long, shown).merge(join_adjacent(*windows(*long), per_video=1), 5)
    assert [(int(m.path.stem), len(m.copies)) for m in kept] == [(0, 1), (2, 0)]


def test_a_copy_in_two_moments_is_named_once():
    first, second = pictures(4, 1), pictures(4, 1)
    shown = np.stack([first, first, second])
    videos = [(0, 2, 1.0)], [(0, 2, 0.9), (10, 12, 0.8)]
    (kept,) = copies_of(videos, shown).merge(join_adjacent(*windows(*videos), per_video=2), 5)
    assert kept.copies == [Path("/v/1.mp4")]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 5))
def test_folding_agrees_with_comparing_every_pair(kinds, most):
    shown = [pictures(4, kind) for kind in kinds]
    expected: list[tuple[int, list[int]]] = []
    for number, own in enumerate(shown):
        for original, copies in expected:
            if similarity(own, shown[original][None])[0] >= 0.75:
                copies.append(number)
                break
        else:
            if len(expected) < most:
                expected.append((number, []))
    assert folded(shown, most) == expected


def test_folding_a_long_answer_takes_no_comparison_of_every_pair():
    signatures = np.random.default_rng(0).integers(0, 256, (600, 4, 288), np.uint8)
    videos = [[(0, 2, 1 - i / 1000)] for i in range(600)]
    moments = join_adjacent(*windows(*videos), per_video=1)
    began = time.process_time()
    assert len(copies_of(videos, signatures).merge(moments, 200)) == 200
    assert time.process_time() - began < 3  # comparing one by one takes ten times as long


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_hits_than_asked_for(most):
    assert len(folded([pictures(4, i) for i in range(5)], most)) == most


def test_what_is_known_of_copies_serves_another_order_of_the_moments():
    shown = [pictures(4, kind) for kind in (1, 2, 1, 2, 3)]
    copies = copies_of([[(0, 2, 1.0)]] * 5, np.stack(shown))
    for order in ([0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]):
        videos = [[(0, 2, score)] for score in order]
        moments = join_adjacent(*windows(*videos), per_video=3)
        fresh = copies_of(videos, np.stack(shown))
        assert copies.merge(moments, 5) == fresh.merge(moments, 5)
        assert copies.without(moments, 5) == [
            m for m in moments if m.path in {kept.path for kept in fresh.merge(moments, 5)}
        ]

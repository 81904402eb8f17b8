"""Windows of one scene each, put together from windows that were decoded."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from sureshot.library.encoding import SceneMerger, by_scene
from sureshot.store.rows import EncodedWindow

RED, BLUE = np.eye(8, dtype=np.float32)[:2]


def decoded(*shown, seconds=1.0, start=0.0):
    """A window of one frame a second."""
    count = len(shown)
    times = start + (np.arange(count) + 0.5) * seconds
    return EncodedWindow(
        start=start,
        end=start + count * seconds,
        times=times,
        signatures=np.repeat(times[:, None].astype(np.uint8), 288, 1),
        frames=np.stack(shown),
    )


def spans(windows):
    return [(w.start, w.end) for w in windows]


def test_a_scene_that_fades_within_a_window_ends_there_and_goes_on_over_the_next():
    mixed = (RED + BLUE) / 2
    first = decoded(*[RED] * 7, mixed, BLUE, BLUE)
    second = decoded(*[BLUE] * 10, start=10.0)
    one, two = by_scene([first, second], [False, True], longest=30.0, most=12)
    assert one.start == 0 and 7 <= one.end == two.start <= 8 and two.end == 20
    assert (one.frames[:7] == RED).all() and (two.frames[-10:] == BLUE).all()


def test_no_scene_goes_on_over_a_cut():
    windows = [decoded(*[RED] * 5), decoded(*[RED] * 5, start=5.0)]
    assert spans(by_scene(windows, [False, False], longest=30.0, most=12)) == spans(windows)
    assert spans(by_scene(windows, [False, True], longest=30.0, most=12)) == [(0, 10)]


def test_a_window_keeps_so_many_frames_evenly_and_all_that_belongs_to_them():
    windows = [decoded(*[RED] * 10, start=10.0 * n) for n in range(3)]
    (window,) = by_scene(windows, [False, True, True], longest=30.0, most=6)
    assert window.times.tolist() == [2.5, 7.5, 12.5, 17.5, 22.5, 27.5]
    assert window.signatures[:, 0].tolist() == [int(time) for time in window.times]


def test_a_scene_is_no_longer_than_a_window_may_be():
    windows = [decoded(*[RED] * 10, start=10.0 * n) for n in range(7)]
    follows = [number > 0 for number in range(7)]
    assert spans(by_scene(windows, follows, longest=30.0, most=12)) == [(0, 30), (30, 60), (60, 70)]


def test_windows_are_left_as_they_came():
    window = decoded(*[RED] * 3)
    before = replace(window, times=window.times.copy())
    (same,) = by_scene([window], [False], longest=30.0, most=12)
    assert same.times.tolist() == before.times.tolist() == window.times.tolist()
    assert (same.start, same.end) == (before.start, before.end)


def test_a_long_film_is_settled_as_it_comes_and_nothing_of_it_is_lost():
    colours = [RED if n // 5 % 2 else BLUE for n in range(400)]
    scenes = [decoded(*[colour] * 10, start=10.0 * n) for n, colour in enumerate(colours)]
    film, plain = (SceneMerger(30.0, 6, by_frames=by_frames) for by_frames in (True, False))
    for number, window in enumerate(scenes):
        film.add(window, follows=number > 0)
        plain.add(window, follows=number > 0)
    assert spans(plain.windows()) == spans(scenes)
    found = film.windows()
    assert found[0].start == 0 and found[-1].end == 4000
    assert all(one.end == two.start for one, two in pairwise(found))
    assert {50.0 * n for n in range(80)} <= {window.start for window in found}
    assert all(len(np.unique(window.frames, axis=0)) == 1 for window in found)
    assert max(len(window.times) for window in found) == 6

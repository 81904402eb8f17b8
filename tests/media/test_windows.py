"""Windows: what they cover, where they end, which frames stand for them."""

import weakref
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sureshot.media.discover import Source
from sureshot.media.video import open_video
from sureshot.media.windows import CutDetector, colour_change, colour_shares, windows
from sureshot.models.encoders.toy import COLOURS
from tests.clips import coloured, film, greys, patterns
from tests.paths import DATA

PLAIN = ((0, 0, 0), (255, 255, 255), (255, 0, 0), (90, 90, 90))


@dataclass
class Flat:
    """A frame of one colour, made when asked for."""

    time: float
    colour: tuple[int, int, int] = PLAIN[0]
    shape: tuple[int, int] = (3, 4)
    pixels: int = 12

    def thumbnail(self, width, height):
        return np.full((height, width, 3), self.colour, np.uint8)

    def image(self, size):
        del size
        return np.full((*self.shape, 3), self.colour, np.uint8)


def cut(frames, longest=30.0, samples=12, scenes=True, still=0.0):
    cutting = {"longest": longest, "samples": samples, "size": 4, "scenes": scenes, "still": still}
    return list(windows(frames, **cutting))


def spans(found):
    return [(round(window.start, 3), round(window.end, 3)) for window in found]


def steady(seconds, rate=10, colour=PLAIN[0], start=0.0):
    return [Flat(start + number / rate, colour) for number in range(round(seconds * rate))]


def read(path, **options):
    with open_video(Source(path, "file", 0, 0), decode="all") as video:
        return list(windows(video, **{"longest": 30.0, "samples": 12, "size": 32, **options}))


# Where windows end


@pytest.mark.parametrize("rate", [5, 10, 25, 60])
def test_a_hard_cut_ends_a_window_at_the_frame_it_lies_at(tmp_path, rate):
    # Pictures are compared every tenth of a second; what lies between went to the wrong window.
    clip = coloured(tmp_path / "a.mp4", ["red", "magenta"], seconds=2.2, rate=rate)
    found = read(clip)
    assert spans(found) == [(0.0, 2.2), (2.2, 4.4)]
    red, magenta = (window.images.mean((1, 2)) for window in found)
    assert (red[:, 2] < 60).all() and (magenta[:, 2] > 190).all()


def test_a_cut_is_found_to_a_tenth_of_a_second_where_frames_are_left_out(tmp_path):
    clip = coloured(tmp_path / "a.mp4", ["red", "magenta"], seconds=2.2, rate=25)
    with open_video(Source(clip, "file", 0, 0)) as video:
        one, two = windows(video, longest=30.0, samples=12, size=32)
    assert one.start == 0 and one.end == two.start == pytest.approx(2.2, abs=0.1)
    assert two.end == pytest.approx(4.4, abs=1e-6)


def test_cuts_count_only_where_they_are_asked_for():
    frames = steady(5) + steady(5, colour=PLAIN[1], start=5.0)
    assert spans(cut(frames)) == [(0, 5), (5, 10)]
    assert spans(cut(frames, scenes=False)) == [(0, 10)]


def test_a_long_scene_is_cut_into_windows_of_the_longest_length():
    assert spans(cut(steady(70), longest=30.0)) == [(0, 30), (30, 60), (60, 70)]


def test_a_scrap_at_the_end_joins_the_window_before_it():
    frames = steady(5) + steady(1, colour=PLAIN[1], start=5.0)
    (window,) = cut(frames)
    assert spans([window]) == [(0, 6)] and window.times[-1] > 5


def test_a_scrap_that_does_not_fit_shares_the_length_of_the_window_before_it():
    assert spans(cut(steady(31), longest=30.0)) == [(0, 15.5), (15.5, 31)]
    assert spans(cut(steady(31.6), longest=30.0)) == [(0, 30), (30, 31.6)]


def test_a_scene_cut_too_early_goes_on_with_the_next_one():
    frames = steady(5) + steady(1, colour=PLAIN[1], start=5.0)
    frames += steady(5, colour=PLAIN[2], start=6.0)
    assert spans(cut(frames)) == [(0, 5), (5, 11)]


def test_a_window_goes_on_with_a_scene_but_not_over_a_cut_or_a_gap():
    frames = steady(25) + steady(5, colour=PLAIN[1], start=25.0)
    assert [window.follows for window in cut(frames, 10.0)] == [False, True, True, False]
    # At other rates a window ends a little before the next frame comes.
    assert [window.follows for window in cut(steady(25, 7), 10.0)] == [False, True, True]
    assert [window.follows for window in cut(steady(11), 10.0)] == [False, True]  # halves
    gap = steady(15) + steady(5, start=3600.0)
    assert [window.follows for window in cut(gap, 10.0)] == [False, True, False]


def test_a_gap_ends_a_window_where_it_has_its_longest_length():
    frames = steady(5) + steady(5, start=3600.0)
    assert spans(cut(frames)) == [(0, 30), (3600, 3605)]


def test_the_last_frame_does_not_last_as_long_as_a_gap_before_it():
    frames = [*steady(5), Flat(3600.0)]
    assert spans(cut(frames)) == [(0, 30), (3600, 3600.1)]


def test_no_frames_make_no_windows_and_one_makes_one():
    assert cut([]) == []
    (window,) = cut([Flat(7.0)])
    assert window.start == 7 and 7 < window.end < 7.1 and window.times.tolist() == [7]


def test_few_large_frames_are_held_back_at_a_time():
    looks = []

    class Seen(Flat):
        def thumbnail(self, width, height):
            looks.append(self.time)
            return super().thumbnail(width, height)

    for pixels, most in ((1 << 20, 8), (1 << 25, 4), (1 << 26, 2), (1 << 29, 1)):
        looks.clear()
        cut([Seen(number / 10_000, pixels=pixels) for number in range(80)])
        assert len(looks) == pytest.approx(80 / most, abs=1)


# Which frames stand for a window


@pytest.mark.parametrize("rate", [1, 5, 25, 60])
@pytest.mark.parametrize("seconds", [3, 14, 30])
def test_samples_are_spread_evenly(rate, seconds):
    (window,) = cut(steady(seconds, rate))
    wanted = min(12, seconds * rate)
    assert len(window.times) == pytest.approx(wanted, abs=1)
    middles = (np.arange(12) + 0.5) * seconds / 12
    distance = np.abs(window.times[:, None] - middles).min(0)
    assert (distance <= max(seconds / 24, 1 / rate) + 1e-6).all()


def test_samples_are_spread_evenly_after_a_long_first_frame():
    # One gap at the beginning once set the spacing of all samples after it.
    frames = [Flat(0.0), *steady(20, 25, start=10.0)]
    (window,) = cut(frames)
    assert len(window.times) >= 8
    assert np.diff(window.times[1:]).max() < 4


def test_frames_that_hardly_differ_share_the_picture_in_their_middle():
    # Of a scene that was faded in the first picture is a ghost of the one before it.
    levels = [10] * 30 + list(range(10, 100, 7)) + [100] * 45
    frames = [Flat(number / 10, (level,) * 3) for number, level in enumerate(levels)]
    (window,) = windows(frames, longest=30.0, samples=12, size=4, scenes=False, still=16.0)
    shown = window.images[window.shown].mean((1, 2, 3))
    assert len(window.images) < len(window.times) == 12
    assert window.shown.tolist() == sorted(window.shown.tolist())
    assert shown[0] == 10 and shown[-1] == 100
    own = np.interp(window.times, [frame.time for frame in frames], levels)
    assert np.abs(shown - own).max() < 2 * 16
    (window,) = windows(frames, longest=30.0, samples=12, size=4, scenes=False)
    assert window.shown.tolist() == list(range(12))


def test_what_moves_in_a_part_of_the_picture_is_seen():
    class Corner(Flat):
        def thumbnail(self, width, height):
            picture = super().thumbnail(width, height)
            picture[:8, :8] = 255 * (self.time >= 2)
            return picture

    frames = [Corner(number / 10) for number in range(40)]
    (window,) = windows(frames, longest=30.0, samples=12, size=4, scenes=False, still=16.0)
    assert window.shown.tolist() == [0] * 6 + [1] * 6


def test_a_video_that_changes_its_size_midway_keeps_all_its_content(tmp_path):
    # Frames of the new size were left out until the window ended.
    one = film(tmp_path / "one.ts", greys([100] * 50, (64, 48)))
    two = film(tmp_path / "two.ts", greys([106] * 50, (160, 48)))
    (tmp_path / "both.ts").write_bytes(one.read_bytes() + two.read_bytes())
    (window,) = read(tmp_path / "both.ts")
    levels = window.images.mean((1, 2, 3))
    assert window.images.shape == (12, 32, 43, 3)
    assert (levels < 102).sum() == (levels > 104).sum() == 6
    frames = steady(5) + [Flat(5 + n / 10, PLAIN[1], (6, 2)) for n in range(10)]
    assert cut(frames)[0].images.shape[1:] == (3, 4, 3)


def test_memory_does_not_grow_with_the_video():
    alive, most = 0, 0

    class Counted(Flat):
        def image(self, size):
            nonlocal alive, most
            picture = super().image(size)
            alive, most = alive + 1, max(most, alive + 1)
            weakref.finalize(picture, gone)
            return picture

    def gone():
        nonlocal alive
        alive -= 1

    frames = (Counted(number / 50, PLAIN[number // 1300 % 2]) for number in range(6000))
    count = sum(1 for _ in windows(frames, longest=30.0, samples=6, size=4))
    assert count == 5
    assert most <= 2 * (6 * 4 + 1) + 1


def test_large_decoded_frames_do_not_wait_for_the_end_of_a_scene():
    known, most = [], 0

    def large():
        nonlocal most
        for number in range(300):
            frame = Flat(number / 10, pixels=1 << 23)
            known.append(weakref.ref(frame))
            most = max(most, sum(one() is not None for one in known))
            yield frame

    assert len(cut(large())) == 1 and most < 12


GAPS = st.sampled_from([0.0, 0.001, 0.04, 0.04, 0.1, 1 / 3, 1.0, 1.0, 2.0, 10.0, 45.0, 3600.0])
VIDEOS = st.lists(st.tuples(GAPS, st.sampled_from(PLAIN)), min_size=1, max_size=80)


@given(
    video=VIDEOS,
    first=st.sampled_from([0.0, 0.5, 1000.0]),
    longest=st.sampled_from([1.0, 1.7, 3.0, 10.0, 30.0]),
    samples=st.integers(1, 12),
    scenes=st.booleans(),
    still=st.sampled_from([0.0, 16.0]),
)
def test_windows_cover_any_video_in_order(video, first, longest, samples, scenes, still):
    times = first + np.cumsum([0.0] + [gap for gap, _ in video[1:]])
    frames = [Flat(float(t), colour) for t, (_, colour) in zip(times, video, strict=True)]
    found = cut(frames, longest, samples, scenes, still)
    starts, ends = np.array([(w.start, w.end) for w in found]).T
    assert starts[0] == first
    assert (ends > starts).all() and (ends - starts <= longest + 1e-6).all()
    assert (starts[1:] >= ends[:-1] - 1e-9).all()
    inside = (times[:, None] >= starts - 1e-9) & (times[:, None] <= ends + 1e-9)
    assert inside.any(1).all()
    for window in found:
        assert 1 <= len(window.times) <= samples
        assert (np.diff(window.times) > 0).all()
        assert window.start <= window.times[0] and window.times[-1] < window.end
        assert len(window.shown) == len(window.signatures) == len(window.times)
        assert len(window.images) == (max(window.shown) + 1 if still else len(window.times))


# Real videos


def data(name):
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"needs the folder {folder}; SURESHOT_DATA names another one")
    return folder


def test_real_clips_are_cut_where_they_are_cut_and_nowhere_else():
    folder = data("clips/videos")
    steady_ones = ["boxer-punching-towards-camera", "drift-turn", "swans", "intel_car-detection"]
    for name in steady_ones:
        assert len(read(folder / f"{name}.mp4")) == 1, name
    assert spans(read(folder / "audi-snow-trail.mp4")) == [(0, 4.857), (4.857, 9.143)]


def test_videos_of_a_frame_a_second_are_not_shredded():
    clips = sorted(data("msrvtt/videos").iterdir())[::160]
    counts = [len(read(clip)) for clip in clips]
    assert np.mean(np.array(counts) == 1) > 0.9 and max(counts) <= 3


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


def test_pictures_of_different_scenes_make_cuts():
    scenes = patterns(6, (32, 24))
    assert cuts([scene for scene in scenes for _ in range(8)]) == [8, 16, 24, 32, 40]


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

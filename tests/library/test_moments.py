"""Windows to moments: what is joined, what stays apart."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sureshot.library.ranking import join_adjacent

FLAT = np.zeros((4, 288), np.uint8)


def windows(*videos):
    """Arguments of `join_adjacent` from (start, end, score) of the windows of each video."""
    rows = [
        (Path(f"/v/{number}.mp4"), *window)
        for number, video in enumerate(videos)
        for window in video
    ]
    paths = [row[0] for row in rows]
    return paths, *(np.array([row[i] for row in rows], float) for i in (1, 2, 3))


def joined(*videos, per_video=3):
    moments = join_adjacent(*windows(*videos), per_video=per_video)
    return [(int(m.path.stem), m.start, m.end) for m in moments]


def pictures(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 288), np.uint8)


BACKGROUND = [(0, 2, 0.0), (10, 12, 0.0), (20, 22, 0.0), (30, 32, 0.0), (40, 42, 0.0)]


def test_windows_that_score_alike_and_touch_are_one_moment():
    video = [(0, 2, 0.9), (2, 4, 1.0), (4, 6, 0.95)]
    assert joined(video, BACKGROUND, per_video=1)[0] == (0, 0, 6)


def test_a_neighbour_far_below_the_best_stays_out():
    video = [(0, 2, 1.0), (2, 4, 0.7), (4, 6, 1.0)]
    assert joined(video, BACKGROUND)[:3] == [(0, 0, 2), (0, 4, 6), (0, 2, 4)]


def test_a_gap_of_more_than_a_second_separates():
    assert joined([(0, 2, 1.0), (3, 5, 1.0), (6.1, 8, 1.0)], BACKGROUND)[:2] == [
        (0, 0, 5),
        (0, 6.1, 8),
    ]


def test_windows_of_two_videos_are_never_joined():
    assert joined([(0, 2, 1.0)], [(2, 4, 1.0)], BACKGROUND, per_video=1)[:2] == [
        (0, 0, 2),
        (1, 2, 4),
    ]


def test_noise_does_not_tear_a_shot_apart_where_all_windows_score_alike():
    assert joined([(0, 2, 0.5), (2, 4, 0.50001), (4, 6, 0.49999), (6, 8, 0.5)]) == [(0, 0, 8)]


def test_nothing_gives_nothing():
    assert join_adjacent(*windows(), per_video=3) == []


def test_no_more_moments_of_a_video_than_asked_for():
    video = [(10 * i, 10 * i + 2, 1 - i / 10) for i in range(9)]
    assert joined(video, per_video=2) == [(0, 0, 2), (0, 10, 12)]


def test_ties_come_in_the_order_of_paths_and_times():
    tied = [(0, 2, 1.0), (10, 12, 1.0)]
    assert joined(tied, tied, per_video=2) == [(0, 0, 2), (0, 10, 12), (1, 0, 2), (1, 10, 12)]


@st.composite
def libraries(draw):
    """Videos of windows in the order of time, with gaps, ties and scores from the whole range."""
    score = st.sampled_from([-1.0, -0.2, 0.0, 0.1, 0.101, 0.3, 0.9, 1.0]) | st.floats(-1, 1)
    videos = []
    for _ in range(draw(st.integers(1, 4))):
        at, video = 0.0, []
        for _ in range(draw(st.integers(1, 8))):
            at += draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 20.0]))
            end = at + draw(st.sampled_from([0.04, 2.0, 30.0]))
            video.append((at, end, draw(score)))
            at = end
        videos.append(video)
    return videos


@given(libraries(), st.integers(1, 4))
def test_every_window_is_in_one_moment_at_most_and_the_best_is_in_the_first(videos, per_video):
    paths, start, end, scores = windows(*videos)
    moments = join_adjacent(paths, start, end, scores, per_video=per_video)
    rows = [row for moment in moments for row in moment.rows]
    assert len(rows) == len(set(rows))
    assert scores[moments[0].best] == scores.max()
    assert [m.score for m in moments] == sorted((m.score for m in moments), reverse=True)
    for moment in moments:
        assert moment.best in moment.rows
        assert moment.score == scores[moment.best] == scores[moment.rows].max()
        assert {paths[row] for row in moment.rows} == {moment.path}
        assert (moment.start, moment.end) == (start[moment.rows].min(), end[moment.rows].max())
        steps = zip(moment.rows, moment.rows[1:], strict=False)
        assert all(start[later] - end[earlier] <= 1 for earlier, later in steps)
        assert sum(m.path == moment.path for m in moments) <= per_video


@given(libraries(), st.randoms(use_true_random=False))
def test_the_order_of_the_windows_does_not_matter(videos, random):
    paths, start, end, scores = windows(*videos)
    order = list(range(len(paths)))
    random.shuffle(order)
    shuffled = [paths[i] for i in order], start[order], end[order], scores[order]

    def told(found):
        return [(m.path, m.start, m.end, m.score) for m in found]

    plain = join_adjacent(paths, start, end, scores, per_video=3)
    assert told(join_adjacent(*shuffled, per_video=3)) == told(plain)


@given(libraries(), st.integers(1, 3))
def test_moments_agree_with_the_rule_applied_one_window_at_a_time(videos, per_video):
    paths, start, end, scores = windows(*videos)
    slack = max(0.2 * (max(scores) - float(np.median(scores))), 0.005)
    expected = set()
    for path in set(paths):
        free = sorted((i for i in range(len(paths)) if paths[i] == path), key=lambda i: start[i])
        for _ in range(per_video):
            if not free:
                break
            seed = max(free, key=lambda i: (scores[i], -start[i]))
            grown = [seed]
            growing = True
            while growing:
                growing = False
                for i in free:
                    after = start[i] >= end[grown[-1]] and start[i] - end[grown[-1]] <= 1
                    before = end[i] <= start[grown[0]] and start[grown[0]] - end[i] <= 1
                    # Only the next one in time: nothing is jumped over.
                    first = min([*grown, i], key=lambda j: start[j])
                    last = max([*grown, i], key=lambda j: start[j])
                    between = [
                        j
                        for j in range(len(paths))
                        if paths[j] == path
                        and start[first] < start[j] < start[last]
                        and j not in grown
                    ]
                    fits = scores[i] >= scores[seed] - slack
                    if i not in grown and fits and not between and (after or before):
                        grown = sorted([*grown, i], key=lambda j: start[j])
                        growing = True
            free = [i for i in free if i not in grown]
            expected.add((path, start[grown[0]], float(max(end[grown])), scores[seed]))
    moments = join_adjacent(paths, start, end, scores, per_video=per_video)
    assert {(m.path, m.start, m.end, m.score) for m in moments} == expected

"""What a search scores exactly: enough for the hits asked for, and never all of a large library."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.errors import QueryError
from sureshot.library import ranking
from sureshot.library import ranking as candidates_module
from sureshot.library import ranking as gallery
from sureshot.library.ranking import (
    CANDIDATES,
    Candidates,
    Copies,
    Moment,
    Ranking,
    Request,
    WindowScores,
    check_shares,
    join_adjacent,
    why_few,
    why_nothing,
)
from sureshot.library.search import open_index
from sureshot.models.encoders.base import VideoFeatures
from sureshot.models.similarity import MeanFrames
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow
from tests.clips import similarity
from tests.encoded import make_store, random_windows, record
from tests.heard import Heard

LOOKS = MeanFrames()


def vectors(count: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, 24)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_each_of_many_queries_has_the_windows_that_it_has_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates_module, "IN_MEMORY", 0)
    store = make_store(tmp_path)
    for number in range(5):
        store.write(record(f"/{number}.mp4"), random_windows(60, seed=number))
    asked = Request(limit=3, per_video=None, merge_copies=True)
    queries = vectors(4)
    candidates = Candidates(store, LOOKS)
    for wanted in (20, 1000):
        each = candidates.near_each([query[None] for query in queries], wanted, asked)
        for query, many in zip(queries, each, strict=True):
            alone = candidates.near_any(query[None], wanted, asked)
            assert sorted(many.windows.keys) == sorted(alone.windows.keys)
            assert sorted(many.scores.tolist()) == pytest.approx(sorted(alone.scores.tolist()))
            assert many.whole == alone.whole == (wanted == 1000)


def test_of_a_small_index_all_windows_are_looked_at_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    store.write(record("/a.mp4"), random_windows(5))
    candidates, asked = (
        Candidates(store, LOOKS),
        Request(limit=3, per_video=None, merge_copies=True),
    )
    one, other = candidates.near_each([query[None] for query in vectors(2)], 20, asked)
    (again,) = candidates.near_each([vectors(1)], 20, asked)
    assert one.looked is other.looked is again.looked
    store.write(record("/b.mp4"), random_windows(5, seed=1))
    (more,) = candidates.near_each([vectors(1)], 20, asked)
    assert len(more.windows.keys) == 10 and len(one.windows.keys) == 5
    assert more.whole and one.whole  # though they are not fewer than were wanted
    monkeypatch.setattr(candidates_module, "IN_MEMORY", 9)
    (few,) = candidates.near_each([vectors(1)], 7, asked)
    assert len(few.windows.keys) == 7


def test_an_empty_index_has_no_windows_for_any_query(tmp_path: Path) -> None:
    asked = Request(limit=3, per_video=None, merge_copies=True)
    candidates = Candidates(make_store(tmp_path), LOOKS)
    near = candidates.near_each([query[None] for query in vectors(2)], 20, asked)
    assert [(part.windows.keys, part.whole) for part in near] == [([], True)] * 2


def copies(store: Store, videos: int, each: int) -> None:
    """Videos that all show the same picture, and look more or less alike to the encoder."""
    picture = np.random.default_rng(1).integers(0, 256, (1, 288), np.uint8)
    for number in range(videos):
        frames = vectors(each, seed=number)
        windows = [
            EncodedWindow(
                start=10.0 * at,
                end=10.0 * at + 5,
                times=np.array([10.0 * at]),
                signatures=picture,
                frames=frames[at : at + 1],
            )
            for at in range(each)
        ]
        store.write(record(f"/{number}.mp4"), windows)


def test_a_library_of_copies_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_LOOKED_AT", 320)
    store = make_store(tmp_path)
    copies(store, 8, 100)
    read = []
    nearest = Store.nearest

    def noted(self, vector, k, *args, **more):
        read.append(k)
        return nearest(self, vector, k, *args, **more)

    monkeypatch.setattr(Store, "nearest", noted)
    asked = Request(limit=10, per_video=1, merge_copies=True)
    (query,) = vectors(1)
    candidates = Candidates(store, LOOKS)
    near = candidates.near_any(query[None], CANDIDATES, asked)
    found = candidates.with_hits(asked, near)
    hits, notes = found.hits, found.notes
    assert len(hits) == 1 and len(hits[0].copies) == 7
    assert read == [200, 320]
    assert "1 hit of 10 asked for" in notes[0]


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


MOMENTS_FLAT = np.zeros((4, 288), np.uint8)


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


def test_numbers_that_ask_for_nothing_are_refused() -> None:
    with pytest.raises(QueryError, match="limit is 0"):
        Request(limit=0, per_video=None, merge_copies=True)
    with pytest.raises(QueryError, match=r"coverage is 1\.0"):
        check_shares(1.0, 0.0)
    with pytest.raises(QueryError, match=r"min is 1\.0"):
        check_shares(0.9, 1.0)


def test_why_an_answer_is_short_is_said(tmp_path: Path) -> None:
    make_store(tmp_path).write(record("/v.mp4"), random_windows(2))
    windows = Store.open(tmp_path).windows_of(Path("/v.mp4"))
    asked = Request(limit=5, per_video=1, merge_copies=True, folder=Path("/films"))
    every, some = (
        Ranking.of(WindowScores(windows, MeanFrames()), np.ones((1, 24)), 2, whole=whole)
        for whole in (True, False)
    )
    (said,) = why_few(asked, 2, every, True)
    assert said.startswith("2 hits of 5 asked for: one video gives at most 1")
    (said,) = why_few(asked, 2, some, False)
    assert said.startswith("2 hits of 5 asked for: the 2 nearest windows are copies of these.")
    assert why_few(asked, 2, every, False) == why_few(asked, 5, some, True) == []
    assert why_nothing(asked, 0).startswith("Nothing is indexed yet")
    assert why_nothing(asked, 3) == "Nothing is indexed at or below /films."


def test_the_moment_that_was_asked_about_is_known() -> None:
    film = Path("/film.mp4")
    asked = Request(limit=5, per_video=None, merge_copies=True, like=film, at=4.0)
    moment = Moment(path=film, best=0, rows=[0], start=3.0, end=9.0, score=0.5)
    assert asked.is_asked(moment) and asked.without is None
    assert Request(limit=5, per_video=None, merge_copies=True, like=film).without == film


QUERIES = ["red", "something yellow", "a white wall", "blue sky"]


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def by_loop(searcher, query):
    """Score, video and start of each window, one after the other."""
    sentence = searcher.encoder.encode_texts([query]).sentence[0]
    for video in searcher.store.videos():
        stored = searcher.store.windows_of(video.path)
        rows = zip(stored.frames, stored.mask, stored.start.tolist(), strict=True)
        for frames, mask, start in rows:
            mean = frames[mask].mean(0)
            yield (video.path, start), float(sentence @ mean / np.linalg.norm(mean))


def test_all_queries_at_once_are_each_alone(searcher):
    found = searcher.all_scores(QUERIES)
    assert found.scores.shape == (4, searcher.store.count())
    places = list(zip(found.paths, found.start.tolist(), strict=True))
    assert (found.end > found.start).all()
    for row, query in zip(found.scores, QUERIES, strict=True):
        expected = dict(by_loop(searcher, query))
        assert dict(zip(places, row, strict=True)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("windows", [1, 5, 7])
def test_the_parts_that_are_read_at_once_do_not_count(searcher, monkeypatch, windows):
    whole = searcher.all_scores(QUERIES)
    heard = Heard()
    monkeypatch.setattr(gallery, "_AT_ONCE", windows)
    monkeypatch.setattr("sureshot.library.search._TEXTS", 3)
    parts = searcher.all_scores(QUERIES, progress=heard)
    assert parts.paths == whole.paths
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-6)
    total = searcher.store.count()
    assert heard.updates[-1] == ("scored", total, total) and len(heard.updates) > 1


def test_no_query_and_empty_ones_are_refused(searcher):
    with pytest.raises(QueryError, match="no query"):
        searcher.all_scores([])
    with pytest.raises(QueryError):
        searcher.all_scores(["red", " "])


class Counting(MeanFrames):
    """Counts the videos that it codes."""

    coded = 0

    def videos(self, videos):
        self.coded += len(videos.mask)
        return super().videos(videos)


def test_windows_and_frames_have_their_scores_and_are_coded_once(tmp_path: Path) -> None:
    make_store(tmp_path).write(record("/v.mp4"), random_windows(6))
    windows = Store.open(tmp_path).windows_of(Path("/v.mp4"))
    how, queries = Counting(), np.eye(24, dtype=np.float32)[:2]
    looked = WindowScores(windows, how)
    looks = MeanFrames()
    expected = looks.similarity(queries, looks.videos(windows.features)).max(0)
    assert looked.scores(queries).tolist() == expected.tolist()
    assert looked.scores(queries[:1]).shape == (6,)
    for rows in ([4, 1], [1, 0, 4], [2]):
        for row, found in zip(rows, looked.frame_scores(queries, rows), strict=True):
            frames = windows.frames[row][windows.mask[row]][:, None]
            single = VideoFeatures.of_frames(frames, np.ones((len(frames), 1), bool))
            alone = looks.similarity(queries, looks.videos(single)).max(0)
            assert np.allclose(found, alone, atol=1e-6)
    assert how.coded == 6 + windows.mask[[4, 1, 0, 2]].sum()

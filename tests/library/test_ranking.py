"""What a search scores exactly: enough for the hits asked for, and never all of a large library."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.errors import QueryError
from sureshot.library import ranking
from sureshot.library.ranking import Candidates, Copies, Query, WindowScores, join_adjacent
from sureshot.library.search import open_index
from sureshot.models.encoders.base import VideoFeatures
from sureshot.models.similarity import MeanFrames
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow
from sureshot.store.vector_search import Finder
from tests.clips import similarity
from tests.encoded import make_store, random_windows, record

LOOKS = MeanFrames()


def vectors(count: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, 24)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def queries(count: int) -> list[Query]:
    return [Query("", vector[None]) for vector in vectors(count)]


def test_each_of_many_queries_has_the_windows_that_it_has_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "IN_MEMORY", 0)
    store = make_store(tmp_path)
    for number in range(5):
        store.write(record(f"/{number}.mp4"), random_windows(60, seed=number))
    candidates = Candidates(store, LOOKS)
    for wanted in (20, 1000):
        each = candidates.near_each(queries(4), wanted)
        for query, many in zip(queries(4), each, strict=True):
            alone = candidates.near(query, wanted)
            assert sorted(many.looked.windows.keys) == sorted(alone.looked.windows.keys)
            one, two = (sorted(of.looked.scores(query.codes).tolist()) for of in (many, alone))
            assert one == pytest.approx(two)
            assert many.whole == alone.whole == (wanted == 1000)


def test_of_a_small_index_all_windows_are_looked_at_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    store.write(record("/a.mp4"), random_windows(5))
    candidates = Candidates(store, LOOKS)
    one, other = candidates.near_each(queries(2), 20)
    (again,) = candidates.near_each(queries(1), 20)
    assert one.looked is other.looked is again.looked
    store.write(record("/b.mp4"), random_windows(5, seed=1))
    (more,) = candidates.near_each(queries(1), 20)
    assert len(more.looked.windows.keys) == 10 and len(one.looked.windows.keys) == 5
    assert more.whole and one.whole  # though they are not fewer than were wanted
    monkeypatch.setattr(ranking, "IN_MEMORY", 9)
    (few,) = candidates.near_each(queries(1), 7)
    assert len(few.looked.windows.keys) == 7


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
    nearest = Finder.nearest

    def noted(self, vector, k, *args, **more):
        read.append(k)
        return nearest(self, vector, k, *args, **more)

    monkeypatch.setattr(Finder, "nearest", noted)
    candidates = Candidates(store, LOOKS)
    asked = Query("", vectors(1), limit=10, per_video=1)
    found = candidates.with_hits(candidates.near(asked))
    assert len(found.hits) == 1 and len(found.hits[0].copies) == 7
    assert read == [200, 320]
    assert found.notes[0].startswith("1 hit of 10 asked for: one video gives at most 1")


FLAT = np.zeros((4, 288), np.uint8)


def copies_of(videos, shown) -> Copies:
    return Copies(windows(*videos)[0], shown, times_of(shown))


def times_of(shown):
    return np.tile(np.arange(shown.shape[1], dtype=float), (len(shown), 1))


def folded(shown, most=10, scores=None):
    """Numbers of the kept videos with those of their copies, each video showing one window."""
    count = len(shown)
    scores = scores or [1 - i / 100 for i in range(count)]
    videos = [[(0, 2, score)] for score in scores]
    moments = join_adjacent(*windows(*videos))
    kept = copies_of(videos, np.stack(shown)).folded(moments, most)[:most]
    return [(int(m.path.stem), [int(c.path.stem) for c in m.copies]) for m in kept]


def test_a_copy_is_recognised_by_three_of_four_frames():
    one, other = pictures(4, 1), pictures(4, 2)
    assert folded([one, np.concatenate([one[1:], other[:1]])]) == [(0, [1])]
    assert folded([one, np.concatenate([one[2:], other[:2]])]) == [(0, []), (1, [])]


def shot(times):
    """A bright block that moves through a room, one pixel a second, as seen at some times."""
    room = np.random.default_rng(3).integers(60, 110, (16, 16))
    seen = np.tile(room.astype(float), (len(times), 1, 1))
    for picture, time in zip(seen, times, strict=True):
        left, part = int(time), time % 1
        for column, share in ((left, 1 - part), (left + 1, 1), (left + 2, 1), (left + 3, part)):
            picture[4:12, column] += share * (230 - picture[4:12, column])
    grey = np.round(seen).astype(np.uint8).reshape(len(times), 256)
    return np.concatenate([grey, np.full((len(times), 32), 128, np.uint8)], 1)


def test_a_copy_that_is_sampled_between_the_frames_of_its_original_is_recognised():
    original, copy = shot(np.arange(12)), shot(np.arange(12) + 0.5)
    assert similarity(copy, original[None])[0] == 0  # no two frames are the same
    assert folded([original, copy]) == [(0, [1])]


def test_another_take_by_a_camera_that_stands_still_is_no_copy():
    original = shot(np.arange(12))
    for order in (np.arange(12)[::-1], np.random.default_rng(0).permutation(12), np.full(12, 5)):
        assert folded([original, shot(order + 0.5)]) == [(0, []), (1, [])]


def test_copies_stand_in_the_order_of_paths_however_their_vectors_were_rounded():
    shown = [pictures(4)] * 4
    for scores in ([1.0, 0.9999, 0.9998, 0.9997], [1.0, 0.9997, 0.9999, 0.9998]):
        assert folded(shown, scores=scores) == [(0, [1, 2, 3])]


def test_frames_without_a_pattern_make_no_copies():
    assert folded([FLAT, FLAT, FLAT + 255]) == [(0, []), (1, []), (2, [])]


def test_a_shot_that_one_video_repeats_stays_two_moments():
    shown = np.stack([pictures(4)] * 2 + [FLAT] * 5)
    paths, start, end, scores = windows([(0, 2, 1.0), (10, 12, 0.99)], BACKGROUND)
    kept = Copies(paths, shown, times_of(shown)).folded(
        join_adjacent(paths, start, end, scores), 2
    )[:2]
    assert [(m.path, m.start, m.copies) for m in kept] == [(paths[0], 0, []), (paths[0], 10, [])]


def test_a_copy_of_a_long_shot_is_folded_though_another_of_its_windows_scores_best():
    first, second = pictures(4, 1), pictures(4, 2)
    shown = np.stack([first, second, first, second, *[FLAT] * 5])
    long = [(0, 2, 1.0), (2, 4, 0.99)], [(0, 2, 0.97), (2, 4, 0.98)], BACKGROUND
    kept = copies_of(long, shown).folded(join_adjacent(*windows(*long)), 5)
    assert [(int(m.path.stem), len(m.copies)) for m in kept[:2]] == [(0, 1), (2, 0)]


def test_a_shot_of_hours_is_one_moment_though_it_has_most_of_the_windows():
    still = [(2 * number, 2 * number + 2, 0.24 - 0.01 * (number % 3)) for number in range(60)]
    others = [[(0, 2, 0.01 * number)] for number in range(5)]
    assert joined(still, *others)[0] == (0, 0, 120)


def test_a_copy_in_two_moments_is_named_once():
    first, second = pictures(4, 1), pictures(4, 1)
    shown = np.stack([first, first, second])
    videos = [(0, 2, 1.0)], [(0, 2, 0.9), (10, 12, 0.8)]
    (kept,) = copies_of(videos, shown).folded(join_adjacent(*windows(*videos)), 5)
    assert [(copy.path.name, copy.start) for copy in kept.copies] == [("1.mp4", 0.0)]


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
    assert folded(shown, most) == [(number, sorted(c, key=str)) for number, c in expected]


def test_what_is_known_of_copies_serves_another_order_of_the_moments():
    shown = [pictures(4, kind) for kind in (1, 2, 1, 2, 3)]
    copies = copies_of([[(0, 2, 1.0)]] * 5, np.stack(shown))
    for order in ([0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]):
        videos = [[(0, 2, score)] for score in order]
        moments = join_adjacent(*windows(*videos))
        fresh = copies_of(videos, np.stack(shown))
        assert copies.folded(moments, 5) == fresh.folded(moments, 5)


def windows(*videos):
    """Arguments of `join_adjacent` from (start, end, score) of the windows of each video."""
    rows = [
        (Path(f"/v/{number}.mp4"), *window)
        for number, video in enumerate(videos)
        for window in video
    ]
    paths = [row[0] for row in rows]
    return paths, *(np.array([row[i] for row in rows], float) for i in (1, 2, 3))


def joined(*videos):
    moments = join_adjacent(*windows(*videos))
    return [(int(m.path.stem), m.start, m.end) for m in moments]


def pictures(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 288), np.uint8)


BACKGROUND = [(0, 2, 0.0), (10, 12, 0.0), (20, 22, 0.0), (30, 32, 0.0), (40, 42, 0.0)]


def test_a_gap_of_more_than_a_second_separates():
    assert joined([(0, 2, 1.0), (3, 5, 1.0), (6.1, 8, 1.0)], BACKGROUND)[:2] == [
        (0, 0, 5),
        (0, 6.1, 8),
    ]


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


@given(libraries(), st.randoms(use_true_random=False))
def test_the_order_of_the_windows_does_not_matter(videos, random):
    paths, start, end, scores = windows(*videos)
    order = list(range(len(paths)))
    random.shuffle(order)
    shuffled = [paths[i] for i in order], start[order], end[order], scores[order]

    def told(found):
        return [(m.path, m.start, m.end, m.score) for m in found]

    plain = join_adjacent(paths, start, end, scores)
    assert told(join_adjacent(*shuffled)) == told(plain)


@given(libraries())
def test_moments_agree_with_the_rule_applied_one_window_at_a_time(videos):
    paths, start, end, scores = windows(*videos)
    counts = [paths.count(path) for path in paths]
    alike = np.repeat(scores, [math.lcm(*counts) // count for count in counts])
    slack = max(0.2 * (max(scores) - float(min(np.median(scores), np.median(alike)))), 0.005)
    expected = []
    for path in set(paths):
        rows = sorted((i for i in range(len(paths)) if paths[i] == path), key=lambda i: start[i])
        free = set(rows)
        while free:
            seed = max(free, key=lambda i: (scores[i], -start[i]))
            grown = [seed]
            for step in (-1, 1):
                at = rows.index(seed) + step
                while 0 <= at < len(rows) and rows[at] in free:
                    one, two = sorted((rows[at], rows[at - step]), key=lambda i: start[i])
                    if start[two] - end[one] > 1 or scores[rows[at]] < scores[seed] - slack:
                        break
                    grown.append(rows[at])
                    at += step
            free -= set(grown)
            first = min(start[grown])
            expected.append((-scores[seed], path, first, max(end[grown]), seed, sorted(grown)))
    moments = join_adjacent(paths, start, end, scores)
    found = [(-m.score, m.path, m.start, m.end, m.best, sorted(m.rows)) for m in moments]
    assert found == sorted(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"per_video": 0},
        {"coverage": 1.0},
        {"coverage": 0.0},
        {"min": -0.1},
        {"min": 1.0},
    ],
)
def test_numbers_that_ask_for_nothing_are_refused(wrong) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(QueryError, match=f"{name} is {value}; it must be "):
        Query("", None, **wrong)


QUERIES = ["red", "something yellow", "a white wall", "blue sky"]


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def by_loop(searcher, query):
    """The best score of each video, from its windows one after the other."""
    sentence = searcher.encoder.encode_texts([query]).sentence[0]
    best: dict[Path, float] = {}
    for video in searcher.store.videos():
        stored = searcher.store.windows_of(video.path)
        for frames, mask in zip(stored.frames, stored.mask, strict=True):
            mean = frames[mask].mean(0)
            score = float(sentence @ mean / np.linalg.norm(mean))
            best[video.path] = max(score, best.get(video.path, -1))
    return best


def test_all_queries_at_once_are_each_alone(searcher):
    found = searcher.search_many(QUERIES, per_video=1, merge_copies=False)
    for answer, query in zip(found, QUERIES, strict=True):
        scores = {hit.path: hit.score for hit in answer}
        assert scores == pytest.approx(by_loop(searcher, query), abs=1e-5)


class Trembling(MeanFrames):
    """Rounds otherwise where other windows are scored, as products of matrices do."""

    def similarity(self, texts, videos):
        scores = super().similarity(texts, videos)
        noise = np.random.default_rng(scores.shape[1]).uniform(-1e-7, 1e-7, scores.shape)
        return (scores + noise).astype(np.float32)


def test_equal_copies_keep_their_order_whatever_else_is_scored(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for number in range(8):
        store.write(record(f"/{number}.mp4"), random_windows(1, seed=1))
    for others in range(5):
        store.write(record(f"/{others}-other.mp4"), random_windows(1, seed=2 + others))
        near = Candidates(store, Trembling()).near(Query("", vectors(1)))
        moments = [one for one in near.moments if "other" not in one.path.name]
        assert [one.path.stem for one in moments] == list("01234567")


def test_windows_that_a_model_could_not_work_out_cost_no_search(tmp_path: Path) -> None:
    store, good = make_store(tmp_path), random_windows(1, seed=1)
    store.write(record("/good.mp4"), good)
    store.write(record("/bad.mp4"), [replace(good[0], frames=good[0].frames * np.nan)])
    (near,) = Candidates(store, MeanFrames()).near_each([Query("", vectors(1))])
    assert [one.path.stem for one in near.moments if np.isfinite(one.score)] == ["good"]


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
        for row in rows:
            found = looked.frame_scores(queries, row)
            frames = windows.frames[row][windows.mask[row]][:, None]
            single = VideoFeatures.of_frames(frames, np.ones((len(frames), 1), bool))
            alone = looks.similarity(queries, looks.videos(single)).max(0)
            assert np.allclose(found, alone, atol=1e-6)
    assert how.coded == 6 + windows.mask[[4, 1, 0, 2]].sum()

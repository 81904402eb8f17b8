"""Ranks against counting one candidate at a time, and against the numbers of the papers' codes."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.metrics import ranks
from sureshot.metrics.ranks import (
    Recall,
    check,
    recall,
    recall_at,
    relevant_ranks,
    row_blocks,
    rsum,
    text_ranks,
    video_ranks,
)

INF = float("inf")
SHARE = {"best": 0.0, "mean": 0.5}


@st.composite
def cases(draw):
    """Matrices with many ties, infinities and videos without a text; owners in any order."""
    texts, videos = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    score = st.sampled_from([-INF, -1.0, -0.5, 0.0, -0.0, 0.5, 1.0, INF]) | st.floats(-1, 1)
    rows = [[draw(score) for _ in range(videos)] for _ in range(texts)]
    owner = [draw(st.integers(0, videos - 1)) for _ in range(texts)]
    kind = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    return np.array(rows).astype(kind), np.array(owner)


def slow_rank(own, others, ties):
    better = sum(1 for other in others if other > own)
    same = sum(1 for other in others if other == own)
    return 1 + better + SHARE[ties] * same


def slow_videos(similarity, owner, ties):
    found = []
    for video in sorted(set(owner.tolist())):
        column = similarity[:, video].tolist()
        own = max(s for s, o in zip(column, owner, strict=True) if o == video)
        others = [
            max(s for s, o in zip(column, owner, strict=True) if o == other)
            for other in set(owner.tolist()) - {video}
        ]
        found.append(slow_rank(own, others, ties))
    return found


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["mean", "best"]))
def test_text_ranks_count_what_scores_higher_and_a_share_of_what_ties(case, ties):
    similarity, owner = case
    expected = []
    for row, own in zip(similarity.tolist(), owner.tolist(), strict=True):
        expected.append(slow_rank(row[own], row[:own] + row[own + 1 :], ties))
    assert text_ranks(similarity, owner, ties=ties).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["mean", "best"]))
def test_video_ranks_count_one_candidate_at_a_time(case, ties):
    similarity, owner = case
    kept = similarity.copy(), owner.copy()
    expected = slow_videos(similarity, owner, ties)
    assert video_ranks(similarity, owner, ties=ties).tolist() == expected
    np.testing.assert_array_equal(similarity, kept[0])
    np.testing.assert_array_equal(owner, kept[1])


def test_small_parts_give_the_ranks_of_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    similarity = np.round(rng.normal(size=(23, 7)), 1)
    owner = rng.integers(0, 7, 23)
    texts, videos = text_ranks(similarity, owner), video_ranks(similarity, owner)
    monkeypatch.setattr(ranks, "CELLS", 10)
    np.testing.assert_array_equal(text_ranks(similarity, owner), texts)
    np.testing.assert_array_equal(video_ranks(similarity, owner), videos)


@given(cases(), st.integers(0, 2**16))
def test_relevant_ranks_count_what_is_not_relevant_and_scores_higher(case, seed):
    scores, owner = case
    relevant = np.random.default_rng(seed).random(scores.shape) < 0.4
    relevant[np.arange(len(owner)), owner] = True
    expected = [
        slow_rank(max(row[right]), row[~right].tolist(), "mean")
        for row, right in zip(scores, relevant, strict=True)
    ]
    assert relevant_ranks(scores, relevant).tolist() == expected
    own = owner[:, None] == np.arange(scores.shape[1])
    assert (relevant_ranks(scores, own) == text_ranks(scores, owner)).all()


@pytest.mark.parametrize("relevant", [[[True, False], [False, False]], [[True, True]]])
def test_a_query_without_anything_relevant_is_refused(relevant):
    with pytest.raises(SureshotError, match="needs a relevant candidate"):
        relevant_ranks(np.eye(2), np.array(relevant))


def test_scores_that_differ_in_the_last_bit_do_not_tie():
    one = np.float64(0.1)
    similarity = np.array([[one, np.nextafter(one, 1)], [one, one]])
    assert text_ranks(similarity, np.array([0, 0])).tolist() == [2.0, 1.5]
    assert text_ranks(similarity.astype(np.float32), np.array([0, 0])).tolist() == [1.5, 1.5]


def test_nan_is_refused_by_row_wherever_it_stands():
    similarity = np.zeros((4, 3))
    similarity[2, 1] = similarity[3, 0] = np.nan
    own = np.zeros(4, int)
    relevant = np.ones((4, 3), bool)
    for ranked, known in ((text_ranks, own), (video_ranks, own), (relevant_ranks, relevant)):
        with pytest.raises(SureshotError, match=r"row 2 with column 1 is NaN \(2 of 4"):
            ranked(similarity, known)


@pytest.mark.parametrize("owner", [[0, 1], [0, 1, 3], [0, -1, 0]])
def test_owners_that_do_not_fit_are_refused(owner):
    with pytest.raises(SureshotError, match=r"owners|belongs to video"):
        check(np.zeros((3, 3)), np.array(owner))


# Numbers of the papers' codes.


@pytest.mark.parametrize("name", ["no_ties", "odd"])
def test_clip4clip_without_ties(golden, name):
    case = golden("clip4clip_metrics")
    similarity = np.array(case["inputs"][name])
    diagonal = np.arange(len(similarity))
    expected = case["outputs"][name]["cols"]
    assert (text_ranks(similarity, diagonal) - 1).tolist() == expected
    assert (video_ranks(similarity.T.copy(), diagonal) - 1).tolist() == expected
    if name == "no_ties":
        expected = case["outputs"]["no_ties_transposed"]["cols"]
        assert (video_ranks(similarity, diagonal) - 1).tolist() == expected


def test_clip4clip_takes_each_tied_place_for_a_query_and_we_do_not(golden):
    case = golden("clip4clip_metrics")
    similarity = np.array(case["inputs"]["ties"])
    diagonal = np.arange(len(similarity))
    best, mean = (text_ranks(similarity, diagonal, ties=ties) for ties in ("best", "mean"))
    worst = 2 * mean - best
    places = [p for low, high in zip(best, worst, strict=True) for p in np.arange(low, high + 1)]
    assert [p - 1 for p in places] == case["outputs"]["ties"]["cols"]
    assert len(places) > len(similarity)
    assert len(mean) == len(similarity)
    constant = np.array(case["inputs"]["constant"])
    count = len(constant)
    assert len(case["outputs"]["constant"]["cols"]) == count**2
    assert text_ranks(constant, np.arange(count)).tolist() == [(count + 1) / 2] * count


def test_clip4clip_drops_infinite_own_scores_and_we_rank_them(golden):
    case = golden("clip4clip_metrics")
    similarity = np.array(case["inputs"]["inf"])
    ranks = text_ranks(similarity, np.arange(len(similarity)))
    own = np.diag(similarity)
    assert (ranks[np.isfinite(own)] - 1).tolist() == case["outputs"]["inf"]["cols"]
    infinite = np.flatnonzero(np.isinf(own))
    assert len(infinite)
    for row in infinite:
        others = np.delete(similarity[row], row).tolist()
        assert ranks[row] == slow_rank(own[row], others, "mean")


def flat(padded):
    """Rows and owners of [video, slot, video] where a padded slot is -inf or NaN throughout."""
    real = np.isfinite(padded).any(-1)
    owner = np.repeat(np.arange(len(padded)), real.sum(1))
    return padded[real], owner


def test_clip4clip_with_several_captions(golden):
    case = golden("clip4clip_metrics")
    similarity, owner = flat(np.array(case["inputs"]["multi"]))
    texts = text_ranks(similarity, owner)
    expected = case["outputs"]["multi_t2v"]
    assert 100 * np.mean(texts <= 1) == pytest.approx(expected["R1"])
    assert 100 * np.mean(texts <= 5) == pytest.approx(expected["R5"])
    assert texts.mean() == pytest.approx(expected["MeanR"])
    assert texts.std() == pytest.approx(expected["Std_Rank"])
    videos = video_ranks(similarity, owner)
    assert (videos - 1).tolist() == case["outputs"]["multi_v2t"]["cols"]


@pytest.mark.parametrize("source", ["big_sims", "sims"])
def test_xpool_with_several_captions(golden, source):
    case = golden("xpool_metrics_multicaption")
    outputs, own = case["outputs"], source == "sims"  # their similarities, too, are an output
    similarity, owner = flat(np.array(outputs[source] if own else case["inputs"][source], float))
    for found, way in (
        (text_ranks(similarity, owner), "t2v"),
        (video_ranks(similarity, owner), "v2t"),
    ):
        expected = outputs[way if own else f"big_{way}"]
        for k in (1, 5, 10, 50):
            assert 100 * np.mean(found <= k) == pytest.approx(expected[f"R{k}"])
        assert np.median(found) == expected["MedR"]
        assert found.mean() == pytest.approx(expected["MeanR"])


CE = [
    ("square", None, "square"),
    ("ties", None, "ties"),
    ("constant", None, "constant"),
    ("multi", None, "multi"),
    ("multi", "query_masks", "multi_masked"),
    ("multi_ties", "query_masks", "multi_ties_masked"),
]


def collaborative_experts(inputs, source, mask):
    similarity = np.array(inputs[source])
    texts, videos = similarity.shape
    owner = np.repeat(np.arange(videos), texts // videos)
    if mask:
        real = np.array(inputs[mask]).ravel() > 0
        similarity, owner = similarity[real], owner[real]
    return similarity, owner


@pytest.mark.parametrize(("source", "mask", "name"), CE)
def test_collaborative_experts_text_to_video(golden, source, mask, name):
    case = golden("ce_metrics")
    found = text_ranks(*collaborative_experts(case["inputs"], source, mask))
    expected = case["outputs"][name]["t2v"]
    assert 100 * np.mean(found == 1) == pytest.approx(expected["R1"])
    # Theirs count zero-based shared places below k, so half a place more than rank <= k.
    assert 100 * np.mean(found - 1 < 5) == pytest.approx(expected["R5"])
    assert 100 * np.mean(found - 1 < 10) == pytest.approx(expected["R10"])
    assert np.median(found) == expected["MedR"]
    assert found.mean() == pytest.approx(expected["MeanR"])


@pytest.mark.parametrize(("source", "mask", "name"), CE)
def test_collaborative_experts_video_to_text(golden, source, mask, name):
    case = golden("ce_metrics")
    similarity, owner = collaborative_experts(case["inputs"], source, mask)
    videos = similarity.shape[1]
    # Theirs rank the best own text among all texts.
    found = relevant_ranks(similarity.T, np.arange(videos)[:, None] == owner)
    shared = 0
    for video in range(videos):  # their own captions share places with each other; ours do not
        own = similarity[owner == video, video]
        shared += (np.count_nonzero(own == own.max()) - 1) / 2
    expected = case["outputs"][name]["v2t"]
    assert found.mean() + shared / videos == pytest.approx(expected["MeanR"])
    assert "ties" in name or not shared
    if not shared:
        assert 100 * np.mean(found == 1) == pytest.approx(expected["R1"])
        assert 100 * np.mean(found - 1 < 5) == pytest.approx(expected["R5"])
        assert np.median(found) == expected["MedR"]


RANKS = st.lists(st.integers(2, 240).map(lambda twice: twice / 2), min_size=1, max_size=30)


@given(RANKS)
def test_recall_counts_one_rank_at_a_time(ranks):
    found = recall(np.array(ranks))
    for k, value in zip((1, 5, 10, 50), (found.r1, found.r5, found.r10, found.r50), strict=True):
        assert value == pytest.approx(100 * sum(r <= k for r in ranks) / len(ranks))
    assert found.median == statistics.median(ranks)
    assert found.mean == pytest.approx(sum(ranks) / len(ranks))
    assert found.n == len(ranks)


@pytest.mark.parametrize("name", ["no_ties", "odd", "single_even_median"])
def test_clip4clip_with_one_caption(golden, name):
    case = golden("clip4clip_metrics")
    expected = case["outputs"][name]
    found = recall(np.array(expected["cols"]) + 1.0)
    assert (found.r1, found.r5, found.r10) == pytest.approx([expected[f"R{k}"] for k in (1, 5, 10)])
    assert found.median == expected["MedianR"]
    assert found.mean == pytest.approx(expected["MeanR"])


def test_the_median_of_an_even_number_of_ranks_is_the_mean_of_the_middle_two(golden):
    case = golden("clip4clip_metrics")
    similarity = np.array(case["inputs"]["even"])[:, 0]
    ranks = text_ranks(similarity, np.arange(len(similarity)))
    found, theirs = recall(ranks), case["outputs"]["multi_even_median"]
    half = len(ranks) // 2
    lower, upper = np.sort(ranks)[half - 1 : half + 1]
    assert theirs["MedianR"] == lower
    assert found.median == (lower + upper) / 2
    assert found.mean == pytest.approx(theirs["MeanR"])


def test_sums_of_a_printed_row():
    # DVTR + C2V on MSR-VTT 1k-A prints 426.2, on ActivityNet (1, 5, 50) 449.1.
    texts = Recall(52.0, 77.3, 85.2, 0.0, 1.0, 1.0, 1000)
    videos = Recall(50.2, 76.5, 85.0, 0.0, 1.0, 1.0, 1000)
    assert rsum(texts, videos) == pytest.approx(426.2)
    texts = Recall(47.6, 77.8, 0.0, 98.8, 2.0, 1.0, 4917)
    videos = Recall(47.6, 78.3, 0.0, 99.0, 2.0, 1.0, 4917)
    assert rsum(texts, videos, (1, 5, 50)) == pytest.approx(449.1)


def test_any_k_can_be_counted():
    assert recall_at(np.array([1.0, 3.0, 3.5]), 3) == pytest.approx(200 / 3)


@pytest.mark.parametrize("ranks", [[], [0.0, 1.0], [np.nan], [np.inf]])
def test_what_is_no_rank_is_refused(ranks):
    with pytest.raises(SureshotError, match=r"no queries|count from 1"):
        recall(np.array(ranks, float))


@pytest.mark.parametrize("rows, width", [(0, 3), (1, 1), (7, 0), (23, 4), (10, 1000)])
def test_every_row_is_in_one_block_and_blocks_are_small(rows, width, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", 12)
    parts = list(row_blocks(rows, width))
    covered = [np.arange(rows)[part] for part in parts]
    assert [row for part in covered for row in part] == list(range(rows))
    assert all(len(part) == 1 or len(part) * width <= 12 for part in covered)
    assert len(parts) == (len(parts) if not width else -(-rows // max(1, 12 // width)))

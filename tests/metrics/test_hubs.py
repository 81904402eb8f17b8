"""Hub correction against loops and against the numbers of the papers' codes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.metrics import ranks
from sureshot.metrics.hubs import (
    dual_softmax,
    hubness_skewness,
    inverted_softmax,
    nearest_neighbour_normalised,
    occurrences,
    querybank_norm,
)

INF = float("inf")


def cosines(texts, videos, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (texts, videos))


def slow_softmax(similarity, bank, scale):
    """exp(c S_ij) / sum_k exp(c B_kj), term by term."""
    return [
        [
            math.exp(scale * s) / math.fsum(math.exp(scale * b[j]) for b in bank.tolist())
            for j, s in enumerate(row)
        ]
        for row in similarity.tolist()
    ]


def test_dual_softmax_term_by_term():
    similarity = cosines(6, 4)
    expected = similarity * np.array(slow_softmax(similarity, similarity, 30.0))
    np.testing.assert_allclose(dual_softmax(similarity, 30.0), expected, rtol=1e-12)


def test_dual_softmax_of_t_mass_and_uatvr(golden):
    case = golden("dsl")
    similarity, outputs = np.array(case["inputs"]["S"]), case["outputs"]
    scale = case["config"]["temperature"] * len(similarity)  # of UATVR's
    for found, name in (
        (dual_softmax(similarity), "t2v"),
        (dual_softmax(similarity.T), "v2t"),
    ):
        np.testing.assert_allclose(found, outputs[f"dsl_{name}"], rtol=1e-6)
        np.testing.assert_allclose(scale * found, outputs[f"uatvr_{name}"], rtol=1e-6)


def test_dual_softmax_loses_no_caption_where_videos_have_unequal_numbers(golden):
    case = golden("dsl")
    padded = np.array(case["inputs"]["multi"])
    theirs, lost = np.array(case["outputs"]["multi"]), case["outputs"]["multi_nan_slots"]
    assert np.isnan(theirs[:, lost]).all()  # for every video
    real = np.isfinite(padded[..., 0])
    found = dual_softmax(padded[real])
    assert np.isfinite(found).all()
    assert len(found) == sum(case["config"]["captions"])


def test_logarithms_are_no_scores_for_dual_softmax():
    """It would rank the worst first; a text or two below zero is what cosines have."""
    cosines = np.random.default_rng(0).uniform(-0.2, 0.4, (20, 20))
    assert np.isfinite(dual_softmax(np.where(np.arange(20)[:, None] < 3, -0.1, cosines))).all()
    with pytest.raises(SureshotError, match=r"for cosines; .* Take inverted_softmax"):
        dual_softmax(np.log(np.random.default_rng(0).uniform(0.01, 0.9, (20, 20))))


def test_inverted_softmax_term_by_term():
    similarity = cosines(6, 4)
    found = np.exp(20 * inverted_softmax(similarity, 20.0))
    np.testing.assert_allclose(found, slow_softmax(similarity, similarity, 20.0), rtol=1e-11)


def test_inverted_softmax_is_the_logarithm_of_the_softmax_over_texts(golden):
    case = golden("dsl")
    found = inverted_softmax(np.array(case["inputs"]["S"]))
    np.testing.assert_allclose(np.exp(100 * found), case["outputs"]["softmax_only"], rtol=1e-6)


def test_inverted_softmax_is_what_the_released_code_of_duq_ranks_by(golden):
    case = golden("duq_head_branch_kl_softmax")
    scores = np.array(case["inputs"]["X"])
    for found, name in (
        (inverted_softmax(scores), "np_softmax"),
        (inverted_softmax(scores.T), "np_softmax_T"),
    ):
        np.testing.assert_allclose(np.exp(100 * found), case["outputs"][name], rtol=1e-6)


def test_inverted_softmax_keeps_apart_what_a_softmax_rounds_to_zero():
    similarity = np.array([[-0.9, -0.8, 0.1], [0.9, 0.9, 0.9]], np.float32)
    order = np.argsort(inverted_softmax(similarity, scale=1e4)[0])
    assert order.tolist() == [0, 1, 2]


def test_querybank_norm_of_its_authors(golden):
    case = golden("qbnorm_dis")
    similarity = np.array(case["inputs"]["test_test"])
    bank = np.array(case["inputs"]["train_test"])
    for name, (k, beta) in case["config"]["cases"].items():
        expected = case["outputs"][name]
        found = querybank_norm(similarity, bank, beta=float(beta), k=k)
        rows = np.isin(np.arange(len(similarity)), expected["normalised_rows"])
        theirs = np.array(expected["result"])
        np.testing.assert_allclose(np.exp(beta * found[rows]), theirs[rows], rtol=1e-6)
        np.testing.assert_allclose(found[~rows], theirs[~rows], rtol=1e-6)


def test_querybank_norm_leaves_texts_alone_whose_best_video_no_caption_of_the_bank_prefers():
    similarity = np.array([[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]])
    bank = np.array([[0.9, 0.1, 0.0], [0.8, 0.7, -0.5]])
    found = querybank_norm(similarity, bank)
    np.testing.assert_array_equal(found[1], similarity[1])
    expected = np.log(slow_softmax(similarity[:1], bank, 20.0)) / 20
    np.testing.assert_allclose(found[:1], expected, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_querybank_norm_does_not_depend_on_the_order_of_tied_videos(dtype):
    similarity = np.array([[0.5, 0.5, 0.25]], dtype)
    bank = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.0]], dtype)
    turned = querybank_norm(similarity[:, ::-1], bank[:, ::-1])[:, ::-1]
    np.testing.assert_array_equal(turned, querybank_norm(similarity, bank))


def test_nearest_neighbour_normalisation_of_its_authors(golden):
    case = golden("nnn")
    queries, gallery, bank = (
        np.array(case["inputs"][name]) for name in ("queries", "gallery", "reference")
    )
    for name, (k, weight) in case["config"]["cases"].items():
        found = nearest_neighbour_normalised(
            queries @ gallery.T, bank @ gallery.T, k=k, weight=float(weight)
        )
        expected = case["outputs"][name]
        np.testing.assert_allclose(found, expected["scores"], rtol=1e-6, atol=1e-8)
        ranked = np.take_along_axis(found, np.array(expected["ranking"]), 1)
        assert (np.diff(ranked) < 1e-8).all()


def test_nearest_neighbour_normalisation_term_by_term():
    similarity, bank = cosines(5, 4), cosines(7, 4, 1)
    found = nearest_neighbour_normalised(similarity, bank, k=3, weight=0.5)
    for j in range(4):
        mean = sum(sorted(bank[:, j].tolist())[-3:]) / 3
        np.testing.assert_allclose(found[:, j], similarity[:, j] - 0.5 * mean)
    many = cosines(70, 4, 2)
    usual = nearest_neighbour_normalised(similarity, many, k=64)
    np.testing.assert_array_equal(nearest_neighbour_normalised(similarity, many), usual)
    everything = nearest_neighbour_normalised(similarity, bank, k=99)
    np.testing.assert_allclose(everything, similarity - bank.mean(0))


CALLS = [
    lambda s, b: dual_softmax(s),
    lambda s, b: inverted_softmax(s),
    querybank_norm,
    nearest_neighbour_normalised,
    lambda s, b: occurrences(s, 1),
    lambda s, b: hubness_skewness(s, 1),
]


@pytest.mark.parametrize("call", CALLS)
def test_the_input_stays_as_it_is(call):
    similarity, bank = cosines(5, 4), cosines(7, 4, 1)
    kept = similarity.copy(), bank.copy()
    call(similarity, bank)
    assert (similarity == kept[0]).all() and (bank == kept[1]).all()


@pytest.mark.parametrize("call", CALLS[2:4])
def test_with_a_bank_a_query_scores_the_same_whatever_else_is_asked(call):
    similarity, bank = cosines(6, 4), cosines(9, 4, 1)
    np.testing.assert_allclose(call(similarity[2:3], bank)[0], call(similarity, bank)[2])


@pytest.mark.parametrize("call", CALLS[:4])
def test_what_is_ruled_out_stays_ruled_out_and_disturbs_nothing(call):
    similarity, bank = cosines(5, 4), cosines(7, 4, 1)
    similarity[1, 2] = similarity[0, 0] = -INF
    similarity[:, 3] = -INF
    found = call(similarity, bank)
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(similarity))
    assert not np.isnan(found).any()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bad", [np.nan, INF])
def test_scores_that_are_no_number_are_refused(call, bad):
    similarity = cosines(3, 4)
    similarity[1, 2] = bad
    with pytest.raises(SureshotError, match=r"similarity\[1, 2\] is (nan|inf)"):
        call(similarity, cosines(2, 4))


@pytest.mark.parametrize("call", CALLS[2:4])
def test_a_bank_with_what_is_no_number_is_refused(call):
    bank = cosines(3, 4)
    bank[0, 1] = np.nan
    with pytest.raises(SureshotError, match=r"bank\[0, 1\] is nan"):
        call(cosines(3, 4), bank)


def test_a_bank_that_rules_a_video_out_has_no_mean_but_a_soft_maximum():
    similarity, bank = cosines(3, 4), cosines(5, 4, 1)
    bank[:4, 1] = -INF
    with pytest.raises(SureshotError, match="video 1 with -inf"):
        nearest_neighbour_normalised(similarity, bank, k=2)
    assert np.isfinite(nearest_neighbour_normalised(similarity, bank, k=1)).all()
    assert np.isfinite(querybank_norm(similarity, bank, k=4)).all()
    bank[4, 1] = -INF
    np.testing.assert_allclose(querybank_norm(similarity, bank, k=4)[:, 1], similarity[:, 1])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 6), st.data())
def test_occurrences_count_one_text_at_a_time(texts, videos, data):
    score = st.sampled_from([-INF, -0.5, 0.0, 0.5])
    rows = [[data.draw(score) for _ in range(videos)] for _ in range(texts)]
    k = data.draw(st.integers(1, videos))
    expected = [0.0] * videos
    for row in rows:
        last = sorted(row, reverse=True)[k - 1]
        above = sum(s > last for s in row)
        for j, s in enumerate(row):
            expected[j] += 1 if s > last else (k - above) / row.count(last) if s == last else 0
    found = occurrences(np.array(rows), k)
    np.testing.assert_allclose(found, expected)
    assert found.sum() == pytest.approx(k * texts)


def test_occurrences_in_small_parts_are_those_of_the_whole(monkeypatch):
    similarity = np.round(cosines(13, 6), 1)
    whole = occurrences(similarity, 3)
    monkeypatch.setattr(ranks, "CELLS", 10)
    np.testing.assert_allclose(occurrences(similarity, 3), whole)


def test_skewness_by_hand_and_where_there_is_none():
    similarity = np.array([[0.9, 0.1, 0.2], [0.9, 0.1, 0.2], [0.1, 0.9, 0.2], [0.9, 0.3, 0.2]])
    counts = [3, 1, 0]  # mean 4/3
    centred = [c - 4 / 3 for c in counts]
    spread = math.sqrt(sum(c**2 for c in centred) / 3)
    expected = sum((c / spread) ** 3 for c in centred) / 3
    assert hubness_skewness(similarity, 1) == pytest.approx(expected)
    assert hubness_skewness(similarity, 10) == 0.0
    assert hubness_skewness(np.eye(7), 1) == 0.0
    assert hubness_skewness(np.zeros((5, 7)), 3) == 0.0

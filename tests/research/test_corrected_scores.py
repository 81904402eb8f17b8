"""Both corrections of DUQ, in both directions, against the equations one pair at a time."""

import math

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.errors import ArgumentError
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.scores import candidate_scores, check_printed, printed_scores, similarity
from tests import judged
from tests.trained import saved


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    judged.split(folder, photos=12, captions=2)
    for system in ("duq", "xpool"):
        saved(folder / system, system, "none")
    return folder


@pytest.fixture(scope="module")
def duq(place):
    """A model of DUQ and the features of a split."""
    scorer = load(str(place / "duq"), "cpu")
    split = load_split("pairs", "val", place / "pairs.csv")
    return scorer, extract(split, scorer.encoder, frames=3, cache=place / "cache")


def vacuities(scores):
    """Of each row, with ReLU evidence."""
    return np.array([len(row) / sum(max(s, 0) + 1 for s in row) for row in scores])


def test_the_printed_rule_is_one_matrix_whose_columns_are_the_other_direction(duq):
    texts, videos = printed_scores(*duq, gamma=0.7)
    assert (texts.direction, videos.direction) == ("t2v", "v2t")
    assert texts.gamma == videos.gamma == 0.7
    assert "gamma 0.7" in texts.name and "gamma 0.7" in videos.name
    assert "looks at the query alone" in texts.name and "all test queries" in videos.name
    np.testing.assert_array_equal(texts.scores, videos.scores)


def test_gamma_moves_no_rank_of_a_text_and_is_a_factor_of_its_row(duq):
    none, some = (printed_scores(*duq, gamma=gamma)[0].scores for gamma in (0.0, 3.0))
    np.testing.assert_array_equal(none.argsort(1), some.argsort(1))
    factors = some / none
    np.testing.assert_allclose(factors, np.repeat(factors[:, :1], factors.shape[1], 1), rtol=1e-4)
    assert (factors < 1).all() and np.ptp(factors[:, 0]) > 0


def test_another_system_has_nothing_to_re_rank_by_as_printed(place):
    for name in (str(place / "xpool"), "tiny"):
        with pytest.raises(ArgumentError, match=r"and .* is not DUQ\. Take --post duq_candidates"):
            check_printed(load(name, "cpu"))


@pytest.mark.parametrize("gamma", [0.1, 0.6])
def test_candidates_get_a_share_of_their_uncertainty_one_pair_at_a_time(gamma):
    draw = np.random.default_rng(0)
    scores, bank = draw.uniform(-0.3, 0.8, (5, 4)), draw.uniform(-0.3, 0.8, (7, 4))
    texts, videos = candidate_scores(scores, bank, gamma)
    assert texts.gamma == gamma and "bank: 7 training captions" in texts.name
    u = vacuities(bank.T)
    for i in range(5):
        for j in range(4):
            share = (u[j] - u.mean()) / u.std() * bank.std()
            assert texts.scores[i, j] == pytest.approx(scores[i, j] + gamma * share, abs=1e-12)
    u = vacuities(scores)
    for i in range(5):
        share = (u[i] - u.mean()) / u.std() * scores.std()
        np.testing.assert_allclose(videos.scores[i], scores[i] + gamma * share, atol=1e-12)


def test_no_weight_leaves_the_scores_as_they_are():
    draw = np.random.default_rng(1)
    scores = draw.uniform(-1, 1, (5, 4)).astype(np.float32)
    for one in candidate_scores(scores, scores, 0.0):
        np.testing.assert_array_equal(one.scores, scores)


def test_hubs_are_taken_down_and_the_right_video_comes_first_more_often():
    draw = np.random.default_rng(3)
    near = 0.1 * draw.normal(size=200)

    def drawn():
        return 0.1 * draw.normal(size=(200, 200)) + 0.35 * np.eye(200) + near

    bank, scores = drawn(), drawn()
    right = [
        (candidate_scores(scores, bank, gamma)[0].scores.argmax(1) == np.arange(200)).mean()
        for gamma in (0.0, 0.3)
    ]
    assert right[1] > right[0] + 0.02 and math.isfinite(right[0])


def test_the_raw_scores_are_not_changed(duq):
    scorer, features = duq
    scores = similarity(scorer.raw, features)
    before = scores.copy()
    candidate_scores(scores, scores, 0.5)
    np.testing.assert_array_equal(scores, before)

"""Calibrations judge queries that they have not seen, and only as they are asked."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.card import COVERAGES
from sureshot.trust.fit import cross_fitted, predict_unseen
from sureshot.trust.signals import BEST
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def some():
    return world(videos=120, captions=3)


@pytest.fixture(scope="module")
def parts(some):
    return cross_fitted(some.scores, some.video, 3, 0)


def test_every_query_is_in_one_part_with_all_of_its_video(some, parts):
    rows = np.concatenate([part.rows for part in parts])
    assert sorted(rows.tolist()) == list(range(360))
    asked = [set(some.video[part.rows].tolist()) for part in parts]
    assert sum(map(len, asked)) == 120 and [len(names) for names in asked] == [40] * 3


def test_no_calibration_knows_its_queries(some, parts):
    """Whatever the queries of a part score, its own card stays as it is, and the others do not."""
    changed = some.scores.copy()
    changed[parts[0].rows] = np.random.default_rng(1).normal(size=(len(parts[0].rows), 120))
    again = cross_fitted(changed, some.video, 3, 0)
    same = [a.card.to_json() == b.card.to_json() for a, b in zip(parts, again, strict=True)]
    assert same == [True, False, False]


def test_a_seed_splits_and_another_splits_otherwise(some, parts):
    one, other = (cross_fitted(some.scores, some.video, 3, seed) for seed in (0, 1))
    assert all((a.rows == b.rows).all() for a, b in zip(parts, one, strict=True))
    assert not np.array_equal(parts[0].rows, other[0].rows)


def test_each_query_is_judged_by_its_own_card_as_if_alone(some, parts):
    said = predict_unseen(parts, some.scores, some.video)
    for part in parts:
        for row in part.rows[::17]:
            own, video = some.scores[row][None], some.video[row]
            gone = own.copy()
            gone[0, video] = -np.inf
            card = part.card
            assert said.p_top1[row] == pytest.approx(card.p_top1(own)[0])
            assert said.p_inside[row] == pytest.approx(card.p_inside(own)[0])
            assert said.absent_p_top1[row] == pytest.approx(card.p_top1(gone)[0])
            assert said.absent_p_inside[row] == pytest.approx(card.p_inside(gone)[0])
            order, p = card.p_relevant(own, results=10)
            np.testing.assert_allclose(said.p_relevant[row], p[0])
            assert said.relevant[row].tolist() == [column == video for column in order[0]]
            softmax = np.exp(own[0] / card.temperature)
            softmax /= np.sort(softmax)[-BEST:].sum()
            np.testing.assert_allclose(said.mass[row], softmax[order[0]], rtol=1e-6)
            assert said.softmax[row] == pytest.approx(softmax.max())
            for sets in said.sets:
                chosen = card.members(own, sets.coverage)[0]
                assert (sets.holds[row], sets.size[row]) == (chosen[video], chosen.sum())


def test_there_are_sets_of_each_coverage(some, parts):
    said = predict_unseen(parts, some.scores, some.video)
    assert tuple(found.coverage for found in said.sets) == COVERAGES


def test_a_coverage_that_one_card_cannot_promise_has_no_sets():
    few = world(videos=40, captions=4)
    parts = cross_fitted(few.scores, few.video, 2, 0)
    assert [found.coverage for found in predict_unseen(parts, few.scores, few.video).sets] == [
        0.8,
        0.9,
    ]


def test_too_few_queries_are_refused():
    few = world(videos=60)
    with pytest.raises(SureshotError, match="Only 30 queries have"):
        cross_fitted(few.scores, few.video, 2, 0)

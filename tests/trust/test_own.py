"""Judgements on top of a card: what they move, and how far."""

import numpy as np
import pytest

from sureshot.trust.card import sigmoid
from sureshot.trust.fit import JUDGED, SETS, SLOPE, JudgedQuery, adapt, fit_card
from sureshot.trust.signals import QueryContext, top_is_relevant
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card():
    w = world(1, 300)
    return fit_card(w.scores, w.relevant, w.video)


@pytest.fixture(scope="module")
def strange():
    """A library where the same scores mean less: half of what was right is not."""
    w = world(2, 300, captions=2)
    kept = np.random.default_rng(0).random(len(w.video)) < 0.5
    return w.scores, w.relevant & kept[:, None]


def judged(strange, rows, shown=3):
    scores, relevant = strange
    found = []
    for row in rows:
        order = np.argsort(-scores[row], kind="stable")
        right = np.where(np.arange(len(order)) < shown, relevant[row, order], -1)
        found.append(JudgedQuery(scores[row, order], right, QueryContext(videos=len(order))))
    return found


@pytest.mark.parametrize("count", [JUDGED, SLOPE])
def test_judgements_bring_what_is_said_nearer_to_what_is_true(card, strange, count):
    scores, relevant = strange
    right = top_is_relevant(scores, relevant).mean()
    before = card.p_top1(scores).mean() - right
    after = []
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(scores))[:count]
        after.append(adapt(card, judged(strange, rows)).p_top1(scores).mean() - right)
    assert before > 0.15
    assert np.mean(np.abs(after)) < 0.75 * before
    assert np.mean(np.abs(after)) < (0.5 if count == SLOPE else 0.75) * before


def test_it_notes_what_it_did(card, strange):
    known = judged(strange, range(20))
    own = adapt(card, known).own
    right = np.mean([query.right[0] for query in known])
    said = np.mean([card.p_top1(q.scores[None], q.about)[0] for q in known])
    assert (own.queries, own.free, own.right) == (20, "level", right)
    assert own.said == pytest.approx(said)
    assert abs(own.says - right) < abs(own.said - right)


def test_all_of_one_answer_are_no_reason_to_refuse(card, strange):
    wrong = [
        JudgedQuery(q.scores, np.where(q.right == 1, 0, q.right), q.about)
        for q in judged(strange, range(12))
    ]
    moved = adapt(card, wrong)
    assert moved.own.right == 0 and not moved.own.sets
    assert 0 < moved.own.says < moved.own.said
    assert moved.references == card.references


def test_sets_are_of_the_judgements_once_enough_have_a_right_hit(card, strange):
    known = judged(strange, range(40))
    right = [query for query in known if (query.right == 1).any()]
    assert not adapt(card, right[: SETS - 1]).own.sets
    moved = adapt(card, right[:SETS])
    assert moved.own.sets
    below = max(q.scores[0] - q.scores[q.right == 1].max() for q in right[:SETS])
    reach = moved.reach(known[0].scores[None], 0.9)
    assert reach == pytest.approx([below], abs=1e-6)


def test_a_level_moves_every_logit_by_the_same(card, strange):
    moved = adapt(card, judged(strange, range(15)))
    scores, _ = strange
    one, other = card.p_top1(scores[:50]), moved.p_top1(scores[:50])
    shift = np.log(other / (1 - other)) - np.log(one / (1 - one))
    np.testing.assert_allclose(shift, shift[0], atol=1e-6)
    np.testing.assert_allclose(sigmoid(np.log(one / (1 - one)) + shift), other)

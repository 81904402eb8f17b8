"""End to end in simulated worlds: what a card promises comes true on queries it has not seen.

Every number is a mean over many splits; tolerances are three standard errors or more.
"""

import numpy as np
import pytest

from sureshot.metrics.confidence import auroc, brier, ece, ece_floor
from sureshot.trust.signals import top_is_relevant
from tests.trust.worlds import world

SPLITS = 12


def split(seed, videos=600, labelled=240, **kind):
    """Labelled texts and others, all with the whole gallery."""
    w = world(seed % 4, videos, **kind)
    mixed = np.random.default_rng(100 + seed).permutation(videos)
    chosen = np.isin(w.video, mixed[:labelled])
    return w.texts(chosen), w.texts(~chosen)


def with_and_without(w):
    """Scores of queries with their videos and without, and whether the first is right."""
    gone = np.where(w.relevant, -np.inf, w.scores)
    right = np.concatenate([top_is_relevant(w.scores, w.relevant), np.zeros(len(gone), bool)])
    return np.concatenate([w.scores, gone]), right


@pytest.fixture(scope="module")
def cards():
    """Cards of many splits with the texts that were not labelled."""
    made = []
    for seed in range(SPLITS):
        known, fresh = split(seed)
        card = known.card(seed=seed)
        made.append((card, fresh))
    return made


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_sets_cover_as_often_as_they_say(cards, coverage):
    covered = [
        (card.members(fresh.scores, coverage) & fresh.relevant).any(1).mean()
        for card, fresh in cards
    ]
    # One split is off by about two or three hundredths.
    assert np.mean(covered) == pytest.approx(coverage, abs=0.03)
    assert np.std(covered) < 0.06


def test_probabilities_are_true_at_every_size_where_half_of_the_queries_have_no_answer(cards):
    rng = np.random.default_rng(0)
    for videos in (60, 200, 600):
        bias, excess, ratio, here = [], [], [], []
        for card, fresh in cards:
            part = fresh.gallery(np.sort(rng.permutation(600)[:videos]))
            scores, right = with_and_without(part)
            p = card.p_right(scores, results=1)[1][:, 0]
            bias.append(p.mean() - right.mean())
            excess.append(ece(p, right) - ece_floor(p, rng, draws=20))
            ratio.append(brier(p, right) / (right.mean() * (1 - right.mean())))
            here.append(card.p_present(scores).mean())
        assert abs(np.mean(bias)) < 0.04
        assert np.mean(excess) < 0.04
        assert np.mean(ratio) < 0.85
        assert np.mean(here) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("share", [0.25, 0.8])
def test_with_the_right_prior_they_are_true_for_other_shares_too(cards, share):
    bias = []
    for card, fresh in cards:
        scores, right = with_and_without(fresh)
        weight = np.repeat([share, 1 - share], len(right) // 2)
        p = card.p_right(scores, results=1, prior=share)[1][:, 0]
        bias.append(np.average(p, weights=weight) - np.average(right, weights=weight))
    assert abs(np.mean(bias)) < 0.04


def test_probabilities_of_results_are_calibrated_for_what_is_here(cards):
    rng = np.random.default_rng(0)
    bias, excess = [], []
    for card, fresh in cards:
        order, p = card.p_right(fresh.scores, prior=1)
        right = np.take_along_axis(fresh.relevant, order, 1).ravel()
        bias.append(p.mean() - right.mean())
        excess.append(ece(p.ravel(), right) - ece_floor(p.ravel(), rng, draws=10))
    assert abs(np.mean(bias)) < 0.02
    assert np.mean(excess) < 0.025


def test_the_probability_orders_better_than_the_best_score_and_the_margin(cards):
    better = []
    for card, fresh in cards:
        right = top_is_relevant(fresh.scores, fresh.relevant)
        best = np.sort(fresh.scores, axis=1)
        ours = auroc(card.p_first(fresh.scores), right)
        better.append((ours, auroc(best[:, -1], right), auroc(best[:, -1] - best[:, -2], right)))
    ours, top, margin = np.mean(better, 0)
    assert ours > max(top, margin)
    assert ours > 0.84

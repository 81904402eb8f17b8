"""Fitting a card: the split, what it is fitted on, and when it is refused."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.detection import auroc
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.fitting import _refusal, fit_card
from sureshot.trust.signals import features, query_signals, top_is_relevant
from tests.trust.worlds import world


def among(card, w):
    """Whether each query of a world is one of the certifying, by what its own video scores."""
    own = -w.scores[np.arange(len(w.video)), w.video]
    kept = set(card.annotated.scores)
    return np.array([Nonconformity.of(own[i : i + 1]).scores[0] in kept for i in range(len(own))])


def test_the_same_seed_gives_the_same_card_and_another_one_another():
    w = world(0, 150)
    first = fit_card(w.scores, w.relevant, w.video, sought=w.video)
    assert fit_card(w.scores, w.relevant, w.video, sought=w.video) == first
    assert fit_card(w.scores, w.relevant, w.video, sought=w.video, seed=1) != first


def test_numbers_of_videos_are_only_names():
    w = world(0, 150)
    names = 1000 - 7 * w.video
    mixed = fit_card(w.scores, w.relevant, names, sought=w.video)
    assert mixed.valid_for == fit_card(w.scores, w.relevant, w.video, sought=w.video).valid_for


def test_references_are_scores_of_the_certifying_queries_alone():
    w = world(1, 120)
    card = fit_card(w.scores, w.relevant, w.video, sought=w.video, sizes=(120,))
    own = Nonconformity.of(-w.scores[np.arange(120), w.video]).scores
    best = Nonconformity.of(-np.where(w.relevant, w.scores, -9).max(1)).scores
    top = Nonconformity.of(-w.scores.max(1)).scores
    for reference, all_of_them in (
        (card.annotated, own),
        (card.any, best),
        (card.inside[0].best, top),
    ):
        assert reference.videos == 80
        assert set(reference.scores) <= set(all_of_them)
    # The fit saw the others: their mean is in the fitted means.
    certifying = among(card, w)
    assert (~certifying).sum() == 40
    signals = features(query_signals(w.scores[~certifying], card.temperature))
    np.testing.assert_allclose(card.top1.mean, signals.mean(0))


def test_all_captions_of_a_video_are_on_one_side():
    w = world(2, 60, captions=5)
    card = fit_card(w.scores, w.relevant, w.video)
    valid = card.valid_for
    assert (valid.queries, valid.videos, valid.fitted, valid.certified) == (300, 60, 20, 40)
    assert card.any.videos == 40
    assert set(card.any.sharing) == {5}
    assert card.annotated is None
    assert card.quality.top1.cases == 200
    assert max(c.answered for c in card.certificates) <= 40


def test_many_captions_do_not_swell_the_card(monkeypatch):
    monkeypatch.setattr("sureshot.trust.fitting._KEPT", 90)
    monkeypatch.setattr("sureshot.trust.fitting._FITTED", 60)
    w = world(2, 60, captions=5)
    card = fit_card(w.scores, w.relevant, w.video)
    assert set(card.any.sharing) == {2}
    assert len(card.any.scores) == len(card.inside[0].best.scores) == 80


def test_galleries_have_several_sizes():
    w = world(3, 100)
    card = fit_card(w.scores, w.relevant, w.video)
    assert [inside.videos for inside in card.inside] == [2, 4, 10, 21, 46, 100]
    # Every query is fitted in each of them.
    assert card.top1.mean[-1] == pytest.approx(np.log([2, 4, 10, 21, 46, 100]).mean())
    medians = [np.median(inside.best.scores) for inside in card.inside]
    assert medians == sorted(medians, reverse=True)  # the best of more is better
    chosen = fit_card(w.scores, w.relevant, w.video, sizes=(50, 20))
    assert [inside.videos for inside in chosen.inside] == [20, 50]
    assert chosen.result.mean[-1] == pytest.approx(chosen.top1.mean[-1])  # ten results in each
    assert (chosen.valid_for.smallest, chosen.valid_for.largest) == (20, 50)


def test_queries_without_a_relevant_video_are_left_out():
    w = world(4, 90)
    expected = fit_card(w.scores, w.relevant, w.video, sought=w.video)
    rng = np.random.default_rng(0)
    card = fit_card(
        np.concatenate([w.scores, rng.normal(size=(30, 90))]),
        np.concatenate([w.relevant, np.zeros((30, 90), bool)]),
        np.concatenate([w.video, 500 + np.arange(30)]),
        sought=np.concatenate([w.video, np.full(30, -1)]),
    )
    assert card == expected


def test_quality_is_measured_on_the_certifying_queries():
    w = world(6, 300)
    card = fit_card(w.scores, w.relevant, w.video, sought=w.video)
    certifying = among(card, w)
    p, right = card.p_top1(w.scores), top_is_relevant(w.scores, w.relevant)
    judged = card.quality.top1
    assert judged.cases == certifying.sum() == 200
    assert judged.share == right[certifying].mean()
    assert judged.auroc == pytest.approx(auroc(p[certifying], right[certifying]))
    assert judged.auroc_low < judged.auroc < judged.auroc_high
    assert judged.brier == pytest.approx(np.mean((p - right)[certifying] ** 2))
    assert judged.brier_base == pytest.approx(judged.share * (1 - judged.share))
    rest = np.where(w.relevant, -9, w.scores).max(1)[certifying]
    best = w.scores.max(1)[certifying]
    expected = np.mean(best[:, None] > rest) + np.mean(best[:, None] == rest) / 2
    assert card.quality.absent_auroc == pytest.approx(expected)
    assert card.quality.result.cases == 2000


def test_absent_queries_lower_the_probabilities():
    w = world(7, 400)
    some = fit_card(w.scores, w.relevant, w.video, absent=0.4)
    none = fit_card(w.scores, w.relevant, w.video)
    assert some.valid_for.absent == 0.4
    # What is fitted is a mixture in these shares, so the mean of a feature is linear in them.
    there, mixed, mostly = (
        fit_card(w.scores, w.relevant, w.video, absent=share, sizes=(400,)).top1.mean[0]
        for share in (0.0, 0.4, 0.8)
    )
    assert mixed < there
    assert mostly - there == pytest.approx(2 * (mixed - there))
    fresh = world(8, 400)
    right = top_is_relevant(fresh.scores, fresh.relevant)
    assert none.p_top1(fresh.scores).mean() == pytest.approx(right.mean(), abs=0.06)
    there = some.p_top1(fresh.scores).mean()
    gone = some.p_top1(np.where(fresh.relevant, -np.inf, fresh.scores)).mean()
    assert 0.6 * there + 0.4 * gone == pytest.approx(0.6 * right.mean(), abs=0.06)
    assert some.quality.top1.share == pytest.approx(0.6 * none.quality.top1.share, abs=0.08)


def labels(queries, right, videos=40, noise=0.0):
    """Queries about videos of their own, so many of them with a right first result."""
    rng = np.random.default_rng(0)
    scores = rng.random((queries, videos)) * 0.5
    own = np.arange(queries) % videos
    relevant = own[:, None] == np.arange(videos)
    scores[np.arange(queries), own] = np.where(np.arange(queries) < right, 0.9, -0.1)
    return scores, relevant, np.arange(queries)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (labels(49, 25), "Only 49 queries have a right video; 50"),
        (labels(60, 19), "Only 19 queries have a right first hit"),
        (labels(60, 41), "Only 19 queries have a wrong first hit"),
    ],
)
def test_too_few_labels_are_refused(given, message):
    with pytest.raises(SureshotError, match=message):
        fit_card(*given)


def test_queries_of_too_few_videos_are_refused():
    scores, relevant, _ = labels(60, 30)
    with pytest.raises(SureshotError, match="Only 19 videos are right for a query"):
        fit_card(scores, relevant, np.arange(60) % 19)


def test_constant_scores_are_refused():
    w = world(9, 80)
    with pytest.raises(SureshotError, match="Only 0 queries have a right first hit"):
        fit_card(np.zeros_like(w.scores), w.relevant, w.video)


def test_a_gallery_of_one_video_is_refused():
    with pytest.raises(SureshotError, match="a wrong first hit"):
        fit_card(np.random.default_rng(0).random((80, 1)), np.ones((80, 1), bool), np.arange(80))


def test_absent_queries_alone_and_nothing_are_refused():
    with pytest.raises(SureshotError, match="None of the labelled queries"):
        fit_card(np.zeros((80, 5)), np.zeros((80, 5), bool), np.arange(80))
    with pytest.raises(SureshotError, match="None of the labelled queries"):
        fit_card(np.zeros((0, 5)), np.zeros((0, 5), bool), np.arange(0))


def test_labels_that_do_not_separate_are_refused_on_the_card():
    # Right and wrong answers come from the same scores.
    rng = np.random.default_rng(1)
    refused = 0
    for seed in range(5):
        scores = rng.random((100, 30))
        chosen = np.where(rng.random(100) < 0.5, scores.argmax(1), scores.argmin(1))
        card = fit_card(scores, np.eye(30, dtype=bool)[chosen], np.arange(100), seed=seed)
        refused += "judge more queries" in card.refused
    assert refused >= 4


def test_what_is_refused_is_the_order_by_chance_or_no_gain():
    w = world(12, 200)
    judged = fit_card(w.scores, w.relevant, w.video).quality.top1
    assert _refusal(judged) == ""
    assert "does not tell right from wrong" in _refusal(replace(judged, auroc_low=0.5))
    assert "no better than always saying" in _refusal(replace(judged, brier=judged.brier_base))


def test_labels_that_separate_are_not_refused():
    cards = [fit_card(w.scores, w.relevant, w.video) for w in (world(s, 200) for s in range(4))]
    assert [card.refused for card in cards] == [""] * 4


def test_ties_are_fitted():
    w = world(10, 200)
    card = fit_card(np.round(w.scores, 1), w.relevant, w.video)
    assert np.isfinite(card.p_top1(np.round(w.scores, 1))).all()


def bad(scores=None, **change):
    w = world(11, 60, noise=2.0)
    given = {"scores": w.scores if scores is None else scores(w), "relevant": w.relevant}
    return {**given, "video": w.video, **change}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (bad(scores=lambda w: np.where(w.relevant, np.nan, w.scores)), "NaN or infinite"),
        (bad(scores=lambda w: np.where(w.relevant, -np.inf, w.scores)), "NaN or infinite"),
        (bad(scores=lambda w: w.scores[:, 1:]), "same queries and videos"),
        (bad(video=np.arange(59)), "same queries and videos"),
        (bad(sought=np.arange(59)), "same queries and videos"),
        (bad(sought=np.full(60, -1)), "not labelled relevant"),
        (bad(sought=np.roll(np.arange(60), 7)), "not labelled relevant"),
        (bad(absent=1.0), "absent is 1.0"),
        (bad(sizes=(10, 61)), "cannot be drawn from 60"),
        (bad(sizes=()), "cannot be drawn from 60"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments, message):
    with pytest.raises(SureshotError, match=message):
        fit_card(**arguments)

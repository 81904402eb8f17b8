"""Fitting a card: the split, what it is fitted on, and when it is refused."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.confidence import auroc
from sureshot.trust.card import Nonconformity
from sureshot.trust.fit import _refusal, fit_card, fit_over, labelled
from sureshot.trust.signals import QueryContext, features, query_signals, top_is_relevant
from tests.trust.worlds import world


def among(card, w):
    """Whether each query of a world is one of the certifying, by its best score."""
    top = -w.scores.max(1)
    kept = set(card.references[0][-1].best.scores)
    return np.array([Nonconformity.of(top[i : i + 1]).scores[0] in kept for i in range(len(top))])


def test_the_same_seed_gives_the_same_card_and_another_one_another():
    w = world(0, 150)
    first = fit_card(w.scores, w.relevant, w.video)
    assert fit_card(w.scores, w.relevant, w.video) == first
    assert fit_card(w.scores, w.relevant, w.video, seed=1) != first


def test_numbers_of_videos_are_only_names():
    w = world(0, 150)
    names = 1000 - 7 * w.video
    mixed = fit_card(w.scores, w.relevant, names)
    assert mixed.valid_for == fit_card(w.scores, w.relevant, w.video).valid_for


def test_references_are_scores_of_the_certifying_queries_alone():
    w = world(1, 120)
    card = fit_card(w.scores, w.relevant, w.video, sizes=(120,))
    below = w.scores.max(1) - np.where(w.relevant, w.scores, -9).max(1)
    ((known,),) = card.references
    for reference, all_of_them in (
        (known.below, Nonconformity.of(below).scores),
        (known.best, Nonconformity.of(-w.scores.max(1)).scores),
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
    for reference in card.references[0]:
        assert reference.below.videos == reference.best.videos == 40
        assert set(reference.below.sharing) == {5}
    assert card.quality.top1.cases == 200


def test_many_captions_do_not_swell_the_card(monkeypatch):
    monkeypatch.setattr("sureshot.trust.fit._KEPT", 90)
    monkeypatch.setattr("sureshot.trust.fit._FITTED", 60)
    w = world(2, 60, captions=5)
    card = fit_card(w.scores, w.relevant, w.video)
    for reference in card.references[0]:
        assert set(reference.below.sharing) == {2}
        assert len(reference.below.scores) == len(reference.best.scores) == 80


def test_galleries_have_several_sizes():
    w = world(3, 100)
    card = fit_card(w.scores, w.relevant, w.video)
    assert [known.videos for known in card.references[0]] == [2, 4, 10, 21, 46, 100]
    # Every query is fitted in each of them.
    assert card.top1.mean[-1] == pytest.approx(np.log([2, 4, 10, 21, 46, 100]).mean())
    medians = [np.median(known.best.scores) for known in card.references[0]]
    assert medians == sorted(medians, reverse=True)  # the best of more is better
    chosen = fit_card(w.scores, w.relevant, w.video, sizes=(50, 20))
    assert [known.videos for known in chosen.references[0]] == [20, 50]
    assert chosen.result.mean[-1] == pytest.approx(chosen.top1.mean[-1])  # ten results in each
    assert (chosen.valid_for.smallest, chosen.valid_for.largest) == (20, 50)


def test_queries_without_a_relevant_video_are_left_out():
    w = world(4, 90)
    expected = fit_card(w.scores, w.relevant, w.video)
    rng = np.random.default_rng(0)
    card = fit_card(
        np.concatenate([w.scores, rng.normal(size=(30, 90))]),
        np.concatenate([w.relevant, np.zeros((30, 90), bool)]),
        np.concatenate([w.video, 500 + np.arange(30)]),
    )
    assert card == expected


def test_quality_is_measured_on_the_certifying_queries():
    w = world(6, 300)
    card = fit_card(w.scores, w.relevant, w.video)
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
        (bad(about=QueryContext(elsewhere=np.zeros(59))), "same queries and videos"),
        (bad(about=QueryContext(words=np.ones(59, int))), "same queries and videos"),
        (bad(sizes=(10, 61)), "cannot be drawn from 60"),
        (bad(sizes=()), "cannot be drawn from 60"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments, message):
    with pytest.raises(SureshotError, match=message):
        fit_card(**arguments)


def test_several_data_sets_weigh_the_same_and_each_gives_its_own_references():
    small, large = world(0, 80), world(1, 300, captions=2)
    parts = [labelled(w.scores, w.relevant, w.video) for w in (small, large)]
    card = fit_over(parts)
    assert [known[-1].videos for known in card.references] == [80, 300]
    assert (card.valid_for.smallest, card.valid_for.largest) == (2, 300)
    assert (card.valid_for.queries, card.valid_for.videos) == (680, 380)
    sizes = [np.log([known.videos for known in one]).mean() for one in card.references]
    assert card.top1.mean[-1] == pytest.approx(np.mean(sizes))
    assert card.quality.top1.cases == 54 + 400
    fresh = world(5, 200)
    reach = card.reach(fresh.scores, 0.9)
    alone = [
        replace(card, references=(known,)).reach(fresh.scores, 0.9) for known in card.references
    ]
    np.testing.assert_array_equal(reach, np.max(alone, axis=0))
    inside = [
        replace(card, references=(known,)).p_inside(fresh.scores) for known in card.references
    ]
    np.testing.assert_allclose(card.p_inside(fresh.scores), np.mean(inside, axis=0))

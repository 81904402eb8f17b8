"""Fitting a card: the split, what it is fitted on, and when it is refused."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.metrics.confidence import auroc
from sureshot.trust.card import COVERAGES, Nonconformity
from sureshot.trust.fit import (
    ALL,
    JUDGED,
    SETS,
    SLOPE,
    Calibrated,
    JudgedQuery,
    _refusal,
    adapt,
    date_or_today,
    draw_present,
    fit_card,
    gallery_sizes,
    labelled,
    sets_of,
)
from sureshot.trust.signals import QueryContext, top_is_relevant
from tests.trust.worlds import World, world


def among(card, w):
    """Whether each query of a world is one of the certifying, by its best score."""
    top = -w.scores.max(1)
    kept = set(card.references[0][-1].best.scores)
    return np.array([Nonconformity.of(top[i : i + 1]).scores[0] in kept for i in range(len(top))])


def test_the_same_seed_gives_the_same_card_and_another_one_another():
    w = world(0, 150)
    assert w.card() == w.card()
    assert w.card(seed=1) != w.card()


def test_references_are_scores_of_the_certifying_queries_alone():
    w = world(1, 120)
    words = np.arange(1, 121)
    card = w.card(QueryContext(words=words))
    below = w.scores.max(1) - np.where(w.relevant, w.scores, -9).max(1)
    known = card.references[0][-1]  # in the whole gallery
    for reference, all_of_them in (
        (known.below, Nonconformity.of(below).scores),
        (known.best, Nonconformity.of(-w.scores.max(1)).scores),
    ):
        assert reference.videos == 80
        assert set(reference.scores) <= set(all_of_them)
    certifying = among(card, w)
    assert (~certifying).sum() == 40
    assert card.top1.mean[-2] == pytest.approx(np.log(words[~certifying]).mean())


def test_all_captions_of_a_video_are_on_one_side():
    card = world(2, 60, captions=5).card()
    valid = card.valid_for
    assert (valid.queries, valid.videos, valid.fitted, valid.certified) == (300, 60, 20, 40)
    for reference in card.references[0]:
        assert reference.below.videos == reference.best.videos == 40
        assert set(reference.below.sharing) == {5}
    assert card.quality.top1.cases == 200


def test_many_captions_do_not_swell_the_card(monkeypatch):
    monkeypatch.setattr("sureshot.trust.fit._KEPT", 90)
    monkeypatch.setattr("sureshot.trust.fit._FITTED", 60)
    for reference in world(2, 60, captions=5).card().references[0]:
        assert set(reference.below.sharing) == {2}
        assert len(reference.below.scores) == len(reference.best.scores) == 80


def test_galleries_have_several_sizes():
    card = world(3, 100).card()
    assert [known.videos for known in card.references[0]] == [2, 4, 10, 21, 46, 100]
    assert (card.valid_for.smallest, card.valid_for.largest) == (2, 100)
    # Every query is fitted in each of them.
    assert card.top1.mean[-1] == pytest.approx(np.log([2, 4, 10, 21, 46, 100]).mean())
    medians = [np.median(known.best.scores) for known in card.references[0]]
    assert medians == sorted(medians, reverse=True)  # the best of more is better


def test_queries_without_a_relevant_video_are_left_out():
    w = world(4, 90)
    more = World(
        np.concatenate([w.scores, np.random.default_rng(0).normal(size=(30, 90))]),
        np.concatenate([w.relevant, np.zeros((30, 90), bool)]),
        np.concatenate([w.video, 500 + np.arange(30)]),
    )
    assert more.card() == w.card()


def test_quality_is_measured_on_the_certifying_queries():
    w = world(6, 300)
    card = w.card()
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


def labels(queries, right, videos=40):
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
        ((*labels(60, 30)[:2], np.arange(60) % 19), "Only 19 videos are right for a query"),
        ((*labels(60, 30)[:1], np.zeros((60, 40), bool), np.arange(60)), "None of the labelled"),
    ],
)
def test_too_few_labels_are_refused(given, message):
    with pytest.raises(SureshotError, match=message):
        World(*given).card()


def test_what_is_refused_is_the_order_by_chance_or_no_gain():
    judged = world(12, 200).card().quality.top1
    assert _refusal(judged) == ""
    assert "does not tell right from wrong" in _refusal(replace(judged, auroc_low=0.5))
    assert "no better than always saying" in _refusal(replace(judged, brier=judged.brier_base))


BAD = world(11, 60, noise=2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.where(BAD.relevant, np.nan, BAD.scores)}, "NaN or infinite"),
        ({"scores": BAD.scores[:, 1:]}, "same queries and videos"),
        ({"video": np.arange(59)}, "same queries and videos"),
        ({"about": QueryContext(background=np.zeros(59))}, "same queries and videos"),
        ({"about": QueryContext(words=np.ones(59, int))}, "same queries and videos"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(change, message):
    given = {"scores": BAD.scores, "relevant": BAD.relevant, "video": BAD.video}
    with pytest.raises(SureshotError, match=message):
        labelled(**given | change)


def test_several_data_sets_weigh_the_same_and_each_gives_its_own_references():
    small, large = world(0, 80), world(1, 300, captions=2)
    parts = [labelled(w.scores, w.relevant, w.video) for w in (small, large)]
    card = fit_card(parts)
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


def rng(seed=0):
    return np.random.default_rng(seed)


RELEVANT = np.array([[1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]] * 2000, bool)


def test_sizes_go_from_a_fiftieth_to_all():
    assert gallery_sizes(5000) == (100, 219, 478, 1046, 2287, 5000)
    assert [gallery_sizes(videos) for videos in (1, 2, 4)] == [(1,), (2,), (2, 3, 4)]


@pytest.mark.parametrize("size", [1, 3, 6])
def test_a_relevant_video_is_in_and_no_video_twice(size):
    drawn = draw_present(RELEVANT, size, rng())
    assert drawn.shape == (4000, size)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert np.take_along_axis(RELEVANT, drawn, 1).any(1).all()


def test_the_others_are_drawn_evenly():
    drawn = draw_present(RELEVANT, 3, rng())[1::2]  # video 2 is put in, two of five others come
    share = np.bincount(drawn.ravel(), minlength=6) / len(drawn)
    np.testing.assert_allclose(share, [0.4, 0.4, 1, 0.4, 0.4, 0.4], atol=0.04)
    # Of two relevant ones each is put in half of the time, and comes along like any other.
    drawn = draw_present(RELEVANT, 3, rng())[::2]
    share = np.bincount(drawn.ravel(), minlength=6) / len(drawn)
    np.testing.assert_allclose(share, [0.7, 0.4, 0.4, 0.4, 0.4, 0.7], atol=0.04)


@pytest.fixture(scope="module")
def card():
    return world(1, 300).card()


@pytest.fixture(scope="module")
def strange():
    """A library where the same scores mean less: half of what was right is not."""
    w = world(2, 300, captions=2)
    kept = np.random.default_rng(0).random(len(w.video)) < 0.5
    return w.scores, w.relevant & kept[:, None]


def logit(p):
    return np.log(p / (1 - p))


def judged(strange, rows, shown=3):
    scores, relevant = strange
    found = []
    for row in rows:
        order = np.argsort(-scores[row], kind="stable")
        right = np.where(np.arange(len(order)) < shown, relevant[row, order], -1)
        found.append(JudgedQuery(scores[row, order], right, QueryContext(videos=len(order))))
    return found


@pytest.mark.parametrize("count", [JUDGED, SLOPE, ALL])
def test_judgements_bring_what_is_said_nearer_to_what_is_true(card, strange, count):
    scores, relevant = strange
    right = top_is_relevant(scores, relevant).mean()
    before = card.p_top1(scores).mean() - right
    after = []
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(scores))[:count]
        after.append(adapt(card, judged(strange, rows)).p_top1(scores).mean() - right)
    assert before > 0.15
    assert np.mean(np.abs(after)) < (0.75 if count == JUDGED else 0.5) * before


def test_it_notes_what_it_did(card, strange):
    assert (JUDGED, SETS, SLOPE, ALL) == (10, 9, 50, 200)  # as messages and docs say
    known = judged(strange, range(20))
    own = adapt(card, known).personal
    right = np.mean([query.right[0] for query in known])
    said = np.mean([card.p_top1(q.scores[None], q.about)[0] for q in known])
    assert (own.queries, own.level, own.right) == (20, "level", right)
    assert own.before == pytest.approx(said)
    assert abs(own.after - right) < abs(own.before - right)
    levels = [adapt(card, judged(strange, range(n))).personal.level for n in (49, 50, 199, 200)]
    assert levels == ["level", "slope", "slope", "all"]


def test_all_of_one_answer_are_no_reason_to_refuse(card, strange):
    wrong = [
        JudgedQuery(q.scores, np.where(q.right == 1, 0, q.right), q.about)
        for q in judged(strange, range(12))
    ]
    moved = adapt(card, wrong)
    assert moved.personal.right == 0 and not moved.personal.sets
    assert 0 < moved.personal.after < moved.personal.before
    assert moved.references == card.references


def test_sets_are_of_the_judgements_once_enough_have_a_right_hit(card, strange):
    known = judged(strange, range(40))
    right = [query for query in known if (query.right == 1).any()]
    assert not adapt(card, right[: SETS - 1]).personal.sets
    moved = adapt(card, right[:SETS])
    assert moved.personal.sets
    below = max(q.scores[0] - q.scores[q.right == 1].max() for q in right[:SETS])
    reach = moved.reach(known[0].scores[None], 0.9)
    assert reach == pytest.approx([below], abs=1e-6)


def test_a_level_moves_every_logit_by_the_same(card, strange):
    moved = adapt(card, judged(strange, range(15)))
    one, other = (logit(some.p_top1(strange[0][:50])) for some in (card, moved))
    np.testing.assert_allclose(other - one, other[0] - one[0], atol=1e-6)
    assert abs(other[0] - one[0]) > 0.01


def test_the_sets_are_those_that_the_card_gives(done: Calibrated) -> None:
    w = world(1, 200)
    for row, coverage in zip(done.sets, COVERAGES, strict=True):
        sizes = [done.card.members(line[None], coverage).sum() for line in w.scores]
        assert (row.coverage, row.videos) == (coverage, pytest.approx(np.mean(sizes)))


def test_what_is_told_to_programs_names_every_count(done: Calibrated) -> None:
    values = replace(done, not_found=2, left_out=1).to_dict()
    counts = ("gallery", "absent", "not_found", "left_out")
    bare = Calibrated(card=done.card, gallery=200, sets=()).to_dict()
    assert [bare[name] for name in counts] == [200, 0, 0, 0]
    assert [values[name] for name in counts] == [200, 3, 2, 1]
    assert [row["coverage"] for row in values["sets"]] == list(COVERAGES)


def test_a_date_is_todays_in_greenwich_where_none_is_given() -> None:
    before = datetime.now(UTC).date().isoformat()
    assert before <= date_or_today("") <= datetime.now(UTC).date().isoformat()
    assert date_or_today("2026-11-30") == "2026-11-30"
    with pytest.raises(ArgumentError, match=r"--date 30.11.2026 is not a date"):
        date_or_today("30.11.2026")


@pytest.fixture(scope="module")
def done() -> Calibrated:
    w = world(1, 200)
    card = w.card(dataset="mine", date="2026-11-30")
    return Calibrated(card=card, gallery=200, sets=sets_of(card, w.scores), absent=3)


def test_it_prints_what_the_labels_gave(done: Calibrated, tmp_path: Path) -> None:
    lines = repr(done.saved(tmp_path / "card.json")).splitlines()
    assert lines[0].endswith("(mine), 3 more with nothing right here; 200 videos searched.")
    assert lines[-1] == f"Card: {tmp_path / 'card.json'}"


def test_a_refused_card_is_not_written_and_says_why(done: Calibrated, tmp_path: Path) -> None:
    refused = replace(done, card=replace(done.card, refused="They tell nothing."))
    (tmp_path / "card.json").write_text("before")
    assert refused.saved(tmp_path / "card.json").file is None
    assert (tmp_path / "card.json").read_text() == "before"
    assert "No percentages and no card: They tell nothing." in repr(refused)
    assert "Valid for" not in repr(refused)

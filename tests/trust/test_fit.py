"""Fitting a card, and what judgements make of one."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.trust.fit import (
    JUDGED,
    Calibrated,
    JudgedQuery,
    adapt,
    date_or_today,
    draw_present,
    fit_card,
    gallery_sizes,
    labelled,
)
from sureshot.trust.signals import QueryContext, top_is_relevant
from tests.trust.worlds import World, world


def test_the_same_seed_gives_the_same_card_and_another_one_another():
    w = world(0, 150)
    assert w.card() == w.card()
    assert w.card(seed=1) != w.card()


def test_depths_are_of_each_size_and_kind_and_in_the_whole_gallery_exact():
    w = world(1, 120)
    words = np.arange(120) % 6 + 1
    card = w.card(QueryContext(words=words))
    sizes = (10, 16, 27, 44, 73, 120)
    assert [d.videos for d in card.depths] == [*sizes, *sizes]
    assert (card.valid_for.smallest, card.valid_for.largest) == (10, 120)
    below = w.scores.max(1) - np.where(w.relevant, w.scores, -9).max(1)
    for few, depths in ((False, card.depths[5]), (True, card.depths[11])):
        assert depths.few == few
        np.testing.assert_allclose(depths.scores, np.sort(below[(words <= 3) == few]), rtol=1e-6)
        np.testing.assert_allclose(depths.weights, 1)


@pytest.mark.parametrize("few", [3, 147])
def test_keywords_or_sentences_that_are_too_few_by_themselves_count_with_the_others(few):
    w = world(0, 150)
    words = np.where(np.arange(150) < few, 2, 8)
    card = w.card(QueryContext(words=words))
    assert card.depths == w.card().depths and len(set(card.absent_below)) == 1
    assert card.members(w.scores, 0.95, QueryContext(words=words)) is not None


def test_captions_of_one_video_weigh_as_one_and_do_not_swell_the_card(monkeypatch):
    w = world(2, 60, captions=5)
    card = w.card()
    assert (card.valid_for.queries, card.valid_for.videos) == (300, 60)
    assert sum(card.depths[-1].weights) == pytest.approx(60)
    assert max(len(d.scores) for d in card.depths) == 200
    monkeypatch.setattr("sureshot.trust.fit._FITTED", 120)
    few = w.card()
    assert max(len(d.scores) for d in few.depths) == 120
    assert abs(few.reach(w.scores, 0.9) - card.reach(w.scores, 0.9)).max() < 0.15


def test_queries_without_a_relevant_video_are_left_out():
    w = world(4, 90)
    more = World(
        np.concatenate([w.scores, np.random.default_rng(0).normal(size=(30, 90))]),
        np.concatenate([w.relevant, np.zeros((30, 90), bool)]),
        np.concatenate([w.video, 500 + np.arange(30)]),
    )
    assert more.card() == w.card()


def test_quality_is_of_queries_with_and_without_an_answer():
    card = world(6, 300).card()
    quality = card.quality
    assert quality.cases == 2 * 300
    w = world(6, 300)
    assert quality.share == top_is_relevant(w.scores, w.relevant).mean() / 2
    w = world(7, 300)
    assert quality.auroc_low < quality.auroc < quality.auroc_high
    assert quality.brier < quality.brier_base == quality.share * (1 - quality.share)
    assert 0.5 < quality.absent_auroc < 1
    # A twelfth of the queries that have an answer is called absent, over all sizes of a gallery.
    fresh, rng = labelled(w.scores, w.relevant, w.video), np.random.default_rng(0)
    drawn = [fresh.present(size, rng).scores for size in gallery_sizes(300)]
    called = [card.called_absent(scores).mean() for scores in drawn]
    assert np.mean(called) == pytest.approx(1 / 12, abs=0.06)


def test_kinds_of_queries_about_the_same_videos_are_no_more_videos():
    """Held out of the fit in all kinds, and one cluster of the interval."""
    w = world(6, 120)
    one = labelled(w.scores, w.relevant, w.video)
    alone, four = fit_card([one]), fit_card([one] * 4, of=[0] * 4)
    apart = fit_card([one] * 4)
    assert [card.valid_for.videos for card in (alone, four, apart)] == [120, 120, 480]
    wide = [card.quality.auroc_high - card.quality.auroc_low for card in (alone, four, apart)]
    assert wide[2] < 0.7 * wide[0] < wide[1]


def labels(queries, right, videos=40):
    """Queries about videos of their own, so many of them with a right first result."""
    scores = np.random.default_rng(0).random((queries, videos)) * 0.5
    own = np.arange(queries) % videos
    relevant = own[:, None] == np.arange(videos)
    scores[np.arange(queries), own] = np.where(np.arange(queries) < right, 0.9, -0.1)
    return scores, relevant, np.arange(queries)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (labels(49, 25), "Only 49 queries have a right video; 50"),
        ((*labels(60, 30)[:1], np.zeros((60, 40), bool), np.arange(60)), "None of the labelled"),
    ],
)
def test_too_few_labels_are_refused(given, message):
    with pytest.raises(SureshotError, match=message):
        World(*given).card()


def test_labels_that_tell_nothing_say_the_share_that_is_right_of_everything():
    """Right by the toss of a coin, however sure the scores look, in galleries of any size."""
    rng = np.random.default_rng(0)
    relevant = rng.permutation(np.repeat(np.eye(40, dtype=bool), 60, axis=0))
    w = World(rng.random((2400, 40)), relevant, relevant.argmax(1))
    said = w.card().p_right(w.scores, results=1)[1]
    assert said.mean() == pytest.approx(1 / 80, abs=0.01) and said.max() < 0.05


@pytest.mark.parametrize("right", [0, 60])
def test_fifty_queries_are_enough_also_where_all_first_hits_are_right_or_wrong(right):
    scores, relevant, _ = labels(60, right)
    card = World(scores, relevant, np.zeros(60, int)).card()
    assert card.quality is None or right
    known = card.p_right(scores, results=1, prior=1)[1].mean()
    assert (0 < known < 0.1) if not right else (0.9 < known < 1)
    assert card.members(scores, 0.9) is None  # all are about one video, which promises nothing


BAD = world(11, 60, noise=2.0)


def test_nothing_is_calibrated_on_scores_that_are_no_numbers():
    with pytest.raises(SureshotError, match="NaN or infinite"):
        labelled(np.where(BAD.relevant, np.nan, BAD.scores), BAD.relevant, BAD.video)


def test_several_data_sets_weigh_the_same():
    small, large = world(0, 80), world(1, 300, captions=2)
    card = fit_card([labelled(w.scores, w.relevant, w.video) for w in (small, large)])
    assert (card.valid_for.smallest, card.valid_for.largest) == (10, 300)
    assert (card.valid_for.queries, card.valid_for.videos) == (680, 380)
    sizes = [np.log(gallery_sizes(n)).mean() for n in (80, 300)]
    # Galleries without the relevant videos are a little smaller.
    assert card.present.mean[4] == pytest.approx(np.mean(sizes), abs=0.05)


RELEVANT = np.array([[1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]] * 2000, bool)


def test_sizes_go_from_ten_to_all():
    assert gallery_sizes(5000) == (10, 35, 120, 416, 1443, 5000)
    assert [gallery_sizes(videos) for videos in (1, 2, 10)] == [(1,), (2,), (10,)]


@pytest.mark.parametrize("size", [1, 3, 6])
def test_a_relevant_video_is_in_and_no_video_twice(size):
    drawn = draw_present(RELEVANT, size, np.random.default_rng(0))
    assert drawn.shape == (4000, size)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert np.take_along_axis(RELEVANT, drawn, 1).any(1).all()


def test_the_others_are_drawn_evenly():
    drawn = draw_present(RELEVANT, 3, np.random.default_rng(0))
    # Video 2 is put in for every second query, and two of five others come.
    share = np.bincount(drawn[1::2].ravel(), minlength=6) / 2000
    np.testing.assert_allclose(share, [0.4, 0.4, 1, 0.4, 0.4, 0.4], atol=0.04)
    # Of two relevant ones each is put in half of the time, and comes along like any other.
    share = np.bincount(drawn[::2].ravel(), minlength=6) / 2000
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


def judged(library, rows, shown=3):
    """The first hits of some queries, judged by somebody who knows what the library has."""
    scores, relevant = library
    found = []
    for row in rows:
        order = np.argsort(-scores[row], kind="stable")
        right = np.where(np.arange(len(order)) < shown, relevant[row, order], -1)
        about = QueryContext(videos=len(order))
        found.append(JudgedQuery(scores[row, order], right, about, not relevant[row].any()))
    return found


def test_judgements_bring_what_is_said_nearer_to_what_is_true(card, strange):
    scores, relevant = strange
    right = top_is_relevant(scores, relevant).mean()
    off = []
    for count in (JUDGED, 20, 100):
        after = []
        for seed in range(6):
            rows = np.random.default_rng(seed).permutation(len(scores))[:count]
            own = adapt(card, judged(strange, rows))
            after.append(abs(own.p_right(scores)[1][:, 0].mean() - right))
        off.append(np.mean(after))
    before = abs(card.p_right(scores)[1][:, 0].mean() - right)
    assert off[0] < before + 0.005
    assert off[2] < 0.9 * before


def test_where_the_card_is_right_judgements_make_nothing_worse(card):
    w = world(5, 300, captions=2)
    gone = np.where(w.relevant, -1.0, w.scores), np.zeros_like(w.relevant)
    true = top_is_relevant(w.scores, w.relevant).mean() / 2

    def off(one):
        said = [one.p_right(scores)[1][:, 0].mean() for scores in (w.scores, gone[0])]
        return abs(np.mean(said) - true)

    after, covered = [], []
    for seed in range(30):
        rows = np.random.default_rng(seed).permutation(len(w.video))[:20]
        own = adapt(
            card,
            judged((w.scores, w.relevant), rows[:10]) + judged(gone, rows[10:]),
        )
        after.append(off(own))
        covered.append((own.members(w.scores) & w.relevant).any(1).mean())
    assert np.mean(after) < off(card) + 0.015
    assert np.quantile(covered, 0.1) > 0.85


def test_it_notes_what_it_did(card, strange):
    known = judged(strange, range(20))
    known = [query for query in known if (query.right == 1).any()]
    own = adapt(card, known).personal
    right = np.mean([query.right[0] for query in known])
    said = np.mean([card.p_first(q.scores[None], q.about)[0] for q in known])
    assert (own.queries, own.absent, own.right) == (len(known), 0, pytest.approx(right))
    assert own.before == pytest.approx(said)
    assert abs(own.after - right) < abs(own.before - right)
    assert adapt(card, []) == card


def test_searches_for_what_is_not_here_move_the_prior_alone(card, strange):
    known = judged(strange, range(40))
    found = [query for query in known if (query.right == 1).any()]
    absent = judged((strange[0], np.zeros_like(strange[1])), range(20, 40))
    own = adapt(card, absent)
    assert (own.prior, own.first, own.later) == (50 / 120, card.first, card.later)
    assert (own.reach(strange[0], 0.9) == card.reach(strange[0], 0.9)).all()
    assert own.personal.absent == 20
    both = adapt(card, found + absent)
    assert both.prior == pytest.approx((50 + len(found)) / (120 + len(found)))
    # Nothing right among three may be further down, or not here.
    unknown = [query for query in known if not ((query.right == 1).any() or query.absent)]
    missed = adapt(card, unknown)
    assert 0.4 < missed.prior < 0.5
    assert (missed.p_present(strange[0]) < card.p_present(strange[0])).all()


def test_a_right_video_that_is_no_hit_is_here_all_the_same(card, strange):
    """Nothing is passed over of it: the first hit is wrong, and what was not judged is neither."""
    missed = [replace(one, right=np.zeros_like(one.right)) for one in judged(strange, range(20))]
    missed = [replace(one, absent=False, present=True, searched=False) for one in missed]
    own = adapt(card, missed)
    assert own.personal.right == 0 and own.prior == card.prior
    said = [one.p_first(strange[0]).mean() for one in (card, own)]
    unsure = adapt(card, [replace(one, present=False) for one in missed])
    assert said[1] < unsure.p_first(strange[0]).mean() < said[0]
    # A hit that nobody judged says nothing of whether it is here.
    right = np.full_like(missed[0].right, -1)
    right[1] = 0
    low = [replace(missed[0], present=False, searched=True, right=right)]
    right = np.where(np.arange(len(right)) < 2, 0, -1)
    both = [replace(low[0], right=right)]
    assert adapt(card, both).prior < adapt(card, low).prior


def test_one_marked_hit_says_nothing_of_those_passed_over(card, strange):
    scores, _ = strange
    order = np.argsort(-scores[3], kind="stable")
    right = np.full(len(order), -1)
    right[3] = 1
    one = JudgedQuery(scores[3, order], right, QueryContext(videos=len(order)))
    own = adapt(card, [one] * 9)
    assert (own.first, own.later) == (card.first, card.later)
    assert own.depths != card.depths and own.prior > card.prior


@pytest.fixture(scope="module")
def done() -> Calibrated:
    card = world(1, 200).card(dataset="mine", date="2026-11-30")
    return Calibrated(card=card, gallery=200, absent=3)


def test_it_prints_what_the_labels_gave(done: Calibrated, tmp_path: Path) -> None:
    lines = repr(done.saved(tmp_path / "card.json")).splitlines()
    assert lines[0].endswith("(mine), 3 more with nothing right here; 200 videos searched.")
    assert (
        lines[-1] == f"Card: {tmp_path / 'card.json'}"
        and "no answer is called sure" not in lines[-2]
    )
    values = replace(done, not_found=2, left_out=1).to_dict()
    counts = ("gallery", "absent", "not_found", "left_out", "prior")
    assert [values[name] for name in counts] == [200, 3, 2, 1, 0.5]


def test_a_date_is_todays_in_greenwich_where_none_is_given() -> None:
    before = datetime.now(UTC).date().isoformat()
    assert before <= date_or_today("") <= datetime.now(UTC).date().isoformat()
    assert date_or_today("2026-11-30") == "2026-11-30"
    with pytest.raises(ArgumentError, match=r"--date 30.11.2026 is not a date"):
        date_or_today("30.11.2026")

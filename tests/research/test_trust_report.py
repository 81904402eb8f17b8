"""Numbers of the report against counts by hand, and what is said where there are none."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.metrics import ranks
from sureshot.metrics.confidence import auroc
from sureshot.metrics.intervals import Interval
from sureshot.models.losses.uncertainty import evidence, opinion
from sureshot.research.trust_report import (
    BEST,
    HERE,
    OURS,
    Graded,
    cross_fitted,
    fit_temperature,
    measure,
    orders,
    plain_confidences,
    predict_unseen,
    predicted_sets,
    probabilities,
)
from sureshot.trust.card import Depths
from tests.trust.worlds import World, world

FEW = {"resamples": 20}


@pytest.fixture(scope="module")
def some():
    """Uneven: the first videos have six captions, most have one."""
    whole = world(videos=200, captions=6)
    kept = (np.arange(1200) % 6 == 0) | (whole.video < 60)
    return whole.texts(np.flatnonzero(kept))


@pytest.fixture(scope="module")
def found(some):
    return measure(some.scores, some.video, **FEW)


@pytest.fixture(scope="module")
def parts(some):
    return cross_fitted(some.scores, some.video, 2, 0)


@pytest.fixture(scope="module")
def said(some, parts):
    return predict_unseen(parts, some.scores, some.video)


def owned(world_):
    return world_.video[:, None] == np.arange(world_.scores.shape[1])


def card_of(world_, **more):
    return World(world_.scores, owned(world_), world_.video).card(**more)


def test_no_calibration_knows_its_queries(some, parts):
    """Whatever the queries of a part score, its own card stays as it is, and the other does not."""
    rows = np.concatenate([rows for _, rows in parts])
    assert sorted(rows.tolist()) == list(range(500))
    asked = [set(some.video[rows].tolist()) for _, rows in parts]
    assert [len(names) for names in asked] == [100, 100] and not asked[0] & asked[1]
    changed, rows = some.scores.copy(), parts[0][1]
    changed[rows] += 0.1 * np.random.default_rng(1).normal(size=(len(rows), 200))
    again = cross_fitted(changed, some.video, 2, 0)
    assert [a == b for (a, _), (b, _) in zip(parts, again, strict=True)] == [True, False]


def test_each_query_is_judged_by_its_own_card_as_if_alone(some, parts, said):
    inside = predicted_sets(parts, some.scores, 0.9)
    for card, rows in parts:
        for row in rows[::17]:
            own, video = some.scores[row][None], some.video[row]
            gone = own.copy()
            gone[0, video] = -np.inf
            order, p = card.p_right(own, results=10, prior=1)
            np.testing.assert_allclose(said.known[row], p[0])
            assert said.relevant[row].tolist() == [column == video for column in order[0]]
            for way, asked in enumerate((own, gone)):
                first = card.p_right(asked, results=1)[1][0, 0]
                assert said.first[way, row] == pytest.approx(first)
                assert said.here[way, row] == pytest.approx(card.p_present(asked)[0])
                assert said.called[way, row] == card.called_absent(asked)[0]
            assert (inside[row] == card.members(own, 0.9)[0]).all()


def test_a_coverage_that_the_card_cannot_promise_has_no_sets(some):
    known = card_of(some)
    for labels, coverages in ((9, [0.8, 0.9]), (3, [])):
        depths = Depths.of(np.arange(labels) / 50, np.ones(labels), videos=200)
        report = measure(some.scores, some.video, card=replace(known, depths=(depths,)), **FEW)
        assert [row.coverage for row in report.sets] == coverages == list(report.sizes)
    assert "too few queries to promise any coverage" in report.text()


def test_a_first_result_is_right_if_it_is_the_annotated_video(some, found):
    right = [row.argmax() == video for row, video in zip(some.scores, some.video, strict=True)]
    assert found.right.tolist() == right
    assert (found.queries, found.videos, found.queried_videos) == (500, 200, 200)


def test_the_order_is_that_of_the_queries_own_fits(some, found, said):
    rows = {row.signal: row for row in found.orders}
    assert next(iter(rows)) == OURS
    assert rows[OURS].auroc.value == pytest.approx(auroc(said.known[:, 0], found.right))
    assert rows[BEST].auroc.value == pytest.approx(auroc(some.scores.max(1), found.right))
    gap = rows[OURS].auroc.value - rows[BEST].auroc.value
    assert found.gain.value == pytest.approx(gap) and gap > 0.03
    assert found.gain.low > 0
    assert {"margin", "standard deviation", "softmax probability", "entropy"} < rows.keys()


def by_video(hits, video, among=None):
    """Share of hits, by hand: each video weighs one."""
    weight = np.array([1 / (video == own).sum() for own in video])
    weight = weight if among is None else weight * among
    return (hits * weight).sum() / weight.sum()


def test_coverage_counts_every_video_once(some, found, said, parts):
    assert [row.coverage for row in found.sets] == [0.8, 0.9, 0.95]
    thirds = np.array_split(np.argsort(-found.confidences["entropy"], kind="stable"), [167, 334])
    surest = np.isin(np.arange(500), np.argsort(-said.known[:, 0], kind="stable")[:350])
    for row in found.sets:
        inside = predicted_sets(parts, some.scores, row.coverage)
        holds, size = inside[np.arange(500), some.video], inside.sum(1)
        assert row.covered.value == pytest.approx(by_video(holds, some.video))
        assert abs(row.covered.value - holds.mean()) > 1e-4  # not the same by query
        assert row.covered.low < row.covered.value < row.covered.high
        assert (row.mean, row.median) == (size.mean(), np.median(size))
        assert row.empty == np.mean([count == 0 for count in size])
        assert row.answered == pytest.approx(by_video(holds, some.video, surest))
        assert row.worst_third < row.covered.value < row.answered
        assert (found.sizes[row.coverage] == size).all()
        shares = [by_video(holds, some.video, np.isin(np.arange(500), third)) for third in thirds]
        assert row.worst_third == pytest.approx(min(shares))


def there_or_gone(present, absent):
    return np.concatenate([present, absent]), np.repeat([True, False], len(present))


def test_absent_queries_are_the_same_without_their_video(some, found, said):
    best = np.sort(some.scores, axis=1)
    gone = [np.delete(row, video).max() for row, video in zip(some.scores, some.video, strict=True)]
    present = best[:, -1]
    row = {row.signal: row for row in found.absent}[BEST]
    pairs = [(a > b) + (a == b) / 2 for a in present for b in gone]
    assert row.auroc.value == pytest.approx(np.mean(pairs))
    passed = np.sort(present)[::-1][int(0.95 * 500) - 1]
    assert row.fpr_95 == pytest.approx(np.mean(np.array(gone) >= passed))
    cut = np.sort(present)[50]
    assert row.caught == np.mean([value < cut for value in gone])
    rows = {row.signal: row.auroc.value for row in found.absent}
    assert rows[HERE] == pytest.approx(auroc(*there_or_gone(*said.here)))
    assert rows[OURS] == pytest.approx(auroc(*there_or_gone(*said.first)))
    assert rows[HERE] > rows[BEST] + 0.02
    assert found.false_abstention.value == pytest.approx(by_video(said.called[0], some.video))
    assert 0.01 < found.false_abstention.value < 0.12  # one in twelve over all sizes of gallery
    np.testing.assert_array_equal(found.existence, said.here)


def test_probabilities_are_of_the_first_result_where_its_video_is_known_to_be_there(
    some, found, said
):
    ours, softmax = found.probabilities
    assert ours.brier.value == pytest.approx(np.mean((said.known[:, 0] - found.right) ** 2))
    p = np.exp(some.scores / fit_temperature(some.scores, some.video))
    first = p.max(1) / p.sum(1)
    assert softmax.brier.value == pytest.approx(np.mean((first - found.right) ** 2))
    assert ours.brier.value < 0.65 * ours.brier_of_base_rate and ours.ece < ours.ece_floor + 0.03
    assert [row.place for row in found.places] == [1, 2, 3, 4, 5, 6]
    for column, row in enumerate(found.places):
        assert row.predicted == pytest.approx(said.known[:, column].mean())
        assert row.right == said.relevant[:, column].mean()
    bins = found.reliability[OURS]
    assert bins.count.sum() == 500
    assert (bins.count * bins.right).sum() == pytest.approx(found.right.sum())


def test_probabilities_are_true_where_half_of_the_videos_are_gone(some, found, said):
    (ours,) = found.unknown
    both = np.concatenate(said.first)
    right = np.concatenate([found.right, np.zeros(500, bool)])
    assert ours.brier.value == pytest.approx(np.mean((both - right) ** 2))
    assert ours.brier_of_base_rate == pytest.approx(right.mean() * (1 - right.mean()))
    assert ours.brier.value < 0.75 * ours.brier_of_base_rate and ours.ece < ours.ece_floor + 0.03
    bins = found.reliability[f"{OURS}, half absent"]
    assert bins.count.sum() == 1000
    assert (bins.count * bins.right).sum() == pytest.approx(found.right.sum())


def test_the_models_own_scale_and_the_uncertainties_of_its_paper_have_rows(some):
    right = some.scores.argmax(1) == some.video
    papers = {"u": 1.0 - right, "bad": 1.0 * right}
    report = measure(some.scores, some.video, scale=25.0, papers=papers, **FEW)
    rows = {row.signal: row.auroc.value for row in report.orders}
    assert (rows["minus u"], rows["minus bad"]) == (1, 0)
    row = report.probabilities[2]
    p = np.exp(25 * some.scores)
    first = p.max(1) / p.sum(1)
    assert row.signal == "softmax, model's scale 25"
    assert row.brier.value == pytest.approx(np.mean((first - report.right) ** 2))


def test_the_same_seed_gives_the_same_report(some, found):
    assert measure(some.scores, some.video, **FEW).to_dict() == found.to_dict()
    assert measure(some.scores, some.video, seed=1, **FEW).orders[0] != found.orders[0]


def test_where_a_half_is_too_little_there_are_five_parts():
    """Thirty videos of sixty, with a caption each, are too few; forty-eight with two are not."""
    few = world(videos=60, captions=1)
    assert "Only 48" in measure(few.scores, few.video, **FEW).refused
    some = world(videos=70)
    report = measure(some.scores, some.video, **FEW)
    assert report.refused == "" and "in 5 parts" in report.calibration


def test_a_card_is_asked_as_it_is(some):
    card = card_of(world(seed=9, videos=200, captions=2), dataset="other data", date="2026-01-02")
    report = measure(some.scores, some.video, title="these data", card=card, **FEW)
    assert report.calibration == (
        "Calibrated by a card that was made on 400 queries about 200 videos of other data, "
        "2026-01-02."
    )
    assert report.warnings == ()
    expected = auroc(card.p_first(some.scores), report.right)
    assert report.orders[0].auroc.value == pytest.approx(expected)
    holds = card.members(some.scores, 0.9)[np.arange(500), some.video]
    assert report.sets[1].covered.value == pytest.approx(by_video(holds, some.video))


def test_what_speaks_against_a_card_is_a_warning(some):
    def warnings(card, title="these data"):
        return measure(some.scores, some.video, title=title, card=card, **FEW).warnings

    (same,) = warnings(card_of(some, dataset="these data"))
    assert "on the data it is measured on" in same
    assert warnings(card_of(some, dataset="others")) == warnings(card_of(some), "") == ()
    assert warnings(card_of(world(seed=9, videos=100, captions=2))) == (
        "The gallery has 200 videos, and the card was made with 10 to 100; its probabilities are "
        "extrapolated.",
    )


N = 80
RANDOM = np.random.default_rng(0).normal(size=(N, N))


@pytest.mark.parametrize(
    ("scores", "owner", "why"),
    [
        (np.ones((N, 1)), np.zeros(N, int), "The gallery has one video"),
        (np.repeat(RANDOM[:, :1], N, 1), np.arange(N), "All videos score the same"),
        (np.eye(N), np.arange(N), "All 80 first results are right"),
        (-np.eye(N), np.arange(N), "All 80 first results are wrong"),
        (RANDOM, np.zeros(N, int), "All queries are about one video"),
    ],
)
def test_where_there_is_nothing_to_measure_it_says_why(scores, owner, why):
    report = measure(scores, owner, **FEW)
    assert report.nothing.startswith(why)
    assert why in report.text() and len(report.text().splitlines()) == 2
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["orders"] == []


def easy():
    """Texts that describe one video, and describe it well."""
    made = world(videos=300, noise=0.4)
    return made.texts(np.flatnonzero(made.relevant.sum(1) == 1))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (world(videos=30), "Only 24 queries have"),
    ],
)
def test_where_nothing_can_be_calibrated_signals_are_compared_all_the_same(made, why):
    report = measure(made.scores, made.video, papers={"u": made.scores[:, 0]}, **FEW)
    assert why in report.refused
    names = [row.signal for row in report.orders]
    assert OURS not in names and names[0] == BEST and names[-1] == "minus u"
    assert not report.probabilities and not report.sets and report.gain is None
    assert "! Nothing could be calibrated. Part of these queries" in report.text()
    assert max(map(len, report.text().splitlines())) <= 100
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"owner": np.arange(5)}, "but 5 owners"),
        ({"owner": np.arange(80) - 1}, "belongs to video -1"),
        ({"owner": np.arange(80) + 1}, "belongs to video 80"),
        ({"scores": np.empty((0, 3)), "owner": np.empty(0, int)}, "one query and one video"),
        ({"papers": {"u": np.zeros(3)}}, "'u' is not one finite number for each of 80"),
        ({"scores": np.full((80, 80), np.nan)}, "NaN or infinite"),
        ({"papers": {"u": np.full(80, np.inf)}}, "'u' is not one finite number"),
    ],
)
def test_wrong_arguments_are_refused(change, why):
    given = {"scores": RANDOM, "owner": np.arange(80), **change}
    with pytest.raises(SureshotError, match=why):
        measure(given.pop("scores"), given.pop("owner"), **given)


def test_lists_and_tensors_are_measured_as_arrays(some, found):
    for kind in (np.ndarray.tolist, torch.tensor):
        assert measure(kind(some.scores), kind(some.video), **FEW).text() == found.text()


def rng(seed=0):
    return np.random.default_rng(seed)


def graded(right, video=None, resamples=5):
    video = np.arange(len(right)) if video is None else video
    return Graded(right=right, video=video, rng=rng(), resamples=resamples)


def slow(row, t):
    """What needs no labels, of one query, in plain Python."""
    s = sorted((float(x) for x in row), reverse=True)
    mass = sum(math.exp(x / t) for x in s)
    p = [math.exp(x / t) / mass for x in s]
    mean = sum(s) / len(s)
    return {
        "highest similarity": s[0],
        "margin": s[0] - s[1],
        "standard deviation": math.sqrt(sum((x - mean) ** 2 for x in s) / len(s)),
        "softmax probability": math.log(p[0] / sum(p[1:])),
        "entropy": sum(q * math.log(q) for q in p),
        "energy": t * math.log(mass),
    }


@pytest.mark.parametrize("cells", [1 << 22, 7])
@pytest.mark.parametrize("t", [0.06, 0.1, 3])
def test_confidences_are_their_formulas(t, cells, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", cells)
    scores = rng().uniform(-1, 1, (9, 6))
    found = plain_confidences(scores, t)
    expected = [slow(row, t) for row in scores]
    for name in expected[0]:
        np.testing.assert_allclose(found[name], [row[name] for row in expected], atol=1e-10)


def test_confidences_of_a_softmax_that_is_all_one_videos_are_finite():
    for name, values in plain_confidences(np.array([[9.0, 0.0, -9.0]]), 1e-4).items():
        assert np.isfinite(values).all(), name


def test_the_temperature_is_that_of_the_best_likelihood():
    w = world(0, 80)
    found = fit_temperature(w.scores, w.video)

    def loss(t):
        p = np.exp(w.scores / t)
        p /= p.sum(1, keepdims=True)
        return -np.log(p[np.arange(len(p)), w.video]).mean()

    tried = np.geomspace(0.005, 1, 400)
    assert found == pytest.approx(tried[np.argmin([loss(t) for t in tried])], rel=0.02)
    assert loss(found) <= min(map(loss, tried)) + 1e-9
    assert fit_temperature(10 * w.scores + 3, w.video) == pytest.approx(10 * found, rel=1e-3)


def test_temperatures_of_odd_labels_are_finite():
    perfect = fit_temperature(np.eye(4), np.arange(4))
    wrong = fit_temperature(-np.eye(4), np.arange(4))
    assert 0 < perfect < 0.01 < 10 < wrong < np.inf
    assert 0 < fit_temperature(np.full((3, 4), 0.5), np.arange(3)) < np.inf  # no spread at all


@pytest.mark.parametrize("cells", [1 << 22, 7])
@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_duqs_are_one_less_its_vacuity(kind, cells, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", cells)
    scores = rng().uniform(-1, 1, (9, 6)) * np.array([1, 20, 400])[:, None].repeat(3, 0)
    found = plain_confidences(scores, 0.1)
    name = {"relu": "ReLU"}.get(kind, kind)
    expected = 1 - opinion(evidence(torch.tensor(scores), kind)).vacuity.numpy()
    np.testing.assert_allclose(found[f"DUQ 1-u, {name} evidence"], expected, atol=1e-9)


def test_the_best_order_the_worst_and_none():
    right = np.arange(30) % 3 > 0
    signals = {"best": right.astype(float), "worst": -right.astype(float), "none": np.zeros(30)}
    best, worst, none = orders(signals, graded(right))
    assert [best.auroc.value, worst.auroc.value, none.auroc.value] == [1, 0, 0.5]
    assert best.excess_aurc == pytest.approx(0) and best.nauc == pytest.approx(1)
    assert (best.risk_50, best.risk_80) == (0, pytest.approx(4 / 24))
    assert worst.risk_50 == pytest.approx(10 / 15) and worst.nauc < 0
    assert none.risk_50 == pytest.approx(1 / 3) and none.aurc == pytest.approx(1 / 3)
    assert (best.signal, best.auroc) == ("best", Interval(1.0, 1.0, 1.0))


def test_intervals_are_drawn_by_video():
    """Twenty equal captions of each of ten videos are ten queries and no two hundred."""
    right = np.repeat(rng(3).random(10) < 0.5, 20)
    confidence = np.repeat(rng(4).normal(size=10), 20)
    widths = [
        orders({"a": confidence}, graded(right, video, 100))[0].auroc
        for video in (np.repeat(np.arange(10), 20), np.arange(200))
    ]
    assert widths[0].high - widths[0].low > 2 * (widths[1].high - widths[1].low)


def test_right_results_of_one_video_tell_nothing_of_an_order():
    video, confidence = np.repeat(np.arange(30), 4), rng(4).normal(size=120)
    one, two = (orders({"a": confidence}, graded(video < n, video))[0].auroc for n in (1, 2))
    assert (one.low, one.high) == (0, 1) and 0 < one.value < 1
    assert two.high - two.low < 1


def test_a_share_of_none_or_of_all_has_a_width():
    """All sets of 38 videos hold their target: the bound of Wilson is 1.96² / (38 + 1.96²) away."""
    every = np.ones(76, bool)
    held = graded(every, np.tile(np.arange(38), 2)).share(every)
    assert (held.value, held.high) == (1, 1) and held.low == pytest.approx(0.908, abs=1e-3)
    none = graded(every, np.tile(np.arange(38), 2)).share(~every)
    assert (none.value, none.low) == (0, 0) and none.high == pytest.approx(0.092, abs=1e-3)


def test_probabilities_by_their_definition():
    p = rng(5).random(400)
    right = rng(6).random(400) < p
    true, false = probabilities({"true": p, "false": 1 - p}, graded(right, resamples=30))
    expected = sum((x - y) ** 2 for x, y in zip(p, right, strict=True)) / 400
    assert true.brier.value == pytest.approx(expected)
    assert true.brier.low < expected < true.brier.high
    assert true.brier_of_base_rate == pytest.approx(right.mean() * (1 - right.mean()))
    assert true.ece < true.ece_floor + 0.03 and false.ece > true.ece_floor + 0.3
    losses = [-math.log(x if y else 1 - x) for x, y in zip(p, right, strict=True)]
    assert true.nll == pytest.approx(np.mean(losses))
    assert (true.brier.value < true.brier_of_base_rate < false.brier.value) and true.nll < false.nll


@pytest.fixture(scope="module")
def report():
    some = world(videos=200, captions=2)
    known = {"title": "a title", "papers": {"distance vacuity": some.scores[:, 0]}}
    return measure(some.scores, some.video, scale=99.123, **known, **FEW)


def test_every_block_has_its_line_and_its_numbers(report):
    text = report.text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.endswith("\n") and not re.search(r"[ \t]$|\n\n$", text, re.MULTILINE)
    blocks = text.split("\n\n")
    starts = [
        *("Trust: ", "Which signal", "Are the probabilities", "And where half"),
        *("Predicted at each place", "How often do the"),
        *("Does it show", "Hubness: "),
    ]
    for block, start in zip(blocks, starts, strict=True):
        assert block.startswith(start)
    ours = report.orders[0]
    row = blocks[1].splitlines()[3]
    auroc = ours.auroc
    assert row.split("  ")[0] == "P(first is right)"
    assert f"{auroc.value:.3f} [{auroc.low:.3f}, {auroc.high:.3f}]" in row
    assert row.split()[-6:] == [
        f"{x:.3f}"
        for x in (ours.aurc, ours.excess_aurc, ours.augrc, ours.risk_50, ours.risk_80, ours.nauc)
    ]
    assert "minus distance vacuity" in blocks[1] and "model's scale 99.12" in blocks[2]
    held = report.sets[1]
    value, low, high = (100 * x for x in (held.covered.value, held.covered.low, held.covered.high))
    shown = f"{value:.1f} % [{low:.1f}, {high:.1f}]"
    assert blocks[5].splitlines()[5].startswith("90.0 %") and shown in blocks[5]
    assert f"{report.right.mean() * 100:.1f} % of 400 queries about 200 videos" in blocks[0]


def test_plain_values_hold_all_numbers(report):
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["title"] == "a title" and told["right"] == report.right.mean()
    assert [row["signal"] for row in told["orders"]] == [row.signal for row in report.orders]
    assert told["sets"][0]["covered"]["value"] == report.sets[0].covered.value
    assert told["absent"][0]["signal"] == "highest similarity"
    assert told["auroc_gain"]["low"] == report.gain.low
    first = told["reliability"][0]
    assert first["signal"] == "P(first is right)" and sum(first["count"]) == 400
    assert set(first) == {"signal", "low", "high", "probability", "right", "count"}
    assert set(told["places"][0]) == {"place", "predicted", "right"}

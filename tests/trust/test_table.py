"""Rows of the table against plain loops."""

import math

import numpy as np
import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.metrics import ranks
from sureshot.metrics.intervals import Interval
from sureshot.models.losses.uncertainty import evidence, opinion
from sureshot.trust.report import (
    Graded,
    orders,
    plain_confidences,
    probabilities,
)
from sureshot.trust.signals import top_is_relevant
from tests.trust.worlds import world

T = 0.1


def rng(seed=0):
    return np.random.default_rng(seed)


def graded(right, video=None, resamples=5):
    video = np.arange(len(right)) if video is None else video
    return Graded(right=right, video=video, rng=rng(), resamples=resamples)


def slow(row):
    """What needs no labels, of one query, in plain Python."""
    s = sorted((float(x) for x in row), reverse=True)
    mass = sum(math.exp(x / T) for x in s)
    p = [math.exp(x / T) / mass for x in s]
    mean = sum(s) / len(s)
    return {
        "highest similarity": s[0],
        "margin": s[0] - s[1],
        "standard deviation": math.sqrt(sum((x - mean) ** 2 for x in s) / len(s)),
        "softmax probability": math.log(p[0] / (1 - p[0])),
        "entropy": sum(q * math.log(q) for q in p),
        "energy": T * math.log(mass),
    }


@pytest.mark.parametrize("cells", [1 << 22, 7])
def test_confidences_are_their_formulas(cells, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", cells)
    scores = rng().uniform(-1, 1, (9, 6))
    found = plain_confidences(scores, T)
    expected = [slow(row) for row in scores]
    for name in expected[0]:
        np.testing.assert_allclose(found[name], [row[name] for row in expected], atol=1e-12)


@pytest.mark.parametrize("cells", [1 << 22, 7])
@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_duqs_are_one_less_its_vacuity(kind, cells, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", cells)
    scores = rng().uniform(-1, 1, (9, 6)) * np.array([1, 20, 400])[:, None].repeat(3, 0)
    found = plain_confidences(scores, T)
    name = {"relu": "ReLU"}.get(kind, kind)
    expected = 1 - opinion(evidence(torch.tensor(scores), kind)).vacuity.numpy()
    np.testing.assert_allclose(found[f"DUQ 1-u, {name} evidence"], expected, atol=1e-9)


def test_one_video_and_equal_scores_have_finite_confidences():
    for scores in (np.zeros((3, 1)), np.full((3, 4), 0.5), np.full((2, 3), -1e4)):
        for values in plain_confidences(scores, T).values():
            assert np.isfinite(values).all() and np.ptp(values) == 0


def test_no_scores_and_no_temperature_are_refused():
    with pytest.raises(SureshotError, match="temperature is 0"):
        plain_confidences(np.zeros((2, 2)), 0.0)
    with pytest.raises(SureshotError, match="Scores must be numbers"):
        plain_confidences(np.full((2, 2), np.nan), T)


def test_rows_compare_every_right_answer_with_every_wrong_one():
    right = rng(1).random(40) < 0.6
    confidence = np.round(rng(2).normal(size=40) + right, 1)
    row = orders({"some": confidence}, graded(right, resamples=20))[0]
    pairs = [
        (a > b) + (a == b) / 2 for a in confidence[right] for b in confidence[~right]
    ]  # ties half
    assert row.signal == "some"
    assert row.auroc.value == pytest.approx(np.mean(pairs))
    assert row.auroc.low < row.auroc.value < row.auroc.high
    a = right.mean()
    assert row.augrc == pytest.approx((1 - np.mean(pairs)) * a * (1 - a) + (1 - a) ** 2 / 2)


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


def test_vacuity_is_no_confidence_where_similarity_is():
    """The finding that the table is there to show."""
    some = world(videos=300)
    right = top_is_relevant(some.scores, some.relevant)
    rows = orders(plain_confidences(some.scores, T), graded(right, some.video))
    found = {row.signal: row.auroc.value for row in rows}
    assert found["margin"] > 0.75 and found["highest similarity"] > 0.75
    assert max(v for name, v in found.items() if name.startswith("DUQ")) < 0.7

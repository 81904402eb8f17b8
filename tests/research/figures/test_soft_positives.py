"""Soft positives: pairs apart, what the weights spare, and the least certain of the others."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.research.figures.plots import calibration, weighed
from tests.research.figures.pictures import pixels, share, shown

RNG = np.random.default_rng(0)
ETA, SCORES, OWNER = RNG.random((4, 7)), RNG.uniform(-1, 1, (4, 7)), np.array([2, 0, 6, 3])


def made(eta=ETA):
    names = [f"v{column}" for column in range(7)]
    return weighed("title", tuple("abcd"), names, eta, SCORES, OWNER)


def test_own_pairs_and_others_are_told_apart():
    found = made()
    spared = total = above = wins = 0.0
    for row in range(4):
        own = OWNER[row]
        assert (found.matched_eta[row], found.matched_score[row]) == (
            ETA[row, own],
            SCORES[row, own],
        )
        others = [column for column in range(7) if column != own]
        assert found.other_eta[row].tolist() == ETA[row, others].tolist()
        assert found.other_score[row].tolist() == SCORES[row, others].tolist()
        for place, column in enumerate(others):
            loss = max(0.0, SCORES[row, column] - SCORES[row, own] + 0.5)
            assert found.hinge[row, place] == pytest.approx(loss)
            spared += (1 - ETA[row, column]) * loss
            total += loss
            above += ETA[row, column] > 0.9
            wins += sum(ETA[row, column] > ETA[r, OWNER[r]] for r in range(4))
    assert found.spared == pytest.approx(spared / total)
    assert found.certain == pytest.approx(above / 24)
    assert found.separated == pytest.approx(wins / 96)


def test_the_softest_are_the_least_uncertain_others():
    pairs = sorted(
        (ETA[r, c], "abcd"[r], f"v{c}") for r in range(4) for c in range(7) if c != OWNER[r]
    )
    assert [(s.eta, s.query, s.video) for s in made().softest] == pairs[:3]


def test_the_profile_is_the_mean_loss_of_each_tenth():
    found = made()
    at, plain, weighed_loss = found.profile()
    pairs = list(zip(found.other_eta.ravel(), found.hinge.ravel(), strict=True))
    assert len(at) > 5 and at == sorted(at)
    for middle, mean, less in zip(at, plain, weighed_loss, strict=True):
        held = [(eta, loss) for eta, loss in pairs if abs(eta - middle) <= 0.05]
        assert mean == pytest.approx(np.mean([loss for _, loss in held]))
        assert less == pytest.approx(np.mean([eta * loss for eta, loss in held]))
    assert made(np.ones((4, 7))).profile()[0] == [0.95]


def test_weights_of_one_spare_nothing():
    assert made(np.ones((4, 7))).spared == 0
    told = made().to_dict()
    assert told["loss_spared"] == made().spared and told["above_0_9"] == made().certain
    assert np.shape(told["others"]["eta"]) == (4, 6) and np.shape(told["matched"]["score"]) == (4,)


def test_dvtr_has_them_and_others_do_not(subject):
    of = subject("dvtr")
    found = calibration(of, 5)
    queries = of.pairs(5)
    eta = of.matrices(queries)["eta"]
    assert found.matched_eta.tolist() == pytest.approx(
        [eta[row, of.owner[query]] for row, query in enumerate(queries)]
    )
    assert found.queries == tuple(of.text(query) for query in queries)
    assert found.other_eta.shape == (5, 5)
    for name in ("duq", "tiny"):
        with pytest.raises(SureshotError, match="how uncertain a pair is; DVTR does"):
            calibration(subject(name), 3)


def test_three_panels_show_score_loss_and_shares():
    figure = made().draw()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "score",
        "triplet loss of the pair (margin 0.5)",
        "share of pairs below η",
    ]
    assert all("η" in axes.get_xlabel() for axes in figure.axes)
    assert f"{made().spared:.0%} of the loss is spared" in shown(figure)
    picture = pixels(figure)
    assert share(picture, "#0072b2") > 0.0005 and share(picture, "#d55e00") > 0.0001

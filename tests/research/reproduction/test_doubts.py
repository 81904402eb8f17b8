"""Doubts are held against wrong first hits, and against the truth."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.claims_page import doubts_of

from sureshot.metrics.confidence import auroc
from sureshot.research.reproduction.runs import PERCENT, TableRanks
from tests.research.reproduction.ranked import one_run, ranked


def test_a_doubt_that_knows_is_worth_more_than_noise():
    found = {(one.row, one.name): one for one in doubts_of(ranked({"DUQ": 0.5}, seeds=3)[""])}
    knows, noise = found["DUQ", "vacuity"], found["DUQ", "softmax entropy"]
    assert len(knows.auroc) == 3
    assert min(knows.auroc) > 0.8 > 0.65 > np.mean(noise.auroc) > 0.35
    run = one_run(0.5, 0)
    assert knows.auroc[0] == pytest.approx(auroc(-run.doubts["vacuity"], run.right))
    assert knows.own == knows.auroc  # here nothing fits but the own video
    assert found["DUQ", "known ambiguity"].ambiguity == pytest.approx([1, 1, 1])
    assert min(knows.saved) > 30 > 8 > max(noise.saved)
    assert max(noise.off) < 20


def with_percentages(chance):
    """A run that says of each first hit how likely it is right."""
    run = one_run(0.5, 0)
    return TableRanks(("DUQ",), (0,), (replace(run, doubts={PERCENT: 1 - chance(run.right)}),))


def test_a_percentage_is_judged_as_it_is():
    (sure,) = doubts_of(with_percentages(lambda right: np.where(right, 1.0, 0.0)))
    assert sure.saved == pytest.approx([100]) and sure.off == pytest.approx([0])
    (wrong,) = doubts_of(with_percentages(lambda right: np.where(right, 0.0, 1.0)))
    assert wrong.saved[0] < -200 and wrong.off == pytest.approx([100])


def test_a_seed_without_a_percentage_is_left_out():
    said = with_percentages(lambda right: np.where(right, 0.9, 0.2)).runs[0]
    runs = (one_run(0.5, 1), replace(said, doubts={**one_run(0.5, 0).doubts, **said.doubts}))
    found = {one.name: one for one in doubts_of(TableRanks(("DUQ", "DUQ"), (1, 0), runs))}
    assert len(found[PERCENT].auroc) == 1 and len(found["vacuity"].auroc) == 2


def test_a_row_that_is_always_right_has_nothing_to_tell():
    (first, *_) = doubts_of(ranked({"Bayes": 1.0}, seeds=2)[""])
    assert np.isnan(first.auroc).all() and np.isnan(first.saved).all()

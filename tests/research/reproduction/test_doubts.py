"""Doubts are held against wrong first hits, and against the truth."""

import numpy as np
import pytest

from sureshot.metrics.detection import auroc
from sureshot.research.reproduction.doubts import doubts_of
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


def test_a_row_that_is_always_right_has_nothing_to_tell():
    (first, *_) = doubts_of(ranked({"Bayes": 1.0}, seeds=2)[""])
    assert np.isnan(first.auroc).all()

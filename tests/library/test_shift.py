"""Shifts are found, and chance is not taken for one."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.library.confidence import shift_p_value
from sureshot.trust.card import Nonconformity


def found(seed, moved=0.0, queries=60, videos=130):
    rng = np.random.default_rng(seed)
    reference = Nonconformity.of(rng.normal(size=videos))
    return shift_p_value(reference.p_value(rng.normal(moved, 1, queries)), videos)


def test_chance_is_not_taken_for_a_shift():
    values = np.array([found(seed) for seed in range(400)])
    assert 0.02 < (values < 0.05).mean() < 0.08
    assert 0.4 < (values < 0.5).mean() < 0.6


def test_a_shift_is_found_and_the_more_queries_the_surer():
    few = np.mean([found(seed, 0.5, 20) < 0.05 for seed in range(100)])
    many = np.mean([found(seed, 0.5, 200) < 0.05 for seed in range(100)])
    assert few < many
    assert many > 0.85
    assert found(0, -2.0) < 1e-6
    assert found(0, 2.0) < 1e-6


def test_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng, gaps = np.random.default_rng(1), []
    for _ in range(60):
        labelled, fresh = rng.normal(size=40), rng.normal(0.2, 1, 35)
        ours = shift_p_value(Nonconformity.of(labelled).p_value(fresh), 40)
        gaps.append(ours - stats.ks_2samp(labelled, fresh).pvalue)
    assert np.abs(gaps).mean() < 0.05


def test_one_query_in_the_middle_is_no_shift():
    assert shift_p_value(np.array([0.5]), 100) > 0.5
    assert shift_p_value((1 + np.arange(100)) / 101, 100) == 1


def test_bad_input_is_refused():
    for values, videos in (([], 5), ([0.5], 0), ([1.1], 5), ([np.nan], 5)):
        with pytest.raises(SureshotError):
            shift_p_value(np.array(values, float), videos)

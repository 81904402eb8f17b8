"""Generalized Moment Retrieval next to a slow reference."""

import math

import numpy as np
import pytest

from sureshot.research.absence import Moments, generalized_miou, overlap, rejection_f1


def slow_overlap(a, b):
    """Of two moments (video, start, end), by walking over hundredths of a second."""
    if a[0] != b[0]:
        return 0.0
    if math.isinf(a[2]) and math.isinf(b[2]):
        return 1.0
    if math.isinf(a[2]) or math.isinf(b[2]):
        return 0.0
    in_a, in_b = (set(range(round(100 * one[1]), round(100 * one[2]))) for one in (a, b))
    return len(in_a & in_b) / len(in_a | in_b)


def slow_generalized(queries):
    """Of queries as (existence, overlaps of the first k or None where nothing is right)."""
    total = 0.0
    for existence, overlaps in queries:
        if existence < 0.5:
            total += overlaps is None
        elif overlaps is not None:
            total += max(overlaps)
    return total / len(queries)


def slow_f1(queries):
    hit = sum(existence < 0.5 and overlaps is None for existence, overlaps in queries)
    said = sum(existence < 0.5 for existence, _ in queries)
    true = sum(overlaps is None for _, overlaps in queries)
    precision, recall = hit / said if said else 0.0, hit / true if true else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_those_of_a_slow_reference(seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 1000, 12) / 100
    end = start + rng.integers(1, 900, 12) / 100
    moments = Moments(rng.integers(0, 3, 12), start, end)
    sought, found = rng.integers(0, 12, 40), rng.integers(0, 12, (40, 5))
    overlaps = overlap(moments, sought, found)
    plain = list(zip(*(column.tolist() for column in moments), strict=True))
    for row, own in enumerate(sought):
        expected = [slow_overlap(plain[n], plain[own]) for n in found[row]]
        np.testing.assert_allclose(overlaps[row], expected, atol=1e-9)
    existence, absent = rng.random(40), rng.random(40) < 0.4
    queries = [(existence[n], None if absent[n] else overlaps[n, :3].tolist()) for n in range(40)]
    rejected = existence < 0.5
    assert generalized_miou(overlaps[:, :3], rejected, absent) == pytest.approx(
        slow_generalized(queries)
    )
    assert rejection_f1(rejected, absent) == pytest.approx(slow_f1(queries))


def test_whole_videos_overlap_with_themselves_alone():
    whole = Moments(np.arange(3), np.zeros(3), np.full(3, np.inf))
    assert overlap(whole, np.array([1]), np.array([[0, 1, 2]])).tolist() == [[0, 1, 0]]


def test_where_nothing_is_rejected_or_absent_the_f1_is_zero():
    assert rejection_f1(np.zeros(3, bool), np.zeros(3, bool)) == 0

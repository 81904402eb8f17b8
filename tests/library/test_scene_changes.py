"""Parts of a stretch of frames: the cheapest there are, within their lengths."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.library.encoding import parts, price_of
from sureshot.models.encoders.base import unit_vectors

ANY = {"shortest": 1.5, "longest": 30.0}


def shots(*lengths, noise=0.02, dim=16, seed=0, fade=0):
    """Vectors of shots of so many frames, the first ``fade`` of each mixed with the one before."""
    rng = np.random.default_rng(seed)
    scenes = rng.standard_normal((len(lengths), dim))
    rows = np.concatenate([np.repeat(s[None], n, 0) for s, n in zip(scenes, lengths, strict=True)])
    for first in np.cumsum(lengths[:-1]):
        old, new = rows[first - 1].copy(), rows[first + fade].copy()
        for step in range(fade):
            share = (step + 1) / (fade + 1)
            rows[first + step] = (1 - share) * old + share * new
    return rows + noise * rng.standard_normal(rows.shape)


def found(frames, lasting=None, price=None, **limits):
    lasting = np.ones(len(frames)) if lasting is None else lasting
    price = price_of(frames, lasting) if price is None else price
    return parts(frames, lasting, price=price, **ANY | limits)


def cost(frames, lasting, firsts, price):
    """What a parting costs, as the equation has it."""
    total = 0.0
    for first, after in pairwise([*firsts, len(frames)]):
        inside, weights = unit_vectors(frames[first:after]), lasting[first:after]
        mean = np.average(inside, axis=0, weights=weights)
        total += price + (weights * ((inside - mean) ** 2).sum(1)).sum()
    return total


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 1000), st.floats(0.01, 3.0))
def test_no_parting_is_cheaper(count, seed, price):
    rng = np.random.default_rng(seed)
    frames, lasting = rng.standard_normal((count, 3)), rng.uniform(0.1, 2.0, count)
    chosen = found(frames, lasting, price, shortest=0.0)
    every = ([0, *later] for most in range(count) for later in combinations(range(1, count), most))
    least = min(cost(frames, lasting, firsts, price) for firsts in every)
    assert cost(frames, lasting, chosen, price) == pytest.approx(least, abs=1e-6)


def test_shots_are_told_apart_at_cuts_and_in_fades():
    assert found(shots(5, 9, 4)) == [0, 5, 14]
    (first, faded, other) = found(shots(6, 9, 7, fade=2))
    assert first == 0 and 6 <= faded <= 8 and 15 <= other <= 17


@pytest.mark.parametrize("change", ["scale", "turn", "cone"])
def test_any_encoder_will_do(change):
    frames = shots(6, 9, 7)
    if change == "scale":
        frames = 1000 * frames
    elif change == "turn":
        frames = frames @ np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    else:  # all frames lie close together, as those of CLIP do
        frames = unit_vectors(frames) + 3 * np.eye(16)[0]
    assert found(frames) == [0, 6, 15]


def test_one_shot_stays_whole_however_it_shakes():
    for seed in range(20):
        assert found(shots(25, noise=0.3, seed=seed)) == [0]


def test_a_slow_drift_is_parted_seldom():
    turn = np.linspace(0, np.pi / 2, 24)
    drift = np.stack([np.cos(turn), np.sin(turn)], 1)
    assert np.diff([*found(drift), 24]).min() >= 5


def test_what_stands_still_is_parted_by_length_from_its_start():
    frames = np.ones((70, 4))
    assert found(frames) == [0, 30, 60]
    assert found(np.zeros((70, 4))) == [0, 30, 60]
    assert found(frames[:1], np.array([45.0])) == [0]


def test_a_part_is_short_only_where_it_must_be():
    # A second of something else goes to one of its neighbours.
    assert found(shots(8, 1, 8, noise=0.0)) in ([0, 8], [0, 9])
    assert found(shots(1)) == [0]
    assert found(shots(1, 6, noise=0.0), longest=6.0, price=0.01) == [0, 2]


def test_seconds_count_not_frames():
    # Short scenes are sampled more densely; a frame weighs what it lasts.
    frames = shots(12, 12)
    assert found(frames, np.repeat([0.25, 2.0], 12)) == [0, 12]
    assert 12 not in found(frames, np.repeat([0.05, 2.0], 12))  # 0.6 s is no scene

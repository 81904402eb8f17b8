"""The positive control for spreads: a known one must help, whoever ranks by it."""

import numpy as np
from benchmarks.spread import corrected, cosines, first, with_spread, without_learning, world


def parts(seed):
    """Cosines and known spreads of a set to choose on and of one to test on."""
    made = [world(400, 10 * seed + k) for k in range(2)]
    seen = [(w.texts.sentence.numpy(), w.videos.frames.mean(1).numpy()) for w in made]
    scores = [cosines(*sides) for sides in seen]
    return [(score, np.log(w.off)) for score, w in zip(scores, made, strict=True)]


def test_a_known_spread_helps_a_scorer_that_ranks_by_it():
    known, one, cosine, offset = [], [], [], []
    for seed in range(4):
        found = without_learning(world(400, 10 * seed + 1))
        known.append(found["likelihood, known spread"])
        one.append(found["likelihood, one spread for all"])
        cosine.append(found["cosine"])
        offset.append(with_spread(*parts(seed)))
    assert np.mean(known) > np.mean(cosine) + 3 > np.mean(one) + 3
    assert np.mean(offset) > np.mean(cosine) + 3  # on scores that know nothing of spreads


def test_a_spread_that_says_nothing_adds_nothing():
    gains = []
    for seed in range(4):
        (val, _), (test, _) = parts(seed)
        draw = np.random.default_rng(seed)
        noise = [draw.normal(size=val.shape[1]), draw.normal(size=test.shape[1])]
        gains.append(with_spread((val, noise[0]), (test, noise[1])) - first(test))
    assert np.mean(gains) < 1


def test_no_correction_leaves_scores_as_they_are():
    scores = np.random.default_rng(0).normal(size=(5, 5))
    np.testing.assert_array_equal(corrected(scores, np.arange(5.0), 0, 0), scores)

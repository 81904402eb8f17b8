"""Numbers of the frames that each rule picks."""

import numpy as np
import pytest

from sureshot.media.sampling_rule import Sampling, sampled_numbers

KINDS = ["uniform", "spread", "segments", "random", "head", "phase"]


@pytest.mark.parametrize("kind", KINDS)
def test_short_videos_give_all_they_have(kind):
    assert sampled_numbers(3, 12, kind, np.random.default_rng(0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("total", [13, 100, 1801])
def test_frames_rise_and_lie_within(kind, total):
    found = sampled_numbers(total, 12, kind, np.random.default_rng(0))
    assert len(found) == 12 and (np.diff(found) > 0).all()
    assert found[0] >= 0 and found[-1] < total


def test_only_some_rules_draw():
    assert [kind for kind in KINDS if Sampling(kind).is_drawn] == ["random", "phase"]
    first, other = (sampled_numbers(99, 4, "random", np.random.default_rng(n)) for n in (0, 1))
    assert (first != other).any()

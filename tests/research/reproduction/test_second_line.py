"""The captions of some of the videos, in the ranks of all."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.research.reproduction.page import second_lines
from tests.research.reproduction.ranked import one_run, ranked


def test_only_the_captions_of_the_named_videos_count():
    ids = [str(video) for video in range(20)]
    lines = second_lines(ranked({"DUQ": 0.5}, seeds=1)[""], [*ids, "not in the test set"])
    assert lines[0].startswith("## Of these, the 20 videos")
    assert "all 60 videos are searched" in lines[2]
    run = one_run(0.5, 0)
    own = 100 * np.mean(run.texts[np.isin(run.owner, range(20))] <= 1)
    assert lines[-1] == f"| DUQ | {own:.1f} | {own:.1f} | 100.0 |"


def test_several_seeds_have_a_deviation():
    lines = second_lines(ranked({"DUQ": 0.5, "CLIP4Clip": 0.2}, seeds=3)[""], ["0", "1"])
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| DUQ", "| CLIP4Clip"]
    assert "±" in lines[-1]


def test_ids_of_other_videos_are_refused():
    with pytest.raises(SureshotError, match="None of the 2 ids of `unshared`"):
        second_lines(ranked({"DUQ": 0.5}, seeds=1)[""], ["video7", "video8"])

"""Shares are all videos, each in one, whatever else is listed."""

from pathlib import Path

import pytest

from sureshot.errors import ArgumentError
from sureshot.paths import WHOLE, Shard

PATHS = [Path(f"/videos/{number}.mp4") for number in range(500)]
SECOND_OF_THREE = ["1", "4", "10"]


def test_each_video_is_in_one_share_of_about_the_size_of_the_others() -> None:
    shares = [Shard(number, 4) for number in range(1, 5)]
    assert all(sum(share.has(path) for share in shares) == 1 for path in PATHS)
    assert all(80 < sum(map(share.has, PATHS)) < 170 for share in shares)
    assert all(map(WHOLE.has, PATHS))


def test_a_share_is_the_same_wherever_it_is_asked_for() -> None:
    assert [p.stem for p in PATHS[:12] if Shard.parse(" 2/3 ").has(p)] == SECOND_OF_THREE


@pytest.mark.parametrize("text", ["17/16", "0/4", "3", "a/b", "-1/2", "1/0", "", "1/2/3"])
def test_what_is_no_share_is_told(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"Invalid --shard .*: use K/N"):
        Shard.parse(text)

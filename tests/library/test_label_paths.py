from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.labels import Label, located

VIDEOS = [Path("/films/2023/goal.mp4"), Path("/films/2024/goal.mp4"), Path("/films/dog.mp4")]


def test_the_end_of_a_path_names_its_video() -> None:
    labels = [Label(query="a goal", relevant=(Path("2024/goal"),))]
    found, left_out = located(labels, "/labels.csv", VIDEOS)
    assert found[0].relevant == (VIDEOS[1],) and left_out == 0


def test_a_name_of_two_videos_and_a_name_of_none_are_told() -> None:
    with pytest.raises(SureshotError, match="may be any of 2 videos"):
        located([Label(query="a goal", relevant=(Path("goal.mp4"),))], "/labels.csv", VIDEOS)
    with pytest.raises(SureshotError, match=r"did you mean /films/dog\.mp4"):
        located([Label(query="a dog", relevant=(Path("dogs.mp4"),))], "/labels.csv", VIDEOS)

"""One door to all data sets: names that are known, and what is said of those that are not."""

import re
from pathlib import Path

import pytest

from sureshot.datasets import NAMES, load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("msrvt", "test"), f"Unknown data set 'msrvt'; known: {', '.join(NAMES)}."),
        (("msrvtt", "validate"), "Unknown split 'validate'; known: train, val, test."),
        (("pairs", "dev"), "Unknown split 'dev'; known: train, val, test."),
    ],
)
def test_unknown_names_are_told_the_known_ones(tmp_path, arguments, message):
    with pytest.raises(SureshotError, match=re.escape(message)):
        load_split(*arguments, tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pairs"])
def test_an_unknown_protocol_is_told_the_known_ones(tmp_path, name):
    with pytest.raises(SureshotError, match=rf"Unknown protocol of {name} '9k'; known: \w"):
        load_split(name, "test", tmp_path, protocol="9k")


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_folder_is_told_which_file_it_lacks(tmp_path, name):
    with pytest.raises(SureshotError, match=rf"{tmp_path} has no \S+\.\w+"):
        load_split(name, "test", tmp_path)


def test_folders_may_be_text_and_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "data" / "MSRVTT_test.1000.csv", "video_id,sentence\nvideo1,x\nvideo2,y\n")
    put(tmp_path / "ids.txt", "video2")
    films(tmp_path / "films" / "deep", "video1.mp4", "video2.mp4")
    split = load_split("msrvtt", "test", "~/data", videos="~/films", ids="~/ids.txt", label="mine")
    assert split.title() == "MSR-VTT mine (1)"
    assert split.items[0].path == tmp_path / "films" / "deep" / "video2.mp4"
    with pytest.raises(SureshotError, match="No video of the 2 wanted was found in"):
        load_split("msrvtt", "test", Path("~/data"))


def test_a_folder_of_videos_that_is_named_is_the_only_one_looked_in(tmp_path):
    put(tmp_path / "MSRVTT_test.1000.csv", "video_id,sentence\nvideo1,x\n")
    films(tmp_path, "videos/video1.mp4", "other/video2.mp4")
    assert len(load_split("msrvtt", "test", tmp_path).items) == 1
    with pytest.raises(SureshotError, match=rf"found in {tmp_path}/other or below"):
        load_split("msrvtt", "test", tmp_path, videos=tmp_path / "other")

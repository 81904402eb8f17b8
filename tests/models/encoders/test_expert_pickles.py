"""Pickles of Collaborative Experts become a folder of experts, whole or not at all."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.models.encoders.experts import convert_pickle, presence, read_experts

NONE = float("nan")
FEATURES = {
    "video0": np.arange(6, dtype=np.float32).reshape(2, 3),
    "video1": np.arange(3, dtype=np.float16),
    "video2": NONE,
    "video3": [np.ones(3), np.zeros(3)],
    "video4": np.array([[NONE, NONE, NONE]]),
    "video5": None,
    "video6": np.zeros((0, 3)),
    "video7": [[1, 2, 3]],
}


def put(path: Path, features: object, protocol: int = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(features, protocol))
    return path


def test_the_experts_are_those_of_the_pickle(tmp_path: Path) -> None:
    source = put(tmp_path / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle", FEATURES)
    converted = convert_pickle(source, tmp_path / "experts", "audio")
    assert (converted.name, converted.videos, converted.lacking) == ("audio", 4, 4)
    assert converted.folder == tmp_path / "experts" / "audio"
    found = read_experts(tmp_path / "experts", FEATURES)
    assert presence(found) == "audio of 4 of 8 videos"
    for video in ("video0", "video1", "video3", "video7"):
        rows = np.atleast_2d(np.asarray(FEATURES[video]))
        np.testing.assert_array_equal(found[video]["audio"], rows)
    assert {video: own["audio"].dtype.str for video, own in found.items() if own} == {
        "video0": "<f4",
        "video1": "<f2",
        "video3": "<f4",
        "video7": "<f4",
    }


def test_several_pickles_make_one_folder(tmp_path: Path) -> None:
    for name in ("senet154-avg", "densenet161-avg"):
        convert_pickle(put(tmp_path / f"{name}.pickle", FEATURES), tmp_path / "experts")
    found = read_experts(tmp_path / "experts", ["video0"])["video0"]
    assert set(found) == {"senet154-avg", "densenet161-avg"}
    with pytest.raises(SureshotError, match=r"experts has an expert senet154-avg already; choose"):
        convert_pickle(tmp_path / "senet154-avg.pickle", tmp_path / "experts")


class Trap:
    """Would write a file if it were unpickled the usual way."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple:
        return Path.touch, (self.place,)


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ([1, 2], "holds no dictionary from ids of videos to their features"),
        ({}, "holds no dictionary"),
        ({**FEATURES, 3: np.ones(3)}, "has features of 3, which is no id of a video"),
        ({**FEATURES, "/": np.ones(3)}, "has features of '/', which is no id"),
        ({**FEATURES, "v": [[1], [1, 2]]}, "rows of different lengths for the video v"),
        ({**FEATURES, "v": ["a"]}, "of the video v, is an array of <U1"),
        ({**FEATURES, "v": np.ones((2, 2, 2))}, r"of the video v, is an array .* \(2, 2, 2\)"),
        ({**FEATURES, "v": np.array([1, NONE])}, "of the video v, holds a number that is not fini"),
        ({**FEATURES, "../video0": np.ones(3)}, "of ../video0 under two spellings"),
    ],
)
def test_a_fault_leaves_nothing_behind(tmp_path: Path, features: object, reason: str) -> None:
    source = put(tmp_path / "face.pickle", features)
    with pytest.raises(SureshotError, match=re.escape(str(source)) + f".*{reason}"):
        convert_pickle(source, tmp_path / "experts")
    assert not list(tmp_path.glob("experts/*")) and not list(tmp_path.glob("experts/.*"))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    trap = Trap(tmp_path / "sprung")
    source = put(tmp_path / "face.pickle", {**FEATURES, "v": trap}, protocol)
    with pytest.raises(SureshotError, match=r"asks for .*, which no set of features needs, so it"):
        convert_pickle(source, tmp_path / "experts")
    assert not (tmp_path / "sprung").exists() and not (tmp_path / "experts").exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", "."])
def test_an_expert_is_called_like_a_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SureshotError, match=f"cannot be called {re.escape(repr(name))}"):
        convert_pickle(put(tmp_path / "face.pickle", FEATURES), tmp_path / "experts", name)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    source = put(tmp_path / "face.pickle", FEATURES)
    with pytest.raises(SureshotError, match=r"The expert cannot be kept in .*: "):
        convert_pickle(source, source / "experts")

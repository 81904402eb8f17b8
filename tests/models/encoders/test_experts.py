"""Experts on disk: what is read, what is missing, what is refused; and how a batch of them lies."""

import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.models.encoders.experts import expert_sizes, pack, presence, read_experts
from sureshot.research.features import convert_pickle


def numbers(*shape: int, seed: int = 0, kind: type = np.float32) -> np.ndarray:
    return (4 * np.random.default_rng(seed).normal(size=shape)).astype(kind)


def put(path: Path, array: np.ndarray | None = None, **arrays: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if array is None:
        np.savez(path, **arrays)
    else:
        np.save(path, array)
    return path


# --- reading --------------------------------------------------------------------------------------


def test_both_layouts_give_the_same(tmp_path: Path) -> None:
    audio, motion = numbers(3, 4), numbers(2, 6, seed=1)
    put(tmp_path / "apart" / "audio" / "video7.npy", audio)
    put(tmp_path / "apart" / "motion" / "video7.npz", motion=motion, motion_times=numbers(2))
    put(tmp_path / "whole" / "video7.npz", audio=audio, motion=motion, audio_times=numbers(3))
    for layout in ("apart", "whole"):
        found = read_experts(tmp_path / layout, ["video7"])["video7"]
        assert sorted(found) == ["audio", "motion"]
        np.testing.assert_array_equal(found["audio"], audio)
        np.testing.assert_array_equal(found["motion"], motion)


def test_layouts_may_be_mixed_but_not_name_an_expert_twice(tmp_path: Path) -> None:
    put(tmp_path / "a.npz", audio=numbers(2, 4))
    put(tmp_path / "motion" / "a.npy", numbers(1, 3))
    assert set(read_experts(tmp_path, ["a"])["a"]) == {"audio", "motion"}
    put(tmp_path / "audio" / "a.npy", numbers(2, 4))
    with pytest.raises(SureshotError, match=r"The expert audio of a is in .*a\.npz and in .*npy"):
        read_experts(tmp_path, ["a"])


def test_a_file_of_one_array_may_call_it_anything(tmp_path: Path) -> None:
    rows = numbers(2, 4)
    put(tmp_path / "audio" / "a.npz", features=rows, features_times=numbers(2))
    np.testing.assert_array_equal(read_experts(tmp_path, ["a"])["a"]["audio"], rows)
    put(tmp_path / "audio" / "a.npz", one=rows, two=rows)
    with pytest.raises(SureshotError, match="holds the arrays one, two; call one of them audio"):
        read_experts(tmp_path, ["a"])


@pytest.mark.parametrize(
    ("video", "file"),
    [
        ("video7", "video7"),
        ("videos/0.mp4", "videos/0"),
        ("videos/0.mp4", "videos/0.mp4"),
        ("a/b/photo.JPG", "a/b/photo"),
        ("0001_American_Beauty_00.00.51.926-00.00.54.129", None),
        ("v.mp4#t=1.0,2.5", None),
        ("/home/me/0.mp4", "home/me/0"),
        ("../others/0.mp4", "others/0"),
    ],
)
def test_a_file_is_called_like_its_video(tmp_path: Path, video: str, file: str | None) -> None:
    put(tmp_path / "deep" / "audio" / f"{file or video}.npy", numbers(1, 2))
    assert set(read_experts(tmp_path / "deep", [video])[video]) == {"audio"}


def mmt(path: Path, **arrays: np.ndarray) -> Path:
    """A file as MMT publishes them: captions, features and their times beside each other."""
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["raw_captions.0"] = np.array([b"a", b"man", b"sings"])
        file["raw_captions_t.0"] = numbers(3, 2)
        for name, array in arrays.items():
            file[f"features.{name}"] = array
            file[f"features_t.{name}"] = numbers(len(array), 2)
    return path


def test_the_files_of_mmt_are_read_as_they_are(tmp_path: Path) -> None:
    missing = np.full((1, 5), np.nan)
    lacking = {"face": missing, "ocr": numbers(0, 3)}
    audio, motion = numbers(3, 4), numbers(2, 6, seed=1)
    mmt(tmp_path / "v" / "i" / "d" / "video7.h5", vggish=audio, s3d=motion, **lacking)
    mmt(tmp_path / "v" / "_" / "-" / "v_-abc.h5", vggish=audio)
    found = read_experts(tmp_path, ["video7", "-abc"])
    assert {video: set(own) for video, own in found.items()} == {
        "video7": {"vggish", "s3d"},
        "-abc": {"vggish"},
    }
    np.testing.assert_array_equal(found["video7"]["vggish"], audio)
    np.testing.assert_array_equal(found["video7"]["s3d"], motion)


def test_a_file_of_mmt_at_fault_is_named(tmp_path: Path) -> None:
    path = mmt(tmp_path / "v" / "i" / "d" / "video7.h5", s3d=np.array([[1.0, np.nan]]))
    with pytest.raises(SureshotError, match=f"expert s3d in {re.escape(str(path))} holds a number"):
        read_experts(tmp_path, ["video7"])
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(SureshotError, match=re.escape(f"The expert in {path} cannot be read")):
        read_experts(tmp_path, ["video7"])


def test_without_h5py_the_way_to_get_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "v" / "i" / "d").mkdir(parents=True)
    (tmp_path / "v" / "i" / "d" / "video7.h5").touch()
    with pytest.raises(SureshotError, match=r"needs h5py, which is not .*: pip install 'h5py>="):
        read_experts(tmp_path, ["video7"])


def test_nothing_is_read_from_outside_of_the_folder(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.npz", audio=numbers(1, 2))
    put(tmp_path / "in" / "b.npz", audio=numbers(1, 2))
    ids = ["../outside", str(outside.with_suffix("")), "b"]
    found = read_experts(tmp_path / "in", ids)
    assert [bool(found[video]) for video in ids] == [False, False, True]


def test_what_is_not_there_or_empty_is_lacking(tmp_path: Path) -> None:
    put(tmp_path / "audio" / "a.npy", numbers(2, 4))
    put(tmp_path / "audio" / "b.npy", numbers(0, 4))
    put(tmp_path / "motion" / "b.npy", numbers(0))
    (tmp_path / "nothing").mkdir()
    found = read_experts(tmp_path, ["a", "b", "c"])
    assert {video: set(own) for video, own in found.items()} == {
        "a": {"audio"},
        "b": set(),
        "c": set(),
    }
    assert presence(found) == "audio of 1 of 3 videos"
    assert expert_sizes([found]) == (("audio", 4),)


def test_one_row_and_whole_numbers_are_rows_and_precision_is_kept(tmp_path: Path) -> None:
    put(tmp_path / "a.npz", one=numbers(5), counts=np.arange(6, dtype=np.uint8).reshape(2, 3))
    put(tmp_path / "b.npz", half=numbers(1, 2, kind=np.float16), long=numbers(1, 2, kind=float))
    found = read_experts(tmp_path, ["a", "b"])
    assert found["a"]["one"].shape == (1, 5)
    assert found["a"]["counts"].tolist() == [[0, 1, 2], [3, 4, 5]]
    kinds = {name: rows.dtype for own in found.values() for name, rows in own.items()}
    assert kinds == {"one": "f4", "counts": "f4", "half": "f2", "long": "f4"}


class Trap:
    """Would write a file if it were unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple:
        return Path.touch, (self.place,)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_no_object_is_unpickled(tmp_path: Path, suffix: str) -> None:
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    path = tmp_path / "audio" / f"a{suffix}"
    put(path, *([trap] if suffix == ".npy" else []), **({} if suffix == ".npy" else {"a": trap}))
    with pytest.raises(SureshotError, match=re.escape(f"The expert in {path} cannot be read")):
        read_experts(tmp_path, ["a"])
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(SureshotError, match="cannot be read"):
        read_experts(tmp_path, ["a"])
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (numbers(2, 3, 4), r"shape \(2, 3, 4\); it must be rows of numbers"),
        (np.array(3.0), r"shape \(\)"),
        (np.array([["a", "b"]]), "array of <U1"),
        (np.array([[1j]]), "array of complex128"),
        (np.array([[1.0, np.nan]]), "holds a number that is not finite; delete these rows"),
        (np.array([[np.inf]]), "not finite"),
        (np.array([[1e300]]), "not finite"),
    ],
)
def test_what_is_no_rows_of_numbers_is_refused(
    tmp_path: Path, array: np.ndarray, reason: str
) -> None:
    path = put(tmp_path / "audio" / "a.npy", array)
    with pytest.raises(
        SureshotError, match=f"The expert audio in {re.escape(str(path))}.*{reason}"
    ):
        read_experts(tmp_path, ["a"])


@pytest.mark.parametrize("content", [b"", b"not numpy", b"PK\x03\x04 torn", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("name", ["audio/a.npy", "audio/a.npz", "a.npz"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / "audio").mkdir()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SureshotError, match=re.escape(f"The expert in {tmp_path / name} cannot")):
        read_experts(tmp_path, ["a"])


def test_a_folder_that_helps_nobody_is_told_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SureshotError, match="There is no folder of experts at"):
        read_experts(tmp_path / "gone", ["a"])
    put(tmp_path / "audio" / "b.npy", numbers(1, 2))
    with pytest.raises(SureshotError) as caught:
        read_experts(tmp_path, ["videos/a.mp4", "c"])
    assert "no expert of any of the 2 videos" in str(caught.value)
    assert f"{tmp_path}/NAME/videos/a.npy" in str(caught.value)
    assert read_experts(tmp_path, []) == {}


# --- sizes and batches ----------------------------------------------------------------------------


def test_sizes_are_those_of_all_sets_in_the_order_of_names() -> None:
    one = {"a": {"motion": numbers(1, 3)}, "b": {"audio": numbers(2, 5)}}
    other = {"a": {"faces": numbers(1, 2), "audio": numbers(9, 5)}, "c": {}}
    assert expert_sizes([one, {}, other]) == (("audio", 5), ("faces", 2), ("motion", 3))
    assert expert_sizes([]) == ()
    with pytest.raises(SureshotError, match="audio has 5 numbers a row for b and 4 for d"):
        expert_sizes([one, {"d": {"audio": numbers(1, 4)}}])


SIZES = (("audio", 2), ("faces", 4), ("motion", 3))


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=4))
def test_a_batch_has_every_row_once_under_its_expert(counts: list[tuple[int, ...]]) -> None:
    videos = [
        {
            name: numbers(count, size, seed=place)
            for (name, size), count in zip(SIZES, own, strict=True)
            if count
        }
        for place, own in enumerate(counts)
    ]
    rows, which = pack(videos, SIZES)
    assert rows.shape == (len(counts), max(map(sum, counts)), 4)
    assert which.shape == (*rows.shape[:2], 3)
    assert (which.sum(2) <= 1).all()
    for place, own in enumerate(videos):
        for number, (name, size) in enumerate(SIZES):
            found = rows[place, which[place, :, number]]
            np.testing.assert_array_equal(found[:, :size], own.get(name, np.zeros((0, size))))
            assert not found[:, size:].any()
        assert not rows[place, ~which[place].any(1)].any()


def test_a_batch_takes_what_the_model_knows_and_no_other_size() -> None:
    videos = [{"audio": numbers(1, 2), "smell": numbers(5, 9)}, {"motion": numbers(2, 3)}]
    rows, which = pack(videos, (("motion", 3), ("audio", 2)))
    assert rows.shape == (2, 2, 3)
    assert which.tolist() == [[[False, True], [False, False]], [[True, False]] * 2]
    empty, none = pack(videos, ())
    assert empty.shape == (2, 0, 0) and none.shape == (2, 0, 0)
    with pytest.raises(SureshotError, match="audio has 2 numbers a row, and the model was trained"):
        pack(videos, (("audio", 7),))


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


def pickled(path: Path, features: object, protocol: int = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(features, protocol))
    return path


def test_the_experts_are_those_of_the_pickle(tmp_path: Path) -> None:
    source = pickled(tmp_path / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle", FEATURES)
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
    source = pickled(tmp_path / "face.pickle", features)
    with pytest.raises(SureshotError, match=re.escape(str(source)) + f".*{reason}"):
        convert_pickle(source, tmp_path / "experts")
    assert not list(tmp_path.glob("experts/*")) and not list(tmp_path.glob("experts/.*"))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    trap = Trap(tmp_path / "sprung")
    source = pickled(tmp_path / "face.pickle", {**FEATURES, "v": trap}, protocol)
    with pytest.raises(SureshotError, match=r"asks for .*, which no set of features needs, so it"):
        convert_pickle(source, tmp_path / "experts")
    assert not (tmp_path / "sprung").exists() and not (tmp_path / "experts").exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", "."])
def test_an_expert_is_called_like_a_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SureshotError, match=f"cannot be called {re.escape(repr(name))}"):
        convert_pickle(pickled(tmp_path / "face.pickle", FEATURES), tmp_path / "experts", name)

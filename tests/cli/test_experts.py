"""Experts on disk, as a person trains and tests with them."""

import json
import pickle
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file

from sureshot.cli.app import run
from sureshot.models.huggingface import CONFIG, WEIGHTS
from tests.walls import walls

RECIPE = """
[[train]]
dataset = "pairs"
root = "pairs.csv"
experts = "experts"

[val]
dataset = "pairs"
root = "pairs.csv"
experts = "$EXPERTS"

[encoder]
name = "tiny"
frames = 3
device = "cpu"

[system]
name = "ce"
width = 8

[training]
epochs = 2
batch = 4
rate = 1e-2
"""
LACKING = "videos/4.mp4"  # of the training videos, without sound


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data with two experts in two layouts, and a model that was trained on them."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    (folder / "recipe.toml").write_text(RECIPE)
    draw = np.random.default_rng(0)
    for number in range(12):
        name = f"videos/{number}"
        if f"{name}.mp4" != LACKING:
            path = folder / "experts" / "audio" / f"{name}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, draw.normal(size=(number % 3 + 1, 5)).astype(np.float32))
        path = folder / "experts" / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, motion=draw.normal(size=(2, 7)), motion_times=np.arange(2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPERTS", str(folder / "experts"))
        assert run(["train", *recipe(folder), "--to", str(folder / "run")]) == 0
    return folder


@pytest.fixture(autouse=True)
def named(place, monkeypatch):
    monkeypatch.setenv("EXPERTS", str(place / "experts"))


def recipe(folder):
    return [str(folder / "recipe.toml"), "--cache", str(folder / "cache")]


@pytest.fixture
def evaluate(sureshot, place):
    def call(*more, model="run"):
        data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", place / "cache")
        return sureshot("evaluate", place / model / "model", *data, *more)

    return call


def test_training_counts_who_has_what(sureshot, place, tmp_path):
    ran = sureshot("train", *recipe(place), "--to", tmp_path / "run")
    assert ran.code == 0
    assert "train, 6 videos, 12 captions; experts: audio of 5, motion of 6 of 6 videos" in ran.err
    assert "val, 3 videos, 6 captions; experts: audio of 3, motion of 3 of 3 videos" in ran.err
    config = json.loads((place / "run/model" / CONFIG).read_text())
    assert config["encoder"]["experts"] == {"audio": 5, "motion": 7}
    one, other = (load_file(p / "run" / "model" / WEIGHTS) for p in (place, tmp_path))
    assert all((one[name] == other[name]).all() for name in one)


def test_a_test_reads_the_experts_it_is_given(evaluate, place, tmp_path):
    ran = evaluate("--experts", place / "experts", "--json")
    assert ran.code == 0 and "experts: audio of 3, motion of 3 of 3 videos" in ran.err
    evaluate("--experts", place / "experts", "--trec", tmp_path / "own")
    shutil.copytree(place / "experts", tmp_path / "experts")
    files = [tmp_path / "experts" / "audio" / "videos" / f"{number}.npy" for number in (9, 10)]
    np.save(files[0], 5 * np.load(files[1])[:1] - 3)
    files[1].unlink()
    ran = evaluate("--experts", tmp_path / "experts", "--trec", tmp_path / "other")
    assert "experts: audio of 2, motion of 3 of 3 videos" in ran.err
    lines = [(tmp_path / name / "run.txt").read_text() for name in ("own", "other")]
    assert lines[0] != lines[1]
    unchanged = [
        {line for line in text.splitlines() if " videos/11.mp4 " in line} for text in lines
    ]
    scores = [sorted(line.split()[4] for line in kept) for kept in unchanged]
    assert scores[0] == scores[1] and len(scores[0]) == 6


def test_experts_must_be_there_where_a_model_reads_them(evaluate, tmp_path):
    ran = evaluate()
    assert ran.code == 2
    assert "was trained on the experts audio, motion; name the " in ran.err
    ran = evaluate("--experts", tmp_path / "gone")
    assert ran.code == 1
    assert f"There is no folder of experts at {tmp_path}/gone" in ran.err


def test_experts_of_another_size_are_refused(evaluate, place, tmp_path):
    shutil.copytree(place / "experts", tmp_path / "experts")
    np.save(tmp_path / "experts" / "audio" / "videos" / "9.npy", np.ones((1, 6)))
    ran = evaluate("--experts", tmp_path / "experts")
    assert ran.code == 1
    assert "audio has 6 numbers a row, and the model was trained on 5" in ran.err


def test_who_reads_no_experts_is_given_none(sureshot, place, tmp_path):
    bare = ("--set", 'system={name="clip4clip"}', "--to", tmp_path / "bare")
    ran = sureshot("train", *recipe(place), *bare)
    assert ran.code == 1
    assert "clip4clip reads no experts such as audio, motion; leave train.experts out" in ran.err
    root = ("--data", "pairs", "--root", place / "pairs.csv", "--experts", place / "experts")
    ran = sureshot("evaluate", "tiny", *root)
    assert ran.code == 2
    assert "tiny reads no experts; leave out --experts" in ran.err


def test_an_index_is_refused_with_the_reason(sureshot, place, tmp_path):
    model = place / "run" / "model"
    ran = sureshot("index", place / "videos", "--db", tmp_path / "db", "--model", model)
    assert ran.code == 1
    assert f"{model} is a model of the system ce, which compares more of a video" in ran.err
    assert not (tmp_path / "db").exists()


def test_published_pickles_become_experts(sureshot, place, tmp_path):
    draw = np.random.default_rng(1)
    for name, size in (("audio=features", 5), ("motion", 7)):
        features = {f"videos/{n}.mp4": draw.normal(size=(2, size)) for n in range(9, 12)}
        features["videos/0.mp4"] = float("nan")
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(features))
    to = ("--to", tmp_path / "experts")
    ran = sureshot("experts", f"audio={tmp_path}/audio=features.pickle", *to)
    assert ran.code == 0
    assert ran.out == f"audio: 3 videos, 1 without it; {tmp_path}/experts/audio\n"
    ran = sureshot("experts", tmp_path / "motion.pickle", *to, "--json")
    assert json.loads(ran.out)["experts"] == [
        {"name": "motion", "folder": f"{tmp_path}/experts/motion", "videos": 3, "lacking": 1}
    ]
    data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", place / "cache")
    model = place / "run" / "model"
    ran = sureshot("evaluate", model, *data, "--experts", tmp_path / "experts")
    assert "experts: audio of 3, motion of 3 of 3 videos" in ran.err
    ran = sureshot("experts", tmp_path / "motion.pickle", *to)
    assert ran.code == 1 and "has an expert motion already" in ran.err

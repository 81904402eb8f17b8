"""Training as a person types it, on real small videos."""

import json
import re
import shutil

import pytest
from safetensors.torch import load_file

from sureshot.cli import terminal
from sureshot.cli.app import run
from sureshot.models.huggingface import CONFIG, WEIGHTS
from sureshot.research.training.loop import claimed, read_log
from tests.walls import walls, write


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, and a model that was trained on it."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    recipe = [str(folder / "recipe.toml"), "--cache", str(folder / "cache")]
    assert run(["train", *recipe, "--to", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def train(sureshot, place):
    def call(*more, recipe="recipe.toml"):
        return sureshot("train", place / recipe, "--cache", place / "cache", *more)

    return call


@pytest.fixture
def evaluate(sureshot, place):
    def call(*more, model=None, root="pairs.csv"):
        data = ("--data", "pairs", "--root", place / root, "--cache", place / "cache")
        return sureshot("evaluate", model or place / "run" / "model", *data, *more)

    return call


def weights(folder):
    return {name: part.numpy() for name, part in load_file(folder / "model" / WEIGHTS).items()}


def same(one, other):
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def test_an_estimate_takes_no_folder_that_it_would_not_write_to(train, tmp_path):
    ran = train("--dry-run", "--to", tmp_path / "run")
    assert ran.code == 2 and "--dry-run writes nothing; leave out --to" in ran.err


def test_training_says_what_it_found_and_where_the_model_is(train, tmp_path):
    ran = train("--to", tmp_path / "my run")
    assert ran.code == 0
    *sets, note = ran.err.splitlines()
    assert sets == [
        "pairs pairs.csv train, 6 videos, 12 captions",
        "pairs pairs.csv val, 3 videos, 6 captions",
    ]
    assert "hub correction" in note and "on 3 validation videos" in note
    first, second = ran.out.splitlines()
    assert first.startswith(f"Trained: {tmp_path}/my run/model (weights after epoch ")
    assert re.search(r"rsum \d+\.\d on the validation set\)\.$", first)
    assert second == f"To evaluate it: sureshot evaluate '{tmp_path}/my run/model' --data …"


def test_without_a_folder_the_run_is_named_after_the_recipe(train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = train("--json", "--set", "training.epochs=1")
    told = json.loads(ran.out)
    assert told["folder"] == str(tmp_path / "runs" / "recipe" / "model")
    assert told["epoch"] == 1 and told["metric"] == "rsum"
    kept = json.loads((tmp_path / "runs/recipe/model" / CONFIG).read_text())
    assert kept["scores"]["rsum"] == told["score"]


def test_the_home_folder_may_be_meant(train, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert train("--to", "~/run", "--set", "training.epochs=1").code == 0
    assert (tmp_path / "run" / "model" / CONFIG).exists()


def test_settings_can_be_replaced(train, place, tmp_path):
    more = ("--set", "system.name=clip4clip", "--set", "system.scale=10", "--set", "stem.width=4")
    text = (place / "recipe.toml").read_text().replace("dropout = 0.0\nscale = 20.0", "")
    (place / "bare.toml").write_text(text)
    assert train("--to", tmp_path / "run", *more, recipe="bare.toml").code == 0
    config = json.loads((tmp_path / "run/model" / CONFIG).read_text())
    assert config["system"] == {"name": "clip4clip", "scale": 10}
    assert config["stem"]["width"] == 4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.epoch=3", "Unknown setting training.epoch; known: epochs, batch"),
        ("system.temperature=1", "Unknown setting system.temperature; known: dropout, scale"),
        ("stem.width=true", "Setting stem.width is True; expected a whole number"),
        ("encoder.name=nothing-there", "neither a folder nor the name of a model"),
        ("train.0.dataset=pears", "Unknown data set 'pears'"),
        ("train.0.root=gone.csv", "gone.csv cannot be read: no such file"),
        ("encoder.tuned=true", "encoder 'tiny' cannot be trained"),
    ],
)
def test_a_wrong_setting_ends_with_one_and_its_path(train, tmp_path, setting, message):
    ran = train("--to", tmp_path / "run", "--set", setting)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "run").exists()


def test_captions_of_missing_videos_are_left_out_and_told(train, evaluate, place, tmp_path):
    rows = [[f"videos/{n}.mp4", f"wall {n}", "train"] for n in (0, 1, 2, 77, 78)]
    write(
        place / "holes.csv",
        [*rows, ["videos/9.mp4", "wall", "test"], ["videos/79.mp4", "x", "test"]],
    )
    ran = train("--to", tmp_path / "run", "--set", "train.0.root=holes.csv")
    assert ran.code == 0
    absent = "without a video or a caption, such as videos"
    assert f"train, 3 of 5 videos, 3 captions; 2 {absent}/77.mp4" in ran.err
    ran = evaluate(root="holes.csv")
    assert f"test, 1 of 2 videos, 1 captions; 1 {absent}/79.mp4" in ran.err
    assert ran.out.splitlines()[0] == "pairs holes.csv test, 1 of 2 videos, 1 captions"


def test_a_video_without_a_frame_is_left_out_of_training_and_test(train, evaluate, place, tmp_path):
    (place / "videos" / "none.mp4").write_bytes(b"")
    rows = [[f"videos/{n}.mp4", f"wall {n}", "train"] for n in (0, 1, 2, "none")]
    write(place / "none.csv", [*rows, *([f"videos/{n}.mp4", "x", "test"] for n in (9, 10, "none"))])
    ran = train("--to", tmp_path / "run", "--set", "train.0.root=none.csv")
    assert "train, 3 of 4 videos, 3 captions; left out: videos/none.mp4 is empty" in ran.err
    card = (tmp_path / "run/model/README.md").read_text()
    assert "train, 3 of 4 videos, 3 captions" in card
    ran = evaluate(root="none.csv")
    assert ran.code == 0 and "left out: videos/none.mp4 " in ran.err
    assert ran.out.splitlines()[0] == "pairs none.csv test, 2 of 3 videos, 2 captions"


def test_nothing_is_replaced_that_is_no_unfinished_run(train, place, tmp_path):
    theirs = ("mine", "dear diary", '{"level": "info"}\n', "caf\xe9")
    for number, text in enumerate(theirs):
        folder = tmp_path / str(number)
        own = folder / ("log.jsonl" if number else "model/thesis.tex")
        own.parent.mkdir(parents=True)
        own.write_text(text, "latin-1")
        for more in ((), ("--resume",)):
            ran = train("--to", folder, *more)
            assert ran.code == 1 and "Training would replace it" in ran.err
        assert own.read_text("latin-1") == text
    finished = shutil.copytree(place / "run", tmp_path / "finished")
    (finished / "state.safetensors").unlink()
    for more in ((), ("--resume",)):
        assert "no state.safetensors to go on from" in train("--to", finished, *more).err
    assert same(weights(finished), weights(place / "run"))


def test_two_processes_do_not_train_in_one_folder(train, tmp_path):
    with claimed(tmp_path / "run"):
        ran = train("--to", tmp_path / "run")
    assert ran.code == 1 and f"Another process is training in {tmp_path / 'run'}" in ran.err
    assert not (tmp_path / "run").exists()
    assert train("--to", tmp_path / "run").code == 0


def test_a_folder_that_cannot_be_made_is_refused_before_videos_are_encoded(train, tmp_path):
    (tmp_path / "file").touch()
    ran = train("--to", tmp_path / "file" / "run", "--cache", tmp_path / "cache")
    assert ran.code == 1 and f"{tmp_path / 'file' / 'run'}: Not a directory" in ran.err
    assert not (tmp_path / "cache").exists()


def test_a_run_that_was_interrupted_goes_on_to_the_same_model(train, place, tmp_path, monkeypatch):
    def stop(self, what, done, total, more=""):
        if (what, done) == ("steps", 3):
            raise KeyboardInterrupt

    to = ("--to", tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(terminal.Bar, "update", stop)
        assert train(*to).code == 130
    assert [entry["step"] for entry in read_log(tmp_path / "run/log.jsonl") if "losses" in entry]
    ran = train(*to)
    assert ran.code == 1 and "There is a run in" in ran.err and "resume it" in ran.err
    assert train(*to, "--resume").code == 0
    assert same(weights(tmp_path / "run"), weights(place / "run"))
    losses, whole = (
        [entry["losses"] for entry in read_log(folder / "log.jsonl") if "losses" in entry]
        for folder in (tmp_path / "run", place / "run")
    )
    assert losses == whole and len(whole) == 4

"""Train and evaluate, as a person types them, on real small videos."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file

from sureshot.cli import bar
from sureshot.cli import train as research
from sureshot.cli.app import run
from sureshot.datasets import Caption, Item, load_split
from sureshot.metrics.trec import read_qrels, read_run
from sureshot.models.checkpoint import CONFIG, WEIGHTS
from sureshot.models.encoders.tiny import TinyEncoder
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scorer import Scorer
from sureshot.research.training.log import read
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


# --- train ----------------------------------------------------------------------------------------


def test_training_says_what_it_found_and_where_the_model_is(train, tmp_path):
    ran = train("--to", tmp_path / "run")
    assert ran.code == 0
    *sets, note = ran.err.splitlines()
    assert sets == [
        "pairs pairs.csv train, 6 videos, 12 captions",
        "pairs pairs.csv val, 3 videos, 6 captions",
    ]
    assert "hub correction" in note and "on 3 validation videos" in note
    first, second = ran.out.splitlines()
    assert first.startswith(f"Trained: {tmp_path}/run/model holds the weights after epoch ")
    assert re.search(r"rsum \d+\.\d on the validation set\.$", first)
    assert second.startswith(f"sureshot evaluate {tmp_path}/run/model --data")


def test_without_a_folder_the_run_is_named_after_the_recipe(train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = train("--json", "--set", "training.epochs=1")
    told = json.loads(ran.out)
    assert told["folder"] == str(tmp_path / "runs" / "recipe" / "model")
    assert told["epoch"] == 1 and told["metric"] == "rsum"
    kept = json.loads((tmp_path / "runs/recipe/model" / CONFIG).read_text())
    assert kept["scores"]["rsum"] == told["score"]


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
        ("train.0.dataste=x", "Unknown setting train.0.dataste; known: dataset, root"),
        ("system.temperature=1", "Unknown setting system.temperature; known: dropout, scale"),
        ("stem.depth=1", "Unknown setting stem.depth"),
        ("training.epochs=many", "Setting training.epochs is 'many'; expected a whole number"),
        ("stem.width=true", "Setting stem.width is True; expected a whole number"),
        ("system.name=dug", "system.name is 'dug'; known: ce, clip2video, clip4clip, duq"),
        ("encoder.name=nothing-there", "neither a folder nor the name of a model"),
        ("train.0.split=test", "nothing is trained or chosen on what it is tested on"),
        ("train.0.dataset=pears", "Unknown data set 'pears'"),
        ("train.0.root=gone.csv", "gone.csv cannot be read: No such file"),
        ("encoder.tuned=true", "encoder 'tiny' cannot be trained"),
        ("nonsense", "Cannot set 'nonsense'"),
    ],
)
def test_a_wrong_setting_ends_with_one_and_its_path(train, tmp_path, setting, message):
    ran = train("--to", tmp_path / "run", "--set", setting)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_is_not_there_is_named(train):
    ran = train(recipe="gone.toml")
    assert ran.code == 1
    assert "Cannot read the recipe" in ran.err and "No such file" in ran.err


def test_sets_that_overlap_are_refused(train, place, tmp_path):
    rows = [["videos/0.mp4", "red", "val"], ["videos/6.mp4", "green", "val"]]
    write(place / "overlap.csv", rows)
    ran = train("--to", tmp_path / "run", "--set", "val.root=overlap.csv")
    assert ran.code == 1
    assert "share 1 videos: videos/0.mp4" in ran.err


def test_captions_of_missing_videos_are_left_out_and_told(train, evaluate, place, tmp_path):
    rows = [[f"videos/{n}.mp4", f"wall {n}", "train"] for n in (0, 1, 2, 77, 78)]
    write(
        place / "holes.csv",
        [*rows, ["videos/9.mp4", "wall", "test"], ["videos/79.mp4", "x", "test"]],
    )
    ran = train("--to", tmp_path / "run", "--set", "train.0.root=holes.csv")
    assert ran.code == 0
    expected = "train, 3 of 5 videos, 3 captions; 2 not on disk, such as videos/77.mp4"
    assert expected in ran.err
    ran = evaluate(root="holes.csv")
    assert "test, 1 of 2 videos, 1 captions; 1 not on disk, such as videos/79.mp4" in ran.err
    assert ran.out.splitlines()[0] == "pairs holes.csv test, 1 of 2 videos, 1 captions"


def test_a_list_whose_videos_are_all_missing_is_refused(train, place, tmp_path):
    write(place / "gone.csv.csv", [["videos/77.mp4", "wall", "train"]])
    ran = train("--to", tmp_path / "run", "--set", "train.0.root=gone.csv.csv")
    assert ran.code == 1
    assert "names 1 videos and none of them is there" in ran.err


def test_an_empty_caption_is_refused_with_its_line(train, place, tmp_path):
    write(place / "empty.csv", [["videos/0.mp4", "red", "train"], ["videos/1.mp4", " ", "train"]])
    ran = train("--to", tmp_path / "run", "--set", "train.0.root=empty.csv")
    assert ran.code == 1
    assert "empty.csv, line 3: the caption is empty" in ran.err


def test_a_video_without_a_frame_is_left_out_of_training_and_test(train, evaluate, place, tmp_path):
    (place / "videos" / "none.mp4").write_bytes(b"")
    rows = [[f"videos/{n}.mp4", f"wall {n}", "train"] for n in (0, 1, 2, "none")]
    write(place / "none.csv", [*rows, *([f"videos/{n}.mp4", "x", "test"] for n in (9, 10, "none"))])
    assert train("--to", tmp_path / "run", "--set", "train.0.root=none.csv").code == 0
    card = (tmp_path / "run/model/README.md").read_text()
    assert "train, 3 of 4 videos, 3 captions" in card
    ran = evaluate(root="none.csv")
    assert ran.code == 0 and "left out: videos/none.mp4 " in ran.err
    assert ran.out.splitlines()[0] == "pairs none.csv test, 2 of 3 videos, 2 captions"


def test_a_run_that_was_interrupted_goes_on_to_the_same_model(train, place, tmp_path, monkeypatch):
    def stop(self, what, done, total, more=""):
        if (what, done) == ("steps", 3):
            raise KeyboardInterrupt

    to = ("--to", tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(bar.Bar, "update", stop)
        assert train(*to).code == 130
    assert [entry["step"] for entry in read(tmp_path / "run/log.jsonl") if "losses" in entry]
    ran = train(*to)
    assert ran.code == 1 and "There is a run in" in ran.err and "resume it" in ran.err
    assert train(*to, "--resume").code == 0
    assert same(weights(tmp_path / "run"), weights(place / "run"))
    losses, whole = (
        [entry["losses"] for entry in read(folder / "log.jsonl") if "losses" in entry]
        for folder in (tmp_path / "run", place / "run")
    )
    assert losses == whole and len(whole) == 4


# --- evaluate -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(place):
    """Similarities and owners of the test captions."""
    scorer = Scorer.load(str(place / "run/model"))
    split = load_split("pairs", "test", place / "pairs.csv")
    features = extract(split, scorer.encoder, frames=3, cache=place / "cache")
    return scorer.similarity(features), split.owner()


def first(scores, owner):
    """R@1 by a loop."""
    found = [row[own] == max(row) for row, own in zip(scores, owner, strict=True)]
    return 100 * np.mean(found)


def test_numbers_are_those_of_the_scores(evaluate, scores):
    ran = evaluate("--json")
    assert ran.err == "pairs pairs.csv test, 3 videos, 6 captions\n"
    told = json.loads(ran.out)
    text, video = told["raw"]
    assert text["recall"]["r1"] == pytest.approx(first(*scores))
    best = np.array([scores[0][scores[1] == own].max(0) for own in range(3)])
    assert video["recall"]["r1"] == pytest.approx(first(best.T, range(3)))
    assert (text["recall"]["n"], video["recall"]["n"]) == (6, 3)
    assert told["setting"] == {
        "dataset": "pairs",
        "split": "",
        "texts": 6,
        "videos": 3,
        "encoder": "tiny",
        "frames": 3,
        "trained_on": "pairs",
    }
    assert told["post_processed"] == []


def test_raw_scores_come_first_and_what_was_asked_for_beside_them(evaluate):
    ran = evaluate("--post", "nnn", "--post", "dsl", "--bank", "5")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "pairs pairs.csv test, 3 videos, 6 captions"
    assert lines[1] == "xpool · tiny · 3 frames · trained on pairs"
    rows = [line.split("  ")[0] for line in lines if re.match(r"(raw|NNN|DSL)", line)]
    texts = ["raw", "NNN (bank: 5 training captions)", "DSL (looks at all test queries)"]
    assert rows == [*texts, "raw", "DSL (looks at all test queries)"]


def test_the_bank_is_of_training_captions_at_most_all_of_them(evaluate):
    told = json.loads(evaluate("--post", "qb_norm", "--json").out)
    assert told["post_processed"][0]["name"] == "QB-Norm (bank: 12 training captions)"


def test_captions_of_videos_that_are_tested_are_in_no_bank(evaluate, place):
    rows = [["videos/0.mp4", "one", "test"], ["videos/9.mp4", "two", "test"]]
    write(place / "shared.csv", rows)
    told = json.loads(evaluate("--post", "nnn", "--json", root="shared.csv").out)
    assert told["post_processed"][0]["name"] == "NNN (bank: 10 training captions)"
    ran = evaluate("--post", "nnn", "--split", "train")
    assert ran.code == 1
    assert "all those of" in ran.err and "are of videos in pairs pairs.csv train" in ran.err


def test_videos_that_were_trained_on_are_told_of(evaluate, place):
    write(place / "seen.csv", [[f"videos/{n}.mp4", "one", "test"] for n in (0, 9)])
    ran = evaluate(root="seen.csv")
    assert ran.code == 0
    assert "! pairs pairs.csv train, 6 videos, 12 captions and pairs seen.csv test" in ran.err
    assert "share 1 videos: videos/0.mp4" in ran.err


def test_a_model_whose_training_data_have_gone_is_evaluated_all_the_same(evaluate, place, tmp_path):
    shutil.copytree(place / "run" / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model" / CONFIG).read_text())
    config["recipe"]["train"][0]["root"] = "/gone.csv"
    (tmp_path / "model" / CONFIG).write_text(json.dumps(config))
    assert evaluate(model=tmp_path / "model").code == 0
    ran = evaluate("--post", "nnn", model=tmp_path / "model")
    assert ran.code == 1 and "/gone.csv cannot be read" in ran.err


@pytest.mark.parametrize("method", ["published", "DUQ"])
def test_a_list_of_ones_own_has_no_printed_rows(evaluate, place, method):
    ran = evaluate("--against", method, "--cache", place / "never")
    assert (ran.code, ran.out) == (1, "")
    assert "No printed row has the dataset 'pairs'; known: ActivityNet" in ran.err
    assert not (place / "never").exists()  # told before anything is decoded


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--post", "dls"), "--post is 'dls'; known: dsl, inverted_softmax, qb_norm, nnn"),
        (("--protocol", "1k-A"), "no protocol"),
        (("--split", "dev"), "Unknown split 'dev'"),
        (("--ids", "gone.txt"), "gone.txt"),
        (("--device", "nonsense"), "Cannot compute on device 'nonsense'"),
    ],
)
def test_what_cannot_be_evaluated_is_told(evaluate, place, options, message):
    ran = evaluate(*options, "--cache", place / "never")
    assert ran.code in (1, 2) and ran.out == ""
    assert message in ran.err
    assert not (place / "never").exists()


def test_an_encoder_alone_knows_no_training_captions(evaluate, place):
    told = json.loads(evaluate("--json", model="tiny").out)
    assert (told["system"], told["setting"]["trained_on"]) == ("encoder", "")
    assert told["setting"]["frames"] == 12
    ran = evaluate("--post", "nnn", "--cache", place / "never", model="tiny")
    assert ran.code == 2
    assert "tiny does not know its own" in ran.err
    assert not (place / "never").exists()


def test_a_part_with_a_name_of_its_own(evaluate, place):
    (place / "ids.txt").write_text("videos/9.mp4\nvideos/11.mp4\n")
    ran = evaluate("--ids", place / "ids.txt", "--label", "two walls", "--frames", "2")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "pairs two walls (2)"
    assert "2 frames" in ran.out.splitlines()[1]


def test_trec_files_hold_the_same_ranking(evaluate, place, tmp_path, scores):
    named = place / "my model"
    if not named.exists():
        named.symlink_to(place / "run" / "model")
    assert evaluate("--trec", tmp_path / "trec", model=named).code == 0
    ranked, judged = read_run(tmp_path / "trec/run.txt"), read_qrels(tmp_path / "trec/qrels.txt")
    assert len(ranked) == len(judged) == 6
    hits = [judged[query].get(max(row, key=row.get), 0) for query, row in ranked.items()]
    assert 100 * np.mean(hits) == pytest.approx(first(*scores))
    assert ranked["videos/10.mp4#3"]["videos/9.mp4"] == pytest.approx(scores[0][3, 0], abs=1e-6)
    assert (tmp_path / "trec/run.txt").read_text().splitlines()[0].endswith(" my_model")


def test_names_of_videos_with_spaces_are_written_as_one_word(evaluate, place, tmp_path):
    (place / "videos" / "my red\u00a0wall.mp4").write_bytes((place / "videos/0.mp4").read_bytes())
    write(place / "spaces.csv", [["videos/my red\u00a0wall.mp4", "red", "test"]])
    assert evaluate("--trec", tmp_path, root="spaces.csv").code == 0
    assert read_qrels(tmp_path / "qrels.txt") == {
        "videos/my_red_wall.mp4#0": {"videos/my_red_wall.mp4": 1}
    }


def test_published_names_are_those_of_whole_splits_only(place):
    """What is compared with print: the usual protocol, whole, under no other name."""
    base = load_split("pairs", "test", place / "pairs.csv")
    items = tuple(Item(f"v{n}", place / f"{n}.mp4") for n in range(4))
    whole = replace(
        base,
        dataset="msrvtt",
        protocol="1k-A",
        expected=4,
        items=items,
        captions=tuple(Caption("x", n) for n in range(4)),
    )
    scorer = Scorer.load("tiny")
    for split, name in (
        (whole, "1kA"),
        (replace(whole, label="mine"), ""),
        (replace(whole, expected=5), ""),
        (replace(whole, protocol="full"), "full"),
        (replace(whole, name="val"), ""),
    ):
        features = SplitFeatures(split, "tiny", TinyEncoder().fingerprint, 3, [], [])
        told = research._report(scorer, features, np.eye(4), [], ["DUQ"], None)
        assert told.setting.split == name


def test_a_trained_model_indexes_and_searches(sureshot, place, tmp_path):
    db = ("--db", tmp_path / "db")
    model = place / "run" / "model"
    asked = ("index", place / "videos" / "9.mp4", place / "videos" / "10.mp4", "--workers", "1")
    assert sureshot(*asked, *db, "--model", model).code == 0
    told = json.loads(sureshot("search", "white then magenta", *db, "--no-fold", "--json").out)
    assert told["model"] == str(model) and told["searched"] >= 2
    assert {hit["path"].rpartition("/")[2] for hit in told["hits"]} == {"9.mp4", "10.mp4"}


def test_a_model_that_is_damaged_is_not_evaluated(evaluate, place, tmp_path):
    shutil.copytree(place / "run" / "model", tmp_path / "model")
    whole = (tmp_path / "model" / WEIGHTS).read_bytes()
    (tmp_path / "model" / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    ran = evaluate(model=tmp_path / "model")
    assert ran.code == 1 and "cannot be read" in ran.err
    config = json.loads((tmp_path / "model" / CONFIG).read_text())
    (tmp_path / "model" / CONFIG).write_text(json.dumps(config | {"format": 2}))
    ran = evaluate(model=tmp_path / "model")
    assert ran.code == 1 and "has the checkpoint format 2" in ran.err

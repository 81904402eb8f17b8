"""Evaluation as a person types it, on real small videos."""

import json
import re
import shutil

import numpy as np
import pytest

from sureshot.cli.app import run
from sureshot.datasets import load_split
from sureshot.models.huggingface import CONFIG
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.scores import similarity
from tests.walls import walls, write


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, and a model that was trained on it."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    recipe = [str(folder / "recipe.toml"), "--cache", str(folder / "cache")]
    assert run(["train", *recipe, "--to", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def evaluate(sureshot, place):
    def call(*more, model=None, root="pairs.csv"):
        data = ("--data", "pairs", "--root", place / root, "--cache", place / "cache")
        return sureshot("evaluate", model or place / "run" / "model", *data, *more)

    return call


@pytest.fixture(scope="module")
def scores(place):
    """Similarities and owners of the test captions."""
    scorer = load(str(place / "run/model"))
    split = load_split("pairs", "test", place / "pairs.csv")
    features = extract(split, scorer.encoder, frames=3, cache=place / "cache")
    return similarity(scorer.raw, features), split.owner()


def first(scores, owner):
    """R@1 by a loop."""
    found = [row[own] == max(row) for row, own in zip(scores, owner, strict=True)]
    return 100 * np.mean(found)


def trec(path, column):
    """Numbers of a file of TREC, by query and video."""
    lines = [line.split() for line in path.read_text().splitlines()]
    found = {fields[0]: {} for fields in lines}
    for fields in lines:
        found[fields[0]][fields[2]] = float(fields[column])
    return found


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
        "frozen": True,
        "part": "",
    }
    assert told["post_processed"] == []


def test_raw_scores_come_first_and_what_was_asked_for_beside_them(evaluate, place):
    ran = evaluate("--post", "nnn", "--post", "dsl", "--bank", "5")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "pairs pairs.csv test, 3 videos, 6 captions"
    assert lines[1] == "xpool · tiny, frozen · 3 frames · trained on pairs"
    rows = [line.split("  ")[0] for line in lines if re.match(r"(raw|NNN|DSL)", line)]
    scale = load(place / "run/model").scale  # that of the model, as the published codes have it
    dsl = f"DSL at scale {scale:.3g} (looks at all test queries)"
    assert scale < 25 and rows == ["raw", "NNN (bank: 5 training captions)", dsl, "raw", dsl]


def test_captions_of_videos_that_are_tested_are_in_no_bank(evaluate, place):
    rows = [["videos/0.mp4", "one", "test"], ["videos/9.mp4", "two", "test"]]
    write(place / "shared.csv", rows)
    told = json.loads(evaluate("--post", "nnn", "--json", root="shared.csv").out)
    assert told["post_processed"][0]["name"] == "NNN (bank: 10 training captions)"
    ran = evaluate("--post", "nnn", "--split", "train")
    assert ran.code == 1
    assert "all those of" in ran.err and "are of videos in pairs pairs.csv train" in ran.err


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
        (("--post", "dls"), "--post dls is unknown; known: dsl, inverted_softmax, qb_norm, nnn"),
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
    ranked, judged = trec(tmp_path / "trec/run.txt", 4), trec(tmp_path / "trec/qrels.txt", 3)
    assert len(ranked) == len(judged) == 6
    hits = [judged[query].get(max(row, key=row.get), 0) for query, row in ranked.items()]
    assert 100 * np.mean(hits) == pytest.approx(first(*scores))
    assert ranked["videos/10.mp4#3"]["videos/9.mp4"] == pytest.approx(scores[0][3, 0], abs=1e-6)
    assert (tmp_path / "trec/run.txt").read_text().splitlines()[0].endswith(" my_model")


def test_names_of_videos_with_spaces_are_written_as_one_word(evaluate, place, tmp_path):
    (place / "videos" / "my red\u00a0wall.mp4").write_bytes((place / "videos/0.mp4").read_bytes())
    write(place / "spaces.csv", [["videos/my red\u00a0wall.mp4", "red", "test"]])
    assert evaluate("--trec", tmp_path, root="spaces.csv").code == 0
    assert trec(tmp_path / "qrels.txt", 3) == {
        "videos/my_red_wall.mp4#0": {"videos/my_red_wall.mp4": 1}
    }

"""Figures as a person asks for them."""

import json

import numpy as np
import pytest
from PIL import Image

from sureshot.research.figures.catalogue import FIGURES
from tests.trained import saved
from tests.walls import walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = walls(tmp_path_factory.mktemp("walls"))
    for system in ("duq", "xpool", "uatvr"):
        saved(folder / system, system, "linear")
    saved(folder / "later", "uatvr", "linear", seed=1)
    return folder


@pytest.fixture
def plot(sureshot, place, tmp_path):
    def call(name, *models, more=(), split="train"):
        data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", place / "cache")
        folders = [place / model if (place / model).exists() else model for model in models]
        to = () if "--to" in more else ("--to", tmp_path / "out")
        return sureshot("plot", name, *folders, *data, "--split", split, *to, *more)

    return call


def test_a_figure_is_written_twice_and_both_are_named(plot, tmp_path):
    ran = plot("matrices", "duq")
    assert ran.code == 0
    files = [tmp_path / "out" / f"matrices{suffix}" for suffix in (".png", ".svg")]
    assert ran.out.splitlines() == [str(path) for path in files]
    assert ran.err.splitlines() == ["pairs pairs.csv train, 6 videos, 12 captions"]
    with Image.open(files[0]) as picture:
        assert np.asarray(picture.convert("L")).std() > 10
    assert "<svg" in files[1].read_text("utf-8")


def test_a_file_can_be_named_and_its_numbers_printed(plot, tmp_path):
    wanted = tmp_path / "one.png"
    ran = plot("results", "xpool", more=("--to", wanted, "--json", "-n", "2", "--seed", "3"))
    told = json.loads(ran.out)
    assert (told["schema"], told["figure"]) == (4, "results")
    assert told["model"] == "xpool on tiny, pairs pairs.csv train, 6 videos, 12 captions"
    assert told["files"] == [str(wanted)] and wanted.exists()
    assert len(told["numbers"]["queries"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]
    other = plot("results", "xpool", more=("--to", tmp_path / "a.SVG", "--json", "-n", "2"))
    assert "<svg" in (tmp_path / "a.SVG").read_text("utf-8")
    assert json.loads(other.out)["numbers"] != told["numbers"]


def test_several_checkpoints_are_for_epochs_alone(plot):
    ran = plot("epochs", "uatvr", "later", more=("--json",))
    names = [point["name"] for point in json.loads(ran.out)["numbers"]["checkpoints"]]
    assert [name.rsplit("/", 1)[1] for name in names] == ["uatvr", "later"]
    ran = plot("results", "uatvr", "later")
    assert (ran.code, ran.out) == (1, "")
    assert "results draws one checkpoint, not 2" in ran.err


def test_a_second_model_is_compared_with_the_first(plot, place):
    ran = plot("tokens", "uatvr", more=("--compare-with", place / "later", "--json", "-n", "1"))
    told = json.loads(ran.out)
    assert told["compare_with"] == told["model"] == f"uatvr on tiny, {ran.err.strip()}"
    assert [row["model"] for row in told["numbers"]["rows"]] == [
        "uatvr on tiny (uatvr)",
        "uatvr on tiny (later)",
    ]
    ran = plot("matrices", "duq", more=("--compare-with", "tiny", "--json"))
    told = json.loads(ran.out)
    assert told["compare_with"] == "tiny, pairs pairs.csv train, 6 videos, 12 captions"
    assert told["numbers"]["compare_with"]["model"] == "tiny"


def test_scores_are_corrected_for_hubs_on_request(plot, place, monkeypatch):
    ran = plot("rerank", "xpool", more=("--after", "dsl", "--json"))
    assert json.loads(ran.out)["numbers"]["scores"] == ["score", "dsl"]
    ran = plot("rerank", "xpool")
    assert ran.code == 1 and "does not re-rank by itself, as DUQ does" in ran.err
    ran = plot("rerank", "xpool", more=("--after", "nnn"))
    assert ran.code == 2 and "does not know its own" in ran.err  # it was never trained


def test_training_captions_of_a_trained_model_make_the_bank(sureshot, plot, place):
    recipe = ("train", place / "recipe.toml", "--cache", place / "cache", "--to", place / "run")
    assert sureshot(*recipe).code == 0
    both = [
        json.loads(
            plot("rerank", "run/model", more=("--after", "nnn", "--json", *more), split="test").out
        )["numbers"]
        for more in ((), ("--bank", "1"))
    ]
    assert both[0]["scores"] == ["score", "nnn"]
    ranks = [sum(one[name] for name in ("rose", "fell", "stayed")) for one in both]
    assert ranks == [6, 6]


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("matrices", ("--after", "dsl"), "--after belongs to rerank; matrices shows one score"),
        ("results", ("--compare-with", "duq"), "--compare-with belongs to matrices and tokens"),
        ("rerank", ("--after", "dls"), "--after dls is unknown; known: score, printed, dsl"),
        ("rerank", ("--experts", "x"), "reads no experts; leave out --experts"),
    ],
)
def test_what_does_not_go_together_is_a_typing_error(plot, name, more, message):
    ran = plot(name, "duq", more=more)
    assert ran.code == 2 and message in ran.err


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("matrix", "duq", "Unknown figure 'matrix'; known: matrices"),
        ("embeddings", "xpool", "has no Gaussians to draw"),
        ("matrices", "gone", "neither a folder nor the name"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_nothing_written(plot, tmp_path, name, model, message):
    ran = plot(name, model)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


def test_the_list_needs_nothing_else(sureshot):
    ran = sureshot("plot", "--list")
    assert ran.code == 0
    lines = ran.out.splitlines()
    for (name, one), first, second in zip(FIGURES.items(), lines[::2], lines[1::2], strict=True):
        assert first.split()[0] == name and one.about in first and one.papers in first
        more = "; can compare two models" if name in ("matrices", "tokens") else ""
        assert second.strip() == f"systems: {one.needs}{more}"


def test_without_matplotlib_the_error_says_what_to_install(plot, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = plot("matrices", "duq")
    assert ran.code == 1 and "'matplotlib>=" in ran.err

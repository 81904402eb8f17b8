"""Indexes, checkpoints, cards and runs that were made before still open, and say what they said."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sureshot.cli.app import run
from tests.paths import ROOT

MADE = ROOT / "tests" / "made_before"
THEN = json.loads((MADE / "then.json").read_text("utf-8"))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A copy: whatever opens an index or goes on with a run may write into it."""
    return shutil.copytree(MADE, tmp_path / "made")


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """The JSON that a command prints."""
    capsys.readouterr()
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scores(capsys: pytest.CaptureFixture[str], made: Path, model: Path) -> dict[str, float]:
    """Scores of all captions and clips of the test split."""
    data = ["--data", "pairs", "--root", made / "pairs.csv", "--cache", made / "cache"]
    said(capsys, "evaluate", model, *data, "--trec", made / "trec")
    lines = [line.split() for line in (made / "trec" / "run.txt").read_text().splitlines()]
    return {f"{caption} {clip}": float(score) for caption, _, clip, _, score, _ in lines}


@pytest.mark.parametrize(
    ("index", "query"),
    [(index, query) for index, queries in THEN["searches"].items() for query in queries],
)
def test_an_index_is_searched_and_of_an_older_card_it_is_said(capsys, made, index, query):
    model = ["--model", made / "models" / "xpool"] if index == "by_xpool" else []
    found, then = said(capsys, "search", query, "--db", made / index, *model), THEN["searches"]
    expected = then[index][query]
    # Its percentages were of videos, and reckoned with queries that nothing answers.
    older = any("made by an older Sureshot" in warning for warning in found["warnings"])
    assert found["confidence"] is None and older == (expected["confidence"] is not None)
    hits = {(hit["path"], hit["start"], hit["end"]): hit for hit in found["hits"]}
    assert len(hits) == len(expected["hits"])
    for hit in expected["hits"]:
        now = hits[hit["path"], hit["start"], hit["end"]]
        assert now["score"] == pytest.approx(hit["score"], abs=1e-4)
        assert now["relevant"] is None


def test_judged_queries_give_a_card_that_is_as_good(capsys, made):
    judged = ["--labels", made / "judged" / "judged.jsonl", "--db", made / "judged" / "index"]
    quality, then = said(capsys, "calibrate", *judged)["quality"]["result"], THEN["calibrated"]
    assert quality["auroc"] > then["auroc"] - 0.02
    assert quality["brier"] < then["brier"] + 0.005


@pytest.mark.parametrize("model", THEN["evaluated"])
def test_a_checkpoint_gives_the_same_scores(capsys, made, model):
    assert scores(capsys, made, made / model) == pytest.approx(THEN["evaluated"][model], abs=1e-4)


@pytest.mark.parametrize("asked", THEN["asked"])
def test_a_model_of_answers_gives_the_same_answers(capsys, made, asked):
    clip, question = asked.split(" ", 1)
    answers = said(capsys, "answer", "ask", made / "models" / "answers", made / clip, question)
    shares = {answer["answer"]: answer["share"] for answer in answers["answers"]}
    assert shares == pytest.approx(THEN["asked"][asked], abs=1e-4)


def test_a_run_that_was_stopped_goes_on_to_the_same_model(capsys, made):
    recipe = ["train", made / "recipe.toml", "--to", made / "half", "--cache", made / "cache"]
    said(capsys, *recipe, "--resume")
    found = scores(capsys, made, made / "half" / "model")
    assert found == pytest.approx(THEN["resumed"], abs=1e-3)

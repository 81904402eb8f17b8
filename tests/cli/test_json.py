"""docs/json.md: what it documents is what the commands print, no more and no less."""

import contextlib
import io
import json
import pickle
import re

import pytest

from sureshot.cli.app import run
from tests.asked import asked
from tests.clips import coloured
from tests.judged import judged
from tests.paths import ROOT

DOCUMENT = ROOT / "docs" / "json.md"
SECTIONS = dict(
    part.split("\n", 1) for part in re.split(r"^## ", DOCUMENT.read_text("utf-8"), flags=re.M)[1:]
)
EXAMPLES = {
    name: json.loads(text.split("```json\n")[1].split("```")[0]) for name, text in SECTIONS.items()
}


def shape(value):
    """Names of the fields at every depth and the types of their values."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def fields(value):
    """All names of fields at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(fields, value.values()))
    return set().union(*map(fields, value)) if isinstance(value, list) else set()


def output(*arguments):
    """What a command prints, read as JSON."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run([*map(str, arguments), "--json"])
    (line,) = out.getvalue().splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command prints, from one real run each, in which nothing stays empty."""
    tmp_path = tmp_path_factory.mktemp("json")
    videos, db = tmp_path / "videos", ("--db", tmp_path / "db")
    videos.mkdir()
    for name in ("a", "b"):
        coloured(videos / f"{name}.mp4", ["red"], seconds=1, rate=5)
    (videos / "broken.mp4").write_text("no video")
    (tmp_path / "sentences.txt").write_text("red\nblue\n")
    clips = tmp_path / "clips"
    (tmp_path / "audio.pickle").write_bytes(pickle.dumps({"video7": [[1.0, 2.0]]}))
    place = asked(tmp_path / "walls")
    (place / "plan.toml").write_text('[encoder]\nname = "tiny"\n')
    asking = ("--root", place / "qa", "--videos", place / "videos", "--cache", tmp_path / "cache")
    answers = place / "answers" / "model"
    few = [word for part in ("train", "val", "test") for word in ("--set", f"{part}=2")]
    known = judged(tmp_path, absent=40)
    (tmp_path / "queries.txt").write_text(known.labels[0].query)
    labels = ("--to", known.file, "--db", known.db)
    data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", tmp_path / "cache")
    model, run_in = place / "run" / "model", ("--to", place / "run", "--cache", tmp_path / "cache")
    return {
        "train": output("train", place / "recipe.toml", *run_in),
        "evaluate": output("evaluate", model, *data, "--post", "dsl"),
        "plot": output("plot", "results", model, *data, "--to", tmp_path / "figures"),
        "reproduce": output("reproduce", "--list", "--plan", place / "plan.toml"),
        "experts": output("experts", tmp_path / "audio.pickle", "--to", tmp_path / "experts"),
        "answer train": output(
            *("answer", "train", place / "questions.toml"),
            *("--to", place / "answers", "--cache", tmp_path / "cache"),
        ),
        "answer evaluate": output("answer", "evaluate", answers, *asking, "--against", "DUQ"),
        "answer ask": output("answer", "ask", answers, place / "videos" / "9.mp4", "what?"),
        "index": output("index", videos, "--model", "tiny", *db),
        "describe": output("describe", f"{videos}/a.mp4@0.5", tmp_path / "sentences.txt", *db),
        "judge": output("judge", tmp_path / "queries.txt", *labels),
        "calibrate": output("calibrate", "--labels", known.file, "--db", known.db),
        # With a calibration from here on.
        "search": output("search", known.labels[0].query, "--db", known.db),
        "export": output("export", known.labels[0].query, "--to", clips, "--db", known.db),
        "status": output("status", *db),
        "doctor": output("doctor", *db),
        "remove": output("remove", videos / "a.mp4", *db),
        "synthetic": output("synthetic", "--to", tmp_path / "synthetic", *few),
    }


def test_every_command_with_json_is_documented(printed):
    from tests.cli.test_app import COMMANDS

    with_json = {
        name
        for name, command in COMMANDS.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert set(SECTIONS) == with_json == set(printed)


def test_outputs_have_exactly_the_documented_fields(printed):
    for name, value in printed.items():
        # Lists that stay empty in one of the two have no fields to compare.
        assert list(value) == list(EXAMPLES[name]), name
        for field, documented in EXAMPLES[name].items():
            if documented and value[field]:
                found, wanted = shape(value[field]), shape(documented)
                for hits in (found, wanted) if field == "hits" else ():
                    hits[0].pop("copies")
                for valid in (found, wanted) if field == "valid_for" else ():
                    valid.pop("bank")  # the model of the example has one
                assert found == wanted, (name, field)


def test_every_field_is_explained():
    explained = set(re.findall(r"`([a-z0-9_]+)`", DOCUMENT.read_text("utf-8")))
    for name, example in EXAMPLES.items():
        assert fields(example) <= explained, name


def test_the_documented_checks_are_those_of_the_doctor(printed):
    names = [check["name"] for check in printed["doctor"]["checks"]]
    assert f"always these eight: {', '.join(names)} (" in SECTIONS["doctor"]
    assert {check["name"] for check in EXAMPLES["doctor"]["checks"]} <= set(names)


def test_an_answer_in_python_is_what_the_command_prints(library):
    from sureshot import open_index

    told = output("search", "red", "--db", library.db)
    answer = open_index(library.db).search("red").to_dict()
    assert {**told, "seconds": 0} == {**answer, "seconds": 0}

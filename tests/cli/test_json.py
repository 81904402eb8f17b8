"""docs/json.md lists the fields that the commands print; SURESHOT_UPDATE_DOCUMENTS=1 writes it."""

import contextlib
import dataclasses
import io
import json
import os
import pickle

import pytest

from sureshot.cli.app import run
from sureshot.library import (
    catalog,
    clips,
    doctor,
    index_result,
    judging,
    labels,
    results,
    video_list,
)
from sureshot.metrics import intervals, published, ranks
from sureshot.metrics import report as metrics_report
from sureshot.research import answer_report, answers, evaluation, features, synthetic
from sureshot.research.figures import catalogue
from sureshot.research.reproduction import reproduce
from sureshot.research.training import loop
from sureshot.research.training import run as run_of_training
from sureshot.store import maintenance, rows
from sureshot.trust import card, fit
from sureshot.web import schema
from tests.asked import asked
from tests.clips import coloured
from tests.judged import judged
from tests.paths import ROOT

DOCUMENT = ROOT / "docs" / "json.md"
UPDATE = "SURESHOT_UPDATE_DOCUMENTS"
MARK = "<!-- Below this line: written by tests/cli/test_json.py. -->\n"
FREE = {"numbers", "published", "unread"}  # objects whose fields depend on what was asked
TYPES = {str: "text", bool: "true or false", int: "number", float: "number"}
ABSENT = {  # what is `null` in the samples would be
    "bank": "text",
    "compare_with": "text",
    "gain": "number",
    "forgotten": "true or false",
    "gamma": "number",
    "videos": "number",
}
OBJECTS = {"names", "lines"}  # lists that may be empty in samples
# Dataclasses, or modules of some, that describe the fields of a command.
SOURCES = {
    "search": (results,),
    "describe": (results,),
    "export": (clips, results),
    "index": (index_result,),
    "list": (video_list.VideoPage, rows.VideoRecord, results.NameMatch),
    "status": (catalog, rows.IndexSettings, maintenance.Fault),
    "judge": (judging,),
    "judge --list": (labels,),
    "calibrate": (fit, card),
    "calibrate --show": (),
    "doctor": (doctor,),
    "train": (loop,),
    "train --dry-run": (run_of_training, loop),
    "evaluate": (metrics_report, evaluation, published, ranks, intervals),
    "plot": (catalogue,),
    "reproduce": (reproduce,),
    "reproduce --dry-run": (reproduce,),
    "answer train": (loop,),
    "answer evaluate": (answer_report, answers),
    "answer ask": (answers,),
    "experts": (features.ConvertedExpert,),
    "synthetic": (synthetic,),
    "remove": (),
}
# Fields that ``to_dict`` or a command adds to those of the dataclasses.
ADDED = {
    "accuracy": "percent of the validation questions that are answered right",
    "answers": "the likeliest first",
    "batch": "pairs of a step",
    "captions": "captions that are trained on",
    "card": "file of the card; `null` where it was refused or was not to be saved",
    "checks": "what was looked at",
    "experts": "one for each pickle",
    "decay": "their weight decay",
    "device": "where it runs",
    "epochs": "epochs of the run",
    "date_from": "what says so, as in `hits[].date_from` of search",
    "fix": "what to do about it, in a sentence",
    "frames": "frames per video",
    "exhibits": "tables and figures of the papers",
    "hubness_skewness_10": "skewness of the 10-occurrence of the raw scores",
    "id": "name of the video that does not reveal its place",
    "forgotten": "whether `--forget` removed a calibration of the index; `null` without it",
    "labels": "file of the judgements",
    "learned_from": "what percentages are learned from, or that there are none",
    "model": "name of the model",
    "modified": "when the file last changed, in UTC",
    "part": "`encoder` or `system`",
    "path": "the file",
    "post_processed": "post-processed scores",
    "published": "printed rows of each direction, and why they may not compare",
    "queries": "what was judged, in the order of the file",
    "query": "what was searched for",
    "question": "what was asked",
    "range": "beginning and end",
    "rate": "their full learning rate; 0 where they stay as they are",
    "reason": "why, in a sentence",
    "removed": "how many videos were removed",
    "right": "the right videos",
    "rsum_of": "recalls that `rsum` adds up in both directions",
    "status": "shares are never calibrated",
    "steps": "steps per epoch",
    "tables": "the tables that the plan has data for",
    "tensors": "how many tensors they are",
    "texts": "the sentences, best first",
    "undescribed_videos": "videos without a text: candidates, but no queries of video to text",
    "video": "the file",
    "videos": "videos that are trained on",
    "what": "what is wrong, in a sentence",
    "weights": "how many numbers they are",
    "video_to_text": "captions of a video are one group",
}
# What another class has a field of the same name for.
IN_WORDS = ("hits[].text", "hits[].copies[].text", "hits[].pieces[].text")
PATHS = dict.fromkeys(IN_WORDS, "the same in words") | {
    "tables[].kept": "how many of them are done",
    "tables[].runs": "how many runs it has, without those of earlier tables",
    "tables[].seconds": "time that the others take",
    "tables[].steps": "steps of the others",
    "hits[].text.peak": "the time of the best frame or line, such as 0:07",
    "hits[].text.probability": "the percentage as it is shown, such as 38%",
    "videos[].date": "when it was recorded, else when the file last changed, as ISO 8601 writes it",
    "videos[].seconds": "its length",
    "videos[].text": "the same in words",
}


def described(verb):
    """Descriptions of the fields of each dataclass that a verb prints."""
    return [
        schema.descriptions(kind)
        for source in SOURCES[verb]
        for kind in ([source] if isinstance(source, type) else vars(source).values())
        if dataclasses.is_dataclass(kind)
        and (kind is source or getattr(kind, "__module__", "") == source.__name__)
    ]


def meaning(name, siblings, classes):
    """What the class that is most like an object says of one of its fields."""
    known = [fields for fields in classes if fields.get(name)]
    best = max(known, key=lambda fields: len(fields.keys() & siblings), default=ADDED)
    text = best[name].replace("``", "`").replace("None", "`null`").replace("|", "\\|")
    return text.rstrip(".")


def fields(value, before="", seen=None):
    """Path, name, names of the siblings and type of every field; objects of one shape once."""
    seen = {} if seen is None else seen
    for name, inner in value.items():
        is_list = isinstance(inner, list)
        first = next(iter(inner), "") if is_list else inner
        kind = TYPES.get(type(first), "list" if isinstance(first, list) else "object")
        kind = ABSENT[name] if first is None else kind
        kind = "object" if is_list and not inner and name in OBJECTS else kind
        path = before + name + ("[]" if is_list else "")
        shape = tuple(first) if isinstance(first, dict) else ()
        kind = f"{kind} as `{seen[shape]}`" if shape in seen else kind
        yield path, name, value.keys(), f"list of {kind}" if is_list else kind
        if shape and shape not in seen and name not in FREE:
            seen[shape] = path
            yield from fields(first, f"{path}.", seen)


def document(printed):
    """The generated part of docs/json.md."""
    lines = []
    for verb, value in printed.items():
        classes = described(verb)
        lines += [f"\n## {verb}\n", "| field | type | |", "|---|---|---|"]
        for path, name, siblings, kind in fields(value):
            if path != "schema":
                text = PATHS.get(path) or meaning(name, siblings, classes)
                lines.append(f"| `{path}` | {kind} | {text} |")
    return "\n".join(lines) + "\n"


def output(*arguments):
    """What a command prints, read as JSON."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run([*map(str, arguments), "--json"])
    (line,) = out.getvalue().splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def printed(tmp_path_factory, library):
    """What each command prints, from one real run each, in which nothing stays empty."""
    tmp_path = tmp_path_factory.mktemp("json")
    videos, db = tmp_path / "videos", ("--db", tmp_path / "db")
    videos.mkdir()
    for name in ("a", "b"):
        coloured(videos / f"{name}.mp4", ["red"], seconds=1, rate=5)
    (videos / "broken.mp4").write_text("no video")
    (videos / "a.srt").write_text("1\n00:00:00,100 --> 00:00:00,900\nthe password\n")
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
    judgements = ("--to", known.file, "--db", known.db)
    data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", tmp_path / "cache")
    copied = output("search", "white", "--db", library.db)["hits"][0]["copies"]
    named = output("search", "red", "--db", library.db)["names"]
    model, run_in = place / "run" / "model", ("--to", place / "run", "--cache", tmp_path / "cache")
    values = {
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
        "judge": output("judge", tmp_path / "queries.txt", *judgements),
        "calibrate": output("calibrate", "--labels", known.file, "--db", known.db),
        # With a calibration from here on.
        "search": output("search", known.labels[0].query, "--db", known.db),
        "export": output("export", known.labels[0].query, "--to", clips, "--db", known.db),
        "said": output("search", '"the password"', *db),
        "list": output("list", *db),
        "status": output("status", *db),
        "doctor": output("doctor", *db),
        "remove": output("remove", videos / "a.mp4", *db),
        "synthetic": output("synthetic", "--to", tmp_path / "synthetic", *few),
        "judge --list": output("judge", "--list", *judgements),
        "calibrate --show": output("calibrate", "--show", "--db", known.db),
        "train --dry-run": output("train", place / "recipe.toml", "--dry-run"),
    }
    for verb in ("search", "export"):
        values[verb]["hits"][0]["copies"] = copied
        values[verb]["names"] = named
    (said,) = values.pop("said")["hits"]
    for verb, hits in (("search", "hits"), ("export", "hits"), ("describe", "texts")):
        values[verb][hits][0]["lines"] = said["lines"]
    values["index"] |= {"lines": {}, "worded": {}}  # by source
    # What these runs have none of, as it would be.
    failed = values["index"]["failed"]
    values["index"] |= {"notes": failed, "left_out": failed}
    fault = dataclasses.asdict(maintenance.Fault(what="", fix=""))
    values["status"] |= {"notes": failed, "faults": [fault]}
    for verb in ("search", "export"):
        values[verb]["hits"][0]["pieces"] = [results.Piece(0.0, 1.0).to_dict()]
    values["export"]["failed"] = failed
    quality = dict.fromkeys((field.name for field in dataclasses.fields(card.Quality)), 0)
    values["calibrate"]["quality"] = quality
    cost = reproduce.TableCost(name="", runs=0, kept=0, steps=0, seconds=0.0)
    values["reproduce --dry-run"] = reproduce.Forecast((cost,)).to_dict()
    return values


def test_every_command_with_json_is_listed(printed):
    from tests.cli.test_app import COMMANDS

    with_json = {
        name
        for name, command in COMMANDS.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert {name.partition(" --")[0] for name in SOURCES} == with_json
    assert set(SOURCES) == set(printed)


def test_the_document_lists_what_is_printed(printed):
    introduction, mark, _ = DOCUMENT.read_text("utf-8").partition(MARK)
    assert f"`schema` is {results.JSON_SCHEMA}." in introduction
    whole = introduction + mark + document({verb: printed[verb] for verb in SOURCES})
    if os.environ.get(UPDATE):
        DOCUMENT.write_text(whole, "utf-8")
    assert mark and DOCUMENT.read_text("utf-8") == whole, f"{UPDATE}=1 writes it"
    assert "|  |" not in whole, "a field has no description"


def test_an_answer_in_python_is_what_the_command_prints(library):
    from sureshot import open_index

    told = output("search", "red", "--db", library.db)
    answer = open_index(library.db).search("red").to_dict()
    assert {**told, "seconds": 0} == {**answer, "seconds": 0}

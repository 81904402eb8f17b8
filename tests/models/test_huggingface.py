"""A trained model on the hub: published, downloaded, evaluated and searched with, over HTTP."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sureshot.cli.app import run
from sureshot.errors import ModelError
from sureshot.models.checkpoint import Checkpoint, model_card
from sureshot.models.huggingface import MEASURED
from sureshot.models.load import load
from sureshot.research.calibration import calibrate
from sureshot.research.evaluation import evaluate
from sureshot.research.training.recipe import Recipe
from sureshot.trust.card import load_card
from tests.cli.terminal import spawn
from tests.hub_server import TOKEN, Hub, serving
from tests.judged import split as split_of_photos
from tests.trained import checkpoint, saved
from tests.walls import walls

NAME = "me/walls"
PUBLISH = """
import sureshot, sys
from sureshot.cli.app import run
name, folder, videos, *pairs = sys.argv[1:]
print(sureshot.load(folder).push_to_hub(name))
assert run(["index", videos, "--model", name]) == 0
assert run(["evaluate", name, *pairs]) == 0
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, for this process as for those that a test starts, and a home that has met none."""
    for name in [name for name in os.environ if name.startswith(("HF_", "TRANSFORMERS_"))]:
        monkeypatch.delenv(name)
    home = {"HF_HOME": "hf", "XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data"}
    for name, folder in home.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        go_to(hub.address, monkeypatch)
        yield hub


def go_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a hub that of this process, in which the client has read its environment already."""
    files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", files)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose recipe names folders of this machine, with results and a calibration."""
    place = tmp_path_factory.mktemp("model")
    pairs = walls(place / "walls") / "pairs.csv"
    recipe = Recipe.load(pairs.parent / "recipe.toml").to_dict()
    made = checkpoint("clip4clip", "none", recipe=recipe, note="Trained on walls.")
    made.save_pretrained(place / "model")
    evaluate(place / "model", "pairs", pairs, record=True, cache=place / "c")
    photos = split_of_photos(place, captions=4)
    calibrate(place / "model", "pairs", photos, cache=place / "c", date="2026-11-30")
    (place / "model" / "notes.txt").write_text("mine")
    return place


@pytest.fixture
def model(place: Path, tmp_path: Path) -> Path:
    """The same in a folder of the test."""
    return shutil.copytree(place / "model", tmp_path / "model")


def test_a_published_model_is_evaluated_and_indexed_by_its_name(
    place: Path, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As users do: in processes that know only the address of the hub."""
    model, videos = place / "model", place / "walls" / "videos"
    pairs = ["--data", "pairs", "--root", str(place / "walls" / "pairs.csv"), "--json"]
    made = spawn(NAME, model, videos, *pairs, code=PUBLISH)
    assert made.out.startswith(f"{hub.address}/{NAME}/commit/"), made.err
    assert run(["evaluate", str(model), *pairs, "--cache", str(tmp_path / "c")]) == 0
    there = json.loads(made.out[made.out.index("\n{") :])
    assert json.loads(capsys.readouterr().out)["raw"] == there["raw"]
    asked = len(hub.asked)  # it is in the cache now, and the hub is left alone
    answer = json.loads(spawn("search", "red then green", "--json").out)
    assert len(hub.asked) == asked
    assert answer["model"] == NAME
    assert answer["confidence"] is not None  # its calibration came with it


def test_what_is_published_is_of_the_model_and_not_of_this_machine(place: Path, hub: Hub) -> None:
    model = place / "model"
    load(str(model), "cpu").push_to_hub(NAME)
    files = hub.newest(NAME)
    expected = {"README.md", "config.json", "model.safetensors", "trust.json", MEASURED}
    assert set(files) == expected
    assert not [name for name, held in files.items() if str(place).encode() in held]
    assert json.loads(files["config.json"])["recipe"]["train"][0]["root"] == "pairs.csv"
    (measured,) = json.loads((model / MEASURED).read_text("utf-8"))
    best = measured["recalls"][0]["R@1"]
    assert len(best) == 3
    text = files["README.md"].decode()
    assert text == model_card(model, NAME)
    assert "Trained on walls." in text
    assert f"sureshot index --model {NAME}" in text
    assert "pairs.csv test, 3 videos, 6 captions" in text
    assert f"| text to video | 6 | {best[0]:.1f} [{best[1]:.1f}, {best[2]:.1f}]" in text
    known = load_card(model / "trust.json").valid_for
    assert f"of 2026-11-30: learned from {known.queries} queries about 60 videos" in text


def test_a_card_without_results_or_calibration_says_so(tmp_path: Path) -> None:
    text = model_card(saved(tmp_path / "model", "duq", "none"))
    assert "What it was trained on is not recorded." in text
    assert "None recorded; `sureshot evaluate FOLDER --data … --record` does." in text
    assert "None: searches show no percentages" in text


def test_results_of_one_test_are_recorded_once(place: Path, model: Path) -> None:
    pairs = place / "walls" / "pairs.csv"
    for split in ("val", "test", "val"):
        evaluate(model, "pairs", pairs, split=split, record=True, cache=place / "c")
    tests = [one["test"] for one in json.loads((model / MEASURED).read_text("utf-8"))]
    assert len(tests) == len(set(tests)) == 2
    assert all(test in (model / "README.md").read_text("utf-8") for test in tests)


def test_a_revision_is_that_version_and_another_is_refused(
    place: Path, hub: Hub, tmp_path: Path
) -> None:
    model = place / "model"
    load(str(model), "cpu").push_to_hub(NAME)
    (first,) = hub.models[NAME]
    checkpoint("xpool", "linear", seed=1).save_pretrained(tmp_path / "other")
    other = load(str(tmp_path / "other"), "cpu")
    other.push_to_hub(NAME)
    assert set(hub.newest(NAME)) == {"README.md", "config.json", "model.safetensors"}
    # An older version is asked for last, and does not become the current one.
    found = [load(NAME, "cpu", revision=version).fingerprint for version in ("main", first)]
    assert found == [other.fingerprint, load(str(model), "cpu").fingerprint]
    assert load(NAME, "cpu").fingerprint == other.fingerprint
    with pytest.raises(ModelError, match="it has no version v9"):
        load(NAME, "cpu", revision="v9")


def test_a_model_that_is_not_there_or_a_hub_that_is_not_is_one_sentence(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for address, said in (
        (hub.address, "no public model of this name"),
        ("http://127.0.0.1:9", "connect once, or use --model bundled"),
    ):
        go_to(address, monkeypatch)
        assert run(["evaluate", NAME, "--data", "pairs", "--root", "pairs.csv"]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and said in err


@pytest.mark.parametrize("token", ["hf_reads", ""])
def test_who_may_not_publish_is_told_how(
    place: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ModelError, match=r"does not let you publish me/walls.* hf auth login"):
        load(str(place / "model"), "cpu").push_to_hub(NAME)
    assert not any(hub.models.values())


def test_what_nobody_else_could_use_is_not_published(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", "xpool", "none")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    model = load(str(folder), "cpu")
    config["encoder"]["name"] = str(tmp_path / "clip")
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"a folder of this machine.*encoder\.name"):
        model.push_to_hub(NAME)
    with pytest.raises(ModelError, match=r"is no name on the hub; .* such as me/my-model"):
        model.push_to_hub("walls")
    with pytest.raises(ModelError, match="tiny is an encoder, not a trained model"):
        load("tiny").push_to_hub(NAME)


def test_a_saved_model_is_the_model_and_replaces_nothing_else(
    place: Path, model: Path, tmp_path: Path
) -> None:
    (model / "notes.txt").unlink()
    first = load(str(model), "cpu")
    first.save_pretrained(tmp_path / "copy")
    second = type(first).from_pretrained(tmp_path / "copy", "cpu")
    assert second.fingerprint == first.fingerprint
    assert sorted(p.name for p in (tmp_path / "copy").iterdir()) == sorted(
        p.name for p in model.iterdir()
    )
    texts = ["red then green", "blue"]
    np.testing.assert_array_equal(np.asarray(first.encode_query(texts)), second.encode_query(texts))
    np.testing.assert_array_equal(first.encode_query("blue"), second.encode_query(["blue"]))
    with pytest.raises(ModelError, match="holds something else"):
        first.save_pretrained(place / "walls")
    with pytest.raises(ModelError, match="tiny is an encoder"):
        load("tiny").save_pretrained(tmp_path / "tiny")
    assert Checkpoint.from_pretrained(tmp_path / "copy").note == "Trained on walls."


def test_a_search_does_not_import_the_client_of_the_hub(tmp_path: Path) -> None:
    code = (
        "import sys; from sureshot.models.load import load_searchable; load_searchable('bundled');"
        "print('huggingface_hub' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"

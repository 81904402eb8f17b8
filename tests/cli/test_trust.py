"""`sureshot evaluate --trust` as a person types it."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from sureshot.datasets import load_split
from sureshot.models.bank import Bank
from sureshot.models.encoders.tiny import TinyEncoder
from sureshot.models.retriever import load
from sureshot.research.features import extract
from sureshot.research.scorer import Scorer
from sureshot.research.training.correction import encoded
from sureshot.trust.card import Calibration
from sureshot.trust.fitting import fit
from sureshot.trust.measure import measure
from tests import judged
from tests.cli.test_json import DOCUMENT, fields, shape
from tests.trained import saved
from tests.walls import walls

FIGURES = [
    f"trust-{name}{suffix}"
    for name in ("reliability", "risk", "sets")
    for suffix in (".png", ".svg")
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Photos with captions, some easy and some vague, and models to try on them."""
    folder = tmp_path_factory.mktemp("photos")
    judged.split(folder, photos=64, captions=4)
    for system in ("duq", "xpool", "clip4clip"):
        saved(folder / system, system, "none")
    return folder


@pytest.fixture
def evaluate(sureshot, place):
    def call(*more, model="tiny", root=None, split="val"):
        data = ("--data", "pairs", "--root", root or place / "pairs.csv", "--split", split)
        return sureshot("evaluate", model, *data, "--cache", place / "cache", *more)

    return call


@pytest.fixture(scope="module")
def scores(place):
    split = load_split("pairs", "val", place / "pairs.csv")
    scorer = Scorer.load("tiny")
    features = extract(split, scorer.encoder, frames=12, cache=place / "cache")
    return scorer.similarity(features), split.owner()


@pytest.fixture
def card(scores, tmp_path):
    """Writes a card, and returns its file."""

    def made(**more):
        found, owner = scores
        known = {"model": Scorer.load("tiny").fingerprint, "dataset": "other photos", **more}
        relevant = owner[:, None] == np.arange(found.shape[1])
        made = fit(found, relevant, owner, sought=owner, date="2026-01-02", **known)
        path = tmp_path / "card.json"
        path.write_text(made.to_json(), "utf-8")
        return path

    return made


def test_the_report_comes_after_the_ordinary_one(evaluate, place, scores):
    plain, ran = evaluate(), evaluate("--trust")
    assert ran.code == 0
    title = "pairs pairs.csv val, 64 videos, 256 captions"
    expected = measure(*scores, title=title).text()
    assert ran.out == f"{plain.out}\n{expected}"
    assert "trust: the first result is the annotated video" in ran.out
    assert "P(first is right)" in ran.out and "trust" not in plain.out


def test_json_has_it_under_its_key(evaluate, scores):
    plain, told = (json.loads(evaluate("--json", *more).out) for more in ((), ("--trust",)))
    trust = told.pop("trust")
    assert told == plain
    assert trust.pop("files") == []
    title = "pairs pairs.csv val, 64 videos, 256 captions"
    assert trust == json.loads(json.dumps(measure(*scores, title=title).to_dict()))
    assert trust["title"] == title


def test_the_documented_fields_are_those_that_are_printed(evaluate):
    """The example in docs/json.md is about data like these."""
    section = DOCUMENT.read_text("utf-8").split("With `--trust`")[1].split("\n## ")[0]
    documented = json.loads(section.split("```json\n")[1].split("```")[0])["trust"]
    told = json.loads(evaluate("--trust", "--json").out)["trust"]
    assert list(documented) == list(told)
    assert {k: shape(v) for k, v in documented.items()} == {k: shape(v) for k, v in told.items()}
    explained = set(re.findall(r"`([a-z0-9_]+)`", DOCUMENT.read_text("utf-8")))
    assert fields(documented) <= explained


def test_figures_are_written_and_named(evaluate, tmp_path):
    ran = evaluate("--trust", "--plots", tmp_path / "figures")
    paths = [tmp_path / "figures" / name for name in FIGURES]
    assert ran.out.splitlines()[-6:] == [str(path) for path in paths]
    for path in paths[::2]:
        with Image.open(path) as picture:
            assert np.asarray(picture.convert("L")).std() > 10
    told = json.loads(evaluate("--trust", "--json", "--plots", tmp_path / "figures").out)
    assert told["trust"]["files"] == [str(path) for path in paths]


def test_uncertainties_of_the_paper_stand_beside_ours(evaluate, place):
    told = json.loads(evaluate("--trust", "--json", model=place / "duq").out)["trust"]
    names = [row["signal"] for row in told["orders"]]
    assert names[-3:] == ["minus vacuity", "minus distance vacuity", "minus spread"]
    model = place / "clip4clip"
    told = json.loads(evaluate("--trust", "--json", model=model).out)["trust"]
    assert not [row for row in told["orders"] if row["signal"].startswith("minus")]
    expected = f"softmax, model's scale {Scorer.load(str(model)).scale:.4g}"
    assert told["probabilities"][2]["signal"] == expected


def test_a_card_is_measured(evaluate, card):
    path = card()
    told = json.loads(evaluate("--trust", "--card", path, "--json").out)["trust"]
    expected = "calibrated by a card on 256 queries about 64 videos of other photos, 2026-01-02"
    assert told["calibration"] == expected
    assert told["warnings"] == [] and told["risks"][0]["asked"] == 1


def test_a_model_with_a_bank_is_measured_and_calibrated_with_it(evaluate, sureshot, place):
    folder = saved(place / "banked", "clip4clip", "none")
    encoder, split = load(str(folder)), load_split("pairs", "val", place / "pairs.csv")
    windows = extract(split, TinyEncoder(), frames=12, cache=place / "cache")
    videos = Scorer.load(str(folder)).stored(windows)
    texts = encoded(encoder, [caption.text for caption in split.captions[:40]], False)
    first = videos[0][:5], videos[1][:5], np.zeros(5, np.float32)
    Bank(texts, 4, 0.5, *first, encoder.fingerprint, "a test").save(folder)
    ran = evaluate("--trust", model=folder)
    assert "scores: less the hub correction (k=4, weight 0.5; 40 captions of a test)" in ran.out
    plain = json.loads(evaluate("--trust", "--json", model=place / "clip4clip").out)
    told = json.loads(evaluate("--trust", "--json", model=folder).out)
    assert told["raw"] == plain["raw"]  # the same weights, and recalls are raw
    assert told["trust"]["orders"] != plain["trust"]["orders"]
    root = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", place / "cache")
    made = sureshot("calibrate", folder, *root, "--split", "val", "--json")
    assert made.code == 0, made.err
    valid = json.loads(made.out)["valid_for"]
    assert valid["bank"] == Bank.load(folder, encoder.fingerprint).digest and valid["elsewhere"]
    assert evaluate("--trust", "--card", folder / "trust.json", model=folder).code == 0
    (folder / "bank.safetensors").unlink()
    ran = evaluate("--trust", "--card", folder / "trust.json", model=folder)
    assert ran.code == 1 and "another hub correction" in ran.err


def test_a_card_of_this_very_split_is_told_of(evaluate, card):
    path = card(dataset="pairs pairs.csv val, 64 videos, 256 captions")
    ran = evaluate("--trust", "--card", path)
    assert re.search(r"^! The card was made on the very data", ran.out, re.MULTILINE)


def test_a_card_of_a_checkpoint_is_one_of_its_index(evaluate, card, place):
    """The fingerprint is that of the whole model, not of the encoder below it."""
    model = place / "xpool"
    for fingerprint, code in ((load(str(model)).fingerprint, 0), (load("tiny").fingerprint, 1)):
        assert evaluate("--trust", "--card", card(model=fingerprint), model=model).code == code


def test_a_card_that_cannot_be_used_is_told_of_before_anything_is_decoded(
    evaluate, card, place, tmp_path
):
    other = card(model="another")
    (tmp_path / "text").write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    edited = tmp_path / "edited"
    edited.write_text(other.read_text().replace('"absent": 0.0', '"absent": 0.5', 1))
    for path, message in (
        (other, "is not about tiny. The calibration is of another model."),
        (tmp_path / "text", "The calibration card cannot be used: it is another file"),
        (tmp_path / "bytes", "is no calibration card"),
        (tmp_path / "gone", "gone cannot be read: no such file or directory"),
        (tmp_path, "cannot be read: is a directory"),
        (edited, "was changed after it was made"),
    ):
        ran = evaluate("--trust", "--card", path, "--cache", place / "never")
        assert (ran.code, ran.out) == (1, "") and message in ran.err
        assert "Traceback" not in ran.err
    assert not (place / "never").exists()


@pytest.mark.parametrize("option", ["--card", "--plots"])
def test_what_is_about_trust_needs_it(evaluate, option, tmp_path):
    ran = evaluate(option, tmp_path / "x")
    assert (ran.code, ran.out) == (2, "")
    assert f"{option} is about --trust" in ran.err


def test_a_folder_that_cannot_be_made_is_named(evaluate, tmp_path):
    (tmp_path / "file").touch()
    ran = evaluate("--trust", "--plots", tmp_path / "file")
    assert ran.code == 1 and "cannot be written" in ran.err and "Traceback" not in ran.err


def test_a_split_too_small_to_calibrate_on_says_so(evaluate, tmp_path):
    folder = walls(tmp_path / "walls")
    ran = evaluate("--trust", root=folder / "pairs.csv", split="train")
    assert ran.code == 0
    assert "! Nothing is calibrated here." in ran.out or "nothing to tell apart" in ran.out
    (folder / "one.csv").write_text("video,caption,split\nvideos/0.mp4,red,val\n")
    ran = evaluate("--trust", "--plots", tmp_path / "plots", root=folder / "one.csv")
    assert ran.code == 0 and "! The gallery has one video" in ran.out
    assert not (tmp_path / "plots").exists()


def test_a_card_reads_as_it_was_written(card):
    assert Calibration.from_json(card().read_text("utf-8")).valid_for.dataset == "other photos"

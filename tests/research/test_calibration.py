"""Cards from the captions of a split."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.load import load
from sureshot.paths import reference_card
from sureshot.progress import Silent
from sureshot.research.calibration import asked, calibrate, card_of_model, check_unseen
from sureshot.research.features import extract
from sureshot.research.scores import similarity
from sureshot.research.training.recipe import Recipe
from sureshot.trust.card import Calibration
from sureshot.trust.fit import fit_card
from tests.heard import Heard
from tests.judged import split as split_of_photos
from tests.trained import saved
from tests.walls import walls


def test_the_bundled_model_keeps_the_percentages_it_brings(monkeypatch):
    with pytest.raises(SureshotError, match=r"brings percentages.*--to"):
        card_of_model(replace(load("tiny"), name="bundled"))


def test_the_card_of_a_checkpoint_is_in_it_and_that_of_an_encoder_is_the_users(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = saved(tmp_path / "model", "xpool", "none")
    assert card_of_model(load(str(folder), "cpu")) == folder / "trust.json"
    tiny = load("tiny")
    assert card_of_model(tiny) == reference_card(tiny.fingerprint)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "trust.json"))
    (folder / "trust.json").touch()
    with pytest.raises(SureshotError, match=r"cannot be made: .*--to"):
        card_of_model(tiny)


def test_what_a_model_was_trained_on_is_refused_where_it_is_at_hand(tmp_path):
    place = walls(tmp_path / "walls")
    split = load_split("pairs", "train", place / "pairs.csv")
    folder = saved(tmp_path / "model", "xpool", "none")
    check_unseen(load(str(folder), "cpu"), split, Silent())  # nobody knows what it was trained on
    recipe = Recipe.load(place / "recipe.toml").to_dict()
    model = replace(Checkpoint.from_pretrained(folder), recipe=recipe)
    model.save_pretrained(folder)
    with pytest.raises(SureshotError, match="cannot be calibrated on what it was trained on"):
        check_unseen(load(str(folder), "cpu"), split, Silent())
    check_unseen(
        load(str(folder), "cpu"), load_split("pairs", "val", place / "pairs.csv"), Silent()
    )
    (place / "pairs.csv").unlink()
    check_unseen(load(str(folder), "cpu"), split, Silent())


def test_a_card_is_noted_on_the_page_of_its_model_and_what_chose_the_epoch_is_said(tmp_path):
    place, data = walls(tmp_path / "walls"), split_of_photos(tmp_path, captions=4)
    folder = saved(tmp_path / "model", "xpool", "none")
    recipe = Recipe.load(place / "recipe.toml").to_dict()
    recipe["val"] = {"dataset": "pairs", "root": str(data), "split": "val"}
    replace(Checkpoint.from_pretrained(folder), recipe=recipe).save_pretrained(folder)
    assert "no percentages" in (folder / "README.md").read_text()
    told = Heard()
    calibrate(str(folder), data, cache=tmp_path / "cache", progress=told)
    assert any("its epoch or hub correction was chosen" in line for line in told.lines)
    page = (folder / "README.md").read_text()
    assert "no percentages" not in page and "pairs pairs.csv val, 60 videos" in page


def test_a_split_becomes_the_card_of_a_model(tmp_path):
    data = split_of_photos(tmp_path, captions=4)
    known = {"cache": tmp_path / "cache", "date": "2026-11-30"}
    done = calibrate("tiny", data, to=tmp_path / "card.json", **known)
    assert done.file == tmp_path / "card.json"
    assert Calibration.from_json(done.file.read_text("utf-8")) == done.card
    assert done.card.valid_for.dataset == "pairs pairs.csv val, 60 videos, 240 captions"
    scorer, split = load("tiny"), load_split("pairs", "val", data)
    features = extract(split, scorer.encoder, frames=scorer.frames, cache=known["cache"])
    captions, halves, keywords, questions = asked(scorer, features, known["cache"])
    scores, owner = similarity(scorer.raw, features), split.owner()
    np.testing.assert_allclose(captions.scores, scores, atol=1e-6)
    assert (captions.relevant == (owner[:, None] == np.arange(60))).all()
    assert halves.relevant.sum() == len(halves.video) and questions.relevant.any(1).all()
    assert (keywords.about.words <= 3).all() and keywords.relevant.sum(1).max() > 1
    about = {"dataset": features.split.title(), "date": "2026-11-30"}
    about |= {"source": "reference", "photos": True}
    parts = [captions, halves, keywords, questions]
    fitted = fit_card(parts, model=scorer.fingerprint, **about)
    assert done.card.first == fitted.first and done.card.valid_for.source == "reference"
    assert (done.gallery, done.card.valid_for.videos) == (60, 60)
    other = fit_card(parts, model=scorer.fingerprint, **about | {"source": "tested"})
    assert fitted.first.bias < other.first.bias and fitted.present == other.present
    again = calibrate("tiny", data, save=False, **known)
    assert (again.file, again.card) == (None, done.card)

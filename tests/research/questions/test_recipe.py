"""Recipes for answers: their defaults, their paths, and what they refuse."""

import pytest

from sureshot.errors import SureshotError
from sureshot.research.answers import AnswerRecipe
from tests.asked import asked, line, put

LEAST = {"train": {"root": "qa"}, "system": {"name": "xpool"}}


def recipe(tmp_path, **more):
    return AnswerRecipe.from_dict({**LEAST, **more}, tmp_path)


@pytest.fixture
def place(tmp_path):
    return asked(tmp_path)


def test_every_question_is_asked_in_each_epoch_unless_told_otherwise(tmp_path):
    training = recipe(tmp_path).training
    assert (training.epochs, training.batch, training.captions) == (5, 32, "all")
    assert (training.rate, training.encoder_rate) == (1e-4, 1e-7)
    training = recipe(tmp_path, training={"captions": "one", "seed": 3}).training
    assert (training.epochs, training.captions, training.seed) == (5, "one", 3)


def test_relative_paths_start_at_the_file(place):
    read = AnswerRecipe.load(place / "questions.toml", ["val.ids=ids.txt"])
    assert read.train.root == place / "qa" and read.train.videos == place / "videos"
    assert read.val.ids == place / "ids.txt" and read.val.split == "val"
    assert read.encoder.name == "tiny" and read.retrieval is None
    begun = {"train": {"root": "qa"}, "retrieval": "runs/model", "frozen": True}
    assert AnswerRecipe.from_dict(begun, place).retrieval == place / "runs/model"


def test_a_recipe_is_read_as_it_was_written(place):
    for more in ([], ["training.seed=7", "head.answers=20", "encoder.name=bridge"]):
        read = AnswerRecipe.load(place / "questions.toml", more)
        (place / "again.toml").write_text(read.to_toml())
        assert AnswerRecipe.load(place / "again.toml") == read
        assert AnswerRecipe.from_dict(read.to_dict(), place / "elsewhere") == read
    begun = {"train": {"root": "qa"}, "retrieval": "runs/model", "frozen": True}
    read = AnswerRecipe.from_dict(begun, place)
    assert AnswerRecipe.from_dict(read.to_dict(), place / "elsewhere") == read


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"train": {"root": "qa", "split": "test"}}, r"train\.split is 'test'"),
        ({"val": {"root": "qa", "split": "test"}}, r"val\.split is 'test'"),
        ({"system_weight": -1}, "system_weight is -1"),
        ({"system": {}}, "names no system.*or a trained model as retrieval"),
        ({"frozen": True}, "nothing trained to freeze"),
        ({"retrieval": "r"}, r"retrieval brings its own system; leave \[system\] out\."),
        ({"retrieval": "r", "system": {}, "stem": {"width": 4}}, r"leave \[stem\] out\."),
        (
            {"retrieval": "r", "system": {}, "encoder": {"frames": 3}},
            r"leave \[encoder\] out but for device and tuned",
        ),
        (
            {"retrieval": "r", "system": {}, "frozen": True, "encoder": {"tuned": True}},
            "frozen and encoder.tuned are both true",
        ),
        ({"training": {"keep": "best"}}, "no validation set to tell it; give"),
        ({"training": {"epoch": 1}}, r"Unknown setting training\.epoch; known"),
        ({"training": 3}, "Setting training is 3; expected a table"),
        ({"head": {"answers": 1}}, r"head\.answers is 1"),
        ({"hold_out": 3}, "Unknown setting hold_out; known: train, val, retrieval"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, more, reason):
    with pytest.raises(SureshotError, match=reason):
        recipe(tmp_path, **more)


def test_questions_of_the_recipe_are_about_other_videos_than_those_it_is_chosen_on(place):
    train, val = AnswerRecipe.load(place / "questions.toml").questions()
    assert train.title() == "qa train, 6 videos, 12 questions"
    assert val.title() == "qa val, 3 videos, 6 questions"
    put(place / "qa" / "val.jsonl", [line(2, "who?", "man"), line(7, "who?", "man")])
    with pytest.raises(SureshotError, match="share 1 videos: 2"):
        AnswerRecipe.load(place / "questions.toml").questions()


def test_without_validation_there_is_none(tmp_path):
    place = asked(tmp_path)
    values = {**LEAST, "train": {"root": "qa", "videos": "videos"}}
    assert AnswerRecipe.from_dict(values, place).questions()[1] is None

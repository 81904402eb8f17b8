"""The function behind `sureshot answer evaluate`; tests/cli/test_answer.py has the words."""

import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.answers import AnswerRecipe
from tests.asked import asked
from tests.research.questions.test_checkpoint import made


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Questions, and a model that was not trained on them but says so."""
    folder = asked(tmp_path_factory.mktemp("asked"))
    recipe = AnswerRecipe.load(folder / "questions.toml").to_dict()
    made(answers=("red", "green", "blue"), recipe=recipe).save(folder / "model")
    return folder


def evaluate(place, **more):
    data = {"videos": place / "videos", "cache": place / "cache", **more}
    return research.evaluate_answers(place / "model", place / "qa", device="cpu", **data)


def test_right_answers_are_counted_as_the_model_gives_them(place):
    found = evaluate(place, split="val")
    answerer = research.Answerer.load(place / "model", "cpu")
    questions = AnswerRecipe.load(place / "questions.toml").val.load()
    given = [
        answerer.ask(questions.split.items[row.video].path, row.text, limit=1)[0].answer
        for row in questions.split.captions
    ]
    right = sum(one == other for one, other in zip(given, questions.answers, strict=True))
    assert found.overall.value == pytest.approx(100 * right / 6)
    assert found.notes == ("qa val, 3 videos, 6 questions",)
    assert found.to_dict()["overall"]["n"] == 6


def test_videos_that_were_trained_on_are_noted(place):
    notes = evaluate(place, split="train").notes
    assert len(notes) == 2 and notes[1].startswith("! qa ") and "share 6 videos" in notes[1]


def test_an_unknown_method_is_refused_before_a_video_is_decoded(place):
    with pytest.raises(SureshotError, match="known: VQA-T, MERLOT"):
        evaluate(place, against=["X-Pool"], cache=place / "never")
    assert not (place / "never").exists()

"""Shares of right answers against counting by hand, and what a report says of them."""

from pathlib import Path

import pytest

from sureshot import research
from sureshot.datasets import Caption, Item, Split
from sureshot.datasets.questions import PUBLISHED, Questions
from sureshot.errors import SureshotError
from sureshot.metrics.published import published_answers
from sureshot.research.answer_report import answer_report
from sureshot.research.answers import AnswerRecipe
from tests.asked import asked
from tests.research.test_answers import made

TRUE = ["man", "dog", "man", "cook", "sing", "bee"]
GIVEN = ["man", "dog", "dog", "cook", "cook", "man"]
VIDEO = [0, 0, 1, 1, 2, 2]
KINDS = ["who", "who", "who", "what", "what", "where"]
KNOWN = ("man", "dog", "cook", "sing")


def reported(given=GIVEN, true=TRUE, video=VIDEO, kinds=KINDS, *, whole=False, **more):
    items = tuple(Item(str(number), Path(str(number))) for number in range(max(video) + 1))
    captions = tuple(Caption("?", number) for number in video)
    sizes = {"dataset": PUBLISHED, "expected": len(items)} if whole else {"dataset": "walls"}
    split = Split(name="test", protocol="", items=items, captions=captions, **sizes)
    asked = Questions(split, tuple(true), tuple(kinds))
    return answer_report(given, asked, made(answers=KNOWN, often=(5, 2, 0, 1)), **more)


def shown(line):
    return line.name, round(line.value, 3), line.n


def test_unknown_answers_count_as_wrong_and_are_counted():
    found = reported()
    assert shown(found.overall) == ("all questions", 50.0, 6)
    assert found.unknown == 1
    assert shown(found.answerable)[1:] == (60.0, 5)
    assert (found.videos, found.vocabulary) == (3, 4)
    assert shown(found.constant) == ("always 'man'", 33.333, 6)
    assert [shown(line) for line in found.kinds] == [
        ("who", 66.667, 3),
        ("what", 50.0, 2),
        ("where", 0.0, 1),
    ]


def test_intervals_draw_whole_videos():
    """Two videos, one all right, one all wrong: a draw is 0, 50 or 100, whatever the questions."""
    given, true = ["man"] * 40, ["man"] * 20 + ["dog"] * 20
    found = reported(given, true, [0] * 20 + [1] * 20, ["who"] * 40)
    assert (found.overall.low, found.overall.value, found.overall.high) == (0, 50, 100)
    each = reported(given, true, range(40), ["who"] * 40).overall
    assert 30 < each.low < 40 < 60 < each.high < 70
    twice = [number // 2 for number in range(80)]
    wrong = reported(["man"] * 80, ["dog"] * 80, twice, ["who"] * 80).overall
    assert wrong.value == wrong.low == 0 and 8 < wrong.high < 9  # none in 40 videos is not never
    assert reported(resamples=50, seed=1) != reported(resamples=50, seed=2)
    assert reported(resamples=50, seed=1) == reported(resamples=50, seed=1)


def test_what_has_no_interval_has_a_value_still():
    one = reported(["man"], ["man"], [0], ["who"])
    assert (one.overall.value, one.overall.low, one.overall.high) == (100, None, None)
    assert "95 %" not in one.text() and "[" not in one.text()
    none = reported(["man"], ["bee"], [0], ["who"])
    assert (none.answerable.value, none.answerable.n) == (None, 0)
    assert "-  " in none.text().splitlines()[-2]


def test_the_text_says_what_the_numbers_are():
    found = reported(absent=2, resamples=20)
    lines = found.text().splitlines()
    assert lines[:4] == [
        "walls test, 3 videos, 6 questions",
        "xpool, encoder tiny, 6 frames, 4 answers known",
        "6 questions about 3 videos",
        "[low, high] is a 95 % interval, from 20 resamples of whole videos, seed 0.",
    ]
    assert lines[5].startswith("all questions ") and lines[5].endswith("n = 6")
    assert " 50.0 [" in lines[5]
    assert [line.split()[0] for line in lines[6:11]] == [
        "who",
        "what",
        "where",
        "always",
        "questions",
    ]
    assert lines[11].startswith("1 question (16.7 %) with an answer outside of the vocabulary")
    assert lines[12:] == ["2 questions left out: the video is not there."]
    assert "Published" not in found.text()


def test_printed_rows_stand_with_what_speaks_against_them():
    text = reported(against=["published"]).text()
    assert (
        "! Other data, so the numbers do not compare: 6 questions about 3 videos here, 72821"
        in text
    )
    assert "leave questions outside of the vocabulary out" in text
    assert "VQA-T" in text and "DUQ              47.8  (DUQ-T5)  as printed: neither" in text
    same = reported(against=["hbi"], whole=True)
    assert [row.method for row in same.published] == ["HBI"]
    assert "Other data" not in same.text() and "whether they are the same" in same.text()


def test_a_method_that_nothing_is_printed_of_is_refused():
    with pytest.raises(SureshotError, match=r"method 'X-Pool'; known: VQA-T, MERLOT, .*DUQ"):
        published_answers("X-Pool")
    with pytest.raises(SureshotError, match="'X-Pool'"):
        reported(against=["X-Pool"])


def test_the_printed_table():
    rows = published_answers()
    assert [(row.method, row.accuracy) for row in rows] == [
        ("VQA-T", 41.5),
        ("MERLOT", 43.1),
        ("Co-Tokenization", 45.7),
        ("EMCL-QA", 45.8),
        ("HBI", 46.2),
        ("TG-VQA", 46.3),
        ("DUQ", 47.8),
    ]
    assert {(row.table, row.dataset) for row in rows} == {("DUQ-T5", "MSRVTT-QA")}


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

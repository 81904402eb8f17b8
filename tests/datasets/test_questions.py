"""Questions, answers and vocabularies as they lie on disk, and what is said of broken files."""

import json
import math
import re

import pytest

from sureshot.datasets.questions import (
    KINDS,
    VOCABULARY,
    frequent,
    load_questions,
    read_vocabulary,
)
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told

ASKED = [
    ("video7", "who is singing", "man", "who"),
    ("video9", "what is a man doing?", "cook", "what"),
    ("video7", "what does he sing", "song", "what"),
    ("video8", "who runs", "dog", "who"),
]


def line(video, question, answer, kind):
    return {"answer": answer, "question": question, "video_id": video, "answer_type": kind}


def lines(path, rows):
    return put(path, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def place(tmp_path):
    films(tmp_path / "videos", "video7.mp4", "video9.avi")
    lines(tmp_path / "test.jsonl", [line(*row) for row in ASKED])
    return tmp_path


def test_questions_stand_by_their_videos_and_keep_their_answers(place):
    found = load_questions(place, "test")
    asked = {"video7": ["who is singing", "what does he sing"], "video9": ["what is a man doing?"]}
    assert told(found.split) == asked
    assert found.answers == ("man", "song", "cook")
    assert found.kinds == ("who", "what", "what")
    assert found.split.items[1].path == place / "videos" / "video9.avi"


def test_missing_videos_are_named_and_their_questions_counted(place):
    found = load_questions(place, "test")
    assert found.split.missing == ("video8",) and found.absent == 1
    assert found.title() == f"{place.name} test, 2 of 3 videos, 3 questions"
    assert not found.published
    films(place / "videos", "video8.mp4")
    found = load_questions(place, "test")
    assert found.title() == f"{place.name} test, 3 videos, 4 questions" and found.absent == 0


def test_a_part_has_its_own_name_and_only_its_videos(place):
    ids = put(place / "ids.txt", "video9\nvideo8\n")
    found = load_questions(place, "test", ids=ids)
    assert told(found.split) == {"video9": ["what is a man doing?"]}
    assert found.answers == ("cook",) and found.absent == 1
    assert found.title() == f"{place.name} test, 1 of 2 videos, 1 questions"
    labelled = load_questions(place, "test", videos=place / "videos", label="a few")
    assert labelled.title() == "a few, test, 2 videos, 3 questions"


def test_numbers_and_questions_without_a_type_are_taken_as_well(tmp_path):
    films(tmp_path / "videos", "12.mp4")
    rows = [
        {"video_id": 12, "question": " Where is he? ", "answer": " room ", "id": 3},
        {"video_id": "12", "question": "who?", "answer": "he", "length": math.nan},
        {"video_id": "video12", "question": "is he?", "answer": "yes", "answer_type": None},
    ]
    lines(tmp_path / "val.jsonl", rows)
    found = load_questions(tmp_path, "val")
    assert told(found.split) == {"video12": ["Where is he?", "who?", "is he?"]}
    assert found.answers == ("room", "he", "yes") and found.kinds == ("where", "other", "other")
    assert "where" in KINDS


RELEASED = {
    "answer": "couple",
    "category_id": 14,
    "id": 0,
    "question": "what are driving?",
    "video_id": 12,
}


def test_the_first_release_is_read_as_it_is(tmp_path):
    films(tmp_path / "video", "video12.mp4")
    other = {**RELEASED, "question": "who drives?", "answer": "man", "id": 1}
    put(tmp_path / "train_qa.json", [RELEASED, other])
    found = load_questions(tmp_path, "train")
    assert told(found.split) == {"video12": ["what are driving?", "who drives?"]}
    assert (found.answers, found.kinds) == (("couple", "man"), ("what", "who"))
    lines(tmp_path / "train.jsonl", [line("video12", "is it?", "no", "other")])
    assert load_questions(tmp_path, "train").answers == ("no",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([RELEASED, {**RELEASED, "answer": ""}], "object 2: the answer is empty"),
        ([RELEASED, 3], "should hold a list of objects"),
        ({"questions": [RELEASED]}, "should hold a list of objects"),
        ([], "is empty; it must hold questions"),
    ],
)
def test_a_fault_in_the_first_release_is_named(tmp_path, content, reason):
    path = put(tmp_path / "test_qa.json", content)
    with pytest.raises(SureshotError, match=re.escape(str(path)) + f".*{reason}"):
        load_questions(tmp_path, "test")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question": "q", "answer": "a"}, "there is no video_id; it must be an object with"),
        ({"video_id": "v", "question": " ", "answer": "a"}, "the question is empty"),
        ({"video_id": "v", "question": "q", "answer": 2}, "the answer is 2; it must be text"),
        ({"video_id": True, "question": "q", "answer": "a"}, "the video_id is True; it must"),
        ({"video_id": "v", "question": "q", "answer": "a", "answer_type": 1}, "the answer_type is"),
        (["v", "q", "a"], "is no JSON object"),
    ],
)
def test_a_line_at_fault_is_named(place, row, reason):
    path = lines(place / "train.jsonl", [line(*ASKED[0]), row])
    with pytest.raises(SureshotError, match=re.escape(f"{path}, line 2: ") + f".*{reason}"):
        load_questions(place, "train")


def test_files_and_splits_that_are_not_there_are_named(place):
    with pytest.raises(SureshotError, match=r"has no train\.jsonl or train_qa\.json; give"):
        load_questions(place, "train")
    with pytest.raises(SureshotError, match="Unknown split 'dev'; known: train, val, test"):
        load_questions(place, "dev")
    put(place / "val.jsonl", "\n")
    with pytest.raises(SureshotError, match=r"val\.jsonl is empty"):
        load_questions(place, "val")
    with pytest.raises(SureshotError, match="No video of the 3 wanted was found"):
        load_questions(place, "test", videos=films(place / "elsewhere", "x.mp4"))


@pytest.mark.slow
def test_msrvtt_qa_is_known_by_its_size(tmp_path):
    films(tmp_path / "videos", "video0.mp4")
    rows = [line(f"video{n % 497}", "what is it?", "dog", "what") for n in range(12_278)]
    lines(tmp_path / "val.jsonl", rows)
    found = load_questions(tmp_path, "val")
    assert found.title() == "MSRVTT-QA val, 1 of 497 videos, 25 questions"
    assert not found.published and found.absent == 12_278 - 25
    films(tmp_path / "videos", *(f"video{n}.mp4" for n in range(497)))
    assert load_questions(tmp_path, "val").published
    assert not load_questions(tmp_path, "val", label="mine").published
    lines(tmp_path / "val.jsonl", rows[:-1])
    assert not load_questions(tmp_path, "val").published


def test_questions_outside_a_vocabulary_go_with_videos_that_have_no_other(place):
    found = load_questions(place, "test").answerable(["song", "man", "horse"])
    assert told(found.split) == {"video7": ["who is singing", "what does he sing"]}
    about = load_questions(place, "test").about({"video9", "video1000"})
    assert told(about.split) == {"video9": ["what is a man doing?"]}
    assert (about.answers, about.kinds) == (("cook",), ("what",))
    found = load_questions(place, "test").answerable(["cook", "song"])
    asked = {"video7": ["what does he sing"], "video9": ["what is a man doing?"]}
    assert told(found.split) == asked
    assert (found.answers, found.kinds) == (("song", "cook"), ("what", "what"))
    with pytest.raises(SureshotError, match=f"answer that can be given.*Leave {VOCABULARY} out"):
        found.answerable(["horse"])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["man", "dog"], "must be an object from answers"),
        ({"man": 0}, "two at least"),
        ({"man": 0, "dog": "1"}, "the number of 'dog' is '1'; give a whole one"),
        ({"man": 3, "dog": 3}, "'man' and 'dog' share number 3"),
    ],
)
def test_a_vocabulary_is_in_the_order_of_its_numbers_and_one_at_fault_is_explained(
    tmp_path, labels, reason
):
    assert read_vocabulary(tmp_path) is None
    put(tmp_path / VOCABULARY, {"dog": 2, "man": 0, "cat": 1})
    assert read_vocabulary(tmp_path) == ("man", "cat", "dog")
    path = put(tmp_path / VOCABULARY, labels)
    with pytest.raises(SureshotError, match=f"{path}.*{reason}"):
        read_vocabulary(tmp_path)


def test_the_most_frequent_answers_come_first_and_ties_by_the_alphabet():
    answers = ["cat", "man", "dog", "man", "bee", "dog", "man", "ape"]
    assert frequent(answers, 3) == ("man", "dog", "ape")
    assert frequent(list(reversed(answers)), 4) == ("man", "dog", "ape", "bee")
    assert frequent(answers, 100) == ("man", "dog", "ape", "bee", "cat")

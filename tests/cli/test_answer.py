"""Questions about videos, as a person types them."""

import json
import re

import pytest

from sureshot.cli.app import run
from tests.asked import asked, line, put


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, and a model that was trained on it."""
    folder = asked(tmp_path_factory.mktemp("asked"))
    made = [str(folder / "questions.toml"), "--cache", str(folder / "cache")]
    longer = ["--set", "training.epochs=40", "--set", "training.keep=last"]
    assert run(["answer", "train", *made, *longer, "--to", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def train(sureshot, place):
    def call(*more):
        made = (place / "questions.toml", "--cache", place / "cache")
        return sureshot("answer", "train", *made, *more)

    return call


@pytest.fixture
def evaluate(sureshot, place):
    def call(*more, model=None, root="qa"):
        data = ("--root", place / root, "--videos", place / "videos", "--cache", place / "cache")
        return sureshot("answer", "evaluate", model or place / "run/model", *data, *more)

    return call


@pytest.fixture
def ask(sureshot, place):
    def call(*more):
        return sureshot("answer", "ask", place / "run/model", *more)

    return call


def test_training_says_what_it_found_and_where_the_model_is(train, tmp_path):
    ran = train("--to", tmp_path / "run")
    assert ran.code == 0
    assert ran.err.splitlines()[:2] == [
        "qa train, 6 videos, 12 questions",
        "qa val, 3 videos, 6 questions",
    ]
    first, second = ran.out.splitlines()
    assert first.startswith(f"Trained: {tmp_path}/run/model (weights after epoch ")
    assert re.search(r"\d+\.\d% of the validation questions right\)\.$", first)
    assert second.startswith(
        f"To evaluate it: sureshot answer evaluate {tmp_path}/run/model --root"
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.epoch=3", "Unknown setting training.epoch; known: epochs, batch"),
        ("frozen=true", "there is nothing trained to freeze"),
    ],
)
def test_a_wrong_setting_ends_with_one_and_its_path(train, tmp_path, setting, message):
    ran = train("--to", tmp_path / "run", "--set", setting)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_known_counts_as_wrong(evaluate, place):
    lines = (place / "qa/train.jsonl").read_text().splitlines()[:6]
    rows = [json.loads(row) for row in lines]
    rows[-1]["answer"] = "turquoise"
    put(place / "told" / "test.jsonl", rows)
    ran = evaluate(root="told")
    lines = ran.out.splitlines()
    assert lines[0] == "told test, 3 videos, 6 questions"
    assert lines[1] == "xpool, encoder tiny, 3 frames, 6 answers known"
    assert "1 question (16.7 %) with an answer outside of the vocabulary" in ran.out
    told = json.loads(evaluate("--json", root="told").out)
    assert told["unknown"] == 1
    assert (told["overall"]["n"], told["answerable"]["n"]) == (6, 5)
    right = round(told["overall"]["value"] * 6 / 100)
    assert right >= 3, "answers that are all wrong test nothing"
    assert told["overall"]["value"] == pytest.approx(100 * right / 6)
    assert told["answerable"]["value"] == pytest.approx(100 * right / 5)
    assert [kind["name"] for kind in told["kinds"]] == ["how", "what"]


def test_questions_of_videos_that_are_not_there_are_counted(evaluate, place):
    (place / "videos" / "none.mp4").write_bytes(b"")
    rows = [line(n, "who?", "red") for n in (9, 10, 10, "none", "gone", "gone")]
    put(place / "lost" / "test.jsonl", rows)
    ran = evaluate(root="lost")
    assert ran.code == 0
    assert "2 videos not on disk" not in ran.err and "1 videos not on disk, such as gone" in ran.err
    assert "left out: none " in ran.err
    assert ran.out.startswith("lost test, 2 of 4 videos, 3 questions\n")
    assert "3 questions left out: the video is not there." in ran.out


def test_printed_numbers_come_with_a_warning(evaluate):
    ran = evaluate("--against", "published")
    assert "! Other data, so the numbers do not compare: 6 questions about 3 videos here" in ran.out
    assert re.search(r"^DUQ +47\.8  \(DUQ-T5\)", ran.out, re.M)
    assert "TG-VQA" not in evaluate("--against", "DUQ").out
    ran = evaluate("--against", "X-Pool")
    assert ran.code == 1 and "known: VQA-T, MERLOT" in ran.err


def test_asking_gives_words_in_order_and_says_what_they_are_worth(ask, place):
    ran = ask(place / "videos/9.mp4", "what colour comes first?", "-k", "3")
    assert ran.code == 0
    found = [re.fullmatch(r"(\d\.\d\d)  (\w+)", row).groups() for row in ran.out.splitlines()]
    assert len(found) == 3 and found == sorted(found, key=lambda pair: -float(pair[0]))
    assert "not calibrated" in ran.err
    told = json.loads(ask(place / "videos/9.mp4", "what colour comes first?", "--json").out)
    assert [guess["answer"] for guess in told["answers"]][:3] == [word for _, word in found]
    assert told["status"] == "not calibrated" and len(told["answers"]) == 5


def test_what_is_no_model_or_no_question_is_refused(sureshot, ask, place):
    ran = sureshot("answer", "ask", place / "qa", place / "videos/9.mp4", "who?")
    assert ran.code == 1 and "holds no model that answers questions" in ran.err
    assert ask(place / "videos/9.mp4", " ").code == 1
    assert ask(place / "videos/99.mp4", "who?").code == 1


def test_the_inner_model_is_evaluated_as_any_other(sureshot, place):
    data = ("--data", "pairs", "--root", place / "pairs.csv", "--cache", place / "cache")
    ran = sureshot("evaluate", place / "run/model/retrieval", *data)
    assert ran.code == 0 and "xpool" in ran.out

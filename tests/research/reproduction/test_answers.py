"""The table about answers: trained, tested once, kept, and beside the printed accuracy."""

import json

import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.reproduction import reproduce as module
from tests.asked import asked

PLAN = """
[questions.train]
root = "qa"
videos = "videos"

[questions.val]
root = "qa"
videos = "videos"

[questions.test]
root = "qa"
videos = "videos"

[encoder]
name = "tiny"
frames = 3
device = "cpu"

[stem]
kind = "linear"
width = 16

[training]
epochs = 1
batch = 4
rate = 1e-2
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = asked(tmp_path_factory.mktemp("qa"))
    (folder / "plan.toml").write_text(PLAN)
    return folder


def test_answers_are_trained_tested_and_kept(place, tmp_path, monkeypatch):
    def made(**more):
        return research.reproduce(
            "duq-5", place / "plan.toml", to=tmp_path, cache=place / "cache", **more
        )

    found = made(seeds=2)
    assert [path.name for path in found.files] == ["duq-5.md", "duq-5.json"]
    reports = json.loads(found.files[1].read_text())["DUQ"]
    right = [one["overall"]["value"] for one in reports]
    assert len(right) == 2 and all(0 <= value <= 100 for value in right)
    assert reports[0]["overall"]["n"] == 6  # all questions of the test, the unknown answer too
    text = found.files[0].read_text()
    assert f"| DUQ | {sum(right) / 2:.1f} ± " in text and "| 47.8 |" in text
    assert "HBI 46.2" in text
    kept = sorted(path.suffix for path in (tmp_path / "runs").iterdir())
    assert kept == [".json", ".json"]  # and no checkpoint
    monkeypatch.setattr(module, "train_answers", None)
    assert made(seeds=2, part="2/2").files == ()
    with pytest.raises(TypeError):  # the third run of three is in the first part
        made(seeds=3, part="1/2")
    assert made(seeds=1).files == found.files
    with pytest.raises(TypeError):  # a third seed would be trained
        made(seeds=3)


def test_questions_that_are_not_there_are_told_of(place, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN[PLAN.index("[encoder]") :])
    with pytest.raises(SureshotError, match=r"MSRVTT-QA is not in the plan.*\[questions\.train\]"):
        research.reproduce("duq-5", tmp_path / "plan.toml", to=tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    with pytest.raises(SureshotError, match=r"MSRVTT-QA cannot be read: .*It needs \{train,val"):
        research.reproduce("duq-5", tmp_path / "plan.toml", to=tmp_path)

"""Options that several commands share."""

from pathlib import Path

import pytest

from sureshot.cli.options import absolute_model, examples, place


def test_the_index_is_where_the_option_says_else_the_variable_else_the_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.delenv("SURESHOT_DB", raising=False)
    assert place(None) == "/data/sureshot/index"
    monkeypatch.setenv("SURESHOT_DB", "/elsewhere")
    assert place(None) == "/elsewhere"
    assert place("/given") == "/given"
    assert place("s3://bucket/index") == "s3://bucket/index"


@pytest.mark.parametrize("name", [None, "bundled", "tiny", "openai/clip-vit-base-patch16"])
def test_names_of_models_stay_as_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_model(name) == name


def test_folders_of_models_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("mine").mkdir()
    for way in ("mine", "./mine", "mine/../mine", str(tmp_path / "mine"), "~/mine"):
        assert absolute_model(way) == str(tmp_path / "mine")
    assert absolute_model("./not-there") == str(tmp_path / "not-there")


def test_examples_are_paragraphs_of_their_own():
    assert examples("a b", "c d") == "Examples:\n\na b\n\nc d"

"""Options that several commands share."""

import ast
from pathlib import Path

import pytest

from sureshot.cli.options import absolute_model, as_typed, examples, place
from sureshot.errors import option
from tests.cli.terminal import COMMANDS
from tests.house import files


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


def test_every_choice_that_a_message_names_is_an_option() -> None:
    known = {flag for c in COMMANDS.values() for p in c.params for flag in p.opts}
    named = {
        node.args[0].value
        for path in files()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option"
        if isinstance(node.args[0], ast.Constant)
    }
    assert {"db", "model", "lenient"} <= named
    assert {as_typed(option(str(name))) for name in named} <= known


def test_the_terminal_says_its_own_names() -> None:
    assert as_typed(option("lenient", True)) == "--skip-unknown"
    assert as_typed(option("under", "/my videos")) == "--in '/my videos'"
    assert as_typed("a file named `x = 1` or `1=2") == "a file named `x = 1` or `1=2"

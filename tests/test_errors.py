"""What errors say, and that every option they name exists."""

import ast
from pathlib import Path

import pytest

from sureshot.errors import StoreError, option
from sureshot.store.index import Store
from tests.cli.terminal import COMMANDS
from tests.paths import PACKAGE


def test_every_option_that_a_message_names_exists() -> None:
    known = {flag for c in COMMANDS.values() for p in c.params for flag in p.opts}
    named = {
        node.args[0].value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option"
        if isinstance(node.args[0], ast.Constant)
    }
    assert {"db", "model", "skip_unknown"} <= named
    assert {option(str(name)) for name in named} <= known


def test_a_message_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="or name another place with --db"):
        Store.open(tmp_path / "none")

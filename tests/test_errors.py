"""What errors say, and that every option they name exists."""

import ast
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sureshot.errors import StoreError, install_command, option
from sureshot.store.index import Store
from tests.cli.terminal import COMMANDS
from tests.paths import PACKAGE, ROOT


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


def test_extras_are_installed_by_the_names_of_their_packages() -> None:
    """No registry has a package of our name that these could be asked of."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for extra, wanted in settings["project"]["optional-dependencies"].items():
        command, *named = shlex.split(install_command(extra).replace("pip install", "pip"))
        assert command == "pip" and len(named) == len(wanted)
        assert {Requirement(one) for one in named} == {Requirement(one) for one in wanted}
    for path in (*PACKAGE.rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not re.findall(r"pip install [^`\n]*\bsureshot\b", path.read_text("utf-8")), path

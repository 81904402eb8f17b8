"""Options that several commands share."""

import ast

from sureshot.cli.terminal import examples
from sureshot.errors import option
from sureshot.library.results import as_typed
from tests.cli.terminal import COMMANDS
from tests.paths import PACKAGE


def test_examples_are_paragraphs_of_their_own():
    assert examples("a b", "c d") == "Examples:\n\na b\n\nc d"


def test_every_choice_that_a_message_names_is_an_option() -> None:
    known = {flag for c in COMMANDS.values() for p in c.params for flag in p.opts}
    named = {
        node.args[0].value
        for path in PACKAGE.rglob("*.py")
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

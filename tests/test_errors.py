import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sureshot import errors
from sureshot.library.results import as_typed
from sureshot.store.index import Store
from tests.paths import PACKAGE

# A command written in full may have options, as in `sureshot reset --yes`.
_COMMAND = re.compile(r"\b(sureshot|pip install|torchrun) [^`.;]*")
_OPTION = re.compile(r"(?<![\w-])--[a-z]")


def _strings(path: Path) -> Iterator[str]:
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    of_formatted = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [v for v in node.values if isinstance(v, ast.Constant)]
            of_formatted |= set(parts)
            yield "{}".join(str(part.value) for part in parts)
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in of_formatted
        ):
            yield node.value


def test_every_error_is_a_sureshot_error() -> None:
    kinds = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)]
    assert kinds and all(issubclass(kind, errors.SureshotError) for kind in kinds)


def test_a_video_error_says_whether_it_may_pass() -> None:
    assert not errors.VideoError("is damaged").transient
    assert errors.VideoError("has vanished", transient=True).transient


def test_only_the_terminal_speaks_of_its_options() -> None:
    # `printed` is how the page says what the terminal says.
    rooms = [path for path in PACKAGE.rglob("*.py") if "cli" not in path.relative_to(PACKAGE).parts]
    rooms.remove(PACKAGE / "library" / "results.py")
    told = [
        f"{path.name}: {text[:80]}"
        for path in rooms
        for text in _strings(path)
        if _OPTION.search(_COMMAND.sub("", text))
    ]
    assert not told


def test_a_choice_is_named_as_the_caller_makes_it(tmp_path: Path) -> None:
    with pytest.raises(errors.StoreError) as raised:
        Store.open(tmp_path / "none")
    assert str(raised.value).endswith("or name another place with `db=`.")
    assert as_typed(str(raised.value)).endswith("or name another place with --db.")

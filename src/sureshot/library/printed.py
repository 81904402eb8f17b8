"""What is printed for programs and said to people, alike in the terminal and on the page."""

import json
import re
import shlex
from typing import Any

from sureshot.library.answer import JSON_SCHEMA
from sureshot.text import plain

_SENTENCES = {"reason", "warnings", "worth", "fix", "detail"}  # JSON fields that speak of options
# Options that are not named as the parameter of the function that they go to.
NAMES = {"under": "--in", "minimum": "--min", "lenient": "--skip-unknown", "k": "--limit"}
_CHOICE = re.compile(r"`(\w+)=(|True|False|'[^`]*'|\"[^`]*\")`")


def json_text(values: dict[str, Any], *, ascii_only: bool = False) -> str:
    """A JSON document with its schema on one line, without characters that steer a terminal.

    Args:
        values: plain values, as the ``to_dict`` of a result gives them.
        ascii_only: whether other letters are written as escapes too.
    """
    text = json.dumps(_typed({"schema": JSON_SCHEMA, **values}), ensure_ascii=ascii_only)
    if text.isprintable():
        return text
    # json.dumps escapes one character as its \u sequence, which every reader undoes.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def as_typed(message: str) -> str:
    """What an error or a note says, with the caller's choices as options of the terminal.

    Examples:
        >>> as_typed("Choose `db=` or `under='My videos'`, with `resume=True` and `fold=False`.")
        "Choose --db or --in 'My videos', with --resume and --no-fold."
    """
    return plain(_CHOICE.sub(_as_option, message))


def _as_option(choice: re.Match[str]) -> str:
    name, value = choice.groups()
    flag = NAMES.get(name, f"--{name.replace('_', '-')}")
    if value in ("", "True"):
        return flag
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    return f"{flag} {shlex.quote(value[1:-1])}"


def _typed(value: Any, name: str = "") -> Any:
    """Values with the options of the terminal in their sentences."""
    if isinstance(value, dict):
        return {name: _typed(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner, name) for inner in value]
    return as_typed(value) if name in _SENTENCES and isinstance(value, str) else value

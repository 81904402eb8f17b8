"""What the house rules look for; `python -m tests.house [room]` prints it."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.paths import SOURCE

PACKAGE = SOURCE / "sureshot"
# A line of Args, Attributes or Returns that begins so has lost its noun: "fingerprint: of it."
HEADLESS = {
    *("of", "that", "likewise", "as", "see", "it", "them", "these", "those", "than", "in", "on"),
    *("at", "by", "to", "for", "from", "with", "within", "without", "before", "after", "beside"),
    *("below", "above", "such", "is", "are", "was", "were", "has"),
}
# What every module of a room must have under the same name, so that the room can be asked by it.
INTERFACES = {"datasets": {"read", "no_validation"}}
_SECTIONS = ("Args:", "Attributes:", "Returns:", "Yields:")
_ITEM = re.compile(r"^ {4}(?:\*{0,2}\w+: )?(\w+)")
MOST_POSITIONAL = 3  # fields of a value that may be given by position


def files(room: str = "") -> list[Path]:
    """Source files of a room, or all."""
    return sorted((PACKAGE / room).rglob("*.py"))


def place(path: Path, line: int) -> str:
    """Where a finding is, as editors take it."""
    return f"{path.relative_to(SOURCE.parent)}:{line}"


def headless(path: Path) -> Iterator[str]:
    """Lines of docstrings that name a thing and then say no noun."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        text = ast.get_docstring(node)
        section = ""
        for line in (text or "").splitlines():
            if line and not line.startswith(" "):
                section = line.strip()
            item = _ITEM.match(line)
            named = item is not None and ": " in line[: item.start(1)]
            if section in _SECTIONS and item and (named or section in ("Returns:", "Yields:")):
                first = item.group(1).lower()
                starts = named or line == next(iter(_section(text or "", section)), "")
                if starts and first in HEADLESS:
                    yield f"{place(path, getattr(node, 'lineno', 1))} {line.strip()}"


def defined_twice(paths: list[Path]) -> dict[str, list[str]]:
    """Public functions and classes of modules that several modules define, with their places.

    The terminal's verbs bear the name of the function that they call.
    """
    homes: dict[str, list[str]] = {}
    for path in paths:
        room = path.relative_to(PACKAGE).parts[0]
        if room == "cli":
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                if node.name in INTERFACES.get(room, ()):
                    continue
                homes.setdefault(node.name, []).append(place(path, node.lineno))
    return {name: places for name, places in homes.items() if len(places) > 1}


def positional(paths: list[Path]) -> Iterator[str]:
    """Values of more than three fields whose fields are given by position."""
    large = {name for path in files() for name in _large_values(path)}
    for path in paths:
        for outer in ast.walk(ast.parse(path.read_text("utf-8"))):
            inside = outer.name if isinstance(outer, ast.ClassDef) else ""
            for node in ast.walk(outer) if inside else [outer]:
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                made = inside if inside and called == "cls" else called
                if made in large and (called != "cls") == (not inside):
                    yield f"{place(path, node.lineno)} {made}"


def _section(text: str, name: str) -> list[str]:
    lines = text.splitlines()
    begin = lines.index(name) + 1
    return lines[begin:]


def _large_values(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        value = any("dataclass" in ast.dump(d) for d in node.decorator_list)
        value |= any(getattr(base, "id", "") == "NamedTuple" for base in node.bases)
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        fields = [item for item in fields if "ClassVar" not in ast.dump(item.annotation)]
        if value and len(fields) > MOST_POSITIONAL:
            yield node.name


if __name__ == "__main__":
    paths = files(*sys.argv[1:])
    for path in paths:
        print(*headless(path), sep="\n", end="\n" if any(headless(path)) else "")
    for name, places in defined_twice(files()).items():
        if any(str(p.relative_to(SOURCE.parent)) in " ".join(places) for p in paths):
            print("twice", name, *places)
    for found in positional(paths):
        print("by position", found)

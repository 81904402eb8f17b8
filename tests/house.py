"""What the house rules look for; `python -m tests.house [room]` prints it."""

import ast
import functools
import re
import sys
from collections.abc import Iterable, Iterator
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
INTERFACES = {"datasets": {"read"}, "research": {"calibrate"}}  # `calibrate` as in library
_SECTIONS = ("Args:", "Attributes:", "Returns:", "Yields:")
_ITEM = re.compile(r"^ {4}(?:\*{0,2}\w+: )?(\w+)")
MOST_POSITIONAL = 3  # fields of a value that may be given by position


def files(room: str = "") -> list[Path]:
    """Source files of a room, such as ``models/losses``, or of all rooms."""
    return sorted((PACKAGE / room).rglob("*.py"))


def room_of(path: Path) -> str:
    """Folder of a source file below the package, such as ``models/losses``; ``.`` is the top."""
    return path.parent.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else "."


def place(path: Path, line: int) -> str:
    """Where a finding is, as editors take it."""
    return f"{path.relative_to(SOURCE.parent) if path.is_relative_to(SOURCE) else path}:{line}"


def headless(path: Path) -> Iterator[str]:
    """Lines of docstrings that describe a thing without a noun, as in "bank: of the model"."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        section, opens = "", False
        for line in (ast.get_docstring(node) or "").splitlines():
            if line and not line.startswith(" "):
                section, opens = line.strip(), True
                continue
            item = _ITEM.match(line)
            named = item is not None and ": " in line[: item.start(1)]
            # What is returned has no name: its first line is the description.
            described = named or (opens and section in ("Returns:", "Yields:"))
            if section in _SECTIONS and item and described and item[1].lower() in HEADLESS:
                yield f"{place(path, getattr(node, 'lineno', 1))} {line.strip()}"
            opens = opens and not line.strip()


def defined_twice(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Public functions and classes that several modules define, and these modules.

    The terminal's verbs bear the name of the function that they call, so they do not count.
    """
    homes: dict[str, list[Path]] = {}
    for path in paths:
        room = room_of(path)
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if room != "cli" and node.name not in INTERFACES.get(room, ()):
                homes.setdefault(node.name, []).append(path)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def positional(paths: Iterable[Path], defining: Iterable[Path] = ()) -> Iterator[str]:
    """Values of more than three fields whose fields are given by position.

    Args:
        paths: modules to look at.
        defining: modules that define the values; those of the package if left out.
    """
    large = {name for path in defining or files() for name in _large_values(path)}
    for path in paths:
        yield from _positional(path, ast.parse(path.read_text("utf-8")), "", large)


def _positional(path: Path, node: ast.AST, owner: str, large: set[str]) -> Iterator[str]:
    """What is below a node of the class ``owner``, which ``cls`` stands for."""
    if isinstance(node, ast.ClassDef):
        owner = node.name
    if isinstance(node, ast.Call) and node.args:
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        made = owner if called == "cls" else called
        if made in large:
            yield f"{place(path, node.lineno)} {made}"
    for child in ast.iter_child_nodes(node):
        yield from _positional(path, child, owner, large)


@functools.cache  # every module is held against the values of all
def _large_values(path: Path) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        value = any("dataclass" in ast.dump(d) for d in node.decorator_list)
        value |= any(getattr(base, "id", "") == "NamedTuple" for base in node.bases)
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        fields = [item for item in fields if "ClassVar" not in ast.dump(item.annotation)]
        if value and len(fields) > MOST_POSITIONAL:
            names.add(node.name)
    return frozenset(names)


if __name__ == "__main__":
    looked_at = files(*sys.argv[1:])
    findings = [line for path in looked_at for line in headless(path)]
    findings += [
        f"twice {name} in {', '.join(str(path.relative_to(PACKAGE)) for path in modules)}"
        for name, modules in defined_twice(files()).items()
        if set(modules) & set(looked_at)
    ]
    findings += [f"by position {line}" for line in positional(looked_at)]
    print(*findings, sep="\n")

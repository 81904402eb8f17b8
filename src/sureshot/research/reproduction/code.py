"""A digest of the code that makes a run, so that a run is made again when that code changes.

It covers the files that the training of a system goes through, found by their imports and not by
running them: the system's own file and those it starts from, what these import of `sureshot.models`
and `sureshot.metrics`, features and scores, the training loop, and what makes the ranks and
percentages that are kept with a run. A changed figure, command or data set changes no run. Neither
do comments, docstrings and the layout of a file: of each file its syntax tree without docstrings
counts.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import sureshot

_PACKAGE = Path(sureshot.__file__).parent
_RETRIEVAL = ("sureshot.research.reproduction.runs",)
ANSWERING = ("sureshot.research.questions.run", "sureshot.research.questions.evaluation")
_SYSTEMS = "sureshot.models.systems"
# Where imports are followed.
_ROOMS = (
    "sureshot.metrics",
    "sureshot.models",
    "sureshot.research.features",
    "sureshot.research.questions",
    "sureshot.research.reproduction.percentages",
    "sureshot.research.reproduction.ranks",
    "sureshot.research.scores",
    "sureshot.research.training",
    "sureshot.trust",
)
# What is imported there and takes no part in a run: encoders do by the features that they give,
# which have a fingerprint; what is searched with is made after training; logs and curves show it.
_APART = (
    "sureshot.models.bank",
    "sureshot.models.encoders",
    "sureshot.models.loading",
    "sureshot.models.retriever",
    "sureshot.models.scorer",
    "sureshot.research.training.correction",
    "sureshot.research.training.log",
    "sureshot.research.training.plot",
)


@functools.cache
def code_digest(
    systems: Sequence[str], package: Path = _PACKAGE, starts: Sequence[str] = _RETRIEVAL
) -> str:
    """A digest of the code that trains and tests some systems.

    Args:
        systems: names of the systems, such as that of a row and the one that it is on.
        package: folder of the package's files.
        starts: the modules that make a run, of retrieval or `ANSWERING`.

    Raises:
        OSError: a file cannot be read.
    """
    left = {*starts, *(f"{_SYSTEMS}.{name}" for name in systems)}
    texts: dict[str, str] = {}
    while left:
        module = left.pop()
        texts[module], imports = _read(module, package)
        left |= {name for name in imports if _takes_part(name)} - texts.keys()
    digest = hashlib.sha256()
    for module, text in sorted(texts.items()):
        digest.update(f"{module} {len(text)}\n{text}\n".encode())
    return digest.hexdigest()


@functools.cache
def _read(module: str, package: Path) -> tuple[str, frozenset[str]]:
    """What counts of a module's text, and the modules that it imports."""
    path = _file(module, package)
    if path is None:
        return "", frozenset()
    text, imports = _syntax(path.read_text("utf-8"))
    modules = set()
    for source, name in imports:
        inner = f"{source}.{name}"
        modules.add(source if not name or _file(inner, package) is None else inner)
    return text, frozenset(modules)


@functools.cache
def _syntax(source: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """The text of a syntax tree without docstrings, and (module, name) of each of its imports."""
    tree = ast.parse(source)
    imports = frozenset(_imports(tree))
    return ast.unparse(_without_docstrings(tree)), imports


def _takes_part(module: str) -> bool:
    return _within(module, _ROOMS) and not _within(module, _APART)


def _within(module: str, rooms: Sequence[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def _file(module: str, package: Path) -> Path | None:
    """The file of a module; None if there is none, as for a class."""
    place = package.joinpath(*module.split(".")[1:])
    found = (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())
    return next(found, None)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of each import in a syntax tree, but for those of annotations alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, "") for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield from ((child.module, alias.name) for alias in child.names)
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from _imports(child)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree

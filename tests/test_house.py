"""The house rules that no other tool checks; each test lists the offenders."""

import ast
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import sureshot
from tests.paths import ROOT

SOURCE = ROOT / "src" / "sureshot"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if not path.name.startswith("__"))
MOST_POSITIONAL = 3  # fields of a value that one call may give by position


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_is_a_noun_with_something_behind_it() -> None:
    lines = {name(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert not {path: count for path, count in lines.items() if not 20 < count <= 900}
    drawers = {"utils", "util", "helpers", "common", "misc"}
    assert not [name(path) for path in MODULES if path.stem in drawers]


def test_an_equation_lives_in_one_place() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for cited in re.findall(r"\b(?:DUQ|UATVR|DVTR) eq\. \d+", path.read_text("utf-8")):
            homes[cited].add(name(path))
    assert not {cited: where for cited, where in homes.items() if len(where) > 1}


def test_engines_are_imported_where_they_report_to_nobody() -> None:
    found = [
        name(path)
        for folder in ("src", "benchmarks", "tests", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(
            r"^\s*(import|from) (openvino|onnxruntime)\b", path.read_text("utf-8"), re.MULTILINE
        )
    ]
    assert sorted(found) == ["src/sureshot/errors.py", "src/sureshot/models/encoders/engines.py"]


def test_a_name_of_a_module_is_bound_once() -> None:
    """What is bound again changes for all that stands above it, and no other tool tells."""
    twice = []
    for path in MODULES:
        bound = [
            target.id
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ]
        twice += [f"{name(path)} {one}" for one in sorted(set(bound)) if bound.count(one) > 1]
    assert not twice


def test_values_of_many_fields_are_built_by_name() -> None:
    """Two fields of one type that change places are found by no type checker."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in MODULES}
    large = {value for tree in trees.values() for value in large_values(tree)}
    assert not [
        f"{name(path)}:{line} {value}"
        for path, tree in trees.items()
        for line, value in built_by_position(tree, large)
    ]


def large_values(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            value = any("dataclass" in ast.dump(d) for d in node.decorator_list)
            value |= any(getattr(base, "id", "") == "NamedTuple" for base in node.bases)
            fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
            fields = [item for item in fields if "ClassVar" not in ast.dump(item.annotation)]
            public = not node.name.startswith("_")
            if value and public and len(fields) > MOST_POSITIONAL:
                yield node.name


def built_by_position(tree: ast.AST, large: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in large:
                yield node.lineno, called


def test_results_name_no_place_of_the_machine_that_made_them() -> None:
    assert not [
        name(path)
        for path in (ROOT / "results").rglob("*.json")
        if str(json.loads(path.read_text("utf-8")).get("encoder", "")).startswith(("/", "~"))
    ]


def test_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert sureshot.__version__ == project["version"]

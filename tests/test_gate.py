"""The gate: what `make check` must not let through, tried on a copy of the source."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT, SOURCE

PACKAGE = SOURCE / "sureshot"
ROOMS = {
    *("cli", "library", "research", "store", "models", "trust", "media", "datasets", "metrics"),
    "objects",
}
ROOMS_TO_COME = {"web"}
STONES = {"__main__", "errors", "settings", "places", "files", "formats", "text"}
(CONTRACT,) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "contracts"
]
FLOORS = [layer.split(" | ") for layer in CONTRACT["layers"]]  # top down
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def modules(name: str) -> Iterator[Path]:
    """One module of a room and of each room in it, or the stone itself."""
    if (PACKAGE / name).is_dir():
        for folder in sorted({path.parent for path in (PACKAGE / name).rglob("*.py")}):
            yield min(path for path in folder.glob("*.py") if path.name != "__init__.py")
    else:
        yield PACKAGE / f"{name}.py"


def dotted(module: Path) -> str:
    return ".".join(module.relative_to(SOURCE).with_suffix("").parts)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, apart from this project and with its settings beside it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "sureshot", ignore=ignored)


def check(copy: Path, *command: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=copy.parent,
        env={"PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_the_rooms_and_stones_are_those_of_the_plan() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert ROOMS <= rooms <= ROOMS | ROOMS_TO_COME
    assert {path.stem for path in PACKAGE.glob("*.py")} == STONES | {"__init__"}


def test_no_layer_is_optional_and_nothing_is_let_through() -> None:
    assert {name for floor in FLOORS for name in floor} <= ROOMS | ROOMS_TO_COME | STONES
    assert CONTRACT["exhaustive"]
    assert not {"ignore_imports", "exhaustive_ignores"} & CONTRACT.keys()


def highest(number: int) -> list[Path]:
    """A module of the highest room that those of a floor must not import from."""
    return [next(modules(name)) for name in FLOORS[min(number - 1, 1)]] if number else []


def next_above(number: int) -> list[Path]:
    """A module of each room on the floor above."""
    return [next(modules(name)) for name in FLOORS[number - 1]] if number else []


def beside(number: int) -> list[Path]:
    """A module of each room on the floor itself."""
    return [next(modules(name)) for name in FLOORS[number]]


@pytest.mark.parametrize("targets", [highest, next_above, beside])
def test_no_room_imports_from_one_above_or_beside_it(
    copy: Path, targets: Callable[[int], list[Path]]
) -> None:
    planted = set()
    for number, floor in enumerate(FLOORS):
        for name in floor:
            elsewhere = [t for t in targets(number) if t not in modules(name)]
            for module in modules(name):
                for target in elsewhere:
                    with (copy.parent / module.relative_to(SOURCE)).open("a") as file:
                        file.write(f"\n\ndef planted() -> None:\n    import {dotted(target)}\n")
                    planted.add((dotted(module), dotted(target)))
    assert planted
    code, told = check(copy, "-c", LINT, "--no-cache")
    assert code == 1
    reported = re.findall(r"(sureshot[\w.]*) -> (sureshot[\w.]*) \(l\.", told)
    assert not planted - set(reported)


def test_what_has_no_place_on_a_floor_is_refused(copy: Path) -> None:
    (copy / "loose.py").touch()
    (copy / "attic").mkdir()
    (copy / "attic" / "__init__.py").touch()
    code, told = check(copy, "-c", LINT, "--no-cache")
    assert code == 1
    assert "loose" in told and "attic" in told


def test_a_folder_that_the_layers_cannot_see_is_refused(copy: Path) -> None:
    """Without an ``__init__.py`` it is no package, and import-linter passes it by."""
    for folder in (copy / "models" / "cellar", copy / "attic"):
        folder.mkdir()
        (folder / "blind.py").write_text('"""A cellar."""\n', "utf-8")
    code, told = check(copy, "-m", "ruff", "check", "--no-cache", "--output-format=concise", ".")
    assert code == 1
    assert re.findall(r"(\w+)/blind\.py:\d+:\d+: INP001", told) == ["attic", "cellar"]

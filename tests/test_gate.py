"""The gate: what `make check` must not let through, tried on a copy of the source."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.paths import ROOT, SOURCE

(CONTRACT,) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "contracts"
]
FLOORS = [layer.split(" | ") for layer in CONTRACT["layers"]]  # top down
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, apart from this project and with its settings next to it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(SOURCE / "sureshot", tmp_path / "sureshot", ignore=ignored)


def check(copy: Path, *command: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=copy.parent,
        env={"PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


def module_of(copy: Path, name: str) -> Path:
    """A module of a room, or the file of that name."""
    room = copy / name
    return min(room.glob("[a-z]*.py")) if room.is_dir() else copy / f"{name}.py"


def test_no_room_imports_from_one_above_or_next_to_it(copy: Path) -> None:
    assert CONTRACT["exhaustive"]
    assert not {"ignore_imports", "exhaustive_ignores"} & CONTRACT.keys()
    planted = set()
    for above, floor in zip([FLOORS[0], *FLOORS], FLOORS, strict=False):
        for name in floor:
            for target in {*above, *floor} - {name}:
                module = module_of(copy, name)
                imported = module_of(copy, target).relative_to(copy.parent).with_suffix("")
                dotted = ".".join(imported.parts)
                with module.open("a") as file:
                    file.write(f"\n\ndef planted() -> None:\n    import {dotted}\n")
                importer = ".".join(module.relative_to(copy.parent).with_suffix("").parts)
                planted.add((importer, dotted))
    code, printed = check(copy, "-c", LINT, "--no-cache")
    assert code == 1
    found = set(re.findall(r"(sureshot[\w.]*) -> (sureshot[\w.]*) \(l\.", printed))
    assert len(planted) > 20 and not planted - found


def test_what_has_no_place_on_a_floor_is_refused(copy: Path) -> None:
    (copy / "loose.py").touch()
    (copy / "attic").mkdir()
    (copy / "attic" / "__init__.py").touch()
    code, printed = check(copy, "-c", LINT, "--no-cache")
    assert code == 1 and "loose" in printed and "attic" in printed


def test_a_folder_that_the_layers_cannot_see_is_refused(copy: Path) -> None:
    """Without an ``__init__.py`` it is no package, and import-linter passes it by."""
    (copy / "attic").mkdir()
    (copy / "attic" / "blind.py").write_text('"""A cellar."""\n', "utf-8")
    code, printed = check(copy, "-m", "ruff", "check", "--no-cache", "--output-format=concise", ".")
    assert code == 1 and re.findall(r"(\w+)/blind\.py:\d+:\d+: INP001", printed) == ["attic"]

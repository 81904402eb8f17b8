"""The house rules that no other tool checks."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.paths import ROOT

SOURCE = ROOT / "src" / "sureshot"
FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name != "__init__.py")
LONGEST = 400  # lines; beyond this a file is two files


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_every_source_file_has_its_twin(path: Path) -> None:
    name = "test_main.py" if path.name == "__main__.py" else f"test_{path.name}"
    assert (ROOT / "tests" / path.relative_to(SOURCE).parent / name).exists()


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_no_source_file_needs_a_scroll_map(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST


def test_no_drawers() -> None:
    drawers = {"utils", "util", "helpers", "common", "misc"}
    assert not [p for p in SOURCE.rglob("*") if p.stem in drawers]


def test_an_equation_lives_in_one_place() -> None:
    citations: dict[str, list[str]] = {}
    for path in FILES:
        for cited in re.findall(r"\b(?:DUQ|UATVR|DVTR) eq\. \d+", path.read_text("utf-8")):
            citations.setdefault(cited, []).append(_name(path))
    assert not {cited: where for cited, where in citations.items() if len(where) > 1}


def test_version_is_the_packages() -> None:
    import sureshot

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert sureshot.__version__ == project["version"]

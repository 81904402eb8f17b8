"""The house rules that no other tool checks."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests import house
from tests.paths import ROOT

SOURCE = ROOT / "src" / "sureshot"
FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name != "__init__.py")
LONGEST = 400  # lines; beyond this a file is two files
SOURCES = house.files()


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


def test_openvino_is_imported_where_it_tells_nobody() -> None:
    found = [
        path.relative_to(ROOT)
        for folder in ("src", "benchmarks", "tests", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) openvino\b", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert found == [Path("src/sureshot/models/encoders/engine.py")]


def test_results_name_no_place_of_the_machine_that_made_them() -> None:
    for path in (ROOT / "results").rglob("*.json"):
        encoder = json.loads(path.read_text("utf-8")).get("encoder", "")
        assert not str(encoder).startswith(("/", "~")), path


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


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_docstrings_describe_things_with_a_noun(path: Path) -> None:
    assert not list(house.headless(path))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_large_values_name_their_fields(path: Path) -> None:
    assert not list(house.positional([path]))


def test_a_public_name_is_defined_once() -> None:
    assert not house.defined_twice(SOURCES)


# --- what finds the offenders, tried on small sources ---------------------------------------------


@pytest.fixture
def module(tmp_path):
    """Writes a module and returns its path."""

    def write(text: str, name: str = "made_up.py") -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


DESCRIBED = '''
def head(bank, index):
    """Each bank of an index.

    Args:
        bank: {bank}
        index: the index,
            of it and that: a second line is not looked at.

    Returns:
        {returned}
        Of this line nothing is asked.

    Raises:
        SureshotError: of any kind.
    """
'''


@pytest.mark.parametrize(
    "bank, returned, count",
    [
        ("hub correction of the model.", "One number a video.", 0),
        ("Of the model.", "One number a video.", 1),
        ("hub correction.", "As many numbers.", 1),
        ("likewise.", "at least 0.", 2),
    ],
)
def test_descriptions_without_a_noun_are_found(module, bank, returned, count):
    path = module(DESCRIBED.format(bank=bank, returned=returned))
    lines = [bank, returned]
    told = [line.removeprefix(f"{path}:2 ") for line in house.headless(path)]
    assert len(told) == count
    assert all(any(line.endswith(text) for text in lines) for line in told)


def test_attributes_of_a_class_and_of_a_module_are_looked_at_too(module):
    text = '''"""A module.

Attributes:
    SIZE: of it.
"""

class Box:
    """A box.

    Attributes:
        width: by height.
        height: centimetres.
    """
'''
    path = module(text)
    assert list(house.headless(path)) == [f"{path}:1 SIZE: of it.", f"{path}:7 width: by height."]


VALUES = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

@dataclass(frozen=True)
class Four:
    a: int
    b: int
    c: int
    d: int

    @classmethod
    def one(cls):
        return cls(1, 1, 1, 1)

class Pair(NamedTuple):
    a: int
    b: int

@dataclass
class Three:
    kind: ClassVar[str] = "three"
    a: int
    b: int
    c: int

    @classmethod
    def one(cls):
        return cls(1, 1, 1)

class Plain:
    a: int
    b: int
    c: int
    d: int
"""


def test_large_values_by_position_are_found(module):
    values = module(VALUES, "values.py")
    uses = module(
        "values.Four(1, b=2, c=3, d=4)\nFour(a=1, b=2, c=3, d=4)\nPair(1, 2)\nThree(1, 2, 3)\n"
        "Plain(1, 2, 3, 4)\n",
        "uses.py",
    )
    assert list(house.positional([values, uses], [values])) == [
        f"{values}:14 Four",
        f"{uses}:1 Four",
    ]


def test_public_names_of_two_modules_are_found(module):
    one = module("def load(): ...\ndef _own(): ...\nclass Hit: ...\n", "one.py")
    two = module("class Hit: ...\ndef _own(): ...\ndef other():\n    def load(): ...\n", "two.py")
    assert house.defined_twice([one, two]) == {"Hit": [one, two]}

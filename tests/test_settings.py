"""Settings from TOML: right, or an error with the dotted path; and back."""

import dataclasses
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.models.model import StemConfig
from sureshot.settings import (
    NotTomlError,
    build,
    open_file,
    override,
    parse_json,
    parse_toml,
    read_bytes,
    read_json,
    read_text,
    read_toml_values,
    to_toml,
    to_values,
)


@dataclass(frozen=True)
class Inner:
    size: int
    shape: Literal["round", "square"] = "round"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    rate: float = 0.5
    on: bool = False
    name: str | None = None
    limit: int | None = None
    many: tuple[Inner, ...] = ()
    words: tuple[str, ...] = ()
    path: Path = Path("x")
    free: Mapping[str, object] = dataclasses.field(default_factory=dict)


def refused(values: Mapping[str, object]) -> str:
    with pytest.raises(SureshotError) as caught:
        build(Outer, values)
    return str(caught.value)


def test_everything_a_field_may_be() -> None:
    values = tomllib.loads(
        'rate = 2\non = true\nname = "a"\nlimit = 3\nwords = ["b", "c"]\npath = "d/e"\n'
        '[inner]\nsize = 1\n[[many]]\nsize = 2\nshape = "square"\n[[many]]\nsize = 3\n'
        "[free]\nx = [1, 2]\n"
    )
    assert build(Outer, values) == Outer(
        Inner(1),
        2.0,
        True,
        "a",
        3,
        (Inner(2, "square"), Inner(3)),
        ("b", "c"),
        Path("d/e"),
        {"x": [1, 2]},
    )


def test_what_is_left_out_takes_its_default_and_one_table_stands_for_a_list_of_one() -> None:
    assert build(Outer, {"inner": {"size": 1}, "name": None}) == Outer(Inner(1))
    assert build(Outer, {"inner": {"size": 1}, "many": {"size": 5}}).many == (Inner(5),)
    rate = build(Outer, {"inner": {"size": 1}, "rate": 2}).rate
    assert rate == 2 and type(rate) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner": {"size": 1}, "rat": 1.0}, "Unknown setting rat; known: inner, rate, on, name"),
        ({"inner": {"size": 1, "sise": 2}}, "Unknown setting inner.sise; known: size, shape."),
        ({"inner": {"shape": "round"}}, "Setting inner.size is missing"),
        ({"inner": 3}, "Setting inner is 3; expected a table"),
        ({"inner": {"size": 1.0}}, "Setting inner.size is 1.0; expected a whole number"),
        ({"inner": {"size": True}}, "Setting inner.size is True; expected a whole number"),
        ({"inner": {"size": 1, "shape": "oval"}}, "inner.shape is 'oval'; known: round, square"),
        ({"inner": {"size": 1}, "rate": "fast"}, "Setting rate is 'fast'; expected a number"),
        ({"inner": {"size": 1}, "rate": float("nan")}, "Setting rate is nan; expected a number"),
        ({"inner": {"size": 1}, "on": 1}, "Setting on is 1; expected true or false"),
        ({"inner": {"size": 1}, "name": 1}, "Setting name is 1; expected a string"),
        ({"inner": {"size": 1}, "words": "abc"}, "Setting words is 'abc'; expected a list"),
        ({"inner": {"size": 1}, "words": ["a", 2]}, r"Setting words.1 is 2; expected a string"),
        ({"inner": {"size": 1}, "many": [{"size": 1}, {"sise": 1}]}, "Unknown setting many.1.sise"),
        ({"inner": {"size": 1}, "free": 3}, "Setting free is 3; expected a table"),
        ({"inner": {"size": 1}, "path": 3}, "Setting path is 3"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_dotted_path(
    values: Mapping[str, object], message: str
) -> None:
    assert message in refused(values)


def test_settings_that_are_built_in_code_are_held_to_their_kinds() -> None:
    assert StemConfig(kind="linear", dropout=np.float32(0.5)).dropout == 0.5
    for wrong in ({"kind": "None"}, {"width": 2.5}, {"backbone": "yes"}):
        with pytest.raises(SureshotError, match=f"Setting stem.{next(iter(wrong))} is"):
            StemConfig(**wrong)  # type: ignore[arg-type]


def test_an_override_sets_one_value_and_leaves_the_given_ones() -> None:
    values = {"a": {"b": 1}, "many": [{"size": 1}, {"size": 2}]}
    assert override(values, "a.b=2.5")["a"] == {"b": 2.5}
    assert override(values, "a.c = word")["a"] == {"b": 1, "c": "word"}
    assert override(values, 'a.c="1"')["a"]["c"] == "1"
    assert override(values, "a.c=[1, 2]")["a"]["c"] == [1, 2]
    assert override(values, "new.deep=true")["new"] == {"deep": True}
    assert override(values, "many.1.size=7")["many"] == [{"size": 1}, {"size": 7}]
    assert override(values, "a.path=/x=y")["a"]["path"] == "/x=y"
    assert override(values, "a.c=1\nd = 2")["a"]["c"] == "1\nd = 2"
    assert values == {"a": {"b": 1}, "many": [{"size": 1}, {"size": 2}]}


@pytest.mark.parametrize(
    "assignment", ["a.b", "=3", "a..b=3", ".=1", "a.b.c=3", "many.2.size=3", "many.x=3"]
)
def test_an_override_that_leads_nowhere_is_refused(assignment: str) -> None:
    with pytest.raises(SureshotError, match="Cannot set"):
        override({"a": {"b": 1}, "many": [{"size": 1}, {"size": 2}]}, assignment)


def test_settings_survive_toml() -> None:
    settings = Outer(
        Inner(1, "square"),
        rate=1e-05,
        name='quote " backslash \\ newline \n tab \t delete \x7f emoji \U0001f600',
        many=(Inner(2), Inner(3)),
        words=("a", ""),
        free={"odd key.": True, "deep": {"x": [1.5, -2]}},
    )
    assert build(Outer, tomllib.loads(to_toml(to_values(settings)))) == settings


def toml_values() -> st.SearchStrategy[dict[str, Any]]:
    text = st.text(st.characters(codec="utf-8"), max_size=8)
    leaf = st.booleans() | st.integers(-(2**63), 2**63 - 1) | text
    leaf |= st.floats(allow_nan=False, allow_infinity=False)
    inner: st.SearchStrategy[Any] = st.recursive(
        leaf,
        lambda s: st.lists(leaf, max_size=2) | st.dictionaries(text, s, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(text, inner, max_size=4)


@given(toml_values())
def test_any_plain_values_survive_toml(values: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(values)) == values


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("width=" + "9" * 5000, "thousands of digits"),
        ("width=" + "[" * 100_000, "nests too deeply"),
        ("width=nan", "nan, which is no number"),
        ("a." * 3000 + "b=1", "write it as name.of.setting=value"),
        ("width" + "x" * 5000, "write it as name.of.setting=value"),
    ],
)
def test_a_setting_that_would_hurt_is_one_short_sentence(assignment: str, said: str) -> None:
    with pytest.raises(SureshotError, match=said) as refused:
        override({}, assignment)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("value", [-(10**299), 2**63, 10**5000], ids=["-", "2^63", "long"])
def test_a_whole_number_that_fits_nowhere_is_refused(value: int) -> None:
    with pytest.raises(SureshotError, match=r"^Setting size is .*no number is so large here"):
        build(Inner, {"size": value})


def test_a_whole_number_beyond_every_float_is_no_float() -> None:
    assert build(Outer, {"inner": {"size": 1}, "rate": 10**300}).rate == 1e300
    with pytest.raises(SureshotError, match=r"^Setting rate is .*expected a number"):
        build(Outer, {"inner": {"size": 1}, "rate": 10**400})


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (int, [1, True], "Setting n.1 is True; expected a whole number"),
        (int, [1, 2.0], "Setting n.1 is 2.0; expected a whole number"),
        (int, [2**70], "Setting n.0 is .*no number is so large here"),
        (float, [0.5, float("nan")], "Setting n.1 is nan; expected a number"),
        (float, [0.5, True], "Setting n.1 is True; expected a number"),
    ],
)
def test_a_long_list_of_numbers_is_held_to_each_of_them(
    kind: type, values: list[float], said: str
) -> None:
    made = dataclasses.make_dataclass("Row", [("n", tuple[kind, ...])])  # type: ignore[valid-type]
    with pytest.raises(SureshotError, match=said):
        build(made, {"n": values})
    assert build(made, {"n": [1, 2]}).n == (1, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "nests too deeply"),
        ("[" * 70 + "]" * 70, "nests too deeply"),
        ('{"a":' * 70 + "1" + "}" * 70, "nests too deeply"),
        ("9" * 5000, "a number of 5000 digits"),
        ("[-" + "9" * 301 + "]", "a number of 301 digits"),
        ("1e999", "1e999, which is no number"),
        ("[NaN]", "NaN, which is no number"),
        ("-Infinity", "-Infinity, which is no number"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' twice in one object"),
    ],
)
def test_json_that_would_hurt_is_a_value_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_json(text)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_json(tmp_path / "a.json")


def test_json_is_read_with_the_marks_that_windows_adds(tmp_path: Path) -> None:
    value = {"a": [1, 2.5, "ü"]}
    for coding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "a.json").write_bytes('{"a": [1, 2.5, "ü"]}'.encode(coding))
        assert read_json(tmp_path / "a.json") == value
    assert parse_json("[" * 60 + "]" * 60) is not None
    assert parse_json("9" * 300) == int("9" * 300)
    (tmp_path / "a.json").write_bytes(b'"\xff"')
    with pytest.raises(ValueError, match="not UTF-8"):
        read_json(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "9" * 5000, "thousands of digits"),
        ("a = " + "9" * 400, "hundreds of digits"),
        ("a = 0x" + "f" * 5000, "hundreds of digits"),
        ("a = [{b = -" + "9" * 400 + "}]", "hundreds of digits"),
        ("a = " + "[" * 100_000, "nests too deeply"),
        ("a = " + "[" * 70 + "]" * 70, "nests too deeply"),
        (".".join("a" * 200) + " = 1", "nests too deeply"),
        ("a = nan", "nan, which is no number"),
        ("a = 1e999", "1e999, which is no number"),
        ("a = 1\na = 2", "overwrite"),
        ("a = 2000-02-31", "Invalid date"),
        ("a = \x00", "Invalid value"),
    ],
)
def test_toml_that_would_hurt_is_a_value_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_toml(text)
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_toml_values(tmp_path / "a.toml")


def test_toml_is_told_from_what_is_none(tmp_path: Path) -> None:
    with pytest.raises(NotTomlError):
        parse_toml("value = word")
    long = "5" * 400
    (tmp_path / "a.toml").write_bytes(f'a = "{long}" # {long}'.encode("utf-16"))
    assert read_toml_values(tmp_path / "a.toml") == {"a": long}


def test_a_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a pipe"):
        read_bytes(tmp_path / "pipe", 10)
    with pytest.raises(OSError, match="is a device"):
        read_bytes("/dev/zero", 10)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_bytes(tmp_path, 10)
    for name in ("a\0b", "\ud800"):
        with pytest.raises(OSError, match="no file can have this name"):
            open_file(name)


def test_a_pipe_of_the_shell_is_read_to_its_end() -> None:
    code = "from sureshot.settings import *; print(read_text('/dev/stdin', 100))"
    done = subprocess.run(
        [sys.executable, "-c", code], input="lines", capture_output=True, text=True, check=True
    )
    assert done.stdout == "lines\n"


def test_a_file_beyond_its_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # with holes; reading it would take all memory
    with pytest.raises(OSError, match="is larger than 1 MB"):
        read_bytes(path, 1 << 20)
    path.write_bytes(b"12345678901")
    with pytest.raises(OSError, match="is larger than 10 bytes"):
        read_text(path, 10)
    assert read_text(path, 11) == "12345678901"

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sureshot.settings import (
    NotTomlError,
    open_file,
    parse_json,
    parse_toml,
    read_bytes,
    read_json,
    read_text,
    read_toml_values,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("{} {}", "Extra data"),
        ("[" * 100_000, "nests too deeply"),
        ("[" * 3000 + "]" * 3000, "nests too deeply"),
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
        ("a = -inf", "-inf, which is no number"),
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

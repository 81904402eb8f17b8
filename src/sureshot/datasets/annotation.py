"""Files of annotation as the community ships them: lists of ids, tables, JSON.

Bytes that are not UTF-8 become the replacement character: some of these files are older than the
habit of UTF-8, and one odd letter must not cost a benchmark.
"""

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sureshot.errors import SureshotError, reason_of
from sureshot.formats import ANNOTATION, parse_json, read_text
from sureshot.places import is_folder_at


def pick(root: Path, *names: str) -> Path:
    """The first of these files that the folder has.

    Raises:
        SureshotError: it has none of them.
    """
    for name in names:
        if os.path.isfile(root / name):  # noqa: PTH113 - Path.is_file fails at names too long
            return root / name
    if not is_folder_at(root):
        unset = next((part for part in root.parts if part.startswith("$")), None)
        if unset is not None:
            raise SureshotError(
                f"The variable {unset} is not set; it names the folder of the data."
            )
        raise SureshotError(f"{root} is not a folder; give the one with the annotation files.")
    raise SureshotError(
        f"{root} has no {' or '.join(names)}; give the folder with the annotation files as root."
    )


def read_lines(path: Path) -> list[str]:
    """Lines without the space around them; empty ones are left out.

    Raises:
        SureshotError: the file cannot be read.
    """
    with _text(path) as file:
        return [line.strip() for line in file if line.strip()]


def read_table(path: Path, *columns: str) -> list[dict[str, str]]:
    """Rows of a file of comma-separated values by the names in its first line.

    Raises:
        SureshotError: it cannot be read, or lacks one of these columns; the message names it.
    """
    header, *rows = read_rows(path) or [[]]
    for column in columns:
        if column not in header:
            raise SureshotError(
                f"{path} has no column {column}; it has {', '.join(header)[:200] or 'none'}."
            )
    places = [(column, header.index(column)) for column in columns]
    return [{name: row[i] if i < len(row) else "" for name, i in places} for row in rows]


def read_rows(path: Path) -> list[list[str]]:
    """Rows of a file of comma-separated values, the first line included, empty ones not.

    Raises:
        SureshotError: it cannot be read, or a row has more values than the first one.
    """
    # Line breaks as they are: csv must see those within quotes.
    with _text(path, newline="") as file:
        reader = csv.reader(file)
        rows: list[list[str]] = []
        try:
            for row in reader:
                if row and rows and any(row[len(rows[0]) :]):
                    # A comma of a sentence outside quotes would cost the rest of the sentence.
                    raise csv.Error(f"{len(row)} values where the first line has {len(rows[0])}")
                if row:
                    rows.append(row)
        except csv.Error as error:
            raise SureshotError(f"{path}, line {reader.line_num}: {error}.") from None
        return rows


def read_annotation(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        SureshotError: it cannot be read or is not JSON; the message names the line.
    """
    with _text(path) as file:
        try:
            return _whole(parse_json(file.read()))
        except ValueError as error:
            raise SureshotError(f"{path} is not JSON: {error}. Was it fetched in full?") from None


def read_json_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file with one a line, each with the number of its line; empty ones are not.

    Raises:
        SureshotError: it cannot be read, or a line is no JSON object; the message names the line.
    """
    objects: list[tuple[int, dict[str, Any]]] = []
    with _text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = _whole(parse_json(line))
            except ValueError as error:
                raise SureshotError(f"{path}, line {number} is not JSON: {error}.") from None
            if not isinstance(value, dict):
                raise SureshotError(f"{path}, line {number}: {value!r:.60} is no JSON object.")
            objects.append((number, value))
    return objects


def read_json_list(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a JSON file that is a list of them, each with its number from 1 on.

    Raises:
        SureshotError: it cannot be read, or is no list of objects.
    """
    with expecting(path, "a list of objects"):
        return [(number, {**value}) for number, value in enumerate(read_annotation(path), start=1)]


def sentences(value: Any) -> list[str]:
    """The texts of a list, without the space around them.

    Raises:
        TypeError: it is not a list of texts; to be met by `expecting`.
    """
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{value!r:.60} is no list of texts")
    return [text.strip() for text in value]


def _whole(value: Any) -> Any:
    """A value whose texts hold no half characters, which JSON can spell and nothing can take."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return parse_json(text.encode("utf-8", "replace"))
    return value


@contextmanager
def expecting(path: Path, form: str) -> Iterator[None]:
    """While a file is taken apart: whatever does not fit becomes one error that says what should.

    Args:
        path: the file.
        form: what it should hold, in words.

    Raises:
        SureshotError: the block met a key, type or number of values it did not expect.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise SureshotError(
            f"{path} is not as expected ({type(error).__name__}: {error}); it should hold {form}."
        ) from None


@contextmanager
def _text(path: Path, newline: str | None = None) -> Iterator[io.StringIO]:
    try:
        text = read_text(path, ANNOTATION, errors="replace")
    except OSError as error:
        raise SureshotError(f"{path} cannot be read: {reason_of(error)}.") from None
    # A text of UTF-16 may hold half characters, which nothing that follows can take.
    yield io.StringIO(text.encode("utf-8", "replace").decode("utf-8"), newline)

"""Files of annotation as the community ships them: lists of ids, tables, JSON.

Bytes that are not UTF-8 become the replacement character: some of these files are older than the
habit of UTF-8, and one odd letter must not cost a benchmark.
"""

import collections
import csv
import io
import json
import math
import os
import pickle
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from jaxtyping import Shaped

from sureshot.errors import SureshotError, reason_of
from sureshot.paths import is_folder_at
from sureshot.settings import ANNOTATION, open_file, parse_json, read_text


def pick(root: Path, *names: str) -> Path:
    """The first of these files that the folder has."""
    for name in names:
        if os.path.isfile(root / name):  # noqa: PTH113 - Path.is_file fails at names too long
            return root / name
    if not is_folder_at(root):
        check_set(root)
        raise SureshotError(f"{root} is not a folder; give the one with the annotation files.")
    raise SureshotError(
        f"{root} has no {' or '.join(names)}; give the folder with the annotation files as root."
    )


def check_set(root: Path) -> None:
    """Refuse a folder in whose path a variable is not set."""
    unset = next((part for part in root.parts if part.startswith("$")), None)
    if unset is not None:
        raise SureshotError(f"The variable {unset} is not set; it names the folder of the data.")


def read_lines(path: Path) -> list[str]:
    """Lines without the space around them; empty ones are left out."""
    return [line.strip() for line in _text(path) if line.strip()]


def read_ids(path: Path, known: Collection[str]) -> list[str]:
    """The ids of a list, one a line, without an ending such as .avi that the known ones lack."""
    return [one if one in known else PurePath(one).stem for one in read_lines(path)]


def read_table(path: Path, *columns: str) -> list[dict[str, str]]:
    """Rows of a file of comma-separated values by the names in its first line."""
    header, *rows = read_rows(path) or [[]]
    for column in columns:
        if column not in header:
            raise SureshotError(
                f"{path} has no column {column}; it has {', '.join(header)[:200] or 'none'}."
            )
    places = [(column, header.index(column)) for column in columns]
    return [{name: row[i] if i < len(row) else "" for name, i in places} for row in rows]


def read_rows(path: Path) -> list[list[str]]:
    """Rows of a file of comma-separated values, the first line included, empty ones not."""
    # Line breaks as they are: csv must see those within quotes.
    reader = csv.reader(_text(path, newline=""))
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            if rows and any(row[len(rows[0]) :]):
                # A comma of a sentence outside quotes would cost the rest of the sentence.
                raise csv.Error(f"{len(row)} values where the first line has {len(rows[0])}")
            rows.append(row)
    except csv.Error as error:
        raise SureshotError(f"{path}, line {reader.line_num}: {error}.") from None
    return rows


def read_annotation(path: Path) -> Any:
    """What a JSON file holds."""
    text = _text(path).read()
    try:
        return _whole(text)
    except ValueError as error:
        raise SureshotError(f"{path} is not JSON: {error}. Was it downloaded in full?") from None


def read_objects(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a file of JSON lines, or of a list of them in JSON, and where each is.

    Empty lines are skipped.
    """
    if path.suffix != ".jsonl":
        with expecting(path, "a list of objects"):
            return [(f"object {n}", {**one}) for n, one in enumerate(read_annotation(path), 1)]
    objects: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(_text(path), start=1):
        if not line.strip():
            continue
        try:
            value = _whole(line)
        except ValueError as error:
            raise SureshotError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(value, dict):
            raise SureshotError(f"{path}, line {number}: {value!r:.60} is no JSON object.")
        objects.append((f"line {number}", value))
    return objects


def sentences(value: Any) -> list[str]:
    """The texts of a list, without the space around them."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{value!r:.60} is no list of texts")
    return [text.strip() for text in value]


def _whole(text: str) -> Any:
    """A value of JSON, NaN among its numbers, whose texts hold no half characters.

    JSON can spell these and nothing can take them.
    """
    value = parse_json(text, float)
    written = json.dumps(value, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        return parse_json(written.encode("utf-8", "replace"), float)
    return value


@contextmanager
def expecting(path: Path, form: str) -> Iterator[None]:
    """Turn what does not fit in a file into one error that says what it should hold."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise SureshotError(
            f"{path} is not as expected ({type(error).__name__}: {error}); it should hold {form}."
        ) from None


def _text(path: Path, newline: str | None = None) -> io.StringIO:
    try:
        text = read_text(path, ANNOTATION, errors="replace")
    except OSError as error:
        raise SureshotError(f"{path} cannot be read: {reason_of(error)}.") from None
    # A text of UTF-16 may hold half characters, which nothing that follows can take.
    return io.StringIO(text.encode("utf-8", "replace").decode("utf-8"), newline)


_NUMBERS = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"f2", "f4", "f8", "b1"}


def read_pickle(path: Path, needed: str, instead: str, *, arrays: bool = False) -> Any:
    """What a pickle holds: plain values, and arrays of numbers too if ``arrays``; nothing is run.

    Texts and bytes may be those of Python 2.

    Args:
        needed: what the file should hold, for the message about one that asks for more.
        instead: what the user can do then.
    """
    try:
        with open_file(path) as file:
            value = _Reader(file, arrays).load()
        return _with_arrays(value) if arrays else value
    except _RefusedError as error:
        raise SureshotError(
            f"{path} asks for {error}, which no {needed} needs, so it was not opened. It may run a "
            f"program: {instead}."
        ) from None
    except OSError as error:
        raise SureshotError(f"{path} cannot be read: {reason_of(error)}.") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise SureshotError(f"{path} is no whole pickle: {error}. Download it again.") from None


class _RefusedError(Exception):
    """The name of something a pickle may not have."""


class _Type:
    """A stand-in for the type of an array's numbers."""

    def __init__(self, name: object, *_: object) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if any(part is not None for part in state[2:5]):
            raise _RefusedError("an array with named fields")
        self.order = state[1]

    def numpy(self) -> np.dtype:
        """The type itself; only one of numbers."""
        if self.name not in _NUMBERS or self.order not in ("<", ">", "=", "|"):
            raise _RefusedError(f"an array of {self.name!r:.20}")
        return np.dtype(f"{self.order}{self.name}")


class _Array:
    """A stand-in for an array: what is needed to make it, or the values of one of objects."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> Any:
        """The array; a list of one of objects."""
        _, shape, kind, by_columns, content = self.state
        if isinstance(content, list):
            return _with_arrays(content)
        return _shaped(content, kind, shape, "F" if by_columns else "C")


def _shaped(content: Any, kind: _Type, shape: Any, order: str) -> Shaped[np.ndarray, "..."]:
    if isinstance(content, str):  # bytes, as Python 2 wrote them
        content = content.encode("latin1")
    dtype = kind.numpy()
    array = np.frombuffer(content, dtype)
    if len(array) != math.prod(shape):
        raise ValueError(f"an array of shape {shape} has {len(array)} numbers")
    return array.reshape(shape, order="F" if order == "F" else "C")


def _scalar(kind: _Type, content: Any) -> Any:
    return _shaped(content, kind, (), "C").item()


def _with_arrays(value: Any) -> Any:
    match value:
        case _Array():
            return value.array()
        case dict():
            return {key: _with_arrays(one) for key, one in value.items()}
        case list() | tuple():
            return [_with_arrays(one) for one in value]
        case _:
            return value


def _empty(kind: object, shape: object, typecode: object) -> _Array:
    return _Array()


def _bytes(text: str, coding: str) -> bytes:
    """What Python 3 writes for bytes in the old protocols, with this coding and no other."""
    if coding != "latin1":
        raise _RefusedError(f"the coding {coding}")
    return text.encode(coding)


_PLAIN: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _bytes,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
} | {
    (module, kind.__name__): kind
    for module in ("builtins", "__builtin__")
    for kind in (bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
}
_ARRAYS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # only ever named, never called
    ("numpy", "dtype"): _Type,
} | {
    (f"numpy.{core}.{module}", name): stand_in
    for core in ("core", "_core")
    for module, name, stand_in in (
        ("multiarray", "_reconstruct", _empty),
        ("multiarray", "scalar", _scalar),
        ("numeric", "_frombuffer", _shaped),
    )
}


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, arrays: bool) -> None:
        # Texts that Python 2 wrote are bytes in the file, and so are the numbers of its arrays.
        coding = "latin1" if arrays else "utf-8"
        super().__init__(file, encoding=coding, errors="replace")
        self._known = _PLAIN | _ARRAYS if arrays else _PLAIN

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise _RefusedError(f"{module}.{name}")
        return self._known[module, name]

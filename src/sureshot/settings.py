"""Read TOML and JSON safely, and turn their values into frozen dataclasses and back.

A dataclass is the only description of its settings: its field names are the known names, its types
what a value may be, its defaults what is left out. A whole number stands for a float, a list for a
tuple, a string for a path, and one table for a tuple of one.
"""

import dataclasses
import errno
import json
import math
import os
import stat
import sys
import tomllib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple, NoReturn, TypeVar, Union

from sureshot.errors import SureshotError
from sureshot.s3 import ObjectPath
from sureshot.text import decoded, plain

MEGABYTE = 1 << 20
SETTINGS = 16 * MEGABYTE  # most bytes of a recipe, a plan, a config or a card
LABELS = 256 * MEGABYTE  # most bytes of a file that people write: queries, judgements
ANNOTATION = 2048 * MEGABYTE  # most bytes of an annotation of a data set
_DIGITS, _BITS = 300, 997  # of a whole number; with 309 digits it fits no float any more
_DEPTH = 64  # tables in tables; deeper ones are made to exhaust the stack
_LARGE = 2**63  # smaller numbers are looked at together, larger ones one by one
_SHOWN = 200  # characters of a value in an error
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
_NO_FILE = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "is a device"),
)
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # pipes whose writers are there


class NotTomlError(ValueError):
    """A text whose grammar is not that of TOML."""


def open_file(path: str | Path) -> BinaryIO:
    """Open a regular file for reading; a folder, a pipe (it could block) or a device is an OSError.

    Examples:
        >>> open_file("/")
        Traceback (most recent call last):
        IsADirectoryError: [Errno 21] is a folder: '/'
    """
    if isinstance(path, ObjectPath):
        return path.open("rb")
    name = os.fspath(path)
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # NUL, or half a character
        raise OSError(errno.EINVAL, "no file can have this name", name) from None
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISFIFO(mode) and name.startswith(_OPEN_ALREADY):
            os.set_blocking(opened, True)
        else:
            for is_kind, words in _NO_FILE:
                if is_kind(mode):
                    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
                    raise OSError(number, words, name)
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_bytes(path: str | Path, max_bytes: int) -> bytes:
    """Content of a file, see `open_file`; one of more than ``max_bytes`` bytes is an OSError."""
    with open_file(path) as file:
        size = 0 if isinstance(path, ObjectPath) else os.fstat(file.fileno()).st_size
        data = file.read(max_bytes + 1) if size <= max_bytes else b""
    if max(size, len(data)) > max_bytes:
        allowed = f"{max_bytes // MEGABYTE} MB" if max_bytes >= MEGABYTE else f"{max_bytes} bytes"
        raise OSError(errno.EFBIG, f"is larger than {allowed}", os.fspath(path))
    return data


def read_text(path: str | Path, max_bytes: int, errors: str = "strict") -> str:
    """Text of a file, in UTF-8 or in the UTF-16 of Windows; what is no text is a ValueError."""
    try:
        return decoded(read_bytes(path, max_bytes), errors)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 ({error.reason})") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def parse_json(text: str | bytes, odd: Callable[[str], Any] = _no_number) -> Any:
    """Value of a JSON text.

    ValueError says that it is not JSON, holds NaN or infinity, a number of more than 300 digits, a
    name twice in one object, or nests more than 64 deep; ``odd`` is what NaN and infinity give.

    Examples:
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: it nests too deeply
        >>> parse_json('{"a": NaN}')
        Traceback (most recent call last):
        ValueError: it holds NaN, which is no number
    """
    try:
        value = json.loads(
            decoded(text) if isinstance(text, bytes) else text.removeprefix("\ufeff"),
            parse_int=_whole,
            parse_float=_real,
            parse_constant=odd,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    _check(value)
    return value


def read_json(path: Path) -> Any:
    """Value of a JSON file; see `read_text` and `parse_json`."""
    return parse_json(read_text(path, SETTINGS))


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML text; a ValueError as for `parse_json`."""
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_real)
    except tomllib.TOMLDecodeError as error:
        raise NotTomlError(str(error)) from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    except ValueError as error:
        # Its reader takes no hook for whole numbers; Python refuses those of over 4300 digits.
        odd = "it holds a number of thousands of digits"
        raise ValueError(odd if "4300" in str(error) else str(error)) from None
    _check(values)
    return values


def read_toml_values(path: Path) -> dict[str, Any]:
    """Values of a TOML file in UTF-8."""
    return parse_toml(read_text(path, SETTINGS))


def _check(value: Any, depth: int = 0) -> None:
    """Refuse what nests too deeply, and whole numbers that are too long in whatever base."""
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ValueError("it holds a number of hundreds of digits")
    if isinstance(value, (dict, list)):
        if depth == _DEPTH:
            raise ValueError("it nests too deeply")
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (dict, list, int)):
                _check(inner, depth + 1)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it holds a number of {len(digits.lstrip('-'))} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _no_number(digits if len(digits) < 20 else "a number without end")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"it has {twice[:40]!r} twice in one object")
    return table


T = TypeVar("T")


def build(kind: type[T], values: Mapping[str, object], key: str = "") -> T:
    """A dataclass from plain values by name; what is left out takes its default.

    Fields may be bool, int, float, str, Path, Literal, ``X | None``, ``tuple[X, ...]``, a mapping
    that is taken as it comes, or dataclasses of all these. Errors put the dotted ``key`` before
    their names.

    Examples:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Bowl:
        ...     depth: float
        ...     colour: Literal["red", "blue"] = "red"
        >>> build(Bowl, {"depth": 3})
        Bowl(depth=3.0, colour='red')
        >>> build(Bowl, {"depth": 3, "lid": True}, "kitchen")
        Traceback (most recent call last):
        sureshot.errors.SureshotError: Unknown setting kitchen.lid; known: depth, colour.
    """
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            shown = _cut(_dotted(key, name))
            raise SureshotError(f"Unknown setting {shown}; known: {', '.join(fields)}.")
    for name, field in fields.items():
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if name not in values and not optional:
            raise SureshotError(f"Setting {_dotted(key, name)} is missing.")
    typed = {name: _typed(hints[name], one, _dotted(key, name)) for name, one in values.items()}
    return kind(**typed)


def within(name: str, value: int | float, low: int | float, high: int | float) -> None:
    """Refuse a setting that is not between two values, both allowed."""
    if not low <= value <= high:
        raise SureshotError(f"Setting {name} is {value}; it must be between {low} and {high}.")


class Within(NamedTuple):
    """Smallest and largest value of a setting, as in ``Annotated[int, Within(1, 100)]``."""

    low: int | float  # `make shapes` takes no whole number for a float
    high: int | float


class Ranged:
    """Settings that refuse values of other kinds, and out of the ranges that their fields name.

    Examples:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Oven(Ranged):
        ...     heat: typing.Annotated[int, Within(50, 250)] = 180
        >>> Oven(300)
        Traceback (most recent call last):
        sureshot.errors.SureshotError: Setting heat is 300; it must be between 50 and 250.
    """

    __slots__ = ()
    key: ClassVar[str] = ""  # dotted key of the settings, for errors

    def __post_init__(self) -> None:
        """Refuse values of another kind or out of range."""
        kinds = typing.get_type_hints(type(self))
        fields = {field.name for field in dataclasses.fields(self) if field.init}  # type: ignore[arg-type]
        for name, hint in typing.get_type_hints(type(self), include_extras=True).items():
            if name not in fields:
                continue
            value = _typed(kinds[name], getattr(self, name), _dotted(self.key, name))
            object.__setattr__(self, name, value)
            for limits in getattr(hint, "__metadata__", ()):
                if isinstance(limits, Within) and value is not None:
                    within(_dotted(self.key, name), value, *limits)


def override(values: Mapping[str, object], assignment: str) -> dict[str, Any]:
    """A copy of nested tables with one value set, as by ``training.rate=0.001``.

    The value is TOML; a bare word is a string. A number in the path counts into a list from 0.

    Examples:
        >>> override({"a": {"b": 1}}, "a.c=word")
        {'a': {'b': 1, 'c': 'word'}}
    """
    path, equals, text = assignment.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys) or len(keys) > _DEPTH:
        raise SureshotError(f"Cannot set {_shown(assignment)}; write it as name.of.setting=value.")
    return _set(values, keys, _parsed(text.strip(), path.strip()), "")


def to_values(value: Any) -> Any:
    """A setting as a TOML or JSON file holds it: tables, lists, strings and numbers, or None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_values(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: to_values(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_values(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def to_toml(values: Mapping[str, object]) -> str:
    """Plain values as TOML text. None is left out: every setting that may be None is by default.

    Examples:
        >>> print(to_toml({"seed": 0, "system": {"name": "duq"}}))
        seed = 0
        <BLANKLINE>
        [system]
        name = "duq"
        <BLANKLINE>
    """
    from tomli_w import dumps  # takes longer to import than all the rest of this module

    return dumps(_without_none(values))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list) else value


def _typed(kind: Any, value: object, key: str) -> Any:
    """The value as this type, or an error."""
    origin = typing.get_origin(kind)
    if getattr(value, "ndim", None) == 0:  # a number of numpy or torch
        value = value.item()  # type: ignore[attr-defined]
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = [inner for inner in typing.get_args(kind) if inner is not type(None)]
        return _typed(kind, value, key)
    if origin is Literal:
        choices = typing.get_args(kind)
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise SureshotError(
                f"Setting {key} is {_shown(value)}; known: {', '.join(map(str, choices))}."
            )
        return value
    if origin is tuple:
        return _several(typing.get_args(kind)[0], value, key)
    if dataclasses.is_dataclass(kind) or issubclass(origin or kind, Mapping):
        return _table(kind, value, key)
    return _scalar(kind, value, key)


def _table(kind: Any, value: object, key: str) -> Any:
    """A mapping, or a dataclass, which may be built already."""
    is_dataclass = dataclasses.is_dataclass(kind)
    if is_dataclass and isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise SureshotError(f"Setting {key} is {_shown(value)}; expected a table.")
    if is_dataclass:
        return build(kind, value, key)
    _, inner = typing.get_args(kind) or (str, Any)
    if inner in (Any, object):
        return dict(value)
    return {name: _typed(inner, one, _dotted(key, str(name))) for name, one in value.items()}


def _several(kind: Any, value: object, key: str) -> tuple[Any, ...]:
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        return (_typed(kind, value, key),)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SureshotError(f"Setting {key} is {_shown(value)}; expected a list.")
    # A calibration card has thousands of numbers, and each search reads one.
    if kind in (int, float) and all(type(one) is kind and abs(one) < _LARGE for one in value):
        return tuple(value)
    return tuple(_typed(kind, inner, f"{key}.{place}") for place, inner in enumerate(value))


def _scalar(kind: type, value: object, key: str) -> object:
    if kind is Path and isinstance(value, (str, Path)):
        return Path(value)
    if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
        value = float(value)
    # A bool is an int to Python, but true is no number of frames.
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is int and isinstance(value, int) and value.bit_length() > 63:
        raise SureshotError(f"Setting {key} is {_shown(value)}; no number is so large here.")
    if fits and not (isinstance(value, float) and not math.isfinite(value)):
        return value
    expected = _KINDS.get(kind, kind.__name__)
    raise SureshotError(f"Setting {key} is {_shown(value)}; expected {expected}.")


def _set(values: object, keys: list[str], value: object, key: str) -> Any:
    """A copy of these values with one deep inside of them set."""
    if not keys:
        return value
    name, *rest = keys
    here = _dotted(key, name)
    if isinstance(values, list) and name.isdecimal() and (place := int(name)) < len(values):
        changed = _set(values[place], rest, value, here)
        return [*values[:place], changed, *values[place + 1 :]]
    if not isinstance(values, Mapping):
        raise SureshotError(f"Cannot set {here}: {key} is not a table.")
    return {**values, name: _set(values.get(name, {}), rest, value, here)}


def _parsed(text: str, key: str) -> object:
    try:
        read = parse_toml(f"value = {text}")
    except NotTomlError:
        return text
    except ValueError as error:
        raise SureshotError(f"Cannot set {plain(key)[:_SHOWN]}: {error}.") from None
    return read["value"] if len(read) == 1 else text


def _shown(value: object) -> str:
    """A value as an error shows it: in a few characters, none of which steers a terminal."""
    if isinstance(value, int) and value.bit_length() > 1000:  # more digits than Python writes
        return f"a number of {value.bit_length()} bits"
    return _cut(repr(value))


def _cut(text: str) -> str:
    text = plain(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _dotted(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name

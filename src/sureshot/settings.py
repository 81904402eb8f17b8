"""From the plain values of a TOML file to frozen dataclasses, and back.

A dataclass is the only description of its settings: its field names are the known names, its types
what a value may be, its defaults what is left out. A whole number stands for a float, a list for a
tuple, a string for a path, and one table for a tuple of one.
"""

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeGuard, TypeVar, Union

from sureshot.errors import SureshotError
from sureshot.formats import NotTomlError, parse_toml
from sureshot.text import plain

T = TypeVar("T")
_DEEPEST = 64  # tables in tables
_SHOWN = 200  # characters of a value in an error
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def build(kind: type[T], values: Mapping[str, object], at: str = "") -> T:
    """A dataclass from plain values.

    Args:
        kind: the dataclass. Fields may be bool, int, float, str, Path, Literal, ``X | None``,
            ``tuple[X, ...]``, a mapping that is taken as it comes, or dataclasses of all these.
        values: plain values by name; what is left out takes its default.
        at: dotted path of these values, for errors.

    Raises:
        SureshotError: an unknown or missing name or a value of another type; the message has the
            dotted path.

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
            raise SureshotError(f"Unknown setting {_named(at, name)}; known: {', '.join(fields)}.")
    for name, field in fields.items():
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if name not in values and not optional:
            raise SureshotError(f"Setting {_dotted(at, name)} is missing.")
    return kind(
        **{name: _typed(hints[name], value, _dotted(at, name)) for name, value in values.items()}
    )


def within(name: str, value: int | float, low: int | float, high: int | float) -> None:
    """See that a setting lies between two values, which it may be.

    Raises:
        SureshotError: it does not, or is not a number.
    """
    if not low <= value <= high:
        raise SureshotError(f"Setting {name} is {value}; it must be between {low} and {high}.")


class Within(NamedTuple):
    """Smallest and largest value of a setting, as in ``Annotated[int, Within(1, 100)]``."""

    low: int | float
    high: int | float


class Ranged:
    """Settings that refuse values out of the ranges that their fields name; None is in any.

    Attributes:
        at: dotted path of the settings, for errors.

    Raises:
        SureshotError: a value is out of its range, or is not a number.

    Examples:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Oven(Ranged):
        ...     heat: typing.Annotated[int, Within(50, 250)] = 180
        >>> Oven(300)
        Traceback (most recent call last):
        sureshot.errors.SureshotError: Setting heat is 300; it must be between 50 and 250.
    """

    __slots__ = ()
    at: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name, hint in typing.get_type_hints(type(self), include_extras=True).items():
            for limits in getattr(hint, "__metadata__", ()):
                value = getattr(self, name)
                if isinstance(limits, Within) and value is not None:
                    within(_dotted(self.at, name), value, *limits)


def override(values: Mapping[str, object], assignment: str) -> dict[str, Any]:
    """Values with one of them set, as by ``training.rate=0.001``; the given ones stay.

    Args:
        values: nested tables.
        assignment: a dotted path, ``=`` and a value in TOML; a bare word is a string. A number in
            the path counts into a list from 0.

    Raises:
        SureshotError: there is no ``=``, or the path leads through something that is no table.

    Examples:
        >>> override({"a": {"b": 1}}, "a.c=word")
        {'a': {'b': 1, 'c': 'word'}}
    """
    path, equals, text = assignment.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys) or len(keys) > _DEEPEST:
        raise SureshotError(f"Cannot set {_shown(assignment)}; write it as name.of.setting=value.")
    changed: dict[str, Any] = _set(values, keys, _parsed(text.strip(), path.strip()), "")
    return changed


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


def _typed(kind: Any, value: object, at: str) -> Any:
    """The value as this type, or an error."""
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = [inner for inner in typing.get_args(kind) if inner is not type(None)]
        return _typed(kind, value, at)
    if origin is Literal:
        choices = typing.get_args(kind)
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise SureshotError(
                f"Setting {at} is {_shown(value)}; known: {', '.join(map(str, choices))}."
            )
        return value
    if origin is tuple:
        return _several(typing.get_args(kind)[0], value, at)
    if dataclasses.is_dataclass(kind) or _is_mapping(kind):
        if not isinstance(value, Mapping):
            raise SureshotError(f"Setting {at} is {_shown(value)}; expected a table.")
        return _table(kind, value, at) if _is_mapping(kind) else build(kind, value, at)
    return _scalar(kind, value, at)


def _table(kind: Any, value: Mapping[Any, object], at: str) -> dict[Any, Any]:
    """A mapping whose values are of the type it names; as it comes where it names none."""
    inner = typing.get_args(kind)[1] if typing.get_args(kind) else Any
    if inner in (Any, object):
        return dict(value)
    return {name: _typed(inner, one, _dotted(at, str(name))) for name, one in value.items()}


def _several(kind: Any, value: object, at: str) -> tuple[Any, ...]:
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        return (_typed(kind, value, at),)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SureshotError(f"Setting {at} is {_shown(value)}; expected a list.")
    # A calibration card has thousands of numbers, and each search reads one.
    if kind is float and all(type(one) is float and math.isfinite(one) for one in value):
        return tuple(value)
    if kind is int and all(type(one) is int and one.bit_length() < 64 for one in value):
        return tuple(value)
    return tuple(_typed(kind, inner, f"{at}.{place}") for place, inner in enumerate(value))


def _scalar(kind: type, value: object, at: str) -> object:
    if kind is Path and isinstance(value, (str, Path)):
        return Path(value)
    if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
        value = float(value)
    # A bool is an int to Python, but true is no number of frames.
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is int and isinstance(value, int) and value.bit_length() > 63:
        raise SureshotError(f"Setting {at} is {_shown(value)}; no number is so large here.")
    if fits and not (isinstance(value, float) and not math.isfinite(value)):
        return value
    expected = _KINDS.get(kind, kind.__name__)
    raise SureshotError(f"Setting {at} is {_shown(value)}; expected {expected}.")


def _is_mapping(kind: Any) -> bool:
    return isinstance(origin := typing.get_origin(kind) or kind, type) and issubclass(
        origin, Mapping
    )


def _set(values: object, keys: list[str], value: object, at: str) -> Any:
    """A copy of these values with one deep inside of them set."""
    if not keys:
        return value
    key, *rest = keys
    here = _dotted(at, key)
    if isinstance(values, list) and key.isdecimal() and int(key) < len(values):
        place = int(key)
        changed = _set(values[place], rest, value, here)
        return [*values[:place], changed, *values[place + 1 :]]
    if not isinstance(values, Mapping):
        raise SureshotError(f"Cannot set {here}: {at} is not a table.")
    return {**values, key: _set(values.get(key, {}), rest, value, here)}


def _parsed(text: str, at: str) -> object:
    try:
        read = parse_toml(f"value = {text}")
    except NotTomlError:
        return text
    except ValueError as error:
        raise SureshotError(f"Cannot set {plain(at)[:_SHOWN]}: {error}.") from None
    return read["value"] if len(read) == 1 else text


def _named(at: str, name: str) -> str:
    """A dotted path that somebody else wrote, as an error shows it."""
    text = plain(_dotted(at, name))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _shown(value: object) -> str:
    """A value as an error shows it: in a few characters, none of which steers a terminal."""
    text = f"a number of {value.bit_length()} bits" if _is_long(value) else plain(repr(value))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_long(value: object) -> TypeGuard[int]:
    """Whether a whole number has more digits than Python writes out."""
    return isinstance(value, int) and value.bit_length() > 1000


def _dotted(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name

"""Foreign text as plain values: JSON and TOML, and files that are read within a size.

Whoever made a file may have made it to do harm, so nothing is taken from it that costs more than
its size, or that what follows could not hold: numbers of hundreds of digits or none, nesting
without end, a name twice in one object, pipes that nobody writes into.
"""

import errno
import json
import math
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from sureshot.objects.path import ObjectPath
from sureshot.text import decoded

MEGABYTE = 1 << 20
SETTINGS = 16 * MEGABYTE  # most bytes of a recipe, a plan, a config or a card
LABELS = 256 * MEGABYTE  # most bytes of a file that people write: queries, judgements
ANNOTATION = 2048 * MEGABYTE  # most bytes of an annotation of a data set
_DIGITS = 300  # of a whole number; with 309 it fits no float any more
_DEPTH = 64  # tables in tables; deeper ones are made to exhaust the stack
_BITS = 996  # of such a number
_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "is a device"),
)
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # pipes whose writers are there


class NotTomlError(ValueError):
    """A text whose grammar is not that of TOML."""


def open_file(path: str | Path) -> BinaryIO:
    """Open a file for reading if it is one; a pipe, which may be waited for for ever, is none.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe or a device.

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
            for is_kind, words in _KINDS:
                if is_kind(mode):
                    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
                    raise OSError(number, words, name)
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_bytes(path: str | Path, most: int) -> bytes:
    """Content of a file that is no larger than it may be.

    Args:
        path: the file.
        most: bytes that it may have; a larger file is refused before anything of it is read.

    Raises:
        OSError: it cannot be opened, see `open_file`; it cannot be read; or it is larger.
    """
    with open_file(path) as file:
        size = 0 if isinstance(path, ObjectPath) else os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else b""
    if max(size, len(data)) > most:
        allowed = f"{most // MEGABYTE} MB" if most >= MEGABYTE else f"{most} bytes"
        raise OSError(errno.EFBIG, f"is larger than {allowed}", os.fspath(path))
    return data


def read_text(path: str | Path, most: int, errors: str = "strict") -> str:
    """Text of a file, in UTF-8 or in the UTF-16 of Windows.

    Args:
        path: the file.
        most: bytes that it may have.
        errors: what becomes of bytes that are no text, as for `bytes.decode`.

    Raises:
        OSError: it cannot be read, see `read_bytes`.
        ValueError: it is no text.
    """
    try:
        return decoded(read_bytes(path, most), errors)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 ({error.reason})") from None


def parse_json(text: str | bytes) -> Any:
    """Value of a JSON text.

    Raises:
        ValueError: it is not JSON, holds NaN or infinity, a number of more than 300 digits, a name
            twice in one object, or nests more than 64 deep.

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
            parse_constant=_no_number,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    _check_depth(value)
    return value


def read_json(path: Path, most: int = SETTINGS) -> Any:
    """Value of a JSON file in UTF-8.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        OSError: the file cannot be read, see `read_bytes`.
        ValueError: it is not JSON, see `parse_json`.
    """
    return parse_json(read_text(path, most))


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML text.

    Raises:
        ValueError: it is not TOML, holds NaN or infinity or a number of more than 300 digits, or
            nests more than 64 deep.

    Examples:
        >>> parse_toml("a = " + "9" * 5000)
        Traceback (most recent call last):
        ValueError: it holds a number of thousands of digits
    """
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_real)
    except tomllib.TOMLDecodeError as error:
        raise NotTomlError(str(error)) from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    except ValueError as error:
        # Its reader takes no hook for whole numbers; Python refuses those of over 4300 digits.
        odd = "a number of thousands of digits" if "4300" in str(error) else ""
        raise ValueError(f"it holds {odd}" if odd else str(error)) from None
    _check_numbers(values)
    return values


def read_toml_values(path: Path) -> dict[str, Any]:
    """Values of a TOML file in UTF-8.

    Raises:
        OSError: the file cannot be read, see `read_bytes`.
        ValueError: it is not TOML, see `parse_toml`.
    """
    return parse_toml(read_text(path, SETTINGS))


def _check_depth(value: Any) -> None:
    """See that lists and tables do not nest too deeply.

    Raises:
        ValueError: they do.
    """
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_DEPTH):
        if not level:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    if level:
        raise ValueError("it nests too deeply")


def _check_numbers(values: dict[str, Any]) -> None:
    """See that no whole number is longer than it may be, whatever it was written to base of.

    Raises:
        ValueError: one is.
    """
    _check_depth(values)
    left: list[Any] = [values]
    while left:
        value = left.pop()
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise ValueError("it holds a number of hundreds of digits")
        if isinstance(value, (dict, list)):
            left += value.values() if isinstance(value, dict) else value


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it holds a number of {len(digits.lstrip('-'))} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _no_number(digits if len(digits) < 20 else "a number without end")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"it has {twice[:40]!r} twice in one object")
    return made

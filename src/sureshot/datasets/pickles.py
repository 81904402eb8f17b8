"""Pickles as data sets and features are published in, opened without running what is in them.

A pickle is a program: opening one the usual way runs whatever it asks for. Here it may build
containers, texts, numbers and, where they are wanted, NumPy's arrays of numbers; all else is
refused. Not even NumPy's own functions are called from within: a stand-in takes down shape, type
and bytes, and the array is made of these once the file has been read.
"""

import collections
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from sureshot.errors import SureshotError, reason_of
from sureshot.formats import open_file

_NUMBERS = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"f2", "f4", "f8", "b1"}


def read_pickle(path: Path, needed: str, instead: str, *, arrays: bool = False) -> Any:
    """What a pickle holds.

    Args:
        path: the file; texts and bytes may be those of Python 2.
        needed: what the file should hold, for the message about one that asks for more.
        instead: what the user can do then.
        arrays: arrays of numbers may be in it as well.

    Raises:
        SureshotError: it cannot be read, is damaged, or asks for something else than plain values;
            nothing of it was run.
    """
    try:
        with open_file(path) as file:
            value = _Reader(file, arrays).load()
        return _made(value) if arrays else value
    except _RefusedError as error:
        raise SureshotError(
            f"{path} asks for {error}, which no {needed} needs, so it was not opened. It may run a "
            f"program: {instead}."
        ) from None
    except OSError as error:
        raise SureshotError(f"{path} cannot be read: {reason_of(error)}.") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise SureshotError(f"{path} is no whole pickle: {error}. Fetch it anew.") from None


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

    def made(self) -> Any:
        """The array; a list of one of objects."""
        _, shape, kind, by_columns, content = self.state
        if isinstance(content, list):
            return _made(content)
        return _shaped(content, kind, shape, "F" if by_columns else "C")


def _shaped(content: Any, kind: _Type, shape: Any, order: str) -> Shaped[np.ndarray, "..."]:
    """The array of these bytes."""
    if isinstance(content, str):  # bytes, as Python 2 wrote them
        content = content.encode("latin1")
    dtype = kind.numpy()
    array = np.frombuffer(content, dtype)
    if len(array) != math.prod(shape):
        raise ValueError(f"an array of shape {shape} has {len(array)} numbers")
    return array.reshape(shape, order="F" if order == "F" else "C")


def _scalar(kind: _Type, content: Any) -> Any:
    return _shaped(content, kind, (), "C").item()


def _made(value: Any) -> Any:
    """The same with arrays in place of their stand-ins."""
    match value:
        case _Array():
            return value.made()
        case dict():
            return {key: _made(one) for key, one in value.items()}
        case list() | tuple():
            return [_made(one) for one in value]
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

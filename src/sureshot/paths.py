"""Paths and the folders in which Sureshot keeps its files."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from platformdirs import user_cache_path, user_data_path

from sureshot.errors import (
    ArgumentError,
    StoreError,
    SureshotError,
    has_credentials,
    option,
    reason_of,
)
from sureshot.s3 import ObjectPath, object_path
from sureshot.text import plain

_Named = TypeVar("_Named", bound=str | Path)


def as_list(given: _Named | Iterable[_Named]) -> list[_Named]:
    """What is given, as a list: one text or path is one item and no row of letters.

    Examples:
        >>> as_list("*.gif"), as_list(iter(["a", "b"]))
        (['*.gif'], ['a', 'b'])
    """
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Path):
        return list(given)
    return [given]


def data_dir() -> Path:
    """Folder of the user's indexes: ``$XDG_DATA_HOME/sureshot``, or where the system has data."""
    return _folder(user_data_path, "XDG_DATA_HOME")


def reference_card(fingerprint: str) -> Path:
    """The calibration card of an encoder, which has no folder for it, among the user's data."""
    return data_dir() / "cards" / f"{fingerprint}.json"


def cache_dir() -> Path:
    """Folder of what can be thrown away, as `data_dir`: ``$XDG_CACHE_HOME/sureshot``."""
    return _folder(user_cache_path, "XDG_CACHE_HOME")


@runtime_checkable
class OpenIndex(Protocol):
    """A `Store` or a `Searcher`."""

    @property
    def location(self) -> str:
        """Folder or object-storage URI."""


IndexPlace: TypeAlias = str | Path | OpenIndex | None


def index_place(db: IndexPlace = None) -> str:
    """Where an index is: at the place named, else at ``$SURESHOT_DB``, else in the data folder."""
    given: Any = getattr(db, "location", db)
    if given == "":
        raise ArgumentError("The place of the index is empty; name one, or leave it out.")
    place = os.environ.get("SURESHOT_DB") or data_dir() / "index" if given is None else given
    check_path(place)
    return os.fspath(place)


def make_index_folder(location: str | Path) -> None:
    """Make the folder of an index: in the data folder for this account alone.

    Elsewhere others may be meant to use it, as the umask says.
    """
    folder = Path(location)
    folder.mkdir(0o700 if folder.is_relative_to(data_dir()) else 0o777, parents=True, exist_ok=True)


def locate(location: str | Path) -> str:
    """A place of an index as an absolute folder, links in it kept, or as an object-storage URI."""
    text = os.fspath(location)
    named = _object(location)
    other = f"Choose another with {option('db')}."
    if "\n" in text or "\r" in text:
        raise StoreError(f"An index cannot be at {text!r}: the name holds a line break. {other}")
    if named is not None:
        return str(named)
    text = text.removeprefix("file://")
    if "://" in text:
        return text.rstrip("/")
    text = str(absolute(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "replace").decode()
        raise StoreError(f"An index cannot be at {shown}: the name is not UTF-8. {other}") from None
    return text


def index_folder(location: str) -> Path | None:
    """Folder of the files of an index, see `locate`; None in a storage that may hold none."""
    return _object(location) if "://" in location else Path(location)


def absolute(path: str | Path) -> Path:
    """A path as the index knows it: without ``~`` and ``..``, symbolic links kept.

    An address of object storage (``s3://…``) is an `ObjectPath`.
    """
    if (named := _object(path)) is not None:
        return named
    try:
        return Path(os.path.abspath(expand(path)))  # noqa: PTH100 - Path.resolve follows links
    except FileNotFoundError:
        raise SureshotError(
            "The folder you are in is gone; change into one that is there, or give whole paths."
        ) from None


def video_id(path: Path) -> str:
    """Name of a video that does not reveal its place: a digest of its absolute path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def expand(path: str | Path) -> Path:
    """A path with the home folder for ``~``; the ``~`` of an unknown user stays.

    An empty one is refused; it is not the folder that we are in.
    """
    if (there := _object(path)) is not None:
        return there
    named = os.fspath(path)
    if not named:
        raise ArgumentError("A path is empty; name a file or a folder.")
    try:
        if b"\0" in os.fsencode(named):
            raise ValueError("a NUL")
    except ValueError:  # or half a character
        raise ArgumentError(
            f"No file can be named {plain(named)[:80]}: a name has no NUL and no "
            "half characters. Name another."
        ) from None
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser fails at such a user


def exists_at(path: str | Path) -> bool:
    """Whether something is at a path; nothing is where permission is missing."""
    here = absolute(path)
    if not isinstance(here, ObjectPath):
        return os.path.exists(here)  # noqa: PTH110 - no error where one may not look
    try:
        return here.exists()
    except OSError as error:
        raise SureshotError(f"{plain(here)} cannot be read: {reason_of(error)}.") from None


def is_taken(path: Path) -> bool:
    """Whether something would be replaced at a path, be it a link that leads nowhere."""
    return exists_at(path) if isinstance(path, ObjectPath) else os.path.lexists(path)


def is_folder_at(path: str | Path) -> bool:
    """Whether there is a folder; none is where a path is too long or permission is missing."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir fails at such names


def absolute_model(model: str | Path) -> str:
    """A model name as an index stores it: local folders by their absolute path."""
    return str(absolute(model)) if is_local_model(model) else os.fspath(model)


def is_local_model(model: str | Path) -> bool:
    """Whether the name of a model is that of a folder, which need not be there."""
    check_path(model)
    named = isinstance(model, Path) or model.startswith(("/", "./", "../", "~"))
    return named or is_folder_at(model)


def check_path(path: str | Path) -> None:
    """Refuse an address with credentials in it, and what is no path."""
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"{path!r} is not a path; give text or a Path.")
    text = os.fspath(path)
    if has_credentials(text) and (isinstance(path, Path) or "://" in text):
        raise ArgumentError(
            f"The address {plain(text)} has credentials in it, which would be printed and stored. "
            f"Leave them out; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )


def _object(path: str | Path) -> ObjectPath | None:
    """The path of an address of object storage; None for any other."""
    check_path(path)
    try:
        return object_path(path)
    except ValueError as why:
        raise ArgumentError(f"{plain(ObjectPath(path))}: {why}. Name another place.") from None


def _folder(of_user: Callable[[str, Literal[False]], Path], variable: str) -> Path:
    try:
        return of_user("sureshot", False)
    except RuntimeError:
        raise SureshotError(
            f"This user has no home folder; set {variable} to a folder, given from / on."
        ) from None


_SHARE = re.compile(r"(\d{1,9})/(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Which videos a process deals with, number 1 to ``of``: those whose path has its digest.

    What else is listed does not matter, so a file that comes or goes moves no other to another
    process.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str, name: str = "shard") -> "Shard":
        """The shard that a text names, given as the option ``name``.

        Examples:
            >>> Shard.parse("3/16")
            Shard(number=3, of=16)
        """
        named = _SHARE.fullmatch(text.strip())
        number, of = map(int, named.groups()) if named else (0, 0)
        if not 1 <= number <= of:
            raise ArgumentError(
                f"Invalid {option(name)} {text!r}: use K/N with 1 <= K <= N, for example 3/16."
            )
        return cls(number, of)

    def has(self, path: Path) -> bool:
        """Whether the video at an absolute path is of this share."""
        return self.of == 1 or int(video_id(path)[:12], 16) % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard()

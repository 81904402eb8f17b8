"""Where Sureshot keeps its files: XDG folders, each overridable by an environment variable."""

import os
from pathlib import Path

from sureshot.errors import StoreError, SureshotError, option


def data_dir() -> Path:
    """Folder of the user's indexes: ``$XDG_DATA_HOME/sureshot`` or ``~/.local/share/sureshot``.

    Raises:
        SureshotError: the variable is not set and this user has no home.
    """
    return _base("XDG_DATA_HOME", ".local/share") / "sureshot"


def cache_dir() -> Path:
    """Folder of what can be thrown away: ``$XDG_CACHE_HOME/sureshot`` or ``~/.cache/sureshot``.

    Raises:
        SureshotError: the variable is not set and this user has no home.
    """
    return _base("XDG_CACHE_HOME", ".cache") / "sureshot"


def default_index() -> str:
    """The index used where none is named: ``$SURESHOT_DB`` or one in the data folder."""
    return os.environ.get("SURESHOT_DB") or str(data_dir() / "index")


def locate(location: str | Path) -> str:
    """A place of an index as an absolute folder, links in it kept, or as an object-storage URI.

    Raises:
        StoreError: its name is not UTF-8, which the library below does not take.
    """
    text = os.fspath(location)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if "://" in text:
        return text.rstrip("/")
    # Not Path.expanduser: it fails where there is no such user. Not resolve: it follows links.
    text = os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "replace").decode()
        raise StoreError(
            f"An index cannot lie at {shown}: the name is not UTF-8. Choose another with "
            f"{option('db')}."
        ) from None
    return text


def absolute(path: str | Path) -> Path:
    """A path as the index knows it: without ``~`` and ``..``, symbolic links kept."""
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111


def _base(variable: str, fallback: str) -> Path:
    given = os.environ.get(variable, "")
    # The XDG specification says that a relative path in these variables must be ignored.
    if given and Path(given).is_absolute():
        return Path(given)
    try:
        return Path.home() / fallback
    except RuntimeError:
        raise SureshotError(
            f"This user has no home folder; set {variable} to a folder, given from / on."
        ) from None

"""Every error Sureshot raises on purpose. Each message names the thing, the reason and the fix."""

import re
import shlex
from pathlib import Path
from typing import ClassVar

# Scheme, host with what is before it, and the rest of an address, whose second slash a path loses.
_ADDRESS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*:/{1,2})([^/\s'\"]*)([^\s'\"]*)")
_SIGNED = re.compile(
    r"\?[^\s'\"]*(?:signature|sig|credential|key|token|secret|password|auth)[\w-]*=[^\s'\"]*", re.I
)


def masked(text: str) -> str:
    """Text with "…" for the credentials in its addresses.

    Examples:
        >>> masked("s3://AKID:wJa/lr@films/a.mp4, https://host/b.mp4?X-Amz-Signature=00ff")
        's3://…@films/a.mp4, https://host/b.mp4?…'
    """

    def without_user(found: re.Match[str]) -> str:
        scheme, host, rest = found.groups()
        if not _names_user(host):
            return found[0]
        return (
            f"{scheme}…@{(host + rest).rpartition('@')[2]}" if "@" in host + rest else f"{scheme}…"
        )

    return _SIGNED.sub("?…", _ADDRESS.sub(without_user, text))


def has_credentials(address: str) -> bool:
    """Whether an address names a user, or is signed."""
    found = _ADDRESS.match(address)
    return found is not None and (_names_user(found[2]) or bool(_SIGNED.search(address)))


def _names_user(host: str) -> bool:
    return "@" in host or re.search(r":(?!\d{0,5}$)", host) is not None


class SureshotError(Exception):
    """Something the user can fix; the message says how.

    Attributes:
        code: short name of the kind of error, which programs may rely on.
    """

    code: ClassVar[str] = "input"

    def __str__(self) -> str:
        return masked(super().__str__())


class ArgumentError(SureshotError):
    """Arguments of a call, or of a command, that do not go together or have no meaning."""

    code = "arguments"


class VideoError(SureshotError):
    """One video could not be read. The rest of the folder is not affected.

    Attributes:
        transient: the reason may go away by itself, so the next run tries again.
    """

    code = "video"

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class StoreError(SureshotError):
    """The index is missing, damaged, from a newer version, or written by another model."""

    code = "index"


class ModelError(SureshotError):
    """A model could not be found, loaded or trusted."""

    code = "model"


class QueryError(SureshotError):
    """A query that cannot be searched for."""

    code = "query"


def reason_of(error: OSError) -> str:
    """What the system says of a file, in lower case, without its path."""
    return (error.strerror or str(error)).lower()


def option(name: str, value: str | Path | bool = "") -> str:
    """An option as messages name it. The parameter of a Python function has the same name.

    Examples:
        >>> option("skip_unknown", True), option("merge_copies", False)
        ('--skip-unknown', '--no-merge-copies')
        >>> option("folder", "My videos")
        "--folder 'My videos'"
    """
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}" if value else f"--{flag}"


def install_command(extra: str) -> str:
    """The command that installs what one of our extras needs, from wherever it is typed.

    No registry has Sureshot itself, so a name such as ``sureshot[web]`` would find somebody else's.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        listed = [one.partition("; extra == ") for one in requires("sureshot") or ()]
    except PackageNotFoundError:  # run from its source
        return f"pip install '.[{extra}]'"
    wanted = [shlex.quote(name) for name, _, of in listed if of.strip("'\"") == extra]
    return f"pip install {' '.join(wanted)}"

"""Every error Sureshot raises on purpose. Each message names the thing, the reason and the fix."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

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
        _, at, place = (host + rest).rpartition("@")
        return f"{scheme}…{at}{place if at else ''}"

    return _SIGNED.sub("?…", _ADDRESS.sub(without_user, text))


def has_credentials(address: str) -> bool:
    """Whether an address names a user, or is signed."""
    found = _ADDRESS.match(address)
    return found is not None and (_names_user(found[2]) or bool(_SIGNED.search(address)))


def _names_user(host: str) -> bool:
    return "@" in host or re.search(r":(?!\d{0,5}$)", host) is not None


class SureshotError(Exception):
    """Something the user can fix; the message says how."""

    code: ClassVar[str] = "input"  # short name of the kind of error, which programs may rely on

    def __str__(self) -> str:
        return masked(super().__str__())


class ArgumentError(SureshotError):
    """Arguments of a call, or of a command, that do not go together or have no meaning."""

    code = "arguments"


class VideoError(SureshotError):
    """One video could not be read. The rest of the folder is not affected.

    If it is ``transient``, the reason may go away by itself, and the next run tries again.
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


class NotFiniteError(SureshotError):
    """A loss, a gradient or a score is no finite number, as where training has diverged."""


class MissingPackageError(SureshotError):
    """Something needs packages that the base installation leaves out."""

    code = "package"

    def __init__(self, what: str, packages: Sequence[str]) -> None:
        names, are = " and ".join(packages), "are" if len(packages) > 1 else "is"
        super().__init__(
            f"{what} needs {names}, which {are} not installed; install what research needs: "
            f"{install_command('research')}"
        )


def reason_of(error: OSError) -> str:
    """What the system says of a file, as the rest of a sentence, without its path."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


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


def is_installed(package: str) -> bool:
    """Whether a module can be found; nothing is imported."""
    from importlib.util import find_spec

    try:
        return find_spec(package) is not None
    except ValueError:  # barred from being imported
        return False


RESEARCH = ("torch", "transformers", "matplotlib", "h5py")  # modules of the extra of that name


def require_research(what: str, *packages: str) -> None:
    """Refuse what needs packages, or torch, of the extra ``research`` that are not installed."""
    missing = [package for package in packages or ("torch",) if not is_installed(package)]
    if missing:
        raise MissingPackageError(what, missing)


@contextlib.contextmanager
def imports_for(what: str) -> Iterator[None]:
    """Say what needs a package of the extra ``research`` where an import does not find it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in RESEARCH:
            raise
        raise MissingPackageError(what, [package]) from None


_SILENT = "ORT_DISABLE_TELEMETRY"


def onnxruntime() -> Any:
    """ONNX Runtime's module, imported without its calls home.

    To be called before a package is imported that imports it in turn: it reads the variable when
    its library is loaded, and what it offers for later calls comes too late.
    """
    before = os.environ.get(_SILENT)
    os.environ[_SILENT] = "1"
    try:
        import onnxruntime
    finally:
        del os.environ[_SILENT]
        os.environ |= {} if before is None else {_SILENT: before}
    return onnxruntime


def pip_install(*, again: bool = False) -> str:
    """The command, without packages, that installs into this environment; typed anywhere.

    pip leaves a broken package as it is unless it is to install it ``again``. An environment
    without pip, as `uv tool` makes them, is named to uv.
    """
    uv = f"uv pip install --python {shlex.quote(sys.executable)}"
    flags = " --force-reinstall --no-deps" if again else ""
    return ("pip install" if is_installed("pip") else uv) + flags


def install_command(extra: str, *, again: bool = False) -> str:
    """The command that installs what an extra needs, or a package of the base.

    No registry has Sureshot itself, so a name such as ``sureshot[s3]`` would find somebody else's.
    """
    from importlib.metadata import PackageNotFoundError, requires

    pip = pip_install(again=again)
    try:
        listed = [one.partition("; extra == ") for one in requires("sureshot") or ()]
    except PackageNotFoundError:  # run from its source
        return f"{pip} '.[{extra}]'"
    wanted = [n for n, _, of in listed if (of or re.split(r"[^\w.-]", n)[0]).strip("'\"") == extra]
    return f"{pip} {shlex.join(wanted)}"

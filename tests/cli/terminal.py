"""Commands as a person runs them: in this process, in one of their own, in a terminal."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import typer

from sureshot.cli.app import app_of
from tests.processes import command, finish

COMMAND = (sys.executable, "-m", "sureshot")
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
_UPDATE = "SURESHOT_UPDATE_SNAPSHOTS"


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def spawn(*arguments: str | Path, stdin: bytes = b"", code: str = "", **environment: str) -> Ran:
    """Run a command, or code in its place, in a process of its own, without a terminal."""
    (ran,) = spawn_all([environment], *arguments, stdin=stdin, code=code)
    return ran


def spawn_all(
    environments: Sequence[dict[str, str]],
    *arguments: str | Path,
    stdin: bytes = b"",
    code: str = "",
) -> list[Ran]:
    """The same in several processes at once, each with variables of its own."""
    with contextlib.ExitStack() as stack:
        files = [[stack.enter_context(TemporaryFile()) for _ in range(3)] for _ in environments]
        for given, *_ in files:
            given.write(stdin)
            given.seek(0)
        words = [*map(str, arguments)]
        codes = finish(
            *(
                command(words, [file.fileno() for file in own], os.environ | environment, code)
                for own, environment in zip(files, environments, strict=True)
            )
        )
        printed = []
        for file in (file for _, *written in files for file in written):
            file.seek(0)
            printed.append(file.read().decode())
        return [
            Ran(ended or 0, out, err)
            for ended, out, err in zip(codes, printed[::2], printed[1::2], strict=True)
        ]


def in_terminal(
    *arguments: str | Path,
    columns: int = 100,
    typed: bytes = b"",
    reply: tuple[bytes, bytes] | None = None,
    **environment: str,
) -> tuple[int, str]:
    """Run a command in a terminal; its exit code and all that the terminal was sent.

    ``typed`` is typed before the command asks for anything; the second part of ``reply`` as soon as
    the terminal shows the first part.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    environment = known | {"TERM": "xterm-256color"} | environment
    process = command([*map(str, arguments)], [theirs] * 3, environment)
    os.close(theirs)
    os.write(ours, typed)
    sent = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end was closed
        while part := os.read(ours, 4096):
            sent += part
            if reply is not None and reply[0] in sent:
                os.write(ours, reply[1])
                reply = None
    os.close(ours)
    (code,) = finish(process)
    return code or 0, sent.decode().replace("\r\n", "\n")


def colours(text: str) -> list[str]:
    """Escape codes that set colours or weights."""
    return re.findall(r"\x1b\[[\d;]*m", text)


def check_snapshot(name: str, text: str) -> None:
    """Compare with ``snapshots/NAME.txt``; with SURESHOT_UPDATE_SNAPSHOTS=1 write it instead."""
    path = Path(__file__).parent / "snapshots" / f"{name}.txt"
    text = "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
    if os.environ.get(_UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), f"if this is what you want, run with {_UPDATE}=1"


def _found(group, before=""):
    """All commands by the words that name them, those of groups too."""
    commands = {}
    for name, one in group.commands.items():
        inner = hasattr(one, "commands")
        commands |= _found(one, f"{before}{name} ") if inner else {before + name: one}
    return commands


COMMANDS = _found(typer.main.get_command(app_of()))

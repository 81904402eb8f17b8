"""Commands as a person runs them: in this process, in one of their own, in a terminal."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
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


def spawn(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> Ran:
    """Run a command in a process of its own, without a terminal."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        files = [given, out, err]
        given.seek(0)
        numbers = [file.fileno() for file in files]
        (code,) = finish(command([*map(str, arguments)], numbers, os.environ | environment))
        for file in files:
            file.seek(0)
        return Ran(code or 0, out.read().decode(), err.read().decode())


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

"""The `sureshot` command: its verbs, and what happens when one fails."""

import contextlib
import importlib
import io
import itertools
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from types import FrameType

import typer

from sureshot.cli.terminal import MistypedError, drop_output, print_json, readers_may_leave
from sureshot.errors import ArgumentError, SureshotError, imports_for
from sureshot.paths import check_path
from sureshot.text import plain

_STREAMS = ("stdin", "stdout", "stderr")


def open_streams() -> None:
    """Replace closed streams by the null device.

    Must run before any file is opened, which would get the number of a closed stream and so receive
    what is printed.
    """
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        stream = getattr(sys, name)
        # A terminal that cannot show a letter of a file name shows a question mark in its place.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


_ALIASES = {"find": "search"}
_SENTENCES = frozenset({"search", "export"})  # commands that themselves refuse an empty sentence
_SIMILAR = 0.7  # from here on a word is taken for a misspelt command


def _version(requested: bool) -> bool:
    if requested:
        from sureshot import __version__

        typer.echo(f"sureshot {__version__}")
        raise typer.Exit
    return requested


def _top(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Find the moment you describe in your own videos."""


_YOURS = "Your videos"
_RESEARCH = "Research in video-text retrieval"
# Each command: its panel, its module, its function there, and the name of its examples.
_COMMANDS: dict[str, tuple[str, str, str, str]] = {
    "index": (_YOURS, "index", "index", "EXAMPLES"),
    "watch": (_YOURS, "index", "watch", "WATCH_EXAMPLES"),
    "search": (_YOURS, "search", "search", "SEARCH_EXAMPLES"),
    "describe": (_YOURS, "search", "describe", "DESCRIBE_EXAMPLES"),
    "export": (_YOURS, "search", "export", "EXPORT_EXAMPLES"),
    "serve": (_YOURS, "manage", "serve", "EXAMPLES"),
    "mcp": (_YOURS, "manage", "mcp", "MCP_EXAMPLES"),
    "judge": (_YOURS, "search", "judge", "EXAMPLES"),
    "calibrate": (_YOURS, "manage", "calibrate", "CALIBRATE_EXAMPLES"),
    "list": (_YOURS, "manage", "list_videos", "LIST_EXAMPLES"),
    "status": (_YOURS, "manage", "status", ""),
    "remove": (_YOURS, "manage", "remove", ""),
    "reset": (_YOURS, "manage", "reset", ""),
    "doctor": (_YOURS, "manage", "doctor", ""),
    "train": (_RESEARCH, "research", "train", "EXAMPLES"),
    "evaluate": (_RESEARCH, "research", "evaluate", "EVALUATE_EXAMPLES"),
    "reproduce": (_RESEARCH, "research", "reproduce", "REPRODUCE_EXAMPLES"),
    "plot": (_RESEARCH, "research", "plot", "PLOT_EXAMPLES"),
    "answer": (_RESEARCH, "research", "answer", ""),  # a group of commands
    "experts": (_RESEARCH, "research", "experts", "EXPERTS_EXAMPLES"),
    "synthetic": (_RESEARCH, "research", "synthetic", "SYNTHETIC_EXAMPLES"),
}


def app_of(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The application with some commands. To build those that are not called takes longer."""
    app = typer.Typer(
        name="sureshot",
        help="Find the moment you describe in your own videos.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    for name in names:
        panel, file, function, examples = _COMMANDS[name]
        module = importlib.import_module(f"sureshot.cli.{file}")
        called = getattr(module, function)
        if isinstance(called, typer.Typer):
            app.add_typer(called, name=name, rich_help_panel=panel)
            continue
        epilog = getattr(module, examples) if examples else None
        app.command(name, epilog=epilog, rich_help_panel=panel)(called)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code.

    0 is success, a search without hits included; 1 an error that its message explains; 2 a command
    that was typed wrong; 130 Ctrl-C. With ``--json`` an error is JSON too.
    """
    as_json = "--json" in itertools.takewhile(lambda one: one != "--", arguments)
    try:
        typed = _with_command(list(arguments)) or ["--help"]
        _refuse_unusable(typed)
        app = app_of(typed[:1] if typed[0] in _COMMANDS else _COMMANDS)
        code = 0
        with imports_for(f"`sureshot {typed[0]}`"), readers_may_leave():
            code = app(typed, prog_name="sureshot", standalone_mode=False)
    except SureshotError as error:
        _complain(str(error), error.code, as_json)
        return 2 if isinstance(error, ArgumentError) else 1
    except typer.Abort:
        _complain("Nothing was done.", "declined", as_json)
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # such as a full disk below the output
        drop_output()
        message = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
        _complain(message or str(error), "system", as_json)
        return 1
    except Exception as error:
        show = getattr(error, "show", None)  # an error of the command line's own parser
        if show is None:
            raise
        if as_json:
            _complain(getattr(error, "format_message", error.__str__)(), "arguments", as_json)
        else:
            show()
            _hint_at_dash(arguments)
        return int(getattr(error, "exit_code", 2))
    return code if isinstance(code, int) else 0


def _hint_at_dash(arguments: Sequence[str]) -> None:
    """Say how to name a file that begins with a dash, as one that was given does."""
    for place, name in enumerate(arguments):
        if name.startswith("-") and os.path.lexists(name):
            typed = [*arguments[:place], "--", *arguments[place:]]
            typer.echo(f"For the file {plain(name)}: sureshot {shlex.join(typed)}", err=True)
            return


def _with_command(arguments: list[str]) -> list[str]:
    """The arguments; a sentence that comes without a command is what to search for."""
    first = arguments[0] if arguments else "-"
    if first in _ALIASES:
        return [_ALIASES[first], *arguments[1:]]
    if first.startswith("-") or first in _COMMANDS:
        return arguments
    if " " in first.strip():
        return ["search", *arguments]
    import difflib

    near = difflib.get_close_matches(first, _COMMANDS, n=1, cutoff=_SIMILAR)
    if near:
        raise MistypedError(f"There is no command {first}; did you mean {near[0]}?")
    raise MistypedError(
        f"There is no command {first}. To look for it: sureshot search {shlex.join(arguments)}"
    )


def _refuse_unusable(typed: Sequence[str]) -> None:
    """Refuse addresses with credentials, and an empty argument, as an unset variable leaves it.

    As a path it would be the folder that we are in, as a place of an index the default one.
    """
    for before, argument in itertools.pairwise(["", *typed]):
        name, is_set, value = argument.partition("=")
        check_path(value if name.startswith("--") else argument)
        if name.startswith("--") and is_set and not value:
            raise MistypedError(f"{name} has no value; name one, or leave the option out.")
        if argument == "" and (before.startswith("--") or typed[0] not in _SENTENCES):
            raise MistypedError("An argument is empty, perhaps by a variable that is not set.")


def _complain(message: str, code: str, as_json: bool) -> None:
    """Print an error, unless standard error is closed."""
    message = plain(message)
    with contextlib.suppress(OSError):
        if as_json:
            print_json({"error": {"code": code, "message": message}}, err=True)
            return
        text = f"sureshot: {message}"
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            text = typer.style(text, fg="red")
        typer.echo(text, err=True)


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
_SAME = 0.3  # seconds; `timeout` and a closing terminal send one twice
_CTRL_C = 130  # exit code of what Ctrl-C ended: 128 and the number of the signal

_first: list[tuple[int, float]] = []  # number and time of the signal that came first


def catch_signals() -> None:
    """Let these signals raise KeyboardInterrupt, and a second one kill.

    Signals that are already ignored, as under `nohup`, stay ignored.
    """
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def exit_code(code: int) -> int:
    """The exit code of the process: for a signal 128 and its number. Restores the handlers.

    ``code`` is what `run` returned, to which every interruption is Ctrl-C.
    """
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
    if not _first:
        return code
    by_hand = _first[0][0] == signal.SIGINT  # whoever asks to end it with Ctrl-C sees what it says
    return code if by_hand and code != _CTRL_C else 128 + _first[0][0]


def _end(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if not _first:
        _first.append((number, now))
        raise KeyboardInterrupt
    if now - _first[0][1] > _SAME:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

"""`sureshot judge`."""

import contextlib
import os
import select
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import Db, Device, Json, Model, examples
from sureshot.errors import SureshotError

if TYPE_CHECKING:
    from rich.console import Console

    from sureshot.library.answer import Hit
    from sureshot.library.judging import Verdict
    from sureshot.library.search import Searcher

_CTRL_D = "\x04"
_HIT: "dict[str, Verdict]" = {
    "y": "yes",
    "n": "no",
    "a": "absent",
    "b": "again",
    "s": "skip",
    "q": "quit",
}
_NONE: "dict[str, Verdict]" = {
    "m": "more",
    "a": "absent",
    "u": "unknown",
    "b": "again",
    "s": "skip",
    "q": "quit",
}
_KEYS = (
    "y yes, n no, a no video here shows it, b this query from the start, s skip the query, q quit"
)
_NONE_KEYS = (
    "m show more, a no video here shows it, u it may be here, b this query from the start, "
    "s skip the query, q quit"
)

EXAMPLES = examples(
    "sureshot judge queries.txt",
    "sureshot calibrate",
)


def judge(
    queries: Annotated[
        Path,
        typer.Argument(readable=False, metavar="QUERIES", help="A file, one query a line."),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            readable=False,
            metavar="FILE",
            help="Where the judgements go, a line a query.",
            show_default="in the index",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-k", metavar="N", min=1, max=100, help="Hits of a query.")
    ] = 3,
    explain: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="PNG", help="Draw the hits of the query in hand into this file."
        ),
    ] = None,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Say of hits whether they are right, so that `sureshot calibrate` can learn from it.

    Asks on the terminal, or reads one answer a line from standard input. Each judged query is kept
    at once; the same command goes on with those that are left.
    """
    from sureshot import library
    from sureshot.cli import show
    from sureshot.cli.search import lines_of
    from sureshot.trust.own import JUDGED

    out = show.console(err=as_json)
    desk = _Desk(out)
    result = library.judge(
        lines_of(queries),
        desk.ask,
        ask_more=desk.ask_more,
        begin=desk.begin,
        to=to,
        db=db,
        model=model,
        device=device,
        k=limit,
        explain=explain,
    )
    if result.interrupted:
        out.print()
    if result.mended:
        out.print(f"The last line of {show.short(result.file)} was cut short; it was dropped.")
    if as_json:
        show.print_json(result.to_dict())
    else:
        out.print(repr(result), soft_wrap=True)
        if result.telling >= JUDGED:
            named = [] if to is None else ["--labels", show.short(to)]
            placed = [] if db is None else ["--db", db]
            out.print(shlex.join(["sureshot", "calibrate", *named, *placed]), soft_wrap=True)
    return 130 if result.interrupted else 0


def judge_answer(searcher: "Searcher", query: str) -> None:
    """Ask about the best hits of a search that was just answered; learn from ten such searches.

    Args:
        searcher: the open index.
        query: what was searched for.

    Raises:
        SureshotError: the judgements cannot be kept.
    """
    from sureshot import library
    from sureshot.cli import show
    from sureshot.trust.own import JUDGED

    out = show.console(err=True)
    desk = _Desk(out)
    kept = library.judge_again(searcher, query, desk.ask, ask_more=desk.ask_more)
    out.print(kept.said)
    if kept.telling >= JUDGED:
        try:
            said = repr(library.calibrate(db=searcher))
        except SureshotError as error:  # such as a model that needs more; what was judged is kept
            said = str(error)
        out.print(said, soft_wrap=True, markup=False)


class _Desk:
    """Where hits are laid out and answers are taken."""

    def __init__(self, out: "Console") -> None:
        self._out = out
        self._one_key = sys.stdin.isatty() and _has_keys()
        self._told = False

    def begin(self, query: str, number: int, total: int) -> None:
        """Show the next query."""
        from rich.text import Text

        from sureshot.text import plain

        self._out.print(
            Text(f"\n{number} of {total}  ", "dim").append(plain(query), "not dim bold")
        )

    def say(self, text: str) -> None:
        """Print a line."""
        self._out.print(text)

    def ask(self, hit: "Hit") -> "Verdict":
        """Whether a hit is right."""
        from rich.text import Text

        from sureshot.cli import show
        from sureshot.text import time_range, timecode

        when = f"best at {timecode(hit.peak)}  {time_range(hit.start, hit.end)}"
        copies = "".join(f"  = {show.short(copy)}" for copy in hit.copies)
        line = f"{hit.rank}  {when}  {hit.score:z.3f}  {show.short(hit.path)}{copies}"
        self._out.print(Text(line, overflow="fold"))
        if not self._told:
            self._told = True
            self.say(_KEYS)
        return self._answer("right? ", _HIT, _KEYS)

    def ask_more(self, shown: int) -> "Verdict":
        """What to do where none was right."""
        from sureshot.text import counted

        self.say(f"None of {counted(shown, 'video')} is right: {_NONE_KEYS}")
        return self._answer("and now? ", _NONE, _NONE_KEYS)

    def _answer(self, prompt: str, known: "Mapping[str, Verdict]", keys: str) -> "Verdict":
        while True:
            self._out.print(prompt, end="")
            self._out.file.flush()
            given = _key() if self._one_key else sys.stdin.readline()
            if given in ("", _CTRL_D):  # there is nothing more to read
                self.say("")
                return "quit"
            given = given.strip()
            if self._one_key or not sys.stdin.isatty():
                self.say(given if given.isprintable() else "")
            found = known.get(given.lower()[:1])
            if found is not None:
                return found
            self.say(keys)


def _has_keys() -> bool:
    """Whether single keys can be read here."""
    with contextlib.suppress(ImportError):
        import termios  # noqa: F401

        return True
    return False


def _key() -> str:
    """The next key that is pressed; empty where the terminal is gone. Ctrl-C interrupts."""
    with _raw(sys.stdin.fileno()) as source:
        key = os.read(source, 1)
        while key in (b"\r", b"\n"):
            key = os.read(source, 1)
        if not key.isascii() or key == b"\x1b":
            # The rest of an arrow, a letter with an accent, …: none of it is an answer.
            while select.select([source], [], [], 0)[0] and os.read(source, 64):
                pass
            return "?"
        return key.decode()


@contextlib.contextmanager
def _raw(source: int) -> Iterator[int]:
    """A terminal that gives each key at once and does not show it, what was typed before too."""
    import termios

    before = termios.tcgetattr(source)
    changed = termios.tcgetattr(source)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(source, termios.TCSADRAIN, changed)
    try:
        yield source
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)

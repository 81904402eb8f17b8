"""`sureshot judge`."""

import contextlib
import os
import select
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import Db, Device, Json, Model, examples

if TYPE_CHECKING:
    from rich.console import Console

    from sureshot.library.answer import Hit
    from sureshot.library.judging import Judgements, Verdict
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
    "sureshot judge queries.txt --to judged.jsonl",
    "sureshot calibrate --labels judged.jsonl",
)


def judge(
    queries: Annotated[
        Path,
        typer.Argument(metavar="QUERIES", help="A file, one query a line."),
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="Where the judgements go, a line a query.")
    ] = Path("judged.jsonl"),
    limit: Annotated[
        int, typer.Option("--limit", "-k", metavar="N", min=1, max=100, help="Hits of a query.")
    ] = 3,
    explain: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Draw the hits of the query in hand into this file."),
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
    from sureshot.cli import show
    from sureshot.cli.search import lines_of
    from sureshot.library.judging import Judgements
    from sureshot.library.search import open_index

    kept = Judgements(to)
    left = kept.left(lines_of(queries))
    out = show.console(err=as_json)
    if kept.mended:
        out.print(f"The last line of {show.short(to)} was cut short; it was dropped.")
    code = 0
    if left:
        searcher = open_index(db, model=model, device=device)
        code = _sitting(searcher, kept, left, limit, _Desk(out), explain)
    if as_json:
        show.print_json(_values(kept, left))
    else:
        _print_count(out, kept, to)
    return code


def _sitting(
    searcher: "Searcher",
    kept: "Judgements",
    left: list[str],
    k: int,
    desk: "_Desk",
    explain: Path | None,
) -> int:
    """Judge queries until there are none left or somebody has had enough; the exit code."""
    from sureshot.library.judging import judge

    try:
        for number, query in enumerate(left, 1):
            desk.begin(number, len(left), query)
            if explain is not None:
                _draw(searcher, query, k, explain)
            label = judge(searcher, query, k, desk.ask, desk.ask_more)
            if label == "quit":
                break
            if label != "skip":
                kept.add(label)
    except KeyboardInterrupt:
        desk.say("")
        return 130
    return 0


def _draw(searcher: "Searcher", query: str, k: int, target: Path) -> None:
    """The frames of the first hits in a picture."""
    from sureshot.library.explain import sheet_rows
    from sureshot.media.sheet import contact_sheet, save_sheet

    answer = searcher.search(query, k=k, per_video=1)
    rows = sheet_rows(answer, searcher.store.settings.frame_rate)
    save_sheet(contact_sheet(answer.query, rows), target)


def _values(kept: "Judgements", left: list[str]) -> dict[str, object]:
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.places import absolute
    from sureshot.text import printable

    return {
        "schema": JSON_SCHEMA,
        "labels": printable(absolute(kept.file)),
        "judged": len(kept),
        "present": kept.count("present"),
        "absent": kept.count("absent"),
        "not_found": kept.count("not found"),
        "left": len(kept.left(left)),
    }


def _print_count(out: "Console", kept: "Judgements", to: Path) -> None:
    """How many queries are judged, and how many more it takes."""
    from sureshot.cli import show
    from sureshot.library.judging import FULL, ROUGH
    from sureshot.text import counted

    judged = counted(len(kept), "query", "queries")
    none = kept.count("absent"), kept.count("not found")
    parts = [f"{none[0]} of them not in the library"] if none[0] else []
    parts += [f"{none[1]} of them not found"] if none[1] else []
    out.print(f"{judged} judged in {show.short(to)}{''.join(', ' + part for part in parts)}.")
    if len(kept) < ROUGH:
        need = ROUGH - len(kept)
        out.print(f"{need} more for a rough calibration ({ROUGH}), {need + FULL - ROUGH} for a "
                  f"good one ({FULL}).")  # fmt: skip
    else:
        if len(kept) < FULL:
            out.print(f"Enough for a rough calibration; {FULL - len(kept)} more for a good one.")
        out.print(f"sureshot calibrate --labels {show.short(to)}", soft_wrap=True)


class _Desk:
    """Where hits are laid out and answers are taken."""

    def __init__(self, out: "Console") -> None:
        self._out = out
        self._one_key = sys.stdin.isatty() and _has_keys()
        self._told = False

    def begin(self, number: int, total: int, query: str) -> None:
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

        when = f"{time_range(hit.start, hit.end)}  best at {timecode(hit.peak)}"
        copies = "".join(f"  = {show.short(copy)}" for copy in hit.copies)
        line = f"{hit.rank}  {hit.score:.3f}  {when}  {show.short(hit.path)}{copies}"
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

"""Options that several commands share, and the values they stand for."""

import contextlib
import functools
import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sureshot.errors import ArgumentError
from sureshot.library.results import (
    NOT_CALIBRATED,
    Answer,
    Descriptions,
    Hit,
    Status,
    absence,
    json_text,
    looked_for,
)
from sureshot.paths import expand
from sureshot.text import duration, plain, time_left, time_range, timecode

if TYPE_CHECKING:
    from sureshot.library.video_list import VideoPage


def setting(metavar: str, help: str, *names: str, shown: bool | str = True, **more: Any) -> Any:
    """An option with a value, which ``metavar`` stands for; paths are checked by the library.

    ``shown`` is its default in words, ``more`` as of `typer.Option`.
    """
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=shown, readable=False, **more
    )


def flag(name: str, help: str) -> Any:
    """An option without a value, whose opposite has no name."""
    return typer.Option(name, help=help)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """An argument, see `setting`."""
    return typer.Argument(metavar=metavar, help=help, readable=False, **more)


def typed(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command for the library, whose defaults what was left out has."""
    return {name: v for name, v in given.items() if v is not None and name != "as_json"}


def refuse_without(needed: str, **given: object) -> None:
    """Refuse options that were given and do nothing without another one."""
    for name in (name for name, value in given.items() if value):
        raise MistypedError(f"--{name.replace('_', '-')} needs {needed} as well.")


Db = Annotated[
    str | None,
    setting(
        "PLACE",
        "Folder or object-storage URI of the index.",
        shown="$SURESHOT_DB, else in your data folder",
    ),
]
Model = Annotated[
    str | None,
    setting(
        "NAME",
        "bundled, a folder (a CLIP, or a model that sureshot train made), or a hub id such as "
        "openai/clip-vit-base-patch16.",
        shown="that of the index, else bundled",
    ),
]
Device = Annotated[str | None, setting("NAME", "cpu, cuda, …", shown="a GPU if there is one")]
Cache = Annotated[
    Path | None, setting("DIR", "Where to keep encoded features.", shown="your cache folder")
]
Json = Annotated[bool, flag("--json", "Print JSON for programs (docs/json.md).")]
Folder = Annotated[  # a text: as a path ./Animals would be the name Animals
    list[str] | None,
    setting("DIR", "Only videos in this folder: a path, or just its name; repeat it for more."),
]
Longer = Annotated[str | None, setting("TIME", "Only videos of this length or longer: 90 or 1:30.")]
Shorter = Annotated[str | None, setting("TIME", "Only videos of this length or less.")]
Since = Annotated[
    str | None, setting("DATE", "Only videos recorded then or later: 2024-05-31, 2024-05 or 2024.")
]
Until = Annotated[str | None, setting("DATE", "Only videos recorded then or before.")]
_Options = dict[str, tuple[Any, Any]]  # types and defaults by names
CHOOSING: _Options = {  # which videos
    "folder": (Folder, None),
    "longer": (Longer, None),
    "shorter": (Shorter, None),
    "since": (Since, None),
    "until": (Until, None),
}


def taking(options: _Options) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command options that it gets together, as its argument ``wanted``."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(**given: Any) -> int:
            return command(wanted={name: given.pop(name) for name in options}, **given)

        taken: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            more = options if one.name == "wanted" else {one.name: (one.annotation, one.default)}
            taken += [
                one.replace(name=n, annotation=kind, default=d) for n, (kind, d) in more.items()
            ]
        run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in taken}
        return run

    return decorate


Protocol = Annotated[str | None, setting("NAME", "Which protocol of the dataset.")]
VideoFolder = Annotated[Path | None, setting("DIR", "Folder of the videos.")]
Ids = Annotated[Path | None, setting("FILE", "Only these videos, one id per line.")]
Label = Annotated[str | None, setting("NAME", "Name for a protocol of your own.")]
Experts = Annotated[
    Path | None, setting("DIR", "Folder of expert features, if the model uses any.")
]


class MistypedError(ArgumentError):
    """Options that do not go together."""


def examples(*commands: str) -> str:
    """The end of a help text: commands to copy."""
    # Paragraphs, since single line breaks are joined.
    return "\n\n".join(["Examples:", *commands])


_SAID = "italic"  # words of a video
_NARROW, _ROOM = 60, 30  # columns, and of them for paths; below, a hit takes two lines
_UNFOLDED = 10_000  # columns where output is not a terminal, so that no file name is folded
_COLOURS: dict[Status, str] = {
    "confident": "green",
    "several plausible": "yellow",
    "probably not here": "red",
    "not calibrated": "dim",
}


def console(*, err: bool = False) -> Console:
    """A console for one of the two streams: no colours with ``NO_COLOR``, no folding in pipes."""
    stream = sys.stderr if err else sys.stdout
    return Console(
        stderr=err,
        width=None if stream.isatty() else _UNFOLDED,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        emoji=False,
        markup=False,
    )


def print_result(result: Any, *, as_json: bool) -> int:
    """Print what a verb found, which has a `to_dict` and a `text`; the exit code of success."""
    if as_json:
        return print_json(result.to_dict())
    typer.echo(result.text(), nl=False)
    return 0


def print_json(values: dict[str, Any], *, err: bool = False) -> int:
    """Print a JSON document, see `write_json`, and give the exit code of success.

    If the output has been closed, the document is dropped.
    """
    with contextlib.suppress(BrokenPipeError):
        write_json(values, sys.stderr if err else sys.stdout)
    return 0


def write_json(values: dict[str, Any], stream: TextIO) -> None:
    """Write a document with its schema on one line; no character of it steers a terminal."""
    unicode = "utf" in (stream.encoding or "").lower()
    stream.write(json_text(values, ascii_only=not unicode) + "\n")
    stream.flush()


@contextlib.contextmanager
def readers_may_leave() -> Iterator[None]:
    """A reader of the output (`head`, a pager) that has seen enough ends the block: no error."""
    try:
        yield
    except SystemExit as ended:  # how typer and rich take that
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        drop_output()


def drop_output() -> None:
    """Drop buffered output, so that Python does not fail to flush it at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def short(path: Path) -> str:
    """A path as a person would name it from here."""
    bases = {"~/": expand("~")}
    with contextlib.suppress(FileNotFoundError):  # the folder that we are in may be gone
        bases = {"": Path.cwd()} | bases
    for prefix, base in bases.items():
        if path.is_relative_to(base) and path != base:
            return prefix + plain(path.relative_to(base))
    return plain(path)


def print_answers(out: Console, answers: Iterable[Answer], *, dated: bool = False) -> None:
    """Answers below each other, and once where their percentages come from."""
    shown = None
    for answer in answers:
        if shown is not None:
            out.print()
        print_answer(out, answer, dated=dated)
        better = shown is None or (answer.hits and shown.confidence is None)
        shown = answer if better else shown
    if shown is not None:
        print_footnote(out, shown)


def print_footnote(out: Console, answer: Answer, *, hint: bool = True) -> None:
    """Where percentages come from and what makes them truer, or what scores are worth."""
    if answer.hits and answer.note:
        said = f"{answer.note} {answer.hint if hint else ''}"
        out.print(Text(plain(said.strip()), "dim"))


def print_answer(
    out: Console, answer: Answer, *, is_query_shown: bool = False, dated: bool = False
) -> None:
    """What was asked, what to know about the answer, and the table of hits."""
    if not is_query_shown:
        out.print(Text(plain(answer.query), "bold"))
    if answer.hits and (answer.confidence is not None or answer.unrated):
        word, rest = answer.verdict
        dim = answer.confidence is None
        style = "dim" if dim else f"bold {_COLOURS[answer.status]}"
        out.print(Text.assemble((word, style), (rest, "dim" if dim else "")))
    print_notes(out, answer.warnings)
    for line in answer.name_rows(short):
        out.print(Text(line, overflow="fold"))
    names, rows = answer.table(dated=dated)
    taken = sum(max(map(len, column)) + 2 for column in zip(names, *rows, strict=True))
    room = out.width - taken
    if out.width < _NARROW or room < _ROOM:
        for hit, (rank, peak, *others) in zip(answer.hits, rows, strict=True):
            out.print("  ".join([rank, f"best at {peak}", *filter(None, others)]))
            for line in videos_of(hit):
                style = "dim" if hit.weak or line.startswith(" ") else ""
                out.print(Text(_broken(line, out.width), style))
            for words in hit.lines:
                out.print(Text(f"  {words.said}", _SAID))
    elif answer.hits:
        table = _table(*names, "video")
        for hit, row in zip(answer.hits, rows, strict=True):
            first, *copies = (_broken(line, room) for line in videos_of(hit))
            said = [Text(line.said, _SAID) for line in hit.lines]
            files = Text("\n", overflow="fold").join(
                [Text(first), *said, *(Text(copy, "dim") for copy in copies)]
            )
            table.add_row(*row, files, style="dim" if hit.weak else "")
        print_table(out, table)


def print_descriptions(out: Console, found: Descriptions) -> None:
    """The table of sentences."""
    at = "" if found.at is None else f" at {timecode(found.at)}"
    out.print(Text(short(found.video) + at, "bold"))
    print_notes(out, found.warnings)
    table = _table("", "score", "sentence")
    for row in found.ranked:
        text = Text(plain(row.text), overflow="fold")
        for line in row.lines:
            text.append(f"\n{line.said}", _SAID)
        table.add_row(str(row.rank), f"{row.score:z.3f}", text)
    print_table(out, table)
    out.print(Text("".join(NOT_CALIBRATED), "dim"))


def print_table(out: Console, table: Table) -> None:
    """The table; in a pipe, where nothing is folded, without Rich, which takes .3 ms per row."""
    if out.is_terminal:
        out.print(table)
        return
    cells = ([str(cell).split("\n") for cell in column.cells] for column in table.columns)
    lines = [line for row in zip(*cells, strict=True) for line in zip_longest(*row, fillvalue="")]
    if table.show_header:
        lines.insert(0, tuple(str(one.header) for one in table.columns))
    filled = []
    for column, texts in zip(table.columns, zip(*lines, strict=True), strict=True):
        width, right = max(map(cell_len, texts)), column.justify == "right"
        gaps = (" " * (width - cell_len(text)) for text in texts)
        filled.append([g + t if right else t + g for t, g in zip(texts, gaps, strict=True)])
    shown = ("  ".join(parts).rstrip() for parts in zip(*filled, strict=True))
    out.out("\n".join(shown), highlight=False)


def print_notes(out: Console, notes: Sequence[str]) -> None:
    """What a user should know, one a line."""
    for note in notes:
        out.print(Text(f"note: {plain(note)}", "yellow"))


def print_paths(
    out: Console, what: str, paths: Sequence[tuple[Path, str]], style: str, limit: int = 20
) -> None:
    """Paths with reasons, the first few of them; a long one with a line of its own for each."""
    for path, reason in paths[:limit]:
        line = Text.assemble((f"  {what}: ", style), short(path), f" — {plain(reason)}")
        if line.cell_len <= out.width:
            out.print(line)
            continue
        print_path(out, f"  {what}:", short(path), style)
        out.print(f"    {plain(reason)}")
    if len(paths) > limit:
        out.print(f"  … and {len(paths) - limit} more; `sureshot status` lists them all.")


def print_path(out: Console, label: str, path: str, style: str = "") -> None:
    """A path behind its label; where it is too long, on lines of its own that end with slashes."""
    if cell_len(f"{label} {path}") <= out.width:
        out.print(Text.assemble((label, style), " ", path))
        return
    out.print(Text(label, style))
    for line in _broken(path, out.width - 4).splitlines():
        out.print(Text(f"    {line}"))


def print_videos(out: Console, page: "VideoPage") -> None:
    """The table of videos, with the reasons of failures, and how many there are.

    Each line is printed at once: there may be many, and a disk that is slow to say what is there.
    """
    names = ("length", "date", "date from", "windows")
    rows = [
        ("" if r.reason else duration(r.duration), r.date.text[:10], r.date.source, str(r.windows))
        for r in page.videos
    ]
    narrow = out.width < _NARROW
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    room = out.width if narrow else out.width - sum(widths) - 2 * len(widths)
    if rows and not narrow:
        out.print(Text("  ".join([*map(str.rjust, names, widths), "video"]), "dim"))
    for record, row in zip(page.videos, rows, strict=True):
        ahead = "  ".join(map(str.rjust, row, widths)) + "  "
        if narrow:  # a name below, as there is no room to the right
            out.out(f"{row[0]:>6}  {row[1]}", highlight=False)
            ahead = ""
        name = short(record.path) + absence(**looked_for(record.path))
        texts = [(_broken(name, room), "")]
        if record.reason:
            texts.append((f"  failed: {plain(record.reason)}", "red"))
        elif record.note:
            texts.append((f"  damaged: {plain(record.note)}", "yellow"))
        for text, style in texts:
            for line in _folded(out, text, room):
                out.out(ahead + line, style=style, highlight=False)
                ahead = " " * len(ahead)
    failed = f"; {page.failed} could not be indexed" if page.failed else ""
    out.print(page.text + failed)
    print_notes(out, [page.note] if page.note else [])


_COPIES = 5  # of a hit that are listed; a camera that stands still makes thousands


def videos_of(hit: Hit) -> list[str]:
    """The file of a hit, and below it the other pieces of its scene and its copies."""
    copies = [
        f"  copy: {short(copy.path)}{copy.mark}  {time_range(copy.start, copy.end)}"
        for copy in hit.copies[:_COPIES]
    ]
    if (more := len(hit.copies) - _COPIES) > 0:
        copies.append(f"  and {more} more copies")
    scene = [f"  {hit.scene}"] if hit.pieces else []
    return [short(hit.path) + hit.mark, *scene, *copies]


def _folded(out: Console, text: str, width: int) -> list[str]:
    """Lines of a text that are no wider; what is not too wide takes no time."""
    if "\n" not in text and cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip() for line in Text(text).wrap(out, width, overflow="fold")]


def _broken(path: str, width: int) -> str:
    """A path in lines that end with slashes, so that no name is torn that fits into a line.

    Examples:
        >>> _broken("/films/2024/holiday.mp4", 13).splitlines()
        ['/films/2024/', 'holiday.mp4']
    """
    if cell_len(path) <= width:
        return path
    lines = [""]
    for part in re.findall("[^/]*/|[^/]+", path):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _table(*names: str) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        right = name not in ("video", "sentence")
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    return table


_EVERY = 10.0  # seconds between lines where there is no terminal
_WIDE, _BAR = 80, 20  # columns: from here there is room for a bar, so long


class Bar(AbstractContextManager["Bar"]):
    """Shows what is being done, how much of it is done, and how long the rest will take."""

    def __init__(self, err: Console, first: str = "") -> None:
        from rich import progress as rich_progress

        self._err = err
        self._what = ""
        self._began = self._printed = time.monotonic()
        self._bar: rich_progress.Progress | None = None
        if err.file.isatty() and not err.is_dumb_terminal:  # lines can be overwritten
            # Without room for all of it the words say more than the bar.
            bar = [rich_progress.BarColumn(_BAR)] if err.width >= _WIDE else []
            words = rich_progress.TextColumn("{task.description}")
            self._bar = rich_progress.Progress(*bar, words, console=err, transient=True)
            self._task = self._bar.add_task(first, total=None)
            self._bar.start()

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Show how many of a kind are done; the estimate of the time left starts over with it."""
        if what != self._what:
            self._what, self._began = what, time.monotonic()
            if self._bar is not None:
                self._bar.reset(self._task)
        left = time_left(time.monotonic() - self._began, done, total)
        self.show(f"{done} of {total} {what}{more}{left}", done, total)

    def line(self, text: str) -> None:
        """Print a sentence that stays."""
        self._err.print(plain(text))

    def show(self, text: str, done: int, total: int) -> None:
        """Show a state of the work, in words and in any unit."""
        if self._bar is not None:
            self._bar.update(self._task, description=text, total=max(total, 1), completed=done)
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            self._err.print(text)

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


_BLAS = "OPENBLAS_NUM_THREADS"


def import_quickly() -> None:
    """Import jaxtyping without `unittest.mock`, which brings asyncio for its hook for tests."""
    mock = "unittest.mock"
    if {mock, "jaxtyping"} & sys.modules.keys():
        return
    sys.modules[mock] = ModuleType(mock)
    vars(sys.modules[mock])["patch"] = None
    try:
        import jaxtyping  # noqa: F401
    finally:
        del sys.modules[mock]


def compute_alone() -> None:
    """Have numpy compute with one thread, unless the user says how many; before it is imported.

    One sentence is too little to share among cores: threads that wait for each other take seven
    times the processor's time, which other work could use (LOG.md).
    """
    os.environ.setdefault(_BLAS, "1")

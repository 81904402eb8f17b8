"""`sureshot search`, `describe`, `export` and `judge`."""

import contextlib
import math
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sureshot import library
from sureshot.cli import terminal
from sureshot.cli.terminal import (
    CHOOSING,
    Db,
    Device,
    Json,
    MistypedError,
    Model,
    argument,
    compute_alone,
    examples,
    flag,
    import_quickly,
    setting,
    taking,
)
from sureshot.errors import ArgumentError, QueryError, SureshotError, is_installed, reason_of
from sureshot.paths import absolute, exists_at, expand
from sureshot.text import counted, decoded, plain, printable, time_range, timecode

if TYPE_CHECKING:
    from sureshot.library.judging import Verdict
    from sureshot.library.results import Answer, Hit
    from sureshot.library.search import Searcher


_CTRL_D = "\x04"
_KEYS: "dict[str, tuple[Verdict, str]]" = {
    "y": ("yes", "yes"),
    "n": ("no", "no"),
    "m": ("more", "show more"),
    "a": ("absent", "no video here shows it"),
    "u": ("unknown", "it may be here"),
    "b": ("again", "this query from the start"),
    "s": ("skip", "skip the query"),
    "q": ("quit", "quit"),
}
_OF_HIT, _OF_NONE = "ynabsq", "maubsq"  # the keys of either question
_PROMPT = "search> "
_TIME = re.compile(r"[\d.:]+")
# Players that can start at a given second, with the option for it; then what hands a file to what
# the desktop opens it with, which begins at the start.
_PLAYERS = {"mpv": "--start={at}", "vlc": "--start-time={at}"}
_OPENERS = {"darwin": "open", "win32": "explorer"}

EXAMPLES = examples(
    "sureshot judge queries.txt",
    "sureshot calibrate",
    "sureshot judge --list",
)


def judge(
    queries: Annotated[Path | None, argument("QUERIES", "A file, one query per line.")] = None,
    show: Annotated[
        bool, flag("--list", "List the judged queries, the last one at the end.")
    ] = False,
    remove: Annotated[int | None, setting("N", "Take back query N of the list.", min=1)] = None,
    to: Annotated[
        Path | None,
        setting("FILE", "Where the judgements go, one line per query.", shown="in the index"),
    ] = None,
    limit: Annotated[int, setting("N", "Hits per query.", "--limit", "-k", min=1, max=100)] = 3,
    explain: Annotated[
        Path | None, setting("PNG", "Draw the hits of each query into this file.")
    ] = None,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Rate search results, so that `sureshot calibrate` can learn from your ratings.

    Asks on the terminal, or reads one answer per line from standard input. Each rated query is kept
    at once; the same command goes on with those that are left.
    """
    if (queries is not None) + show + (remove is not None) != 1:
        raise MistypedError("Give one of: QUERIES (a file, one query a line), --list, --remove N.")
    if queries is None:
        return _judgements(db, to, remove, as_json)
    out = terminal.console(err=as_json)
    desk = _Desk(out)
    if str(queries) != "-" and not os.path.exists(expand(queries)):  # noqa: PTH110
        rate = shlex.join(["sureshot", "search", str(queries), "--judge"])
        raise QueryError(
            f"There is no file {plain(queries)} with a query on each line. To rate one search: "
            f"{plain(rate)}"
        )
    result = library.judge(
        lines_of(queries),
        desk.ask,
        ask_more=desk.ask_more,
        begin=desk.begin,
        to=to,
        db=db,
        model=model,
        device=device,
        limit=limit,
        explain=explain,
    )
    if result.interrupted:
        out.print()
    if result.repaired:
        out.print(f"The last line of {terminal.short(result.file)} was cut short; it was dropped.")
    if as_json:
        terminal.print_json(result.to_dict())
    else:
        out.print(repr(result), soft_wrap=True)
        if result.is_enough:
            named = [] if to is None else ["--labels", terminal.short(to)]
            placed = [] if db is None else ["--db", db]
            out.print(shlex.join(["sureshot", "calibrate", *named, *placed]), soft_wrap=True)
    return 130 if result.interrupted else 0


def _judgements(db: str | None, to: Path | None, remove: int | None, as_json: bool) -> int:
    """List what was judged, or take one query of it back."""
    from sureshot.library.judging import Judgements, current
    from sureshot.paths import index_place
    from sureshot.store.index import Store

    kept = Judgements.of_index(index_place(db), to)
    labels, out = list(kept), terminal.console()
    with contextlib.suppress(SureshotError):  # where videos are now, if an index knows
        store = Store.open(index_place(db), cached=True)
        labels = current(labels, store, keep_gone=True)
    if remove is not None:
        if remove > len(labels):
            raise QueryError(
                f"There is no judged query {remove}; there are {len(labels)} "
                "(`sureshot judge --list`)."
            )
        removed = labels.pop(remove - 1)
        kept.remove(removed.query)
        if not as_json:
            out.print(f"Taken back: {plain(removed.query)}. {kept.summary}")
            forget = "`sureshot calibrate --forget` goes back to the model's own percentages."
            learn = "`sureshot calibrate` learns from those that are left."
            out.print(learn if kept.is_enough else forget)
            return 0
    if as_json:
        values = [
            {"query": one.query, "state": one.state, "right": [*map(printable, one.relevant)]}
            for one in labels
        ]
        return terminal.print_json({"queries": values})
    for number, one in enumerate(labels, 1):
        right = ", ".join(map(terminal.short, one.relevant)) or one.state
        out.print(Text(f"{number:>4}  {plain(one.query)}: {right}", overflow="fold"))
    out.print(kept.summary)
    return 0


def judge_answer(searcher: "Searcher", answer: "Answer", options: "Mapping[str, Any]") -> None:
    """Ask about the best hits of a search that was just answered; learn from such searches."""
    out = terminal.console(err=True)
    desk = _Desk(out, {(hit.path, hit.start): str(hit.rank) for hit in answer})
    kept = library.judge_again(searcher, answer.query, desk.ask, ask_more=desk.ask_more, **options)
    out.print(kept.summary)
    if kept.is_enough:
        try:
            said = repr(library.calibrate(db=searcher))
        except SureshotError as error:  # such as a model that needs more; what was judged is kept
            said = str(error)
        out.print(said, soft_wrap=True)


class _Desk:
    """Shows hits, with the numbers that a table above gives them, and reads the answers to them."""

    def __init__(
        self, out: Console, numbers: "Mapping[tuple[Path, float], str] | None" = None
    ) -> None:
        self._out, self._numbers = out, numbers
        self._one_key = sys.stdin.isatty() and is_installed("termios")
        self._explained = False

    def begin(self, query: str, number: int, total: int) -> None:
        """Show the next query."""
        self._out.print(
            Text(f"\n{number} of {total}  ", "dim").append(plain(query), "not dim bold")
        )

    def ask(self, hit: "Hit") -> "Verdict":
        """Whether a hit is right."""
        when = f"best at {timecode(hit.peak)}  {time_range(hit.start, hit.end)}"
        number = str(hit.rank)
        if self._numbers is not None:
            number = self._numbers.get((hit.path, hit.start), " ")
        line = f"{number}  {when}  {hit.score:z.3f}  {'  '.join(terminal.videos_of(hit))}"
        self._out.print(Text(line, overflow="fold"))
        for words in hit.lines:
            self._out.print(Text(f"   {words.said}", overflow="fold"))
        if not self._explained:
            self._explained = True
            self._out.print(_meaning(_OF_HIT))
        return self._answer("right? ", _OF_HIT)

    def ask_more(self, shown: int) -> "Verdict":
        """What to do where none was right."""
        none = f"None of {counted(shown, 'video')} is right" if shown else "No words here are that"
        self._out.print(f"{none}: {_meaning(_OF_NONE)}")
        return self._answer("and now? ", _OF_NONE)

    def _answer(self, prompt: str, keys: str) -> "Verdict":
        while True:
            self._out.print(prompt, end="")
            self._out.file.flush()
            given = _key() if self._one_key else sys.stdin.readline()
            if given in ("", _CTRL_D):  # there is nothing more to read
                self._out.print("")
                return "quit"
            given = given.strip()
            if self._one_key or not sys.stdin.isatty():
                self._out.print(given if given.isprintable() else "")
            if given and (key := given.lower()[0]) in keys:
                return _KEYS[key][0]
            self._out.print(f"{given!r} is none of: {_meaning(keys)}")


def _meaning(keys: str) -> str:
    return ", ".join(f"{key} {_KEYS[key][1]}" for key in keys)


def _key() -> str:
    """The next key that is pressed, which is not shown; one that was pressed before counts too.

    Empty where the terminal is gone. Ctrl-C interrupts.
    """
    import termios
    import tty

    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    tty.setcbreak(source, termios.TCSADRAIN)
    try:
        key = os.read(source, 1)
        while key in (b"\r", b"\n"):
            key = os.read(source, 1)
        if not key.isascii() or key == b"\x1b":
            # The rest of an arrow, a letter with an accent, …: none of it is an answer.
            while select.select([source], [], [], 0)[0] and os.read(source, 64):
                pass
            return "?"
        return key.decode()
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


def converse(searcher: "Searcher", options: dict[str, Any], *, as_json: bool, dated: bool) -> None:
    """Answer what is typed, query by query, until an empty line or Ctrl-D."""
    out, told = terminal.console(), False
    for query in _typed():
        try:
            answer = searcher.search(query, **options)
        except QueryError as error:
            terminal.console(err=True).print(str(error))
            continue
        if as_json:
            terminal.print_json(answer.to_dict())
            continue
        terminal.print_answer(out, answer, is_query_shown=True, dated=dated)
        if not told:  # what percentages or scores are worth is said once
            terminal.print_footnote(out, answer)
            told = bool(answer.hits)
        out.print()


def _typed() -> Iterator[str]:
    with contextlib.suppress(ImportError):  # not on Windows, whose terminals edit lines themselves
        import readline  # noqa: F401 - gives `input` its editing and its history
    typer.echo("Type a query; an empty line or Ctrl-D ends.", err=True)
    while True:
        try:
            line = input(_PROMPT)
        except EOFError:
            typer.echo()  # whatever comes next on the terminal gets a line of its own
            return
        if not line.strip():
            return
        yield line


_USUAL = {"coverage": 0.9, "min": 0.0, "prior": None, "present": False}
Limit = Annotated[int, setting("N", "How many hits.", "--limit", "-k", min=1, max=10_000)]
_QUERY = argument("QUERY", "What to look for, in a sentence.")
Sort = Annotated[str, setting("ORDER", "best first, or these hits by date, newest first.")]
PerVideo = Annotated[
    int | None,
    setting(
        "N",
        "Most hits from one video.",
        min=1,
        shown="3, more where other videos do not fill the answer",
    ),
]
Correct = Annotated[
    bool, typer.Option(help="Replace misspelt words by the nearest that the model knows.")
]
MergeCopies = Annotated[bool, typer.Option(help="Show near-copies as one row.")]
Prior = Annotated[
    str | None,
    setting(
        "PERCENT",
        "How many of your searches are for what is in your videos; or SURESHOT_PRIOR.",
        shown="50%, then learned from your ratings",
    ),
]
Present = Annotated[bool, flag("--present", "You know that it is in your videos: count that in.")]
_ASKED = CHOOSING | {
    "sort": (Sort, "best"),
    "per_video": (PerVideo, None),
    "merge_copies": (MergeCopies, True),
    "correct": (Correct, True),
    "prior": (Prior, None),
    "present": (Present, False),
}

SEARCH_EXAMPLES = examples(
    'sureshot search "a dog catches a frisbee"',
    'sureshot search "a goal" -k 3 --folder ~/Videos/2024 --explain hits.png',
    'sureshot search "a goal" --since 2024-05-01 --longer 10:00 --sort date',
    "sureshot search --like clip.mp4@0:12",
    "sureshot search --like photo.jpg",
)
DESCRIBE_EXAMPLES = examples(
    "sureshot describe clip.mp4@0:12 sentences.txt",
    'sureshot describe clip.mp4 "a dog in the snow" "a dog on a beach"',
)
EXPORT_EXAMPLES = examples(
    'sureshot export "a goal" -k 5 --to goals --pad 2',
    'sureshot export "a goal" -k 20 --since 2024-05-01 --as fcpxml',
)


@taking(_ASKED)
def search(
    words: Annotated[list[str] | None, _QUERY] = None,
    limit: Limit = 10,
    *,
    wanted: dict[str, Any],
    like: Annotated[
        str | None,
        setting(
            "FILE[@TIME]",
            "Look for what this photo or video shows; with a time, also elsewhere in that video.",
        ),
    ] = None,
    from_file: Annotated[
        Path | None, setting("FILE", "One query per line; - reads standard input.")
    ] = None,
    explain: Annotated[
        Path | None, setting("PNG", "Save a picture of the frames of each hit, with their scores.")
    ] = None,
    play: Annotated[
        int | None,
        setting("N", "Play hit N from its best second on, with mpv or VLC.", "--open", min=1),
    ] = None,
    ask: Annotated[
        bool, flag("--judge", "Then rate the best hits, so that percentages fit your videos.")
    ] = False,
    coverage: Annotated[
        str, setting("PERCENT", "Target chance that the suggested list contains a match.")
    ] = "90%",
    min: Annotated[
        str,
        setting("PERCENT", "Hide hits that are less likely to be right than this, such as 20%."),
    ] = "0%",
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Find moments by a sentence, or by a photo or video that looks like them.

    Without a query, it asks for one after another on the terminal. It always shows the closest
    moments, even when none is a good match. Times are h:mm:ss.
    """
    compute_alone()
    import_quickly()
    from sureshot.library.search import open_index

    ways = (words is not None) + (like is not None) + (from_file is not None)
    asks = not ways and sys.stdin.isatty() and sys.stdout.isatty()
    if ways != 1 and not asks:
        piped = "" if ways else " Queries on standard input: --from-file -."
        raise MistypedError(f"Give one of: a query, --like FILE[@TIME], --from-file FILE.{piped}")
    if (explain is not None or play is not None) and (from_file is not None or asks):
        raise MistypedError("--explain and --open are about one answer; give one query with them.")
    if ask and words is None:
        raise MistypedError("--judge is about one answer to a sentence; give one query with it.")
    searcher = open_index(db, model=model, device=device)
    wanted |= {"coverage": _share(coverage, "coverage"), "min": _share(min, "min"), "limit": limit}
    wanted["prior"] = _share(wanted["prior"], "prior") if wanted["prior"] else None
    dated = _is_dated(wanted)
    if like is None:
        find = partial(searcher.search, " ".join(words or ()))
    else:  # which refuses what is about percentages
        path, at = _split_time(like)
        find = partial(searcher.like, path, at=at)
        del wanted["correct"]
        for name, usual in _USUAL.items():
            if wanted[name] == usual:
                del wanted[name]
    if asks:
        converse(searcher, wanted, as_json=as_json, dated=dated)
    elif from_file is not None:
        _print(searcher.search_many(lines_of(from_file), **wanted), as_json, dated)
    else:
        one = find(**wanted)
        _show(one, as_json, dated, explain, play)
        if ask:
            few = limit if limit < 3 else 3  # `min` is an option here
            options = {name: wanted[name] for name in (*CHOOSING, "merge_copies")}
            judge_answer(searcher, one, options | {"limit": few})
    return 0


def _is_dated(wanted: Mapping[str, Any]) -> bool:
    """Whether the dates of hits are shown: they were asked for."""
    return wanted["sort"] == "date" or bool(wanted["since"] or wanted["until"])


def _print(answers: "Iterable[Answer]", as_json: bool, dated: bool) -> None:
    if as_json:
        for answer in answers:
            terminal.write_json(answer.to_dict(), sys.stdout)
    else:
        terminal.print_answers(terminal.console(), answers, dated=dated)


def _show(
    answer: "Answer", as_json: bool, dated: bool, explain: Path | None, play: int | None
) -> None:
    """Print one answer, its frames into a picture, and play a hit of it."""
    err = terminal.console(err=True)
    if explain is not None:
        from sureshot.library.clips import draw_hits

        explain = draw_hits(answer, explain, title="".join(answer.verdict))
    _print([answer], as_json, dated)
    if explain is not None:
        err.print(f"Contact sheet: {plain(explain)}")
    if play is not None:
        err.print(play_hit(answer, play))


def describe(
    video: Annotated[str, argument("FILE[@TIME]", "A video or photo, indexed or not.")],
    sentences: Annotated[
        list[str],
        argument(
            "SENTENCES...",
            "In quotes, or a file with one sentence per line; - reads standard input.",
        ),
    ],
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Rank sentences by how well they describe a video. No index is needed."""
    path, at = _split_time(video)
    texts = _sentences(sentences)
    described = library.describe(path, texts, at=at, db=db, model=model, device=device)
    if as_json:
        return terminal.print_json(described.to_dict())
    terminal.print_descriptions(terminal.console(), described)
    return 0


@taking(_ASKED)
def export(
    words: Annotated[list[str], _QUERY],
    to: Annotated[Path, setting("DIR", "Where the files go.", shown="here")] = Path(),
    limit: Limit = 3,
    *,
    wanted: dict[str, Any],
    min: Annotated[
        str, setting("PERCENT", "Cut only hits at least this likely to be right; 0% cuts all.")
    ] = "20%",
    format: Annotated[
        str, setting("FORMAT", "clips, otio, fcpxml, edl, m3u, mpv, csv or markers.", "--as")
    ] = "clips",
    copy: Annotated[
        bool, flag("--copy", "Copy from the keyframe before each hit, without encoding again.")
    ] = False,
    pad: Annotated[float, setting("SECONDS", "Extra time before and after each hit.", min=0)] = 0.0,
    overwrite: Annotated[bool, flag("--overwrite", "Replace files of the same name.")] = False,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Search, and save each hit as a clip, or all as a timeline, a playlist or a table."""
    from sureshot.library.search import open_index
    from sureshot.library.timelines import check_format

    check_format(format)
    searcher = open_index(db, model=model, device=device)
    least = _share(min, "min")
    wanted["prior"] = _share(wanted["prior"], "prior") if wanted["prior"] else None
    answer = searcher.search(" ".join(words), limit=limit, **wanted)
    clips = library.export(
        answer,
        to,
        format=format,
        copy=copy,
        pad=pad,
        min=least,
        overwrite=overwrite,
        lines=searcher.lines,
    )
    if as_json:
        terminal.print_json(answer.to_dict() | clips.to_dict())
    else:
        with terminal.readers_may_leave():
            out = terminal.console()
            terminal.print_answer(out, answer, dated=_is_dated(wanted))
            terminal.print_footnote(out, answer, hint=False)
            for path in clips.written:
                terminal.print_path(out, "wrote", terminal.short(path))
            terminal.print_paths(out, "not written", clips.failed, "red", limit=len(clips.failed))
            terminal.print_notes(out, [clips.remark] if clips.remark else [])
    return 1 if clips.failed else 0


def _share(text: str, name: str) -> float:
    """A share of 1 from ``20%``, ``20 %`` or ``0.2``, as an option gives it."""
    from sureshot.library.query_checks import parse_share  # loads numpy

    share = parse_share(text)
    if math.isnan(share):
        raise MistypedError(f"--{name} is {text!r}, which is no percentage; write it as 20%.")
    above, whole = name != "min", name == "prior"  # whether it must be above 0, and may be 1
    if not 0 <= share <= 1 or (above and share == 0) or (share == 1 and not whole):
        least = "above 0%" if above else "0% or more"
        most = "at most" if whole else "below"
        as_percent = "" if "%" in text else f" ({100 * share:g}%)"
        raise MistypedError(
            f"--{name} is {text!r}{as_percent}; it must be {least} and {most} 100%, such as 20%."
        )
    return share


def _sentences(given: Sequence[str]) -> list[str]:
    """Sentences as they were typed, or the lines of the one file that was named."""
    if len(given) > 1:
        return list(given)
    # A single argument is a file where there is one, or where it can be nothing else.
    (name,) = given
    looks = name == "-" or os.sep in name or bool(Path(name).suffix)
    is_file = os.path.lexists(absolute(name)) or (looks and " " not in name.strip())
    return lines_of(Path(name)) if is_file else [name]


def lines_of(path: Path) -> list[str]:
    """The lines of a file that hold something that can be read, at least one."""
    from sureshot.settings import LABELS, read_bytes

    is_input = str(path) == "-"
    name = "standard input" if is_input else plain(path)
    try:
        data = sys.stdin.buffer.read(LABELS) if is_input else read_bytes(expand(path), LABELS)
    except OSError as error:
        raise QueryError(f"Cannot read lines from {name}: {reason_of(error)}.") from None
    lines = decoded(data, "replace").splitlines()
    lines = [line for line in lines if any(c.isprintable() for c in line.strip())]
    if not lines:
        raise QueryError(f"There is no line in {name} that says anything.")
    return lines


def _split_time(text: str) -> tuple[Path, float | None]:
    """FILE or FILE@TIME; a file whose own name ends that way comes first."""
    name, at, time = text.rpartition("@")
    if not at or os.path.lexists(absolute(text)) or exists_at(text):
        return Path(text), None
    if not _TIME.fullmatch(time):
        if name and exists_at(name):
            raise ArgumentError(
                f"{plain(time)!r} is no time in {plain(name)}; write @12.5 or @0:12."
            )
        return Path(text), None
    from sureshot.library.query_checks import parse_time  # loads numpy

    return Path(name), parse_time(time)


def player_of(path: Path, at: float, *, platform: str = sys.platform) -> tuple[list[str], bool]:
    """The command that plays a video from a second on, and whether it begins there.

    Where there is no player, or for a folder of frames, it is what the desktop opens it with, which
    begins at the start.
    """
    if "://" in str(path):
        raise SureshotError(
            f"{plain(path)} is in object storage, which players do not reach. `sureshot serve` "
            f"plays it, `sureshot export` cuts the moment out."
        )
    for name, start in _PLAYERS.items() if path.is_file() else ():
        if shutil.which(name):
            return [name, start.format(at=f"{at:.2f}"), str(path)], True
    opener = _OPENERS.get(platform, "xdg-open")
    if shutil.which(opener):
        return [opener, str(path)], False
    raise SureshotError(
        f"There is no player here; install mpv or vlc, or play {plain(path)} by hand, from "
        f"{timecode(at)} on."
    )


def play_hit(answer: "Answer", number: int) -> str:
    """Start a player with one hit of an answer, and leave it running; what to know about it."""
    hit = next((hit for hit in answer if hit.rank == number), None)
    if hit is None:
        hits = counted(len(answer), "hit")
        raise QueryError(f"There is no hit {number} to open; the answer has {hits}.")
    if hit.away:
        raise QueryError(f"{plain(hit.path)} is not there now; is its disk connected?")
    from sureshot.media.video import picture_delay

    if hit.missing:
        raise QueryError(f"{plain(hit.path)} is gone, so hit {number} cannot be opened.")
    command, seeks = player_of(hit.path, hit.peak + picture_delay(hit.path))
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that it outlives this terminal and its Ctrl-C
        )
    except OSError as error:
        raise SureshotError(f"{command[0]} does not start: {error.strerror}.") from None
    process.returncode = 0  # it is not waited for, and Python should not complain about that
    playing = f"playing: {plain(shlex.join(command))}"
    return playing if seeks else f"{playing} (the moment is at {timecode(hit.peak)})"

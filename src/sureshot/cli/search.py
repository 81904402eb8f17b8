"""`sureshot search`, `describe` and `export`."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.judge import judge_answer
from sureshot.cli.options import (
    Db,
    Device,
    Json,
    Limit,
    MistypedError,
    Model,
    Under,
    examples,
)
from sureshot.cli.prompt import converse
from sureshot.cli.threads import compute_alone
from sureshot.errors import ArgumentError, QueryError, reason_of

if TYPE_CHECKING:
    from sureshot.library.answer import Answer
    from sureshot.library.search import Searcher

_TIME = re.compile(r"[\d.:]+")

_QUERY = typer.Argument(metavar="QUERY", help="What to look for, in a sentence.")
Words = Annotated[list[str], _QUERY]
MaybeWords = Annotated[list[str] | None, _QUERY]
Like = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[@TIME]",
        help="Look for what this photo or video shows; with a time, also elsewhere in that video.",
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="FILE", help="One query a line; - reads standard input."),
]
Explain = Annotated[
    Path | None,
    typer.Option(
        readable=False,
        metavar="PNG",
        help="Draw the frames of the hits, with their scores, into a file.",
    ),
]
Open = Annotated[
    int | None,
    typer.Option(
        "--open", metavar="N", min=1, help="Play hit N from its best second on, with mpv, vlc, …"
    ),
]
PerVideo = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Hits from one video at most.",
        show_default="3, more where other videos do not fill the answer",
    ),
]
Fold = Annotated[bool, typer.Option("--fold/--no-fold", help="Show near-copies as one row.")]
Video = Annotated[str, typer.Argument(metavar="FILE[@TIME]", help="A video, indexed or not.")]
Sentences = Annotated[
    list[str],
    typer.Argument(
        metavar="SENTENCES",
        help="In quotes, or a file with one sentence a line; - reads standard input.",
    ),
]
Target = Annotated[
    Path,
    typer.Option(
        "--to", readable=False, metavar="DIR", help="Where the clips go.", show_default="here"
    ),
]
Pad = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="Added before and after each hit.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace clips of the same name.")]

Coverage = Annotated[
    str,
    typer.Option(metavar="PERCENT", help="How often the listed videos should include a right one."),
]
Minimum = Annotated[
    str,
    typer.Option("--min", metavar="PERCENT", help="Hide hits that are less likely right: 20%."),
]

Judge = Annotated[
    bool,
    typer.Option("--judge", help="Say of the best hits whether they are right, and learn from it."),
]

SEARCH_EXAMPLES = examples(
    'sureshot search "a dog catches a frisbee"',
    'sureshot search "a goal" -k 3 --in ~/Videos/2024 --explain hits.png',
    "sureshot search --like clip.mp4@0:12",
    "sureshot search --like photo.jpg",
)
DESCRIBE_EXAMPLES = examples(
    "sureshot describe clip.mp4@0:12 sentences.txt",
    'sureshot describe clip.mp4 "a dog in the snow" "a dog on a beach"',
)
EXPORT_EXAMPLES = examples('sureshot export "a goal" -k 5 --to goals --pad 2')


def search(
    words: MaybeWords = None,
    limit: Limit = 10,
    under: Under = None,
    like: Like = None,
    from_file: FromFile = None,
    explain: Explain = None,
    play: Open = None,
    ask: Judge = False,
    per_video: PerVideo = None,
    fold: Fold = True,
    coverage: Coverage = "90%",
    minimum: Minimum = "0%",
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Find moments by a sentence, or by a photo or video that looks like them.

    Without a query on a terminal it asks for one after another. There is always a nearest moment,
    so a hit need not be a good one. Times are h:mm:ss.
    """
    compute_alone()
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
    wanted: dict[str, Any] = {"k": limit, "under": under, "per_video": per_video, "fold": fold}
    if like is None:
        wanted |= {"coverage": _share(coverage, "coverage"), "minimum": _share(minimum, "min")}
    if asks:
        converse(searcher, wanted, as_json=as_json)
        return 0
    answers = _answers(searcher, _queries(words, from_file), like, wanted)
    if from_file is not None:
        answers = _watched(searcher, answers)
    if explain is not None:
        answers = _drawn(answers, explain, searcher.store.settings.frame_rate)
    if play is not None:
        answers = _opened(answers, play)
    _print(answers, as_json)
    if ask:
        judge_answer(searcher, " ".join(words or ()))
    return 0


def describe(
    video: Video,
    sentences: Sentences,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Rank sentences by how well they fit a video. It needs no index."""
    from sureshot import library
    from sureshot.cli import show

    path, at = _split_time(video)
    texts = _sentences(sentences)
    described = library.describe(path, texts, at=at, db=db, model=model, device=device)
    if as_json:
        show.print_json(described.to_dict())
    else:
        show.print_descriptions(show.console(), described)
    return 0


def export(
    words: Words,
    to: Target = Path(),
    limit: Limit = 3,
    under: Under = None,
    pad: Pad = 0.0,
    overwrite: Overwrite = False,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Search, and cut every hit into a file of its own."""
    from sureshot import library
    from sureshot.cli import show
    from sureshot.library.search import open_index

    searcher = open_index(db, model=model, device=device)
    answer = searcher.search(" ".join(words), k=limit, under=under)
    rate = searcher.store.settings.frame_rate
    clips = library.export(answer, to, pad=pad, overwrite=overwrite, frame_rate=rate)
    if as_json:
        show.print_json(answer.to_dict() | clips.to_dict())
    else:
        out = show.console()
        show.print_answers(out, [answer])
        for path in clips.written:
            show.print_path(out, "wrote", show.short(path))
        show.print_paths(out, "not written", clips.failed, "red", most=len(clips.failed))
    return 1 if clips.failed else 0


def _print(answers: "Iterator[Answer]", as_json: bool) -> None:
    """Print answers as they come."""
    from sureshot.cli import show

    if as_json:
        for answer in answers:
            show.print_json(answer.to_dict())
    else:
        show.print_answers(show.console(), answers)


def _queries(words: Sequence[str] | None, from_file: Path | None) -> list[str]:
    """The queries that were given; none with ``--like``."""
    if from_file is not None:
        return lines_of(from_file)
    return [] if words is None else [" ".join(words)]


def _answers(
    searcher: "Searcher", queries: Sequence[str], like: str | None, wanted: dict[str, Any]
) -> "Iterator[Answer]":
    """The answer to each query, as soon as it is there."""
    if like is not None:
        path, at = _split_time(like)
        yield searcher.like(path, at=at, **wanted)
    yield from searcher.search_many(queries, **wanted)


def _opened(answers: "Iterator[Answer]", number: int) -> "Iterator[Answer]":
    """The same answers; then one hit of the last of them is played."""
    from sureshot.cli import show
    from sureshot.cli.player import play

    answer = None
    for answer in answers:
        yield answer
    if answer is not None:
        show.console(err=True).print(play(answer, number))


def _watched(searcher: "Searcher", answers: "Iterator[Answer]") -> "Iterator[Answer]":
    """The same answers; a note at the end where they are unlike those percentages come from."""
    from sureshot.cli import show

    seen = []
    for answer in answers:
        seen.append(replace(answer, hits=()))  # of many queries only the numbers are kept
        yield answer
    show.print_notes(show.console(err=True), searcher.drift(seen))


def _drawn(answers: "Iterator[Answer]", target: Path, frame_rate: float) -> "Iterator[Answer]":
    """The same answers, each drawn into the contact sheet."""
    from sureshot.cli import show
    from sureshot.library.explain import sheet_rows
    from sureshot.media.sheet import contact_sheet, save_sheet
    from sureshot.text import plain

    for answer in answers:
        rows = sheet_rows(answer, frame_rate)
        save_sheet(contact_sheet(f"{answer.query} · {''.join(answer.verdict)}", rows), target)
        yield answer
    show.console(err=True).print(f"Contact sheet: {plain(target)}")


def _share(text: str, name: str) -> float:
    """A share of 1 from ``20%``, ``20 %`` or ``0.2``, as an option gives it.

    Raises:
        MistypedError: it is none.
    """
    number, sign, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if sign else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share < 1:
        raise MistypedError(f"--{name} is {text!r}; write it as 20%.")
    return share


def _sentences(given: Sequence[str]) -> list[str]:
    """Sentences as they were typed, or the lines of the one file that was named."""
    return list(given) if len(given) > 1 or not _names_file(given[0]) else lines_of(Path(given[0]))


def _names_file(given: str) -> bool:
    """Whether one argument is a file of sentences: there is one, or it can be nothing else."""
    from sureshot.places import absolute

    looks = given == "-" or os.sep in given or bool(Path(given).suffix)
    return os.path.lexists(absolute(given)) or (looks and " " not in given.strip())


def lines_of(path: Path) -> list[str]:
    """The lines of a file that hold something that can be read.

    Raises:
        QueryError: the file cannot be read, or holds nothing.
    """
    from sureshot.formats import LABELS, read_bytes
    from sureshot.places import expand
    from sureshot.text import decoded, plain

    name = "standard input" if str(path) == "-" else plain(path)
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(LABELS)
        else:
            data = read_bytes(expand(path), LABELS)
    except OSError as error:
        raise QueryError(f"Cannot read lines from {name}: {reason_of(error)}.") from None
    text = decoded(data, "replace")
    lines = [line for line in text.splitlines() if any(c.isprintable() for c in line.strip())]
    if not lines:
        raise QueryError(f"There is no line in {name} that says anything.")
    return lines


def _split_time(text: str) -> tuple[Path, float | None]:
    """FILE or FILE@TIME; a file whose own name ends that way comes first."""
    from sureshot.places import absolute, exists_at
    from sureshot.text import parse_time, plain

    name, at, time = text.rpartition("@")
    if not at or os.path.lexists(absolute(text)) or exists_at(text):
        return Path(text), None
    if not _TIME.fullmatch(time):
        if name and exists_at(name):
            raise ArgumentError(
                f"{plain(time)!r} is no time in {plain(name)}; write @12.5 or @0:12."
            )
        return Path(text), None
    return Path(name), parse_time(time)

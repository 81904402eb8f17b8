"""`sureshot index`."""

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from sureshot import library
from sureshot.cli.terminal import (
    Bar,
    Db,
    Device,
    Json,
    Model,
    argument,
    console,
    examples,
    flag,
    print_json,
    print_notes,
    print_path,
    print_paths,
    readers_may_leave,
    setting,
    short,
    typed,
)
from sureshot.paths import absolute
from sureshot.text import counted, duration, plain

if TYPE_CHECKING:
    from sureshot.library.index_result import Indexed

Engine = Annotated[
    str | None,
    setting(
        "NAME",
        "onnxruntime, openvino or torch: what computes the bundled model's frames.",
        shown="$SURESHOT_ENGINE, else the first that works",
    ),
]
Decoded = Literal["auto", "all", "keyframes"]
Words = Literal["none", "subtitles", "all"]
_WORTH_SAYING = 10.0  # seconds: a few clips are not worth a sentence
_NEW = (
    "Using the bundled model (offline, English, everyday scenes). Online, --model "
    "openai/clip-vit-base-patch16 finds much more."
)
EXAMPLES = examples(
    "sureshot index ~/Videos",
    "sureshot index ~/Videos /media/camera/clip.mkv --prune",
    "sureshot index ~/Videos --exclude '*.gif' --exclude ~/Videos/private",
    "sureshot index ~/Videos --db ~/clip-index --model openai/clip-vit-base-patch16",
    "sureshot index /shared/videos --db /shared/index --ray auto",
)


def index(
    paths: Annotated[
        list[Path], argument("PATH...", "Videos, folders of videos, folders of numbered frames.")
    ],
    db: Db = None,
    model: Model = None,
    device: Device = None,
    engine: Engine = None,
    frames: Annotated[
        int | None,
        setting(
            "N", "Frames sampled from each window.", shown="12, or as many as a trained model saw"
        ),
    ] = None,
    window: Annotated[float | None, setting("SECONDS", "Longest window.", shown="30")] = None,
    scenes: Annotated[
        bool | None,
        typer.Option(
            "--scenes/--no-scenes",
            help="Start a new window where the scene changes.",
            show_default="scenes",
        ),
    ] = None,
    decode: Annotated[
        Decoded | None,
        typer.Option(
            help="Frames that are decoded; auto skips those that the index does not need.",
            show_default="auto",
        ),
    ] = None,
    frame_rate: Annotated[
        float | None, setting("N", "Frames per second in a folder of frames.", shown="1")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        setting("PATTERN", "Skip names like '*.gif', or a path and all below it, from now on."),
    ] = None,
    include: Annotated[
        list[str] | None, setting("PATTERN", "Undo an --exclude; `sureshot status` lists them.")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Also index what is there already or failed before.")
    ] = False,
    prune: Annotated[bool, flag("--prune", "Remove videos whose files are gone.")] = False,
    words: Annotated[
        Words | None,
        typer.Option(
            help="Words to search: subtitles, in files next to videos and in them, or also text in "
            "the picture (all).",
            show_default="as before, at first subtitles",
        ),
    ] = None,
    speech: Annotated[
        str | None,
        setting("MODEL", "Also what is spoken, by this Whisper model: a folder, or a name."),
    ] = None,
    workers: Annotated[
        int | None,
        setting(
            "N",
            "Decoding threads; with --ray, processes on its machines.",
            min=1,
            max=4096,
            shown="half the cores, at most 4; with --ray one per two cores",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        setting(
            "auto|ADDRESS", "Encode on the machines of a Ray cluster, which see the same paths."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        setting("K/N", "Index only the K-th of N shares of the videos, as one of N jobs."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Make videos searchable. Run it again at any time: only what is new or changed costs time."""
    given, is_new = typed(locals()), not library.has_index(db)
    with Bar(console(err=True), "looking for videos") as bar:
        shown = _shown_in(bar, _NEW if is_new and model is None else "")
        result = library.index(**given, progress=shown)
    with readers_may_leave():
        print_json(result.to_dict()) if as_json else _print(console(), result, paths)
    if result.interrupted:
        return 130
    named = {absolute(path) for path in paths}
    nothing = not result.found + result.pruned + result.excluded + result.forgotten
    if nothing or not named.isdisjoint(path for path, _ in result.failed):
        return 1
    if is_new and model is not None and result.indexed and not as_json:
        _offer_percentages(model, db)
    return 0


def _offer_percentages(model: str, db: str | None) -> None:
    """Say once how a model without percentages gets some."""
    searcher = library.open_index(db, model=model)
    if searcher.learned_from() == "not calibrated":
        console(err=True).print(
            f"Searches with {plain(model)} show no percentages yet. Learn them once from captioned "
            f"photographs: sureshot calibrate {shlex.quote(model)} --reference FOLDER",
            soft_wrap=True,
        )


def _print(out: Console, result: "Indexed", paths: Sequence[Path]) -> None:
    if result.interrupted:
        out.print("Interrupted. What is indexed is kept; run the same command to continue.")
    if result.found or result.failed:
        out.print(result.summary)
    else:
        places = ", ".join(short(absolute(path)) for path in paths)
        out.print(f"No videos in {places}. Single photos are not indexed.")
    if result.indexed:
        windows = counted(result.windows, "window")
        engine = f", using {result.engine_title}" if result.engine else ""
        took = f"{result.elapsed:.1f} s" if result.elapsed < 10 else duration(result.elapsed)
        out.print(
            f"Indexed {duration(result.seconds)} of video ({windows}) in "
            f"{took}, {result.speed:.1f}x real time{engine}."
        )
    _print_words(out, result)
    print_paths(out, "failed", result.failed, "red")
    print_paths(out, "damaged, indexed as far as possible", result.notes, "yellow")
    print_paths(out, "words", result.left_out, "yellow")
    if result.known_failures:
        out.print("Files that failed before are listed by `sureshot status`; --force retries them.")
    if result.excluded:
        skipped = counted(result.excluded, "file or folder", "files and folders")
        out.print(
            f"Excluded: {skipped}; `sureshot status` lists the patterns, --include undoes one."
        )
    if result.forgotten:
        out.print(f"Excluded and removed from the index: {counted(result.forgotten, 'video')}.")
    if result.pruned:
        out.print(f"Deleted on disk, removed from the index: {counted(result.pruned, 'video')}.")
    if result.away:
        away = counted(result.away, "video")
        out.print(
            f"Not there now, still indexed: {away}; is the disk connected? If it is gone for good: "
            "`sureshot remove PATH`."
        )
    if result.missing:
        gone = counted(result.missing, "video")
        out.print(f"Deleted on disk, still indexed: {gone}; --prune removes them.")
    print_notes(out, result.warnings)
    print_path(out, "Index:", plain(result.index))


def _print_words(out: Console, result: "Indexed") -> None:
    from sureshot.media.lines import SOURCES, TITLES, cost

    for source in SOURCES:
        if videos := result.worded.get(source):
            new = result.lines.get(source, 0)
            have = "has" if videos == 1 else "have"
            read = f" ({counted(new, 'new line')})" if new else ""
            out.print(f"{counted(videos, 'video')} {have} {TITLES[source].lower()}{read}.")
    more = cost("picture", result.unread.get("picture", 0.0))
    if result.indexed and more >= _WORTH_SAYING:
        more = more if more < 100 else round(more / 60) * 60.0
        out.print(f"Text in the picture is read with --words all, about {duration(more)} more.")


def _shown_in(bar: Bar, first: str = "") -> Callable[["Indexed"], None]:
    """Shows an indexing run in a bar, after a first sentence."""
    from sureshot.library.index_result import IndexProgress

    now, begin = IndexProgress(), [first] if first else []

    def show(result: "Indexed") -> None:
        while begin:
            bar.line(begin.pop())
        now.update(result)
        if result.found:
            bar.show(now.text + now.left, now.done, now.total)

    return show


WATCH_EXAMPLES = examples(
    "sureshot watch ~/Videos /media/camera",
    "sureshot watch ~/Videos --settle 60 --every 300",
)


def watch(
    paths: Annotated[list[Path], argument("FOLDER...", "Folders, which need not be there yet.")],
    settle: Annotated[
        float, setting("SECONDS", "How long a new file must not change before it is indexed.")
    ] = 10.0,
    every: Annotated[
        float,
        setting("SECONDS", "Look at everything this often, as not every disk reports changes."),
    ] = 600.0,
    prune: Annotated[
        bool,
        typer.Option(
            help="Remove videos that are deleted meanwhile; never those of a folder or disk that "
            "is not there."
        ),
    ] = True,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    engine: Engine = None,
) -> int:
    """Keep the index current with folders, until Ctrl-C: new, changed, moved and deleted videos."""
    given, out = typed(locals()), console()

    def say(sentence: str) -> None:
        out.print(Text(f"{time.strftime('%H:%M:%S')}  {plain(sentence)}", overflow="fold"))
        out.file.flush()  # of a service too, whose output is a pipe

    def started(result: "Indexed") -> None:
        bar.__exit__()
        _print(out, result, paths)
        if not result.interrupted:
            say(f"Watching {', '.join(short(absolute(path)) for path in paths)}; Ctrl-C ends it.")

    with Bar(console(err=True), "looking for videos") as bar:
        is_new = model is None and not library.has_index(db)
        shown = _shown_in(bar, _NEW if is_new else "")
        library.watch(**given, started=started, say=say, progress=shown)
    say("Stopped; what is indexed is kept.")
    return 0

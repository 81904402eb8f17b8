"""`sureshot index`."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sureshot import library
from sureshot.cli.terminal import (
    Bar,
    Db,
    Device,
    Engine,
    Json,
    Model,
    console,
    examples,
    print_json,
    print_notes,
    print_path,
    print_paths,
    short,
)
from sureshot.paths import absolute
from sureshot.text import counted, duration, plain

if TYPE_CHECKING:
    from sureshot.library.results import Indexed


class Decoded(StrEnum):
    """Values of ``--decode``; a `Literal` would need a newer typer."""

    AUTO = "auto"
    ALL = "all"
    KEYFRAMES = "keyframes"


Paths = Annotated[
    list[Path],
    typer.Argument(
        readable=False,
        metavar="PATH",
        help="Videos, folders of videos, folders of numbered frames.",
    ),
]
Frames = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Frames sampled from each window.",
        show_default="12, or as many as a trained model saw",
    ),
]
Window = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Longest window.", show_default="30"),
]
Scenes = Annotated[
    bool | None,
    typer.Option(
        "--scenes/--no-scenes",
        help="Start a new window where the scene changes.",
        show_default="scenes",
    ),
]
Decode = Annotated[
    Decoded | None,
    typer.Option(
        help="Frames that are decoded; auto takes key frames of long videos that have enough.",
        show_default="auto",
    ),
]
FrameRate = Annotated[
    float | None,
    typer.Option(metavar="N", help="Frames per second in a folder of frames.", show_default="1"),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Skip names like '*.gif', or a path and all below it, from now on.",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Undo an --exclude; `sureshot status` lists them."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Index again what is already there or failed before.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Remove videos whose files are gone.")]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=4096,
        help="Decoding threads; with --ray, processes on its machines.",
        show_default="half the cores, at most 4; with --ray one per two cores",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="auto|ADDRESS",
        help="Encode on the machines of a Ray cluster, which see the same paths.",
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        metavar="K/N", help="Index only the K-th of N shares of the videos, as one of N jobs."
    ),
]

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
    paths: Paths,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    engine: Engine = None,
    frames: Frames = None,
    window: Window = None,
    scenes: Scenes = None,
    decode: Decode = None,
    frame_rate: FrameRate = None,
    exclude: Exclude = None,
    include: Include = None,
    force: Force = False,
    prune: Prune = False,
    workers: Workers = None,
    ray: Ray = None,
    shard: Share = None,
    as_json: Json = False,
) -> int:
    """Make videos searchable. Run it again at any time: only what is new or changed costs time."""
    is_new = model is None and not library.has_index(db)
    with Bar(console(err=True), "looking for videos") as bar:
        result = library.index(
            paths,
            db=db,
            model=model,
            device=device,
            engine=engine,
            frames=frames,
            window=window,
            scenes=scenes,
            decode=None if decode is None else decode.value,
            frame_rate=frame_rate,
            exclude=exclude or (),
            include=include or (),
            force=force,
            prune=prune,
            workers=workers,
            ray=ray,
            shard=shard,
            progress=_Progress(bar, _NEW if is_new else "").update,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print(console(), result, paths)
    if result.interrupted:
        return 130
    return 1 if _failed(paths, result) else 0


def _failed(paths: Sequence[Path], result: "Indexed") -> bool:
    """Whether there is nothing to index, or one of the paths themselves could not be read."""
    named = {absolute(path) for path in paths}
    nothing = not result.found + result.pruned + result.excluded + result.forgotten
    return nothing or not named.isdisjoint(path for path, _ in result.failed)


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
        engine = ", using OpenVINO" if result.engine == "openvino" else ""
        out.print(
            f"Indexed {duration(result.seconds)} of video ({windows}) in "
            f"{duration(result.elapsed)}, {result.speed:.1f}x real time{engine}."
        )
    print_paths(out, "failed", result.failed, "red")
    print_paths(out, "damaged, indexed as far as possible", result.notes, "yellow")
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
    if result.missing:
        gone = counted(result.missing, "video")
        out.print(f"Deleted on disk, still indexed: {gone}; --prune removes them.")
    print_notes(out, result.warnings)
    print_path(out, "Index:", plain(result.index))


class _Progress:
    """Shows an indexing run in a bar, after a first sentence."""

    def __init__(self, bar: Bar, first: str = "") -> None:
        from sureshot.library.results import IndexProgress

        self._bar = bar
        self._first = first
        self._progress = IndexProgress()

    def update(self, result: "Indexed") -> None:
        if self._first:
            self._bar.line(self._first)
            self._first = ""
        now = self._progress
        now.update(result)
        if result.found:
            self._bar.show(now.text, now.done, now.total, now.free)

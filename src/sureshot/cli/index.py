"""`sureshot index`."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.options import Db, Device, Json, Model, absolute_model, examples, place
from sureshot.errors import QueryError

if TYPE_CHECKING:
    from rich.console import Console

    from sureshot.cli.bar import Bar
    from sureshot.library.ingest import Report
    from sureshot.store.header import IndexSettings


class Decoded(StrEnum):
    """Values of ``--decode``; a `Literal` would need a newer typer."""

    AUTO = "auto"
    ALL = "all"
    KEYFRAMES = "keyframes"


Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Videos, folders of videos, folders of numbered frames."),
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
    typer.Option(metavar="N", help="Frames a second in a folder of frames.", show_default="1"),
]
Force = Annotated[
    bool, typer.Option("--force", help="Index again what is already there or failed before.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Forget videos whose files are gone.")]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=64,
        help="Decoding threads.",
        show_default="half the cores, at most 4",
    ),
]

EXAMPLES = examples(
    "sureshot index ~/Videos",
    "sureshot index ~/Videos /media/camera/clip.mkv --prune",
    "sureshot index ~/Videos --db ~/clip-index --model openai/clip-vit-base-patch16",
)


def index(
    paths: Paths,
    db: Db = None,
    model: Model = None,
    device: Device = None,
    frames: Frames = None,
    window: Window = None,
    scenes: Scenes = None,
    decode: Decode = None,
    frame_rate: FrameRate = None,
    force: Force = False,
    prune: Prune = False,
    workers: Workers = None,
    as_json: Json = False,
) -> int:
    """Make videos searchable. Run it again at any time: only what is new or changed costs time."""
    from sureshot.cli import show

    given = {
        "model": absolute_model(model),
        "frames": frames,
        "window": window,
        "scenes": scenes,
        "decode": None if decode is None else decode.value,
        "frame_rate": frame_rate,
    }
    given = {name: value for name, value in given.items() if value is not None}
    options = {"force": force, "prune": prune, "workers": workers}
    report, location = _run(paths, place(db), given, device, options)
    if as_json:
        show.print_json(_plain(report, location))
    else:
        show.print_report(show.console(), report, location)
    if report.interrupted:
        return 130
    return 1 if _failed(paths, report) else 0


def _run(
    paths: Sequence[Path],
    where: str,
    given: dict[str, Any],
    device: str | None,
    options: dict[str, Any],
) -> "tuple[Report, str]":
    """Index with a progress bar; also gives where the index is."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.ingest import ingest
    from sureshot.models.retriever import Retriever, load
    from sureshot.store.store import Store
    from sureshot.text import plain

    # Before an index is made or a model fetched for a mistyped path. If only some are missing, the
    # others are indexed: a nightly run must not stop at an unplugged drive.
    if not any(os.path.exists(os.path.expanduser(path)) for path in paths):  # noqa: PTH110, PTH111
        missing = ", ".join(plain(path) for path in paths)
        raise QueryError(f"There is nothing at {missing}; name videos or folders that hold some.")
    err = show.console(err=True)
    settings = _settings(where, given, err)
    encoder = load(settings.model, device)
    if isinstance(encoder, Retriever) and "frames" not in given and not Store.exists(where):
        settings = replace(settings, frames=encoder.frames)
    store = Store.create(where, settings, encoder.fingerprint, encoder.dim, encoder.channels)
    with Bar(err, "looking for videos") as bar:
        report = ingest(store, encoder, paths, observe=_Progress(bar).update, **options)
    return report, store.location


def _settings(where: str, given: dict[str, Any], err: "Console") -> "IndexSettings":
    """The index's own settings with what was asked for on top; defaults for a new index."""
    from sureshot.store.header import IndexSettings
    from sureshot.store.store import Store

    if Store.exists(where):
        return replace(Store.open(where).settings, **given)
    settings = IndexSettings(**given)
    if settings.model == "bundled":
        err.print(
            "New index with the bundled model: offline, English, good at everyday things. Where a "
            "model hub can be reached, --model openai/clip-vit-base-patch16 finds far more."
        )
    return settings


def _failed(paths: Sequence[Path], report: "Report") -> bool:
    """Whether a path could not be read that was named itself, not only found in a folder."""
    from sureshot.places import absolute

    return not {absolute(path) for path in paths}.isdisjoint(path for path, _ in report.failed)


def _plain(report: "Report", location: str) -> dict[str, Any]:
    from sureshot.cli import show
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.text import printable

    values = asdict(report)
    for name in ("current", "bytes_begun", "bytes_done", "bytes_found"):
        del values[name]
    for name in ("failed", "notes"):
        values[name] = show.reasons(values[name])
    for name in ("seconds", "elapsed"):
        values[name] = round(values[name], 3)
    return {"schema": JSON_SCHEMA, "index": printable(location), **values}


class _Progress:
    """Tells a bar where an indexing run stands."""

    def __init__(self, bar: "Bar") -> None:
        self._bar = bar
        self._free = 0  # bytes that cost no time, as they were indexed before

    def update(self, report: "Report") -> None:
        """Show where the run stands."""
        if not report.indexed + len(report.failed):
            self._free = report.bytes_done
        # Bytes, not videos, so that one film among clips does not upset the estimate.
        worked = report.bytes_done + report.bytes_begun
        self._bar.show(self._text(report), worked, report.bytes_found, self._free)

    def _text(self, report: "Report") -> str:
        failed = len(report.failed) + report.known_failures
        done = report.indexed + report.unchanged + report.moved + report.copied + failed
        text = f"{done} of {report.found} videos"
        if report.failed:
            text += f", {len(report.failed)} failed"
        if report.seconds:
            text += f", {report.seconds / self._bar.elapsed:.1f} times real time"
        return text

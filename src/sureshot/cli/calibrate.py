"""`sureshot calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import (
    Cache,
    Db,
    Device,
    Experts,
    Ids,
    Json,
    Label,
    MistypedError,
    Protocol,
    VideoFolder,
    examples,
)

if TYPE_CHECKING:
    from sureshot.library.search import Searcher

EXAMPLES = examples(
    "sureshot calibrate",
    "sureshot calibrate --labels judged.csv --db ~/films-index --skip-unknown",
    "sureshot calibrate runs/duq/model --data msrvtt --root ~/MSRVTT --split val",
)


def calibrate(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="With --data: folder of a checkpoint, or an encoder's name. With --labels: the "
            "model of the index, if its folder has moved.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Judged queries of an index (docs/trust.md).",
            show_default="what was judged of the index",
        ),
    ] = None,
    db: Db = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out queries about videos not in the index."),
    ] = False,
    data: Annotated[
        str | None, typer.Option(metavar="NAME", help="msrvtt, msvd, … or pairs.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="PATH", help="Folder of the annotation files."),
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="NAME", help="val, or test; never what it was trained on.")
    ] = "val",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    show_card: Annotated[
        bool, typer.Option("--show", help="Say what percentages are learned from, and end.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Go back to the percentages of the model, and end.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            readable=False,
            metavar="FILE",
            help="Where the card goes.",
            show_default="in the index or the checkpoint",
        ),
    ] = None,
    date: Annotated[
        str, typer.Option(metavar="DATE", help="To note on the card.", show_default="today, in UTC")
    ] = "",
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Learn from judged queries how sure an answer is, so that searches show percentages.

    Ten judgements move the percentages that come with the model towards your videos.
    """
    from sureshot import library, research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.places import absolute_model

    if (labels is not None) + (data is not None) + show_card + forget > 1:
        raise MistypedError(
            "Give one of: --labels FILE, --show, --forget, or MODEL --data NAME --root PATH."
        )
    if show_card or forget:
        return _kept(library.open_index(db, model=model, device=device), forget, as_json)
    with Bar(show.console(err=True), "scoring") as bar:
        if data is None:
            if root is not None:
                raise MistypedError("--root needs --data NAME as well.")
            done = library.calibrate(
                labels,
                db=db,
                model=model,
                device=device,
                lenient=skip_unknown,
                date=date,
                to=to,
                told=lambda done, total: bar.update("scored", done, total),
            )
        elif model is None or root is None:
            raise MistypedError("--data needs the MODEL and --root as well.")
        else:
            done = research.calibrate(
                absolute_model(model),
                data,
                root,
                split=split,
                protocol=protocol,
                videos=videos,
                ids=ids,
                label=label,
                experts=experts,
                date=date,
                to=to,
                device=device,
                cache=cache,
                listener=bar,
            )
    if as_json:
        show.print_json(done.to_dict())
    else:
        typer.echo(repr(done))
    return 1 if done.card.refused else 0


def _kept(searcher: "Searcher", forget: bool, as_json: bool) -> int:
    """Say what the percentages of an index are learned from, its own card deleted or not."""
    from sureshot import library
    from sureshot.cli import show

    forgotten = library.forget(searcher) if forget else None
    learned = searcher.learned_from()
    if as_json:
        show.print_json({"learned_from": learned, "forgotten": forgotten})
        return 0
    if forgotten is not None:
        said = (
            "Your own percentages are forgotten." if forgotten else "There were none of your own."
        )
        typer.echo(said)
    typer.echo(f"Percentages: {learned}.")
    return 0

"""`sureshot calibrate`."""

from pathlib import Path
from typing import Annotated

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

EXAMPLES = examples(
    "sureshot calibrate --labels judged.jsonl",
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
        typer.Option(metavar="FILE", help="Judged queries of an index (docs/trust.md)."),
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
        Path | None, typer.Option(metavar="PATH", help="Folder of the annotation files.")
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="NAME", help="val, or test; never what it was trained on.")
    ] = "val",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    absent: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=0.99,
            help="Share of queries to reckon with that nothing answers.",
            show_default="that of the labels, else 0",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
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

    Ends with 1 and leaves no card where the labels do not allow it.
    """
    from sureshot import library, research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.places import absolute_model

    if (labels is None) == (data is None):
        raise MistypedError("Give one of: --labels FILE, or MODEL --data NAME --root PATH.")
    with Bar(show.console(err=True), "scoring") as bar:
        if labels is not None:
            done = library.calibrate(
                labels,
                db=db,
                model=model,
                device=device,
                lenient=skip_unknown,
                absent=absent,
                date=date,
                to=to,
                told=lambda done, total: bar.update("windows scored", done, total),
            )
        elif data is None or model is None or root is None:
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
                absent=absent or 0.0,
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

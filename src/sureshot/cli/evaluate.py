"""`sureshot evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import (
    Cache,
    Data,
    Device,
    Experts,
    Frames,
    Ids,
    Json,
    Label,
    Protocol,
    Root,
    SplitName,
    Trained,
    VideoFolder,
    examples,
)

EXAMPLES = examples(
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT --against DUQ --post dsl",
    "sureshot evaluate bundled --data pairs --root my-videos.csv --trust --plots figures",
)


def evaluate(
    model: Trained,
    data: Data,
    root: Root,
    split: SplitName = "test",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    frames: Frames = None,
    post: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also show dsl, inverted_softmax, qb_norm, nnn, duq_printed or duq_candidates.",
        ),
    ] = None,
    gamma: Annotated[
        float,
        typer.Option(metavar="X", help="Weight of the uncertainty in those of DUQ."),
    ] = 0.1,
    bank: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Training captions that are looked at, at most."),
    ] = 2000,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Printed rows of this method; published: all."),
    ] = None,
    trec: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="DIR", help="Write run.txt and qrels.txt here."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Also measure how far its answers can be believed.")
    ] = False,
    card: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Calibration card that --trust measures.",
            show_default="fitted to parts of the split",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="DIR", help="Draw what --trust measures, PNG and SVG."
        ),
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Measure a model on a split: raw scores first, whatever else was asked for beside them."""
    from sureshot import research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.places import absolute_model

    with Bar(show.console(err=True)) as bar:
        evaluation = research.evaluate(
            absolute_model(model),
            data,
            root,
            split=split,
            protocol=protocol,
            videos=videos,
            ids=ids,
            label=label,
            experts=experts,
            frames=frames,
            post=post or (),
            gamma=gamma,
            bank=bank,
            against=against or (),
            trec=trec,
            trust=trust,
            card=card,
            plots=plots,
            device=device,
            cache=cache,
            listener=bar,
        )
    return show.print_result(evaluation, as_json=as_json)

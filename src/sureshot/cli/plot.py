"""`sureshot plot`."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import (
    Bank,
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
    VideoFolder,
    examples,
)

EXAMPLES = examples(
    "sureshot plot --list",
    "sureshot plot embeddings runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot plot rerank runs/xpool/model --after nnn --data msrvtt --root ~/MSRVTT --to fig.svg",
    "sureshot plot matrices runs/dvtr/model --beside runs/hit/model --data msrvtt --root ~/MSRVTT",
    "sureshot plot epochs runs/one/model runs/two/model --data pairs --root my-videos.csv --json",
)


def _list(asked: bool) -> bool:
    if asked:
        from sureshot.research.figures.catalogue import listing

        typer.echo(listing())
        raise typer.Exit
    return asked


def plot(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="Such as matrices; see --list.")],
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Folder of a checkpoint; epochs takes several."),
    ],
    data: Data,
    root: Root,
    split: SplitName = "test",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    frames: Frames = None,
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            readable=False,
            metavar="PATH",
            help="A .png or .svg, or a folder that gets both.",
        ),
    ] = Path("figures"),
    count: Annotated[
        int | None,
        typer.Option(
            "--queries",
            "-n",
            metavar="N",
            min=1,
            max=200,
            help="Queries or pairs to show.",
            show_default="what suits the figure",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="What is shown is drawn by it.")
    ] = 0,
    beside: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Second model, for matrices and tokens."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Second score of rerank: score or printed (DUQ), nnn, qb_norm, inverted_softmax "
            "or dsl.",
        ),
    ] = None,
    bank: Bank = 2000,
    experts: Experts = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
    listed: Annotated[
        bool,
        typer.Option("--list", help="Say which figures there are.", callback=_list, is_eager=True),
    ] = False,
) -> int:
    """Draw a figure of the papers for a trained model, as PNG and SVG."""
    from sureshot import research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.places import absolute_model

    del listed
    with Bar(show.console(err=True)) as bar:
        drawn = research.plot(
            figure,
            [absolute_model(model) for model in models],
            data,
            root,
            split=split,
            protocol=protocol,
            videos=videos,
            ids=ids,
            label=label,
            experts=experts,
            frames=frames,
            to=to,
            count=count,
            seed=seed,
            beside=None if beside is None else absolute_model(beside),
            after=after,
            bank=bank,
            device=device,
            cache=cache,
            listener=bar,
        )
    return show.print_result(drawn, as_json=as_json)

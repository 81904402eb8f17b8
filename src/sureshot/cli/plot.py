"""`sureshot plot`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import (
    Cache,
    Device,
    Experts,
    Frames,
    Ids,
    Json,
    Label,
    MistypedError,
    Protocol,
    Root,
    VideoFolder,
    absolute_model,
    examples,
)

if TYPE_CHECKING:
    from sureshot.research.figures.rerank import After

EXAMPLES = examples(
    "sureshot plot --list",
    "sureshot plot embeddings runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot plot rerank runs/xpool/model --after nnn --data msrvtt --root ~/MSRVTT --to fig.svg",
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
    data: Annotated[str, typer.Option(metavar="NAME", help="msrvtt, msvd, … or pairs.")],
    root: Root,
    split: Annotated[str, typer.Option(metavar="NAME", help="test, val or train.")] = "test",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    frames: Frames = None,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="PATH", help="A .png or .svg, or a folder that gets both."),
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
    after: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Second score of rerank: score or printed (DUQ), nnn, qb_norm, inverted_softmax "
            "or dsl.",
        ),
    ] = None,
    bank: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Training captions that qb_norm and nnn look at."),
    ] = 2000,
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
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.cli.train import check_experts, found, training_captions
    from sureshot.datasets import load_split
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.models.encoders.experts import presence, read_experts
    from sureshot.research.features import caption_features, extract
    from sureshot.research.figures.catalogue import Wish, named, write
    from sureshot.research.figures.catalogue import figure as make
    from sureshot.research.figures.rerank import BANKED
    from sureshot.research.figures.subject import Subject
    from sureshot.research.scorer import Scorer

    del listed
    named(figure, len(models))
    wanted = _second(figure, after)
    err = show.console(err=True)
    scorers = [Scorer.load(absolute_model(model) or model, device) for model in models]
    for scorer in scorers:
        check_experts(scorer, experts)
    loaded = load_split(data, split, root, protocol=protocol, videos=videos, ids=ids, label=label)
    for line in found(([loaded], None)):
        err.print(line)
    given = {} if experts is None else read_experts(experts, [item.id for item in loaded.items])
    if given:
        err.print(f"experts: {presence(given)}")
    looked_at = training_captions(scorers[0], loaded, bank) if wanted in BANKED else None
    subjects: list[Subject] = []
    with Bar(err) as bar:
        for scorer in scorers:
            features = extract(
                loaded,
                scorer.encoder,
                frames=frames or scorer.frames,
                cache=cache,
                told=lambda what, done, total: bar.update(f"{what} encoded", done, total),
            )
            subjects.append(Subject(scorer, replace(features, experts=given), seed))
        bank_scores = None
        if looked_at is not None:
            encoded = caption_features(looked_at, scorers[0].encoder, cache=cache)
            bank_scores = scorers[0].similarity(subjects[0].features, encoded)
    drawing = make(figure, subjects, Wish(count, wanted, bank_scores))
    files = write(figure, drawing, to)
    if as_json:
        values = {
            "schema": JSON_SCHEMA,
            "figure": figure,
            "model": subjects[0].title,
            "files": [str(path.absolute()) for path in files],
            "numbers": drawing.to_dict(),
        }
        show.print_json(values)
        return 0
    for path in files:
        typer.echo(str(path))
    return 0


def _second(figure: str, after: str | None) -> "After | None":
    """The second score of a re-ranking, if it is one."""
    from typing import get_args

    from sureshot.research.figures.rerank import After

    if after is None:
        return None
    if figure != "rerank":
        raise MistypedError(f"--after belongs to rerank; {figure} shows one score.")
    for name in get_args(After):
        if name == after:
            return name
    raise MistypedError(f"--after is {after!r}; known: {', '.join(get_args(After))}.")

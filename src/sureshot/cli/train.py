"""`sureshot train` and `sureshot evaluate`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    RecipeFile,
    Resume,
    Root,
    RunFolder,
    Settings,
    VideoFolder,
    absolute_model,
    examples,
)
from sureshot.errors import SureshotError

if TYPE_CHECKING:
    import numpy as np

    from sureshot.datasets import Split
    from sureshot.metrics.report import Report
    from sureshot.research.features import SplitFeatures
    from sureshot.research.scorer import Scorer
    from sureshot.research.training.loop import Progress

# The name that the tables of the papers give to what a reader reads.
_PUBLISHED = {
    ("msrvtt", "1k-A", "test"): "1kA",
    ("msrvtt", "full", "test"): "full",
    ("activitynet", "paragraph", "test"): "val1",
}

_POST = ("dsl", "inverted_softmax", "qb_norm", "nnn")

TRAIN_EXAMPLES = examples(
    "sureshot train recipe.toml",
    "sureshot train recipe.toml --to runs/duq --set system.samples=4 --set training.seed=1",
    "torchrun --nproc-per-node 4 -m sureshot train recipe.toml",
)
EVALUATE_EXAMPLES = examples(
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT --against DUQ --post dsl",
    "sureshot evaluate bundled --data pairs --root my-videos.csv --trust --plots figures",
)


def train(
    recipe: RecipeFile,
    to: RunFolder = None,
    settings: Settings = None,
    resume: Resume = False,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Train a system by a recipe. The run's folder gets the model, a log and a plot."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.research.training.gather import rank
    from sureshot.research.training.launch import from_torchrun
    from sureshot.research.training.recipe import Recipe
    from sureshot.research.training.run import train as run

    read = Recipe.load(recipe, settings or [])
    folder = to or Path("runs") / recipe.stem
    err = show.console(err=True)
    with from_torchrun():
        err.quiet = rank() != 0  # one process speaks for all
        with Bar(err) as bar:
            for line in found(read.splits()):
                err.print(line)

            def told(progress: "Progress") -> None:
                more = f", epoch {progress.epoch}, loss {progress.losses['loss']:.4g}"
                bar.update("steps", progress.step, progress.steps, more)

            done = run(
                read,
                folder,
                resume=resume,
                cache=cache,
                told=told,
                extracting=lambda what, done, total: bar.update(f"{what} encoded", done, total),
            )
            if rank() != 0:
                return 0
    for line in done.notes:
        err.print(line)
    if as_json:
        values = {
            "schema": JSON_SCHEMA,
            "folder": str(done.folder.absolute()),
            "epoch": done.epoch,
            "metric": read.training.metric,
            "score": done.score,
        }
        show.print_json(values)
        return 0
    out = show.console()
    kept = f"the weights after epoch {done.epoch}"
    if done.score is not None:
        kept += f", {read.training.metric} {done.score:.1f} on the validation set"
    out.print(f"Trained: {done.folder} holds {kept}.", soft_wrap=True)
    out.print(f"sureshot evaluate {done.folder} --data … says how good it is.", soft_wrap=True)
    return 0


def found(splits: "tuple[list[Split], Split | None]") -> list[str]:
    """What was read, and what was not there."""
    lines = []
    for split in [*splits[0], *([splits[1]] if splits[1] else [])]:
        line = split.title()
        if split.missing:
            line += f"; {len(split.missing)} not on disk, such as {split.missing[0]}"
        if split.dropped:
            line += f"; {split.dropped} empty captions left out"
        lines.append(line)
    return lines


def evaluate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of a checkpoint, or an encoder's name.")
    ],
    data: Annotated[str, typer.Option(metavar="NAME", help="msrvtt, msvd, … or pairs.")],
    root: Root,
    split: Annotated[str, typer.Option(metavar="NAME", help="test, val or train.")] = "test",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    frames: Frames = None,
    post: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also show dsl, inverted_softmax, qb_norm or nnn."),
    ] = None,
    bank: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Training captions that qb_norm and nnn look at."),
    ] = 2000,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Printed rows of this method; published: all."),
    ] = None,
    trec: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write run.txt and qrels.txt here.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Also measure how far its answers can be believed.")
    ] = False,
    card: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Calibration card that --trust measures.",
            show_default="fitted to parts of the split",
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw what --trust measures, PNG and SVG.")
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Measure a model on a split: raw scores first, whatever else was asked for beside them."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.cli.trust import Wish, values
    from sureshot.datasets import load_split
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.models.encoders.experts import presence, read_experts
    from sureshot.research.features import caption_features, extract
    from sureshot.research.scorer import Scorer

    _check_wanted(data, post or [], against or [])
    wish = Wish(trust, card, plots)
    wish.check()
    err = show.console(err=True)
    scorer = Scorer.load(absolute_model(model) or model, device)
    check_experts(scorer, experts)
    calibration = wish.read(scorer)
    loaded = load_split(data, split, root, protocol=protocol, videos=videos, ids=ids, label=label)
    for line in found(([loaded], None)):
        err.print(line)
    for line in _shared(scorer, loaded):
        err.print(line)
    given = {} if experts is None else read_experts(experts, [item.id for item in loaded.items])
    if given:
        err.print(f"experts: {presence(given)}")
    looked_at = (
        training_captions(scorer, loaded, bank) if {"qb_norm", "nnn"} & set(post or ()) else None
    )
    with Bar(err) as bar:
        features = extract(
            loaded,
            scorer.encoder,
            frames=frames or scorer.frames,
            cache=cache,
            told=lambda what, done, total: bar.update(f"{what} encoded", done, total),
        )
        features = replace(features, experts=given)
        for name, reason in features.unreadable:
            err.print(f"left out: {name} {reason}")
        scores = scorer.similarity(features)
        bank_scores = None
        if looked_at is not None:
            captions = caption_features(looked_at, scorer.encoder, cache=cache)
            bank_scores = scorer.similarity(features, captions)
    report = _report(scorer, features, scores, post or [], against or [], bank_scores)
    if trec is not None:
        _write_trec(trec, features, scores, scorer.name)
    found_trust = wish.measured(scorer, features, scores, calibration) if trust else None
    files = wish.drawn(found_trust) if found_trust else []
    if as_json:
        more = {"trust": values(found_trust, files)} if found_trust else {}
        show.print_json({"schema": JSON_SCHEMA, **report.to_dict(), **more})
        return 0
    typer.echo(report.text(), nl=False)
    if found_trust:
        typer.echo("\n" + found_trust.text() + "".join(f"{file}\n" for file in files), nl=False)
    return 0


def _check_wanted(data: str, post: list[str], against: list[str]) -> None:
    """Refuse what no report can show before videos are decoded for it."""
    from sureshot.metrics.published import published

    for name in post:
        if name not in _POST:
            raise MistypedError(f"--post is {name!r}; known: {', '.join(_POST)}.")
    for method in against:
        published(data, method=None if method == "published" else method)


def check_experts(scorer: "Scorer", folder: Path | None) -> None:
    """Refuse experts that nothing reads, and a model that would have to do without them."""
    if scorer.experts and folder is None:
        raise MistypedError(
            f"{scorer.name} was trained on the experts {', '.join(scorer.experts)}; name the "
            "folder that has them with --experts."
        )
    if folder is not None and not scorer.experts:
        raise MistypedError(f"{scorer.name} reads no experts; leave out --experts.")


def _shared(scorer: "Scorer", tested: "Split") -> list[str]:
    """A warning where videos are tested that were trained on, if the training data are at hand."""
    from sureshot.datasets import check_disjoint

    try:
        splits = _trained_on(scorer)
    except SureshotError:
        return []
    lines = []
    for split in splits:
        try:
            check_disjoint(split, tested)
        except SureshotError as error:
            lines.append(f"! {error}")
    return lines


def _trained_on(scorer: "Scorer") -> "list[Split]":
    """The training sets, read again; none where they are not known."""
    from sureshot.research.training.recipe import Recipe

    return Recipe.from_dict(scorer.recipe, Path.cwd()).splits()[0] if scorer.recipe else []


def training_captions(scorer: "Scorer", tested: "Split", count: int) -> "Split":
    """Captions of the training sets, none of them of a video that is tested."""
    import numpy as np

    from sureshot.datasets import Split

    splits = _trained_on(scorer)
    if not splits:
        raise MistypedError(
            f"qb_norm and nnn look at training captions, and {scorer.name} does not know its own."
        )
    names = {item.id for item in tested.items}
    captions = [
        (split.items[caption.video].id, caption)
        for split in splits
        for caption in split.captions
        if split.items[caption.video].id not in names
    ]
    if not captions:
        raise SureshotError(
            f"qb_norm and nnn look at training captions, and all those of {scorer.name} are of "
            f"videos in {tested.title()}. Leave them out."
        )
    drawn = np.random.default_rng(0).permutation(len(captions))[:count]
    chosen = tuple(replace(captions[row][1], video=0) for row in sorted(drawn))
    return Split(splits[0].dataset, "train", splits[0].protocol, (), chosen)


def _report(
    scorer: "Scorer",
    features: "SplitFeatures",
    scores: "np.ndarray[Any, Any]",
    post: list[str],
    against: list[str],
    bank: "np.ndarray[Any, Any] | None",
) -> "Report":
    from sureshot.metrics.published import published
    from sureshot.metrics.report import report

    split = features.split
    if "published" in against:
        rows = published(split.dataset)
        against = list(dict.fromkeys(row.method for row in rows if not row.variant))
    whole = split.label is None and len(split.items) == split.expected
    return report(
        scores,
        split.owner(),
        title=split.title(),
        system=scorer.system,
        dataset=split.dataset,
        split=_PUBLISHED.get((split.dataset, split.protocol, split.name), "") if whole else "",
        encoder=scorer.encoder_name,
        frames=features.frames,
        trained_on=scorer.trained_on,
        against=against,
        bank=bank,
        bank_name="training captions",
        post=post,
        ks=(1, 5, 50) if split.dataset == "activitynet" else (1, 5, 10),
    )


def _write_trec(
    folder: Path, features: "SplitFeatures", scores: "np.ndarray[Any, Any]", tag: str
) -> None:
    """A run and its judgements; a caption is named after its video and its number."""
    from sureshot.metrics.trec import write_qrels, write_run

    split = features.split
    videos = ["_".join(item.id.split()) for item in split.items]
    queries = [f"{videos[caption.video]}#{row}" for row, caption in enumerate(split.captions)]
    folder.mkdir(parents=True, exist_ok=True)
    write_run(
        folder / "run.txt",
        scores,
        queries,
        videos,
        depth=1000,
        tag="_".join(Path(tag).name.split()),
    )
    owners = (videos[caption.video] for caption in split.captions)
    write_qrels(folder / "qrels.txt", zip(queries, owners, strict=True))

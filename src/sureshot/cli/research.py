"""`sureshot train`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.terminal import (
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
    RecipeFile,
    Resume,
    Root,
    RunFolder,
    Settings,
    SplitName,
    Trained,
    VideoFolder,
    examples,
)

if TYPE_CHECKING:
    from sureshot.research import Exhibit
    from sureshot.research.training.loop import TrainingResult


EXAMPLES = examples(
    "sureshot train recipe.toml",
    "sureshot train recipe.toml --to runs/duq --set system.samples=4 --set training.seed=1",
    "sureshot train recipes/published/duq-msrvtt.toml --dry-run",
    "torchrun --nproc-per-node 4 -m sureshot train recipe.toml",
)


def train(
    recipe: RecipeFile,
    to: RunFolder = None,
    settings: Settings = None,
    resume: Resume = False,
    cache: Cache = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what it comes to: pairs, weights, time, memory."),
    ] = False,
    as_json: Json = False,
) -> int:
    """Train a system by a recipe. The run's folder gets the model, a log and a plot."""
    from sureshot import research

    if dry_run:
        return _dry_run(recipe, settings, as_json)
    run = fitted(research.train, recipe, to, settings, resume, cache)
    if run is not None:
        measured = {"metric": run.metric, "score": run.score}
        score = f"{run.metric} {run.score or 0:.1f} on the validation set"
        show_run(run, measured, score, f"sureshot evaluate {run.folder} --data …", as_json)
    return 0


def _dry_run(recipe: Path, settings: list[str] | None, as_json: bool) -> int:
    from sureshot import research
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar

    with Bar(terminal.console(err=True)) as bar:
        found = research.dry_run(recipe, settings=settings or (), progress=bar)
    return terminal.print_result(found, as_json=as_json)


def fitted(
    train: "Callable[..., TrainingResult]",
    recipe: Path,
    to: Path | None,
    settings: list[str] | None,
    resume: bool,
    cache: Path | None,
) -> "TrainingResult | None":
    """Train and show how far it is; None in a process that leaves the printing to the first."""
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar
    from sureshot.research.training.distributed import is_first

    err = terminal.console(err=True)
    err.quiet = not is_first()
    with Bar(err) as bar:
        run = train(
            recipe, to=to, settings=settings or (), resume=resume, cache=cache, progress=bar
        )
    return run if is_first() else None


def show_run(
    run: "TrainingResult", measured: dict[str, Any], score: str, measure: str, as_json: bool
) -> None:
    """Print where the model is and how good it is.

    Args:
        run: the finished run.
        measured: its score by name, for JSON.
        score: its score in words, if it has one.
        measure: command that measures the model.
        as_json: whether to print JSON.
    """
    from sureshot.cli import terminal

    if as_json:
        folder = str(run.folder.absolute())
        terminal.print_json({"folder": folder, "epoch": run.epoch, **measured})
        return
    kept = f"the weights after epoch {run.epoch}"
    kept += "" if run.score is None else f", {score}"
    out = terminal.console()
    out.print(f"Trained: {run.folder} holds {kept}.", soft_wrap=True)
    out.print(f"{measure} says how good it is.", soft_wrap=True)


EVALUATE_EXAMPLES = examples(
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
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar
    from sureshot.paths import absolute_model

    with Bar(terminal.console(err=True)) as bar:
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
            progress=bar,
        )
    return terminal.print_result(evaluation, as_json=as_json)


TRAIN_EXAMPLES = examples(
    "sureshot answer train questions.toml",
    "sureshot answer train questions.toml --to runs/answers --set frozen=true",
)
EVALUATE_EXAMPLES = examples(
    "sureshot answer evaluate runs/questions/model --root ~/MSRVTT-QA --videos ~/MSRVTT/videos",
    "sureshot answer evaluate runs/questions/model --root ~/MSRVTT-QA --against published",
)
ASK_EXAMPLES = examples(
    'sureshot answer ask runs/questions/model party.mp4 "who is singing?"',
)

answer = typer.Typer(
    help="Answer questions about videos, with one of the words known from training.",
    no_args_is_help=True,
)


@answer.command("train", epilog=TRAIN_EXAMPLES)
def answer_train(
    recipe: RecipeFile,
    to: RunFolder = None,
    settings: Settings = None,
    resume: Resume = False,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Train a model to answer by a recipe. The run's folder gets the model, a log and a plot."""
    from sureshot import research

    run = fitted(research.train_answers, recipe, to, settings, resume, cache)
    if run is not None:
        score = f"{run.score or 0:.1f} % of the validation questions right"
        measure = f"sureshot answer evaluate {run.folder} --root …"
        show_run(run, {"accuracy": run.score}, score, measure, as_json)
    return 0


@answer.command("evaluate", epilog=EVALUATE_EXAMPLES)
def answer_evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")],
    root: Annotated[
        Path, typer.Option(readable=False, metavar="PATH", help="Folder of the questions.")
    ],
    split: SplitName = "test",
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call these questions.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Printed accuracy of this method; published: all."),
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Measure how many questions are answered right; those it cannot know count as wrong."""
    from sureshot import research
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar

    with Bar(terminal.console(err=True)) as bar:
        evaluation = research.evaluate_answers(
            model,
            root,
            split=split,
            videos=videos,
            ids=ids,
            label=label,
            against=against or (),
            device=device,
            cache=cache,
            progress=bar,
        )
    return terminal.print_result(evaluation, as_json=as_json)


@answer.command(epilog=ASK_EXAMPLES)
def ask(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")],
    video: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="VIDEO", help="A video, a photo or a folder of frames."
        ),
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    limit: Annotated[
        int, typer.Option("--limit", "-k", metavar="N", min=1, max=1000, help="Answers at most.")
    ] = 5,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Ask one question about one video; the likeliest answers come first."""
    from sureshot import research
    from sureshot.cli import terminal

    guesses = research.Answerer.load(model, device).ask(video, question, limit=limit)
    if as_json:
        answers = [{"answer": guess.answer, "share": guess.share} for guess in guesses]
        asked = {"video": str(video.absolute()), "question": question, "status": "not calibrated"}
        terminal.print_json({**asked, "answers": answers})
        return 0
    out = terminal.console()
    for guess in guesses:
        out.print(f"{guess.share:.2f}  {guess.answer}")
    terminal.console(err=True).print(
        "Shares are not calibrated, and a word that was not known in training cannot be given."
    )
    return 0


REPRODUCE_EXAMPLES = examples(
    "sureshot reproduce --list",
    "sureshot reproduce --list --plan plans/published-duq.toml --json",
    "sureshot reproduce duq-3 --plan results/frame-subset.toml --to results",
    "sureshot reproduce all --plan plan.toml --part 1/2 & sureshot reproduce all --plan plan.toml "
    "--part 2/2; wait; sureshot reproduce all --plan plan.toml",
    "sureshot reproduce all --plan results/synthetic.toml --to runs/all --seeds 10 --dry-run",
    "sureshot reproduce summary --to results",
)


def reproduce(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="Such as duq-3 or duq-fig-4; all: every table; summary: README.md.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", readable=False, metavar="FILE", help="TOML file: data, encoder, training."
        ),
    ] = None,
    to: Annotated[
        Path,
        typer.Option(
            "--to", readable=False, metavar="DIR", help="Folder of the pages and of finished runs."
        ),
    ] = Path("results"),
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Runs of each row.")] = 3,
    part: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Make every N-th run only, from the I-th; no pages."),
    ] = None,
    cache: Cache = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what it comes to: runs left, steps, time."),
    ] = False,
    as_json: Json = False,
    listed: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Name all tables and figures, and what each needs; with --plan, if it is there.",
        ),
    ] = False,
) -> int:
    """Make a table or figure of a paper again. Finished runs are kept, so a stopped one goes on.

    "systems" compares all systems there are, "summary" writes the first page of a folder from the
    tables in it: all systems, and which claims of the papers held.
    """
    from sureshot import research
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar
    from sureshot.library.results import JSON_SCHEMA

    if dry_run and table is not None:
        cost = research.forecast(table, plan, to=to, seeds=seeds)
        return terminal.print_result(cost, as_json=as_json)
    found: tuple[Exhibit, ...] = ()
    files: tuple[Path, ...] = ()
    if listed:
        found = research.exhibits(plan)
    elif table is None:
        raise typer.BadParameter("Name a table or figure; --list has them all.")
    else:
        with Bar(terminal.console(err=True)) as bar:
            files = research.reproduce(
                table, plan, to=to, seeds=seeds, part=part, cache=cache, progress=bar
            ).files
    if as_json:
        listing = [one.to_dict() for one in found]
        paths = [str(path.absolute()) for path in files]
        terminal.print_json({"schema": JSON_SCHEMA, "exhibits": listing, "files": paths})
        return 0
    wide = max((len(one.name) for one in found), default=0)
    for line in [*(f"{one.name:{wide}}  {one.line()}" for one in found), *map(str, files)]:
        typer.echo(line)
    return 0


PLOT_EXAMPLES = examples(
    "sureshot plot --list",
    "sureshot plot embeddings runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot plot rerank runs/xpool/model --after nnn --data msrvtt --root ~/MSRVTT --to fig.svg",
    "sureshot plot matrices runs/dvtr/model --compare-with runs/hit/model --data msrvtt "
    "--root ~/MSRVTT",
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
    compare_with: Annotated[
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
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar
    from sureshot.paths import absolute_model

    del listed
    with Bar(terminal.console(err=True)) as bar:
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
            compare_with=None if compare_with is None else absolute_model(compare_with),
            after=after,
            bank=bank,
            device=device,
            cache=cache,
            progress=bar,
        )
    return terminal.print_result(drawn, as_json=as_json)


SYNTHETIC_EXAMPLES = examples(
    "sureshot synthetic --to synthetic",
    "sureshot synthetic --to vague --set ambiguity=0.8 --set train=500 --picture vague.png",
    "SURESHOT_SYNTHETIC=synthetic sureshot train results/synthetic-encoder.toml",
)


def synthetic(
    to: Annotated[
        Path, typer.Option("--to", readable=False, metavar="DIR", help="Folder of the dataset.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="train, val, test: videos; captions: of a video; ambiguity, whole, common, noise: "
            "0 to 1; fewest, most: scenes of a video; seed.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", readable=False, metavar="FILE", help="Page of examples, .png or .svg."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Generate a synthetic dataset: moving shapes, captions and ground truth.

    For experiments: it is known which videos each caption fits, and how well the best possible
    scorer does. Use the folder as root in recipes, with dataset = "synthetic".
    """
    from sureshot import research
    from sureshot.cli import terminal
    from sureshot.cli.terminal import Bar
    from sureshot.datasets.synthetic import SyntheticOptions
    from sureshot.settings import build, override

    values: dict[str, object] = {}
    for assignment in settings or ():
        values = override(values, assignment)
    options = build(SyntheticOptions, values, "options")
    with Bar(terminal.console(err=True)) as bar:
        world = research.write_dataset(to, options, progress=bar)
    if picture is not None:
        from sureshot.research.synthetic import write_examples

        write_examples(world.folder, picture)
    return terminal.print_result(world, as_json=as_json)


EXPERTS_EXAMPLES = examples(
    "sureshot experts audio=Audio_MSRVTT_new.pickle scene=densenet161-avg.pickle "
    "--to ~/MSRVTT/experts",
)


def experts(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help="Pickles; without NAME an expert is called like its file.",
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", readable=False, metavar="DIR", help="Folder of experts.")
    ],
    as_json: Json = False,
) -> int:
    """Convert published features of videos (pickles of Collaborative Experts). Nothing is run."""
    from dataclasses import asdict

    from sureshot.cli import terminal
    from sureshot.models.encoders.experts import convert_pickle
    from sureshot.paths import expand
    from sureshot.text import counted, plain

    converted = []
    for file in files:
        name, _, path = ("", "", file) if Path(file).is_file() else file.partition("=")
        converted.append(convert_pickle(expand(path), expand(to), name or None))
        if not as_json:
            last = converted[-1]
            lacking = f", {last.lacking:,} without it" if last.lacking else ""
            counts = f"{counted(last.videos, 'video')}{lacking}"
            line = f"{plain(last.name)}: {counts}; {plain(str(last.folder))}"
            terminal.console().print(line, soft_wrap=True)
    if as_json:
        made = [asdict(one) | {"folder": str(one.folder.absolute())} for one in converted]
        terminal.print_json({"experts": made})
    return 0

"""`sureshot train`, `evaluate`, `answer`, `reproduce`, `plot`, `synthetic` and `experts`."""

import inspect
import shlex
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.terminal import (
    Bar,
    Cache,
    Device,
    Experts,
    Ids,
    Json,
    Label,
    Protocol,
    VideoFolder,
    argument,
    console,
    examples,
    flag,
    print_json,
    print_result,
    setting,
    typed,
)
from sureshot.paths import absolute_model, expand
from sureshot.text import counted, plain

if TYPE_CHECKING:
    from sureshot.research.training.loop import TrainingResult

SplitName = Annotated[str, setting("NAME", "test, val or train.")]
RecipeFile = Annotated[Path, argument("RECIPE", "A TOML file.")]
RunFolder = Annotated[Path | None, setting("DIR", "Folder of the run.", shown="runs/RECIPE")]
Settings = Annotated[
    list[str] | None, setting("NAME=VALUE", "Replace one setting of the recipe.", "--set")
]
Resume = Annotated[bool, flag("--resume", "Continue a run that was stopped.")]
Frames = Annotated[int | None, setting("N", "Frames per video.", min=1, max=64, shown="as trained")]
AnswerModel = Annotated[str, argument("MODEL", "Folder of a trained model.")]

EXAMPLES = examples(
    "sureshot train recipe.toml",
    "sureshot train recipe.toml --to runs/duq --set system.samples=4 --set training.seed=1",
    "sureshot train recipes/published/duq-msrvtt.toml --dry-run",
    "torchrun --nproc-per-node 4 -m sureshot train recipe.toml",
)


def model(name: str) -> str:
    """What the argument MODEL means; help shows the name of this function as its type."""
    return absolute_model(name)


def _split(
    data: Annotated[str, setting("NAME", "Dataset: msrvtt, msvd, … or pairs.")],
    root: Annotated[Path, setting("PATH", "Folder of the annotation files.")],
    split: SplitName = "test",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
) -> None:
    """Options of a verb that reads a split of a data set."""


def _calls(name: str, *shared: Callable[..., None]) -> Callable[..., Callable[..., int]]:
    """Make a command of a signature: what was typed goes to a function of `sureshot.research`.

    What was left out has the function's own default, and its result is printed. The options of
    ``shared`` come behind the first parameter.
    """

    def command_of(own: Callable[..., None]) -> Callable[..., int]:
        @wraps(own)
        def command(as_json: bool, **given: Any) -> int:
            from sureshot import research

            with Bar(console(err=True)) as bar:
                result = getattr(research, name)(**typed(given), progress=bar)
            return print_result(result, as_json=as_json)

        first, *rest = inspect.signature(own).parameters.values()
        more = (one for other in shared for one in inspect.signature(other).parameters.values())
        named = [one.replace(kind=one.KEYWORD_ONLY) for one in (first, *more, *rest)]
        command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return command

    return command_of


def train(
    recipe: RecipeFile,
    to: RunFolder = None,
    settings: Settings = None,
    resume: Resume = False,
    cache: Cache = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Estimate time and memory without training.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Train a system by a recipe. The run's folder gets the model, a log and a plot."""
    given = typed(locals())
    if given.pop("dry_run"):
        if to or given.pop("resume"):
            raise typer.BadParameter("--dry-run writes nothing; leave out --to and --resume.")
        found = _of_first("dry_run", **given)
        return 0 if found is None else print_result(found, as_json=as_json)
    if run := _of_first("train", **given):
        score = f"{run.metric} {run.score or 0:.1f} on the validation set"
        measured = {"metric": run.metric, "score": run.score}
        _print_run(run, measured, score, "evaluate {} --data", as_json)
    return 0


def _of_first(work: str, **given: Any) -> Any:
    """What all processes that torchrun started make, in the first of them; else None."""
    from sureshot import research
    from sureshot.research.training.distributed import is_first

    err = console(err=True)
    err.quiet = not is_first()
    with Bar(err) as bar:
        found = getattr(research, work)(**given, progress=bar)
    return found if is_first() else None


def _print_run(
    run: "TrainingResult", measured: dict[str, Any], score: str, command: str, as_json: bool
) -> None:
    """Print where the model is, its score, for JSON and in words, and how it is evaluated."""
    if as_json:
        print_json({"folder": str(run.folder.absolute()), "epoch": run.epoch, **measured})
        return
    kept = f"weights after epoch {run.epoch}" + ("" if run.score is None else f", {score}")
    console().print(f"Trained: {run.folder} ({kept}).", soft_wrap=True)
    command = command.format(shlex.quote(str(run.folder)))
    console().print(f"To evaluate it: sureshot {command} …", soft_wrap=True)


EVALUATE_EXAMPLES = examples(
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT",
    "sureshot evaluate runs/duq/model --data msrvtt --root ~/MSRVTT --against DUQ --post dsl",
    "sureshot evaluate bundled --data pairs --root my-videos.csv --trust --plots figures",
    "sureshot evaluate bundled --data charades --root ~/Charades --trust --absent absent",
)


@_calls("evaluate", _split)
def evaluate(
    model: Annotated[
        str, argument("MODEL", "Folder of a checkpoint, or an encoder's name.", parser=model)
    ],
    frames: Frames = None,
    post: Annotated[
        list[str] | None,
        setting(
            "NAME", "Also show dsl, inverted_softmax, qb_norm, nnn, duq_printed or duq_candidates."
        ),
    ] = None,
    gamma: Annotated[
        float | None, setting("X", "Weight of the uncertainty in those of DUQ; else 0.1.")
    ] = None,
    bank: Annotated[
        int | None,
        setting("N", "Training captions for qb_norm, nnn and duq_candidates; else 2000.", min=1),
    ] = None,
    against: Annotated[
        list[str] | None, setting("NAME", "Published rows of this method; published: all.")
    ] = None,
    trec: Annotated[Path | None, setting("DIR", "Write run.txt and qrels.txt here.")] = None,
    record: Annotated[
        bool, flag("--record", "Keep the recalls with the model, for its card.")
    ] = False,
    trust: Annotated[
        bool, flag("--trust", "Also measure how far its answers can be trusted.")
    ] = False,
    card: Annotated[
        Path | None,
        setting(
            "FILE", "Calibration card that --trust measures.", shown="fitted to parts of the split"
        ),
    ] = None,
    plots: Annotated[
        Path | None, setting("DIR", "Draw what --trust measures, PNG and SVG.")
    ] = None,
    absent: Annotated[
        Path | None,
        setting(
            "DIR",
            "Write the queries of --trust with and without an answer here, in the form of "
            "Generalized Moment Retrieval.",
        ),
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Evaluate a model on a split. Raw scores come first; post-processed scores follow."""


TRAIN_EXAMPLES = examples(
    "sureshot answer train questions.toml",
    "sureshot answer train questions.toml --to runs/answers --set frozen=true",
)
ANSWER_EXAMPLES = examples(
    "sureshot answer evaluate runs/questions/model --root ~/MSRVTT-QA --videos ~/MSRVTT/videos",
    "sureshot answer evaluate runs/questions/model --root ~/MSRVTT-QA --against published",
)
ASK_EXAMPLES = examples('sureshot answer ask runs/questions/model party.mp4 "who is singing?"')

answer = typer.Typer(
    help="Answer questions about videos (single-word answers seen in training).",
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
    """Train a model to answer, by a recipe. The run's folder gets the model, a log and a plot."""
    if run := _of_first("train_answers", **typed(locals())):
        score = f"{run.score or 0:.1f}% of the validation questions right"
        _print_run(run, {"accuracy": run.score}, score, "answer evaluate {} --root", as_json)
    return 0


@answer.command("evaluate", epilog=ANSWER_EXAMPLES)
@_calls("evaluate_answers")
def answer_evaluate(
    model: AnswerModel,
    root: Annotated[Path, setting("PATH", "Folder of the questions.")],
    split: SplitName = "test",
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Annotated[str | None, setting("NAME", "What to call these questions.")] = None,
    against: Annotated[
        list[str] | None, setting("NAME", "Published accuracy of this method; published: all.")
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Measure how many questions are answered right; those it cannot know count as wrong."""


@answer.command(epilog=ASK_EXAMPLES)
def ask(
    model: AnswerModel,
    video: Annotated[Path, argument("VIDEO", "A video, a photo or a folder of frames.")],
    question: Annotated[str, argument("QUESTION", "What you want to know.")],
    limit: Annotated[int, setting("N", "Answers at most.", "--limit", "-k", min=1, max=1000)] = 5,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Ask one question about one video; the most likely answers come first."""
    from sureshot import research

    guesses = research.Answerer.load(model, device).ask(video, question, limit=limit)
    if as_json:
        answers = [{"answer": guess.answer, "share": guess.share} for guess in guesses]
        asked = {"video": str(video.absolute()), "question": question, "status": "not calibrated"}
        return print_json({**asked, "answers": answers})
    for guess in guesses:
        console().print(f"{guess.share:.2f}  {guess.answer}")
    console(err=True).print(
        "Shares are not calibrated, and only words seen in training can be answers."
    )
    return 0


REPRODUCE_EXAMPLES = examples(
    "sureshot reproduce --list",
    "sureshot reproduce --list --plan plans/published-duq.toml --json",
    "sureshot reproduce duq-3 --plan results/frame-subset.toml --to results",
    "sureshot reproduce all --plan plan.toml --part 1/2 & sureshot reproduce all --plan plan.toml "
    "--part 2/2; wait; sureshot reproduce all --plan plan.toml",
    "sureshot reproduce all --plan results/synthetic.toml --to runs/all --seeds 10 --dry-run",
)


def reproduce(
    table: Annotated[
        str | None, argument("[TABLE]", "Such as duq-3 or duq-fig-4; all: every table.")
    ] = None,
    plan: Annotated[Path | None, setting("FILE", "TOML file: data, encoder, training.")] = None,
    to: Annotated[Path, setting("DIR", "Folder of the pages and runs.")] = Path("results"),
    seeds: Annotated[int, setting("N", "Runs per row.", min=1, max=100)] = 3,
    claims: Annotated[
        bool, flag("--claims", "Only the rows that claims of the papers compare.")
    ] = False,
    part: Annotated[
        str | None, setting("I/N", "Make every N-th run only, from the I-th; no pages.")
    ] = None,
    cache: Cache = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Estimate runs, steps and time without training.")
    ] = False,
    as_json: Json = False,
    listed: Annotated[
        bool, flag("--list", "List all tables and figures, what each needs, and with --plan has.")
    ] = False,
) -> int:
    """Reproduce a table or figure of a paper. Finished runs are kept; rerun to continue.

    "systems" compares all systems.
    """
    from sureshot import research

    options: dict[str, Any] = {"seeds": seeds, "claims": claims, "part": part, "cache": cache}
    if dry_run and table is not None:
        with Bar(console(err=True)) as bar:
            cost = research.forecast(table, plan, to=to, **options, progress=bar)
        return print_result(cost, as_json=as_json)
    exhibits, files = research.exhibits(plan) if listed else (), tuple[Path, ...]()
    if not listed:
        if table is None:
            raise typer.BadParameter("Name a table or figure; --list shows all of them.")
        made = _of_first("reproduce", table=table, plan=plan, to=to, **options)
        if made is None:
            return 0
        files = made.files
    if as_json:
        paths = [str(path.absolute()) for path in files]
        return print_json({"exhibits": [one.to_dict() for one in exhibits], "files": paths})
    width = max((len(one.name) for one in exhibits), default=0)
    for line in [*(f"{one.name:{width}}  {one.line()}" for one in exhibits), *map(str, files)]:
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


def _list(requested: bool) -> None:
    if requested:
        from sureshot.research.figures.catalogue import listing

        typer.echo(listing())
        raise typer.Exit


@_calls("plot", _split)
def plot(
    figure: Annotated[str, argument("FIGURE", "Such as matrices; see --list.")],
    models: Annotated[
        list[str],
        argument("MODEL...", "Folder of a checkpoint; epochs takes several.", parser=model),
    ],
    frames: Frames = None,
    to: Annotated[Path, setting("PATH", "A .png or .svg, or a folder that gets both.")] = Path(
        "figures"
    ),
    count: Annotated[
        int | None,
        setting(
            "N",
            "Queries or pairs to show.",
            "--queries",
            "-n",
            min=1,
            max=200,
            shown="what suits the figure",
        ),
    ] = None,
    seed: Annotated[int, setting("N", "Chooses what is shown.", min=0)] = 0,
    compare_with: Annotated[
        str | None, setting("MODEL", "Second model, for matrices and tokens.", parser=model)
    ] = None,
    after: Annotated[
        str | None,
        setting(
            "NAME",
            "Second score of rerank: score or printed (DUQ), nnn, qb_norm, inverted_softmax "
            "or dsl.",
        ),
    ] = None,
    bank: Annotated[
        int | None, setting("N", "Training captions for --after qb_norm or nnn; else 2000.", min=1)
    ] = None,
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
    listed: Annotated[
        bool | None, typer.Option("--list", help="List the figures.", callback=_list, is_eager=True)
    ] = None,
) -> None:
    """Draw a figure of the papers for a trained model, as PNG and SVG."""


SYNTHETIC_EXAMPLES = examples(
    "sureshot synthetic --to synthetic",
    "sureshot synthetic --to vague --set ambiguity=0.8 --set train=500 --picture vague.png",
    "SURESHOT_SYNTHETIC=synthetic sureshot train results/synthetic-encoder.toml",
)


def synthetic(
    to: Annotated[Path, setting("DIR", "Folder of the dataset.")],
    settings: Annotated[
        list[str] | None,
        setting(
            "NAME=VALUE",
            "train, val, test: videos; captions: per video; ambiguity, whole, common, noise: "
            "0 to 1; fewest, most: scenes per video; seed.",
            "--set",
        ),
    ] = None,
    picture: Annotated[Path | None, setting("FILE", "Page of examples, .png or .svg.")] = None,
    as_json: Json = False,
) -> int:
    """Generate a synthetic dataset: moving shapes, captions and ground truth.

    For experiments: it is known which videos each caption fits, and how well the best possible
    scorer does. Use the folder as root in recipes, with dataset = "synthetic".
    """
    from sureshot import research
    from sureshot.settings import override

    values: dict[str, object] = {}
    for assignment in settings or ():
        values = override(values, assignment)
    with Bar(console(err=True)) as bar:
        dataset = research.write_dataset(to, values, progress=bar)
    if picture is not None:
        from sureshot.research.canvas import save_figure
        from sureshot.research.figures.strips import draw_examples

        save_figure(draw_examples(dataset.folder), picture)
    return print_result(dataset, as_json=as_json)


EXPERTS_EXAMPLES = examples(
    "sureshot experts audio=Audio_MSRVTT_new.pickle scene=densenet161-avg.pickle "
    "--to ~/MSRVTT/experts"
)


def experts(
    files: Annotated[
        list[str], argument("[NAME=]FILE...", "Pickles; NAME is that of the file if left out.")
    ],
    to: Annotated[Path, setting("DIR", "Folder of experts.")],
    as_json: Json = False,
) -> int:
    """Convert Collaborative Experts feature pickles without executing them."""
    from sureshot import research

    converted = []
    for file in files:
        named = "=" in file and not Path(file).is_file()
        name, _, path = file.partition("=") if named else ("", "", file)
        expert = research.convert_pickle(expand(path), expand(to), name or None)
        converted.append(asdict(expert) | {"folder": str(expert.folder.absolute())})
        if not as_json:
            lacking = f", {expert.lacking:,} without it" if expert.lacking else ""
            counts = f"{counted(expert.videos, 'video')}{lacking}"
            line = f"{plain(expert.name)}: {counts}; {plain(str(expert.folder))}"
            console().print(line, soft_wrap=True)
    if as_json:
        print_json({"experts": converted})
    return 0

"""`sureshot answer`: train, evaluate and ask a model that answers questions about videos."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import (
    Cache,
    Device,
    Ids,
    Json,
    RecipeFile,
    Resume,
    RunFolder,
    Settings,
    VideoFolder,
    examples,
)
from sureshot.errors import SureshotError

if TYPE_CHECKING:
    from sureshot.datasets.questions import Questions
    from sureshot.research.questions.answerer import Answerer
    from sureshot.research.training.loop import Progress

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


@answer.command(epilog=TRAIN_EXAMPLES)
def train(
    recipe: RecipeFile,
    to: RunFolder = None,
    settings: Settings = None,
    resume: Resume = False,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Train a model to answer by a recipe. The run's folder gets the model, a log and a plot."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.research.questions.recipe import AnswerRecipe
    from sureshot.research.questions.train import train as run
    from sureshot.research.training.gather import rank
    from sureshot.research.training.launch import from_torchrun

    read = AnswerRecipe.load(recipe, settings or [])
    folder = to or Path("runs") / recipe.stem
    err = show.console(err=True)
    with from_torchrun():
        err.quiet = rank() != 0  # one process speaks for all
        with Bar(err) as bar:
            asking = read.questions()
            for questions in asking:
                if questions is not None:
                    err.print(_found(questions))

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
                asking=asking,
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
            "accuracy": done.score,
        }
        show.print_json(values)
        return 0
    out = show.console()
    kept = f"the weights after epoch {done.epoch}"
    if done.score is not None:
        kept += f", {done.score:.1f} % of the validation questions right"
    out.print(f"Trained: {done.folder} holds {kept}.", soft_wrap=True)
    out.print(f"sureshot answer evaluate {done.folder} --root … says how good it is.")
    return 0


@answer.command(epilog=EVALUATE_EXAMPLES)
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")],
    root: Annotated[Path, typer.Option(metavar="PATH", help="Folder of the questions.")],
    split: Annotated[str, typer.Option(metavar="NAME", help="test, val or train.")] = "test",
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
    import numpy as np

    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.datasets.questions import load_questions
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.metrics.answers import answer_report, published_answers
    from sureshot.research.questions.answerer import Answerer, encode

    for method in against or []:
        published_answers(method)  # refuses an unknown one before videos are decoded
    err = show.console(err=True)
    answerer = Answerer.load(model, device)
    asked = load_questions(root, split, videos=videos, ids=ids, label=label)
    for line in [_found(asked), *_shared(answerer, asked)]:
        err.print(line)
    checkpoint = answerer.checkpoint
    noted = checkpoint.retrieval.encoder
    with Bar(err) as bar:
        seen, features = encode(
            asked,
            answerer.encoder,
            noted.frames,
            cache,
            lambda what, done, total: bar.update(f"{what} encoded", done, total),
        )
        for name, reason in features.unreadable:
            err.print(f"left out: {name} {reason}")
        given = answerer.answers(features)
    report = answer_report(
        given,
        seen.answers,
        seen.split.owner(),
        seen.kinds,
        vocabulary=checkpoint.answers,
        constant=checkpoint.answers[int(np.argmax(checkpoint.often))],
        title=seen.title(),
        system=str(checkpoint.retrieval.system["name"]),
        encoder=checkpoint.retrieval.encoder_name,
        frames=noted.frames,
        absent=asked.absent + len(asked.answers) - len(seen.answers),
        against=against or [],
        same=seen.published,
    )
    if as_json:
        show.print_json({"schema": JSON_SCHEMA, **report.to_dict()})
    else:
        typer.echo(report.text(), nl=False)
    return 0


@answer.command(epilog=ASK_EXAMPLES)
def ask(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")],
    video: Annotated[
        Path, typer.Argument(metavar="VIDEO", help="A video, a photo or a folder of frames.")
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    limit: Annotated[
        int, typer.Option("--limit", "-k", metavar="N", min=1, max=1000, help="Answers at most.")
    ] = 5,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Ask one question about one video; the likeliest answers come first."""
    from sureshot.cli import show
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.research.questions.answerer import Answerer

    guesses = Answerer.load(model, device).ask(video, question, most=limit)
    if as_json:
        told = [{"answer": guess.answer, "share": guess.share} for guess in guesses]
        asked = {"video": str(video.absolute()), "question": question, "status": "not calibrated"}
        show.print_json({"schema": JSON_SCHEMA, **asked, "answers": told})
        return 0
    out = show.console()
    for guess in guesses:
        out.print(f"{guess.share:.2f}  {guess.answer}")
    show.console(err=True).print(
        "Shares are not calibrated, and a word that was not known in training cannot be given."
    )
    return 0


def _found(questions: "Questions") -> str:
    """What was read, and what was not there."""
    line, missing = questions.title(), questions.split.missing
    if missing:
        line += f"; {len(missing)} videos not on disk, such as {missing[0]}, with "
        line += f"{questions.absent} questions"
    return line


def _shared(answerer: "Answerer", tested: "Questions") -> list[str]:
    """A warning where videos are asked about that were trained on, if those are at hand."""
    from sureshot.datasets import check_disjoint
    from sureshot.research.questions.recipe import AnswerRecipe

    try:
        recipe = AnswerRecipe.from_dict(answerer.checkpoint.recipe, Path.cwd())
        trained = recipe.train.load()
    except SureshotError:
        return []
    try:
        check_disjoint(trained.split, tested.split)
    except SureshotError as error:
        return [f"! {error}"]
    return []

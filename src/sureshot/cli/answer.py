"""`sureshot answer`: train, evaluate and ask a model that answers questions about videos."""

from pathlib import Path
from typing import Annotated

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
    SplitName,
    VideoFolder,
    examples,
)

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
    from sureshot import research
    from sureshot.cli.train import fitted, show_run

    run = fitted(research.train_answers, recipe, to, settings, resume, cache)
    if run is not None:
        score = f"{run.score or 0:.1f} % of the validation questions right"
        measure = f"sureshot answer evaluate {run.folder} --root …"
        show_run(run, {"accuracy": run.score}, score, measure, as_json)
    return 0


@answer.command(epilog=EVALUATE_EXAMPLES)
def evaluate(
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
    from sureshot.cli import show
    from sureshot.cli.bar import Bar

    with Bar(show.console(err=True)) as bar:
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
            listener=bar,
        )
    return show.print_result(evaluation, as_json=as_json)


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
    from sureshot.cli import show

    guesses = research.Answerer.load(model, device).ask(video, question, most=limit)
    if as_json:
        answers = [{"answer": guess.answer, "share": guess.share} for guess in guesses]
        asked = {"video": str(video.absolute()), "question": question, "status": "not calibrated"}
        show.print_json({**asked, "answers": answers})
        return 0
    out = show.console()
    for guess in guesses:
        out.print(f"{guess.share:.2f}  {guess.answer}")
    show.console(err=True).print(
        "Shares are not calibrated, and a word that was not known in training cannot be given."
    )
    return 0

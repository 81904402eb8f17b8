"""`sureshot train`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.options import (
    Cache,
    Json,
    RecipeFile,
    Resume,
    RunFolder,
    Settings,
    examples,
)

if TYPE_CHECKING:
    from sureshot.research.training.loop import Fitted

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
        return _rehearse(recipe, settings, as_json)
    run = fitted(research.train, recipe, to, settings, resume, cache)
    if run is not None:
        measured = {"metric": run.metric, "score": run.score}
        score = f"{run.metric} {run.score or 0:.1f} on the validation set"
        show_run(run, measured, score, f"sureshot evaluate {run.folder} --data …", as_json)
    return 0


def _rehearse(recipe: Path, settings: list[str] | None, as_json: bool) -> int:
    from sureshot import research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar

    with Bar(show.console(err=True)) as bar:
        found = research.rehearse(recipe, settings=settings or (), listener=bar)
    return show.print_result(found, as_json=as_json)


def fitted(
    train: "Callable[..., Fitted]",
    recipe: Path,
    to: Path | None,
    settings: list[str] | None,
    resume: bool,
    cache: Path | None,
) -> "Fitted | None":
    """Train and show how far it is; None in a process that leaves the printing to the first."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.research.training.launch import is_first

    err = show.console(err=True)
    err.quiet = not is_first()
    with Bar(err) as bar:
        run = train(
            recipe, to=to, settings=settings or (), resume=resume, cache=cache, listener=bar
        )
    return run if is_first() else None


def show_run(
    run: "Fitted", measured: dict[str, Any], score: str, measure: str, as_json: bool
) -> None:
    """Print where the model is and how good it is.

    Args:
        run: the finished run.
        measured: its score by name, for JSON.
        score: its score in words, if it has one.
        measure: command that measures the model.
        as_json: whether to print JSON.
    """
    from sureshot.cli import show

    if as_json:
        folder = str(run.folder.absolute())
        show.print_json({"folder": folder, "epoch": run.epoch, **measured})
        return
    kept = f"the weights after epoch {run.epoch}"
    kept += "" if run.score is None else f", {score}"
    out = show.console()
    out.print(f"Trained: {run.folder} holds {kept}.", soft_wrap=True)
    out.print(f"{measure} says how good it is.", soft_wrap=True)

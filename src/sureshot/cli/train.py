"""`sureshot train`."""

from pathlib import Path
from typing import TYPE_CHECKING

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
    from sureshot.research.training.loop import Progress

EXAMPLES = examples(
    "sureshot train recipe.toml",
    "sureshot train recipe.toml --to runs/duq --set system.samples=4 --set training.seed=1",
    "torchrun --nproc-per-node 4 -m sureshot train recipe.toml",
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
    from sureshot.research.source import split_line
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
            train_sets, val = read.splits()
            for split in [*train_sets, *([val] if val else [])]:
                bar.line(split_line(split))

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

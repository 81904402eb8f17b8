"""`sureshot reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import Cache, MistypedError, examples

EXAMPLES = examples(
    "sureshot reproduce duq-3 --plan results/frame-subset.toml --to results",
    "sureshot reproduce all --plan plan.toml --part 1/2 & sureshot reproduce all --plan plan.toml "
    "--part 2/2; wait; sureshot reproduce all --plan plan.toml",
    "sureshot reproduce summary --to results",
)


def reproduce(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Such as duq-3; all: every one; summary: README.md."),
    ],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="TOML file: data, encoder, training."),
    ] = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Folder of the pages and of finished runs.")
    ] = Path("results"),
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Runs of each row.")] = 3,
    part: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Make every N-th run only, from the I-th; no pages."),
    ] = None,
    cache: Cache = None,
) -> int:
    """Run a table of a paper again. Finished runs are kept, so a stopped one goes on.

    "systems" compares all systems there are, "summary" writes the first page of a folder from the
    tables in it: all systems, and which claims of the papers held.
    """
    from sureshot import research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar

    if table == "summary":
        typer.echo(str(research.write_summary(to)))
        return 0
    if plan is None:
        raise MistypedError("Name the data and the training with --plan FILE.")
    with Bar(show.console(err=True)) as bar:
        made = research.reproduce(
            table, plan, to=to, seeds=seeds, part=part, cache=cache, listener=bar
        )
    for path in made.files:
        typer.echo(str(path))
    return 0

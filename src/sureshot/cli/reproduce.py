"""`sureshot reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import Cache, Json, examples

if TYPE_CHECKING:
    from sureshot.research import Exhibit

EXAMPLES = examples(
    "sureshot reproduce --list",
    "sureshot reproduce --list --plan plans/published-duq.toml --json",
    "sureshot reproduce duq-3 --plan results/frame-subset.toml --to results",
    "sureshot reproduce all --plan plan.toml --part 1/2 & sureshot reproduce all --plan plan.toml "
    "--part 2/2; wait; sureshot reproduce all --plan plan.toml",
    "sureshot reproduce all --plan results/made.toml --to results/made --seeds 10 --dry-run",
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
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.answer import JSON_SCHEMA

    if dry_run and table is not None:
        cost = research.forecast(table, plan, to=to, seeds=seeds)
        return show.print_result(cost, as_json=as_json)
    found: tuple[Exhibit, ...] = ()
    files: tuple[Path, ...] = ()
    if listed:
        found = research.exhibits(plan)
    elif table is None:
        raise typer.BadParameter("Name a table or figure; --list has them all.")
    elif table == "summary":
        files = (research.write_summary(to),)
    else:
        with Bar(show.console(err=True)) as bar:
            files = research.reproduce(
                table, plan, to=to, seeds=seeds, part=part, cache=cache, listener=bar
            ).files
    if as_json:
        listing = [one.to_dict() for one in found]
        paths = [str(path.absolute()) for path in files]
        show.print_json({"schema": JSON_SCHEMA, "exhibits": listing, "files": paths})
        return 0
    wide = max((len(one.name) for one in found), default=0)
    for line in [*(f"{one.name:{wide}}  {one.line()}" for one in found), *map(str, files)]:
        typer.echo(line)
    return 0

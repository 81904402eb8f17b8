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
    if table == "summary":
        from sureshot.research.reproduction.summary import write_summary

        typer.echo(str(write_summary(to)))
        return 0
    if plan is None:
        raise MistypedError("Name the data and the training with --plan FILE.")
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.research.reproduction.bench import read_plan, worlds
    from sureshot.research.reproduction.page import Facts, write_page
    from sureshot.research.reproduction.runs import cells, perform
    from sureshot.research.reproduction.tables import TABLES
    from sureshot.research.reproduction.tables import table as named

    chosen = list(TABLES.values()) if table == "all" else [named(table)]
    read = read_plan(plan)
    first, step = _share(part)
    with Bar(show.console(err=True)) as bar:
        encoder, (home, *away) = worlds(
            read,
            plan.absolute().parent,
            away=any(one.elsewhere for one in chosen),
            cache=cache,
            told=lambda what, done, total: bar.update(f"{what} encoded", done, total),
        )
        for one in chosen:
            others = away if one.elsewhere else []
            wanted = cells(one, seeds)[first::step]
            runs = []
            for number, cell in enumerate(wanted):
                more = f", {one.name}: {cell.variant.name}, seed {cell.seed}"
                bar.update("runs", number, len(wanted), more)
                (to / "runs").mkdir(parents=True, exist_ok=True)
                runs.append(perform(cell, read, encoder, home, others, to / "runs"))
            if part is not None:
                continue
            training = read.training
            facts = Facts(
                f"sureshot reproduce {one.name} --plan {plan} --seeds {seeds}",
                home.train.split.title(),
                home.val.split.title(),
                [home.test.split.title(), *(other.test.split.title() for other in others)],
                encoder.name,
                f"stem width {read.stem.width}, {training.epochs} epochs with one random caption "
                f"of each video, batch {training.batch}, rate {training.rate:g}",
            )
            for path in write_page(to, one, runs, facts):
                typer.echo(str(path))
    return 0


def _share(part: str | None) -> tuple[int, int]:
    """First run and step of a share such as 1/2, counted from 1."""
    if part is None:
        return 0, 1
    number, slash, count = part.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal()) or not 1 <= int(number) <= int(
        count
    ):
        raise MistypedError(f"--part is {part!r}; write it as 1/2, the first of two parts.")
    return int(number) - 1, int(count)

"""`sureshot status`, `remove`, `reset` and `doctor`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import Db, Json
from sureshot.errors import SureshotError

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("BAD", "bold red")}


def status(
    db: Db = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Read all of it and name what is damaged; exit code 1 then."),
    ] = False,
    as_json: Json = False,
) -> int:
    """Show what is indexed, with which model, how large, and what failed and why."""
    from rich.text import Text

    from sureshot import library
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.contents import CHECKED
    from sureshot.library.printed import as_typed

    def told(done: int, every: int) -> None:
        bar.update("windows checked", done, every)

    with Bar(show.console(err=True), "opening the index") as bar:
        contents = library.status(db, check=check, told=told)
    code = 1 if contents.faults else 0
    if as_json:
        show.print_json(contents.to_dict())
        return code
    out, failed, notes = show.console(), contents.failed, contents.notes
    place, *lines = contents.summary.splitlines()
    label, path = place.split(maxsplit=1)
    show.print_path(out, f"{label:11}", path)
    out.print("\n".join(lines))
    show.print_paths(out, "failed", failed, "red", most=len(failed))
    show.print_paths(out, "damaged, indexed as far as it goes", notes, "yellow", most=len(notes))
    if contents.faults is None:
        show.print_notes(out, contents.trouble)
        return code
    for fault in contents.faults:
        words = f"  {as_typed(fault.what)}\n→ {as_typed(fault.mend)}"
        out.print(Text.assemble(_MARKS["broken"], words))
    if not contents.faults:
        out.print(CHECKED)
    return code


def remove(
    paths: Annotated[
        list[Path],
        typer.Argument(readable=False, metavar="PATH", help="Videos or folders to forget."),
    ],
    exclude: Annotated[
        bool,
        typer.Option("--exclude", help="Also leave them out of what `sureshot index` does later."),
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> int:
    """Forget videos. The files themselves are not touched."""
    from sureshot import library
    from sureshot.cli import show
    from sureshot.text import counted

    removed = library.remove(paths, db=db, exclude=exclude)
    if as_json:
        show.print_json({"removed": removed})
    else:
        out = show.console()
        out.print(f"{counted(removed, 'video')} forgotten; no file was touched.")
        if exclude:
            out.print("Left out from now on; `sureshot index --include PATH` takes that back.")
    return 0


def reset(
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete the whole index. The videos themselves are not touched."""
    from sureshot import library
    from sureshot.cli import show
    from sureshot.places import index_place
    from sureshot.text import plain

    where = plain(index_place(db))
    if not yes and library.has_index(db):
        if not sys.stdin.isatty():
            raise SureshotError(f"This would delete the index at {where}; say so with --yes.")
        typer.confirm(f"Delete the index at {where}?", abort=True)
    if library.reset(db):
        show.console().print(f"The index at {where} is deleted; your videos are untouched.")
    else:
        show.console().print(f"There is no index at {where}.")
    return 0


def doctor(
    db: Db = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Also load this model or checkpoint."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show what this installation can do, and how to mend what it cannot. Exit code 1 if broken."""
    from dataclasses import asdict

    from rich.table import Table
    from rich.text import Text

    from sureshot import library
    from sureshot.cli import show
    from sureshot.library.printed import as_typed

    checks = library.examine(db, model)
    if as_json:
        show.print_json({"checks": [asdict(check) for check in checks]})
    else:
        table = Table.grid(padding=(0, 2, 0, 0))
        for check in checks:
            fix = f"\n→ {as_typed(check.fix)}" if check.fix else ""
            table.add_row(Text(*_MARKS[check.state]), check.name, as_typed(check.detail) + fix)
        show.print_table(show.console(), table)
    return 1 if any(check.state == "broken" for check in checks) else 0

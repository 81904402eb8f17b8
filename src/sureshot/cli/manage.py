"""`sureshot list`, `status`, `remove`, `reset`, `doctor`, `serve` and `calibrate`."""

import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sureshot import library
from sureshot.cli.terminal import (
    CHOOSING,
    Bar,
    Cache,
    Db,
    Device,
    Experts,
    Ids,
    Json,
    Label,
    MistypedError,
    Model,
    Protocol,
    VideoFolder,
    argument,
    compute_alone,
    console,
    examples,
    flag,
    import_quickly,
    print_json,
    print_notes,
    print_path,
    print_paths,
    print_table,
    print_videos,
    readers_may_leave,
    refuse_without,
    setting,
    taking,
)
from sureshot.errors import SureshotError, install_command, is_installed
from sureshot.media.discover import is_gone
from sureshot.paths import absolute, absolute_model, index_place
from sureshot.text import counted, plain

if TYPE_CHECKING:
    from sureshot.library.search import Searcher


_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("BAD", "bold red")}


LIST_EXAMPLES = examples(
    "sureshot list --folder ~/Videos/2024 --sort date",
    "sureshot list --longer 1:00:00 --since 2024-05-01 --csv > videos.csv",
)


@taking(CHOOSING)
def list_videos(
    *,
    wanted: dict[str, Any],
    sort: Annotated[str, setting("ORDER", "By path, or by date, the newest first.")] = "path",
    db: Db = None,
    as_csv: Annotated[
        bool, flag("--csv", "Print CSV, a line per video, for spreadsheets.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the videos of the index: length, date, windows, and what failed and why."""
    if as_csv and as_json:
        raise MistypedError("Give one of --csv and --json.")
    import_quickly()
    page = library.videos(db, **wanted, sort=sort)
    if as_json:
        return print_json(page.to_dict())
    if as_csv:
        typer.echo(page.to_csv(), nl=False)
    else:
        print_videos(console(), page)
    return 0


def status(
    db: Db = None,
    check: Annotated[
        bool, flag("--check", "Read the whole index; exits with 1 if it is damaged.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Show what is indexed, with which model, how large, and what failed and why."""
    import_quickly()
    from sureshot.library.catalog import CHECKED

    with Bar(console(err=True), "opening the index") as bar:
        contents = library.status(db, check=check, progress=bar)
    code = 1 if contents.faults else 0
    if as_json:
        print_json(contents.to_dict())
        return code
    with readers_may_leave():
        out, failed, notes = console(), contents.failed, contents.notes
        place, *lines = contents.summary.splitlines()
        label, path = place.split(maxsplit=1)
        print_path(out, f"{label:11}", path)
        out.print("\n".join(lines))
        print_paths(out, "failed", failed, "red", limit=len(failed))
        print_paths(out, "damaged, indexed as far as possible", notes, "yellow", limit=len(notes))
        if contents.faults is None:
            print_notes(out, contents.trouble)
        elif not contents.faults:
            out.print(CHECKED)
        for fault in contents.faults or ():
            words = f"  {plain(fault.what)}\n→ {plain(fault.fix)}"
            out.print(Text.assemble(_MARKS["broken"], words))
    return code


def remove(
    paths: Annotated[list[Path], argument("PATH...", "Videos or folders to remove.")],
    exclude: Annotated[
        bool, flag("--exclude", "Also exclude them from later runs of `sureshot index`.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> int:
    """Remove videos from the index. The files themselves are not touched."""
    removed = library.remove(paths, db=db, exclude=exclude)
    if as_json:
        return print_json({"removed": removed})
    console().print(f"{counted(removed, 'video')} removed from the index; no file was touched.")
    if exclude:
        console().print(
            "Excluded from now on; `sureshot index FOLDER --include PATH` reverts that."
        )
    elif not all(is_gone(absolute(path)) for path in paths):
        console().print(
            "The next `sureshot index` brings back what is still there, unless --exclude."
        )
    return 0


def reset(
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete the index. Your ratings (judged.jsonl in its folder) and the videos stay."""
    where = plain(index_place(db))
    if not yes and library.has_index(db):
        if not sys.stdin.isatty():
            raise SureshotError(f"This would delete the index at {where}; confirm with --yes.")
        typer.confirm(f"Delete the index at {where}?", abort=True)
    if library.reset(db):
        console().print(f"The index at {where} is deleted; your ratings and videos are untouched.")
    else:
        console().print(f"There is no index at {where}.")
    return 0


def doctor(
    db: Db = None,
    model: Annotated[str | None, setting("NAME", "Also load this model or checkpoint.")] = None,
    as_json: Json = False,
) -> int:
    """Check this installation and suggest fixes. Exits with 1 if something is broken."""
    checks = library.examine(db, model)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        table = Table.grid(padding=(0, 2, 0, 0))
        for check in checks:
            fix = f"\n→ {plain(check.fix)}" if check.fix else ""
            table.add_row(Text(*_MARKS[check.state]), check.name, plain(check.detail) + fix)
        with readers_may_leave():
            print_table(console(), table)
    return 1 if any(check.state == "broken" for check in checks) else 0


EXAMPLES = examples(
    "sureshot serve --open",
    "sureshot serve --db ~/clip-index --port 9000",
    "sureshot serve --host 0.0.0.0 --password-file ~/.sureshot-password",
)
_PATIENCE = 1.0  # seconds that each thread gets to end by itself


def serve(
    db: Db = None,
    port: Annotated[
        int | None, setting("N", "Port; 0 takes any free one.", min=0, max=65535, shown="8460")
    ] = None,
    open_page: Annotated[bool, flag("--open", "Open the page in a browser.")] = False,
    host: Annotated[
        str, setting("ADDRESS", "Where to listen; anything but localhost needs a password.")
    ] = "127.0.0.1",
    names: Annotated[
        list[str] | None,
        setting("HOST", "A name that a proxy, or your network, calls it by.", "--name"),
    ] = None,
    password_file: Annotated[
        Path | None, setting("FILE", "A file whose first line is the password.")
    ] = None,
    roots: Annotated[
        list[Path] | None,
        setting(
            "DIR",
            "Folder that the page may index; only what is in it is shown then.",
            "--root",
            shown="your home folder to index, and all that is indexed is shown",
        ),
    ] = None,
    no_token: Annotated[
        bool, flag("--no-token", "Let in every account of this machine, without a token.")
    ] = False,
    model: Model = None,
    device: Device = None,
) -> int:
    """Serve a web page that searches your videos and plays the results. Ctrl-C ends it."""
    compute_alone()
    from sureshot.web.security import is_loopback
    from sureshot.web.server import run_server

    if ("%" in host or "/" in host) or not host.strip():
        raise MistypedError(f"--host is {host!r}; give a name or an address, such as 127.0.0.1.")
    err = console(err=True)

    def ready(address: str, once: str) -> None:
        err.print(f"Sureshot is at {address} (Ctrl-C ends it)", soft_wrap=True)
        if not is_loopback(host):
            err.print(
                "Anybody in your network who knows the password can watch every indexed video and "
                "change the index. Password and videos travel unencrypted: use it in a network "
                "that you trust.",
                style="bold yellow",
            )
        elif no_token and password_file is None:
            err.print(
                "Every account of this machine can watch every indexed video and change the index.",
                style="bold yellow",
            )
        if open_page:
            typer.launch(once)

    run_server(
        db=db,
        model=model,
        device=device,
        host=host,
        port=port,
        names=names or (),
        password_file=password_file,
        with_token=not no_token,
        roots=roots or (),
        ready=ready,
    )
    _leave()
    return 0


MCP_EXAMPLES = examples("claude mcp add sureshot -- sureshot mcp", "sureshot mcp --root ~/Videos")


def mcp(
    db: Db = None,
    roots: Annotated[
        list[Path] | None,
        setting("DIR", "Show nothing that is not below this folder, links followed.", "--root"),
    ] = None,
    model: Model = None,
    device: Device = None,
) -> int:
    """Let an agent search your videos and look at frames, over MCP on standard input and output."""
    compute_alone()
    if not is_installed("mcp"):
        raise SureshotError(f"Agents need the package mcp: {install_command('mcp')}")
    from sureshot.library.catalog import films_dir
    from sureshot.web.jobs import Roots
    from sureshot.web.mcp_server import run_mcp
    from sureshot.web.media import ClipCache
    from sureshot.web.session import Session

    session = Session(db=db, model=model, device=device, within=Roots(roots or ()).paths)
    try:
        run_mcp(session, ClipCache(films_dir()))
    except KeyboardInterrupt:
        _leave(130)
        raise
    _leave()
    return 0


def _leave(code: int = 0) -> None:
    """Exit at once if a film is still being made, which nothing keeps; Python would wait for it."""
    ours = ("sureshot", "AnyIO")
    working = [thread for thread in threading.enumerate() if thread.name.startswith(ours)]
    for thread in working:
        thread.join(_PATIENCE)
    if any(thread.is_alive() for thread in working):
        os._exit(code)


CALIBRATE_EXAMPLES = examples(
    "sureshot calibrate",
    "sureshot calibrate --labels judged.csv --db ~/films-index --skip-unknown",
    "sureshot calibrate --reference ~/captioned-photos --db ~/films-index",
    "sureshot calibrate runs/duq/model --reference msrvtt --split test --root ~/MSRVTT",
)


def calibrate(
    model: Annotated[
        str | None,
        argument(
            "MODEL",
            "With --reference: a checkpoint's folder or an encoder's name, if not the model "
            "of the index. With --labels: the model of the index, if its folder has moved.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        setting(
            "FILE",
            "Judged queries of an index (docs/trust.md).",
            shown="what was judged of the index",
        ),
    ] = None,
    db: Db = None,
    skip_unknown: Annotated[
        bool, flag("--skip-unknown", "Skip queries about videos that are not in the index.")
    ] = False,
    reference: Annotated[
        str | None,
        setting(
            "PLACE",
            "Learn from other footage: a folder of photographs or videos with captions.csv, "
            "or a dataset (flickr8k, msrvtt, …) in --root.",
        ),
    ] = None,
    root: Annotated[
        Path | None, setting("PATH", "Folder of the dataset's annotation files.")
    ] = None,
    split: Annotated[str, setting("NAME", "val, or test; never what it was trained on.")] = "val",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    show_card: Annotated[
        bool, flag("--show", "Only show what percentages are learned from.")
    ] = False,
    forget: Annotated[bool, flag("--forget", "Go back to the percentages of the model.")] = False,
    to: Annotated[
        Path | None, setting("FILE", "Where the card goes.", shown="where searches look for it")
    ] = None,
    date: Annotated[str, setting("DATE", "Date on the card.", shown="today, in UTC")] = "",
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Learn from judged queries how sure an answer is, so that searches show percentages.

    Five judged searches are enough to adapt the model's percentages to your videos. A model without
    any, such as a CLIP, gets some from captioned photographs (--reference).
    """
    if (labels is not None) + (reference is not None) + show_card + forget > 1:
        raise MistypedError("Give one of: --labels, --reference, --show, --forget.")
    other: dict[str, Any] = {"protocol": protocol, "videos": videos, "ids": ids, "label": label}
    other |= {"experts": experts, "cache": cache}
    if reference is None:
        refuse_without("--reference PLACE", root=root, split=split != "val", **other)
    else:
        refuse_without("--labels FILE", skip_unknown=skip_unknown)
    if show_card or forget:
        needed = "--labels FILE or --reference PLACE"
        refuse_without(needed, skip_unknown=skip_unknown, to=to, date=date)
        return _print_card(library.open_index(db, model=model, device=device), forget, as_json)
    result: dict[str, Any] = {"date": date, "to": to, "device": device}
    with Bar(console(err=True), "scoring") as bar:
        if reference is None:
            done = library.calibrate(
                labels, db=db, model=model, skip_unknown=skip_unknown, **result, progress=bar
            )
        else:
            from sureshot import research

            named = absolute_model(model) if model else library.status(db).settings.model
            done = research.calibrate(
                named, reference, root, split=split, **other, **result, progress=bar
            )
    if as_json:
        return print_json(done.to_dict())
    typer.echo(repr(done))
    return 0


def _print_card(searcher: "Searcher", forget: bool, as_json: bool) -> int:
    forgotten = library.forget(searcher) if forget else None
    learned = searcher.learned_from()
    if as_json:
        return print_json({"learned_from": learned, "forgotten": forgotten})
    if forget:
        gone = "Your own calibration is removed."
        typer.echo(gone if forgotten else "There is no calibration of your own.")
    typer.echo(f"Percentages: {learned}.")
    return 0

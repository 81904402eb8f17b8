"""`sureshot status`, `remove`, `reset` and `doctor`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sureshot.cli.options import Db, Json, as_typed
from sureshot.errors import ModelError, QueryError, SureshotError

if TYPE_CHECKING:
    from sureshot.store.header import IndexSettings
    from sureshot.store.rows import VideoRecord
    from sureshot.store.store import Store

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("BAD", "bold red")}


def status(db: Db = None, as_json: Json = False) -> int:
    """Show what is indexed, with which model, how large, and what failed and why."""
    from sureshot.cli import show
    from sureshot.library.answer import JSON_SCHEMA, reasons
    from sureshot.places import index_place
    from sureshot.store.store import Store
    from sureshot.text import counted, plain

    store = Store.open(index_place(db))
    records = store.videos()
    good = [r for r in records if not r.reason]
    failed = [(r.path, r.reason) for r in records if r.reason]
    notes = [(r.path, r.note) for r in good if r.note]
    facts = _facts(store, good)
    if as_json:
        paths = {"failed": reasons(failed), "notes": reasons(notes)}
        show.print_json({"schema": JSON_SCHEMA, **facts, **paths})
        return 0
    out = show.console()
    length = f", {show.duration(facts['seconds'])} in {counted(facts['windows'], 'window')}"
    out.print(f"Index       {plain(store.location)}")
    out.print(f"Videos      {len(good)}{length if good else ''}")
    out.print(f"Model       {plain(store.settings.model)} (fingerprint {store.fingerprint[:12]})")
    out.print(f"Settings    {_settings(store.settings)}")
    out.print(f"On disk     {_size(facts['bytes'], facts['seconds'])}")
    out.print(f"Confidence  {as_typed(facts['status'])}")
    if failed:
        out.print(f"Failed      {counted(len(failed), 'video')}")
    show.print_paths(out, "failed", failed, "red", most=len(failed))
    show.print_paths(out, "damaged, indexed as far as it goes", notes, "yellow", most=len(notes))
    return 0


def remove(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Videos or folders to forget.")
    ],
    db: Db = None,
    as_json: Json = False,
) -> int:
    """Forget videos. The files themselves are not touched."""
    from sureshot.cli import show
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.places import absolute, index_place
    from sureshot.store.store import Store
    from sureshot.text import counted

    store = Store.open(index_place(db))
    tops = [absolute(path) for path in paths]
    records = store.videos()
    for top in tops:
        if not any(r.path.is_relative_to(top) for r in records):
            raise QueryError(
                f"Nothing at or below {show.short(top)} is indexed; nothing was removed."
            )
    chosen = [r for r in records if any(r.path.is_relative_to(top) for top in tops)]
    store.remove(chosen)
    store.compact()
    if as_json:
        show.print_json({"schema": JSON_SCHEMA, "removed": len(chosen)})
    else:
        show.console().print(f"{counted(len(chosen), 'video')} forgotten; no file was touched.")
    return 0


def reset(
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete the whole index. The videos themselves are not touched."""
    from sureshot.cli import show
    from sureshot.places import index_place
    from sureshot.store.store import Store
    from sureshot.text import plain

    where = index_place(db)
    if not Store.exists(where):
        show.console().print(f"There is no index at {plain(where)}.")
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise SureshotError(f"This would delete the index at {where}; say so with --yes.")
        typer.confirm(f"Delete the index at {plain(where)}?", abort=True)
    Store.delete(where)
    show.console().print(f"The index at {plain(where)} is deleted; your videos are untouched.")
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

    from sureshot.cli import show
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.library.doctor import examine
    from sureshot.places import index_place

    checks = examine(index_place(db), model)
    if as_json:
        show.print_json({"schema": JSON_SCHEMA, "checks": [asdict(check) for check in checks]})
    else:
        table = Table.grid(padding=(0, 2, 0, 0))
        for check in checks:
            fix = f"\n→ {as_typed(check.fix)}" if check.fix else ""
            table.add_row(Text(*_MARKS[check.state]), check.name, as_typed(check.detail) + fix)
        show.print_table(show.console(), table)
    return 1 if any(check.state == "broken" for check in checks) else 0


def _facts(store: "Store", good: "Sequence[VideoRecord]") -> dict[str, Any]:
    """What the index holds, as docs/json.md describes it."""
    from sureshot.settings import to_values
    from sureshot.text import printable

    return {
        "index": printable(store.location),
        "videos": len(good),
        "windows": store.count(),
        "seconds": round(sum((r.duration for r in good), 0.0), 3),
        "bytes": store.bytes_on_disk(),
        "fingerprint": store.fingerprint,
        "settings": to_values(store.settings),
        "status": _calibrated(store),
    }


def _calibrated(store: "Store") -> str:
    """What percentages are learned from, and why there are none."""
    from sureshot.library.confidence import described, find_card
    from sureshot.models.bank import bank_of

    model = store.settings.model
    try:
        bank = bank_of(model, store.fingerprint)
    except ModelError:
        # Searching says which of the two it is.
        return "not calibrated; the model has changed since, or its bank is damaged"
    card, warnings = find_card(store.location, model, store.fingerprint, bank)
    if card is not None:
        return f"calibrated on {described(card)}"
    return "; ".join(("not calibrated", *warnings))


def _settings(settings: "IndexSettings") -> str:
    cut = "cut at scene changes" if settings.scenes else "not cut at scene changes"
    longest = f"windows of at most {settings.window:g} s, {cut}"
    return f"{settings.frames} frames a window, {longest}, decode {settings.decode}"


def _size(size: int, seconds: float) -> str:
    """Bytes in words, and what a minute of video costs of them."""
    if not size:
        return "unknown, it is in object storage"
    per_minute = f" ({size / 1e3 / (seconds / 60):.0f} kB a minute of video)" if seconds else ""
    whole = f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"
    return whole + per_minute

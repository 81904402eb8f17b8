"""Tables of the papers that can be run again, from ``tables.toml`` beside this file."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sureshot.errors import SureshotError
from sureshot.settings import build


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table.

    Attributes:
        name: what the row is called.
        system: settings of the system, with its ``name``.
        printed: ``variant`` of the printed row in metrics/published.csv; None if there is none.
        method: method of the printed row.
        frames: frames a video; None is as many as were encoded.
        control: whether this is a baseline of ours that the paper does not have.
        width: width of the stem; None is that of the plan.
        paper: what the paper prints for the row, in words, where that is no R@1.
    """

    name: str
    system: Mapping[str, Any]
    printed: str | None = None
    method: str = ""
    frames: int | None = None
    control: bool = False
    width: int | None = None
    paper: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper.

    Attributes:
        name: what a user types.
        title: what it shows.
        variants: its rows.
        table: its id in metrics/published.csv; empty if it is not there.
        method: method of its printed rows.
        protocol: protocol of the paper's numbers, in words; empty if it prints none.
        elsewhere: whether it is about another data set than that trained on.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    table: str = ""
    method: str = ""
    protocol: str = ""
    elsewhere: bool = False


@functools.cache
def load_tables() -> Mapping[str, Table]:
    """All tables, by name."""
    tables = {}
    for values in _read()["tables"]:
        of_all = {name: value for name, value in values.items() if name != "rows"}
        usual = {"method": values.get("method", "")}
        rows = [{**usual, **row, "system": settings_of(row["system"])} for row in values["rows"]]
        tables[values["name"]] = build(Table, {**of_all, "variants": rows})
    return tables


def find_table(name: str) -> Table:
    """The table of this name.

    Raises:
        SureshotError: there is none.
    """
    tables = load_tables()
    if name not in tables:
        raise SureshotError(f"Unknown table {name!r}; known: {', '.join(tables)}.")
    return tables[name]


def settings_of(system: str | Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a system, as a row or ``[systems]`` of the file names them.

    Args:
        system: a name of ``[systems]``, or settings that start from one named ``like``; ``base``
            names the settings of the system that DVTR is on.

    Examples:
        >>> settings_of({"like": "clip4clip", "temporal": "transformer"})
        {'name': 'clip4clip', 'scale': 20.0, 'temporal': 'transformer'}
        >>> settings_of({"name": "dvtr", "base": "pcme"})
        {'name': 'dvtr', 'base': {'name': 'pcme'}}
    """
    if isinstance(system, str):
        return settings_of(_read()["systems"][system])
    settings = dict(system)
    start = settings_of(settings.pop("like")) if "like" in settings else {}
    if "base" in settings:
        settings["base"] = settings_of(settings["base"])
    return start | settings


@functools.cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text("utf-8"))

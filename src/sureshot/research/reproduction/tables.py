"""Tables and figures of the papers, as ``tables.toml`` beside this file has them."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from sureshot.errors import SureshotError
from sureshot.settings import build

Metric = Literal["R@1", "rsum", "geometric mean"]
_RECALLS = ("R@1", "R@5", "R@10")


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table.

    Attributes:
        name: what the row is called.
        system: settings of the system, with its ``name``.
        printed: ``variant`` of the printed row in metrics/published.csv; None if there is none.
        method: method of the printed row.
        frames: frames a video; None is as many as the plan says.
        control: whether this is a baseline of ours that the paper does not have.
        width: width of the stem; None is that of the plan.
        paper: what the paper prints for the row, in words, where that is no R@1.
        post: ``DSL`` where the scores are post-processed by it, else empty.
    """

    name: str
    system: Mapping[str, Any]
    printed: str | None = None
    method: str = ""
    frames: int | None = None
    control: bool = False
    width: int | None = None
    paper: str = ""
    post: Literal["", "DSL"] = ""

    @property
    def is_told(self) -> bool:
        """Whether the system is told the truth about its batches, which a made world alone knows.

        Examples:
            >>> Variant("known eta", {"name": "dvtr", "uncertainty": "oracle"}).is_told
            True
        """
        return "oracle" in self.system.values()


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper.

    Attributes:
        name: what a user types.
        title: what it shows.
        variants: its rows.
        kind: ``recalls`` of trained systems; ``answers`` to questions about videos; ``costs``,
            which need no data.
        data: data sets that it is on, as a plan names them.
        stand_in: whether the home of a plan may stand in for them.
        table: its id in metrics/published.csv; empty if it is not there.
        method: method of its printed rows.
        protocol: protocol of the paper's numbers, in words; empty if it prints none.
        metric: what the paper prints.
        elsewhere: data sets that it is also tested on; ``any`` is any other.
        dial: dial of a made world that the table is run at several values of; empty for none.
        compared: what is drawn against the dial: a mechanism, its row and the row without it.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    kind: Literal["recalls", "answers", "costs"] = "recalls"
    data: tuple[str, ...] = ()
    stand_in: bool = True
    table: str = ""
    method: str = ""
    protocol: str = ""
    metric: Metric = "R@1"
    elsewhere: tuple[str, ...] = ()
    dial: str = ""
    compared: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure of a paper.

    Attributes:
        name: what a user types.
        title: what it shows.
        figure: the figure of `sureshot.research.figures.catalogue` that draws it; empty where the
            paper's is a drawing.
        system: settings of the system that is trained for it.
        beside: settings of the system that the paper compares it with; empty for none.
        epochs: whether one checkpoint after each epoch is drawn.
        data: data sets that it is on, as a plan names them.
    """

    name: str
    title: str
    figure: str = ""
    system: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)
    epochs: bool = False
    data: tuple[str, ...] = ()


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


@functools.cache
def load_figures() -> Mapping[str, PaperFigure]:
    """All numbered figures, by name."""
    figures = (
        build(
            PaperFigure,
            values | {name: settings_of(values.get(name, {})) for name in ("system", "beside")},
        )
        for values in _read()["figures"]
    )
    return {figure.name: figure for figure in figures}


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
        {'name': 'clip4clip', 'temporal': 'transformer'}
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


def measure_of(scores: Mapping[str, float], metric: Metric, prefix: str = "") -> float:
    """What a table prints, from the scores of a run.

    Args:
        scores: percents by name.
        metric: R@1 from text to video; ``rsum``, the sum of the six recalls of both directions; or
            the geometric mean of R@1, R@5 and R@10 from text to video.
        prefix: what the names of scores on another data set begin with.
    """
    texts = [scores[prefix + name] for name in _RECALLS]
    if metric == "R@1":
        return texts[0]
    if metric == "geometric mean":
        return float((texts[0] * texts[1] * texts[2]) ** (1 / 3))
    return sum(texts) + sum(scores[f"{prefix}v2t {name}"] for name in _RECALLS)


@functools.cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text("utf-8"))

"""All numbered tables and figures of the papers: what each shows and needs, what is missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sureshot.research.reproduction.bench import HOME, Bench, read_plan
from sureshot.research.reproduction.needs import needed, places_of, question_gap
from sureshot.research.reproduction.tables import PaperFigure, Table, load_figures, load_tables

Kind = Literal["table", "figure"]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A numbered table or figure.

    Attributes:
        name: what `sureshot.research.reproduce` takes.
        kind: ``table`` or ``figure``.
        title: paper, number and what it shows.
        needs: data sets it is on in the paper, in words; empty for none.
        drawn: the figure of `sureshot.research.plot` that draws it; empty for a table.
        can_run: whether it can be made: on the data of a plan, or at all where none is given.
            What the paper drew by hand never can.
        where: data sets of the plan that it runs on; ``home`` where one stands in.
        lacks: data sets of the paper that the plan does not have or that cannot be read, in words.
        missing: a sentence for each data set that is not there: which files, and where they go.
    """

    name: str
    kind: Kind
    title: str
    needs: str = ""
    drawn: str = ""
    can_run: bool = True
    where: tuple[str, ...] = ()
    lacks: str = ""
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "needs": self.needs,
            "drawn": self.drawn,
            "can_run": self.can_run,
            "where": list(self.where),
            "lacks": self.lacks,
            "missing": list(self.missing),
        }

    def line(self) -> str:
        """One line for a terminal, without the name."""
        if self.kind == "figure" and not self.drawn:
            return f"{self.title} (a drawing of the paper's, nothing to run)"
        needs = f"; needs {self.needs}" if self.needs else "; needs no data"
        by = f"; drawn by {self.drawn}" if self.drawn else ""
        on = f"; runs on {', '.join(self.where)}" if self.where else ""
        gap = f"; the plan lacks {self.lacks}" if self.lacks else ""
        return f"{self.title}{needs}{by}{on}{gap}"


def exhibits(plan: str | Path | None = None) -> tuple[Exhibit, ...]:
    """Every numbered table of DUQ, UATVR and DVTR and every numbered figure, as they can be run.

    Table I of DVTR is its notation, table II the sizes of the data sets; neither has a result.

    Args:
        plan: TOML file that names the data; None says of none whether it is there.

    Raises:
        SureshotError: something is wrong with the plan; data that are missing are no fault.

    Examples:
        >>> from sureshot import research
        >>> [one.title for one in research.exhibits() if one.name == "dvtr-8"]
        ['DVTR, table VIII: on CE']
    """
    path = None if plan is None else Path(plan)
    bench = None if path is None else Bench(read_plan(path), path.absolute().parent)
    tables = [_of_table(one, bench) for one in load_tables().values()]
    return (*tables, *(_of_figure(one, bench) for one in load_figures().values()))


def _of_table(table: Table, bench: Bench | None) -> Exhibit:
    where, lacks, missing = _known(table, bench)
    needs = needed(table.data)
    if "any" in table.elsewhere:
        needs = "a data set of yours as [home], another as [away]"
    elif table.elsewhere:
        needs += f", and {needed(table.elsewhere)} to test on"
    return Exhibit(
        name=table.name,
        kind="table",
        title=table.title,
        needs=needs,
        can_run=bench is None or table.kind == "costs" or bool(where),
        where=where,
        lacks=lacks,
        missing=missing,
    )


def _of_figure(figure: PaperFigure, bench: Bench | None) -> Exhibit:
    where, lacks, missing = _known(figure, bench) if figure.figure else ((), "", ())
    return Exhibit(
        name=figure.name,
        kind="figure",
        title=figure.title,
        needs=needed(figure.data),
        drawn=figure.figure,
        can_run=bool(figure.figure) and (bench is None or bool(where)),
        where=where,
        lacks=lacks,
        missing=missing,
    )


def _known(
    one: Table | PaperFigure, bench: Bench | None
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Where it runs, the data sets that it lacks, and a sentence for each."""
    if bench is None or (isinstance(one, Table) and one.kind == "costs"):
        return (), "", ()
    if isinstance(one, Table) and one.kind == "answers":
        missing = question_gap(bench)
        where = () if missing else one.data
    else:
        places, missing = places_of(one, bench)
        where = tuple(place.name for place in places)
    absent = [] if HOME in where else [name for name in one.data if name not in where]
    return where, needed(absent), tuple(missing)

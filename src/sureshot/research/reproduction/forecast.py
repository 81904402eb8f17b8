"""What a table would cost, before anything is trained."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.errors import ArgumentError, option
from sureshot.formats import read_json
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes
from sureshot.research.reproduction.bench import Bench, read_plan
from sureshot.research.reproduction.needs import Place, places_of
from sureshot.research.reproduction.runs import PlannedRun, cells, recipe_of
from sureshot.research.reproduction.tables import find_table, load_tables
from sureshot.research.training.batches import count
from sureshot.text import counted

_WIDTH = Sizes(dim=64, channels=64)  # of a system that is built to ask how many passes it makes


@dataclass(frozen=True, slots=True)
class TableCost:
    """What one table would cost.

    Attributes:
        name: name of the table.
        runs: runs that it wants, those of earlier tables of the list left out.
        kept: runs of these rows and seeds that lie in the folder.
        steps: training steps of the runs that are not kept.
        seconds: how long these take one after another, by the kept runs; None where none is kept.
    """

    name: str
    runs: int
    kept: int
    steps: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What tables would cost together; runs that they share count once.

    Attributes:
        tables: the tables that the plan has data for.
    """

    tables: tuple[TableCost, ...]

    def text(self) -> str:
        """A line a table, and the sum."""
        lines = []
        for one in self.tables:
            time = "time not known yet" if one.seconds is None else _hours(one.seconds)
            left = one.runs - one.kept
            lines.append(f"{one.name}: {left} of {one.runs} runs left, {one.steps:,} steps, {time}")
        seconds = [one.seconds for one in self.tables]
        steps = sum(one.steps for one in self.tables)
        runs = sum(one.runs - one.kept for one in self.tables)
        known = [one for one in seconds if one is not None]
        time = f", {_hours(sum(known))} in one process" if len(known) == len(seconds) else ""
        lines.append(f"together: {counted(runs, 'run')}, {steps:,} steps{time}")
        if not time:
            lines.append("One seed first tells how long a run takes here.")
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("name", "runs", "kept", "steps", "seconds")
        return {"tables": [{name: getattr(one, name) for name in names} for one in self.tables]}


def forecast(
    table: str, plan: str | Path | None, *, to: str | Path = "results", seeds: int = 3
) -> Forecast:
    """What it would cost to make a table; arguments as of `reproduce`.

    Nothing is decoded or trained. A kept run counts as done by its row and seed; whether its code
    and recipe are still the same is only seen when it is asked for.

    Raises:
        ArgumentError: there is no plan.
        SureshotError: no such table, or something is wrong with the plan.
    """
    if plan is None:
        raise ArgumentError(f"Name the data and the training with {option('plan', 'FILE')}.")
    path = Path(plan)
    bench = Bench(read_plan(path), path.absolute().parent)
    tables = list(load_tables().values()) if table == "all" else [find_table(table)]
    kept = _kept(Path(to) / "runs")
    seen: set[str] = set()
    costs = []
    for one in tables:
        places = places_of(one, bench)[0] if one.kind == "recalls" else []
        wanted = []
        for cell in (c for place in places for c in cells(place.rows(one), place, seeds)):
            key = _identity(cell, bench)
            if key not in seen:
                wanted.append(cell)
            seen.add(key)
        if wanted:
            costs.append(_cost(one.name, wanted, kept, bench))
    return Forecast(tables=tuple(costs))


def _cost(
    name: str,
    wanted: Sequence[PlannedRun],
    kept: Mapping[tuple[str, int], float],
    bench: Bench,
) -> TableCost:
    left = [cell for cell in wanted if (cell.variant.name, cell.seed) not in kept]
    rows: dict[str, list[float]] = {}
    for (row, _), seconds in kept.items():
        rows.setdefault(row, []).append(seconds)
    usual = float(np.median(list(kept.values()))) if kept else None
    times = [float(np.median(rows.get(cell.variant.name, [usual or 0.0]))) for cell in left]
    return TableCost(
        name=name,
        runs=len(wanted),
        kept=len(wanted) - len(left),
        steps=sum(_steps(cell, bench) for cell in left),
        seconds=None if usual is None else sum(times),
    )


def _steps(cell: PlannedRun, bench: Bench) -> int:
    recipe = recipe_of(cell, bench.plan)
    training = recipe.training.beside(recipe.encoder)
    owners = bench.splits(cell.place.world).train.owner().tolist()
    passes = load_system(recipe.system, _WIDTH).passes
    batches = count(owners, batch=training.batch, captions=training.captions or "one")
    return batches * training.epochs * passes


def _identity(cell: PlannedRun, bench: Bench) -> str:
    """What tells a run from others, as far as it is known before anything is encoded."""
    place: Place = cell.place
    recipe = recipe_of(cell, bench.plan).to_dict()
    away = [name for name, _ in place.elsewhere]
    return json.dumps([recipe, cell.variant.frames, place.name, away], sort_keys=True, default=str)


def _kept(folder: Path) -> dict[tuple[str, int], float]:
    """Seconds of each run that is kept, by row and seed."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        held = read_json(path)
        found[str(held["variant"]), int(held["seed"])] = float(held["seconds"])
    return found


def _hours(seconds: float) -> str:
    if seconds >= 3600:
        return f"about {seconds / 3600:.1f} hours"
    return f"about {seconds / 60:.0f} minutes"

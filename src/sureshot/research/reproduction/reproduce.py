"""Tables and figures of papers made again, from a plan to their pages."""

import copy
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sureshot.datasets.annotation import read_lines
from sureshot.datasets.synthetic import read_part
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.files import write_json, write_text
from sureshot.models.systems.base import Sizes, load_system
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.answers import (
    AnswerRecipe,
    evaluate_answers,
    published_answers,
    train_answers,
)
from sureshot.research.figures.catalogue import plot
from sureshot.research.reproduction.page import Facts, second_lines, spread, write_costs, write_page
from sureshot.research.reproduction.plan import (
    HOME,
    QUESTIONS,
    Bench,
    Case,
    PaperFigure,
    Place,
    Plan,
    Table,
    Variant,
    find_table,
    load_figures,
    load_tables,
    needed,
    places_of,
    question_gap,
    read_plan,
)
from sureshot.research.reproduction.runs import (
    ANSWERING,
    PlannedRun,
    Run,
    cells,
    code_digest,
    perform,
    read_run_ranks,
    read_table_ranks,
    recipe_of,
    titles_of,
    train_cell,
    write_table_ranks,
)
from sureshot.research.training.data import count
from sureshot.settings import read_json, to_values
from sureshot.text import counted


def draw_figure(
    figure: PaperFigure, bench: Bench, folder: Path, *, notes: Notes, cache: Path | None = None
) -> list[Path]:
    """Train the systems of a figure and write NAME.png and NAME.svg, on the test split.

    Args:
        figure: what to draw.
        bench: the data of a plan; of several data sets the first is taken that is there.
        folder: gets the pictures, and ``models``, in which the checkpoints stay.
        notes: hears how far the work is.
        cache: folder of encoded features; None is one in the user's cache folder.

    Raises:
        SureshotError: the paper's is a drawing, its data are not there, or as for
            `sureshot.research.figures.catalogue.plot`.
    """
    if not figure.figure:
        raise SureshotError(f"{figure.title} is a drawing of the paper's; there is nothing to run.")
    places, missing = places_of(figure, bench)
    if not places:
        raise SureshotError(" ".join(missing))
    place, test = places[0], bench.placed(places[0].world.test)
    models = list(_models(figure, bench, place, folder / "models", notes))
    compare_with = None
    if figure.compare_with:
        compared = Variant(name=f"{figure.name}, compared", system=figure.compare_with)
        compare_with = _trained(compared, bench, place, folder / "models", notes)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [folder / f"{figure.name}{suffix}" for suffix in (".png", ".svg")]
    plot(
        figure.figure,
        models,
        test.dataset,
        test.root,
        split=test.split,
        protocol=test.protocol,
        videos=test.videos,
        ids=test.ids,
        label=test.label,
        experts=test.experts,
        device=bench.plan.encoder.device,
        to=pictures,
        compare_with=compare_with,
        cache=cache,
        progress=notes,
    )
    return pictures


def _models(
    figure: PaperFigure, bench: Bench, place: Place, folder: Path, notes: Notes
) -> Iterator[Path]:
    """The checkpoints that are drawn: one, or one for each number of epochs."""
    variant = Variant(name=figure.name, system=figure.system)
    if not figure.epochs:
        yield _trained(variant, bench, place, folder, notes)
        return
    most = bench.plan.settings("training", variant.system, place.name).epochs
    for epochs in range(1, most + 1):
        shorter = copy.copy(bench)
        case = Case(training={"epochs": epochs, "keep": "last"})
        shorter.plan = replace(bench.plan, cases=(*bench.plan.cases, case))
        yield _trained(variant, shorter, place, folder, notes)


def _trained(variant: Variant, bench: Bench, place: Place, folder: Path, notes: Notes) -> Path:
    return train_cell(PlannedRun(variant=variant, seed=0, place=place), bench, folder, notes).folder


def answer_questions(
    table: Table,
    bench: Bench,
    folder: Path,
    seeds: int,
    notes: Notes,
    *,
    share: tuple[int, int] = (0, 1),
    cache: Path | None = None,
) -> list[Path]:
    """Train and test every row with every seed, and write NAME.md and NAME.json.

    Args:
        table: a table of this kind.
        bench: the data of a plan, which has questions.
        folder: gets the page, and ``runs``, in which finished runs are kept.
        seeds: runs of each row.
        notes: hears how far the work is.
        share: first run and step of those that are made; no page is written of a part of them.
        cache: folder of encoded features; None is one in the user's cache folder.

    Raises:
        SureshotError: the questions cannot be read, a setting is wrong, or a number is not finite.
    """
    kept = folder / "runs"
    kept.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict[str, Any]]] = {}
    first, step = share
    wanted = [(variant, seed) for seed in range(seeds) for variant in table.variants]
    for variant, seed in wanted[first::step]:
        notes.line(f"{table.name}: {variant.name}, seed {seed}")
        made = _run(variant, seed, bench, kept, cache, notes)
        rows.setdefault(variant.name, []).append(made)
    if step > 1:
        return []
    numbers = folder / f"{table.name}.json"
    write_json(numbers, rows)
    page = folder / f"{table.name}.md"
    write_text(page, "\n".join(_page(table, rows)))
    return [page, numbers]


def _run(
    variant: Variant, seed: int, bench: Bench, kept: Path, cache: Path | None, notes: Notes
) -> dict[str, Any]:
    """The report of one run as plain values, made now or before."""
    plan, name = bench.plan, QUESTIONS
    train, val, test = bench.questions()
    training = plan.settings("training", variant.system, name)
    encoder = bench.placed(plan.settings("encoder", variant.system, name))
    recipe = AnswerRecipe(
        train=train,
        val=val,
        encoder=encoder,
        stem=plan.settings("stem", variant.system, name),
        system=plan.system(variant.system, name),
        # Every question is asked in each epoch, as of `AnswerRecipe`.
        training=replace(training, captions="all", seed=seed),
    )
    parts = [
        recipe.to_dict(),
        bench.encoder(encoder).fingerprint,
        code_digest((str(variant.system["name"]),), starts=ANSWERING),
    ]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
    record, place = kept / f"{key}.json", kept / f"{key}.run"
    if not record.exists():
        fitted = train_answers(recipe, to=place, resume=True, cache=cache, progress=notes)
        found = evaluate_answers(
            fitted.folder,
            test.root,
            split=test.split,
            videos=test.videos,
            ids=test.ids,
            label=test.label,
            device=encoder.device,
            cache=cache,
            progress=notes,
        )
        write_json(record, found.to_dict())
        shutil.rmtree(place, ignore_errors=True)
    values: dict[str, Any] = read_json(record)
    return values


def _page(table: Table, rows: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    first = next(iter(rows.values()))[0]
    lines = [
        f"# {table.title}",
        "",
        f"Tested once on {first['title']}; encoder `{first['encoder']}`, {first['frames']} frames, "
        f"{first['vocabulary']} answers known; a question whose answer is not among them counts as "
        "wrong. Mean and standard deviation over the seeds, in percent.",
        "",
        "| | accuracy | most frequent answer | paper (other protocol) |",
        "|---|---|---|---|",
    ]
    for variant in table.variants:
        made = rows[variant.name]
        right = spread([one["overall"]["value"] for one in made])
        constant = made[0]["constant"]["value"]
        lines.append(f"| {variant.name} | {right} | {constant:.1f} | {variant.paper} |")
    ours = {variant.method for variant in table.variants}
    others = [row for row in published_answers() if row.method not in ours]
    named = ", ".join(f"{row.method} {row.accuracy}" for row in others)
    lines += ["", f"Printed too, of systems that are not here: {named}.", ""]
    lines += [f"The paper's column is another protocol ({table.protocol}).", ""]
    return lines


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Tables that were run.

    Attributes:
        runs: the runs of each page, by its name; those of a part if only a part was asked for.
            A table on several data sets has a page for each, such as ``duq-2-didemo``.
        files: pages, numbers and pictures that were written; none of a part.
        notes: what could not be run, and which files it lacks.
    """

    runs: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Call:
    """What was asked for; the fields are arguments of `reproduce`."""

    bench: Bench
    plan: Path
    folder: Path
    seeds: int
    part: str | None
    cache: Path | None
    notes: Notes


def reproduce(
    table: str,
    plan: str | Path | None = None,
    *,
    to: str | Path = "results",
    seeds: int = 3,
    part: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Make a table or figure of a paper again: every row with several seeds, tested once.

    Finished runs are kept in the folder ``runs`` below ``to``, so a call that was stopped goes on.
    A run is made again when its recipe, its data, its encoder or the code that makes it has
    changed, see `sureshot.research.reproduction.runs`. Where the plan trains the encoder too
    (``encoder.tuned``), no features are kept, a run that was stopped goes on where its state was
    saved, and its checkpoint is gone once it is tested. A figure is drawn of one model, whose
    checkpoint stays in ``models`` below ``to``.

    Args:
        table: a name of `sureshot.research.reproduction.reproduce.exhibits`; ``all`` is every table
            that the plan has data for.
        plan: TOML file that names the data, the encoder and the training; ``uatvr-2`` needs none.
        to: folder of the pages and of finished runs.
        seeds: runs of each row; a figure is drawn of the first.
        part: share of the runs to make, such as ``1/2``, the first of two; then no page is written.
        cache: folder of encoded features; None is one in the user's cache folder.
        progress: hears how far the work is, and what cannot be run.

    Raises:
        ArgumentError: the part is none, or a plan is wanted and there is none.
        SureshotError: no such table, something is wrong with the plan, its data are not there (the
            message says which files go where), or a number is not finite.
    """
    figure = load_figures().get(table)
    tables = list(load_tables().values()) if table == "all" else []
    if figure is None and table != "all":
        tables = [find_table(table)]
    if [one.kind for one in tables] == ["costs"]:
        return Reproduction(files=tuple(write_costs(Path(to), tables[0])))
    _share(part)
    if plan is None:
        raise ArgumentError(f"Name the data and the training with {option('plan', 'FILE')}.")
    path, notes = Path(plan), Notes(progress or Silent())
    bench = Bench(read_plan(path), path.absolute().parent, cache=cache, progress=notes)
    call = _Call(
        bench=bench, plan=path, folder=Path(to), seeds=seeds, part=part, cache=cache, notes=notes
    )
    if figure is not None:
        files = draw_figure(figure, bench, call.folder, cache=cache, notes=notes)
        return Reproduction(files=tuple(files), notes=tuple(notes.lines))
    runs: dict[str, tuple[Run, ...]] = {}
    pages: list[Path] = []
    for one in tables:
        try:
            made, written = _make(one, call)
        except _MissingError as error:
            if table != "all":
                raise
            notes.line(f"{one.name}: {error}")
        else:
            runs |= made
            pages += written
    return Reproduction(runs=runs, files=tuple(pages), notes=tuple(notes.lines))


class _MissingError(SureshotError):
    """The plan has no data for a table."""


def _make(table: Table, call: _Call) -> tuple[dict[str, tuple[Run, ...]], list[Path]]:
    """The runs of each page of a table, and the files of the pages.

    Raises:
        SureshotError: its data are not there, or as for `reproduce`.
    """
    if table.kind == "costs":
        return {}, [] if call.part else write_costs(call.folder, table)
    if table.kind == "answers":
        if missing := question_gap(call.bench):
            raise _MissingError(" ".join(missing))
        arguments = call.bench, call.folder, call.seeds, call.notes
        share = _share(call.part)
        return {}, answer_questions(table, *arguments, share=share, cache=call.cache)
    places, missing = places_of(table, call.bench)
    if not places:
        raise _MissingError(" ".join(missing))
    for sentence in missing:
        call.notes.line(f"{table.name}: {sentence}")
    runs, files = {}, []
    for place in places:
        several = len(table.data) > 1 and place.name != HOME
        page = replace(table, name=f"{table.name}-{place.name}") if several else table
        made = _runs(page, place, call)
        runs[page.name] = tuple(made)
        if call.part is None:
            command = f"sureshot reproduce {table.name} --plan {call.plan} --seeds {call.seeds}"
            kept = _keep_ranks(page.name, made, call.folder)
            facts = _facts(command, table, place, call.bench)
            more = _second_lines(kept, call.bench.placed(place.world).unshared)
            files += [*write_page(call.folder, page, made, facts, more), *kept]
    return runs, files


def _keep_ranks(name: str, runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the ranks of the runs of a table into one file."""
    held = {
        (run.variant, run.seed): read_run_ranks(folder / "runs" / f"{run.key}.npz")
        for run in runs
        if run.key
    }
    if not held:
        return []
    path = folder / f"{name}.npz"
    write_table_ranks(path, held)
    return [path]


def _second_lines(kept: Sequence[Path], unshared: Path | None) -> list[str]:
    """The second line of each row, from the ranks that were kept; none without a file of ids."""
    if unshared is None or not kept:
        return []
    ranks = next(iter(read_table_ranks(kept[0]).values()))
    return second_lines(ranks, read_lines(unshared))


def _runs(table: Table, place: Place, call: _Call) -> list[Run]:
    first, step = _share(call.part)
    kept = call.folder / "runs"
    kept.mkdir(parents=True, exist_ok=True)
    wanted = cells(place.rows(table), place, call.seeds)[first::step]
    made = []
    for number, cell in enumerate(wanted):
        more = f", {table.name}: {cell.variant.name}, seed {cell.seed}"
        call.notes.update("runs", number, len(wanted), more)
        made.append(perform(cell, call.bench, kept, call.notes))
    return made


def _facts(command: str, table: Table, place: Place, bench: Bench) -> Facts:
    """How a page was made."""
    cell = PlannedRun(variant=table.variants[0], seed=0, place=place)
    titles, root = titles_of(cell, bench), bench.splits(place.world).test.root
    encoders = [
        bench.plan.settings("encoder", variant.system, place.name) for variant in table.variants
    ]
    trained = [encoder.tuned for encoder in encoders]
    how = "trained too" if all(trained) else "frozen" if not any(trained) else "trained in part"
    return Facts(
        command=command,
        train=titles[0][0],
        val=titles[0][1],
        tests=[part[-1] for part in titles],
        encoder=encoders[0].name,  # as the plan names it, not where that lies
        training=_training(bench.plan),
        encoder_is=how,
        data=[place.name, *(name for name, _ in place.elsewhere)],
        options={} if root is None else to_values(read_part(root, "test").options),
    )


def _training(plan: Plan) -> str:
    """The training of a plan in words."""
    training, stem = plan.training.for_encoder(plan.encoder), plan.stem
    which = "one random caption" if training.captions == "one" else "all captions"
    first = f"stem width {stem.width}, " if stem.kind == "linear" else ""
    cases = "; for some systems otherwise, see the plan" if plan.cases else ""
    return (
        f"{first}{counted(training.epochs, 'epoch')} with {which} of each video, "
        f"batch {training.batch}, rate {training.rate:g}{cases}"
    )


def _share(part: str | None) -> tuple[int, int]:
    """First run and step of a share such as 1/2, counted from 1."""
    if part is None:
        return 0, 1
    number, slash, count = part.partition("/")
    whole = bool(slash) and number.isdecimal() and count.isdecimal()
    if not whole or not 1 <= int(number) <= int(count):
        raise ArgumentError(
            f"{option('part', part)} is no part; write it as 1/2, the first of two parts."
        )
    return int(number) - 1, int(count)


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
    training = recipe.training.for_encoder(recipe.encoder)
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

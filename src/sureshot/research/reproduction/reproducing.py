"""Tables and figures of papers made again, from a plan to their pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sureshot.datasets.annotation import read_lines
from sureshot.datasets.made import read_part
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.reproduction.answers import answer_questions
from sureshot.research.reproduction.bench import HOME, Bench, Plan, read_plan
from sureshot.research.reproduction.costs import write_costs
from sureshot.research.reproduction.drawing import draw_figure
from sureshot.research.reproduction.needs import Place, places_of, question_gap
from sureshot.research.reproduction.page import Facts, write_page
from sureshot.research.reproduction.ranks import (
    read_run_ranks,
    read_table_ranks,
    write_table_ranks,
)
from sureshot.research.reproduction.runs import PlannedRun, Run, cells, perform, titles_of
from sureshot.research.reproduction.second_line import second_lines
from sureshot.research.reproduction.tables import Table, find_table, load_figures, load_tables
from sureshot.settings import to_values
from sureshot.text import counted


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
    listener: Listener | None = None,
) -> Reproduction:
    """Make a table or figure of a paper again: every row with several seeds, tested once.

    Finished runs are kept in the folder ``runs`` below ``to``, so a call that was stopped goes on.
    A run is made again when its recipe, its data, its encoder or the code that makes it has
    changed, see `sureshot.research.reproduction.code`. Where the plan trains the encoder too
    (``encoder.tuned``), no features are kept, a run that was stopped goes on where its state was
    saved, and its checkpoint is gone once it is tested. A figure is drawn of one model, whose
    checkpoint stays in ``models`` below ``to``.

    Args:
        table: a name of `sureshot.research.reproduction.exhibits.exhibits`; ``all`` is every table
            that the plan has data for.
        plan: TOML file that names the data, the encoder and the training; ``uatvr-2`` needs none.
        to: folder of the pages and of finished runs.
        seeds: runs of each row; a figure is drawn of the first.
        part: share of the runs to make, such as ``1/2``, the first of two; then no page is written.
        cache: folder of encoded features; None is one in the user's cache folder.
        listener: hears how far the work is, and what cannot be run.

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
    path, notes = Path(plan), Notes(listener or Silence())
    bench = Bench(read_plan(path), path.absolute().parent, cache=cache, told=notes.encoded)
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
        dials={} if root is None else to_values(read_part(root, "test").dials),
    )


def _training(plan: Plan) -> str:
    """The training of a plan in words."""
    training, stem = plan.training.beside(plan.encoder), plan.stem
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

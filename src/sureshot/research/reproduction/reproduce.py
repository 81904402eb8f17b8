"""Tables and figures of the papers reproduced, from a plan to their pages."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sureshot.datasets.annotation import read_lines
from sureshot.datasets.questions import SIZES
from sureshot.datasets.synthetic import read_part
from sureshot.errors import ArgumentError, NotFiniteError, SureshotError, option
from sureshot.files import write_json, write_text
from sureshot.metrics.published import claimed_rows, published_answers
from sureshot.paths import WHOLE, Shard, expand
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.answer_report import evaluate_answers
from sureshot.research.answers import AnswerRecipe, train_answers
from sureshot.research.evaluation import published_split
from sureshot.research.figures.catalogue import plot
from sureshot.research.reproduction.page import (
    Facts,
    spread,
    unshared_lines,
    write_costs,
    write_page,
)
from sureshot.research.reproduction.plan import (
    HOME,
    QUESTIONS,
    Plan,
    PlanData,
    QuestionSplits,
    Table,
    Target,
    Variant,
    find_table,
    load_tables,
    reads_experts,
    titles_of,
)
from sureshot.research.reproduction.runs import (
    RUNS,
    PlannedRun,
    Run,
    RunRanks,
    digest,
    kept_captions,
    perform,
    planned_runs,
    read_ranks,
    train_run,
    unpack_runs,
    write_ranks,
)
from sureshot.research.training.distributed import broadcast, from_torchrun, rank, world
from sureshot.research.training.run import dry_run, first_notes
from sureshot.settings import read_json, to_values
from sureshot.text import counted, duration, plain


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Tables and figures that were reproduced.

    Attributes:
        runs: the runs of each page, by its name; those of a part if only a part was asked for.
            A table on several data sets has a page for each, such as ``duq-2-didemo``.
        files: pages, numbers and pictures that were written; none of a part.
        notes: what could not be run, and which files it lacks.
    """

    runs: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def reproduce(
    table: str,
    plan: str | Path | None = None,
    *,
    to: str | Path = "results",
    seeds: int = 3,
    claims: bool = False,
    part: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce a table or figure of a paper: every row with several seeds, tested once.

    Processes that torchrun started train each run together. Finished runs are kept in the folder
    ``runs`` below ``to``, so a call that was stopped goes on, and in the NAME.npz of their page.
    A run is made again when its recipe, its data, its encoder or the version of Sureshot has
    changed. Of runs that diverge the others are kept, and with ``all`` the other tables are made.
    A figure is drawn of one model, whose checkpoint stays in ``models`` below ``to``.

    Args:
        table: a name of `exhibits`; ``all`` is every table that the plan has data for.
        plan: TOML file that names the data, the encoder and the training; ``uatvr-2`` needs none.
        to: folder of the pages and of finished runs.
        seeds: runs of each row; a figure is drawn of the first.
        claims: whether to run only the rows that claims of the papers compare, the shortest way to
            verdicts; the others are missing from the page until a call without it.
        part: share of the runs to make, such as ``1/2``, the first of two; then no page is written.
        cache: folder of encoded features; None is one in the user's cache folder.
    """
    tables = _tables(table, claims=claims)
    share = WHOLE if part is None else Shard.parse(part, "part")
    if [one.kind for one in tables] == ["costs"]:
        return Reproduction(files=tuple(write_costs(expand(to), tables[0])))
    path = _required(plan)
    runs: dict[str, tuple[Run, ...]] = {}
    files: list[Path] = []
    diverged: list[str] = []
    with from_torchrun():
        notes = first_notes(progress)
        if rank() == 0:
            unpack_runs(expand(to))
        work = _Reproducer(
            PlanData(path, cache=cache, claims=claims), path, expand(to), seeds, share, notes
        )
        for one in tables:
            try:
                files += work.make(one, runs)
            except (_MissingDataError, NotFiniteError) as error:
                if table != "all":
                    raise
                notes.line(f"{one.name}: {error}")
                diverged += [one.name] if isinstance(error, NotFiniteError) else []
    if diverged:
        raise NotFiniteError(
            f"Runs of {', '.join(diverged)} diverged; the other tables are in {plain(to)}."
        )
    return Reproduction(runs=runs, files=tuple(files), notes=tuple(notes.lines))


def _tables(name: str, *, claims: bool) -> list[Table]:
    every = [one for one in load_tables().values() if one.kind != "figure"]
    chosen = every if name == "all" else [find_table(name)]
    if not claims:
        return chosen
    if chosen := [one for one in chosen if claimed_rows(one.name)]:
        return chosen
    about = ", ".join(one.name for one in every if claimed_rows(one.name))
    raise SureshotError(
        f"No claim compares rows of {name}; leave out {option('claims')}, or take one of {about}."
    )


def _required(plan: str | Path | None) -> Path:
    if plan is None:
        raise ArgumentError(f"Name the data and the training with {option('plan', 'FILE')}.")
    return expand(plan)


class _MissingDataError(SureshotError):
    """The plan has no data for a table."""


@dataclass(frozen=True, slots=True)
class _Reproducer:
    """One call of `reproduce`."""

    data: PlanData
    plan: Path
    folder: Path
    seeds: int
    part: Shard  # the share of the runs to make
    notes: Notes

    @property
    def writes(self) -> bool:
        """Whether this process writes pages."""
        return self.part.of == 1 and rank() == 0

    def make(self, table: Table, runs: dict[str, tuple[Run, ...]]) -> list[Path]:
        """Make a table or figure; its runs are added by page, its files are returned."""
        if table.kind == "costs":
            return write_costs(self.folder, table) if self.writes else []
        if table.kind == "answers":
            return self.answers(table)
        if table.kind == "figure" and not table.drawn:
            raise SureshotError(f"{table.title} is drawn by hand in the paper; nothing to run.")
        targets, missing = self.data.targets(table)
        if not targets:
            raise _MissingDataError(" ".join(missing))
        if table.kind == "figure":
            return self.figure(table, targets[0])
        for sentence in missing:
            self.notes.line(f"{table.name}: {sentence}")
        return self.recalls(table, targets, runs)

    def recalls(
        self, table: Table, targets: Sequence[Target], runs: dict[str, tuple[Run, ...]]
    ) -> list[Path]:
        """A page of a table for each data set."""
        files, lost = [], list[str]()
        for target in targets:
            several = len(table.data) > 1 and target.name != HOME
            page = replace(table, name=f"{table.name}-{target.name}") if several else table
            try:
                runs[page.name] = made = self.performed(page.name, table, target)
            except NotFiniteError as error:  # which costs the other data sets nothing
                if world() > 1:
                    raise
                lost.append(str(error))
                continue
            if self.writes:
                files += self.page(page, table, target, made)
        if lost:
            raise NotFiniteError(" ".join(lost))
        return files

    def performed(self, page: str, table: Table, target: Target) -> tuple[Run, ...]:
        """Make the runs of a page, those that can be made if some diverge."""
        made, lost = [], list[str]()
        wanted = _own(planned_runs(table, target, self.seeds, self.data), self.part)
        for number, one in enumerate(wanted):
            self.notes.update("runs", number, len(wanted), f", {page}: {one}")
            try:
                made.append(perform(one, self.folder / RUNS, self.notes))
            except NotFiniteError as error:
                if world() > 1:  # not all processes know of it
                    raise
                lost.append(f"{one}: {error}")
        if lost:
            raise NotFiniteError(
                f"{counted(len(lost), 'run')} of {len(wanted)} diverged, so {page} has no page; "
                f"the others are kept. {lost[0]}"
            )
        return tuple(made)

    def page(self, page: Table, table: Table, target: Target, runs: Sequence[Run]) -> list[Path]:
        """Write the page of a table, and the ranks of all its runs into one file."""
        _refuse_different_tests(runs, self.folder)
        ranks: dict[str, dict[tuple[str, int], RunRanks]] = {}
        ranked = []
        for run in runs:
            read = read_ranks(self.folder / RUNS / f"{run.key}.npz")
            for test, (one,) in ((test, of.values()) for test, of in read.items()):
                ranks.setdefault(test, {})[run.variant, run.seed] = one
            ranked += [run] if read else []  # a row of post-processed scores has none
        kept, more = self.folder / f"{page.name}.npz", list[str]()
        write_ranks(kept, ranks, ranked)
        if target.data.unshared is not None:
            ids = read_lines(self.data.resolve(target.data.unshared))
            more = unshared_lines(next(iter(ranks.values())), ids)
        splits, plan = self.data.splits(target.data), self.data.plan
        recipes = [run.recipe for run in planned_runs(table, target, 1, self.data)]
        trained = [recipe.encoder.tuned for recipe in recipes]
        how = "trained too" if all(trained) else "trained in part" if any(trained) else "frozen"
        root = splits.test.root
        facts = Facts(
            command=self.command(table.name),
            train=splits.train.title(),
            val=splits.val.title(),
            tests=runs[0].tests,
            encoder=", ".join(dict.fromkeys(recipe.encoder.name for recipe in recipes)),
            published=bool(plan.encoders) and all(map(published_split, self.data.tests(target))),
            training=_training_in_words(plan),
            encoder_is=how,
            chosen={recipe.training.keep for recipe in recipes} != {"last"},
            data=[target.name, *(name for name, _ in target.tested_on)],
            options={} if root is None else to_values(read_part(root, "test").options),
        )
        return [*write_page(self.folder, page, runs, facts, more), kept]

    def command(self, name: str) -> str:
        """What makes a page again, or goes on with it."""
        folder = "" if self.folder == Path("results") else f" {option('to', self.folder)}"
        claims = f" {option('claims', True)}" if self.data.claims else ""
        given = f"{option('plan', self.plan)}{folder} {option('seeds', str(self.seeds))}{claims}"
        return f"sureshot reproduce {name} {given}"

    def answers(self, table: Table) -> list[Path]:
        """Make the runs of the table about answers, and write NAME.md and NAME.json."""
        try:
            questions = self.data.questions()
        except SureshotError as error:
            raise _MissingDataError(str(error)) from None
        rows: dict[str, list[dict[str, Any]]] = {}
        wanted = [(variant, seed) for seed in range(self.seeds) for variant in table.variants]
        for variant, seed in wanted[self.part.number - 1 :: self.part.of]:
            self.notes.line(f"{table.name}: {variant.name}, seed {seed}")
            rows.setdefault(variant.name, []).append(self.answer_run(variant, seed, questions))
        if not self.writes:
            return []
        page, numbers = self.folder / f"{table.name}.md", self.folder / f"{table.name}.json"
        write_json(numbers, rows)
        asked = next(iter(rows.values()))[0]["overall"]["n"]
        published = bool(self.data.plan.encoders) and asked == SIZES["test"][0]
        write_text(page, "\n".join(_answers_page(table, rows, published=published)))
        return [page, numbers]

    def answer_run(self, variant: Variant, seed: int, questions: QuestionSplits) -> dict[str, Any]:
        """The report of one run as plain values, made now or before."""
        plan = self.data.plan
        encoder, stem, training = (
            plan.settings(name, variant.system, QUESTIONS)
            for name in ("encoder", "stem", "training")
        )
        encoder = replace(encoder, name=plan.encoders.get(variant.encoder, encoder.name))
        recipe = AnswerRecipe(
            train=questions.train,
            val=questions.val,
            encoder=self.data.resolve(encoder),
            stem=stem,
            system=plan.system(variant.system, QUESTIONS),
            # Every question is asked in each epoch.
            training=replace(training, captions="all", seed=seed),
        )
        asked = [one.load().digest() for one in (questions.train, questions.val, questions.test)]
        key = digest([recipe.to_dict(), self.data.fingerprint(encoder), asked])
        record = self.folder / "runs" / f"{key}.json"
        if not broadcast(record.exists()):
            place, cache = record.with_suffix(".run"), self.data.cache
            fitted = train_answers(recipe, to=place, resume=True, cache=cache, progress=self.notes)
            if rank() == 0:
                found = evaluate_answers(
                    fitted.folder,
                    **asdict(questions.test),
                    device=encoder.device,
                    cache=cache,
                    progress=self.notes,
                )
                write_json(record, found.to_dict())
                shutil.rmtree(place, ignore_errors=True)
            broadcast(None)  # all wait until the run is kept
        return read_json(record)

    def figure(self, figure: Table, target: Target) -> list[Path]:
        """Train the systems of a figure and write NAME.png and NAME.svg, on the test split."""
        if self.part.of > 1:
            raise ArgumentError(f"A figure is not made in parts; leave out {option('part')}.")
        first, *others = planned_runs(figure, target, 1, self.data)
        recipe, runs = first.recipe, [first]
        if figure.epochs:  # a model for each number of epochs
            training = recipe.training
            each = range(1, training.epochs + 1)
            trainings = [replace(training, epochs=count, keep="last") for count in each]
            runs = [replace(first, recipe=replace(recipe, training=one)) for one in trainings]
        models, compare_with = (list(map(self.checkpoint, some)) for some in (runs, others))
        if rank() > 0:
            return []
        test = asdict(self.data.resolve(target.data.test))
        if not reads_experts(recipe.system):
            test["experts"] = None
        drawn = plot(
            figure.drawn,
            models,
            test.pop("dataset"),
            **test,
            device=self.data.plan.encoder.device,
            to=[self.folder / f"{figure.name}{suffix}" for suffix in (".png", ".svg")],
            compare_with=compare_with[0] if compare_with else None,
            cache=self.data.cache,
            progress=self.notes,
        )
        return list(drawn.files)

    def checkpoint(self, run: PlannedRun) -> Path:
        """The folder of a model that stays, trained now or before."""
        folder = self.folder / "models" / f"{run.key}-{run.captions}"
        return train_run(run, folder, self.notes).folder


def _refuse_different_tests(runs: Sequence[Run], folder: Path) -> None:
    """Refuse to compare runs some of which were tested when not all videos could be read."""
    tests = {tuple(run.tests): run for run in runs if run.tests}
    if len(tests) > 1:
        (one, run), (other, another) = list(tests.items())[:2]
        record = folder / RUNS / f"{run.key}.json"
        raise SureshotError(
            f"Not all runs were tested on the same videos: {run.variant}, seed {run.seed}, on "
            f"{'; '.join(one)}, but {another.variant}, seed {another.seed}, on {'; '.join(other)}. "
            f"Delete what was made when some could not be read, such as {record}."
        )


def _training_in_words(plan: Plan) -> str:
    training, stem = plan.training.for_encoder(plan.encoder), plan.stem
    which = "one random caption" if training.captions == "one" else "all captions"
    first = f"stem width {stem.width}, " if stem.kind == "linear" else ""
    cases = "; for some systems otherwise, see the plan" if plan.cases else ""
    return (
        f"{first}{counted(training.epochs, 'epoch')} with {which} of each video, "
        f"batch {training.batch}, rate {training.rate:g}{cases}"
    )


def _answers_page(
    table: Table, rows: Mapping[str, list[dict[str, Any]]], *, published: bool
) -> list[str]:
    first = next(iter(rows.values()))[0]
    lines = [
        f"# {table.title}",
        "",
        f"Tested once on {first['title']}; encoder `{first['encoder']}`, {first['frames']} frames, "
        f"{first['vocabulary']} answers known; a question whose answer is not among them counts as "
        "wrong. Mean and standard deviation over the seeds, in percent.",
        "",
        f"| | accuracy | most frequent answer |{' paper |' if published else ''}",
        f"|---|---|---|{'---|' if published else ''}",
    ]
    for variant in table.variants:
        made = rows[variant.name]
        right = spread([one["overall"]["value"] for one in made])
        constant = made[0]["constant"]["value"]
        paper = f" {variant.paper} |" if published else ""
        lines.append(f"| {variant.name} | {right} | {constant:.1f} |{paper}")
    if not published:
        return [*lines, ""]
    ours = {variant.method for variant in table.variants}
    others = [row for row in published_answers() if row.method not in ours]
    named = ", ".join(f"{row.method} {row.accuracy}" for row in others)
    lines += ["", f"Printed too, of systems that are not here: {named}."]
    return [*lines, "", f"The paper's numbers: {table.protocol}.", ""]


# --- forecast -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableCost:
    """What one table would cost: steps and seconds of the runs that are not done."""

    name: str
    runs: int  # without those of earlier tables
    kept: int  # that are done
    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the tables that the plan has data for would cost; runs that they share count once.

    Attributes:
        missing: a sentence for each data set or kind of row that cannot be run.
    """

    tables: tuple[TableCost, ...]
    missing: tuple[str, ...] = ()

    def text(self) -> str:
        """A line for each table, the sum, and what cannot be run."""
        lines = [
            f"{one.name}: {one.runs - one.kept} of {one.runs} runs left, {one.steps:,} steps, "
            f"about {duration(one.seconds)}\n"
            for one in self.tables
        ]
        runs = counted(sum(one.runs - one.kept for one in self.tables), "run")
        steps = sum(one.steps for one in self.tables)
        time = duration(sum(one.seconds for one in self.tables))
        total = f"together: {runs}, {steps:,} steps, about {time} in one process\n"
        return "".join([*lines, total, *(f"{one}\n" for one in self.missing)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return to_values(self)


def _own(planned: Sequence[PlannedRun], share: Shard) -> list[PlannedRun]:
    """The runs of a share; rows that differ in post-processing alone are one run."""
    own = list(dict.fromkeys(run.key for run in planned))[share.number - 1 :: share.of]
    return [run for run in planned if run.key in own]


def forecast(
    table: str,
    plan: str | Path | None,
    *,
    to: str | Path = "results",
    seeds: int = 3,
    claims: bool = False,
    part: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Estimate the cost of a table by a dry run of each row, runs that tables share counted once.

    Arguments are those of `reproduce`.
    """
    share = WHOLE if part is None else Shard.parse(part, "part")
    data, kept = PlanData(_required(plan), cache=cache, claims=claims), kept_captions(expand(to))
    every: dict[str, tuple[str, PlannedRun]] = {}  # each run under the first table that has it
    missing: dict[str, None] = {}
    runs_somewhere = False  # though the share may have none of the runs
    for one in _tables(table, claims=claims):
        targets, lacking = data.targets(one) if one.kind == "recalls" else ([], _lacking(one, data))
        runs_somewhere |= bool(targets)
        missing |= dict.fromkeys(lacking)
        for target in targets:
            for run in _own(planned_runs(one, target, seeds, data), share):
                every.setdefault(run.key, (one.name, run))
    if missing and not runs_somewhere:
        raise SureshotError(" ".join(missing))
    costs: dict[str, Any] = {}  # of each table, by the names of `TableCost`
    rows: dict[str, list[tuple[str, PlannedRun]]] = {}  # their runs, which differ in their seeds
    for name, run in every.values():
        cost = costs.setdefault(name, {"runs": 0, "kept": 0, "steps": 0, "seconds": 0.0})
        cost["runs"] += 1
        if kept.get(run.key) in ("", run.captions):
            cost["kept"] += 1
            continue
        seedless = replace(run.recipe, training=replace(run.recipe.training, seed=0))
        rows.setdefault(digest(seedless.to_dict()), []).append((name, run))
    _add_dry_runs(list(rows.values()), costs, progress or Silent())
    tables = tuple(TableCost(name=name, **cost) for name, cost in costs.items())
    return Forecast(tables=tables, missing=tuple(missing))


def _lacking(table: Table, data: PlanData) -> Sequence[str]:
    """A sentence for what is missing of a table that is none of recalls."""
    missing = data.where(table)[1] if table.kind == "answers" else ()
    return missing or [f"{table.name}: time is estimated for tables of recalls alone."]


def _add_dry_runs(
    rows: Sequence[Sequence[tuple[str, PlannedRun]]], costs: Mapping[str, Any], progress: Progress
) -> None:
    """Add what runs cost, by a dry run of each row; what they share to the table that is first."""
    encoded = set[str]()
    for number, same in enumerate(rows):
        first, run = same[0]
        progress.update("rows measured", number, len(rows), f", {first}: {run.variant.name}")
        recipe, (_, _, *tests) = run.data.resolve(run.recipe), run.splits
        cost = dry_run(recipe, cache=run.data.cache, tests=tests)
        # A test takes as long as two validations: it is scored on the validation set as well.
        validated, steps = cost.validation * (cost.epochs + 2), cost.steps * cost.epochs
        for name, _ in same:
            costs[name]["steps"] += steps
            costs[name]["seconds"] += cost.seconds * steps + validated
        # Runs share a process, and the features of what they read.
        features = repr([recipe.encoder, recipe.train, run.target])
        costs[first]["seconds"] += 0.0 if encoded else cost.setup
        costs[first]["seconds"] += 0.0 if features in encoded else cost.encoding * cost.lacking
        encoded.add(features)


# --- all tables and figures -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A numbered table or figure.

    Attributes:
        name: what `reproduce` takes.
        kind: table or figure.
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
    kind: Literal["table", "figure"]
    title: str
    needs: str = ""
    drawn: str = ""
    can_run: bool = True
    where: tuple[str, ...] = ()
    lacks: str = ""
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return to_values(self)

    def line(self) -> str:
        """One line for a terminal, without the name."""
        if self.kind == "figure" and not self.drawn:
            return f"{self.title} (drawn by hand in the paper, nothing to run)"
        needs = f"; needs {self.needs}" if self.needs else "; needs no data"
        by = f"; drawn by {self.drawn}" if self.drawn else ""
        on = f"; runs on {', '.join(self.where)}" if self.where else ""
        gap = f"; the plan lacks {self.lacks}" if self.lacks else ""
        return f"{self.title}{needs}{by}{on}{gap}"


def exhibits(plan: str | Path | None = None) -> tuple[Exhibit, ...]:
    """Every numbered table of DUQ, UATVR and DVTR and every numbered figure, as they can be run.

    Table I of DVTR is its notation, table II the sizes of the data sets; neither has a result.

    Args:
        plan: TOML file that names the data; None says of none whether it is there. Missing data
            are no error.

    Examples:
        >>> from sureshot import research
        >>> [one.title for one in research.exhibits() if one.name == "dvtr-8"]
        ['DVTR, table VIII: on CE']
    """
    data = None if plan is None else PlanData(expand(plan))
    return tuple(_exhibit(one, data) for one in load_tables().values())


def _exhibit(table: Table, data: PlanData | None) -> Exhibit:
    can_run = table.kind != "figure" or bool(table.drawn)
    needs = titles_of(table.data)
    if table.name == "controls":
        needs = "any data set; rows that know the truth a synthetic one"
    elif "any" in table.tested_on:
        needs = "a data set of yours as [home], another as [away]"
    elif table.tested_on:
        needs += f", and {titles_of(table.tested_on)} to test on"
    where: Sequence[str] = ()
    missing: Sequence[str] = ()
    lacks = ""
    if data is not None and can_run and table.kind != "costs":
        where, missing = data.where(table)
        if HOME not in where:
            lacks = titles_of([name for name in table.data if name not in where])
        can_run = bool(where)
    return Exhibit(
        name=table.name,
        kind="figure" if table.kind == "figure" else "table",
        title=table.title,
        needs=needs,
        drawn=table.drawn,
        can_run=can_run,
        where=tuple(where),
        lacks=lacks,
        missing=tuple(missing),
    )

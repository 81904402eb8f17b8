"""What to reproduce and on what: the tables of the papers, and a plan that names the data."""

import difflib
import functools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import SureshotError, option
from sureshot.metrics.published import claimed_rows, rows_of_table
from sureshot.models.encoders import load_encoder
from sureshot.models.model import StemConfig
from sureshot.models.systems.base import find_system, known_systems
from sureshot.research.answers import QuestionRecipe, ValidationQuestions
from sureshot.research.training.recipe import (
    EncoderRecipe,
    Recipe,
    SplitRecipe,
    TrainingConfig,
    ValidationRecipe,
    read_toml,
    resolve_paths,
)
from sureshot.settings import build, to_values
from sureshot.text import counted

_T = TypeVar("_T")
QUESTIONS = "msrvtt_qa"  # data of the table about answers
HOME, AWAY = "home", ""  # data that stand in for those of a paper, and for those also tested on


# --- tables.toml, which explains its columns: the fields of these classes -------------------------

Metric = Literal["R@1", "rsum", "geometric mean"]
EncoderKind = Literal["", "B32", "B16", "experts"]
_SHOWN = {"B32": "B/32", "B16": "B/16", "experts": "experts"}
_RECALLS = ("R@1", "R@5", "R@10")


@dataclass(frozen=True, slots=True)
class PaperData:
    """A data set of the papers."""

    title: str
    files: str
    settings: str = ""
    hold_out: bool = False
    printed: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table, or one model of a figure."""

    name: str
    system: Mapping[str, Any]
    printed: tuple[str, ...] = ()
    method: str = ""
    encoder: EncoderKind = ""
    trained_as: Mapping[str, Any] = field(default_factory=dict)
    frames: int | None = None
    control: bool = False
    width: int | None = None
    paper: str = ""
    post: Literal["", "DSL"] = ""

    @property
    def trained_system(self) -> Mapping[str, Any]:
        """The system whose training it gets."""
        if not self.trained_as:
            return self.system
        return {**self.trained_as, "base": self.system}


@dataclass(frozen=True, slots=True)
class Table:
    """A table or figure of a paper."""

    name: str
    title: str
    variants: tuple[Variant, ...] = ()
    kind: Literal["recalls", "answers", "costs", "figure"] = "recalls"
    data: tuple[str, ...] = ()
    stand_in: bool = True
    table: str = ""
    method: str = ""
    encoder: EncoderKind = ""
    protocol: str = ""
    metric: Metric = "R@1"
    tested_on: tuple[str, ...] = ()
    option: str = ""
    compared: tuple[tuple[str, str, str], ...] = ()
    drawn: str = ""
    epochs: bool = False


@functools.cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text("utf-8"))


@functools.cache
def load_datasets() -> Mapping[str, PaperData]:
    """The data sets of the papers, by the name of a plan."""
    return {name: build(PaperData, values) for name, values in _read()["datasets"].items()}


@functools.cache
def load_tables() -> Mapping[str, Table]:
    """All tables and then all figures, by name."""
    tables = {}
    for values in _read()["tables"]:
        usual = {name: values.get(name, "") for name in ("method", "encoder")}
        rows = [
            {**usual, **row, "system": settings_of(row["system"])}
            for written in values.get("rows", ())
            for row in _of_each_encoder(written)
        ]
        own = {name: value for name, value in values.items() if name != "rows"}
        tables[values["name"]] = build(Table, {**own, "variants": rows})
    return tables


def _of_each_encoder(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row of the file once for each of its ``encoders``, its ``printed`` as a list."""
    rest = dict(row)
    kinds = rest.pop("encoders", None)
    if isinstance(rest.get("printed"), str):
        rest["printed"] = [rest["printed"]]
    if not kinds:
        return [rest]
    return [{**rest, "name": f"{row['name']}, {_SHOWN[kind]}", "encoder": kind} for kind in kinds]


def find_table(name: str) -> Table:
    """The table or figure of this name."""
    tables = load_tables()
    if name not in tables:
        near = difflib.get_close_matches(name, tables, n=1)
        meant = f"did you mean {near[0]}?" if near else f"{option('list')} shows all of them."
        raise SureshotError(f"There is no table or figure {name!r}; {meant}")
    return tables[name]


def settings_of(system: str | Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a system, from a name of ``[systems]`` or settings that start ``like`` one.

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
    """What a table prints, from the scores of a run in percent; ``prefix`` begins their names.

    ``rsum`` is the sum of the six recalls of both directions, the geometric mean that of R@1, R@5
    and R@10 from text to video.
    """
    texts = [scores[prefix + name] for name in _RECALLS]
    if metric == "R@1":
        return texts[0]
    if metric == "geometric mean":
        return float((texts[0] * texts[1] * texts[2]) ** (1 / 3))
    return sum(texts) + sum(scores[f"{prefix}v2t {name}"] for name in _RECALLS)


def titles_of(data: Sequence[str]) -> str:
    """Data sets in words, such as ``DiDeMo and VATEX``; nothing for none."""
    *first, last = [load_datasets()[name].title for name in data] or [""]
    return f"{', '.join(first)} and {last}" if first else last


# --- a plan ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FinalRecipe(SplitRecipe):
    """The split that a table is tested on, once."""

    split: str = "test"


class Splits(NamedTuple):
    """The three parts of a data set, read."""

    train: Split
    val: Split
    test: Split


@dataclass(frozen=True, slots=True)
class DatasetSplits:
    """One data set in three parts: trained on, chosen on, tested on once.

    ``unshared`` has the ids of those test videos that share no upload with a training video; they
    get a table of their own on every page.
    """

    train: SplitRecipe
    test: FinalRecipe
    val: ValidationRecipe | None = None
    hold_out: int = 0  # training videos to choose on in place of ``val``, the same for all seeds
    unshared: Path | None = None

    def __post_init__(self) -> None:
        if (self.val is None) == (self.hold_out == 0):
            raise SureshotError(
                f"A {self.train.dataset} of the plan needs either val or hold_out, the number of "
                "training videos to choose an epoch on."
            )

    def load(self) -> Splits:
        """Read all three parts, which share no video."""
        system = {"name": "none"}  # a recipe has one; only its data sets are read
        recipe = Recipe(train=(self.train,), system=system, val=self.val, hold_out=self.hold_out)
        (train,), val = recipe.splits()
        assert val is not None
        test = self.test.load()
        for part in (train, val):
            check_disjoint(part, test)
        return Splits(train, val, test)


@dataclass(frozen=True, slots=True)
class FinalQuestions(QuestionRecipe):
    """The questions that a table is tested on, once."""

    split: str = "test"


@dataclass(frozen=True, slots=True)
class QuestionSplits:
    """Questions about videos, in three parts."""

    train: QuestionRecipe
    val: ValidationQuestions
    test: FinalQuestions


@dataclass(frozen=True, slots=True)
class Override:
    """Settings of some of the runs; of several that apply to a run, a later one wins.

    Attributes:
        recipe: recipe whose settings are taken where none are given here. Without ``systems`` it
            is about the recipe's own, without ``data`` about the data set of the plan that it
            trains on, whose reading (``protocol``) it then decides.
        settings: settings of these systems, also where another one is built on them. A row's own
            win over them, and a row of another ``mode`` takes none of them.
    """

    systems: tuple[str, ...] = ()  # it is about; ``dvtr+hit`` is DVTR on HiT; none are all
    data: tuple[str, ...] = ()  # as in the plan's ``[data]``; none are all
    recipe: Path | None = None
    protocol: str | None = None  # of what is trained on; None is that of ``[data]``
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)  # in place of those of ``[encoder]``
    stem: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A file for ``sureshot reproduce``.

    One that begins with ``like = "other.toml"`` takes over what that plan in the same folder says
    and it does not say itself; its cases come after those of the other.

    Attributes:
        encoders: names of the encoders that rows of the papers are on: of ``B32`` and ``B16``, CLIP
            ViT with patches of 32 and 16 pixels, and of ``experts``, what reads texts next to
            features of experts. A row on one that is not named is left out. Without any all rows
            are on that of ``encoder``, and those that differ in it alone are one.
    """

    home: DatasetSplits | None = None  # for tables whose own data set is not in ``data``
    away: DatasetSplits | None = None  # another one, for tables about transfer
    data: Mapping[str, DatasetSplits] = field(default_factory=dict)  # by name in tables.toml
    questions: QuestionSplits | None = None
    encoders: Mapping[EncoderKind, str] = field(default_factory=dict)
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)  # its seed is replaced
    cases: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        papers = load_datasets().keys() - {QUESTIONS}
        _check_names("data", self.data, papers)
        for number, case in enumerate(self.cases):
            systems = {name for label in case.systems for name in label.split("+")}
            _check_names(f"cases.{number}.systems", systems, known_systems())
            _check_names(f"cases.{number}.data", case.data, {*papers, HOME, QUESTIONS})
            base = case.settings.get("base", {})
            if not isinstance(base, Mapping):
                raise SureshotError(
                    f"Setting cases.{number}.settings.base is {base!r:.80}; it must be a table."
                )
            if "name" in case.settings or "name" in base:
                raise SureshotError(
                    f"Setting cases.{number}.settings names a system, and rows keep theirs; "
                    f"say which with cases.{number}.systems."
                )
            for name in ("encoder", "stem", "training"):
                whole, part = getattr(self, name), getattr(case, name)
                build(type(whole), {**to_values(whole), **part}, f"cases.{number}.{name}")

    def cases_about(self, system: Mapping[str, Any], data: str) -> list[Override]:
        """The cases that are about runs of a system on a data set."""
        name, base = system["name"], system.get("base")
        label = f"{name}+{base['name']}" if isinstance(base, Mapping) else name
        return [
            case
            for case in self.cases
            if (not case.systems or {name, label} & set(case.systems))
            and (not case.data or data in case.data)
        ]

    def system(self, settings: Mapping[str, Any], data: str) -> dict[str, Any]:
        """The settings of a row's system, with those of the cases, and so of its base."""
        base, own = settings.get("base"), dict(settings)
        cases: dict[str, Any] = {}
        of_base: dict[str, Any] = {}
        for case in self.cases_about(settings, data):
            given = dict(case.settings)
            of_base |= given.pop("base", {})
            if "mode" not in given or own.get("mode", given["mode"]) == given["mode"]:
                cases |= given
        if isinstance(base, Mapping):
            own["base"] = {**self.system(base, data), **of_base, **base}
        return cases | own

    def protocol(self, system: Mapping[str, Any], data: str) -> str | None:
        """The reading of a data set that a system is trained on; None is that of ``[data]``."""
        named = [case.protocol for case in self.cases_about(system, data) if case.protocol]
        return named[-1] if named else None

    def settings(self, name: str, system: Mapping[str, Any], data: str) -> Any:
        """``encoder``, ``stem`` or ``training`` as it is for a system on a data set."""
        whole = getattr(self, name)
        values = to_values(whole)
        for case in self.cases_about(system, data):
            values |= getattr(case, name)
        return build(type(whole), values, name)


def reads_experts(system: Mapping[str, Any]) -> bool:
    """Whether a system, or the one that it is put on, reads features of experts."""
    settings = system.get("base", system)
    kind = find_system(str(settings["name"]))
    return kind is not None and (kind.reads_experts or bool(settings.get("experts")))


def _check_names(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    unknown = set(names) - set(known)
    if unknown:
        raise SureshotError(
            f"Setting {key} names {min(unknown)!r:.80}; known: {', '.join(sorted(known))}."
        )


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file."""
    values, folder = _with_like(path), path.absolute().parent
    cases = values.get("cases")
    if isinstance(cases, list):
        plan = build(Plan, {**values, "cases": []})
        named = [(f"cases.{number}", case) for number, case in enumerate(cases)]
        values["cases"] = [one for key, case in named for one in _included(case, key, plan, folder)]
    return build(Plan, values)


def _with_like(path: Path, earlier: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of a plan and of the one that it is like."""
    values = read_toml(path, "plan")
    name = values.pop("like", None)
    if name is None:
        return values
    if not isinstance(name, str) or Path(name).name != name or name in (*earlier, path.name):
        raise SureshotError(
            f"Setting like of {path.name} is {name!r:.80}; name another plan of the same folder."
        )
    start = _with_like(path.with_name(name), (*earlier, path.name))
    before, own = start.get("cases"), values.get("cases")
    if isinstance(before, list) and isinstance(own, list):
        values["cases"] = [*before, *own]
    return start | values


def _included(case: Any, key: str, plan: Plan, folder: Path) -> list[Any]:
    """A case, with what the recipe says that it names; one for each system that it is about."""
    if not isinstance(case, Mapping) or "recipe" not in case:
        return [case]
    read = build(Override, case, key)
    path = folder / case["recipe"]
    recipe, written = Recipe.load(path), read_toml(path)
    settings = dict(written["system"])
    name, base = settings.pop("name"), dict(settings.pop("base", {}))
    named = base.pop("name", "")
    of = {name: settings | ({"base": base} if base else {}), named: base}
    label = f"{name}+{named}" if named else name
    first = recipe.train[0]
    alike = [known for known, one in plan.data.items() if one.train.dataset == first.dataset]
    read_as = (first.protocol, None)
    about = list(read.data) or [one for one in alike if plan.data[one].train.protocol in read_as]
    if not about:
        raise SureshotError(
            f"The plan has no data for the recipe {path.name}, which is about {first.dataset}; "
            "name some of [data] as data of this case, or leave it out."
        )
    given: dict[str, Any] = {"data": about}
    for part, without in (("encoder", "name"), ("stem", ""), ("training", "seed")):
        taken = {name: value for name, value in written.get(part, {}).items() if name != without}
        given[part] = taken | getattr(read, part)
    if first.protocol and {*about} <= {*alike}:
        given["protocol"] = first.protocol
    cases = []
    for system in read.systems or [label]:
        # Settings of the recipe's own system, or of its base, or none at all.
        own_name, _, on = system.partition("+")
        own = dict(of.get(own_name, {}))
        if on != named:
            own.pop("base", None)
        cases.append({**case, **given, "systems": [system], "settings": {**own, **read.settings}})
    return cases


# --- where a plan has the data of a table ---------------------------------------------------------


_Named = tuple[str, DatasetSplits]  # as the plan names it


@dataclass(frozen=True, slots=True)
class Target:
    """A data set that a table is run on, `HOME` where one stands in, and others it is tested on."""

    name: str
    data: DatasetSplits
    tested_on: tuple[_Named, ...] = ()


class PlanData:
    """The data of a plan, each read when a run first asks for it; ``claims`` as of `reproduce`."""

    def __init__(
        self, path: Path, *, cache: str | Path | None = None, claims: bool = False
    ) -> None:
        self.plan = read_plan(path)
        self.cache, self.claims = cache, claims
        self._folder = path.absolute().parent
        self._splits: dict[DatasetSplits, Splits] = {}
        self._fingerprints: dict[tuple[str, str | None], str] = {}

    def resolve(self, settings: _T) -> _T:
        """Settings of the plan with paths that start at its folder."""
        return resolve_paths(settings, self._folder)

    def fingerprint(self, recipe: EncoderRecipe) -> str:
        """The fingerprint of an encoder before it is trained."""
        named = self.resolve(recipe)
        key = named.name, named.device
        if key not in self._fingerprints:
            self._fingerprints[key] = load_encoder(*key).fingerprint
        return self._fingerprints[key]

    def splits(self, data: DatasetSplits) -> Splits:
        """The three parts of a data set; see `DatasetSplits.load`."""
        if data not in self._splits:
            self._splits[data] = self.resolve(data).load()
        return self._splits[data]

    def tests(self, target: Target) -> list[Split]:
        """The test sets of a target, that of the training's data first."""
        return [self.splits(one).test for one in (target.data, *(d for _, d in target.tested_on))]

    def recipe(self, variant: Variant, seed: int, target: Target) -> Recipe:
        """The recipe of a run: the plan's, with the settings of the row in place of its own."""
        trained_as = variant.trained_system
        encoder, stem, training = (
            self.plan.settings(name, trained_as, target.name)
            for name in ("encoder", "stem", "training")
        )
        if self.plan.system(trained_as, target.name).get("mode") == "paper" and variant.trained_as:
            # As printed, both passes of DVTR train the system that it is on.
            training = replace(training, epochs=2 * training.epochs)
        # Trained as another, it is the same without what is claimed to help.
        settings = {**trained_as, "uncertainty": "none"} if variant.trained_as else variant.system
        system = self.plan.system(settings, target.name)
        name, data = self._encoders(target).get(variant.encoder, encoder.name), target.data
        protocol = self.plan.protocol(trained_as, target.name)
        train, val = replace(data.train, protocol=protocol or data.train.protocol), data.val
        if not reads_experts(self.plan.system(variant.system, target.name)):
            train, val = replace(train, experts=None), val and replace(val, experts=None)
        return Recipe(
            train=(train,),
            val=val,
            hold_out=data.hold_out,
            system=system,
            encoder=replace(encoder, name=name, frames=variant.frames or encoder.frames),
            stem=replace(stem, width=variant.width or stem.width),
            training=replace(training, seed=seed),
        )

    def _encoders(self, target: Target) -> Mapping[EncoderKind, str]:
        """Names of the papers' encoders; none where other data stand in for theirs."""
        return {} if target.name == HOME else self.plan.encoders

    def rows(self, table: Table, target: Target) -> tuple[list[Variant], list[str]]:
        """The rows of a table that are run on a data set, and a sentence for each reason against.

        On a data set of the paper these are the rows whose numbers are printed for it, and those
        without printed numbers. Oracles are among them only where the truth is known. Of `claims`
        only the rows that one compares. In a plan that names the papers' encoders, a row without a
        recipe is left out.
        """
        knows = target.data.train.dataset == "synthetic"
        printed = () if target.name == HOME else rows_of_table(table.table)
        named = load_datasets()[target.name].printed if printed else ("", "")
        there = {(r.method, r.variant) for r in printed if (r.dataset, r.split) == named}
        encoders, found, missing = self._encoders(target), list[Variant](), dict[str, list[str]]()
        seen = set[str]()
        claimed = claimed_rows(table.name) if self.claims else set[str]()
        for row in table.variants:
            if self.claims and row.name not in claimed:
                continue
            without = row.printed and printed and not there & {(row.method, v) for v in row.printed}
            if without or (not knows and "oracle" in row.system.values()):
                continue
            if not encoders:  # rows that differ in it alone are one
                same = repr(replace(row, name=row.name.partition(", B/")[0], encoder=""))
                if same in seen:
                    continue
                seen.add(same)
            elif why := self._left_out(row, target, encoders):
                missing.setdefault(why, []).append(row.name)
                continue
            found.append(row)
        where = load_datasets()[target.name].title if missing else ""
        return found, [
            f"{counted(len(names), 'row')} left out on {where}, such as {names[0]!r}: {why}."
            for why, names in missing.items()
        ]

    def _left_out(self, row: Variant, target: Target, encoders: Mapping[EncoderKind, str]) -> str:
        """Why a row is not run on a data set of the paper; nothing if it is."""
        if row.encoder and row.encoder not in encoders:
            return f"[encoders] of the plan names no {row.encoder}"
        if row.encoder == "experts" and not reads_experts(
            self.plan.system(row.system, target.name)
        ):
            return "it reads no features of experts (HiT and PCME: those of their setting experts)"
        if row.encoder == "experts" and target.data.train.experts is None:
            return "the plan names no folder of their features as experts of each part"
        cases = self.plan.cases_about(row.trained_system, target.name)
        if not any(case.recipe for case in cases):
            return "no case of the plan has a recipe for it"
        return ""

    def targets(self, table: Table) -> tuple[list[Target], list[str]]:
        """The data sets that a table of recalls or a figure can be run on.

        And a sentence for each that is missing: which files, and where they go.
        """
        there, missing = self._readable(table.data)
        if not there and self.plan.home is not None and table.stand_in:
            # What is missing of the paper's own data does not matter then.
            there, missing = self._readable([HOME])
        elif not table.data:
            missing.append("The plan has no data of yours; give them as [home.train] and so on.")
        targets = []
        for name, data in there:
            others = [AWAY] if name == HOME and table.tested_on else table.tested_on
            tested_on, unread = self._readable(others, data)
            target = Target(name, data, tuple(tested_on))
            rows, left_out = self.rows(table, target)
            missing += unread + left_out
            if rows and (tested_on or not others):
                targets.append(target)
        return targets, missing

    def _readable(
        self, names: Sequence[str], trained: DatasetSplits | None = None
    ) -> tuple[list[_Named], list[str]]:
        """Those that can be read, their test videos apart from ``trained``, and why others not."""
        found, missing = [], []
        for name in names:
            data = {**self.plan.data, HOME: self.plan.home, AWAY: self.plan.away}.get(name)
            if data is None:
                missing.append(_absent(name))
                continue
            try:
                test = self.splits(data).test
            except SureshotError as error:
                missing.append(_unread(name, error))
                continue
            try:
                for part in self.splits(trained)[:2] if trained else ():
                    check_disjoint(part, test)
                found.append((name, data))
            except SureshotError as error:
                missing.append(str(error))
        return found, missing

    def where(self, table: Table) -> tuple[Sequence[str], list[str]]:
        """Names of the data sets that any table runs on, and a sentence for each one missing."""
        if table.kind != "answers":
            targets, missing = self.targets(table)
            return [target.name for target in targets], missing
        try:
            self.questions()
        except SureshotError as error:
            return [], [str(error)]
        return table.data, []

    def questions(self) -> QuestionSplits:
        """Where the questions to train, choose and test on come from; all can be read."""
        if self.plan.questions is None:
            raise SureshotError(_absent(QUESTIONS))
        found = self.resolve(self.plan.questions)
        try:
            for part in (found.train, found.val, found.test):
                part.load()
        except SureshotError as error:
            raise SureshotError(_unread(QUESTIONS, error)) from None
        return found


def _absent(name: str) -> str:
    if name == AWAY:
        return "This table needs a second data set; give it as [away.train] and so on."
    data, at = load_datasets()[name], "questions" if name == QUESTIONS else f"data.{name}"
    parts = f"[{at}.train], [{at}.val] and [{at}.test]"
    if data.hold_out:
        held = f"and hold_out = 500 in [{at}], as it has no validation set"
        parts = f"[{at}.train] and [{at}.test] ({held})"
    given = f"{data.settings} and " if data.settings else ""
    return (
        f"{data.title} is not in the plan. Put {data.files} into a folder, the videos below it, "
        f"and give it as {parts} with {given}root = the folder."
    )


def _unread(name: str, error: SureshotError) -> str:
    data = load_datasets().get(name)
    if data is None:
        return str(error)
    return f"{data.title} cannot be read: {error} It needs {data.files}, and the videos."

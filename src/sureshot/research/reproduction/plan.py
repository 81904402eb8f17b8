"""The data that tables are run on: a file that names them, and what a run reads of them."""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import SureshotError
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.encoders.experts import read_experts
from sureshot.models.model import StemConfig
from sureshot.models.systems.base import known_systems
from sureshot.progress import Progress
from sureshot.research.answers import QuestionRecipe, ValidationQuestions
from sureshot.research.features import FrameMemory, SplitFeatures, extract
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

_T = TypeVar("_T")
QUESTIONS = "msrvtt_qa"  # place of the table about answers
HOME = "home"  # place of a table that runs on data which stand in for the paper's


@dataclass(frozen=True, slots=True)
class FinalRecipe(SplitRecipe):
    """The split that a table is tested on, once."""

    split: str = "test"


@dataclass(frozen=True, slots=True)
class World:
    """One data set, in its three parts: trained on, chosen on, tested on once.

    Attributes:
        train: what is trained on.
        test: what is tested on.
        val: what an epoch is chosen on.
        hold_out: videos of the training set to choose on instead, the same for all seeds.
        unshared: file of the ids of those test videos that share no upload with a training video,
            one a line; they get a line of their own in every table. None for no such line.
    """

    train: SplitRecipe
    test: FinalRecipe
    val: ValidationRecipe | None = None
    hold_out: int = 0
    unshared: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a data set without anything to choose on."""
        if (self.val is None) == (self.hold_out == 0):
            raise SureshotError(
                f"A {self.train.dataset} of the plan needs either val or hold_out, the number of "
                "training videos to choose an epoch on."
            )

    def splits(self, folder: Path) -> "Splits":
        """Read all three parts.

        Args:
            folder: where relative paths start.

        Raises:
            SureshotError: one cannot be read, or two of them share videos.
        """
        named = resolve_paths(self, folder)
        system = {"name": "none"}  # a recipe has one; only its data sets are read
        recipe = Recipe(train=(named.train,), system=system, val=named.val, hold_out=named.hold_out)
        (train,), val = recipe.splits()
        if val is None:  # either val or hold_out is there
            raise SureshotError("There is nothing to choose an epoch on.")
        test = named.test.load()
        for part in (train, val):
            check_disjoint(part, test)
        return Splits(train, val, test)


@dataclass(frozen=True, slots=True)
class DataSets:
    """The data sets of the papers, as far as the plan has them, and a synthetic dataset.

    See `sureshot.datasets`.
    """

    msrvtt: World | None = None
    msrvtt_full: World | None = None
    msvd: World | None = None
    vatex: World | None = None
    didemo: World | None = None
    lsmdc: World | None = None
    charades: World | None = None
    activitynet: World | None = None
    synthetic: World | None = None


@dataclass(frozen=True, slots=True)
class FinalQuestions(QuestionRecipe):
    """The questions that a table is tested on, once."""

    split: str = "test"


@dataclass(frozen=True, slots=True)
class QuestionWorld:
    """Questions about videos, in their three parts."""

    train: QuestionRecipe
    val: ValidationQuestions
    test: FinalQuestions


@dataclass(frozen=True, slots=True)
class Case:
    """Settings of some of the runs; of several that apply to a run, a later one wins.

    Attributes:
        systems: systems it is about, ``dvtr+hit`` being DVTR on HiT; none are all of them.
        data: data sets it is about, as in the plan's ``[data]``; none are all of them.
        settings: settings of these systems, also where another one is built on them. A row's own
            win over them.
        encoder: settings in place of those of ``[encoder]``.
        stem: settings in place of those of ``[stem]``.
        training: settings in place of those of ``[training]``.
    """

    systems: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    stem: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def applies(self, system: Mapping[str, Any], data: str) -> bool:
        """Whether it is about runs of a system on a data set."""
        base = system.get("base")
        names = {system["name"]}
        if isinstance(base, Mapping):
            names.add(f"{system['name']}+{base['name']}")
        about = not self.systems or bool(names & set(self.systems))
        return about and (not self.data or data in self.data)


@dataclass(frozen=True, slots=True)
class Plan:
    """A file for ``sureshot reproduce``.

    Attributes:
        home: data that tables are run on whose own data set is not in ``data``.
        away: another data set, for tables about leaving home.
        data: data sets of the papers.
        questions: questions about videos, for the table about answers.
        encoder: what sees texts and frames.
        stem: layers from the encoder's space to that of the systems.
        training: how every run is trained; its seed is replaced.
        cases: what is different for some systems and data sets.
    """

    home: World | None = None
    away: World | None = None
    data: DataSets = field(default_factory=DataSets)
    questions: QuestionWorld | None = None
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    cases: tuple[Case, ...] = ()

    def __post_init__(self) -> None:
        """Refuse cases about what there is not."""
        places = {*(one.name for one in fields(DataSets)), HOME, QUESTIONS}
        for number, case in enumerate(self.cases):
            systems = {name for label in case.systems for name in label.split("+")}
            for kind, names, known in (
                ("systems", systems, set(known_systems())),
                ("data", set(case.data), places),
            ):
                if names - known:
                    raise SureshotError(
                        f"Setting cases.{number}.{kind} names {min(names - known)!r:.80}; known: "
                        f"{', '.join(sorted(known))}."
                    )
            for name in ("encoder", "stem", "training"):
                whole, part = getattr(self, name), getattr(case, name)
                build(type(whole), {**to_values(whole), **part}, f"cases.{number}.{name}")

    def system(self, settings: Mapping[str, Any], data: str) -> dict[str, Any]:
        """The settings of a row's system with those that cases say of it and of its base."""
        base = settings.get("base")
        made = {**settings, "base": self.system(base, data)} if isinstance(base, Mapping) else {}
        said: dict[str, Any] = {}
        for case in self.cases:
            if case.applies(settings, data):
                said.update(case.settings)
        return {**said, **settings, **made}

    def settings(self, name: str, system: Mapping[str, Any], data: str) -> Any:
        """``encoder``, ``stem`` or ``training`` as it is for a system on a data set."""
        whole = getattr(self, name)
        values = to_values(whole)
        for case in self.cases:
            if case.applies(system, data):
                values |= getattr(case, name)
        return build(type(whole), values, name)


@dataclass(frozen=True, slots=True)
class Splits:
    """The three parts of a data set, read."""

    train: Split
    val: Split
    test: Split


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the three parts of a data set."""

    train: SplitFeatures
    val: SplitFeatures
    test: SplitFeatures

    def fewer(self, frames: int) -> "Features":
        """The same with at most so many frames a video, spread evenly over those there are."""
        parts = (fewer_frames(part, frames) for part in (self.train, self.val, self.test))
        return Features(*parts)


class Bench:
    """The data of a plan; each is read and encoded when a run first asks for it.

    Args:
        plan: where the data are, and what encodes them.
        folder: where relative paths of the plan start.
        cache: folder of encoded features; None is one in the user's cache folder.
        progress: hears which features are encoded.

    Attributes:
        plan: where the data are; a copy may be given another one.
        folder: folder of the plan.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        cache: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self._cache = cache
        self._progress = progress
        self._encoders: dict[tuple[str, str | None], Encoder] = {}
        self._splits: dict[World, Splits] = {}
        self._features: dict[tuple[World, EncoderRecipe], Features] = {}
        self._memories: dict[EncoderRecipe, FrameMemory] = {}

    def placed(self, settings: _T) -> _T:
        """Settings of the plan whose relative paths start at its folder."""
        return resolve_paths(settings, self.folder)

    def encoder(self, recipe: EncoderRecipe, *, fresh: bool = False) -> Encoder:
        """The encoder of a run; a fresh one is nobody else's, and may be trained.

        Raises:
            SureshotError: it cannot be loaded.
        """
        named = self.placed(recipe)
        key = named.name, named.device
        if fresh or key not in self._encoders:
            encoder = load_encoder(*key)
            if fresh:
                return encoder
            self._encoders[key] = encoder
        return self._encoders[key]

    def memory(self, recipe: EncoderRecipe) -> FrameMemory:
        """The frames that runs with this encoder share while it is trained."""
        return self._memories.setdefault(recipe, FrameMemory())

    def splits(self, world: World) -> Splits:
        """The three parts of a data set.

        Raises:
            SureshotError: see `World.splits`.
        """
        if world not in self._splits:
            self._splits[world] = world.splits(self.folder)
        return self._splits[world]

    def questions(self) -> tuple[QuestionRecipe, ValidationQuestions, FinalQuestions]:
        """Where the questions to train, choose and test on come from.

        Raises:
            SureshotError: the plan has none.
        """
        if self.plan.questions is None:
            raise SureshotError("The plan has no questions; give them as [questions.train].")
        placed = self.placed(self.plan.questions)
        return placed.train, placed.val, placed.test

    def features(self, world: World, recipe: EncoderRecipe) -> Features:
        """What a frozen encoder sees of a data set, with its experts.

        Raises:
            SureshotError: see `World.splits` and `sureshot.research.features.extract`.
        """
        key = world, recipe
        if key not in self._features:
            splits, encoder = self.splits(world), self.encoder(recipe)
            parts = (self._encoded(part, encoder, recipe) for part in _parts(splits))
            self._features[key] = Features(*parts)
        return self._features[key]

    def _encoded(self, split: Split, encoder: Encoder, recipe: EncoderRecipe) -> SplitFeatures:
        features = extract(
            split,
            encoder,
            frames=recipe.frames,
            sampling=recipe.rule,
            cache=self._cache,
            progress=self._progress,
        )
        experts = read_experts(split.experts, [item.id for item in split.items])
        return replace(features, experts=experts)


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file.

    Raises:
        SureshotError: it cannot be read, or a setting is wrong.
    """
    return build(Plan, read_toml(path, "plan"))


def fewer_frames(part: SplitFeatures, frames: int) -> SplitFeatures:
    """Features with at most so many frames a video, spread evenly over those there are."""
    return replace(part, frames=frames, videos=[_spread(video, frames) for video in part.videos])


def _parts(splits: Splits) -> tuple[Split, Split, Split]:
    return splits.train, splits.val, splits.test


def _spread(video: FrameFeatures, frames: int) -> FrameFeatures:
    count = len(video.frames)
    if count <= frames:
        return video
    # The middle of each of so many equal parts.
    rows: Sequence[int] = ((np.arange(frames) + 0.5) * count / frames).astype(int).tolist()
    return FrameFeatures(video.frames[rows], video.patches[rows], video.backbone[rows])


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
        """Whether the system is given the ground truth of its batches, as synthetic data has.

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
        option: option of a synthetic dataset that the table varies; empty for none.
        compared: what is drawn against the option: a mechanism, its row and the row without it.
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
    option: str = ""
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
        compare_with: settings of the system that the paper compares it with; empty for none.
        epochs: whether one checkpoint after each epoch is drawn.
        data: data sets that it is on, as a plan names them.
    """

    name: str
    title: str
    figure: str = ""
    system: Mapping[str, Any] = field(default_factory=dict)
    compare_with: Mapping[str, Any] = field(default_factory=dict)
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
            values
            | {name: settings_of(values.get(name, {})) for name in ("system", "compare_with")},
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


# Title of each data set, its name and protocol for a plan, and the files that belong below root.
_FILES: Mapping[str, tuple[str, str, str]] = {
    "msrvtt": (
        "MSR-VTT 1k-A",
        'dataset = "msrvtt"',
        "MSRVTT_data.json, MSRVTT_train.9k.csv and MSRVTT_JSFUSION_test.csv",
    ),
    "msrvtt_full": (
        "MSR-VTT full",
        'dataset = "msrvtt", protocol = "full"',
        "MSRVTT_data.json, or train_val_videodatainfo.json and test_videodatainfo.json",
    ),
    "msvd": (
        "MSVD",
        'dataset = "msvd"',
        "raw-captions.pkl and {train,val,test}_list.txt",
    ),
    "vatex": (
        "VATEX",
        'dataset = "vatex"',
        "vatex_data.json, or ref_captions.json, and {train,val,test}_list.txt",
    ),
    "didemo": (
        "DiDeMo",
        'dataset = "didemo"',
        "{train,val,test}_data.json and {train,val,test}_list.txt",
    ),
    "lsmdc": (
        "LSMDC",
        'dataset = "lsmdc"',
        "LSMDC16_annos_training.csv, LSMDC16_annos_val.csv and "
        "LSMDC16_challenge_1000_publictect.csv",
    ),
    "charades": (
        "Charades",
        'dataset = "charades"',
        "Charades_v1_train.csv and Charades_v1_test.csv",
    ),
    "activitynet": (
        "ActivityNet",
        'dataset = "activitynet"',
        "train.json, val_1.json, train_ids.json and val_ids.json",
    ),
    "synthetic": (
        "A synthetic dataset",
        'dataset = "synthetic"',
        "what `sureshot synthetic --to DIR` writes",
    ),
    QUESTIONS: (
        "MSRVTT-QA",
        "",
        "{train,val,test}.jsonl, or {train,val,test}_qa.json, and train_ans2label.json",
    ),
}

_HELD_OUT = ("msrvtt", "charades", "activitynet")
_PUBLISHED: Mapping[str, tuple[str, str]] = {
    "msrvtt": ("MSRVTT", "1kA"),
    "msrvtt_full": ("MSRVTT", "full"),
    "msvd": ("MSVD", "std"),
    "vatex": ("VATEX", "std"),
    "didemo": ("DiDeMo", "std"),
    "lsmdc": ("LSMDC", "std"),
    "charades": ("Charades", "std"),
    "activitynet": ("ActivityNet", "val1"),
    "synthetic": ("", ""),  # nobody printed anything of it
}


@dataclass(frozen=True, slots=True)
class Place:
    """A data set that a table is run on.

    Attributes:
        name: the data set, as the plan names it; ``home`` where one stands in.
        world: its three parts.
        elsewhere: names and parts of the data sets that runs are also tested on.
    """

    name: str
    world: World
    elsewhere: tuple[tuple[str, World], ...] = ()

    def rows(self, table: Table) -> list[Variant]:
        """The rows of a table that can be run here: oracles only where the truth is known."""
        knows = self.world.train.dataset == "synthetic"
        return [row for row in table.variants if knows or not row.is_told]


def places_of(table: Table | PaperFigure, bench: Bench) -> tuple[list[Place], list[str]]:
    """Where a plan has the data of a table.

    Args:
        table: a table of recalls, or a figure that can be drawn.
        bench: the data of the plan.

    Returns:
        The data sets that it can be run on, and a sentence for each that is missing: which files,
        and where they go.
    """
    missing: list[str] = []
    worlds = [(name, getattr(bench.plan.data, name)) for name in table.data]
    there = [(name, world) for name, world in worlds if _is_there(name, world, bench, missing)]
    home = bench.plan.home
    if not there and home is not None and (isinstance(table, PaperFigure) or table.stand_in):
        # What is missing of the paper's own data does not matter then.
        missing = []
        there = [(HOME, home)] if _is_there(HOME, home, bench, missing) else []
    elif not table.data:
        missing.append("The plan has no data of yours; give them as [home.train] and so on.")
    wanted = table.elsewhere if isinstance(table, Table) else ()
    places = []
    for name, world in there:
        others = _others(name, wanted, bench, missing)
        if others or not wanted:
            places.append(Place(name, world, tuple(others)))
    return places, missing


def _others(
    name: str, wanted: Sequence[str], bench: Bench, missing: list[str]
) -> list[tuple[str, World]]:
    """Names and parts of what runs on a data set are also tested on."""
    if name != HOME:
        worlds = [(other, getattr(bench.plan.data, other)) for other in wanted]
        return [one for one in worlds if _is_there(*one, bench, missing)]
    if wanted and bench.plan.away is None:
        missing.append("This table needs a second data set; give it as [away.train] and so on.")
    if not wanted or bench.plan.away is None:
        return []
    away = "", bench.plan.away
    return [away] if _is_there(*away, bench, missing) else []


def question_gap(bench: Bench) -> list[str]:
    """A sentence if the plan has no questions, or they cannot be read; nothing else."""
    if bench.plan.questions is None:
        return [_absent(QUESTIONS)]
    try:
        for part in bench.questions():
            part.load()
    except SureshotError as error:
        return [_unread(QUESTIONS, error)]
    return []


def published_as(name: str) -> tuple[str, str]:
    """Data set and split of a plan's data set, as metrics/published.csv has them."""
    return _PUBLISHED[name]


def needed(data: Sequence[str]) -> str:
    """Data sets in words, such as ``DiDeMo and VATEX``; nothing for none."""
    titles = [_FILES[name][0] for name in data]
    return (
        " and ".join([", ".join(titles[:-1]), titles[-1]]) if len(titles) > 1 else "".join(titles)
    )


def _absent(name: str) -> str:
    title, dataset, files = _FILES[name]
    table, given = f"data.{name}", f"{dataset} and "
    if name == QUESTIONS:
        table, given = "questions", ""
    parts = f"[{table}.train], [{table}.val] and [{table}.test]"
    if name in _HELD_OUT:
        parts = (
            f"[{table}.train] and [{table}.test] (and hold_out = 500 in [{table}], as it has no "
        )
        parts += "validation set)"
    return (
        f"{title} is not in the plan. Put {files} into a folder, the videos below it, and give it "
        f"as {parts} with {given}root = the folder."
    )


def _is_there(name: str, world: World | None, bench: Bench, missing: list[str]) -> bool:
    """Whether a data set can be read; if not, what is missing gets a sentence."""
    if world is None:
        missing.append(_absent(name))
        return False
    try:
        bench.splits(world)
    except SureshotError as error:
        missing.append(_unread(name, error))
        return False
    return True


def _unread(name: str, error: SureshotError) -> str:
    if name not in _FILES:
        return str(error)
    title, _, files = _FILES[name]
    return f"{title} cannot be read: {error} It needs {files}, and the videos."

"""The data that tables are run on: a file that names them, and what a run reads of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import SureshotError
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.experts import read_experts
from sureshot.models.encoders.protocol import FrameFeatures
from sureshot.models.model import StemConfig
from sureshot.models.systems.load import known_systems
from sureshot.research.features import SplitFeatures, Told, extract
from sureshot.research.frame_memory import FrameMemory
from sureshot.research.questions.recipe import QuestionRecipe, ValidationQuestions
from sureshot.research.training.config import EncoderRecipe, TrainingConfig
from sureshot.research.training.recipe import (
    Recipe,
    SplitRecipe,
    ValidationRecipe,
    placed,
    read_toml,
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
        named = placed(self, folder)
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
    """The data sets of the papers, as far as the plan has them, and a made world.

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
    made: World | None = None


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
        told: called while features are encoded.

    Attributes:
        plan: where the data are; a copy may be given another one.
        folder: folder of the plan.
    """

    def __init__(
        self, plan: Plan, folder: Path, *, cache: Path | None = None, told: Told | None = None
    ) -> None:
        self.plan = plan
        self.folder = folder
        self._cache = cache
        self._told = told
        self._encoders: dict[tuple[str, str | None], Encoder] = {}
        self._splits: dict[World, Splits] = {}
        self._features: dict[tuple[World, EncoderRecipe], Features] = {}
        self._memories: dict[EncoderRecipe, FrameMemory] = {}

    def placed(self, settings: _T) -> _T:
        """Settings of the plan whose relative paths start at its folder."""
        return placed(settings, self.folder)

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
            told=self._told,
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

"""The data a table is run on: a file that names it, and the features of all of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import SureshotError
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.experts import read_experts
from sureshot.models.encoders.protocol import FrameFeatures
from sureshot.models.model import StemConfig
from sureshot.research.features import SplitFeatures, Told, extract
from sureshot.research.training.config import EncoderRecipe, TrainingConfig
from sureshot.research.training.recipe import SplitRecipe, ValidationRecipe, placed, read_toml
from sureshot.settings import build


@dataclass(frozen=True, slots=True)
class FinalRecipe(SplitRecipe):
    """The split that a table is tested on, once."""

    split: str = "test"


@dataclass(frozen=True, slots=True)
class World:
    """One data set, in its three parts: trained on, chosen on, tested on once."""

    train: SplitRecipe
    val: ValidationRecipe
    test: FinalRecipe


@dataclass(frozen=True, slots=True)
class Plan:
    """A file for ``sureshot reproduce``.

    Attributes:
        home: what the tables are run on.
        away: another data set, for the table about leaving home.
        encoder: what sees texts and frames.
        stem: layers from the encoder's space to that of the systems.
        training: how every run is trained; its seed is replaced.
    """

    home: World
    away: World | None = None
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the three parts of a data set."""

    train: SplitFeatures
    val: SplitFeatures
    test: SplitFeatures

    def fewer(self, frames: int) -> "Features":
        """The same with at most so many frames a video, spread evenly over those there are."""
        return Features(*(_fewer(part, frames) for part in (self.train, self.val, self.test)))


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file.

    Raises:
        SureshotError: it cannot be read, or a setting is wrong.
    """
    return build(Plan, read_toml(path, "plan"))


def worlds(
    plan: Plan,
    folder: Path,
    *,
    away: bool,
    cache: Path | None = None,
    told: Told | None = None,
) -> tuple[Encoder, list[Features]]:
    """The encoder, and the features of the data set at home and, if asked for, of the other one.

    Args:
        plan: where the data are, and what encodes them.
        folder: where relative paths of the plan start.
        away: whether the other data set is asked for.
        cache: folder of encoded features; None is one in the user's cache folder.
        told: called while features are encoded.

    Raises:
        SureshotError: the plan has no other data set, or training and testing share videos.
    """
    if away and plan.away is None:
        raise SureshotError(
            "This table needs a second data set; give it as [away.train] and so on."
        )
    named = placed(plan.encoder, folder)
    encoder = load_encoder(named.name, named.device)

    def encoded(split: Split) -> SplitFeatures:
        features = extract(
            split,
            encoder,
            frames=named.frames,
            sampling=named.rule,
            cache=cache,
            told=told,
        )
        ids = [item.id for item in split.items]
        return replace(features, experts=read_experts(split.experts, ids))

    features = []
    for world in [plan.home, *([plan.away] if away and plan.away else [])]:
        splits = [placed(part, folder).load() for part in (world.train, world.val, world.test)]
        check_disjoint(splits[0], splits[1])
        check_disjoint(splits[0], splits[2])
        check_disjoint(splits[1], splits[2])
        features.append(Features(*map(encoded, splits)))
    return encoder, features


def _fewer(part: SplitFeatures, frames: int) -> SplitFeatures:
    return replace(part, frames=frames, videos=[_spread(video, frames) for video in part.videos])


def _spread(video: FrameFeatures, frames: int) -> FrameFeatures:
    count = len(video.frames)
    if count <= frames:
        return video
    # The middle of each of so many equal parts.
    rows: Sequence[int] = ((np.arange(frames) + 0.5) * count / frames).astype(int).tolist()
    return FrameFeatures(video.frames[rows], video.patches[rows], video.backbone[rows])

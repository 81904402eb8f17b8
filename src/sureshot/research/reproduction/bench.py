"""The data a table is run on: a file that names it, and the features of all of it."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.datasets import Split, check_disjoint, load_split
from sureshot.errors import SureshotError
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.protocol import FrameFeatures
from sureshot.models.model import StemConfig
from sureshot.places import expand
from sureshot.research.features import SplitFeatures, Told, extract
from sureshot.research.training.recipe import EncoderRecipe, TrainingConfig
from sureshot.settings import build


@dataclass(frozen=True, slots=True)
class Place:
    """Where a split lies; the fields are the arguments of `sureshot.datasets.load_split`.

    ``$NAME`` in a path is a variable of the environment.
    """

    dataset: str
    root: str
    split: str
    protocol: str | None = None
    videos: str | None = None
    ids: str | None = None
    label: str | None = None

    def load(self, folder: Path, protocol: str | None = None) -> Split:
        """Read it, relative paths starting at ``folder``, by its own protocol or by another."""

        def at(path: str) -> Path:
            return folder / expand(os.path.expandvars(path))

        return load_split(
            self.dataset,
            self.split,
            at(self.root),
            protocol=protocol or self.protocol,
            videos=self.videos and at(self.videos),
            ids=self.ids and at(self.ids),
            label=self.label,
        )


@dataclass(frozen=True, slots=True)
class World:
    """One data set, in its three parts: trained on, chosen on, tested on once."""

    train: Place
    val: Place
    test: Place


@dataclass(frozen=True, slots=True)
class Plan:
    """A file for ``sureshot reproduce``.

    Attributes:
        home: what the tables are run on.
        away: another data set, for the table about leaving home.
        encoder: what sees texts and frames.
        stem: from its space to that of the systems.
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
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SureshotError(f"Cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SureshotError(f"{path} is not TOML: {error}.") from None
    return build(Plan, values)


def worlds(
    plan: Plan, folder: Path, *, away: bool, cache: Path | None, told: Told | None
) -> tuple[Encoder, list[Features]]:
    """The encoder, and the features of the data set at home and, if asked for, of the other one.

    Raises:
        SureshotError: the plan has no other data set, or training and testing share videos.
    """
    if away and plan.away is None:
        raise SureshotError(
            "This table needs a second data set; give it as [away.train] and so on."
        )
    encoder = load_encoder(plan.encoder.name, plan.encoder.device)
    found = []
    for world in [plan.home, *([plan.away] if away and plan.away else [])]:
        splits = [place.load(folder) for place in (world.train, world.val, world.test)]
        check_disjoint(splits[0], splits[1])
        check_disjoint(splits[0], splits[2])
        check_disjoint(splits[1], splits[2])
        parts = [
            extract(split, encoder, frames=plan.encoder.frames, cache=cache, told=told)
            for split in splits
        ]
        found.append(Features(*parts))
    return encoder, found


def _fewer(part: SplitFeatures, frames: int) -> SplitFeatures:
    return replace(part, frames=frames, videos=[_spread(video, frames) for video in part.videos])


def _spread(video: FrameFeatures, frames: int) -> FrameFeatures:
    count = len(video.frames)
    if count <= frames:
        return video
    # The middle of each of so many equal parts.
    rows: Sequence[int] = ((np.arange(frames) + 0.5) * count / frames).astype(int).tolist()
    return FrameFeatures(video.frames[rows], video.patches[rows], video.backbone[rows])

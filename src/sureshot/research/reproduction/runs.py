"""One run of one row: train, choose on validation, test once, remember."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sureshot.files import read_json, write_json
from sureshot.metrics.bootstrap import interval, mean_of
from sureshot.metrics.ranks import text_ranks
from sureshot.metrics.recall import r_sum
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.comparing import Trained
from sureshot.models.encoders import Encoder
from sureshot.models.model import Model
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction.bench import Features, Plan
from sureshot.research.reproduction.table import Table, Variant
from sureshot.research.scores import code_texts, code_videos, recalls, similarity
from sureshot.research.training.recipe import Recipe, SplitRecipe, ValidationRecipe
from sureshot.research.training.run import train_on
from sureshot.settings import to_values

Scores = dict[str, float]
Told = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a row gave.

    Attributes:
        variant: name of the row.
        seed: of the run.
        scores: by name, in percent or as ranks; those of other data sets begin with its title.
        epoch: that was chosen on the validation set.
        validation: score there.
        parameters: that were trained.
        seconds: of training.
        milliseconds: that the scores of all pairs of the test set take once they are coded, the
            fastest of three.
    """

    variant: str
    seed: int
    scores: Scores
    epoch: int
    validation: float
    parameters: int
    seconds: float
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A run to be made."""

    variant: Variant
    seed: int


def cells(table: Table, seeds: int) -> list[Cell]:
    """The runs of a table, all rows of a seed before the next seed."""
    return [Cell(variant, seed) for seed in range(seeds) for variant in table.variants]


def perform(
    cell: Cell,
    plan: Plan,
    encoder: Encoder,
    home: Features,
    away: Sequence[Features],
    folder: Path,
) -> Run:
    """Make a run, or read it if it was made.

    Args:
        cell: which.
        plan: how it is trained.
        encoder: that gave the features.
        home: trained and tested on.
        away: other data sets to test on.
        folder: where runs are remembered, each in a file named after all it depends on.
    """
    recipe = recipe_of(cell, plan)
    record = folder / f"{_key(recipe, cell, encoder, home, away)}.json"
    if record.exists():
        # Another table may have made it under another name.
        return replace(Run(**read_json(record)), variant=cell.variant.name)
    if cell.variant.frames is not None:
        home = home.fewer(cell.variant.frames)
        away = [other.fewer(cell.variant.frames) for other in away]
    place = folder / f"{record.stem}.run"
    shutil.rmtree(place, ignore_errors=True)
    began = time.perf_counter()
    fitted = train_on(recipe, encoder, [home.train], home.val, place)
    seconds = time.perf_counter() - began
    model = Checkpoint.from_pretrained(fitted.folder).model
    scores = _tested(model, home.test, "")
    for other in away:
        scores |= _tested(model, other.test, f"{other.test.split.title()}: ")
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    run = Run(
        cell.variant.name,
        cell.seed,
        scores,
        fitted.epoch,
        fitted.score or 0.0,
        trained,
        round(seconds, 1),
        round(_milliseconds(model, home.test), 2),
    )
    write_json(record, asdict(run))
    shutil.rmtree(place, ignore_errors=True)
    return run


def _tested(model: Model, features: SplitFeatures, prefix: str) -> Scores:
    matrix, owner = similarity(Trained(model), features), features.split.owner()
    texts, videos = recalls(matrix, owner)
    ranks, draw = text_ranks(matrix, owner), np.random.default_rng(0)
    ends = interval(mean_of(100.0 * (ranks <= 1)), owner, draw)
    found: Mapping[str, float] = {
        "R@1": texts.r1,
        "R@5": texts.r5,
        "R@10": texts.r10,
        "MdR": texts.median,
        "MnR": texts.mean,
        "R@Sum": r_sum(texts),
        "v2t R@1": videos.r1,
        "v2t R@5": videos.r5,
        "v2t R@10": videos.r10,
        "R@1 low": ends.low,
        "R@1 high": ends.high,
    }
    return {prefix + name: round(value, 4) for name, value in found.items()}


def _milliseconds(model: Model, features: SplitFeatures) -> float:
    texts = code_texts(model, features, range(len(features.texts)))
    videos = code_videos(model, features, range(len(features.videos)))
    taken = []
    with torch.no_grad():
        for _ in range(3):
            began = time.perf_counter()
            model.system.similarity(texts, videos)
            taken.append(time.perf_counter() - began)
    return 1000 * min(taken)


def recipe_of(cell: Cell, plan: Plan) -> Recipe:
    """The recipe of a run; its places are those of the plan, unread."""
    train, val, width = plan.home.train, plan.home.val, cell.variant.width
    return Recipe(
        train=(SplitRecipe(train.dataset, Path(train.root), label=train.label),),
        val=ValidationRecipe(val.dataset, Path(val.root), label=val.label),
        system=cell.variant.system,
        encoder=plan.encoder,
        stem=plan.stem if width is None else replace(plan.stem, width=width),
        training=replace(plan.training, seed=cell.seed),
    )


def _key(
    recipe: Recipe, cell: Cell, encoder: Encoder, home: Features, away: Sequence[Features]
) -> str:
    titles = [part.split.title() for part in _parts([home, *away])]
    # What is not set does not count, so that a setting that comes new changes no finished run.
    parts = [_set(to_values(recipe)), cell.variant.frames, encoder.fingerprint, titles]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


def _set(values: Any) -> Any:
    """Plain values without those that are None."""
    if isinstance(values, dict):
        return {name: _set(value) for name, value in values.items() if value is not None}
    return [_set(value) for value in values] if isinstance(values, list) else values


def _parts(features: Sequence[Features]) -> Iterator[SplitFeatures]:
    for one in features:
        yield from (one.train, one.val, one.test)

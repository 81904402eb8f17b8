"""One run of one row: train, choose on validation, test once, remember."""

import csv
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from sureshot.files import read_json, replace_file, write_json
from sureshot.metrics.bootstrap import interval, mean_of
from sureshot.metrics.ranks import text_ranks
from sureshot.metrics.recall import r_sum
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.comparing import Trained
from sureshot.models.encoders import Encoder
from sureshot.models.model import Model
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction.bench import Features, Plan
from sureshot.research.reproduction.code import code_digest
from sureshot.research.reproduction.tables import Table, Variant
from sureshot.research.scores import code_texts, code_videos, recalls, similarity
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import train_on
from sureshot.settings import to_values

Scores = dict[str, float]

# Columns of a file of runs, before those of the scores.
_ABOUT = ("row", "seed", "epoch", "validation", "parameters", "seconds", "milliseconds")


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a row gave.

    Attributes:
        variant: name of the row.
        seed: seed of weights, batches and noise.
        scores: percents and ranks by name; names on other data sets begin with their title.
        epoch: epoch that was chosen on the validation set.
        validation: score on the validation set.
        parameters: number of weights that were trained.
        seconds: time that training took.
        milliseconds: time that the scores of all pairs of the test set take once they are coded,
            the fastest of three.
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
class PlannedRun:
    """A run to be made."""

    variant: Variant
    seed: int


def cells(table: Table, seeds: int) -> list[PlannedRun]:
    """The runs of a table, all rows of a seed before the next seed."""
    return [
        PlannedRun(variant=variant, seed=seed)
        for seed in range(seeds)
        for variant in table.variants
    ]


def perform(
    cell: PlannedRun,
    plan: Plan,
    encoder: Encoder,
    home: Features,
    away: Sequence[Features],
    folder: Path,
) -> Run:
    """Make a run, or read it if it was made.

    Args:
        cell: row and seed.
        plan: how the run is trained.
        encoder: the encoder that gave the features.
        home: features to train and test on.
        away: features of other data sets to test on.
        folder: where runs are kept, each in a file named after all it depends on: recipe, data,
            encoder and the code that makes it, see `sureshot.research.reproduction.code`.
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
    run = Run(
        variant=cell.variant.name,
        seed=cell.seed,
        scores=scores,
        epoch=fitted.epoch,
        validation=fitted.score or 0.0,
        parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        seconds=round(seconds, 1),
        milliseconds=round(_milliseconds(model, home.test), 2),
    )
    write_json(record, asdict(run))
    shutil.rmtree(place, ignore_errors=True)
    return run


def write_runs(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as a CSV file, one line each; scores that a run does not have are left empty.

    Raises:
        OSError: it cannot be written.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    with replace_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_ABOUT, *names])
        for run in runs:
            about = [run.variant, run.seed, run.epoch, f"{run.validation:.2f}", run.parameters]
            scores = [run.scores.get(name, "") for name in names]
            writer.writerow([*about, run.seconds, run.milliseconds, *scores])


def read_runs(path: Path) -> list[Run]:
    """The runs of a CSV file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Run(
                variant=line["row"],
                seed=int(line["seed"]),
                scores={name: float(v) for name, v in line.items() if name not in _ABOUT and v},
                epoch=int(line["epoch"]),
                validation=float(line["validation"]),
                parameters=int(line["parameters"]),
                seconds=float(line["seconds"]),
                milliseconds=float(line.get("milliseconds") or 0),  # older runs were not timed
            )
            for line in csv.DictReader(file)
        ]


def _tested(model: Model, features: SplitFeatures, prefix: str) -> Scores:
    matrix, owner = similarity(Trained(model), features), features.split.owner()
    texts, videos = recalls(matrix, owner)
    ranks, draw = text_ranks(matrix, owner), np.random.default_rng(0)
    ends = interval(mean_of(100.0 * (ranks <= 1)), owner, draw)
    values: Mapping[str, float] = {
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
    return {prefix + name: round(value, 4) for name, value in values.items()}


def _milliseconds(model: Model, features: SplitFeatures) -> float:
    how = Trained(model)
    texts = code_texts(how, features, range(len(features.texts)))
    videos = code_videos(how, features, range(len(features.videos)))
    taken = []
    with torch.no_grad():
        for _ in range(3):
            began = time.perf_counter()
            model.system.similarity(texts, videos)
            taken.append(time.perf_counter() - began)
    return 1000 * min(taken)


def recipe_of(cell: PlannedRun, plan: Plan) -> Recipe:
    """The recipe of a run; its data are those of the plan, their paths as they stand there."""
    width = cell.variant.width
    return Recipe(
        train=(plan.home.train,),
        val=plan.home.val,
        system=cell.variant.system,
        encoder=plan.encoder,
        stem=plan.stem if width is None else replace(plan.stem, width=width),
        training=replace(plan.training, seed=cell.seed),
    )


def _key(
    recipe: Recipe, cell: PlannedRun, encoder: Encoder, home: Features, away: Sequence[Features]
) -> str:
    base = recipe.system.get("base")
    settings = [recipe.system, *([base] if isinstance(base, Mapping) else [])]
    parts = [
        to_values(recipe),
        cell.variant.frames,
        encoder.fingerprint,
        [part.split.title() for one in (home, *away) for part in (one.train, one.val, one.test)],
        code_digest(tuple(str(system["name"]) for system in settings)),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]

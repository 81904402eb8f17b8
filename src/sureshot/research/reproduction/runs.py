"""One run of one row: train, choose on validation, test once, remember."""

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Integer

from sureshot.datasets import Split
from sureshot.datasets.made import FILE
from sureshot.files import file_digest, write_json
from sureshot.formats import read_json
from sureshot.metrics.bootstrap import interval, mean_of
from sureshot.metrics.hubs import dual_softmax
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.metrics.recall import r_sum, recall
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.comparing import Trained
from sureshot.models.encoders import Encoder
from sureshot.models.encoders.device import device_for
from sureshot.models.model import Model
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.listener import Listener, Silence
from sureshot.research.reproduction.bench import Bench, Features, Plan
from sureshot.research.reproduction.code import code_digest
from sureshot.research.reproduction.needs import Place
from sureshot.research.reproduction.percentages import first_hit_percentages
from sureshot.research.reproduction.ranks import RunRanks, ranks_of, write_run_ranks
from sureshot.research.reproduction.tables import Variant
from sureshot.research.scores import code_texts, code_videos, similarity, text_measures
from sureshot.research.training.log import read as read_log
from sureshot.research.training.loop import LOG, Fitted
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import retrieval_task, train_on
from sureshot.research.training.task import fit_pixels
from sureshot.research.training.tuning import tuned
from sureshot.settings import to_values

Scores = dict[str, float]


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
        seconds: time that training took, of its last part where it was stopped in between.
        milliseconds: time that the scores of all pairs of the test set take once they are coded,
            the fastest of three.
        corrected: the same as ``scores`` after DSL.
        key: name of the run among those that are kept, with its ranks; empty without ranks.
        curve: score on the validation set after each epoch.
    """

    variant: str
    seed: int
    scores: Scores
    epoch: int
    validation: float
    parameters: int
    seconds: float
    milliseconds: float = 0.0
    corrected: Scores = field(default_factory=dict)
    key: str = ""
    curve: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run to be made."""

    variant: Variant
    seed: int
    place: Place


def cells(variants: Sequence[Variant], place: Place, seeds: int) -> list[PlannedRun]:
    """The runs of a table on a data set, all rows of a seed before the next seed."""
    return [
        PlannedRun(variant=variant, seed=seed, place=place)
        for seed in range(seeds)
        for variant in variants
    ]


def perform(cell: PlannedRun, bench: Bench, folder: Path, listener: Listener | None = None) -> Run:
    """Make a run, or read it if it was made.

    A run that trains its encoder goes on after the last epoch it finished; one on features, which
    is short, begins again.

    Args:
        cell: row, seed and data set.
        bench: the data of a plan.
        folder: where runs are kept, each in a file named after all it depends on: recipe, data,
            encoder and the code that makes it, see `sureshot.research.reproduction.code`; its ranks
            lie beside it. The checkpoint of a run is there while it is made.
        listener: hears how many steps of a run that trains its encoder are done.
    """
    way = _way(cell, bench)
    record = folder / f"{way.key}.json"
    if not record.exists():
        place = folder / f"{way.key}.run"
        if not way.goes_on:
            shutil.rmtree(place, ignore_errors=True)
        run, ranks = _made(cell, way, place, listener or Silence())
        write_run_ranks(folder / f"{way.key}.npz", ranks)
        write_json(record, asdict(run))
        shutil.rmtree(place, ignore_errors=True)
    # Another table may have made it under another name.
    kept = replace(Run(**read_json(record)), variant=cell.variant.name)
    return replace(kept, scores=kept.corrected, key="") if cell.variant.post else kept


def train_cell(cell: PlannedRun, bench: Bench, folder: Path, listener: Listener) -> Fitted:
    """Train a row and keep its checkpoint, or find it where it was kept.

    Args:
        cell: row, seed and data set.
        bench: the data of a plan.
        folder: where the folders of such runs are, named as those of `perform`.
        listener: hears how many steps are done.
    """
    way = _way(cell, bench)
    return way.train(folder / way.key, listener)


def titles_of(cell: PlannedRun, bench: Bench) -> list[list[str]]:
    """What the data of a run are called: those at home, then each that it is also tested on.

    The last title of each is that of the test set; the first two at home are those of the sets
    that are trained and chosen on.
    """
    return _way(cell, bench).titles


def _way(cell: PlannedRun, bench: Bench) -> "_FeatureRun | _PixelRun":
    recipe = recipe_of(cell, bench.plan)
    learn = _PixelRun if recipe.encoder.tuned else _FeatureRun
    return learn(cell, recipe, bench)


def _made(
    cell: PlannedRun, way: "_FeatureRun | _PixelRun", place: Path, listener: Listener
) -> tuple[Run, dict[str, RunRanks]]:
    """Train and test; the checkpoint stays in the folder of the run."""
    began = time.perf_counter()
    fitted = way.train(place, listener)
    seconds = time.perf_counter() - began
    model, device, known, parts, parameters = way.test(fitted)
    scores: Scores = {}
    corrected: Scores = {}
    ranks: dict[str, RunRanks] = {}
    for titles, features in zip(way.titles, parts, strict=True):
        prefix = "" if features is parts[0] else f"{titles[-1]}: "
        how = Trained(model, device)
        matrix, owner = similarity(how, features), features.split.owner()
        scores |= _measured(matrix, matrix, owner, prefix)
        doubts = text_measures(model, features, device=device)
        percent = first_hit_percentages(how, known, matrix)
        ranks[prefix] = ranks_of(matrix, features.split, doubts, percent=percent)
        turned = dual_softmax(matrix.T).T
        corrected |= _measured(dual_softmax(matrix), turned, owner, prefix)
    run = Run(
        variant=cell.variant.name,
        seed=cell.seed,
        scores=scores,
        epoch=fitted.epoch,
        validation=fitted.score or 0.0,
        parameters=parameters,
        seconds=round(seconds, 1),
        milliseconds=round(_milliseconds(model, parts[0], device), 2),
        corrected=corrected,
        key=way.key,
        curve=[entry["score"] for entry in read_log(place / LOG) if entry.get("score")],
    )
    return run, ranks


class _Chosen(NamedTuple):
    """What a run is tested with.

    Attributes:
        model: the model that was chosen.
        device: where it is.
        known: features of the validation set.
        parts: features of each test set, that of the training's data first.
        weights: number of weights that were trained.
    """

    model: Model
    device: str
    known: SplitFeatures
    parts: list[SplitFeatures]
    weights: int


class _FeatureRun:
    """A run on the features of a frozen encoder."""

    goes_on = False

    def __init__(self, cell: PlannedRun, recipe: Recipe, bench: Bench) -> None:
        self._recipe, self._frames = recipe, cell.variant.frames
        self._encoder = bench.encoder(recipe.encoder)
        worlds = [cell.place.world, *(world for _, world in cell.place.elsewhere)]
        self._features = [bench.features(world, recipe.encoder) for world in worlds]
        # Without the videos that cannot be read.
        self.titles = [
            [part.split.title() for part in (one.train, one.val, one.test)]
            for one in self._features
        ]
        splits = [one.test.split for one in self._features]
        self.key = _key(recipe, cell, self._encoder, self.titles, splits)

    def train(self, folder: Path, listener: Listener) -> Fitted:
        """Train, or go on with the run in the folder."""
        home = self._fewer(self._features[0])
        return train_on(
            self._recipe,
            self._encoder,
            [home.train],
            home.val,
            folder,
            resume=True,
            listener=listener,
        )

    def test(self, fitted: Fitted) -> _Chosen:
        """The model chosen, and what it is tested on."""
        model = Checkpoint.from_pretrained(fitted.folder).model
        parts = [self._fewer(one).test for one in self._features]
        return _Chosen(
            model=model,
            device="cpu",
            known=self._fewer(self._features[0]).val,
            parts=parts,
            weights=_trained(model),
        )

    def _fewer(self, features: Features) -> Features:
        return features if self._frames is None else features.fewer(self._frames)


class _PixelRun:
    """A run that trains its encoder too, on frames."""

    goes_on = True

    def __init__(self, cell: PlannedRun, recipe: Recipe, bench: Bench) -> None:
        self._recipe, self._bench = recipe, bench
        self._home = bench.splits(cell.place.world)
        others = [bench.splits(world).test for _, world in cell.place.elsewhere]
        self._tests = [self._home.test, *others]
        titles = [part.title() for part in (self._home.train, self._home.val, self._home.test)]
        self.titles = [titles, *([part.title()] for part in others)]
        self.key = _key(recipe, cell, bench.encoder(recipe.encoder), self.titles, self._tests)

    def train(self, folder: Path, listener: Listener) -> Fitted:
        """Train, or go on with the run in the folder."""
        # Training changes the weights of the encoder that it is given.
        encoder = self._bench.encoder(self._recipe.encoder, fresh=True)
        sizes = Sizes(dim=encoder.dim, channels=encoder.channels)
        sets = [self._home.train]
        task = retrieval_task(self._recipe, encoder, sizes, sets)
        memory = self._bench.memory(self._recipe.encoder)
        return fit_pixels(task, sets, self._home.val, folder, listener, resume=True, memory=memory)

    def test(self, fitted: Fitted) -> _Chosen:
        """As of `_FeatureRun`, seen by the encoder of the checkpoint."""
        checkpoint = Checkpoint.from_pretrained(fitted.folder)
        device = device_for(self._recipe.encoder.device)
        model = checkpoint.model.to(device)
        encoder = checkpoint.load_encoder(fitted.folder, device)
        weights = sum(part.numel() for part in tuned(encoder).network.parameters())
        parts = []
        for split in (self._home.val, *self._tests):
            # Nothing but this run can ever use these features again.
            with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
                seen = extract(
                    split,
                    encoder,
                    frames=self._recipe.encoder.frames,
                    sampling=self._recipe.encoder.rule,
                    whole_grid=model.system.whole_grid,
                    cache=Path(cache),
                    memory=self._bench.memory(self._recipe.encoder),
                )
            parts.append(seen)
        return _Chosen(
            model=model,
            device=device,
            known=parts[0],
            parts=parts[1:],
            weights=_trained(model) + weights,
        )


def _trained(model: Model) -> int:
    """Weights of a model that are trained."""
    return sum(part.numel() for part in model.parameters() if part.requires_grad)


def _measured(
    to_videos: Float[np.ndarray, "texts videos"],
    to_texts: Float[np.ndarray, "texts videos"],
    owner: Integer[np.ndarray, " texts"],
    prefix: str,
) -> Scores:
    """Scores by name, of the matrices that texts are ranked for and videos."""
    ranks, draw = text_ranks(to_videos, owner), np.random.default_rng(0)
    texts, videos = recall(ranks), recall(video_ranks(to_texts, owner))
    ends = interval(mean_of(100.0 * (ranks <= 1)), owner, draw)
    values: Mapping[str, float] = {
        "R@1": texts.r1,
        "R@5": texts.r5,
        "R@10": texts.r10,
        "R@50": texts.r50,
        "MdR": texts.median,
        "MnR": texts.mean,
        "R@Sum": r_sum(texts),
        "v2t R@1": videos.r1,
        "v2t R@5": videos.r5,
        "v2t R@10": videos.r10,
        "v2t R@50": videos.r50,
        "R@1 low": ends.low,
        "R@1 high": ends.high,
    }
    return {prefix + name: round(value, 4) for name, value in values.items()}


def _milliseconds(model: Model, features: SplitFeatures, device: str) -> float:
    how = Trained(model, device)
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
    variant, place = cell.variant, cell.place
    encoder, stem, training = (
        plan.settings(name, variant.system, place.name) for name in ("encoder", "stem", "training")
    )
    if variant.frames is not None:
        # Of features that are there a run takes fewer; more have to be seen anew.
        more = variant.frames if encoder.tuned else max(variant.frames, encoder.frames)
        encoder = replace(encoder, frames=more)
    return Recipe(
        train=(place.world.train,),
        val=place.world.val,
        hold_out=place.world.hold_out,
        system=plan.system(variant.system, place.name),
        encoder=encoder,
        stem=stem if variant.width is None else replace(stem, width=variant.width),
        training=replace(training, seed=cell.seed),
    )


def _key(
    recipe: Recipe,
    cell: PlannedRun,
    encoder: Encoder,
    titles: Sequence[Sequence[str]],
    tests: Sequence[Split],
) -> str:
    """Digest of all that a run depends on; made worlds may share titles, but no facts."""
    base = recipe.system.get("base")
    settings = [recipe.system, *([base] if isinstance(base, Mapping) else [])]
    parts = [
        to_values(recipe),
        cell.variant.frames,
        encoder.fingerprint,
        titles,
        code_digest(tuple(str(system["name"]) for system in settings)),
        [file_digest(split.root / FILE) for split in tests if split.root is not None],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]

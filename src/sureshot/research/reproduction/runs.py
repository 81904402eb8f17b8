"""One run of one row: train, choose on validation, test once, remember."""

import ast
import csv
import functools
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer, UInt

import sureshot
from sureshot.datasets import Split
from sureshot.datasets.synthetic import FILE, read_truth
from sureshot.errors import SureshotError
from sureshot.files import file_digest, replace_file, write_json
from sureshot.metrics.hubs import dual_softmax
from sureshot.metrics.intervals import SeedRanks, interval, mean_of
from sureshot.metrics.ranks import r_sum, recall, text_ranks, video_ranks
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders import Encoder
from sureshot.models.model import Model
from sureshot.models.similarity import ModelSimilarity, Similarity
from sureshot.models.systems.base import Sizes
from sureshot.models.weights import device_for
from sureshot.progress import Progress, Silent
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.reproduction.plan import Bench, Features, Place, Plan, Variant
from sureshot.research.scores import code_texts, code_videos, similarity, text_measures
from sureshot.research.training.encoder_tuning import tuned
from sureshot.research.training.loop import LOG, TrainingResult, read_log
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import fit_pixels, retrieval_task, train_on
from sureshot.settings import read_json, to_values
from sureshot.trust.fit import fit_card

_PACKAGE = Path(sureshot.__file__).parent
_RETRIEVAL = ("sureshot.research.reproduction.runs",)
ANSWERING = ("sureshot.research.answers", "sureshot.research.answers")
_SYSTEMS = "sureshot.models.systems"
# Where imports are followed.
_ROOMS = (
    "sureshot.metrics",
    "sureshot.models",
    "sureshot.research.features",
    "sureshot.research.answers",
    "sureshot.research.reproduction.runs",
    "sureshot.research.reproduction.runs",
    "sureshot.research.scores",
    "sureshot.research.training",
    "sureshot.trust",
)
# What is imported there and takes no part in a run: encoders do by the features that they give,
# which have a fingerprint; what is searched with is made after training; logs and curves show it.
_APART = (
    "sureshot.models.hub_bank",
    "sureshot.models.encoders",
    "sureshot.models.load",
    "sureshot.models.load",
    "sureshot.models.load",
    "sureshot.research.training.hub_correction",
    "sureshot.research.training.loop",
    "sureshot.research.training.loop",
)


@functools.cache
def code_digest(
    systems: Sequence[str], package: Path = _PACKAGE, starts: Sequence[str] = _RETRIEVAL
) -> str:
    """A digest of the code that trains and tests some systems.

    Args:
        systems: names of the systems, such as that of a row and the one that it is on.
        package: folder of the package's files.
        starts: the modules that make a run, of retrieval or `ANSWERING`.

    Raises:
        OSError: a file cannot be read.
    """
    left = {*starts, *(f"{_SYSTEMS}.{name}" for name in systems)}
    texts: dict[str, str] = {}
    while left:
        module = left.pop()
        texts[module], imports = _read(module, package)
        left |= {name for name in imports if _takes_part(name)} - texts.keys()
    digest = hashlib.sha256()
    for module, text in sorted(texts.items()):
        digest.update(f"{module} {len(text)}\n{text}\n".encode())
    return digest.hexdigest()


@functools.cache
def _read(module: str, package: Path) -> tuple[str, frozenset[str]]:
    """What counts of a module's text, and the modules that it imports."""
    path = _file(module, package)
    if path is None:
        return "", frozenset()
    text, imports = _syntax(path.read_text("utf-8"))
    modules = set()
    for source, name in imports:
        inner = f"{source}.{name}"
        modules.add(source if not name or _file(inner, package) is None else inner)
    return text, frozenset(modules)


@functools.cache
def _syntax(source: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """The text of a syntax tree without docstrings, and (module, name) of each of its imports."""
    tree = ast.parse(source)
    imports = frozenset(_imports(tree))
    return ast.unparse(_without_docstrings(tree)), imports


def _takes_part(module: str) -> bool:
    return _within(module, _ROOMS) and not _within(module, _APART)


def _within(module: str, rooms: Sequence[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def _file(module: str, package: Path) -> Path | None:
    """The file of a module; None if there is none, as for a class."""
    place = package.joinpath(*module.split(".")[1:])
    found = (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())
    return next(found, None)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of each import in a syntax tree, but for those of annotations alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, "") for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield from ((child.module, alias.name) for alias in child.names)
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from _imports(child)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree


PERCENT = "Sureshot's percentage"  # name of that doubt
AMBIGUITY = (
    "known ambiguity"  # name of what a synthetic dataset knows: the logarithm of videos that fit
)


@dataclass(frozen=True, slots=True)
class RunRanks:
    """What one run gave for each query of a test set.

    Attributes:
        queries: name of each caption: the id of its video, a # and its number among its captions.
        owner: number of the video of each caption.
        texts: rank of the own video of each caption.
        videos: rank of the own captions of each video.
        first: number of the video that each caption finds first.
        right: whether that video fits the caption: on synthetic data by ground truth, elsewhere
            only the caption's own video does.
        doubts: what says how unsure the answer to a caption is, by name; higher is less sure.
    """

    queries: Sequence[str]
    owner: Int[np.ndarray, " captions"]
    texts: Float[np.ndarray, " captions"]
    videos: Float[np.ndarray, " videos"]
    first: Int[np.ndarray, " captions"]
    right: Bool[np.ndarray, " captions"]
    doubts: Mapping[str, Float[np.ndarray, " captions"]] = field(default_factory=dict)


def ranks_of(
    scores: Float[np.ndarray, "captions videos"],
    split: Split,
    doubts: Mapping[str, Float[np.ndarray, " captions"]],
    turned: Float[np.ndarray, "captions videos"] | None = None,
    percent: Float[np.ndarray, " captions"] | None = None,
) -> RunRanks:
    """The ranks of a matrix of scores, with two doubts that any scores have.

    Args:
        scores: higher is better.
        split: captions and videos of the matrix.
        doubts: the model's own, by name.
        turned: scores that videos are asked by, where a correction makes them others.
        percent: Sureshot's own probability that the first hit of each caption is right, if it has
            one.

    Returns:
        The ranks; to the doubts are added ``best score``, minus the highest score of a caption,
        ``softmax entropy``, that of its scores in units of their mean deviation, and `PERCENT`,
        the probability that the first hit is wrong. On synthetic data they are ``known ambiguity``,
        the logarithm of the number of videos that fit, and ``Bayes``, the chance that the best
        scorer's first hit is not the caption's own video, too.
    """
    owner = split.owner()
    spread = max(float(scores.std(1).mean()), 1e-12)
    logits = (scores - scores.max(1, keepdims=True)) / spread
    odds = np.exp(logits)
    odds /= odds.sum(1, keepdims=True)
    entropy = -(odds * np.log(odds + 1e-30)).sum(1)
    plain = {"best score": -scores.max(1), "softmax entropy": entropy}
    if percent is not None:
        plain[PERCENT] = 1 - percent
    first = scores.argmax(1)
    right = relevance(split)[np.arange(len(first)), first]
    if split.dataset == "synthetic":
        truth = read_truth(split)
        plain[AMBIGUITY] = np.log(truth.videos_that_fit)
        plain["Bayes"] = 1 - truth.posterior().max(1)
    return RunRanks(
        queries=query_names(split),
        owner=owner,
        texts=text_ranks(scores, owner),
        videos=video_ranks(scores if turned is None else turned, owner),
        first=first,
        right=right,
        doubts={**plain, **doubts},
    )


def relevance(split: Split) -> Bool[np.ndarray, "captions videos"]:
    """Which videos fit each caption: in synthetic data those that do, elsewhere its own alone."""
    if split.dataset == "synthetic":
        return read_truth(split).fits
    return split.owner()[:, None] == np.arange(len(split.items))


def query_names(split: Split) -> list[str]:
    """The name of each caption: the id of its video, a # and its number among its captions."""
    seen: dict[int, int] = {}
    names = []
    for caption in split.captions:
        number = seen[caption.video] = seen.get(caption.video, -1) + 1
        names.append(f"{split.items[caption.video].id}#{number}")
    return names


def write_run_ranks(path: Path, found: Mapping[str, RunRanks]) -> None:
    """Keep the ranks of a run, those on each test set under the beginning of its scores' names.

    Raises:
        OSError: they cannot be written.
    """
    arrays: dict[str, Any] = {"tests": np.array(list(found))}
    for number, one in enumerate(found.values()):
        arrays[f"{number} queries"] = np.array(one.queries)
        arrays[f"{number} owner"] = one.owner.astype(np.int32)
        arrays[f"{number} texts"] = _doubled(one.texts)
        arrays[f"{number} videos"] = _doubled(one.videos)
        arrays[f"{number} first"] = one.first.astype(np.int32)
        arrays[f"{number} right"] = one.right
        for name, values in one.doubts.items():
            arrays[f"{number} doubt {name}"] = values.astype(np.float32)
    _save(path, arrays)


def read_run_ranks(path: Path) -> dict[str, RunRanks]:
    """What `write_run_ranks` kept; nothing where there is no file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as held:
        return {
            str(test): RunRanks(
                queries=held[f"{number} queries"].tolist(),
                owner=held[f"{number} owner"].astype(np.int64),
                texts=held[f"{number} texts"] / 2,
                videos=held[f"{number} videos"] / 2,
                first=held[f"{number} first"].astype(np.int64),
                right=held[f"{number} right"],
                doubts={
                    name.split(" doubt ", 1)[1]: held[name]
                    for name in held.files
                    if name.startswith(f"{number} doubt ")
                },
            )
            for number, test in enumerate(held["tests"])
        }


@dataclass(frozen=True, slots=True)
class TableRanks:
    """The ranks of all runs of a table on one test set.

    Attributes:
        rows: name of the row of each run.
        seeds: seed of each run.
        runs: what each run gave.
    """

    rows: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[RunRanks, ...]

    @property
    def knows_fits(self) -> bool:
        """Whether it is known which videos fit a caption, as in a synthetic dataset."""
        return any(AMBIGUITY in one.doubts for one in self.runs)

    def of_row(self, row: str, *, fits: bool = False) -> SeedRanks | None:
        """The ranks of a row over its seeds; None where there is no run of it.

        Args:
            row: name of the row.
            fits: whether a caption ranks first where its first hit fits, and second elsewhere.
        """
        chosen = self.part(row)
        if not chosen:
            return None
        return SeedRanks(
            seeds=tuple(chosen),
            texts=np.stack(
                [np.where(one.right, 1.0, 2.0) if fits else one.texts for one in chosen.values()]
            ),
            owner=next(iter(chosen.values())).owner,
            videos=np.stack([one.videos for one in chosen.values()]),
        )

    def part(self, row: str) -> dict[int, RunRanks]:
        """The runs of a row by their seed."""
        found = zip(self.rows, self.seeds, self.runs, strict=True)
        return {seed: one for name, seed, one in found if name == row}


def write_table_ranks(path: Path, runs: Mapping[tuple[str, int], Mapping[str, RunRanks]]) -> None:
    """Write the ranks of all runs of a table, by row and seed; names of queries once a test set.

    Raises:
        OSError: they cannot be written.
    """
    arrays: dict[str, Any] = {
        "rows": np.array([row for row, _ in runs]),
        "seeds": np.array([seed for _, seed in runs]),
    }
    tests = list(dict.fromkeys(test for one in runs.values() for test in one))
    arrays["tests"] = np.array(tests)
    for number, test in enumerate(tests):
        parts = [one[test] for one in runs.values()]
        arrays[f"{number} queries"] = np.array(parts[0].queries)
        arrays[f"{number} owner"] = parts[0].owner.astype(np.int32)
        arrays[f"{number} texts"] = np.stack([_doubled(one.texts) for one in parts])
        arrays[f"{number} videos"] = np.stack([_doubled(one.videos) for one in parts])
        arrays[f"{number} first"] = np.stack([one.first for one in parts]).astype(np.uint16)
        arrays[f"{number} right"] = np.stack([one.right for one in parts])
        for name in dict.fromkeys(name for one in parts for name in one.doubts):
            empty = np.full(len(parts[0].owner), np.nan)
            values = np.stack([one.doubts.get(name, empty) for one in parts])
            arrays[f"{number} doubt {name}"] = values.astype(np.float16)
    _save(path, arrays)


def read_table_ranks(path: Path) -> dict[str, TableRanks]:
    """The ranks of a table by test set, that of the training's data first; none without a file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    rows, seeds = tuple(held["rows"].tolist()), tuple(held["seeds"].tolist())
    found = {}
    for number, test in enumerate(held["tests"].tolist()):
        doubts = {
            name.split(" doubt ", 1)[1]: values
            for name, values in held.items()
            if name.startswith(f"{number} doubt ")
        }
        queries = held[f"{number} queries"].tolist()
        owner = held[f"{number} owner"].astype(np.int64)
        found[test] = TableRanks(
            rows=rows,
            seeds=seeds,
            runs=tuple(
                RunRanks(
                    queries=queries,
                    owner=owner,
                    texts=held[f"{number} texts"][run] / 2,
                    videos=held[f"{number} videos"][run] / 2,
                    first=held[f"{number} first"][run].astype(np.int64),
                    right=held[f"{number} right"][run],
                    doubts={
                        name: values[run].astype(np.float64)
                        for name, values in doubts.items()
                        if not np.isnan(values[run]).all()
                    },
                )
                for run in range(len(rows))
            ),
        )
    return found


def _doubled(ranks: Float[np.ndarray, " n"]) -> UInt[np.ndarray, " n"]:
    return np.round(2 * ranks).astype(np.uint32)


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    with replace_file(path) as fresh, fresh.open("wb") as file:
        np.savez_compressed(file, **arrays)


def first_hit_percentages(
    how: Similarity, known: SplitFeatures, scores: Float[np.ndarray, "captions videos"]
) -> Float[np.ndarray, " captions"] | None:
    """Probability that the first hit of each caption is right.

    Args:
        how: the model that gave the scores.
        known: validation set, whose right answers the percentages are learned from.
        scores: scores of the captions that are asked, higher is better.

    Returns:
        Probabilities in [0, 1]; None where the validation set is too small to learn from.
    """
    try:
        card = fit_card(similarity(how, known), relevance(known.split), known.split.owner())
    except SureshotError:  # too few captions, or too few that are found or missed
        return None
    return None if card.refused else card.p_top1(scores)


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


def perform(cell: PlannedRun, bench: Bench, folder: Path, progress: Progress | None = None) -> Run:
    """Make a run, or read it if it was made.

    A run that trains its encoder goes on after the last epoch it finished; one on features, which
    is short, begins again.

    Args:
        cell: row, seed and data set.
        bench: the data of a plan.
        folder: where runs are kept, each in a file named after all it depends on: recipe, data,
            encoder and the code that makes it, see `sureshot.research.reproduction.runs`; its ranks
            lie beside it. The checkpoint of a run is there while it is made.
        progress: hears how many steps of a run that trains its encoder are done.
    """
    way = _way(cell, bench)
    record = folder / f"{way.key}.json"
    if not record.exists():
        place = folder / f"{way.key}.run"
        if not way.goes_on:
            shutil.rmtree(place, ignore_errors=True)
        run, ranks = _made(cell, way, place, progress or Silent())
        write_run_ranks(folder / f"{way.key}.npz", ranks)
        write_json(record, asdict(run))
        shutil.rmtree(place, ignore_errors=True)
    # Another table may have made it under another name.
    kept = replace(Run(**read_json(record)), variant=cell.variant.name)
    return replace(kept, scores=kept.corrected, key="") if cell.variant.post else kept


def train_cell(cell: PlannedRun, bench: Bench, folder: Path, progress: Progress) -> TrainingResult:
    """Train a row and keep its checkpoint, or find it where it was kept.

    Args:
        cell: row, seed and data set.
        bench: the data of a plan.
        folder: where the folders of such runs are, named as those of `perform`.
        progress: hears how many steps are done.
    """
    way = _way(cell, bench)
    return way.train(folder / way.key, progress)


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
    cell: PlannedRun, way: "_FeatureRun | _PixelRun", place: Path, progress: Progress
) -> tuple[Run, dict[str, RunRanks]]:
    """Train and test; the checkpoint stays in the folder of the run."""
    began = time.perf_counter()
    fitted = way.train(place, progress)
    seconds = time.perf_counter() - began
    model, device, known, parts, parameters = way.test(fitted)
    scores: Scores = {}
    corrected: Scores = {}
    ranks: dict[str, RunRanks] = {}
    for titles, features in zip(way.titles, parts, strict=True):
        prefix = "" if features is parts[0] else f"{titles[-1]}: "
        how = ModelSimilarity(model, device)
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

    def train(self, folder: Path, progress: Progress) -> TrainingResult:
        """Train, or go on with the run in the folder."""
        home = self._fewer(self._features[0])
        return train_on(
            self._recipe,
            self._encoder,
            [home.train],
            home.val,
            folder,
            resume=True,
            progress=progress,
        )

    def test(self, fitted: TrainingResult) -> _Chosen:
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

    def train(self, folder: Path, progress: Progress) -> TrainingResult:
        """Train, or go on with the run in the folder."""
        # Training changes the weights of the encoder that it is given.
        encoder = self._bench.encoder(self._recipe.encoder, fresh=True)
        sizes = Sizes(dim=encoder.dim, channels=encoder.channels)
        sets = [self._home.train]
        task = retrieval_task(self._recipe, encoder, sizes, sets)
        memory = self._bench.memory(self._recipe.encoder)
        return fit_pixels(task, sets, self._home.val, folder, progress, resume=True, memory=memory)

    def test(self, fitted: TrainingResult) -> _Chosen:
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
    how = ModelSimilarity(model, device)
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
    """Digest of all that a run depends on; synthetic datasets may share titles, but no facts."""
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


# Columns of a file of runs, before those of the scores.
_ABOUT = ("row", "seed", "epoch", "validation", "parameters", "seconds", "milliseconds", "curve")


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
            curve = " ".join(f"{score:.1f}" for score in run.curve)
            writer.writerow([*about, run.seconds, run.milliseconds, curve, *scores])


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
                curve=tuple(map(float, (line.get("curve") or "").split())),
            )
            for line in csv.DictReader(file)
        ]

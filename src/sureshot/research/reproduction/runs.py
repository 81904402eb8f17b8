"""One run of one row: trained by its recipe, chosen on validation, tested once, and kept."""

import contextlib
import csv
import gc
import hashlib
import itertools
import json
import math
import re
import shutil
import tempfile
import time
import timeit
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

import sureshot
from sureshot.datasets import Split
from sureshot.datasets.synthetic import FILE, read_truth
from sureshot.errors import SureshotError
from sureshot.files import file_digest, replace_file, write_json
from sureshot.metrics.intervals import interval, mean_of, of_percent
from sureshot.metrics.ranks import recall, relevant_ranks, text_ranks, video_ranks
from sureshot.metrics.report import hub_corrected
from sureshot.models.load import Scorer, load
from sureshot.models.similarity import Similarity
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.evaluation import encode
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction.plan import PlanData, Table, Target, Variant, reads_experts
from sureshot.research.scores import code_texts, code_videos, similarity, text_measures
from sureshot.research.training.distributed import broadcast, rank
from sureshot.research.training.encoder_tuning import tuned
from sureshot.research.training.loop import LOG, TrainingResult, read_log
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import FRAMES, RetrievalTask, judged, warn_of_unreadable
from sureshot.research.trust_report import softmax_signals
from sureshot.settings import read_json, to_values
from sureshot.trust.fit import fit_card, labelled

Scores = dict[str, float]
RUNS = "runs"  # folder of runs next to the pages of their tables
_KEY = re.compile("[0-9a-f]{20}")  # it names files


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run of a row."""

    variant: str  # name of the row
    seed: int
    scores: Scores  # percents and ranks by name; on other data sets after their title
    epoch: int  # that was chosen
    validation: float  # its score
    parameters: int  # numbers that were trained
    seconds: float  # from the first training step to the checkpoint, since it last began
    milliseconds: float = 0.0  # that the scores of all coded test pairs take, the least of three
    corrected: Scores = field(default_factory=dict)  # the scores after DSL
    key: str = ""  # its name among those that are kept, with its ranks; empty without ranks
    curve: Sequence[float] = ()  # score on the validation set after each epoch
    tests: Sequence[str] = ()  # title of each test set, that of the training's data set first
    data: str = ""  # digest of the ids and captions of all sets; empty in files of before
    warnings: Sequence[str] = ()  # such as which training videos could not be read


def digest(values: Any) -> str:
    """Twenty letters for values of JSON and the version of the package."""
    text = json.dumps([sureshot.__version__, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class PlannedRun:
    """A row of a table, the recipe of one of its runs, and the data of these."""

    variant: Variant
    recipe: Recipe
    target: Target
    data: PlanData

    def __str__(self) -> str:
        return f"{self.variant.name}, seed {self.recipe.training.seed}"

    @property
    def splits(self) -> list[Split]:
        """What it is trained, chosen and tested on."""
        own = replace(self.target.data, train=self.recipe.train[0], val=self.recipe.val)
        train, val, _ = self.data.splits(own)
        return [train, val, *self.data.tests(self.target)]

    @cached_property
    def key(self) -> str:
        """What it is kept under: a digest of recipe, data and the version of the package."""
        _, _, *tests = splits = self.splits
        parts = [
            to_values(self.recipe),
            self.data.fingerprint(self.recipe.encoder),
            [part.title() for part in splits],
            # Synthetic datasets may share titles.
            [file_digest(part.root / FILE) for part in tests if part.root is not None],
        ]
        return digest(parts)

    @property
    def captions(self) -> str:
        """A digest of the ids and captions that it learns from and is tested on."""
        return digest([part.digest() for part in self.splits])


def planned_runs(table: Table, target: Target, seeds: int, data: PlanData) -> list[PlannedRun]:
    """The runs of the rows of a table, all of a seed before the next seed."""
    rows, _ = data.rows(table, target)
    return [
        PlannedRun(variant=row, recipe=data.recipe(row, seed, target), target=target, data=data)
        for seed in range(seeds)
        for row in rows
    ]


def perform(planned: PlannedRun, folder: Path, progress: Progress | None = None) -> Run:
    """Make a run, or read it if it was made of the same captions; one that was stopped goes on.

    Several processes train it together, and the first of them tests it. ``folder`` gets
    ``KEY.json`` and ``KEY.npz``, the ranks, and until then ``KEY-CAPTIONS.run``, the checkpoint.
    """
    key, captions, variant = planned.key, planned.captions, planned.variant
    record, notes = folder / f"{key}.json", _Timed(progress or Silent())
    # One of captions that have changed since is made again; older files do not say of which.
    made = record.exists() and read_json(record).get("data") in (None, "", captions)
    if not broadcast(made):
        place = folder / f"{key}-{captions}.run"
        fitted = train_run(planned, place, notes)
        if rank() == 0:
            run, ranks = _test(planned, place, fitted, notes)
            own = {test: {(variant.name, run.seed): one} for test, one in ranks.items()}
            write_ranks(folder / f"{key}.npz", own)
            write_json(record, asdict(replace(run, data=captions, warnings=notes.lines)))
            for left in folder.glob(f"{key}-*.run"):  # of other captions too
                shutil.rmtree(left, ignore_errors=True)
        gc.collect()  # hundreds of megabytes of frames in cycles, and no objects to set it off
        broadcast(None)  # all wait until the run is kept
    # Another table may have made it under another name.
    kept = replace(Run(**read_json(record)), variant=variant.name)
    for text in kept.warnings:
        notes.warn(text)
    return replace(kept, scores=kept.corrected, key="") if variant.post else kept


def train_run(planned: PlannedRun, folder: Path, notes: Notes) -> TrainingResult:
    """Train by a recipe in a folder, go on with it, or read what was trained there."""
    train, val, *_ = planned.splits
    task = RetrievalTask(planned.data.resolve(planned.recipe), [train], val, notes)
    return task.run(
        folder,
        notes,
        resume=True,
        cache=planned.data.cache,
        frames=folder.parent.parent / FRAMES,  # next to runs and models: all of them share it
        bank=False,  # raw scores are tested
    )


class _Timed(Notes):
    """Keeps the time of the first training step; sentences about a single run are dropped."""

    began = math.inf

    def line(self, text: str) -> None:
        """Drop it."""

    def warn(self, text: str) -> None:
        """Keep a warning, and pass it on once: all runs on the same videos have it."""
        self.lines.append(text)
        if text not in getattr(self._progress, "lines", ()):
            self._progress.line(text)

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        if what == "steps":
            self.began = min(self.began, time.perf_counter())
        super().update(what, done, total, more)


def _test(
    planned: PlannedRun, place: Path, fitted: TrainingResult, notes: _Timed
) -> "tuple[Run, dict[str, RunRanks]]":
    """Test what was trained in a folder."""
    seconds = max(0.0, time.perf_counter() - notes.began)
    recipe = planned.recipe
    scorer = load(fitted.folder, recipe.encoder.device)
    _, held, *tests = planned.splits
    # Captions of a tuned encoder are encoded for this run alone.
    splits = [judged(held) if recipe.encoder.tuned else held, *tests]
    if not reads_experts(recipe.system):
        splits = [replace(split, experts=None) for split in splits]
    cache = planned.data.cache
    val, *parts = (_encoded(split, scorer, recipe, cache, notes) for split in splits)
    scores: Scores = {}
    corrected: Scores = {}
    ranks: dict[str, RunRanks] = {}
    for number, features in enumerate(parts):
        prefix = f"{features.split.title()}: " if number else ""
        matrix, owner = similarity(scorer.raw, features), features.split.owner()
        scores |= _measured(matrix, matrix, owner, prefix)
        with contextlib.suppress(SureshotError):  # logarithms cannot be corrected so
            texts, videos = hub_corrected("dsl", matrix, scale=scorer.scale)
            corrected |= _measured(texts.scores, videos.scores, owner, prefix)
        doubts = text_measures(scorer, features)
        percent = first_hit_percentages(scorer.raw, val, matrix)
        ranks[prefix] = ranks_of(matrix, features.split, doubts, percent=percent)
    run = Run(
        variant=planned.variant.name,
        key=planned.key,
        seed=recipe.training.seed,
        scores=scores,
        epoch=fitted.epoch,
        validation=fitted.score or 0.0,
        parameters=_trained_weights(scorer, recipe),
        seconds=round(seconds, 1),
        milliseconds=round(_milliseconds(scorer, parts[0]), 2),
        corrected=corrected,
        curve=[entry["score"] for entry in read_log(place / LOG) if entry.get("score") is not None],
        tests=[features.split.title() for features in parts],
    )
    return run, ranks


def _encoded(
    split: Split, scorer: Scorer, recipe: Recipe, cache: str | Path | None, notes: Notes
) -> SplitFeatures:
    with tempfile.TemporaryDirectory(prefix="sureshot-") as own:
        if recipe.encoder.tuned:  # no other run can use the features of what this one trained
            scorer, cache = replace(scorer, encoder=tuned(scorer.encoder).encoder), Path(own)
        seen = encode(split, scorer, notes, cache=cache)
    warn_of_unreadable(seen, notes)
    return seen


def _trained_weights(scorer: Scorer, recipe: Recipe) -> int:
    assert scorer.model is not None
    weights = list(scorer.model.parameters())
    if recipe.encoder.tuned:
        weights += tuned(scorer.encoder, scorer.model.system).network.parameters()
    return sum(weight.numel() for weight in weights if weight.requires_grad)


def _measured(
    to_videos: Float[np.ndarray, "texts videos"],
    to_texts: Float[np.ndarray, "texts videos"],
    owner: Int[np.ndarray, " texts"],
    prefix: str,
) -> Scores:
    """Scores by name, of the matrices by which videos and texts are ranked."""
    ranks, draw = text_ranks(to_videos, owner), np.random.default_rng(0)
    texts, videos = recall(ranks), recall(video_ranks(to_texts, owner))
    ends = of_percent(interval(mean_of(100.0 * (ranks <= 1)), owner, draw), len(np.unique(owner)))
    values = {f"R@{k}": getattr(texts, f"r{k}") for k in (1, 5, 10, 50)}
    values |= {"MdR": texts.median, "MnR": texts.mean}
    values |= {"R@Sum": texts.r1 + texts.r5 + texts.r10}  # of table 4 of the DUQ paper
    values |= {f"v2t R@{k}": getattr(videos, f"r{k}") for k in (1, 5, 10, 50)}
    values |= {"R@1 low": ends.low, "R@1 high": ends.high}
    return {prefix + name: round(value, 4) for name, value in values.items()}


def _milliseconds(scorer: Scorer, features: SplitFeatures) -> float:
    texts = code_texts(scorer.raw, features, range(len(features.texts)))
    videos = code_videos(scorer.raw, features, range(len(features.videos)))
    with torch.no_grad():
        taken = timeit.repeat(lambda: scorer.raw.similarity(texts, videos), number=1, repeat=3)
    return 1000 * min(taken)


def write_runs(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as a CSV file, one line each; scores that a run does not have are left empty."""
    rows = [
        {
            "row": run.variant,
            "seed": run.seed,
            "epoch": run.epoch,
            "validation": f"{run.validation:.2f}",
            "parameters": run.parameters,
            "seconds": run.seconds,
            "milliseconds": run.milliseconds,
            "curve": " ".join(f"{score:.1f}" for score in run.curve),
            **run.scores,
        }
        for run in runs
    ]
    with replace_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, dict.fromkeys(n for row in rows for n in row), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)


def unpack_runs(folder: Path) -> None:
    """Keep the runs of the pages in a folder, as `perform` does; those that are kept stay.

    So whoever has the pages alone goes on from them.
    """
    for path in sorted(folder.glob("*.npz")):
        runs = _runs_of(path)
        ranks = read_ranks(path) if runs else {}
        for run in runs:
            record, name = folder / RUNS / f"{run.key}.json", (run.variant, run.seed)
            if not record.exists():
                record.parent.mkdir(exist_ok=True)
                own = {test: {name: of[name]} for test, of in ranks.items()}
                write_ranks(record.with_suffix(".npz"), own)
                write_json(record, asdict(run))


def kept_captions(folder: Path) -> dict[str, str]:
    """`PlannedRun.captions` of runs kept in a folder or its pages, by key; empty if not noted."""
    pages = {run.key: run.data for path in folder.glob("*.npz") for run in _runs_of(path)}
    files = {path.stem: read_json(path) for path in (folder / RUNS).glob("*.json")}
    return pages | {key: record.get("data") or "" for key, record in files.items()}


def _runs_of(path: Path) -> list[Run]:
    """The runs of a page; none where it has none, or is not whole and will be written again."""
    try:
        with np.load(path, allow_pickle=False) as file:
            packed = file["runs"].tolist() if "runs" in file.files else []
        runs = [Run(**json.loads(run)) for run in packed]
    except (OSError, ValueError, TypeError, zipfile.BadZipFile):
        return []
    return [] if any(_KEY.fullmatch(run.key) is None for run in runs) else runs


# --- ranks of every query -------------------------------------------------------------------------

PERCENT = "Sureshot's percentage"  # name of that doubt
AMBIGUITY = "known ambiguity"  # of synthetic data: the logarithm of the number of videos that fit


@dataclass(frozen=True, slots=True)
class RunRanks:
    """Ranks and uncertainties of each query of a test set, by one run.

    Of synthetic data also the ranks of the best video that fits each caption, and of the best
    caption that fits each video; None in files of before.
    """

    queries: Sequence[str]  # see `query_names`
    owner: Int[np.ndarray, " captions"]
    texts: Float[np.ndarray, " captions"]  # rank of the own video of each caption
    videos: Float[np.ndarray, " videos"]  # rank of the own captions of each video
    first: Int[np.ndarray, " captions"]  # number of the video that each caption finds first
    right: Bool[np.ndarray, " captions"]  # whether that video fits it, see `relevance`
    doubts: Mapping[str, Float[np.ndarray, " captions"]] = field(default_factory=dict)  # by name
    fitting_texts: Float[np.ndarray, " captions"] | None = None
    fitting_videos: Float[np.ndarray, " videos"] | None = None


def ranks_of(
    scores: Float[np.ndarray, "captions videos"],
    split: Split,
    doubts: Mapping[str, Float[np.ndarray, " captions"]],
    percent: Float[np.ndarray, " captions"] | None = None,
) -> RunRanks:
    """The ranks of a matrix of scores, higher being better, with doubts that any scores have.

    To the model's own are added ``best score``, minus the highest score of a caption, ``softmax
    entropy``, that of its scores in units of their mean deviation, and `PERCENT`, the probability
    that the first hit is wrong, from ``percent``, that it is right. On synthetic data also
    `AMBIGUITY` and ``Bayes``, the chance that the best scorer's first hit is not its own video.
    """
    owner = split.owner()
    _, entropy, _ = softmax_signals(scores, max(float(scores.std(1).mean()), 1e-12))
    plain = {"best score": -scores.max(1), "softmax entropy": entropy}
    plain |= {} if percent is None else {PERCENT: 1 - percent}
    first = scores.argmax(1)
    fitting = {}
    if split.dataset == "synthetic":
        truth, asked = read_truth(split), np.unique(owner)  # videos without a caption ask nothing
        fitting = {
            "fitting_texts": relevant_ranks(scores, truth.fits),
            "fitting_videos": relevant_ranks(scores.T[asked], truth.fits.T[asked]),
        }
        plain[AMBIGUITY] = np.log(truth.videos_that_fit)
        plain["Bayes"] = 1 - truth.posterior().max(1)
    return RunRanks(
        queries=query_names(split),
        owner=owner,
        texts=text_ranks(scores, owner),
        videos=video_ranks(scores, owner),
        first=first,
        right=relevance(split)[np.arange(len(first)), first],
        doubts={**plain, **doubts},
        **fitting,
    )


def relevance(split: Split) -> Bool[np.ndarray, "captions videos"]:
    """Which videos fit each caption: in synthetic data those that do, elsewhere its own alone."""
    if split.dataset == "synthetic":
        return read_truth(split).fits
    return split.owner()[:, None] == np.arange(len(split.items))


def query_names(split: Split) -> list[str]:
    """The name of each caption: the id of its video, a # and its number among its captions."""
    numbers: defaultdict[int, Iterator[int]] = defaultdict(itertools.count)
    videos = [caption.video for caption in split.captions]
    return [f"{split.items[video].id}#{next(numbers[video])}" for video in videos]


def first_hit_percentages(
    method: Similarity, known: SplitFeatures, scores: Float[np.ndarray, "captions videos"]
) -> Float[np.ndarray, " captions"] | None:
    """Probability that each first hit is right, if it can be learned from the validation set."""
    split = known.split
    try:
        card = fit_card([labelled(similarity(method, known), relevance(split), split.owner())])
    except SureshotError:  # too few captions, or too few that are found or missed
        return None
    return card.p_first(scores)


TableRanks = Mapping[tuple[str, int], RunRanks]  # of all runs on one test set, by row and seed
_FITTING = ("fitting_texts", "fitting_videos")


def write_ranks(path: Path, ranks: Mapping[str, TableRanks], results: Sequence[Run] = ()) -> None:
    """Write the ranks of runs by how scores on a test set begin; and results, for `unpack_runs`."""
    named = next(iter(ranks.values()), {})
    arrays: dict[str, Any] = {
        "rows": np.array([row for row, _ in named]),
        "seeds": np.array([seed for _, seed in named]),
        "tests": np.array(list(ranks)),
    }
    if results:
        arrays["runs"] = np.array([json.dumps(asdict(run)).encode() for run in results])
    for number, of in enumerate(ranks.values()):
        parts = [of[name] for name in named]
        arrays[f"{number} queries"] = np.array(parts[0].queries)
        arrays[f"{number} owner"] = parts[0].owner.astype(np.int32)
        for name in ("texts", "videos", *_FITTING):  # 0 where a run has none
            found = [getattr(one, name) for one in parts]
            if any(ranks is not None for ranks in found):
                nothing = np.zeros_like(getattr(parts[0], name.removeprefix("fitting_")))
                every = np.stack([nothing if one is None else one for one in found])
                # Ties have half ranks.
                arrays[f"{number} {name}"] = np.round(2 * every).astype(np.uint32)
        arrays[f"{number} first"] = np.stack([one.first for one in parts]).astype(np.uint16)
        arrays[f"{number} right"] = np.stack([one.right for one in parts])
        for name in dict.fromkeys(name for one in parts for name in one.doubts):
            empty = np.full(len(parts[0].owner), np.nan)
            values = np.stack([one.doubts.get(name, empty) for one in parts])
            arrays[f"{number} doubt {name}"] = values.astype(np.float16)
    with replace_file(path) as fresh, fresh.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_ranks(path: Path) -> dict[str, TableRanks]:
    """Ranks by test set, that of the training's data first; nothing where there is no file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    named = list(zip(held["rows"].tolist(), held["seeds"].tolist(), strict=True))
    return {
        test: {name: _ranks(held, number, run) for run, name in enumerate(named)}
        for number, test in enumerate(held["tests"].tolist())
    }


def _ranks(held: Mapping[str, Any], number: int, run: int) -> RunRanks:
    """The ranks of a run on a test set."""
    own = {
        name.removeprefix(f"{number} "): values
        for name, values in held.items()
        if name.startswith(f"{number} ")
    }
    doubts = {
        name.removeprefix("doubt "): values[run].astype(np.float64)
        for name, values in own.items()
        if name.startswith("doubt ") and not np.isnan(values[run]).all()
    }
    return RunRanks(
        queries=own["queries"].tolist(),
        owner=own["owner"].astype(np.int64),
        texts=own["texts"][run] / 2,
        videos=own["videos"][run] / 2,
        first=own["first"][run].astype(np.int64),
        right=own["right"][run],
        doubts=doubts,
        **{name: own[name][run] / 2 for name in _FITTING if name in own and own[name][run].any()},
    )

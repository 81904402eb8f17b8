"""From a recipe to a trained checkpoint: read, encode, build, fit, save; or only estimate that."""

import resource
import statistics
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from sureshot.datasets import Split
from sureshot.datasets.synthetic import read_truth
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.files import write_text
from sureshot.media.sampling_rule import Sampling
from sureshot.metrics.ranks import rsum
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.experts import Experts, expert_sizes, presence, read_experts
from sureshot.models.load import load
from sureshot.models.losses.debiased import AMBIGUITY, FITS
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.similarity import ModelSimilarity
from sureshot.models.systems.base import Codes, Sizes, System, load_system
from sureshot.models.weights import device_for
from sureshot.paths import as_list, expand
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.features import FrameMemory, SplitFeatures, extract, frame_memory, uncached
from sureshot.research.scores import recalls, similarity
from sureshot.research.training import data, hub_correction, loop
from sureshot.research.training.distributed import from_torchrun, rank, world
from sureshot.research.training.encoder_tuning import Tuned, tuned
from sureshot.research.training.recipe import EncoderRecipe, Recipe, RecipeFile
from sureshot.settings import override, to_values
from sureshot.text import aligned, counted, duration

FRAMES, UNREADABLE, HELD_OUT = "frames", "unreadable.txt", "held_out.txt"  # in a run's folder
_CAPTIONS = 2000  # of the validation set that an epoch is judged by, spread evenly over its videos
_ROOM = 512 * 2**20  # bytes of memory for prepared frames
_R = TypeVar("_R", bound=RecipeFile)
SaveEncoder = Callable[[Path], None]  # writes an encoder that was trained into a new folder


class Task(ABC):
    """What a run learns, and from what: to find videos, or to answer questions about them.

    ``system`` is the retrieval system within the model, which an encoder would be trained with;
    ``sets`` are features of ``splits`` by a frozen encoder, once they are there, ``val`` of
    ``held``.
    """

    metric: str  # name of the score that a checkpoint is chosen by
    experts: Sequence[Mapping[str, Experts]] = ()  # of the videos of all splits, ``held`` last

    def __init__(
        self,
        recipe: RecipeFile,
        model: Model,
        system: System,
        encoder: Encoder,
        note: EncoderNote,
        splits: Sequence[Split],
        held: Split | None = None,
    ) -> None:
        self.recipe, self.system, self.encoder, self.note = recipe, system, encoder, note
        self.device = device_for(recipe.encoder.device)
        self.model = model.to(self.device)
        self.splits, self.held = splits, held
        self.sets: Sequence[SplitFeatures] = ()
        self.val: SplitFeatures | None = None
        self._seen: SplitFeatures | None = None  # of the last epoch, by a tuned encoder

    @abstractmethod
    def score(self, features: SplitFeatures) -> float:
        """The model's score on the validation set, in percent."""

    @abstractmethod
    def write(self, place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        """Write a checkpoint into an empty folder."""

    def judged(self, held: Split) -> Split:
        """What of the validation set an epoch of a tuned encoder is judged by."""
        return held

    def labels(self) -> loop.Labels | None:
        """Codes of pairs for losses that want more than which text belongs to which video."""
        return None

    def fixed(self) -> dict[str, Any]:
        """More settings, as JSON holds them, that must not change within a run."""
        return {
            "encoder": self.note.fingerprint,
            "encoder.frames": self.note.frames,
            "encoder.sampling": self.note.sampling,
            "encoder.fps": self.note.fps,
        }

    def begin(self, folder: Path) -> None:
        """What is due before training."""
        del folder

    def finish(self, folder: Path, held: Split, notes: Notes) -> None:
        """What is due once a checkpoint is chosen."""
        del folder, held, notes

    def features(self, split: Split, encoder: Encoder | None = None, **where: Any) -> SplitFeatures:
        """Features of a split as the model reads them; ``where`` goes to `extract`."""
        return extract(split, encoder or self.encoder, **self.how, **where)

    @property
    def how(self) -> dict[str, Any]:
        """Which features those are."""
        of = self.note
        return {"frames": of.frames, "sampling": of.rule, "cells": self.model.cells}

    def network(self) -> Tuned | None:
        """The encoder with a graph, if it is trained too."""
        of, seed = self.recipe.encoder, self.recipe.training.seed
        return tuned(self.encoder, self.system, of.words, seed) if of.tuned else None

    def pairs(
        self,
        network: Tuned | None,
        notes: Notes,
        cache: str | Path | None,
        frames: Path,
        memory: FrameMemory | None = None,
    ) -> data.Pairs:
        """Pairs to train on, from features, or frames that are decoded each time or kept."""
        if network is None:
            self.encode(notes, cache)
            return data.FeaturePairs(self.sets, self.device)
        config, rule = self.recipe.training, self.note.rule
        sampling = Sampling(config.sampling or rule.kind, rule.fps)
        read = data.TrainingFrames(
            encoder=network.encoder,
            frames=self.note.frames,
            sampling=sampling,
            augment=config.augment,
            seed=config.seed,
            kept=frames if config.keep_frames else None,
        )
        shared = memory if read.steady and sampling == rule else None  # it is of these frames
        return data.PixelPairs(self.splits, network, read, config.workers, memory=shared)

    def run(
        self,
        folder: Path,
        notes: Notes,
        *,
        resume: bool = False,
        cache: str | Path | None = None,
        frames: Path | None = None,
        bank: bool = True,
    ) -> loop.TrainingResult:
        """Train on features of a frozen encoder, or the encoder too, on frames.

        ``frames`` is where ``training.keep_frames`` keeps them; None is the folder of the run.
        ``bank`` is whether the model is made ready for searches. A video that cannot be read is
        left out. With a tuned encoder, ``unreadable.txt`` in the run's folder lists these.
        """

        def save(place: Path, epoch: int, score: float | None) -> None:
            scores = {} if score is None else {self.metric: score}
            encoder = None if network is None else network.save
            self.write(place, {"epoch": float(epoch), **scores}, encoder)

        def on_step(step: loop.StepProgress) -> None:
            more = f", epoch {step.epoch}, loss {step.losses['loss']:.4g}"
            notes.update("steps", step.step, state.steps * self.recipe.training.epochs, more)

        # What would be refused after all videos have been encoded is refused before.
        loop.check_new(folder, resume=resume)
        if resume and not (folder / loop.STATE).exists():
            notes.line(f"There is no run in {folder} to go on with, so it begins.")
        held = self.held
        with loop.claimed(folder):
            self.begin(folder)
            network, memory = self.network(), None
            if network is not None:
                memory = frame_memory(network.encoder, self.note.frames, self.note.rule, _ROOM)
            pairs = self.pairs(network, notes, cache, frames or folder / FRAMES, memory)
            if advice := self.model.system.advice(sum(len(split.items) for split in self.splits)):
                notes.warn(advice)
            with pairs:
                config, labels, fixed = self.recipe.training, self.labels(), self.fixed()
                validate = None if held is None else partial(self._validate, held, network, memory)
                state = loop.TrainState(self.model, pairs, config, network, fixed, labels)
                fitted = loop.fit(
                    state,
                    folder,
                    save=save,
                    validate=validate,
                    on_step=on_step,
                    resume=resume,
                    metric=self.metric,
                )
            for line in fitted.notes:
                notes.line(line)
            _list_unreadable(pairs, folder, notes)
            if self._seen is not None:
                warn_of_unreadable(self._seen, notes)
            if rank() == 0:
                self.recipe.save(folder / loop.RECIPE)
                if held is not None and bank:
                    self.finish(fitted.folder, held, notes)
        return replace(fitted, notes=tuple(notes.lines))

    def encode(self, notes: Notes, cache: str | Path | None) -> None:
        """Features of all sets by the frozen encoder."""
        sets: list[SplitFeatures] = []
        for split in [*self.splits, *([self.held] if self.held else [])]:
            seen = self.features(split, cache=cache, progress=notes)
            warn_of_unreadable(seen, notes)
            own = self.experts[len(sets)] if self.experts else {}
            sets.append(replace(seen, experts=own))
        self.val = sets.pop() if self.held else None
        self.sets = sets

    def _validate(self, held: Split, network: Tuned | None, memory: FrameMemory | None) -> float:
        if network is None:
            assert self.val is not None
            return self.score(self.val)
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            self._seen = self.features(
                self.judged(held), network.encoder, cache=Path(cache), memory=memory
            )
        return self.score(self._seen)

    def validation_seconds(
        self, held: Split, network: Tuned | None, scratch: Path, memory: FrameMemory | None
    ) -> float:
        """Seconds of a validation, a few videos standing in for all that a tuned encoder reads.

        Their frames are in the ``memory``, if there is one, as in all validations but the first.
        """
        began, reading, seen = time.perf_counter(), 0.0, self.val
        if network is not None:
            few = _few(self.judged(held))
            read = partial(self.features, few, network.encoder, memory=memory or FrameMemory(0))
            if memory is not None:
                read(cache=scratch / "first")
                began = time.perf_counter()
            seen = read(cache=scratch)
            reading = (time.perf_counter() - began) / len(few.items) * len(held.items)
            began, seen = time.perf_counter(), seen.stand_in(held, {})
        assert seen is not None
        self.model.eval()
        with torch.no_grad():
            self.score(seen)
        return reading + time.perf_counter() - began


def warn_of_unreadable(seen: SplitFeatures, notes: Notes) -> None:
    """Say which video was left out first, why, and how many more."""
    if seen.unreadable:
        (name, reason), *others = seen.unreadable
        more = f", and {len(others)} more" if others else ""
        notes.warn(f"{seen.split.title()}; left out: {name} {reason}{more}")


def _list_unreadable(pairs: data.Pairs, folder: Path, notes: Notes) -> None:
    """Write which videos were left out and why, if some were."""
    if not (left_out := sorted(pairs.unreadable.items())):
        return
    if rank() == 0:
        text = "".join(f"{name}\t{reason}\n" for name, reason in left_out)
        write_text(folder / UNREADABLE, text)
    (name, reason), count = left_out[0], counted(len(left_out), "video")
    notes.warn(
        f"Left out: {count} that cannot be read, such as {name} ({reason}); see {UNREADABLE}."
    )


def train(
    recipe: str | Path | Recipe,
    *,
    to: str | Path | None = None,
    settings: str | Sequence[str] = (),
    resume: bool = False,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> loop.TrainingResult:
    """Train a system by a recipe, in one process or in each of those that torchrun started.

    Args:
        recipe: a TOML file, or its value.
        to: folder of the run, see `sureshot.research.training.loop.fit`; the recipe is kept in it
            too. None is ``runs/NAME`` for a file of this name.
        settings: replace those of the recipe, each as ``name.of.setting=value``.
        resume: go on with the run in the folder, if there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
    """
    read, folder = open_recipe(Recipe, recipe, to, settings)
    with from_torchrun():
        notes = first_notes(progress)
        splits, held = read.splits()
        for split in splits if held is None else [*splits, held]:
            notes.line(split.summary())
        task = RetrievalTask(read, splits, held, notes)
        return task.run(folder, notes, resume=resume, cache=cache)


def open_recipe(
    kind: type[_R], recipe: str | Path | _R, to: str | Path | None, settings: str | Sequence[str]
) -> tuple[_R, Path]:
    """A recipe with its settings replaced, and the folder of its run; arguments as of `train`."""
    if isinstance(recipe, str | Path):
        path = expand(recipe)
        read = kind.load(path, as_list(settings))
        return read, Path("runs") / path.stem if to is None else expand(to)
    if not isinstance(recipe, kind):
        raise ArgumentError(f"recipe is {recipe!r}; give a TOML file or {kind.__name__}(…).")
    if to is None:
        raise ArgumentError(
            f"A recipe that is not a file has no name; name a folder: {option('to')}."
        )
    values = recipe.to_dict()
    for assignment in as_list(settings):
        values = override(values, assignment)
    return kind.from_dict(values, Path.cwd()), expand(to)


def first_notes(progress: Progress | None) -> Notes:
    """The notes of a run; only the first process reports its progress."""
    return Notes(progress if progress is not None and rank() == 0 else Silent())


class RetrievalTask(Task):
    """To find videos by their texts, by a recipe whose data sets are read already."""

    recipe: Recipe

    def __init__(
        self, recipe: Recipe, splits: Sequence[Split], held: Split | None, notes: Progress
    ) -> None:
        self.metric, named = recipe.training.metric, recipe.encoder
        encoder, self.experts = load_encoder(named.name, named.device), []
        for split in splits if held is None else [*splits, held]:
            self.experts.append(read_experts(split.experts, [item.id for item in split.items]))
            if self.experts[-1]:
                notes.line(f"{split.title()}; experts: {presence(self.experts[-1])}")
        sizes = Sizes(encoder.dim, encoder.channels, expert_sizes(self.experts[: len(splits)]))
        model = new_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder)
        if model.system.reads_truth and (recipe.training.micro_batch or world() > 1):
            raise SureshotError(
                "An oracle knows the truth about a whole batch; leave out training.micro_batch, "
                "and train in one process."
            )
        note = encoder_note(recipe.encoder, encoder, sizes)
        super().__init__(recipe, model, model.system, encoder, note, splits, held)

    def begin(self, folder: Path) -> None:
        """List the videos that are held out."""
        if self.recipe.hold_out and self.held is not None and rank() == 0:
            write_text(folder / HELD_OUT, "".join(f"{item.id}\n" for item in self.held.items))

    @property
    def readable(self) -> list[Split]:
        """What is trained on: the splits, without what a frozen encoder could not read."""
        return [part.split for part in self.sets] or list(self.splits)

    def score(self, features: SplitFeatures) -> float:
        """Recalls on the validation set."""
        return validation_score(self.model, features, self.metric, self.device)

    def judged(self, held: Split) -> Split:
        """The captions that `validation_score` asks for."""
        return judged(held)

    def write(self, place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        """A checkpoint of retrieval."""
        titles = ", ".join(split.title() for split in self.readable)
        Checkpoint(
            model=self.model,
            encoder=self.note,
            system=self.recipe.system,
            recipe=self.recipe.to_dict(),
            scores=scores,
            note=f"Trained on {titles}.",
            tuned=tuned,
        ).save_pretrained(place)

    def labels(self) -> loop.Labels | None:
        """The truth, for an oracle."""
        return ground_truth(self.readable, self.device) if self.system.reads_truth else None

    def fixed(self) -> dict[str, Any]:
        """System, stem, encoder and data."""
        return super().fixed() | {
            "system": dict(self.recipe.system),
            "stem": to_values(self.recipe.stem),
            "encoder.words": self.recipe.encoder.words,
            "train": [split.title() for split in self.readable],
            "val": "" if self.held is None else self.held.title(),
            "digest of the training captions": [split.digest() for split in self.readable],
            "digest of the validation captions": "" if self.held is None else self.held.digest(),
        }

    def finish(self, folder: Path, held: Split, notes: Notes) -> None:
        """Give the chosen checkpoint its bank; a tuned encoder reads the videos again."""
        val, device = self.val, self.recipe.encoder.device
        if val is None:
            encoder = load(folder, device).encoder
            with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
                val = self.features(held, encoder, cache=Path(cache))
        seed = self.recipe.training.seed
        if found := hub_correction.save(folder, self.splits, val, self.sets, seed, device):
            notes.line(found)


def encoder_note(recipe: EncoderRecipe, encoder: Encoder, sizes: Sizes) -> EncoderNote:
    """What a checkpoint notes of the encoder it was trained on."""
    return EncoderNote(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        frames=recipe.frames,
        dim=encoder.dim,
        channels=encoder.channels,
        experts=dict(sizes.experts),
        sampling=recipe.sampling,
        fps=recipe.fps,
    )


def ground_truth(splits: Sequence[Split], device: str = "cpu") -> loop.Labels:
    """What an oracle knows of the pairs of a batch, by rows of all captions of the splits.

    The codes are those of `sureshot.models.losses.debiased`: which captions fit which videos of the
    batch, and the ambiguity of each caption: the logarithm of the number of videos of the split
    that it fits, over that of all its videos; 0 fits its own alone, 1 all.
    """
    if len(splits) != 1:
        raise SureshotError(
            f"An oracle knows which captions fit which videos of one synthetic dataset; there "
            f"are {len(splits)} sets to train on. Leave one."
        )
    truth, owner = read_truth(splits[0]), splits[0].owner()
    ambiguity = np.log(truth.videos_that_fit) / np.log(max(len(splits[0].items), 2))

    def labels(rows: Sequence[int]) -> Codes:
        chosen = np.array(rows)
        fits = torch.from_numpy(truth.fits[chosen][:, owner[chosen]])
        known = torch.from_numpy(ambiguity[chosen]).float()
        return {FITS: fits.to(device), AMBIGUITY: known.to(device)}

    return labels


def new_model(
    config: StemConfig, settings: Mapping[str, object], sizes: Sizes, seed: int, encoder: Encoder
) -> Model:
    """A stem and a system with their first weights, which the seed decides.

    From the encoder, if it is a CLIP, systems take over what their papers take.
    """
    torch.manual_seed(seed)
    stem = Stem(config, sizes)
    system = load_system(settings, stem.sizes)
    if config.kind == "linear" and system.reads_words and not config.words:
        raise SureshotError(
            f"stem.words is false, and {settings['name']} reads words; set it to true."
        )
    if not sizes.channels and not system.reads_experts:
        raise SureshotError(
            f"The encoder {encoder.name} reads texts alone, and {settings['name']} reads frames. "
            "Take another encoder, or ce or hit with experts, their folder as train.experts."
        )
    if sizes.experts and not system.reads_experts:
        names = ", ".join(name for name, _ in sizes.experts)
        raise SureshotError(
            f"{settings['name']} reads no experts such as {names}; leave train.experts out."
        )
    if config.kind == "none" and isinstance(encoder, ClipEncoder):
        text = encoder.text_weights()
        # CLIP's blocks fit where its texts are as wide as the space they share with frames.
        if text and text["final_layer_norm.weight"].shape == (stem.sizes.dim,):
            try:
                system.start_from_clip(text)
            except SureshotError as error:
                raise SureshotError(f"Weights begin as those of {encoder.name}. {error}") from None
    return Model(stem, system)


def judged(split: Split) -> Split:
    """A validation set with the captions alone that an epoch is judged by."""
    return replace(split, captions=tuple(split.captions[row] for row in _judged_rows(split)))


def _judged_rows(split: Split) -> list[int]:
    each = max(1, _CAPTIONS // len(split.items))
    return sorted(row for own in split.by_video() for row in own[:each])


def validation_score(model: Model, val: SplitFeatures, metric: str, device: str = "cpu") -> float:
    """The score of a model on a validation set, in percent, higher is better."""
    chosen = _judged_rows(val.split)
    scores = similarity(ModelSimilarity(model, device), val, captions=chosen)
    texts, videos = recalls(scores, val.split.owner()[chosen])
    return texts.r1 if metric == "r1" else rsum(texts, videos)


_STEPS = 3  # of a dry run, of which the first is not measured
_FEW = 32  # videos that a frozen encoder encodes for the measurement


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """Weights of the ``encoder`` or the ``system`` that share a learning rate and a decay."""

    part: str
    rate: float  # the full one; 0 for weights that stay as they are
    decay: float
    tensors: int
    weights: int  # numbers of all tensors together


@dataclass(frozen=True, slots=True)
class DryRun:
    """Time and memory that a training run is expected to take; nothing was written.

    Attributes:
        data: titles of the sets that are trained on.
        pairs: pairs per epoch, as are ``steps``.
        groups: the weights, those that stay as they are last.
        decoded: frames decoded per epoch; 0 for a frozen encoder, whose features are kept. Where
            frames are kept, those of the first epoch.
        kept: bytes that kept frames take on disk, of all epochs; 0 if none are kept.
        redrawn: whether each epoch has frames of its own to decode and keep.
        setup: seconds until the first step is done, without encoding.
        seconds: time of a step, the median of a few after the first.
        lacking: videos of all sets that a frozen encoder is to encode; the cache has the others.
            Of a tuned one those whose frames are prepared once, in the first epoch.
        encoding: seconds that it takes for each of them.
        validation: seconds of one, after each epoch.
        memory: most bytes of the device, or of the process on a processor; 0 if that is not known.
        hours: time of the whole run, without its plot and hub correction.
    """

    data: tuple[str, ...]
    videos: int
    captions: int
    epochs: int
    pairs: int
    batch: int
    steps: int
    groups: tuple[WeightGroup, ...]
    frames: int
    decoded: int
    kept: int
    redrawn: bool
    device: str
    setup: float
    seconds: float
    lacking: int
    encoding: float
    validation: float
    memory: int
    hours: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return to_values(self)

    def text(self) -> str:
        """The same for people."""
        total = self.steps * self.epochs
        groups = []
        for one in self.groups:
            rate = f"{one.rate:g}" if one.rate else "fixed"
            groups.append(
                (one.part, rate, f"{one.decay:g}", f"{one.tensors:,}", f"{one.weights:,}")
            )
        lines = [
            f"{' + '.join(self.data)}: {self.videos:,} videos, {self.captions:,} captions.",
            f"{self.pairs:,} pairs per epoch in {self.steps:,} steps of at most {self.batch:,}; "
            f"{counted(self.epochs, 'epoch')}, {total:,} steps in all.",
            f"{counted(self.frames, 'frame')} per video; {self._decoding()}.",
            "",
            *aligned([("weights of", "rate", "decay", "tensors", "numbers"), *groups]),
            "",
            f"Measured on {self.device}: {self.seconds:.2g} s per step"
            + (f", {self.memory / 2**30:.1f} GiB of memory at most." if self.memory else "."),
        ]
        if self.lacking:
            how = "Preparing frames" if self.decoded else "Encoding"
            spent, count = duration(self.encoding * self.lacking), counted(self.lacking, "video")
            which = count if self.decoded else f"{count} that the cache lacks"
            lines.append(f"{how} took {self.encoding:.2g} s per video: {spent} for {which}, once.")
        lines.append(
            f"Estimate: about {duration(self.hours * 3600)}, {duration(self.setup)} of it to "
            f"begin and {duration(self.validation * self.epochs)} to validate; without the plot "
            "and the hub correction at the end."
        )
        return "\n".join(lines) + "\n"

    def _decoding(self) -> str:
        if not self.decoded:
            return "decoded once, and their features are kept"
        if not self.kept:
            return f"{self.decoded:,} decoded in every epoch (fewer with training.keep_frames)"
        often = "in every epoch" if self.redrawn else "once"
        return f"{self.decoded:,} decoded {often} and kept, about {self.kept / 1e6:,.0f} MB"


def dry_run(
    recipe: str | Path | Recipe,
    *,
    settings: str | Sequence[str] = (),
    cache: str | Path | None = None,
    tests: Sequence[Split] = (),
    progress: Progress | None = None,
) -> DryRun:
    """Read the data of a recipe, build its model, take a few steps, write nothing.

    Arguments are those of `train`; ``tests`` are what is to be encoded besides.
    """
    began = time.perf_counter()
    read, _ = open_recipe(Recipe, recipe, "not written", settings)
    splits, held = read.splits()
    every = splits if held is None else [*splits, held]
    for split in every:
        (progress or Silent()).line(split.summary())
    config, task = read.training, RetrievalTask(read, splits, held, Silent())
    with tempfile.TemporaryDirectory(prefix="sureshot-") as folder:
        scratch, network, lacking, encoding = Path(folder), task.network(), 0, 0.0
        memory: FrameMemory | None = None
        if network is None:
            lacking = sum(
                uncached(one, task.encoder, cache, **task.how) for one in [*every, *tests]
            )
            start = time.perf_counter()
            few = task.features(_few(splits[0]), cache=scratch if lacking else cache)
            spent = time.perf_counter() - start if lacking else 0.0
            began, encoding = began + spent, spent / len(few.videos)
            task.sets = list(map(few.stand_in, splits, task.experts))
            task.val = None if held is None else few.stand_in(held, task.experts[-1])
            pairs: data.Pairs = data.FeaturePairs(task.sets, task.device)
        else:
            pairs = task.pairs(network, Notes(Silent()), cache, scratch, memory := FrameMemory())
        with pairs:
            run = loop.TrainState(task.model, pairs, config, network, labels=task.labels())
            if torch.device(task.device).type == "cuda":
                torch.cuda.reset_peak_memory_stats(task.device)
            groups, videos = _groups(run, network), len(pairs.items)
            every_one = run.captions == "all"
            pairs_each = task.system.passes * (len(pairs.captions) if every_one else videos)
            seconds, taken = _step_seconds(run)
            setup = time.perf_counter() - began - taken
            kept = [path.stat().st_size for path in scratch.rglob("*.jpg")]
            redrawn = Sampling(config.sampling or read.encoder.sampling).is_drawn
            if memory is not None and not redrawn and (kept or memory.holds(videos)):
                # The same steps on frames that are there, as in all epochs but the first.
                later = min(seconds, _step_seconds(run)[0])
                encoding, lacking = (seconds - later) * run.steps / pairs_each, videos
                seconds = later
            else:
                memory = None
            validation = 0.0
            if held is not None:
                validation = task.validation_seconds(held, network, scratch, memory)
    each = seconds * run.steps + validation
    return DryRun(
        data=tuple(split.title() for split in splits),
        videos=videos,
        captions=len(pairs.captions),
        epochs=config.epochs,
        pairs=pairs_each,
        batch=config.batch,
        steps=run.steps,
        groups=groups,
        frames=task.note.frames,
        decoded=(videos if kept else pairs_each) * task.note.frames if network else 0,
        kept=int(statistics.mean(kept) * videos * (config.epochs if redrawn else 1)) if kept else 0,
        redrawn=redrawn,
        device=task.device,
        setup=setup,
        seconds=seconds,
        lacking=lacking,
        encoding=encoding,
        validation=validation,
        memory=_peak(task.device),
        hours=(setup + encoding * lacking + each * config.epochs) / 3600,
    )


def _step_seconds(run: loop.TrainState) -> tuple[float, float]:
    """Take the first steps: seconds of one, the median of those after the first, and of these."""
    epochs = chain.from_iterable(map(run.epoch, range(min(_STEPS, run.config.epochs))))
    taken = [step.seconds for step in islice(epochs, _STEPS)]
    return statistics.median(taken[1:] or taken), sum(taken[1:])


def _few(split: Split) -> Split:
    return split.part({item.id for item in split.items[:_FEW]})


def _groups(run: loop.TrainState, network: Tuned | None) -> tuple[WeightGroup, ...]:
    """The optimiser's groups, then what is fixed in each part."""
    # A logit scale that both share is the encoder's.
    own = set() if network is None else set(network.parameters())
    found = [(g["params"], g["rate"], g["weight_decay"]) for g in run.optimiser.param_groups]
    trained = {weight for weights, _, _ in found for weight in weights}
    fixed = [weight for weight in run.modules.parameters() if weight not in trained]
    found += [([w for w in fixed if (w in own) == first], 0.0, 0.0) for first in (True, False)]
    return tuple(
        WeightGroup(
            part="encoder" if weights[0] in own else "system",
            rate=rate,
            decay=decay,
            tensors=len(weights),
            weights=sum(weight.numel() for weight in weights),
        )
        for weights, rate, decay in found
        if weights
    )


def _peak(device: str) -> int:
    """Most bytes taken so far, on a GPU by torch and elsewhere by this process."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024

"""From a recipe to a trained checkpoint: read, encode, build, fit, save; or only estimate that."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

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
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.features import FrameMemory, SplitFeatures, extract
from sureshot.research.scores import recalls, similarity
from sureshot.research.training import hub_correction
from sureshot.research.training.data import (
    FeaturePairs,
    Pairs,
    PixelPairs,
    TrainedEncoder,
    TrainingFrames,
    count,
)
from sureshot.research.training.distributed import from_torchrun, rank, world
from sureshot.research.training.encoder_tuning import Tuned, tuned
from sureshot.research.training.loop import (
    Labels,
    StepProgress,
    TrainingResult,
    TrainState,
    check_new,
    fit,
    prepare,
    steps_of,
)
from sureshot.research.training.recipe import EncoderRecipe, Recipe, RecipeFile, TrainingConfig
from sureshot.settings import override, to_values
from sureshot.text import aligned, counted, duration

FRAMES, UNREADABLE, RECIPE = "frames", "unreadable.txt", "recipe.toml"  # in the folder of a run
_CAPTIONS = 2000  # of the validation set that an epoch is judged by, spread evenly over its videos
_R = TypeVar("_R", bound=RecipeFile)
SaveEncoder = Callable[[Path], None]  # writes an encoder that was trained into a new folder


@dataclass(frozen=True, slots=True)
class Task:
    """What a run learns: to find videos, or to answer questions about them.

    Attributes:
        model: stem and system with their first weights, on ``device``.
        system: retrieval system within the model, which an encoder would be trained with.
        encoder: what texts and videos go through first.
        frames: frames sampled from each video, at most.
        metric: name of the score that a checkpoint is chosen by.
        score: gives the model's score, in percent, from features of the validation set.
        write: writes a checkpoint into an empty folder, given its scores by name and, where the
            encoder was trained too, what writes that.
        fixed: more settings, as JSON holds them, that must not change within a run.
        labels: codes of pairs for losses that want more than which text belongs to which video.
        words: tokens of a text that a tuned encoder reads; None is all that it can.
    """

    model: Model
    system: System
    device: str
    encoder: Encoder
    frames: int
    sampling: Sampling
    training: TrainingConfig
    metric: str
    score: Callable[[SplitFeatures], float]
    write: Callable[[Path, Mapping[str, float], SaveEncoder | None], None]
    fixed: Mapping[str, Any]
    labels: Labels | None = None
    words: int | None = None

    def features(self, split: Split, encoder: Encoder, **where: Any) -> SplitFeatures:
        """Features of a split as the model reads them; ``where`` goes to `extract`."""
        return extract(
            split,
            encoder,
            frames=self.frames,
            sampling=self.sampling,
            whole_grid=self.system.whole_grid,
            **where,
        )

    def pairs(self, sets: Sequence[SplitFeatures]) -> FeaturePairs:
        """Pairs of features to train on."""
        # A linear stem reads no patches, and padding them is most of a batch's work.
        patches = self.model.stem.config.kind == "none"
        return FeaturePairs(sets, self.device, patches=patches)

    def tuned(self) -> Tuned:
        """The encoder with a graph.

        Raises:
            SureshotError: it cannot be trained.
        """
        return tuned(self.encoder, self.system, self.words, self.training.seed)

    def training_frames(self, encoder: TrainedEncoder, folder: Path) -> TrainingFrames:
        """What reads the frames that an encoder is trained on; kept ones are in the folder."""
        config = self.training
        return TrainingFrames(
            encoder=encoder,
            frames=self.frames,
            sampling=Sampling(config.sampling or self.sampling.kind, self.sampling.fps),
            augment=config.augment,
            seed=config.seed,
            kept=folder / FRAMES if config.keep_frames else None,
        )


def fit_features(
    task: Task,
    sets: Sequence[SplitFeatures],
    val: SplitFeatures | None,
    folder: Path,
    progress: Progress,
    *,
    resume: bool = False,
) -> TrainingResult:
    """Learn from features of a frozen encoder; arguments and errors as of `fit_pixels`."""
    validate = None if val is None else lambda: task.score(val)
    return _fit(task, task.pairs(sets), folder, progress, validate=validate, resume=resume)


def fit_pixels(
    task: Task,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    progress: Progress,
    *,
    resume: bool = False,
    memory: FrameMemory | None = None,
) -> TrainingResult:
    """Train the encoder too, on frames that are decoded in every epoch or kept from the first.

    A video that cannot be read is left out; ``unreadable.txt`` in the run's folder lists these.

    Args:
        task: what is learned.
        splits: sets to train on.
        held: the set to choose a checkpoint on, or None.
        folder: folder of the run, see `sureshot.research.training.loop.fit`.
        progress: hears how many steps are done.
        resume: go on with the run in the folder, if there is one.
        memory: frames that several runs share; None is one of this run's own.

    Raises:
        SureshotError: the encoder cannot be trained, or see `sureshot.research.training.loop.fit`.
    """
    network = task.tuned()
    read = task.training_frames(network.encoder, folder)
    memory = memory or FrameMemory()

    def validate(held: Split) -> float:
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            seen = task.features(held, network.encoder, cache=Path(cache), memory=memory)
            return task.score(seen)

    check = None if held is None else lambda: validate(held)
    shared = memory if read.steady else None
    with PixelPairs(splits, network, read, task.training.workers, memory=shared) as pairs:
        fitted = _fit(task, pairs, folder, progress, validate=check, resume=resume, network=network)
        notes = _list_unreadable(pairs.unreadable, folder)
    return replace(fitted, notes=(*fitted.notes, *notes))


def _list_unreadable(unreadable: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Write which videos were left out and why; a note that says how many, if there are some."""
    if not unreadable:
        return ()
    if rank() == 0:
        lines = [f"{name}\t{reason}\n" for name, reason in sorted(unreadable.items())]
        write_text(folder / UNREADABLE, "".join(lines))
    name, reason = min(unreadable.items())
    count = counted(len(unreadable), "video")
    return (f"Left out: {count} that cannot be read, such as {name} ({reason}); see {UNREADABLE}.",)


def _fit(
    task: Task,
    pairs: Pairs,
    folder: Path,
    progress: Progress,
    *,
    validate: Callable[[], float] | None,
    resume: bool,
    network: Tuned | None = None,
) -> TrainingResult:
    def save(place: Path, epoch: int, score: float | None) -> None:
        scores = {} if score is None else {task.metric: score}
        encoder = None if network is None else network.save
        task.write(place, {"epoch": float(epoch), **scores}, encoder)

    def on_step(step: StepProgress) -> None:
        more = f", epoch {step.epoch}, loss {step.losses['loss']:.4g}"
        progress.update("steps", step.step, step.steps, more)

    fitted = fit(
        task.model,
        pairs,
        task.training,
        folder,
        save=save,
        validate=validate,
        encoder=network,
        labels=task.labels,
        resume=resume,
        fixed=task.fixed,
        on_step=on_step,
    )
    return replace(fitted, metric=task.metric)


def train(
    recipe: str | Path | Recipe,
    *,
    to: str | Path | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    cache: Path | None = None,
    progress: Progress | None = None,
    note: str = "",
) -> TrainingResult:
    """Train a system by a recipe, in one process or in each of those that torchrun started.

    Args:
        recipe: what is trained and how: a TOML file, or its value.
        to: folder of the run, see `sureshot.research.training.loop.fit`; the recipe is kept in it
            too. None is ``runs/NAME`` for a file of this name.
        settings: settings that replace those of the recipe, each as ``name.of.setting=value``.
        resume: go on with the run in the folder, if there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
        progress: hears what was read and how far the run is.
        note: sentences for the card of the checkpoint.

    Raises:
        SureshotError: anything wrong with the recipe, the data, or a number that is not finite.
    """
    read, folder = open_recipe(Recipe, recipe, to, settings)
    with from_torchrun():
        notes = first_notes(progress)
        splits, held = read.splits()
        for split in [*splits, *([] if held is None else [held])]:
            notes.line(split.summary())
        fitted = train_splits(
            read, splits, held, folder, notes, resume=resume, cache=cache, note=note
        )
        return replace(fitted, notes=tuple(notes.lines))


def train_splits(
    recipe: Recipe,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    notes: Notes,
    *,
    resume: bool = False,
    cache: Path | None = None,
    note: str = "",
) -> TrainingResult:
    """Train by a recipe on splits that are read already; see `train`."""
    encoder = load_encoder(recipe.encoder.name, recipe.encoder.device)
    # What would be refused after all videos have been encoded is refused before.
    if not resume:
        check_new(folder)
    experts = [_experts(split, notes) for split in splits]
    task = retrieval_task(recipe, encoder, _sizes(encoder, experts), splits, note)
    sets: list[SplitFeatures] = []
    val = None
    if recipe.encoder.tuned:
        fitted = fit_pixels(task, splits, held, folder, notes, resume=resume)
    else:

        def features(split: Split, experts: Mapping[str, Experts]) -> SplitFeatures:
            seen = task.features(split, encoder, cache=cache, progress=notes)
            note_unreadable(seen, notes)
            return replace(seen, experts=experts)

        sets = [features(*part) for part in zip(splits, experts, strict=True)]
        val = None if held is None else features(held, _experts(held, notes))
        # Once more, of the videos that can be read.
        fitted = train_on(
            recipe, encoder, sets, val, folder, resume=resume, progress=notes, note=note
        )
    fitted = finish_run(recipe, folder, fitted, notes)
    if rank() == 0 and held is not None:
        _add_hub_bank(task, recipe.encoder, fitted, splits, held, val, sets, notes)
    return fitted


def open_recipe(
    kind: type[_R], recipe: str | Path | _R, to: str | Path | None, settings: Sequence[str]
) -> tuple[_R, Path]:
    """A recipe with its settings replaced, and the folder of its run; arguments as of `train`.

    Raises:
        ArgumentError: the recipe is a value, and no folder is named.
        SureshotError: the recipe cannot be read, or a setting is wrong.
    """
    if isinstance(recipe, str | Path):
        path = Path(recipe)
        return kind.load(path, settings), Path("runs") / path.stem if to is None else Path(to)
    if to is None:
        raise ArgumentError(
            f"A recipe that is not a file has no name; name a folder: {option('to')}."
        )
    values = recipe.to_dict()
    for assignment in settings:
        values = override(values, assignment)
    return kind.from_dict(values, Path.cwd()), Path(to)


def first_notes(progress: Progress | None) -> Notes:
    """The notes of a run; only the first process reports its progress."""
    return Notes(progress if progress is not None and rank() == 0 else Silent())


def finish_run(
    recipe: RecipeFile, folder: Path, fitted: TrainingResult, notes: Notes
) -> TrainingResult:
    """Keep the recipe of a finished run in its folder, and the notes of the run in its result."""
    for line in fitted.notes:
        notes.line(line)
    if rank() == 0:
        recipe.save(folder / RECIPE)
    return replace(fitted, notes=tuple(notes.lines))


def _add_hub_bank(
    task: Task,
    recipe: EncoderRecipe,
    fitted: TrainingResult,
    splits: Sequence[Split],
    held: Split,
    val: SplitFeatures | None,
    sets: Sequence[SplitFeatures],
    notes: Notes,
) -> None:
    """Give the chosen checkpoint its bank; a tuned encoder reads the videos again."""
    if val is None:
        encoder = load(fitted.folder, recipe.device).encoder
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            val = task.features(held, encoder, cache=Path(cache))
    seed = task.training.seed
    found = hub_correction.save(fitted.folder, splits, val, sets, seed, recipe.device)
    if found:
        notes.line(found)


def train_on(
    recipe: Recipe,
    encoder: Encoder,
    sets: Sequence[SplitFeatures],
    val: SplitFeatures | None,
    folder: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    note: str = "",
) -> TrainingResult:
    """Train by a recipe on features that are there already; the rest is as of `train`.

    Args:
        recipe: how; its data sets are not read.
        encoder: the encoder that gave the features.
        sets: features to train on.
        val: features to choose a checkpoint on, or None.

    Raises:
        SureshotError: the recipe wants the encoder trained too, a setting is wrong, or a number is
            not finite.
    """
    if recipe.encoder.tuned:
        raise SureshotError("encoder.tuned needs pixels, not features; see `train`.")
    sizes = _sizes(encoder, [part.experts for part in sets])
    task = retrieval_task(recipe, encoder, sizes, [part.split for part in sets], note)
    return fit_features(task, sets, val, folder, progress or Silent(), resume=resume)


def _sizes(encoder: Encoder, experts: Sequence[Mapping[str, Experts]]) -> Sizes:
    return Sizes(dim=encoder.dim, channels=encoder.channels, experts=expert_sizes(experts))


def retrieval_task(
    recipe: Recipe, encoder: Encoder, sizes: Sizes, splits: Sequence[Split], note: str = ""
) -> Task:
    """To find videos by their texts.

    Args:
        recipe: how; its data sets are not read.
        encoder: what texts and videos go through first.
        sizes: sizes of what the encoder gives.
        splits: the sets that are trained on, for the card and for oracles.
        note: more sentences for the card.

    Raises:
        SureshotError: a setting of the system is wrong, or the stem leaves out what it reads.
    """
    device = device_for(recipe.encoder.device)
    model = new_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder).to(device)
    if model.system.reads_truth and (recipe.training.micro_batch or world() > 1):
        raise SureshotError(
            "An oracle is told the truth about a whole batch; leave out training.micro_batch, and "
            "train in one process."
        )
    titles = [split.title() for split in splits]
    noted = encoder_note(recipe.encoder, encoder, sizes)

    def write(place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        Checkpoint(
            model=model,
            encoder=noted,
            system=recipe.system,
            recipe=recipe.to_dict(),
            scores=scores,
            note=f"Trained on {', '.join(titles)}. {note}".strip(),
            tuned=tuned,
        ).save_pretrained(place)

    return Task(
        model=model,
        device=device,
        encoder=encoder,
        frames=recipe.encoder.frames,
        sampling=recipe.encoder.rule,
        words=recipe.encoder.words,
        training=recipe.training,
        metric=recipe.training.metric,
        system=model.system,
        score=lambda val: validation_score(model, val, recipe.training.metric, device),
        write=write,
        labels=ground_truth(splits, device) if model.system.reads_truth else None,
        fixed={
            "system": dict(recipe.system),
            "stem": to_values(recipe.stem),
            **fixed_of_encoder(noted),
            "encoder.words": recipe.encoder.words,
            "train": titles,
        },
    )


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


def fixed_of_encoder(note: EncoderNote) -> dict[str, Any]:
    """What of the encoder must not change within a run."""
    return {
        "encoder": note.fingerprint,
        "encoder.frames": note.frames,
        "encoder.sampling": note.sampling,
        "encoder.fps": note.fps,
    }


def ground_truth(splits: Sequence[Split], device: str = "cpu") -> Labels:
    """What an oracle knows of the pairs of a batch, by rows of all captions of the splits.

    The codes are those of `sureshot.models.losses.debiased`: which captions fit which videos of the
    batch, and the ambiguity of each caption: the logarithm of the number of videos of the split
    that it fits, over that of all its videos; 0 fits its own alone, 1 all.

    Raises:
        SureshotError: there is more than one split, or it is not of a synthetic dataset.
    """
    if len(splits) != 1:
        raise SureshotError(
            f"An oracle is told which captions fit which videos of one synthetic dataset; there "
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


def _experts(split: Split, notes: Notes) -> dict[str, Experts]:
    """What was extracted of the videos of a split beforehand."""
    experts = read_experts(split.experts, [item.id for item in split.items])
    if experts:
        notes.line(f"{split.title()}; experts: {presence(experts)}")
    return experts


def note_unreadable(part: SplitFeatures, notes: Notes) -> None:
    """A line about the videos of a set that cannot be read, if there are some."""
    if part.unreadable:
        (name, reason), *others = part.unreadable
        more = f", and {len(others)} more" if others else ""
        notes.line(f"{part.split.title()}; left out: {name} {reason}{more}")


def new_model(
    config: StemConfig, settings: Mapping[str, object], sizes: Sizes, seed: int, encoder: Encoder
) -> Model:
    """A stem and a system with their first weights, which the seed decides, and CLIP.

    Args:
        config: settings of the stem.
        settings: settings of the system, with its ``name``.
        sizes: sizes of the features it will read.
        seed: seed of the run.
        encoder: what gives the features; of a CLIP, systems take over what their papers take.

    Raises:
        SureshotError: a setting of the system is wrong, the stem leaves out what it reads, or CLIP
            has fewer text blocks than the system wants of it.
    """
    torch.manual_seed(seed)
    stem = Stem(config, sizes)
    system = load_system(settings, stem.sizes)
    if config.kind == "linear" and system.reads_words and not config.words:
        raise SureshotError(
            f"stem.words is false, and {settings['name']} reads words; set it to true."
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
            system.start_from_clip(text)
    return Model(stem, system)


def validation_score(model: Model, val: SplitFeatures, metric: str, device: str = "cpu") -> float:
    """The score of a model on a validation set, in percent, higher is better."""
    each = max(1, _CAPTIONS // len(val.videos))
    chosen = sorted(row for own in val.split.by_video() for row in own[:each])
    scores = similarity(ModelSimilarity(model, device), val, captions=chosen)
    texts, videos = recalls(scores, val.split.owner()[chosen])
    return texts.r1 if metric == "r1" else rsum(texts, videos)


_STEPS = 3  # of a dry run, of which the first is not measured
_FEW = 32  # videos that a frozen encoder encodes for the measurement


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """Weights that share a learning rate and a decay.

    Attributes:
        part: ``encoder`` or ``system``.
        rate: full learning rate; 0 for weights that stay as they are.
        decay: weight decay.
        tensors: how many tensors there are.
        weights: how many numbers they have together.
    """

    part: str
    rate: float
    decay: float
    tensors: int
    weights: int


@dataclass(frozen=True, slots=True)
class DryRun:
    """Time and memory that a training run is expected to take; nothing was written.

    Attributes:
        data: titles of the sets that are trained on.
        epochs: passes over the data.
        pairs: pairs per epoch.
        batch: most pairs of a batch.
        steps: steps per epoch.
        groups: the weights, those that stay as they are last.
        frames: frames sampled from a video.
        decoded: frames decoded per epoch; 0 for a frozen encoder, whose features are kept.
        kept: bytes that kept frames take on disk; 0 if none are kept.
        seconds: time of a step, the median of a few after the first.
        measured: pairs of a measured step.
        encoding: seconds that a frozen encoder takes per video; 0 if it is trained too.
        memory: most bytes of the device, or of the process on a processor; 0 if that is not known.
        hours: time of the whole run, without validation.
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
    device: str
    seconds: float
    measured: int
    encoding: float
    memory: int
    hours: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values: dict[str, Any] = to_values(self)
        return values

    def text(self) -> str:
        """The same for people."""
        total = self.steps * self.epochs
        groups = [
            (g.part, f"{g.rate:g}" if g.rate else "fixed", f"{g.decay:g}", *map("{:,}".format, n))
            for g, n in ((group, (group.tensors, group.weights)) for group in self.groups)
        ]
        lines = [
            f"{' + '.join(self.data)}: {self.videos:,} videos, {self.captions:,} captions.",
            f"{self.pairs:,} pairs per epoch in {self.steps:,} steps of at most {self.batch:,}; "
            f"{counted(self.epochs, 'epoch')}, {total:,} steps in all.",
            f"{counted(self.frames, 'frame')} per video; {self._decoding()}.",
            "",
            *aligned([("weights of", "rate", "decay", "tensors", "numbers"), *groups]),
            "",
            f"Measured on {self.device}: {self.seconds:.2g} s per step of {self.measured} pairs"
            + (f", {self.memory / 2**30:.1f} GiB of memory at most." if self.memory else "."),
        ]
        if self.encoding:
            spent = duration(self.encoding * self.videos)
            lines.append(f"Encoding took {self.encoding:.2g} s per video: {spent} for all, once.")
        lines.append(f"Estimate: about {duration(self.hours * 3600)} without validation.")
        return "\n".join(lines) + "\n"

    def _decoding(self) -> str:
        if not self.decoded:
            return "decoded once, and their features are kept"
        if not self.kept:
            return f"{self.decoded:,} decoded in every epoch (training.keep_frames does it once)"
        return f"{self.decoded:,} decoded once and kept, about {self.kept / 1e6:,.0f} MB"


def dry_run(
    recipe: str | Path | Recipe,
    *,
    settings: Sequence[str] = (),
    progress: Progress | None = None,
) -> DryRun:
    """Read the data of a recipe, build its model and take a few steps; nothing is written.

    Args:
        recipe: what would be trained and how: a TOML file, or its value.
        settings: settings that replace those of the recipe, each as ``name.of.setting=value``.
        progress: hears what was read.

    Raises:
        SureshotError: anything that would stop the run: a wrong setting, data or model.
    """
    read, _ = open_recipe(Recipe, recipe, "not written", settings)
    splits, held = read.splits()
    notes = Notes(progress or Silent())
    for split in [*splits, *([] if held is None else [held])]:
        notes.line(split.summary())
    encoder = load_encoder(read.encoder.name, read.encoder.device)
    # Of a frozen encoder's videos few are encoded, and steps are taken on those.
    few = splits[0].part({item.id for item in splits[0].items[:_FEW]})
    experts = read_experts(few.experts, [item.id for item in few.items])
    task = retrieval_task(read, encoder, _sizes(encoder, [experts]), splits)
    with tempfile.TemporaryDirectory(prefix="sureshot-") as scratch:
        if not read.encoder.tuned:
            began = time.perf_counter()
            seen = task.features(few, encoder, cache=Path(scratch))
            spent = (time.perf_counter() - began) / len(few.items)
            found = _measured(task, splits, task.pairs([replace(seen, experts=experts)]))
            return replace(found, encoding=spent, hours=found.hours + spent * found.videos / 3600)
        network = task.tuned()
        frames = task.training_frames(network.encoder, Path(scratch))
        with PixelPairs(splits, network, frames, task.training.workers) as pairs:
            found = _measured(task, splits, pairs, network)
        kept = [path.stat().st_size for path in Path(scratch).rglob("*.jpg")]
    size = int(statistics.mean(kept) * found.videos) if kept else 0
    return replace(found, decoded=found.videos * task.frames, kept=size)


def _measured(
    task: Task, splits: Sequence[Split], pairs: Pairs, network: Tuned | None = None
) -> DryRun:
    """Sizes of the run, and a few steps of it."""
    config, passes = task.training, task.system.passes
    run = prepare(task.model, pairs, config, network)
    groups = _groups(run, network)
    if torch.device(task.device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(task.device)
    taken = list(islice(steps_of(run, 0), _STEPS))
    seconds = statistics.median([step.seconds for step in taken][-(_STEPS - 1) :])
    whole = [(n, caption.video) for n, split in enumerate(splits) for caption in split.captions]
    number = {video: place for place, video in enumerate(dict.fromkeys(whole))}
    numbers = [number[video] for video in whole]
    steps = passes * count(numbers, batch=config.batch, captions=config.captions or "one")
    return DryRun(
        data=tuple(split.title() for split in splits),
        videos=sum(len(split.items) for split in splits),
        captions=len(whole),
        epochs=config.epochs,
        pairs=passes * len(whole if config.captions == "all" else number),
        batch=config.batch,
        steps=steps,
        groups=groups,
        frames=task.frames,
        decoded=0,
        kept=0,
        device=task.device,
        seconds=seconds,
        measured=min(config.batch, len(set(pairs.video_of))),
        encoding=0.0,
        memory=_peak(task.device),
        hours=seconds * steps * config.epochs / 3600,
    )


def _groups(run: TrainState, network: nn.Module | None) -> tuple[WeightGroup, ...]:
    """The optimiser's groups, then what is fixed in each part."""
    parts: dict[str, nn.Module] = {"encoder": network} if network is not None else {}
    parts["system"] = run.model
    part_of: dict[nn.Parameter, str] = {}
    for name, module in parts.items():
        for weight in module.parameters():
            part_of.setdefault(weight, name)  # a logit scale that both share is the encoder's

    def group(
        part: str, weights: Sequence[nn.Parameter], rate: float = 0.0, decay: float = 0.0
    ) -> WeightGroup:
        count = sum(w.numel() for w in weights)
        return WeightGroup(part, rate, decay, tensors=len(weights), weights=count)

    made, trained = [], set()
    for held in run.optimiser.param_groups:
        weights: list[nn.Parameter] = held["params"]
        trained.update(weights)
        made.append(group(part_of[weights[0]], weights, held["rate"], held["weight_decay"]))
    fixed = {
        name: [w for w in part_of if part_of[w] == name and w not in trained] for name in parts
    }
    return (*made, *(group(name, weights) for name, weights in fixed.items() if weights))


def _peak(device: str) -> int:
    """Most bytes taken so far, on a GPU by torch and elsewhere by this process."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024

"""What a recipe comes to: pairs, steps, weights, frames, and time and memory of a few steps."""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sureshot.datasets import Split
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.experts import expert_sizes, read_experts
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.training.batches import count
from sureshot.research.training.epoch import Fitting, StepProgress, prepare, steps_of
from sureshot.research.training.pairs import FeaturePairs, Pairs
from sureshot.research.training.pixels import PixelPairs
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import opened, retrieval_task
from sureshot.research.training.task import Task, training_frames
from sureshot.research.training.tuning import Tuned, tuned
from sureshot.settings import to_values
from sureshot.text import aligned, counted, duration

_STEPS = 3  # taken, of which the first is not measured
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
class Rehearsal:
    """What a training run comes to; nothing was written.

    Attributes:
        data: titles of the sets that are trained on.
        videos: videos of these sets.
        captions: captions of these sets.
        epochs: passes over the data.
        pairs: pairs of an epoch.
        batch: most pairs of a batch.
        steps: steps of an epoch.
        groups: the weights, those that stay as they are last.
        frames: frames sampled from a video.
        decoded: frames decoded in an epoch; 0 for a frozen encoder, whose features are kept.
        kept: bytes that kept frames take on disk; 0 if none are kept.
        device: torch device.
        seconds: time of a step, the median of a few after the first.
        measured: pairs of a measured step.
        encoding: seconds that a frozen encoder takes for a video; 0 if it is trained too.
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
        lines = [
            f"{' + '.join(self.data)}: {self.videos:,} videos, {self.captions:,} captions.",
            f"{self.pairs:,} pairs an epoch in {self.steps:,} steps of at most {self.batch:,}; "
            f"{counted(self.epochs, 'epoch')}, {total:,} steps in all.",
            f"{counted(self.frames, 'frame')} a video; {self._decoding()}.",
            "",
            *aligned([("weights of", "rate", "decay", "tensors", "numbers"), *self._rows()]),
            "",
            f"Measured on {self.device}: {self.seconds:.2g} s a step of {self.measured} pairs"
            + (f", {self.memory / 2**30:.1f} GiB of memory at most." if self.memory else "."),
        ]
        if self.encoding:
            spent = duration(self.encoding * self.videos)
            lines.append(f"Encoding a video took {self.encoding:.2g} s: {spent} for all, once.")
        lines.append(f"That makes about {duration(self.hours * 3600)} without validation.")
        return "\n".join(lines) + "\n"

    def _decoding(self) -> str:
        if not self.decoded:
            return "decoded once, and their features are kept"
        if not self.kept:
            return f"{self.decoded:,} decoded in every epoch (training.keep_frames does it once)"
        return f"{self.decoded:,} decoded once and kept, about {self.kept / 1e6:,.0f} MB"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for group in self.groups:
            rate = f"{group.rate:g}" if group.rate else "fixed"
            yield group.part, rate, f"{group.decay:g}", f"{group.tensors:,}", f"{group.weights:,}"


def rehearse(
    recipe: str | Path | Recipe,
    *,
    settings: Sequence[str] = (),
    listener: Listener | None = None,
) -> Rehearsal:
    """Read the data of a recipe, build its model and take a few steps; nothing is written.

    Args:
        recipe: what would be trained and how: a TOML file, or its value.
        settings: settings that replace those of the recipe, each as ``name.of.setting=value``.
        listener: hears what was read.

    Raises:
        SureshotError: anything that would stop the run: a wrong setting, data or model.
    """
    read, _ = opened(Recipe, recipe, "not written", settings)
    splits, held = read.splits()
    notes = Notes(listener or Silence())
    for split in [*splits, *([] if held is None else [held])]:
        notes.line(split.summary())
    encoder = load_encoder(read.encoder.name, read.encoder.device)
    with tempfile.TemporaryDirectory(prefix="sureshot-") as scratch:
        if read.encoder.tuned:
            return _tuned(read, splits, encoder, Path(scratch))
        return _frozen(read, splits, encoder, Path(scratch))


def _tuned(recipe: Recipe, splits: Sequence[Split], encoder: Encoder, scratch: Path) -> Rehearsal:
    sizes = Sizes(dim=encoder.dim, channels=encoder.channels)
    task = retrieval_task(recipe, encoder, sizes, splits)
    network = tuned(encoder, task.system, task.words, recipe.training.seed)
    read = training_frames(task, network.encoder, scratch)
    with PixelPairs(splits, network, read, recipe.training.workers) as pairs:
        found = _measured(recipe, task, splits, pairs, network)
    kept = [path.stat().st_size for path in scratch.rglob("*.jpg")]
    videos = sum(len(split.items) for split in splits)
    return replace(
        found,
        decoded=videos * recipe.encoder.frames,
        kept=int(statistics.mean(kept) * videos) if kept else 0,
    )


def _frozen(recipe: Recipe, splits: Sequence[Split], encoder: Encoder, scratch: Path) -> Rehearsal:
    """Few videos are encoded, and steps are taken on those."""
    few = splits[0].part({item.id for item in splits[0].items[:_FEW]})
    experts = read_experts(few.experts, [item.id for item in few.items])
    sizes = Sizes(dim=encoder.dim, channels=encoder.channels, experts=expert_sizes([experts]))
    task = retrieval_task(recipe, encoder, sizes, splits)
    began = time.perf_counter()
    seen: SplitFeatures = extract(
        few,
        encoder,
        frames=recipe.encoder.frames,
        sampling=recipe.encoder.rule,
        whole_grid=task.system.whole_grid,
        cache=scratch,
    )
    spent = (time.perf_counter() - began) / len(few.items)
    patches = task.model.stem.config.kind == "none"
    pairs = FeaturePairs([replace(seen, experts=experts)], task.device, patches=patches)
    found = _measured(recipe, task, splits, pairs, None)
    return replace(found, encoding=spent, hours=found.hours + spent * found.videos / 3600)


def _measured(
    recipe: Recipe, task: Task, splits: Sequence[Split], pairs: Pairs, network: Tuned | None
) -> Rehearsal:
    """Sizes of the run, and a few steps of it."""
    config = recipe.training
    run = prepare(task.model, pairs, config, network, {}, None)
    groups = _groups(run, network)
    if torch.device(task.device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(task.device)
    told: list[StepProgress] = list(islice(steps_of(run, 0), _STEPS))
    seconds = statistics.median([progress.seconds for progress in told][-(_STEPS - 1) :])
    video_of: list[tuple[int, int]] = []
    for number, split in enumerate(splits):
        video_of += [(number, caption.video) for caption in split.captions]
    order = {video: place for place, video in enumerate(dict.fromkeys(video_of))}
    numbers = [order[video] for video in video_of]
    steps = count(numbers, batch=config.batch, captions=config.captions or "one")
    steps *= task.system.passes
    pairs_an_epoch = len(video_of) if config.captions == "all" else len(order)
    seen = min(config.batch, len(set(pairs.video_of)))
    return Rehearsal(
        data=tuple(split.title() for split in splits),
        videos=sum(len(split.items) for split in splits),
        captions=len(video_of),
        epochs=config.epochs,
        pairs=pairs_an_epoch * task.system.passes,
        batch=config.batch,
        steps=steps,
        groups=groups,
        frames=recipe.encoder.frames,
        decoded=0,
        kept=0,
        device=task.device,
        seconds=seconds,
        measured=seen,
        encoding=0.0,
        memory=_peak(task.device),
        hours=seconds * steps * config.epochs / 3600,
    )


def _groups(run: Fitting, network: nn.Module | None) -> tuple[WeightGroup, ...]:
    """The optimiser's groups, then what is fixed in each part."""
    parts: dict[str, nn.Module] = {"encoder": network} if network is not None else {}
    parts["system"] = run.model
    part_of: dict[nn.Parameter, str] = {}
    for name, module in parts.items():
        for weight in module.parameters():
            part_of.setdefault(weight, name)  # a logit scale that both share is the encoder's
    made, trained = [], set()
    for group in run.optimiser.param_groups:
        weights: list[nn.Parameter] = group["params"]
        trained.update(weights)
        made.append(_group(part_of[weights[0]], group["rate"], group["weight_decay"], weights))
    for name, module in parts.items():
        fixed = [w for w in module.parameters() if part_of[w] == name and w not in trained]
        if fixed:
            made.append(_group(name, 0.0, 0.0, fixed))
    return tuple(made)


def _group(part: str, rate: float, decay: float, weights: Sequence[nn.Parameter]) -> WeightGroup:
    return WeightGroup(
        part=part,
        rate=rate,
        decay=decay,
        tensors=len(weights),
        weights=sum(weight.numel() for weight in weights),
    )


def _peak(device: str) -> int:
    """Most bytes taken so far, on a GPU by torch and elsewhere by this process."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024

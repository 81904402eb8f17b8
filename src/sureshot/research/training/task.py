"""What a run learns, and the two ways to learn it: from features, or from pixels end to end."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from sureshot.datasets import Item, Split
from sureshot.errors import SureshotError
from sureshot.models.encoders import Encoder
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.model import Model
from sureshot.models.systems.system import System
from sureshot.research.features import SplitFeatures, extract, sampled_frames
from sureshot.research.listener import Listener
from sureshot.research.training.loop import Fitted, Labels, Save, StepProgress, fit
from sureshot.research.training.pairs import FeaturePairs
from sureshot.research.training.pixels import PixelPairs
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.tuning import TunedClip

SaveEncoder = Callable[[Path], None]  # writes an encoder that was trained into a new folder


@dataclass(frozen=True, slots=True)
class Task:
    """What a run learns: to find videos, or to answer questions about them.

    Attributes:
        model: stem and system with their first weights, on ``device``.
        system: retrieval system within the model, which an encoder would be trained with.
        device: torch device of the model.
        encoder: what texts and videos go through first.
        frames: frames sampled from each video, at most.
        training: how weights are fitted.
        metric: name of the score that a checkpoint is chosen by.
        score: gives the model's score, in percent, from features of the validation set.
        write: writes a checkpoint into an empty folder, given its scores by name and, where the
            encoder was trained too, what writes that.
        fixed: more settings, as JSON holds them, that must not change within a run.
        labels: codes of pairs for losses that want more than which text belongs to which video.
    """

    model: Model
    system: System
    device: str
    encoder: Encoder
    frames: int
    training: TrainingConfig
    metric: str
    score: Callable[[SplitFeatures], float]
    write: Callable[[Path, Mapping[str, float], SaveEncoder | None], None]
    fixed: Mapping[str, Any]
    labels: Labels | None = None


def fit_features(
    task: Task,
    sets: Sequence[SplitFeatures],
    val: SplitFeatures | None,
    folder: Path,
    listener: Listener,
    *,
    resume: bool = False,
) -> Fitted:
    """Learn from features of a frozen encoder.

    Args:
        task: what is learned.
        sets: features to train on.
        val: features to choose a checkpoint on, or None.
        folder: folder of the run, see `sureshot.research.training.loop.fit`.
        listener: hears how many steps are done.
        resume: go on with the run in the folder, if there is one.

    Raises:
        SureshotError: see `sureshot.research.training.loop.fit`.
    """
    # A linear stem reads no patches, and padding them is most of a batch's work.
    patches = task.model.stem.config.kind == "none"
    fitted = fit(
        task.model,
        FeaturePairs(sets, task.device, patches=patches),
        task.training,
        folder,
        save=_save(task),
        validate=None if val is None else lambda: task.score(val),
        labels=task.labels,
        resume=resume,
        described=task.fixed,
        told=_steps(listener),
    )
    return replace(fitted, metric=task.metric)


def fit_pixels(
    task: Task,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    listener: Listener,
    *,
    resume: bool = False,
) -> Fitted:
    """Train the encoder too, on frames that are decoded in every epoch.

    Args:
        task: what is learned.
        splits: sets to train on.
        held: the set to choose a checkpoint on, or None.
        folder: folder of the run, see `sureshot.research.training.loop.fit`.
        listener: hears how many steps are done.
        resume: go on with the run in the folder, if there is one.

    Raises:
        SureshotError: the encoder cannot be trained, or see `sureshot.research.training.loop.fit`.
    """
    encoder, frames = task.encoder, task.frames
    if not isinstance(encoder, ClipEncoder):
        raise SureshotError(
            f"Setting encoder.tuned is true, and the encoder {encoder.name!r} cannot be trained; "
            "only CLIP and SigLIP can. Name one, or set it to false."
        )
    tuned = TunedClip(encoder, task.system)

    def read(item: Item) -> UInt8[np.ndarray, "frames height width 3"]:
        return sampled_frames(item, frames, encoder.frame_size)

    def validate(held: Split) -> float:
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            whole = task.system.whole_grid
            seen = extract(held, encoder, frames=frames, whole_grid=whole, cache=Path(cache))
            return task.score(seen)

    with PixelPairs(splits, tuned, read, task.training.workers) as pairs:
        fitted = fit(
            task.model,
            pairs,
            task.training,
            folder,
            save=_save(task, tuned.save),
            validate=None if held is None else lambda: validate(held),
            encoder=tuned,
            labels=task.labels,
            resume=resume,
            described=task.fixed,
            told=_steps(listener),
        )
    return replace(fitted, metric=task.metric)


def _save(task: Task, encoder: SaveEncoder | None = None) -> Save:
    """What writes a checkpoint after an epoch."""

    def save(place: Path, epoch: int, score: float | None) -> None:
        scores = {} if score is None else {task.metric: score}
        task.write(place, {"epoch": float(epoch), **scores}, encoder)

    return save


def _steps(listener: Listener) -> Callable[[StepProgress], None]:
    """What tells a listener of each step."""

    def told(progress: StepProgress) -> None:
        more = f", epoch {progress.epoch}, loss {progress.losses['loss']:.4g}"
        listener.update("steps", progress.step, progress.steps, more)

    return told

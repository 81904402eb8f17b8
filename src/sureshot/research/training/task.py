"""What a run learns, and the two ways to learn it: from features, or from pixels end to end."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sureshot.datasets import Split
from sureshot.files import write_text
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders import Encoder
from sureshot.models.model import Model
from sureshot.models.systems.system import System
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.frame_memory import FrameMemory
from sureshot.research.listener import Listener
from sureshot.research.training.config import TrainingConfig
from sureshot.research.training.epoch import Labels, StepProgress
from sureshot.research.training.frames import TrainedEncoder, TrainingFrames
from sureshot.research.training.gather import rank
from sureshot.research.training.loop import Fitted, fit
from sureshot.research.training.pairs import FeaturePairs, Pairs
from sureshot.research.training.pixels import PixelPairs
from sureshot.research.training.tuning import Tuned, tuned
from sureshot.text import counted

FRAMES, UNREADABLE = "frames", "unreadable.txt"  # in the folder of a run
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
        sampling: which frames of a video.
        words: tokens of a text that a tuned encoder reads; None is all that it can.
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
    sampling: Sampling
    training: TrainingConfig
    metric: str
    score: Callable[[SplitFeatures], float]
    write: Callable[[Path, Mapping[str, float], SaveEncoder | None], None]
    fixed: Mapping[str, Any]
    labels: Labels | None = None
    words: int | None = None


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
    pairs = FeaturePairs(sets, task.device, patches=patches)
    validate = None if val is None else lambda: task.score(val)
    return _fit(task, pairs, folder, listener, validate=validate, resume=resume)


def fit_pixels(
    task: Task,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    listener: Listener,
    *,
    resume: bool = False,
    memory: FrameMemory | None = None,
) -> Fitted:
    """Train the encoder too, on frames that are decoded in every epoch or kept from the first.

    A video that cannot be read is left out; ``unreadable.txt`` in the run's folder lists these.

    Args:
        task: what is learned.
        splits: sets to train on.
        held: the set to choose a checkpoint on, or None.
        folder: folder of the run, see `sureshot.research.training.loop.fit`.
        listener: hears how many steps are done.
        resume: go on with the run in the folder, if there is one.
        memory: frames that several runs share; None is one of this run's own.

    Raises:
        SureshotError: the encoder cannot be trained, or see `sureshot.research.training.loop.fit`.
    """
    network = tuned(task.encoder, task.system, task.words, task.training.seed)
    encoder = network.encoder
    read = training_frames(task, encoder, folder)

    memory = memory or FrameMemory()

    def validate(held: Split) -> float:
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            whole = task.system.whole_grid
            seen = extract(
                held,
                encoder,
                frames=task.frames,
                sampling=task.sampling,
                whole_grid=whole,
                cache=Path(cache),
                memory=memory,
            )
            return task.score(seen)

    check = None if held is None else lambda: validate(held)
    shared = memory if read.steady else None
    with PixelPairs(splits, network, read, task.training.workers, memory=shared) as pairs:
        fitted = _fit(task, pairs, folder, listener, validate=check, resume=resume, network=network)
        notes = _list_unreadable(pairs.unreadable, folder)
    return replace(fitted, notes=(*fitted.notes, *notes))


def training_frames(task: Task, encoder: TrainedEncoder, folder: Path) -> TrainingFrames:
    """What reads the frames that an encoder is trained on; kept ones lie in the run's folder."""
    config = task.training
    rule = Sampling(config.sampling or task.sampling.kind, task.sampling.fps)
    return TrainingFrames(
        encoder=encoder,
        frames=task.frames,
        sampling=rule,
        augment=config.augment,
        seed=config.seed,
        kept=folder / FRAMES if config.keep_frames else None,
    )


def _list_unreadable(unreadable: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Write which videos were left out and why; a note that says how many, if there are some."""
    if not unreadable:
        return ()
    lines = [f"{name}\t{reason}\n" for name, reason in sorted(unreadable.items())]
    if rank() == 0:
        write_text(folder / UNREADABLE, "".join(lines))
    name, reason = min(unreadable.items())
    count = counted(len(unreadable), "video")
    return (f"Left out: {count} that cannot be read, such as {name} ({reason}); see {UNREADABLE}.",)


def _fit(
    task: Task,
    pairs: Pairs,
    folder: Path,
    listener: Listener,
    *,
    validate: Callable[[], float] | None,
    resume: bool,
    network: Tuned | None = None,
) -> Fitted:
    """Fit the model of a task, and the encoder where that is trained too."""

    def save(place: Path, epoch: int, score: float | None) -> None:
        scores = {} if score is None else {task.metric: score}
        task.write(
            place, {"epoch": float(epoch), **scores}, None if network is None else network.save
        )

    def told(progress: StepProgress) -> None:
        more = f", epoch {progress.epoch}, loss {progress.losses['loss']:.4g}"
        listener.update("steps", progress.step, progress.steps, more)

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
        described=task.fixed,
        told=told,
    )
    return replace(fitted, metric=task.metric)

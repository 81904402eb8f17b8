"""A whole run: epochs, validation, checkpoints, and going on where it was stopped."""

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from sureshot.errors import SureshotError, option
from sureshot.files import replace_folder, restore_folder
from sureshot.media.sampling_rule import Sampling
from sureshot.models.model import Model, StemConfig
from sureshot.research.training import plot
from sureshot.research.training.config import TrainingConfig
from sureshot.research.training.epoch import Fitting, Labels, StepProgress, prepare, steps_of
from sureshot.research.training.gather import rank, told_by_first
from sureshot.research.training.log import Log, read
from sureshot.research.training.pairs import Pairs
from sureshot.research.training.state import (
    load_state,
    read_values,
    save_state,
)
from sureshot.settings import to_values

STATE, LOG, MODEL, PLOT = "state.safetensors", "log.jsonl", "model", "loss.png"
_FREE = ("workers", "metric", "save_every", "keep_frames")  # settings that reach no weight

Save = Callable[[Path, int, float | None], None]  # folder, epochs done, score


@dataclass(frozen=True, slots=True)
class Fitted:
    """A finished run.

    Attributes:
        folder: folder of the chosen checkpoint.
        epoch: epochs done when it was saved.
        score: its score on the validation set; None without one.
        notes: sentences about the data and the run.
        metric: name of the score.
    """

    folder: Path
    epoch: int
    score: float | None
    notes: tuple[str, ...] = ()
    metric: str = ""


class _Counters(NamedTuple):
    """Epochs done, the checkpoint chosen so far, and steps taken of the epoch that is not done."""

    epoch: int = 0
    kept: int = 0
    score: float | None = None
    taken: int = 0


def fit(
    model: Model,
    pairs: Pairs,
    config: TrainingConfig,
    folder: Path,
    *,
    save: Save,
    validate: Callable[[], float] | None = None,
    encoder: nn.Module | None = None,
    labels: Labels | None = None,
    resume: bool = False,
    described: Mapping[str, Any] | None = None,
    told: Callable[[StepProgress], None] | None = None,
) -> Fitted:
    """Train a model, in one process or in each of several; it ends with the last weights.

    The folder gets ``model``, the chosen checkpoint; ``state.safetensors``, from which the run
    goes on; ``log.jsonl`` and ``loss.png``. The state is written after each epoch and, if the
    settings say so, every so many steps: stopped or failed in between, by Ctrl-C too, the run goes
    on from there with the very numbers of a run that was never stopped.

    Pairs whose video cannot be read are left out of their batch; a batch of fewer than two is left
    out whole.

    Args:
        model: model on its device, with its first weights.
        pairs: what is trained on, on the same device.
        config: how. ``workers`` and ``metric`` are for those who make ``pairs`` and ``validate``.
        folder: folder of the run, the same for all processes.
        save: writes the model into an empty folder, given the epochs done and the score.
        validate: score of the model on the validation set, higher is better; called without
            gradients after each epoch. Never give it a set that is tested on.
        encoder: network that is trained too, if ``pairs`` compute tokens with it.
        labels: codes of pairs for losses that want more than which text belongs to which
            video; they join the codes of the texts.
        resume: go on with the run in the folder, if there is one.
        described: more settings, as JSON holds them, that must not change within a run, such as
            those of the system.
        told: called after each step.

    Raises:
        SureshotError: a loss or gradient is not finite, the folder holds another run, a file
            cannot be written, or best is to be kept of models that are not validated.
    """
    if config.keep == "best" and validate is None:
        raise SureshotError('training.keep is "best", and there is no validation set to tell it.')
    run = prepare(model, pairs, config, encoder, described or {}, labels)
    done = _begin(run, folder, resume)
    told = told or (lambda progress: None)
    steps = done.epoch * run.epoch_steps + done.taken
    with Log(folder / LOG, steps) if rank() == 0 else nullcontext() as log:
        for epoch in range(done.epoch, config.epochs):
            for progress in steps_of(run, epoch, done.taken):
                if log is not None:
                    entry = to_values(progress)
                    del entry["epochs"], entry["steps"]
                    log.write(**entry)
                    told(progress)
                    taken = progress.step - epoch * run.epoch_steps
                    if config.save_every and progress.step % config.save_every == 0:
                        _keep(run, folder, done._replace(taken=taken))
            done = _finish(run, folder, done, save, validate, log)
    told_by_first(None)  # nobody returns before the files are there
    notes = _draw(folder) if rank() == 0 else ()
    return Fitted(folder=folder / MODEL, epoch=done.kept, score=done.score, notes=notes)


def check_new(folder: Path) -> None:
    """See that there is no run in a folder yet.

    Raises:
        SureshotError: there is one.
    """
    if (folder / STATE).exists():
        raise SureshotError(
            f"There is a run in {folder} already; resume it ({option('resume', True)}), or "
            f"name another folder."
        )


def _begin(run: Fitting, folder: Path, resume: bool) -> _Counters:
    """Load the state of the folder, or see that there is none."""
    if not resume:
        check_new(folder)
    state = folder / STATE
    if not state.exists():
        return _Counters()
    restore_folder(folder / MODEL)
    values = read_values(state)
    was, now = values["run"], _described(run)
    # A setting that came new since the run began was at its default then.
    defaults = {
        "training": _settings(TrainingConfig()),
        "stem": to_values(StemConfig()),
        "encoder": {"sampling": Sampling().kind},
    }
    was = {name: value for name, value in _flat(defaults).items() if name in now} | was
    for name in was | now:
        if was.get(name) != now.get(name):
            raise SureshotError(
                f"The run in {folder} cannot go on: {name} was {was.get(name)} and is "
                f"{now.get(name)} now. Set it back, or name another folder."
            )
    load_state(state, run.modules, run.optimiser)
    if run.scaler is not None:
        run.scaler.load_state_dict(values["scaler"])
    return _Counters(**{name: values[name] for name in _Counters._fields if name in values})


def _described(run: Fitting) -> dict[str, Any]:
    """What must not change within a run, by dotted path."""
    videos = len(set(run.pairs.video_of))
    counts = {"captions": len(run.pairs.video_of), "videos": videos}
    described = to_values(run.described)
    return _flat(counts | {"training": _settings(run.config)} | described)


def _settings(config: TrainingConfig) -> dict[str, Any]:
    """The settings that reach the weights."""
    values: dict[str, Any] = to_values(config)
    return {name: value for name, value in values.items() if name not in _FREE}


def _flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inside = isinstance(value, Mapping)
        flat |= _flat(value, f"{at}{name}.") if inside else {f"{at}{name}": value}
    return flat


def _finish(
    run: Fitting,
    folder: Path,
    done: _Counters,
    save: Save,
    validate: Callable[[], float] | None,
    log: Log | None,
) -> _Counters:
    """Score an epoch and write what is to be kept of it."""
    run.modules.eval()
    epoch, score = done.epoch + 1, None
    if log is not None and validate is not None:
        with torch.no_grad():
            score = validate()
        if not math.isfinite(score):
            raise SureshotError(f"The score on the validation set is {score} after epoch {epoch}.")
    last = run.config.keep == "last" or validate is None
    better = done.score is None or (score is not None and score > done.score)
    kept = last or better
    new = done._replace(epoch=epoch, taken=0)
    if kept:
        new = new._replace(kept=epoch, score=score)
    if log is not None:
        if kept:
            with replace_folder(folder / MODEL) as fresh:
                save(fresh, epoch, score)
        _keep(run, folder, new)
        log.write(epoch=epoch, step=epoch * run.epoch_steps, score=score, kept=kept)
    counters: _Counters = told_by_first(new)
    return counters


def _keep(run: Fitting, folder: Path, done: _Counters) -> None:
    """Write the state that a stopped run goes on from."""
    values = done._asdict() | {"run": _described(run)}
    if run.scaler is not None:
        values["scaler"] = run.scaler.state_dict()
    save_state(folder / STATE, run.modules, run.optimiser, values)


def _draw(folder: Path) -> tuple[str, ...]:
    entries = read(folder / LOG)
    losses = [entry["losses"]["loss"] for entry in entries if "losses" in entry]
    scores = [(e["step"], e["score"]) for e in entries if e.get("score") is not None]
    try:
        plot.draw(folder / PLOT, losses, scores, title=folder.name)
    except SureshotError as error:  # the model is there; a picture is not worth a failure
        return (f"No plot was drawn. {error}",)
    return ()

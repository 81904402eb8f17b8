"""A whole run: epochs, validation, checkpoints, and going on where it was stopped."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from sureshot.errors import SureshotError, option
from sureshot.files import replace_folder, restore_folder
from sureshot.models.model import Model, StemConfig
from sureshot.models.systems.system import Codes
from sureshot.research.training import plot
from sureshot.research.training.batches import count, plan
from sureshot.research.training.gather import rank, same_start, told_by_first, world
from sureshot.research.training.log import Log, read
from sureshot.research.training.optimisers import new_optimiser
from sureshot.research.training.pairs import Pairs
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.schedule import multiplier
from sureshot.research.training.state import (
    load_state,
    read_values,
    save_state,
)
from sureshot.research.training.step import Method, gradients, update
from sureshot.settings import to_values

STATE, LOG, MODEL, PLOT = "state.safetensors", "log.jsonl", "model", "loss.png"
_NAMED = 4  # pairs named in an error

Save = Callable[[Path, int, float | None], None]  # folder, epochs done, score
Labels = Callable[[Sequence[int]], Codes]  # of pairs


@dataclass(frozen=True, slots=True)
class StepProgress:
    """Where a run is after a step.

    Attributes:
        epoch: number of the epoch, from 1.
        epochs: how many epochs there are.
        step: number of the step in the whole run, from 1.
        steps: how many steps the whole run has.
        losses: the objective as ``loss`` and its named, unweighted parts.
        gradient: length of the gradient before it was clipped.
        rate: learning rate of stem and system.
        seconds: how long the step took.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    losses: Mapping[str, float]
    gradient: float
    rate: float
    seconds: float


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
    """Epochs done, and the checkpoint chosen so far."""

    epoch: int = 0
    kept: int = 0
    score: float | None = None


class _Run(NamedTuple):
    """What all steps of a run share."""

    model: Model
    modules: nn.ModuleDict
    optimiser: torch.optim.Optimizer
    pairs: Pairs
    config: TrainingConfig
    described: Mapping[str, Any]
    steps: int  # in a pass through the data
    labels: Labels | None = None

    @property
    def epoch_steps(self) -> int:
        return self.steps * self.model.system.passes

    def embed(self, rows: Sequence[int]) -> tuple[Codes, Codes]:
        texts = self.model.texts(self.pairs.texts(rows))
        if self.labels is not None:
            texts |= self.labels(rows)
        return texts, self.model.videos(self.pairs.videos(rows))


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
    goes on; ``log.jsonl`` and ``loss.png``. They change only after a whole epoch: stopped or failed
    in between, by Ctrl-C too, the run is as it was after the last one, and goes on from there with
    the very numbers of a run that was never stopped.

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
    run = _prepare(model, pairs, config, encoder, described or {}, labels)
    done = _begin(run, folder, resume)
    told = told or (lambda progress: None)
    with _log(folder, done.epoch * run.epoch_steps) as log:
        for epoch in range(done.epoch, config.epochs):
            for progress in _epoch(run, epoch):
                if log is not None:
                    log.write(**_entry(progress))
                    told(progress)
            done = _finish(run, folder, done, save, validate, log)
    told_by_first(None)  # nobody returns before the files are there
    notes = _draw(folder) if rank() == 0 else ()
    return Fitted(folder=folder / MODEL, epoch=done.kept, score=done.score, notes=notes)


def _prepare(
    model: Model,
    pairs: Pairs,
    config: TrainingConfig,
    encoder: nn.Module | None,
    described: Mapping[str, Any],
    labels: Labels | None,
) -> _Run:
    parts: dict[str, nn.Module] = {"model": model}
    rates: list[tuple[nn.Module, float]] = [(model, config.rate)]
    if encoder is not None:
        parts["encoder"] = encoder
        # First: the logit scale that both share has the encoder's rate, as in the papers' codes.
        rates.insert(0, (encoder, config.encoder_rate))
    modules = nn.ModuleDict(parts)
    same_start(modules)
    optimiser = new_optimiser(config.optimizer, rates, config.weight_decay)
    steps = count(pairs.video_of, batch=config.batch, captions=config.captions)
    return _Run(
        model=model,
        modules=modules,
        optimiser=optimiser,
        pairs=pairs,
        config=config,
        described=described,
        steps=steps,
        labels=labels,
    )


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


def _begin(run: _Run, folder: Path, resume: bool) -> _Counters:
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
    defaults = {"training": _settings(TrainingConfig()), "stem": to_values(StemConfig())}
    was = {name: value for name, value in _flat(defaults).items() if name in now} | was
    for name in was | now:
        if was.get(name) != now.get(name):
            raise SureshotError(
                f"The run in {folder} cannot go on: {name} was {was.get(name)} and is "
                f"{now.get(name)} now. Set it back, or name another folder."
            )
    load_state(state, run.modules, run.optimiser)
    return _Counters(values["epoch"], values["kept"], values["score"])


def _described(run: _Run) -> dict[str, Any]:
    """What must not change within a run, by dotted path."""
    videos = len(set(run.pairs.video_of))
    counts = {"captions": len(run.pairs.video_of), "videos": videos}
    described = to_values(run.described)
    return _flat(counts | {"training": _settings(run.config)} | described)


def _settings(config: TrainingConfig) -> dict[str, Any]:
    """The settings that reach the weights."""
    values: dict[str, Any] = to_values(config)
    return {name: value for name, value in values.items() if name not in ("workers", "metric")}


def _flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inside = isinstance(value, Mapping)
        flat |= _flat(value, f"{at}{name}.") if inside else {f"{at}{name}": value}
    return flat


def _epoch(run: _Run, epoch: int) -> Iterator[StepProgress]:
    """Take all steps of an epoch."""
    config, system = run.config, run.model.system
    run.modules.train()
    device = next(run.model.parameters()).device
    method = Method(
        micro_batch=config.micro_batch, precision=config.precision, device=device, seed=config.seed
    )
    total = run.epoch_steps * config.epochs
    step = epoch * run.epoch_steps
    for number in range(system.passes):
        system.begin_pass(number)
        batches = plan(
            run.pairs.video_of,
            batch=config.batch,
            captions=config.captions,
            seed=config.seed,
            epoch=epoch * system.passes + number,
        )
        for place, rows in enumerate(batches):
            began = time.perf_counter()
            coming = batches[place : place + 2]
            run.pairs.hold([row for part in coming for row in part[rank() :: world()].tolist()])
            share = multiplier(step, total, config.warmup, config.optimizer)
            where = f"Training stopped in epoch {epoch + 1}, step {step + 1}"
            losses, length = _step(run, rows.tolist(), method, step, share, where)
            seconds = time.perf_counter() - began
            step += 1
            rate = config.rate * share
            yield StepProgress(
                epoch=epoch + 1,
                epochs=config.epochs,
                step=step,
                steps=total,
                losses=losses,
                gradient=length,
                rate=rate,
                seconds=seconds,
            )


def _step(
    run: _Run, rows: Sequence[int], method: Method, step: int, share: float, where: str
) -> tuple[dict[str, float], float]:
    """Losses and length of the gradient of one step, which is taken."""
    name, system = run.pairs.name, run.model.system
    try:
        losses = gradients(system, run.embed, rows, method, step=step, name=name)
    except SureshotError as error:
        raise SureshotError(f"{where}. {error}") from None
    clip = run.config.clip or None
    try:
        length = update(run.optimiser, run.modules, system, share=share, clip=clip)
    except SureshotError as error:
        batch = "; ".join(name(row) for row in rows[:_NAMED])
        more = f"The batch of {len(rows)} begins with {batch}."
        raise SureshotError(f"{where}. {error} {more}") from None
    return losses, length


def _finish(
    run: _Run,
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
    new = _Counters(epoch, epoch, score) if kept else done._replace(epoch=epoch)
    if log is not None:
        if kept:
            with replace_folder(folder / MODEL) as fresh:
                save(fresh, epoch, score)
        values = new._asdict() | {"run": _described(run)}
        save_state(folder / STATE, run.modules, run.optimiser, values)
        log.write(epoch=epoch, step=epoch * run.epoch_steps, score=score, kept=kept)
    counters: _Counters = told_by_first(new)
    return counters


class _NoLog:
    """What processes other than the first write to."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def _log(folder: Path, after: int) -> Log | _NoLog:
    return Log(folder / LOG, after) if rank() == 0 else _NoLog()


def _entry(progress: StepProgress) -> dict[str, Any]:
    """A line of the log."""
    values: dict[str, Any] = to_values(progress)
    for name in ("epochs", "steps"):
        del values[name]
    return values


def _draw(folder: Path) -> tuple[str, ...]:
    entries = read(folder / LOG)
    losses = [entry["losses"]["loss"] for entry in entries if "losses" in entry]
    scores = [(e["step"], e["score"]) for e in entries if e.get("score") is not None]
    try:
        plot.draw(folder / PLOT, losses, scores, title=folder.name)
    except SureshotError as error:  # the model is there; a picture is not worth a failure
        return (f"No plot was drawn. {error}",)
    return ()

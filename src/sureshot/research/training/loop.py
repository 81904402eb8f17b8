"""A whole run: epochs, validation, checkpoints, and going on where it was stopped."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.amp import GradScaler

from sureshot.errors import NotFiniteError, SureshotError, option
from sureshot.files import lock, replace_file, replace_folder, restore_folder, write_text
from sureshot.models.model import Model
from sureshot.models.systems.base import Codes, TextTokens, VideoTokens
from sureshot.research import canvas
from sureshot.research.training.data import Pairs, count, plan
from sureshot.research.training.distributed import broadcast, rank, same_start, world
from sureshot.research.training.optim import multiplier, new_optimiser
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.step import gradients, update
from sureshot.settings import parse_json, to_values

STATE, LOG, MODEL, PLOT = "state.safetensors", "log.jsonl", "model", "loss.png"
RECIPE = "recipe.toml"  # written last
_FREE = ("workers", "save_every")  # settings that reach neither weights nor scores
_NAMED = 4  # pairs named in an error
_WEIGHTS, _MEMORY = "weights.", "optimiser."  # prefixes of tensors in a state

_Tokens = TypeVar("_Tokens", TextTokens, VideoTokens)
Labels = Callable[[Sequence[int]], Codes]  # of pairs
Save = Callable[[Path, int, float | None], None]  # folder, epochs done, score


@dataclass(frozen=True, slots=True)
class TrainingResult:
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


@dataclass(frozen=True, slots=True)
class StepProgress:
    """Where a run is after a step; steps and epochs count from 1, through the whole run."""

    epoch: int
    step: int
    losses: Mapping[str, float]  # the objective as ``loss`` and its named, unweighted parts
    gradient: float  # length before it was clipped
    rate: float  # of stem and system
    seconds: float = 0.0


class TrainState:
    """What all steps of a run share: ``modules`` are all that is trained, ``steps`` of an epoch.

    Args:
        config: ``workers`` and ``metric`` are for those who make pairs and score.
        encoder: network that is trained too, if ``pairs`` compute tokens with it.
        labels: codes of pairs for losses that want more than which text belongs to which video.
        fixed: more settings that must not change within a run, such as those of the system.
    """

    def __init__(
        self,
        model: Model,
        pairs: Pairs,
        config: TrainingConfig,
        encoder: nn.Module | None = None,
        fixed: Mapping[str, Any] | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.model, self.pairs, self.config, self.labels = model, pairs, config, labels
        self.modules, rates = nn.ModuleDict({"model": model}), list[tuple[nn.Module, float]]()
        if encoder is not None:
            self.modules["encoder"] = encoder
            # It is first: a logit scale that both share has its rate, as in the papers' codes.
            rates.append((encoder, config.encoder_rate))
        same_start(self.modules)
        self.device = next(model.parameters()).device
        # For the small numbers of float16, which end at 6e-8.
        self.scaler = GradScaler(self.device.type, enabled=config.precision == "float16")
        estimators = model.system.estimators()
        if estimators is not None and config.uncertainty_rate is not None:
            rates.append((estimators, config.uncertainty_rate))
        rates.append((model, config.rate))
        self.optimiser = new_optimiser(config.optimizer, rates, config.weight_decay)
        self.captions = config.captions or "one"
        batches = count(pairs.video_of, batch=config.batch, captions=self.captions)
        self.steps = model.system.passes * batches
        self._fixed = fixed or {}

    def embed(self, rows: Sequence[int]) -> tuple[Codes, Codes]:
        """Codes of the texts and the videos of these pairs."""
        texts = self._coded(self.model.texts, self.pairs.texts(rows))
        if self.labels is not None:
            texts |= self.labels(rows)
        return texts, self._coded(self.model.videos, self.pairs.videos(rows))

    def _coded(self, code: Callable[[_Tokens], Codes], tokens: _Tokens) -> Codes:
        """Codes of tokens. After an encoder in float16 they are 32-bit, as in the papers' codes."""
        if self.config.precision != "float16":
            return code(tokens)
        with torch.autocast(self.device.type, enabled=False):
            single = (part.float() if part.is_floating_point() else part for part in tokens)
            return code(type(tokens)(*single))

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[StepProgress]:
        """Take the steps of an epoch, but for those that were taken before the run was stopped."""
        config, system = self.config, self.model.system
        self.modules.train()
        self.pairs.begin_epoch(epoch)
        step, any_step = epoch * self.steps, skip > 0
        first = step + skip
        for number in range(system.passes):
            system.begin_pass(number)
            batches = plan(
                self.pairs.video_of,
                batch=config.batch,
                captions=self.captions,
                seed=config.seed,
                epoch=epoch * system.passes + number,
            )
            for place, rows in enumerate(batches):
                step += 1
                if step <= first:
                    continue
                began = time.perf_counter()
                coming = [part[rank() :: world()] for part in batches[place : place + 2]]
                self.pairs.hold(np.concatenate(coming).tolist())
                readable = self.pairs.readable(rows.tolist())
                if len(readable) < min(len(rows), 2):
                    continue
                taken = self._step(epoch, step, readable)
                any_step = True
                yield replace(taken, seconds=time.perf_counter() - began)
        if not any_step:
            raise SureshotError(
                f"Training stopped in epoch {epoch + 1}: no batch has two videos that can be read."
            )

    def _step(self, epoch: int, step: int, rows: Sequence[int]) -> StepProgress:
        config, system, name = self.config, self.model.system, self.pairs.name
        total, batch, scaler = self.steps * config.epochs, "", self.scaler
        share = multiplier(step - 1, total, config.warmup, config.optimizer)
        try:
            losses = gradients(
                system, self.embed, rows, config, step=step - 1, name=name, scaler=scaler
            )
            named = "; ".join(name(row) for row in rows[:_NAMED])
            batch = f" The batch of {len(rows)} begins with {named}."
            clip = config.clip or None
            length = update(
                self.optimiser, self.modules, system, share=share, clip=clip, scaler=scaler
            )
        except SureshotError as error:
            raise NotFiniteError(
                f"Training stopped in epoch {epoch + 1}, step {step}. {error}{batch}"
            ) from None
        return StepProgress(
            epoch=epoch + 1,
            step=step,
            losses=losses,
            gradient=length,
            rate=config.rate * share,
        )

    def identity(self) -> dict[str, Any]:
        """What must not change within a run, by dotted path."""
        settings = to_values(self.config).items()
        return _flat(
            {
                "captions": len(self.pairs.video_of),
                "videos": len(set(self.pairs.video_of)),
                "training": {name: value for name, value in settings if name not in _FREE},
                **to_values(self._fixed),
            }
        )

    def begin(self, folder: Path, resume: bool) -> "_Counters":
        """Load the state of the folder, or see that there is none."""
        check_new(folder, resume=resume)
        state = folder / STATE
        if not state.exists():
            return _Counters()
        restore_folder(folder / MODEL)
        values = read_values(state, "run", "unreadable", *_Counters._fields)
        was, now = values["run"], self.identity()
        for name in was | now:
            if was.get(name) != now.get(name):
                raise SureshotError(
                    f"The run in {folder} cannot go on: {name} was {was.get(name)} and is "
                    f"{now.get(name)} now. Set it back, or name another folder."
                )
        load_state(state, self.modules, self.optimiser)
        self.scaler.load_state_dict(values.get("scaler", {}))
        self.pairs.unreadable |= values["unreadable"]
        return _Counters(**{name: values[name] for name in _Counters._fields})

    def keep(self, folder: Path, done: "_Counters") -> None:
        """Write the state that a stopped run goes on from."""
        values = done._asdict() | {"run": self.identity(), "unreadable": self.pairs.unreadable}
        if scaler := self.scaler.state_dict():
            values["scaler"] = scaler
        save_state(folder / STATE, self.modules, self.optimiser, values)


class _Counters(NamedTuple):
    """Epochs done, the checkpoint chosen so far, and steps taken of the epoch that is not done."""

    epoch: int = 0
    kept: int = 0
    score: float | None = None
    steps: int = 0


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{path}{name}.") if nested else {f"{path}{name}": value}
    return flat


def fit(
    run: TrainState,
    folder: Path,
    *,
    save: Save,
    validate: Callable[[], float] | None,
    on_step: Callable[[StepProgress], None],
    resume: bool = False,
    metric: str = "score",
) -> TrainingResult:
    """Train a model, in one process or in each of several; it ends with the last weights.

    The folder gets ``model``, the chosen checkpoint; ``state.safetensors``, from which the run
    goes on; ``log.jsonl`` and ``loss.png``. The state is written after each epoch and, if the
    settings say so, every so many steps: stopped or failed in between, by Ctrl-C too, the run goes
    on from there with the very numbers of a run that was never stopped.

    Pairs whose video cannot be read are left out of their batch; a batch of fewer than two is left
    out whole.

    Args:
        folder: the same for all processes.
        save: writes the model into an empty folder, given the epochs done and the score.
        validate: score of the model on the validation set, higher is better; called without
            gradients after each epoch. Never give it a set that is tested on.
    """
    done, every = run.begin(folder, resume), run.config.save_every
    steps = done.epoch * run.steps + done.steps
    with open_log(folder / LOG, steps) if rank() == 0 else nullcontext() as log:
        for epoch in range(done.epoch, run.config.epochs):
            for step in run.epoch(epoch, done.steps):
                if log is None:
                    continue
                log.write(_line(to_values(step)))
                on_step(step)
                if every and step.step % every == 0:
                    run.keep(folder, done._replace(steps=step.step - epoch * run.steps))
            done = _finish_epoch(run, folder, done, save, validate, log)
    broadcast(None)  # all wait until the files are there
    notes = []
    if rank() == 0:
        entries = read_log(folder / LOG)
        losses = [entry["losses"]["loss"] for entry in entries if "losses" in entry]
        scores = [(e["step"], e["score"]) for e in entries if e.get("score") is not None]
        try:
            draw(folder / PLOT, losses, scores, title=folder.name, metric=metric)
        except SureshotError as error:  # the model is there all the same
            notes.append(f"No plot was drawn. {error}")
    return TrainingResult(
        folder=folder / MODEL, epoch=done.kept, score=done.score, notes=tuple(notes), metric=metric
    )


def _finish_epoch(
    run: TrainState,
    folder: Path,
    done: _Counters,
    save: Save,
    validate: Callable[[], float] | None,
    log: TextIO | None,
) -> _Counters:
    """Score an epoch and write what is to be kept of it; process 0 does, the others wait."""
    run.modules.eval()
    if log is not None:
        epoch, score = done.epoch + 1, None
        if validate is not None:
            with torch.no_grad():
                score = validate()
            if not math.isfinite(score):
                raise NotFiniteError(
                    f"The score on the validation set is {score} after epoch {epoch}."
                )
        kept = score is None or done.score is None or score > done.score
        kept |= run.config.keep == "last"
        done = done._replace(epoch=epoch, steps=0)
        if kept:
            done = done._replace(kept=epoch, score=score)
            with replace_folder(folder / MODEL) as fresh:
                save(fresh, epoch, score)
        run.keep(folder, done)
        entry = {"epoch": epoch, "step": epoch * run.steps, "score": score, "kept": kept}
        log.write(_line(entry))
    return broadcast(done)


def check_new(folder: Path, *, resume: bool = False) -> None:
    """Refuse a folder that has a run, or anything that a run would replace.

    What is left of a run that was killed before its first state is replaced.
    """
    if (folder / STATE).exists():
        if resume:
            return
        raise SureshotError(
            f"There is a run in {folder} already; resume it ({option('resume', True)}), or "
            f"name another folder."
        )
    model, log = folder / MODEL, folder / LOG
    ours = resume and any(model.glob("*.safetensors"))
    unfinished = ours and not (folder / RECIPE).exists()
    for path, replaceable in ((model, unfinished), (log, _is_own_log(log))):
        if path.exists() and not replaceable:
            raise SureshotError(
                f"{path} is there already, and no {STATE} to go on from. Training would "
                "replace it; name another folder."
            )


def _is_own_log(path: Path) -> bool:
    """Whether a file is empty, or a log that a run wrote."""
    try:
        entries = read_log(path)
        return not path.stat().st_size or any(
            isinstance(entry, dict) and ("losses" in entry or "kept" in entry) for entry in entries
        )
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Be the only process that trains in a folder in the block, where the system has locks."""
    if rank() != 0:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if lock(str(folder), stack) is False:
            raise SureshotError(f"Another process is training in {folder}; name another folder.")
        try:
            yield
        finally:
            with suppress(OSError):  # of a run that was refused
                folder.rmdir()


def save_state(
    path: Path, modules: nn.Module, optimiser: torch.optim.Optimizer, values: Mapping[str, Any]
) -> None:
    """Write weights, the optimiser's memory and ``values``, as JSON holds them, whole or not."""
    tensors = {_WEIGHTS + name: tensor for name, tensor in modules.state_dict().items()}
    for number, memory in optimiser.state_dict()["state"].items():
        tensors |= {f"{_MEMORY}{number}.{name}": tensor for name, tensor in memory.items()}
    # Cloned: safetensors refuses tensors that share memory, as tied weights do, or are in parts.
    whole = torch.contiguous_format
    kept = {n: tensor.detach().cpu().clone(memory_format=whole) for n, tensor in tensors.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh:
            save_file(kept, fresh, {"sureshot": json.dumps(values)})
    except (OSError, SafetensorError) as error:
        raise SureshotError(
            f"The run cannot be kept in {path}: {error}. Free some space."
        ) from None


def read_values(path: Path, *needed: str) -> dict[str, Any]:
    """The values of a state, of which some are needed."""
    try:
        with safe_open(path, framework="pt") as file:
            values = parse_json((file.metadata() or {})["sureshot"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(values, dict) or not values.keys() >= {*needed}:
        raise _unreadable(path, "it is of another version")
    return values


def load_state(path: Path, modules: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put weights and the optimiser's memory back."""
    weights: dict[str, Tensor] = {}
    memory: dict[int, dict[str, Tensor]] = {}
    try:
        for name, tensor in load_file(path).items():
            if name.startswith(_WEIGHTS):
                weights[name.removeprefix(_WEIGHTS)] = tensor
            else:
                number, key = name.removeprefix(_MEMORY).split(".", 1)
                memory.setdefault(int(number), {})[key] = tensor
        modules.load_state_dict(weights)
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": memory, "param_groups": groups})
    except KeyError as error:
        raise _unreadable(path, f"the memory of the optimiser lacks {error}") from None
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from None


def _unreadable(path: Path, reason: str) -> SureshotError:
    return SureshotError(
        f"The run in {path} cannot go on: {reason}. Start it again in another folder."
    )


def open_log(path: Path, after: int = 0) -> TextIO:
    """A log to append to; entries ``after`` so many steps and half a line are dropped."""
    kept = [entry for entry in read_log(path) if entry["step"] <= after] if after else []
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(map(_line, kept)))
    return path.open("a", encoding="utf-8", buffering=1)


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log that are whole; none where there is no file."""
    entries: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            entries.append(parse_json(line))
        except ValueError:  # the last line of a killed run
            break
    return entries


def draw(
    path: Path,
    losses: Sequence[float],
    scores: Sequence[tuple[int, float]] = (),
    *,
    title: str = "",
    metric: str = "score",
) -> None:
    """Draw the loss of each step, its running mean, and scores after so many steps."""
    figure = canvas.new_figure(4.0)
    axes = figure.add_subplot()
    steps = range(1, len(losses) + 1)
    lines = axes.plot(steps, losses, color=canvas.BLUE, alpha=0.3, linewidth=0.8, label="loss")
    lines += axes.plot(steps, running_mean(losses), color=canvas.BLUE, label="its running mean")
    canvas.label_axes(axes, "step", "loss")
    if scores:
        right = axes.twinx()
        label = f"{metric} on the validation set"
        lines += right.plot(*zip(*scores, strict=True), "o-", color=canvas.ORANGE, label=label)
        canvas.label_axes(right, "", label)
        right.grid(False)
    above: canvas.Style = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    canvas.add_legend(axes, handles=lines, ncols=len(lines), **above)
    canvas.entitle(figure, title)
    canvas.save_figure(figure, path)


def running_mean(values: Sequence[float], weight: float = 0.95) -> list[float]:
    """Mean of all values up to each, older ones weighing ``weight`` times less per step.

    Examples:
        >>> running_mean([4.0, 4.0, 1.0], 0.5)
        [4.0, 4.0, 2.2857142857142856]
    """
    total = mass = 0.0
    means = []
    for value in values:
        total, mass = weight * total + value, weight * mass + 1
        means.append(total / mass)
    return means

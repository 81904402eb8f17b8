"""The steps of an epoch, and what all steps of a run share."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn
from torch.amp import GradScaler

from sureshot.errors import SureshotError
from sureshot.models.model import Model
from sureshot.models.systems.system import Codes
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.research.training.batches import count, plan
from sureshot.research.training.config import TrainingConfig
from sureshot.research.training.gather import rank, same_start, world
from sureshot.research.training.optimisers import new_optimiser
from sureshot.research.training.pairs import Pairs
from sureshot.research.training.schedule import multiplier
from sureshot.research.training.step import Method, gradients, new_scaler, update

_Tokens = TypeVar("_Tokens", TextTokens, VideoTokens)
Labels = Callable[[Sequence[int]], Codes]  # of pairs

_NAMED = 4  # pairs named in an error


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


class Fitting(NamedTuple):
    """What all steps of a run share.

    Attributes:
        model: stem and system.
        modules: all that is trained.
        optimiser: optimiser of their weights.
        pairs: what is trained on.
        config: how.
        described: settings that must not change within the run.
        steps: steps of a pass through the data.
        method: how gradients are computed.
        scaler: what keeps gradients within float16; None with other formats.
        labels: codes of pairs for losses that want more than which text belongs to which video.
    """

    model: Model
    modules: nn.ModuleDict
    optimiser: torch.optim.Optimizer
    pairs: Pairs
    config: TrainingConfig
    described: Mapping[str, Any]
    steps: int
    method: Method
    scaler: GradScaler | None
    labels: Labels | None = None

    @property
    def epoch_steps(self) -> int:
        """How many steps an epoch has."""
        return self.steps * self.model.system.passes

    def embed(self, rows: Sequence[int]) -> tuple[Codes, Codes]:
        """Codes of the texts and the videos of these pairs."""
        texts = self._coded(self.model.texts, self.pairs.texts(rows))
        if self.labels is not None:
            texts |= self.labels(rows)
        return texts, self._coded(self.model.videos, self.pairs.videos(rows))

    def _coded(self, code: Callable[[_Tokens], Codes], tokens: _Tokens) -> Codes:
        """Codes of tokens. After an encoder in float16 they are 32-bit, as in the papers' codes."""
        if self.method.precision != "float16":
            return code(tokens)
        with torch.autocast(self.method.device.type, enabled=False):
            single = (part.float() if part.is_floating_point() else part for part in tokens)
            return code(type(tokens)(*single))


def prepare(
    model: Model,
    pairs: Pairs,
    config: TrainingConfig,
    encoder: nn.Module | None,
    described: Mapping[str, Any],
    labels: Labels | None,
) -> Fitting:
    """What the steps of a run share; arguments as of `fit`."""
    parts: dict[str, nn.Module] = {"model": model}
    rates: list[tuple[nn.Module, float]] = [(model, config.rate)]
    if encoder is not None:
        parts["encoder"] = encoder
        # First: the logit scale that both share has the encoder's rate, as in the papers' codes.
        rates.insert(0, (encoder, config.encoder_rate))
    modules = nn.ModuleDict(parts)
    same_start(modules)
    optimiser = new_optimiser(config.optimizer, rates, config.weight_decay)
    steps = count(pairs.video_of, batch=config.batch, captions=config.captions or "one")
    device = next(model.parameters()).device
    method = Method(
        micro_batch=config.micro_batch, precision=config.precision, device=device, seed=config.seed
    )
    return Fitting(
        model=model,
        modules=modules,
        optimiser=optimiser,
        pairs=pairs,
        config=config,
        described=described,
        steps=steps,
        method=method,
        scaler=new_scaler(method),
        labels=labels,
    )


def steps_of(run: Fitting, epoch: int, taken: int = 0) -> Iterator[StepProgress]:
    """Take the steps of an epoch, but for those that were taken before the run was stopped.

    Raises:
        SureshotError: a number is not finite, or no batch has two videos that can be read.
    """
    config, system = run.config, run.model.system
    run.modules.train()
    run.pairs.begin_epoch(epoch)
    total = run.epoch_steps * config.epochs
    first = epoch * run.epoch_steps + taken
    step = epoch * run.epoch_steps
    any_step = False
    for number in range(system.passes):
        system.begin_pass(number)
        batches = plan(
            run.pairs.video_of,
            batch=config.batch,
            captions=config.captions or "one",
            seed=config.seed,
            epoch=epoch * system.passes + number,
        )
        for place, rows in enumerate(batches):
            step += 1
            if step <= first:
                continue
            began = time.perf_counter()
            coming = batches[place : place + 2]
            run.pairs.hold([row for part in coming for row in part[rank() :: world()].tolist()])
            readable = run.pairs.readable(rows.tolist())
            if len(readable) < min(len(rows), 2):
                continue
            share = multiplier(step - 1, total, config.warmup, config.optimizer)
            where = f"Training stopped in epoch {epoch + 1}, step {step}"
            losses, length = _step(run, readable, step - 1, share, where)
            any_step = True
            seconds = time.perf_counter() - began
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
    if first == epoch * run.epoch_steps and not any_step:
        raise SureshotError(
            f"Training stopped in epoch {epoch + 1}: no batch has two videos that can be read."
        )


def _step(
    run: Fitting, rows: Sequence[int], step: int, share: float, where: str
) -> tuple[dict[str, float], float]:
    """Losses and length of the gradient of one step, which is taken."""
    name, system = run.pairs.name, run.model.system
    try:
        losses = gradients(
            system, run.embed, rows, run.method, step=step, name=name, scaler=run.scaler
        )
    except SureshotError as error:
        raise SureshotError(f"{where}. {error}") from None
    clip = run.config.clip or None
    try:
        length = update(
            run.optimiser, run.modules, system, share=share, clip=clip, scaler=run.scaler
        )
    except SureshotError as error:
        batch = "; ".join(name(row) for row in rows[:_NAMED])
        more = f"The batch of {len(rows)} begins with {batch}."
        raise SureshotError(f"{where}. {error} {more}") from None
    return losses, length

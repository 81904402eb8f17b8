"""The gradients of one batch.

A contrastive loss wants a large batch, and the codes of a large batch want little memory; only the
graph of the network that made them wants much. With micro-batches the codes are computed without
a graph, the loss is differentiated with respect to the codes, and each micro-batch is then computed
again with a graph to pass its share on (gradient caching). The gradients are those of the plain
step, dropout included, since the random numbers are the same both times.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from sureshot.errors import SureshotError
from sureshot.models.systems.base import Codes, System, joined, objective
from sureshot.models.systems.base import rows as rows_of
from sureshot.research.training.distributed import average_gradients, gathered, rank, world
from sureshot.research.training.recipe import TrainingConfig
from sureshot.text import listed

Embed = Callable[[Sequence[int]], tuple[Codes, Codes]]  # codes of the texts and videos of pairs

_HALF: Mapping[str, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_NAMED = 8  # pairs named in an error
_LOSSES = 2**31  # in place of a process's number: the noise of losses, such as dropout in a pooling
_UNSCALED = GradScaler("cpu", enabled=False)
_FIX = "Lower training.rate, or leave out what is wrong with the data."


def gradients(
    system: System,
    embed: Embed,
    rows: Sequence[int],
    config: TrainingConfig,
    *,
    step: int = 0,
    name: Callable[[int], str] = str,
    scaler: GradScaler = _UNSCALED,
) -> dict[str, float]:
    """Add the gradients of a batch's objective to the weights, averaged over all processes.

    The seed and the number of a step give its random numbers, so that nothing has to be remembered
    for a run to go on where it was stopped.

    Args:
        rows: the pairs of the whole batch; each process embeds its share.
        config: its ``micro_batch``, ``precision`` (of the networks; codes and losses are 32-bit)
            and ``seed`` count.
        scaler: makes the gradients so large that half precision can hold them; the one that
            `update` gets too.

    Returns:
        The named losses and their weighted sum ``loss``.
    """
    own = rows[rank() :: world()]
    size, device = config.micro_batch or max(len(own), 1), next(system.parameters()).device
    # A process without a pair embeds one for the names and sizes of codes, and drops it.
    chunks = [own[at : at + size] for at in range(0, len(own), size)] or [rows[:1]]
    cached = len(chunks) > 1

    def embedded(part: int) -> tuple[Codes, Codes]:
        half = _HALF.get(config.precision)
        narrow = torch.autocast(device.type, half, enabled=half is not None)
        with _noise(device, config.seed, step, rank(), part), narrow:
            texts, videos = embed(chunks[part])
        return _single(texts), _single(videos)

    with torch.set_grad_enabled(not cached):
        parts = [embedded(part) for part in range(len(chunks))]
    # All codes of texts, all codes of videos.
    sides = [rows_of(joined(list(side)), slice(len(own))) for side in zip(*parts, strict=True)]
    if cached:  # they start a graph, so that the loss can be differentiated at them
        for tensor in (tensor for side in sides for tensor in side.values()):
            tensor.requires_grad_(tensor.is_floating_point())
    texts, videos = (gathered(side) for side in sides)
    # On the processor, so that a seed gives the same noise on any device.
    generator = torch.Generator().manual_seed(_seed(config.seed, step))
    with _noise(device, config.seed, step, _LOSSES):  # the same in all processes
        losses = system.losses(texts, videos, generator)
    total = objective(losses, system.weights)
    _refuse_odd({**losses, "loss": total}, (texts, videos), rows, name)
    torch.autograd.backward([scaler.scale(total)])
    if cached:
        first = 0
        for part, chunk in enumerate(chunks):
            for again, side in zip(embedded(part), sides, strict=True):
                _pass_on(again, side, first)
            first += len(chunk)
    return {"loss": total.item()} | {key: loss.item() for key, loss in losses.items()}


def update(
    optimiser: torch.optim.Optimizer,
    modules: nn.Module,
    system: System,
    *,
    share: float,
    clip: float | None,
    scaler: GradScaler = _UNSCALED,
) -> float:
    """One step of the optimiser with the gradients that are there, which are dropped then.

    Args:
        share: factor on the learning rates, the ``rate`` of each group.
        clip: longest gradient, all weights together; a longer one is shortened to it.
        scaler: what made the gradients larger; where they became too large for half precision the
            step is left out, and those of the next one are half as large.

    Returns:
        Length of the gradient before it was shortened; 0 where the step was left out.
    """
    weights = [weight for weight in modules.parameters() if weight.requires_grad]
    average_gradients(weights)
    scaler.unscale_(optimiser)
    length = nn.utils.get_total_norm([w.grad for w in weights if w.grad is not None])
    if not torch.isfinite(length):
        if scaler.get_scale() > 1:
            scaler.step(optimiser)  # sees it, and changes nothing
            scaler.update()
            optimiser.zero_grad()
            return 0.0
        odd = [
            name
            for name, weight in modules.named_parameters()
            if weight.grad is not None and not weight.grad.isfinite().all()
        ]
        optimiser.zero_grad()
        of = ", ".join(odd[:3]) or "no single weight"
        raise SureshotError(f"The gradient is not finite (of {of}). {_FIX}")
    if clip is not None:
        nn.utils.clip_grads_with_norm_(weights, clip, length)
    for group in optimiser.param_groups:
        group["lr"] = group["rate"] * share
    scaler.step(optimiser)
    scaler.update()
    optimiser.zero_grad()
    system.after_step()
    return length.item()


def _single(codes: Codes) -> Codes:
    """Codes of half precision in single; others, masks and indices as they are."""
    return {
        name: tensor.float() if tensor.dtype in _HALF.values() else tensor
        for name, tensor in codes.items()
    }


def _pass_on(again: Codes, whole: Codes, first: int) -> None:
    """Pass the gradient at the codes of the batch on to what made those of a micro-batch."""
    tensors, grads = [], []
    for name, tensor in again.items():
        grad = whole[name].grad
        if tensor.requires_grad and grad is not None:
            # The whole batch may be padded to more tokens than the micro-batch.
            inside = [slice(size) for size in tensor.shape[1:]]
            tensors.append(tensor)
            grads.append(grad[(slice(first, first + len(tensor)), *inside)])
    if tensors:
        torch.autograd.backward(tensors, grads)


def _refuse_odd(
    losses: dict[str, Tensor],
    sides: tuple[Codes, Codes],
    rows: Sequence[int],
    name: Callable[[int], str],
) -> None:
    odd = [key for key, loss in losses.items() if not torch.isfinite(loss)]
    if not odd:
        return
    broken = torch.zeros(len(rows), dtype=torch.bool)
    for codes in sides:
        for tensor in codes.values():
            sound = tensor.isfinite()
            broken |= ~(sound.flatten(1).all(1) if sound.ndim > 1 else sound).cpu()
    where = "the codes of" if broken.any() else "finite codes of"
    guilty = [row for row, bad in zip(rows, broken.tolist(), strict=True) if bad] or list(rows)
    named = listed([name(row) for row in guilty], _NAMED, "; ")
    terms = ", ".join(f"{key} = {losses[key].item()}" for key in odd)
    raise SureshotError(f"A loss is not finite ({terms}), with {where} {named}. {_FIX}")


@contextlib.contextmanager
def _noise(device: torch.device, *numbers: int) -> Iterator[None]:
    """Have torch's own random numbers, as dropout takes them, follow from these numbers.

    What came before is put back, so that a training run does not reach into the caller's numbers.
    """
    devices = [device] if device.type == "cuda" else []
    seed = _seed(*numbers)
    with torch.random.fork_rng(devices):
        # Not torch.manual_seed, which turns to each kind of device there is and takes long.
        torch.default_generator.manual_seed(seed)
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _seed(*numbers: int) -> int:
    """One number from several, alike for alike ones and unlike for others."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))

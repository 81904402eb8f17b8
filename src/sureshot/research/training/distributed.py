"""Several processes train as one, so that a loss sees the whole batch.

Everything here is the identity in a run of one process.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import torch

# Its functions take the group of all processes as a default: imported while there is one (the
# optimisers of torch do), they would keep it, and its threads, until the interpreter goes down,
# which now and then aborts the process (pytorch#179291).
import torch.distributed.nn
from torch import Tensor, distributed, nn

from sureshot.models.systems.base import Codes, grown

_T = TypeVar("_T")


def rank() -> int:
    """Number of this process, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def world() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this process prints for all: the first that torchrun started, or the only one."""
    return _started() < 2 or os.environ.get("RANK", "0") == "0"


def _started() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextlib.contextmanager
def from_torchrun() -> Iterator[None]:
    """Join the processes that torchrun started; does nothing where it did not start any.

    Processes meet over NCCL, each with a GPU of its own, where there are GPUs, else over Gloo.
    """
    if _started() < 2 or distributed.is_initialized():
        yield
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    # The first process validates alone while the others wait, which may take longer than NCCL does.
    with group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=12)):
        yield


@contextlib.contextmanager
def group(kind: str, **where: Any) -> Iterator[None]:
    """Be one of several processes; ``where`` goes to ``torch.distributed.init_process_group``."""
    distributed.init_process_group(kind, **where)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def same_start(module: nn.Module) -> None:
    """Give all processes the weights and buffers of process 0."""
    if world() > 1:
        for tensor in [*module.parameters(), *module.buffers()]:
            distributed.broadcast(tensor.detach(), 0)


def broadcast(value: Any) -> Any:
    """What process 0 passed in, in all of them."""
    return _of_all(value)[0]


def union(values: Iterable[_T]) -> set[_T]:
    """What any process passed in, in all of them."""
    return set().union(*_of_all(set(values)))


def _of_all(value: _T) -> list[_T]:
    """What each process passed in, in the order of the processes."""
    held: list[Any] = [value] * world()
    if len(held) > 1:
        distributed.all_gather_object(held, value)
    return held


def gathered(codes: Codes) -> Codes:
    """The codes of all processes in the order of the batch, of which process r holds r::world.

    Numbers of rows (maybe none) and of tokens may differ between processes; token axes are padded
    to the longest with zeros, as `sureshot.models.systems.base.joined` does.

    Its gradient is that of one process on the whole batch, once `average_gradients` has run: every
    process computes the same loss of the same codes, so the gradient of its own rows is whole
    already. It comes back times the number of processes because the average divides by that, which
    leaves weights that are used after the gather (a logit scale), whole in each process, right too.

    Differs:
        The gather of CLIP4Clip and its kin gives back the own slice as it is, so that the average
        of DDP leaves one world-th of the gradient.
    """
    if world() == 1:
        return codes
    shapes = _of_all({name: tuple(tensor.shape) for name, tensor in codes.items()})
    return {name: _gathered(one, [shape[name] for shape in shapes]) for name, one in codes.items()}


def _gathered(codes: Tensor, shapes: list[tuple[int, ...]]) -> Tensor:
    padded = grown(codes, [max(sizes) for sizes in zip(*shapes, strict=True)])
    kind = torch.uint8 if codes.dtype == torch.bool else codes.dtype  # messages carry no bools
    message = padded.detach().to(kind).contiguous()
    received = [torch.empty_like(message) for _ in shapes]
    distributed.all_gather(received, message)
    parts = [part.to(codes.dtype) for part in received]
    if codes.requires_grad:
        parts[rank()] = padded.view_as(padded)
        parts[rank()].register_hook(lambda grad: grad * float(world()))  # type: ignore[no-untyped-call]
    rows = torch.cat([part[: shape[0]] for part, shape in zip(parts, shapes, strict=True)])
    # The rows are ordered by process; process r holds r::world of the batch.
    held = torch.cat([torch.arange(first, len(rows), world()) for first in range(world())])
    return rows[held.argsort().to(rows.device)]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over the processes, in one message.

    DDP would reduce at each backward pass, of which gradient caching makes many. A weight that has
    a gradient in no process keeps none, so that the optimiser leaves it as it is.
    """
    if world() == 1:
        return
    weights = list(parameters)
    has = torch.tensor([float(weight.grad is not None) for weight in weights])
    grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    flat = torch.cat([*(grad.flatten() for grad in grads), has.to(grads[0])])
    distributed.all_reduce(flat)
    flat /= world()
    *parts, known = torch.split(flat, [*(grad.numel() for grad in grads), len(weights)])
    for weight, part, found in zip(weights, parts, known.tolist(), strict=True):
        weight.grad = part.view_as(weight).clone() if found else None

"""One batch of all processes, so that a loss sees it whole.

Everything here is the identity in a run of one process.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed.nn
from torch import Tensor, distributed, nn

from sureshot.models.systems.base import Codes, grown

_T = TypeVar("_T")


def rank() -> int:
    """Number of this process, from 0."""
    return distributed.get_rank() if _several() else 0


def world() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _several() else 1


def gathered(codes: Codes) -> Codes:
    """The codes of all processes in the order of the batch, of which process r holds r::world.

    Numbers of rows and of tokens may differ between processes; token axes are padded to the longest
    with zeros, as `sureshot.models.systems.base.joined` does.

    Its gradient is that of one process on the whole batch, once `average_gradients` has run: every
    process computes the same loss of the same codes, so the gradient of its own rows is whole
    already. It comes back times the number of processes because the average divides by that, which
    leaves weights that are used after the gather (a logit scale), whole in each process, right too.

    Args:
        codes: codes of this process's rows, maybe none; all processes have the same names.

    Differs:
        The gather of CLIP4Clip and its kin gives back the own slice as it is, so that the average
        of DDP leaves one world-th of the gradient.
    """
    if world() == 1:
        return codes
    shapes = _shapes(codes)
    return {
        name: _joined(tensor, [shape[name] for shape in shapes]) for name, tensor in codes.items()
    }


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over the processes, in one message.

    A wrapper such as DDP would reduce at each backward pass, of which gradient caching makes many,
    and cannot see weights used outside of the wrapped forward pass. A weight that has a gradient in
    no process keeps none, so that the optimiser leaves it as it is.
    """
    if world() == 1:
        return
    weights = list(parameters)
    has = torch.tensor([float(weight.grad is not None) for weight in weights])
    grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    flat = torch.cat([*(grad.flatten() for grad in grads), has.to(grads[0])])
    distributed.all_reduce(flat)
    flat /= world()
    parts = torch.split(flat, [*(grad.numel() for grad in grads), len(weights)])
    for weight, part, known in zip(weights, parts, parts[-1].tolist(), strict=False):
        weight.grad = part.view_as(weight).clone() if known else None


def same_start(module: nn.Module) -> None:
    """Give all processes the weights and buffers of process 0."""
    if world() > 1:
        for tensor in [*module.parameters(), *module.buffers()]:
            distributed.broadcast(tensor.detach(), 0)


def broadcast(value: Any) -> Any:
    """What process 0 passed in, in all of them."""
    if world() == 1:
        return value
    held = [value]
    distributed.broadcast_object_list(held, 0)
    return held[0]


def union(values: Iterable[_T]) -> set[_T]:
    """What any process passed in, in all of them."""
    if world() == 1:
        return set(values)
    held: list[Any] = [None] * world()
    distributed.all_gather_object(held, set(values))
    return set().union(*held)


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _shapes(codes: Codes) -> list[dict[str, tuple[int, ...]]]:
    """The shapes in each process."""
    flat = torch.tensor([size for tensor in codes.values() for size in tensor.shape])
    flat = flat.to(next(iter(codes.values())).device)
    everyone = [torch.empty_like(flat) for _ in range(world())]
    distributed.all_gather(everyone, flat)
    axes = [tensor.ndim for tensor in codes.values()]
    return [
        {
            name: tuple(sizes.tolist())
            for name, sizes in zip(codes, torch.split(told, axes), strict=True)
        }
        for told in everyone
    ]


def _joined(own: Tensor, shapes: list[tuple[int, ...]]) -> Tensor:
    """One tensor of all processes, its rows in the order of the batch."""
    largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
    padded = grown(own, largest)
    # Messages carry no bools.
    message = padded.detach().to(torch.uint8 if own.dtype == torch.bool else own.dtype).contiguous()
    everyone = [torch.empty_like(message) for _ in shapes]
    distributed.all_gather(everyone, message)
    parts = [part.to(own.dtype) for part in everyone]
    if own.requires_grad:
        parts[rank()] = _Weighed.apply(padded, float(world()))  # type: ignore[no-untyped-call]
    rows = torch.cat([part[: shape[0]] for part, shape in zip(parts, shapes, strict=True)])
    # The rows stand process by process; process r holds r::world of the batch.
    total = len(rows)
    held = torch.cat([torch.arange(first, total, world()) for first in range(world())])
    return rows[held.argsort().to(rows.device)]


class _Weighed(torch.autograd.Function):
    """The same numbers; a gradient ``weight`` times as large."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.weight, None


# Its functions take the group of all processes as a default: imported while there is one (the
# optimisers of torch do), they would keep it, and its threads, until the interpreter goes down,
# which now and then aborts the process (pytorch#179291).


@contextlib.contextmanager
def from_torchrun() -> Iterator[None]:
    """Join the processes that torchrun started; does nothing where it did not start any.

    Processes meet over NCCL, each with a GPU of its own, where there are GPUs, else over Gloo.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or distributed.is_initialized():
        yield
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    # The first process validates alone while the others wait, which may take longer than NCCL does.
    with group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=12)):
        yield


def is_first() -> bool:
    """Whether this process speaks for all: the first that torchrun started, or the only one."""
    return int(os.environ.get("WORLD_SIZE", "1")) < 2 or os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def group(kind: str, **where: Any) -> Iterator[None]:
    """Be one of several processes; ``where`` goes to ``torch.distributed.init_process_group``."""
    distributed.init_process_group(kind, **where)
    try:
        yield
    finally:
        distributed.destroy_process_group()

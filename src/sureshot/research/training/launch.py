"""Several processes started by torchrun, or just one."""

import contextlib
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch

# Its functions take the group of all processes as a default: imported while there is one (the
# optimisers of torch do), they would keep it, and its threads, until the interpreter goes down,
# which now and then aborts the process (pytorch#179291).
import torch.distributed.nn
from torch import distributed


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

"""Several processes started by torchrun, or just one."""

import contextlib
import os
from collections.abc import Iterator
from datetime import timedelta

import torch
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
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=12))
    try:
        yield
    finally:
        distributed.destroy_process_group()

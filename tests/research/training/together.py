"""Several processes that train together, as torchrun starts them."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import multiprocessing

from sureshot.research.training.distributed import group


def together(work: Callable[[], Any], world: int = 2) -> list[Any]:
    """What each process returns; ``work`` is a function of a module, or a partial of one."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_join, (work, world, folder), nprocs=world)
        return [torch.load(_told(folder, rank), weights_only=True) for rank in range(world)]


def _join(rank: int, work: Callable[[], Any], world: int, folder: str) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    with group("gloo", init_method=meeting, rank=rank, world_size=world):
        found = work()
    torch.save(found, _told(folder, rank))


def _told(folder: str, rank: int) -> Path:
    return Path(folder) / f"{rank}.pt"

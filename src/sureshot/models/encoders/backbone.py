"""The image network of the bundled encoder at work: resized frames in, pooled features out."""

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from sureshot.models.encoders import engines
from sureshot.models.encoders.base import Images, Pixels
from sureshot.models.encoders.efficientnet import MIDDLE, SCALE, Weights

if TYPE_CHECKING:
    import torch

    from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2


SIDE = 300  # a frame is resized to SIDE * SIDE pixels, whatever its shape
GRID = 3  # patches are the cells of a GRID x GRID pooling of the last feature map
WIDEST = 2.5  # a frame longer than this many times its shorter side is squeezed to that
_BATCH = 4  # frames a thread takes at once: more leave the caches of a core
_GPU_BATCH = 64


class Backbone:
    """Runs an EfficientNet-Lite2 over frames; ``load`` is called at the first one."""

    def __init__(
        self,
        load: Callable[[], Weights],
        device: str | None,
        threads: int | None,
        engine: str | None = None,
        precision: engines.Precision = "f32",
    ) -> None:
        self._load, self._device = load, device
        self._cores = threads or _cores()
        self._engine, self._precision = engine, precision
        # What cannot be is refused here; whether it is installed is found out at the first frame.
        if device not in (None, "cpu") or (engine and precision != "f32"):
            self._chosen  # noqa: B018

    def maps(self, prepared: Pixels) -> engines.Features:
        """Backbone features of each frame and of its 3 x 3 cells."""
        if self.engine != "torch":
            return self._compiled.maps(prepared)
        import torch

        on_cpu = self.device == "cpu"
        size = min(max(1, -(-len(prepared) // self._cores)), _BATCH) if on_cpu else _GPU_BATCH
        batches = [prepared[i : i + size] for i in range(0, len(prepared), size)]
        parts = (self._threads.map if on_cpu else map)(self._maps, batches)
        pooled, grid = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return pooled, grid

    def _maps(self, prepared: Pixels) -> tuple["torch.Tensor", "torch.Tensor"]:
        import torch
        from torch.nn.functional import adaptive_avg_pool2d

        with torch.inference_mode():
            maps = self.net(self._scaled(prepared))
            grid = adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2)
            return maps.mean((-2, -1)).cpu(), grid.cpu()

    def lower(self, prepared: Pixels, block: int) -> Float[np.ndarray, "frames i j c"]:
        """What enters a block of the network, channels last; blocks count from 0."""
        import torch

        with torch.inference_mode(), torch.autocast(torch.device(self.device).type, enabled=False):
            states = self.net.lower(self._scaled(prepared), block)
            return states.permute(0, 2, 3, 1).contiguous().cpu().numpy()

    def _scaled(self, prepared: Pixels) -> "torch.Tensor":
        import torch

        scaled = (torch.from_numpy(prepared).to(self.device).float() - MIDDLE) * SCALE
        return scaled.contiguous(memory_format=torch.channels_last)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """One thread a core, each with a batch of its own.

        Sharing one batch between the cores makes them wait for each other after every layer, and
        for longer where a decoder holds one of them (LOG.md).
        """
        import torch

        keep_freed_memory()
        self.net  # noqa: B018 - read before the threads would all do it at once
        return ThreadPoolExecutor(self._cores, initializer=torch.set_num_threads, initargs=(1,))

    @cached_property
    def _compiled(self) -> engines.OpenvinoNetwork | engines.OnnxNetwork:
        if self.engine == "onnxruntime":
            return engines.OnnxNetwork(self.weights, GRID, self._cores)
        return engines.OpenvinoNetwork(self.weights, GRID, self._cores, self._precision)

    @property
    def engine(self) -> engines.Engine:
        """What computes the network; finding out imports it."""
        return self._chosen[0]

    @property
    def device(self) -> str:
        """The device the network runs on, ``cpu`` or one of torch's."""
        return self._chosen[1]

    @cached_property
    def _chosen(self) -> tuple[engines.Engine, str]:
        return engines.choose(self._engine, self._device, self._precision)

    @cached_property
    def weights(self) -> Weights:
        """Weights of the network."""
        return self._load()

    @cached_property
    def net(self) -> "EfficientNetLite2":
        """The network by torch, on its device."""
        from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2

        device = self.device if self.engine == "torch" else "cpu"
        return EfficientNetLite2.of(self.weights).to(device)


def resized_whole(frames: Images) -> Pixels:
    """Resize to 300 x 300 pixels' worth of the whole frame, keeping its shape.

    Squashing to a square or cropping one costs one to two points of R@10 on the MSR-VTT
    validation frames (LOG.md), and what happens at the edges is lost.
    """
    from PIL import Image

    height, width = frames.shape[1:3]
    shape = min(max(width / height, 1 / WIDEST), WIDEST) ** 0.5
    size = (round(SIDE * shape), round(SIDE / shape))
    resized = [
        np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC))
        for frame in frames
    ]
    return np.ascontiguousarray(np.stack(resized).transpose(0, 3, 1, 2))


def _cores() -> int:
    """Cores this process may use, which only Linux tells from those of the machine."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's malloc.h
_KEPT = 1 << 29  # bytes


def keep_freed_memory() -> bool:
    """Let the allocator keep up to 512 MB that was freed; False where it is not glibc's.

    glibc hands large blocks to the system at once and gets them back as new pages, each of which
    the kernel clears: a third of the time of a network on a processor (LOG.md).
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # of another C library
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _KEPT) and mallopt(_TRIM_THRESHOLD, _KEPT))

"""What end-to-end training costs on a CLIP of ViT-B/32's real size, with random weights.

    python -m benchmarks.end_to_end steps [--pairs 4] [--frames 12]
    python -m benchmarks.end_to_end memory [--pairs 32]
    python -m benchmarks.end_to_end frames VIDEO …

``steps``: a step of each system beside the same step with InfoNCE alone on the mean frame, in turn,
several times; what a system adds is the ratio. ``memory``: the most memory that a step of InfoNCE
takes at micro-batches of 8, 16 and 32 pairs, each in a process of its own. ``frames``: frames a
second from the videos and from the kept JPEGs of the same frames, one thread.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

from sureshot.datasets import Item
from sureshot.media.sampling_rule import Sampling
from sureshot.media.signature import shrunk
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import (
    Sizes,
    System,
    TextTokens,
    VideoTokens,
    load_system,
    objective,
)
from sureshot.research.features import sampled_frames
from sureshot.research.training.data import read_filmstrip, write_filmstrip

DIM, CHANNELS, SIDE, WORDS = 512, 768, 224, 32
ALONE = "InfoNCE on the mean frame"
SYSTEMS: dict[str, dict[str, Any]] = {
    ALONE: {"name": "clip4clip", "temporal": "mean"},
    "CLIP4Clip, sequential": {"name": "clip4clip", "temporal": "transformer"},
    "X-Pool": {"name": "xpool"},
    "T-MASS": {"name": "tmass"},
    "CLIP2Video": {"name": "clip2video"},
    "HiT": {"name": "hit"},
    "PCME": {"name": "pcme"},
    "UATVR": {"name": "uatvr"},
    "DUQ": {"name": "duq"},
    "DUQ, released": {"name": "duq_released"},
    "DVTR on CLIP2Video": {
        "name": "dvtr",
        "base": {"name": "clip2video"},
        "alternate": False,
    },
}


class Clip(nn.Module):
    """CLIP ViT-B/32 with random weights, and tokens of random captions and frames through it."""

    def __init__(self) -> None:
        super().__init__()
        text = CLIPTextConfig(hidden_size=512, intermediate_size=2048, num_attention_heads=8)
        vision = CLIPVisionConfig(patch_size=32, image_size=SIDE)
        parts = {"text_config": text.to_dict(), "vision_config": vision.to_dict()}
        self.clip = CLIPModel(CLIPConfig(**parts, projection_dim=DIM))

    def texts(self, ids: torch.Tensor) -> TextTokens:
        """Tokens of texts."""
        out = self.clip.text_model(input_ids=ids)
        project = self.clip.text_projection
        words = project(out.last_hidden_state)
        mask = torch.ones(ids.shape, dtype=torch.bool)
        return TextTokens(project(out.pooler_output), words, mask)

    def videos(self, pixels: torch.Tensor) -> VideoTokens:
        """Tokens of videos; one cell a frame, which is what most systems leave of them."""
        count, frames = pixels.shape[:2]
        out = self.clip.vision_model(pixel_values=pixels.flatten(0, 1))
        seen = self.clip.visual_projection(out.pooler_output)
        norm = self.clip.vision_model.post_layernorm
        cells = self.clip.visual_projection(norm(out.last_hidden_state[:, 1:].mean(1, True)))
        return VideoTokens(
            seen.unflatten(0, (count, frames)),
            cells.unflatten(0, (count, frames)),
            out.pooler_output.unflatten(0, (count, frames)),
            torch.ones(count, frames, dtype=torch.bool),
        )


def batch(pairs: int, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random token ids that end as CLIP's do, and random pixels."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 40_000, (pairs, WORDS), generator=draw)
    ids[:, -1] = 49_407
    return ids, torch.randn(pairs, frames, 3, SIDE, SIDE, generator=draw)


def made(settings: dict[str, Any]) -> System:
    """A system of the real size."""
    sizes = Sizes(dim=DIM, channels=CHANNELS)
    return Model(Stem(StemConfig(), sizes), load_system(settings, sizes)).system.train()


def one_step(network: Clip, system: System, ids: torch.Tensor, pixels: torch.Tensor) -> float:
    """Seconds of tokens, codes, losses and all gradients."""
    began = time.perf_counter()
    codes = system.texts(network.texts(ids)), system.videos(network.videos(pixels))
    losses = system.losses(*codes, torch.Generator().manual_seed(0))
    torch.autograd.backward(objective(losses, system.weights))
    network.zero_grad()
    system.zero_grad()
    return time.perf_counter() - began


def steps(pairs: int, frames: int, rounds: int) -> None:
    """A step of each system by that of InfoNCE alone."""
    network, (ids, pixels) = Clip().train(), batch(pairs, frames)
    systems = {name: made(settings) for name, settings in SYSTEMS.items()}
    one_step(network, systems[ALONE], ids, pixels)
    spent: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, system in systems.items():
            spent[name].append(one_step(network, system, ids, pixels))
    print(f"an end-to-end step: {pairs} pairs, {frames} frames, {torch.get_num_threads()} threads")
    for name, seconds in spent.items():
        ratio = np.median(np.array(seconds) / np.array(spent[ALONE]))
        weights = sum(weight.numel() for weight in systems[name].parameters()) / 1e6
        print(f"{name:28}{np.median(seconds):7.2f} s  {ratio:5.2f} times  {weights:6.2f} M weights")


def memory(pairs: int, frames: int) -> None:
    """Most memory of a step, each micro-batch in a process of its own."""
    print(f"a step of {pairs} pairs, {frames} frames: most memory beyond that of the weights")
    context = multiprocessing.get_context("spawn")
    for micro in (8, 16, 32):
        with context.Pool(1) as pool:
            print(f"micro-batch {micro:3}: {pool.apply(_peak, (pairs, frames, micro)):6.2f} GiB")


def _peak(pairs: int, frames: int, micro: int) -> float:
    from sureshot.research.training.step import StepOptions, gradients

    network, (ids, pixels) = Clip().train(), batch(pairs, frames)
    system = made(SYSTEMS[ALONE])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def embed(rows: Any) -> Any:
        chosen = list(rows)
        return system.texts(network.texts(ids[chosen])), system.videos(
            network.videos(pixels[chosen])
        )

    gradients(system, embed, range(pairs), StepOptions(micro_batch=micro))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


def kept(paths: list[Path], frames: int) -> None:
    """Frames a second decoded, and read from what was kept of them."""
    rule, rates = Sampling("spread", 1.0), []
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(paths):
            item, strip = Item(path.name, path), Path(folder) / f"{number}.jpg"
            began = time.perf_counter()
            found = sampled_frames(item, frames, _resize, rule)
            decoded = time.perf_counter() - began
            write_filmstrip(strip, found)
            began = time.perf_counter()
            read_filmstrip(strip)
            read = time.perf_counter() - began
            rates.append((len(found) / decoded, len(found) / read, strip.stat().st_size))
    one, other, size = np.median(np.array(rates), axis=0)
    print(f"{len(paths)} videos, {frames} frames of each, median of videos")
    print(f"decoded {one:6.0f} frames/s; kept {other:6.0f} frames/s, {other / one:5.1f} times")
    print(f"{size / 1000:.0f} kB a video")


def _resize(frame: np.ndarray) -> np.ndarray:
    from PIL import Image

    size = shrunk(frame.shape[1], frame.shape[0], SIDE)
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["steps", "memory", "frames"])
    parser.add_argument("videos", nargs="*", type=Path)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.what == "steps":
        steps(options.pairs or 4, options.frames, options.rounds)
    elif options.what == "memory":
        memory(options.pairs or 32, options.frames)
    else:
        kept(options.videos, options.frames)


if __name__ == "__main__":
    main()

"""What the systems cost: a training step with and without a paper's losses, and scoring.

    python -m benchmarks.systems [--batch 128] [--width 256] [--sizes 500,1000,2000,4000]

Random tokens of 12 frames and 16 words; medians; every kind is measured in turn, several times, so
that a noisy machine hurts all of them alike. Scoring is `System.similarity` on ready codes.
"""

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from sureshot.models.systems.base import (
    Codes,
    Sizes,
    System,
    TextTokens,
    VideoTokens,
    joined,
    known_systems,
    load_system,
    objective,
)

FRAMES, WORDS = 12, 16
_OFF = {"similarity_evidence": False, "distance_loss": False, "distance_evidence": False}
STEPS: dict[str, dict[str, Any]] = {
    "clip4clip": {"name": "clip4clip"},
    "xpool, with dropout": {"name": "xpool"},
    "xpool, without": {"name": "xpool", "dropout": 0.0},
    "duq, L_S alone": {"name": "duq", "dropout": 0.0, **_OFF},
    "duq, all losses": {"name": "duq", "dropout": 0.0},
    "duq, all losses, as printed": {"name": "duq", "dropout": 0.0, "mode": "paper"},
    "uatvr, tokens alone": {"name": "uatvr", "adaptation": False, "matching": "none"},
    "uatvr, all losses": {"name": "uatvr"},
    "clip2video": {"name": "clip2video"},
    "hit": {"name": "hit"},
    "pcme": {"name": "pcme"},
    "t-mass": {"name": "tmass", "dropout": 0.0},
    "dvtr + clip4clip, both at once": {"name": "dvtr", "alternate": False},
}
# CE reads what random frames do not have; DVTR scores as its base does.
SCORED = {name: {"name": name} for name in known_systems() if name not in ("ce", "dvtr")}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="500,1000,2000,4000")
    options = parser.parse_args()
    steps(options.batch, options.width, options.rounds)
    print()
    growth([int(size) for size in options.sizes.split(",")], options.width)


def steps(batch: int, width: int, rounds: int) -> None:
    """Seconds of one step, codes and losses and their gradients, for each kind."""
    pairs = tokens(batch, width)
    systems = {name: made(settings, width) for name, settings in STEPS.items()}
    spent: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds + 1):  # the first one warms up
        for name, system in systems.items():
            began = time.perf_counter()
            codes = system.texts(pairs[0]), system.videos(pairs[1])
            losses = system.losses(*codes, torch.Generator().manual_seed(0))
            torch.autograd.backward(objective(losses, system.weights))
            spent[name].append(time.perf_counter() - began)
            system.zero_grad()
    base = float(np.median(spent["duq, L_S alone"][1:]))
    print(f"a training step, {batch} pairs, width {width}")
    for name, seconds in spent.items():
        median = float(np.median(seconds[1:]))
        print(f"{name:30}{median:8.3f} s  {median / base:5.2f} times duq, L_S alone")


def growth(sizes: list[int], width: int) -> None:
    """Seconds of scoring n texts against n videos, for each system."""
    print(f"scoring n x n, width {width}, seconds")
    print(" " * 12 + "".join(f"{size:>10}" for size in sizes))
    for name, settings in SCORED.items():
        system = made(settings, width).eval()
        found = []
        for size in sizes:
            with torch.no_grad():
                texts, videos = coded(system, size, width)
                began = time.perf_counter()
                system.similarity(texts, videos)
                found.append(time.perf_counter() - began)
        print(f"{name:12}" + "".join(f"{seconds:10.2f}" for seconds in found))


def made(settings: Mapping[str, Any], width: int) -> System:
    """A system with its first weights."""
    torch.manual_seed(0)
    return load_system(settings, Sizes(width, 0)).train()


def coded(system: System, count: int, width: int) -> tuple[Codes, Codes]:
    """Codes of so many texts and videos, made in batches."""
    parts = []
    for first in range(0, count, 250):
        texts, videos = tokens(min(250, count - first), width, seed=first)
        parts.append((system.texts(texts), system.videos(videos)))
    return joined([part[0] for part in parts]), joined([part[1] for part in parts])


def tokens(count: int, width: int, seed: int = 0) -> tuple[TextTokens, VideoTokens]:
    """Random tokens, all of them real."""
    source = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=source)

    return (
        TextTokens(
            drawn(count, width), drawn(count, WORDS, width), torch.ones(count, WORDS).bool()
        ),
        VideoTokens(
            drawn(count, FRAMES, width),
            torch.zeros(count, FRAMES, 0, width),
            torch.zeros(count, FRAMES, 0),
            torch.ones(count, FRAMES).bool(),
        ),
    )


if __name__ == "__main__":
    main()

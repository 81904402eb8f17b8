"""What text-conditioned pooling costs, computed as in the papers and computed fast.

    python -m benchmarks.pooling [--texts 1000 --videos 1000 --frames 12 --dim 512]
    python -m benchmarks.pooling --sizes 500,1000,2000,4000

The first line compares the two forms on the same made-up features and randomly moved weights: each
in a process of its own, for its peak memory, the direct form for a few texts at a time as X-Pool's
evaluation does to fit memory at all. Peaks are beyond what the process held with its features
loaded. The difference of the scores is taken over the first texts and videos. The second grows the
fast form alone, with as many texts as videos.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sureshot.models.layers.pooling import CrossAttentionPooling, fast_scores, scores_direct

SAMPLE = 100  # texts and videos over which the two forms' scores are compared
UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes


@dataclass(frozen=True)
class Size:
    """How much is pooled, and how many texts the direct form takes at a time."""

    texts: int
    videos: int
    frames: int
    dim: int
    block: int


def main() -> None:
    """Measure what is asked for, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--videos", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--block", type=int, default=32, help="texts at a time, direct form")
    parser.add_argument("--sizes", help="numbers of texts and videos for the fast form alone")
    parser.add_argument("--form", choices=("direct", "fast"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = Size(options.texts, options.videos, options.frames, options.dim, options.block)
    if options.form:
        print(json.dumps(run(size, options.form)))
    elif options.sizes:
        grow(size, [int(count) for count in options.sizes.split(",")])
    else:
        compare(size)


def compare(size: Size) -> None:
    """Both forms side by side."""
    print(f"{size.texts} texts x {size.videos} videos x {size.frames} frames x {size.dim}")
    print(f"{torch.get_num_threads()} threads; the direct form takes {size.block} texts at a time")
    found = {form: apart(size, form) for form in ("direct", "fast")}
    for form, cost in found.items():
        print(f"{form:>6}: {cost['seconds']:.2f} s, peak {cost['bytes'] / 1e6:.0f} MB")
    direct, fast = found["direct"], found["fast"]
    print(
        f"ratio: {direct['seconds'] / fast['seconds']:.1f} in time, "
        f"{direct['bytes'] / max(fast['bytes'], 1):.1f} in memory"
    )
    print(f"greatest difference of a score: {difference(size):.1e}")


def grow(size: Size, counts: list[int]) -> None:
    """The fast form at several sizes."""
    for count in counts:
        cost = apart(Size(count, count, size.frames, size.dim, size.block), "fast")
        print(
            f"{count:>6} x {count}: {cost['seconds']:.2f} s, peak {cost['bytes'] / 1e6:.0f} MB, "
            f"{1e9 * cost['seconds'] / count**2:.0f} ns a pair"
        )


def apart(size: Size, form: str) -> dict[str, float]:
    """What one form costs, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.pooling", "--form", form]
    for name, value in asdict(size).items():
        command += [f"--{name}", str(value)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    costs: dict[str, float] = json.loads(told)
    return costs


def run(size: Size, form: str) -> dict[str, float]:
    """Seconds and additional bytes of one form in this process."""
    pooling, texts, frames, mask = made_up(size)
    with torch.no_grad():
        # A first small run, so that what torch loads when it first multiplies is not counted.
        fast_scores(pooling, texts[:2], frames[:2], mask[:2])
        scores_direct(pooling, texts[:2], frames[:2], mask[:2])
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        if form == "fast":
            fast_scores(pooling, texts, frames, mask)
        else:
            torch.cat([scores_direct(pooling, part, frames, mask) for part in _parts(texts, size)])
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "bytes": float((peak - held) * UNIT)}


def difference(size: Size) -> float:
    """Greatest difference between the two forms' scores over the first texts and videos."""
    pooling, texts, frames, mask = made_up(size)
    texts, frames, mask = texts[:SAMPLE], frames[:SAMPLE], mask[:SAMPLE]
    with torch.no_grad():
        fast = fast_scores(pooling, texts, frames, mask)
        parts = [scores_direct(pooling, part, frames, mask) for part in _parts(texts, size)]
    return (fast - torch.cat(parts)).abs().max().item()


def made_up(
    size: Size,
) -> tuple[
    CrossAttentionPooling,
    Float[Tensor, "texts dim"],
    Float[Tensor, "videos frames dim"],
    Bool[Tensor, "videos frames"],
]:
    """A pooling whose weights are not those it starts with, and features of random numbers."""
    draw = torch.Generator().manual_seed(0)
    pooling = CrossAttentionPooling(size.dim).eval().requires_grad_(False)
    for weight in pooling.parameters():
        weight.add_(0.02 * torch.randn(weight.shape, generator=draw))
    texts = torch.randn(size.texts, size.dim, generator=draw)
    frames = torch.randn(size.videos, size.frames, size.dim, generator=draw)
    lengths = torch.randint(1, size.frames + 1, (size.videos, 1), generator=draw)
    return pooling, texts, frames, torch.arange(size.frames) < lengths


def _parts(texts: Float[Tensor, "texts dim"], size: Size) -> list[Float[Tensor, "part dim"]]:
    return [texts[at : at + size.block] for at in range(0, len(texts), size.block)]


if __name__ == "__main__":
    main()

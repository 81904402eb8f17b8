"""What keeping features by video costs and saves: shards of several sizes, and subsets of a split.

    python -m benchmarks.feature_cache [--videos 10000] [--wanted 500] [--sizes 16 64 256] [--cold]

First made-up features of many videos, as CLIP ViT-B/32 has them at 12 frames (about 140 kB a
video), in shards of several sizes: seconds to write them, to read all, and to read some drawn at
random. With ``--cold`` the cache of the whole system is dropped before each reading, which wants
root and slows all other programs down; size 1 is one file a video and takes minutes. Then photos of
Flickr8k with the bundled image network: a quarter of them out of the cache of all, beside the same
quarter encoded anew.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import data
from sureshot.datasets import Split, load_split
from sureshot.models.encoders.bundled import BridgeEncoder
from sureshot.research.features import FeatureCache, extract

_SHAPES = {"frames": (12, 512), "patches": (12, 9, 512), "backbone": (12, 768)}


def main() -> None:
    """Print seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--wanted", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--photos", type=int, default=256)
    options = parser.parse_args()
    keys = [f"{number:032x}" for number in range(options.videos)]
    draw = np.random.default_rng(0)
    some = [str(key) for key in draw.choice(keys, min(options.wanted, len(keys)), replace=False)]
    heads = f"{'videos a shard':>14}{'write':>9}{f'all {len(keys):,}':>12}{f'{len(some):,}':>12}"
    print(f"{heads}   seconds, read from {'the disk' if options.cold else 'memory'}")
    for size in options.sizes:
        taken = shards(size, keys, some, options.cold)
        print(f"{size:14,}{taken[0]:9.2f}{taken[1]:12.2f}{taken[2]:12.2f}", flush=True)
    subset(options.photos)


def shards(size: int, keys: Sequence[str], some: Sequence[str], cold: bool) -> list[float]:
    """Seconds to write all keys in shards of a size, to read all, to read some."""
    draw = np.random.default_rng(0)
    entry = {name: draw.normal(size=shape).astype(np.float16) for name, shape in _SHAPES.items()}
    with tempfile.TemporaryDirectory() as folder:
        cache = FeatureCache(Path(folder))

        def write() -> None:
            for first in range(0, len(keys), size):
                cache.write(dict.fromkeys(keys[first : first + size], entry))

        taken = [timed(write)]
        for wanted in (keys, some):
            if cold:
                drop_caches()
            taken.append(timed(partial(cache.read, wanted)))
        return taken


def subset(photos: int) -> None:
    """A quarter of some photos and their captions out of the cache of all, and encoded anew."""
    split = load_split("flickr8k", "val", data.folder("flickr8k"))
    whole = split.part({item.id for item in split.items[:photos]})
    part = whole.part({item.id for item in whole.items[::4]})
    encoder = BridgeEncoder()
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as empty:
        print(f"{len(whole.items)} photos encoded: {_seconds(whole, encoder, full)} s")
        print(f"{len(part.items)} of them after that: {_seconds(part, encoder, full)} s")
        print(f"{len(part.items)} of them anew: {_seconds(part, encoder, empty)} s")


def _seconds(split: Split, encoder: BridgeEncoder, cache: str) -> str:
    return f"{timed(lambda: extract(split, encoder, cache=Path(cache))):.2f}"


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def drop_caches() -> None:
    """Forget what the system has read, so that the disk is measured."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


if __name__ == "__main__":
    main()

"""Indexing against a plain loop over the same clips with the same model.

    python -m benchmarks.indexing [FOLDER] [--rounds 3]

The loop is what one writes first: open a file, decode it whole, take twelve frames, give them to
the network in torch, layer by layer, four at a time; on one thread, and again with as many as there
are cores. Sureshot indexes with each engine that is installed, and in 16 bits (``bundled-bf16``)
where the processor has them. Each run is its own process, and the runs alternate, so that a noisy
machine hurts all of them alike.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import data
from benchmarks.bundled.network import HALF

if TYPE_CHECKING:
    from torch import Tensor

    from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2

KINDS = (
    "loop, one thread",
    "loop, all threads",
    "sureshot, torch",
    "sureshot, openvino",
    "sureshot, onnxruntime",
    "16 bits, openvino",
)


def main() -> None:
    """Alternate the kinds and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder or data.folder("clips") / "videos"
    if options.kind:
        measure(options.kind, folder)
        return
    kinds = [kind for kind in KINDS if find_spec(kind.rpartition(", ")[2]) or "loop" in kind]
    kinds = [kind for kind in kinds if HALF or "16 bits" not in kind]
    runs: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind in kinds:
            command = [sys.executable, "-m", "benchmarks.indexing", str(folder), "--kind", kind]
            line = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
            runs[kind].append([float(value) for value in line.split()])
    seconds = {kind: float(np.median([r[0] for r in rows])) for kind, rows in runs.items()}
    print(f"{'':20}seconds  videos/s  cores busy  peak MB  against one thread")
    for kind, rows in runs.items():
        wall, cpu, peak, count = np.median(rows, axis=0)
        ratio = seconds[KINDS[0]] / seconds[kind]
        rate = count / wall
        print(
            f"{kind:20}{wall:7.1f}  {rate:8.2f}  {cpu / wall:10.2f}  {peak:7.0f}  {ratio:.2f} times"
        )


def measure(kind: str, folder: Path) -> None:
    """One run in this process: prints wall seconds, CPU seconds, peak MB, videos.

    Packages and weights are loaded before the clock starts: both sides need them, and they are read
    once for however many videos.
    """
    import av  # noqa: F401
    import torch

    import sureshot.library.indexing  # noqa: F401
    from sureshot.models.encoders.bundled import BundledEncoder

    alone = kind == "loop, one thread"
    if alone:
        torch.set_num_threads(1)
    engine = "torch" if kind.startswith("loop") else kind.rpartition(", ")[2]
    encoder = BundledEncoder(
        "cpu",
        threads=1 if alone else None,
        engine=engine,
        precision="bf16" if "16 bits" in kind else "f32",
        patches=False,
    )
    if kind.startswith("loop"):
        encoder.backbone.net.forward = partial(layer_by_layer, encoder.backbone.net)  # type: ignore[method-assign]
    encoder.encode_frames(encoder.prepare(np.zeros((1, 64, 64, 3), np.uint8)))
    began, used = time.monotonic(), time.process_time()
    count = loop(folder, encoder) if kind.startswith("loop") else index(folder, encoder)
    wall, cpu = time.monotonic() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(wall, cpu, peak, count)


def layer_by_layer(network: "EfficientNetLite2", x: "Tensor") -> "Tensor":
    """The network as its paper draws it, each step with memory of its own."""
    from torch.nn.functional import relu6

    from sureshot.models.encoders.efficientnet_torch import InvertedBottleneck

    x = relu6(network.stem(x))
    for block in network.blocks:
        assert isinstance(block, InvertedBottleneck)
        y = x if block.expand is None else relu6(block.expand(x))
        y = block.project(relu6(block.filter(y)))
        x = x + y if block.residual else y
    return relu6(network.head(x))


def loop(folder: Path, encoder: object) -> int:
    """The plain loop."""
    import av

    from sureshot.models.encoders.bundled import BundledEncoder

    assert isinstance(encoder, BundledEncoder)
    vectors = []
    for path in sorted(folder.iterdir()):
        with av.open(path) as container:
            frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
        chosen = np.linspace(0, len(frames) - 1, min(12, len(frames))).round().astype(int)
        prepared = encoder.prepare(np.stack([frames[i] for i in chosen]))
        vectors.append(encoder.encode_frames(prepared).frames.mean(0))
    return len(vectors)


def index(folder: Path, encoder: object) -> int:
    """Sureshot's way, into a store on disk."""
    from sureshot.library.indexing import Run
    from sureshot.models.encoders.bundled import BundledEncoder
    from sureshot.store.index import Store
    from sureshot.store.rows import IndexSettings

    assert isinstance(encoder, BundledEncoder)
    with tempfile.TemporaryDirectory() as place:
        store = Store.create(place, IndexSettings(), encoder.fingerprint, encoder.dim)
        return Run(store, encoder, [folder]).ingest().indexed


if __name__ == "__main__":
    main()

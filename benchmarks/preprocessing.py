"""What it costs to give CLIP its own pixels: frames shrunk as CLIP does, beside other ways.

    python -m benchmarks.preprocessing [--clips 6] [--rounds 3] [--shapes 360x640 720x1280]

For each way: videos and frames (12 a video) a second of processor time, from the file to what the
network reads, decoding included; the peak of the memory that the process takes for it; and how far
the prepared pixels are from Pillow's bicubic on whole frames, in grey levels. The ways: torch's
bicubic on whole frames while they are decoded (ours), and Pillow's in its place. Each runs in a
process of its own, on patterns of fine lines, 10 s at 25 frames a second; medians.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import av
import numpy as np
from jaxtyping import Float, UInt8

from sureshot.media.sampling import sample_frames
from sureshot.media.signature import FrameSize
from sureshot.models.encoders.clip import Preprocessing, Snapshot

WAYS = ("ours", "pillow")
_FRAMES, _SIDE = 12, 224


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", default=["240x320", "360x640", "720x1280"])
    options = parser.parse_args()
    print(
        f"{'height x width':16}{'way':12}{'videos/s':>10}{'frames/s':>10}{'memory':>10}"
        f"{'mean':>8}{'most':>7}   grey levels from Pillow"
    )
    spawned = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for shape in options.shapes:
            height, width = map(int, shape.split("x"))
            paths = [Path(folder) / f"{shape}-{number}.mp4" for number in range(options.clips)]
            for number, path in enumerate(paths):
                write(path, height, width, number)
            for way in WAYS:
                with spawned.Pool(1) as pool:
                    found = pool.apply(measured, (way, paths, options.rounds))
                rate, memory, mean, most = found
                print(
                    f"{shape:16}{way:12}{rate:10.2f}{rate * _FRAMES:10.1f}{memory:7.0f} MB"
                    f"{mean:8.3f}{most:7.1f}",
                    flush=True,
                )


def write(path: Path, height: int, width: int, seed: int) -> None:
    """A video of fine lines that move."""
    y, x = np.mgrid[:height, :width]
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(250):
            shift = number + 7 * seed
            rings = np.sin(((x - shift) ** 2 + (y - height / 2) ** 2) / 60) * 127 + 128
            checks = ((x // 3 + y // 3 + shift // 5) % 2) * 255
            grey = np.where((x // 40 + y // 40) % 2 == 0, checks, rings).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(np.repeat(grey[..., None], 3, -1), "rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def measured(way: str, paths: Sequence[Path], rounds: int) -> tuple[float, float, float, float]:
    """Videos a second, megabytes, and the mean and the largest distance from Pillow."""
    import torch

    torch.set_num_threads(1)
    recipe = Preprocessing.read(Snapshot(Path("/nowhere")), "clip", _SIDE)
    size = size_of(way, recipe)
    recipe.apply(sample_frames(paths[0], 1, size, end=0.1))  # torch is loaded
    before = peak()
    taken = []
    for _ in range(rounds):
        for path in paths:
            began = time.process_time()
            recipe.apply(sample_frames(path, _FRAMES, size))
            taken.append(time.process_time() - began)
    memory = peak() - before
    apart = [distance(path, size, recipe) for path in paths]
    mean = float(np.mean([one.mean() for one in apart]))
    return 1 / float(np.median(taken)), memory, mean, max(float(one.max()) for one in apart)


def size_of(way: str, recipe: Preprocessing) -> FrameSize:
    """How frames are shrunk while they are decoded."""
    return recipe.resize if way == "ours" else partial(by_pillow, recipe=recipe)


def by_pillow(
    frame: UInt8[np.ndarray, "h w 3"], recipe: Preprocessing
) -> UInt8[np.ndarray, "h2 w2 3"]:
    """The shorter side to that of the recipe, by Pillow."""
    from PIL import Image

    height, width = frame.shape[:2]
    shorter = _SIDE
    target = [int(shorter * length / min(height, width)) for length in (width, height)]
    bicubic = Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(frame).resize((target[0], target[1]), bicubic))


def distance(path: Path, size: FrameSize, recipe: Preprocessing) -> Float[np.ndarray, "..."]:
    """Grey levels between prepared frames and those by Pillow, of the same moments."""
    ways = (size, partial(by_pillow, recipe=recipe))
    ours, theirs = (recipe.apply(sample_frames(path, _FRAMES, one)) for one in ways)
    level = np.diff(recipe.values[:, :2], axis=1)[:, :, None]
    return np.abs(ours - theirs) / level


def peak() -> float:
    """Most memory that this process has taken so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

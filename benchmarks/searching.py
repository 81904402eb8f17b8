"""How long a search takes, cold and warm, and how large the index is.

    python -m benchmarks.searching [--windows 10000]

Cold: the whole process `sureshot search "…"`, from its start to its end, beside the mere import of
torch and of lancedb's parent format in the same interpreter. Warm: `Searcher.search` in a running
process over an index of so many windows (clustered random vectors, tokens of real size).
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sureshot.library.search import Searcher
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow, IndexSettings, VideoRecord

PER_VIDEO = 50
QUERIES = ("a dog catches a frisbee", "someone is cooking", "a car on a road", "people on a stage")


def main() -> None:
    """Build the index, time both ways, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    encoder = BundledEncoder()
    with tempfile.TemporaryDirectory() as place:
        store = Store.create(place, IndexSettings(), encoder.fingerprint, encoder.dim)
        fill(store, options.windows)
        size, each = store.bytes_on_disk(), store.bytes_on_disk() / options.windows / 1e3
        print(f"{options.windows} windows, {size / 1e6:.0f} MB: {each:.0f} kB each,")
        print(f"that is {2 * each:.0f} kB per minute of video in 30 s windows")
        search = [sys.executable, "-m", "sureshot", "search", QUERIES[0], "--db", place, "--json"]
        cold = timed(search, options.rounds)
        torch = timed([sys.executable, "-c", "import torch"], options.rounds)
        print(f"cold search, whole process: {cold:.2f} s; `import torch` alone: {torch:.2f} s")
        known, plain = Searcher(store, encoder), Searcher(store, encoder)
        plain._card = None  # no percentages
        # By turns, so that what else the machine does slows both.
        taken: dict[str, list[float]] = {"with percentages": [], "without": []}
        for _ in range(options.rounds + 1):
            for query in QUERIES:
                for searcher, times in zip((known, plain), taken.values(), strict=True):
                    began = time.perf_counter()
                    searcher.search(query)
                    times.append(1000 * (time.perf_counter() - began))
        medians = [statistics.median(times[len(QUERIES) :]) for times in taken.values()]
        for name, median in zip(taken, medians, strict=True):
            print(f"warm search {name}: median {median:.0f} ms")
        print(f"percentages cost {100 * (medians[0] / medians[1] - 1):.0f} % of a search")


def fill(store: Store, count: int) -> None:
    """Windows of made-up videos around a hundred centres."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(100, store.dim))
    for number in range(count // PER_VIDEO):
        windows = []
        for at in range(PER_VIDEO):
            centre = centres[draw.integers(100)]
            frames = (centre + draw.normal(size=(12, store.dim))).astype(np.float32)
            times = 30.0 * at + np.arange(12) * 2.5
            signatures = draw.integers(0, 255, (12, 256)).astype(np.uint8)
            windows.append(EncodedWindow(30.0 * at, 30.0 * (at + 1), times, signatures, frames))
        store.write(VideoRecord(Path(f"/videos/{number:06}.mp4"), "file", 1, 1), windows)
    store.compact()


def timed(command: list[str], rounds: int) -> float:
    """Median seconds of a command."""
    seconds = []
    for _ in range(rounds):
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()

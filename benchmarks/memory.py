"""How much memory a run takes as it goes on, and a search of a large index.

    python -m benchmarks.memory failing [--files 20000]
    python -m benchmarks.memory writing [--commits 3000]
    python -m benchmarks.memory search [--windows 40000]
    python -m benchmarks.memory copies [--windows 40000]
    python -m benchmarks.memory listing [--files 1000000]

``failing`` indexes so many empty files, ``writing`` commits so many small videos to an index; both
print the resident memory every thousand. ``search`` fills an index with windows of real clips, each
changed a little, and prints the peak of a process that searches it; ``copies`` does so with windows
that are copies of five, so that hardly anything is left of what a search finds. ``listing`` makes
folders of a thousand files that an index knows, and prints the peak of a process that looks for
what is new.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data import folder
from sureshot.library.encoding import EncodedVideo, encode_videos
from sureshot.library.index_result import Indexed
from sureshot.library.indexing import Run
from sureshot.media.discover import Source, discover
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow, IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo

EVERY = 1000
PER_VIDEO = 50
COPIED = 5  # windows of which all others are copies
# What the system tells of children includes what this process had when it began them.
RUN = """
import sys
from pathlib import Path
peak = Path(sys.argv.pop(1))
try:
    from sureshot.__main__ import main
    main()
finally:
    status = Path("/proc/self/status").read_text()
    peak.write_text(next(s.split()[1] for s in status.splitlines() if s.startswith("VmHWM")))
"""


def main() -> None:
    """Measure one of the five."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ("failing", "writing", "search", "copies", "listing")
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--commits", type=int, default=3_000)
    parser.add_argument("--windows", type=int, default=40_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        match options.what:
            case "failing":
                failing(Path(place), options.files)
            case "writing":
                writing(Path(place), options.commits)
            case "listing":
                listing(Path(place), options.files)
            case what:
                search(Path(place), options.windows, copies=what == "copies")


def failing(place: Path, count: int) -> None:
    """Index empty files."""
    for number in range(count):
        (place / f"{number:06}.mp4").touch()
    encoder = TinyEncoder()
    store = Store.create(
        place / "index", IndexSettings(model="tiny"), encoder.fingerprint, encoder.dim
    )
    began, told = time.monotonic(), [0]

    def observe(result: Indexed) -> None:
        if len(result.failed) >= told[0]:
            say(len(result.failed), began)
            told[0] += EVERY

    Run(store, encoder, [place], progress=observe).ingest()
    say(count, began)


def writing(place: Path, count: int) -> None:
    """Commit videos of two windows each."""
    store = Store.create(place, IndexSettings(), "f", 256)
    windows = [made_up(number) for number in range(2)]
    began = time.monotonic()
    for number in range(count + 1):
        if number % EVERY == 0:
            say(number, began)
        store.write(VideoRecord(Path(f"/v/{number}.mp4"), "file", 1, 1), windows)


def listing(place: Path, count: int) -> None:
    """Look through files all of which failed before, as none of them is a video."""
    encoder = TinyEncoder()
    settings = IndexSettings(model="tiny")
    store = Store.create(place / "index", settings, encoder.fingerprint, encoder.dim)
    known = []
    for number in range(count):
        path = place / "videos" / f"{number // EVERY:04}" / f"{number % EVERY:03}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        stat = path.stat()
        record = VideoRecord(
            path=path, kind="file", size=0, mtime_ns=stat.st_mtime_ns, reason="empty"
        )
        known.append(StagedVideo(record))
        if len(known) == 50 * EVERY or number == count - 1:
            store.commit(known)
            known = []
    store.compact()
    run(f"{count} files", place, "index", str(place / "videos"), "--json", "--db", store.location)


def search(place: Path, count: int, *, copies: bool = False) -> None:
    """Search an index of so many windows in a process of its own."""
    encoder = BundledEncoder()
    store = Store.create(place, IndexSettings(), encoder.fingerprint, encoder.dim)
    sources = [s for s in discover([folder("clips") / "videos"]) if isinstance(s, Source)]
    videos = encode_videos(sources, store.settings, encoder)
    real = [w for v in videos if isinstance(v, EncodedVideo) for w in v.windows]
    if copies:
        real = real[:COPIED]
    draw = np.random.default_rng(0)
    for number in range(count // PER_VIDEO):
        chosen = [real[i] for i in draw.integers(0, len(real), PER_VIDEO)]
        windows = [varied(w, at, draw, copies) for at, w in enumerate(chosen)]
        store.write(VideoRecord(Path(f"/videos/{number:06}.mp4"), "file", 1, 1), windows)
    store.compact()
    for round_ in range(3):
        run(f"search {round_}", place, "search", "a dog", "--db", str(place), "--json")
    print(f"{store.count()} windows, {store.bytes_on_disk() / 1e9:.2f} GB")


def run(name: str, place: Path, *arguments: str) -> None:
    """Run a command in a process of its own, and print how long it took and its peak."""
    told = place / "peak"
    began = time.monotonic()
    command = [sys.executable, "-c", RUN, str(told), *arguments]
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=quiet, stderr=quiet)
    peak = int(told.read_text()) / 1e3
    print(f"{name}: {time.monotonic() - began:.1f} s, peak {peak:.0f} MB", flush=True)


def made_up(seed: int) -> EncodedWindow:
    """A window of the bundled model's sizes."""
    draw = np.random.default_rng(seed)
    signatures = draw.integers(0, 255, (12, 288)).astype(np.uint8)
    start = 30.0 * seed
    return EncodedWindow(
        start=start,
        end=start + 30,
        times=start + np.arange(12) * 2.5,
        signatures=signatures,
        frames=draw.normal(size=(12, 256)).astype(np.float32),
    )


def varied(
    window: EncodedWindow, at: int, draw: np.random.Generator, copy: bool = False
) -> EncodedWindow:
    """A window at another place of a video, its frames turned a little."""
    frames = window.frames
    frames = frames + 0.02 * draw.normal(size=frames.shape).astype(np.float32)
    frames /= np.linalg.norm(frames, axis=1, keepdims=True)
    return EncodedWindow(
        start=30.0 * at,
        end=30.0 * at + window.end - window.start,
        times=window.times - window.start + 30.0 * at,
        frames=frames,
        # Of pictures of their own: as copies of few clips they would be folded into as many rows.
        signatures=window.signatures
        if copy
        else draw.integers(0, 255, window.signatures.shape).astype(np.uint8),
    )


def say(done: int, began: float) -> None:
    """Print how far the run is, and the memory it takes."""
    status = Path("/proc/self/status").read_text()
    resident = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    seconds = time.monotonic() - began
    print(f"{done:6} {int(resident) / 1e3:6.0f} MB {seconds:7.0f} s", flush=True)


if __name__ == "__main__":
    main()

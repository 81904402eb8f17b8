"""What videos and indexes in object storage cost: ``python -m benchmarks.objects [FOLDER]``.

The videos of a folder, by itself the sample clips, are put into moto's server on this machine,
behind a proxy that waits 30 ms before each answer, as a storage in the same region does. Printed
are bytes read of the videos against their size, for indexing with the bundled model and for three
pictures of a long film; then the opening of the index and a search, first and second time, with and
without a local copy.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import av
import numpy as np
from tests.buckets import Bucket, storage

import sureshot
from benchmarks import data
from sureshot.media.discover import VIDEO_SUFFIXES
from sureshot.media.video import frames_at
from sureshot.s3 import object_path

DELAY = 0.03  # seconds before each answer
QUERIES = ("people riding bicycles", "a cartoon rabbit", "a man in a car")
DB = "s3://films/index"


def main() -> None:
    """Put, index, look, search, print."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else data.folder("clips") / "videos"
    files = [p for p in folder.rglob("*") if p.suffix.lower() in VIDEO_SUFFIXES]
    size = sum(path.stat().st_size for path in files)
    print("load of this machine", *(f"{load:.1f}" for load in os.getloadavg()))
    with tempfile.TemporaryDirectory() as place, storage() as bucket:
        os.environ["XDG_CACHE_HOME"] = place
        for path in files:
            bucket.put(f"v/{path.name}", path)
        bucket.delay = DELAY
        _begin(bucket)
        done = sureshot.index("s3://films/v", db=str(Path(place, "local")))
        print(f"{done.indexed} videos, {size / 1e6:.1f} MB, {done.windows} windows")
        _end(bucket, "indexed", done.elapsed)
        long = Path(place, "long.mp4")
        _long_film(long)
        bucket.put("long/long.mp4", long)
        _begin(bucket)
        began = time.monotonic()
        film = object_path("s3://films/long/long.mp4")
        assert film is not None
        for at in (10.0, 30.0, 50.0):
            frames_at(film, [at], side=90)
        name = f"three pictures of a film of {long.stat().st_size / 1e6:.0f} MB"
        _end(bucket, name, time.monotonic() - began)
        _begin(bucket)
        done = sureshot.index("s3://films/v", db=DB)
        _end(bucket, "indexed into the storage", done.elapsed)
        for copies in ("0", "4096", "4096"):
            os.environ["SURESHOT_INDEX_CACHE"] = copies
            _search(bucket, f"limit {copies} MB")


def _long_film(path: Path) -> None:
    """A minute of noise, each frame a key frame."""
    lot = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=10, width=640, height=352, pix_fmt="yuvj420p")
        for _ in range(600):
            small = lot.integers(0, 255, (88, 160, 3), np.uint8)
            picture = np.repeat(np.repeat(small, 4, 0), 4, 1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture)))
        container.mux(stream.encode())


def _search(bucket: Bucket, name: str) -> None:
    _begin(bucket)
    began = time.monotonic()
    searcher = sureshot.open_index(DB)
    _end(bucket, f"{name}: opened", time.monotonic() - began)
    for query in QUERIES:
        _begin(bucket)
        began = time.monotonic()
        searcher.search(query)
        _end(bucket, f"{name}: {query}", time.monotonic() - began)


def _begin(bucket: Bucket) -> None:
    bucket.asked.clear()
    bucket.sent = 0


def _end(bucket: Bucket, name: str, seconds: float) -> None:
    requests, sent = len(bucket.asked), bucket.sent / 1e6
    print(f"{name:48} {seconds:7.2f} s {requests:5} requests {sent:8.2f} MB")


if __name__ == "__main__":
    main()

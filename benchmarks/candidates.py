"""How fast and how well an index finds candidates, with and without the index of its vectors.

Vectors are drawn around random centres, 50 windows a centre. Queries are drawn around the same
centres: near ones like another picture of the same thing, far ones like a sentence, whose best
match has a cosine of about 0.25. The truth is the exact top 10; recall is the share of it among the
200 candidates that a search scores exactly. "first" opens the index anew each time, as a command
does; "again" keeps it open, as a server does.

    python -m benchmarks.candidates [--windows 100000]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from jaxtyping import Float

from sureshot.store import vector_search
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow, IndexSettings, VideoRecord

_PER_VIDEO = 5000
_CANDIDATES = 200
_TOP = 10


def main() -> None:
    """Fill an index, measure, index its vectors, measure again."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--place", help="parent of the temporary index")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    centres = rng.standard_normal((max(args.windows // 50, 1), args.dim)).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=args.place) as folder:
        vector_search.SCANNED = 10**9  # not by itself, while it fills
        store = Store.create(folder, IndexSettings(), "benchmark", args.dim)
        vectors = _fill(store, centres, args.windows, rng)
        vector_search.SCANNED = 0
        queries = {
            kind: _around(centres, noise, args.queries, rng)
            for kind, noise in (("near", 1.0), ("far", 4.0))
        }
        truth = {kind: _exact(vectors, found) for kind, found in queries.items()}
        print(f"{args.windows} windows, {args.dim} numbers, seed {args.seed}")
        print("                 queries  recall  first ms  again ms")
        _measure("one by one", folder, queries, truth)
        before, began = store.bytes_on_disk(), time.perf_counter()
        store.index_vectors()
        took, size = time.perf_counter() - began, store.bytes_on_disk() - before
        _measure("vectors indexed", folder, queries, truth)
        print(f"built in {took:.1f} s, {size / args.windows:.0f} bytes a window")


def _fill(
    store: Store, centres: Float[np.ndarray, "centres dim"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "windows dim"]:
    parts = []
    for first in range(0, count, _PER_VIDEO):
        vectors = _around(centres, 1.0, min(_PER_VIDEO, count - first), rng)
        windows = [
            EncodedWindow(
                float(first + row),
                float(first + row + 1),
                np.zeros(1),
                np.zeros((1, 256), np.uint8),
                v[None],
            )
            for row, v in enumerate(vectors)
        ]
        store.write(VideoRecord(Path(f"/{first}.mp4"), "file", 1, 1), windows)
        parts.append(vectors.astype(np.float16))
    store.compact()
    return np.concatenate(parts)


def _around(
    centres: Float[np.ndarray, "centres dim"], noise: float, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count dim"]:
    chosen = centres[rng.integers(0, len(centres), count)]
    drawn = chosen + noise * rng.standard_normal(chosen.shape).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _exact(
    vectors: Float[np.ndarray, "windows dim"], queries: Float[np.ndarray, "queries dim"]
) -> list[set[float]]:
    """The windows that fit each query best, by their start."""
    blocks = [
        queries @ vectors[first : first + 50_000].astype(np.float32).T
        for first in range(0, len(vectors), 50_000)
    ]
    best = np.argsort(-np.concatenate(blocks, axis=1), axis=1)[:, :_TOP]
    return [set(row) for row in best.astype(float).tolist()]


def _measure(
    name: str,
    folder: str,
    queries: dict[str, Float[np.ndarray, "queries dim"]],
    truth: dict[str, list[set[float]]],
) -> None:
    again = Store.open(folder)
    for kind, vectors in queries.items():
        times: dict[bool, list[float]] = {True: [], False: []}
        recall = []
        again.nearest(vectors[0], _CANDIDATES)
        for vector, best in zip(vectors, truth[kind], strict=True):
            for opened, store in ((False, Store.open(folder)), (True, again)):
                began = time.perf_counter()
                found = store.nearest(vector, _CANDIDATES)
                times[opened].append(1000 * (time.perf_counter() - began))
            recall.append(len(best & set(found.start.tolist())) / _TOP)
        medians = [statistics.median(times[opened]) for opened in (False, True)]
        mean = statistics.mean(recall)
        print(f"{name:15}  {kind:7}  {mean:6.3f}  {medians[0]:8.0f}  {medians[1]:8.0f}")


if __name__ == "__main__":
    main()

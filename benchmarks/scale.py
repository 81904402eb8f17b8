"""What an index of so many windows takes: bytes, time to build, time and memory to search.

    python -m benchmarks.scale real DIR [--videos 2000]      # real videos, indexed
    python -m benchmarks.scale make DIR --windows 1000000    # an index made from them
    python -m benchmarks.scale finish DIR --windows 1000000  # its vectors indexed
    python -m benchmarks.scale truth DIR --windows 1000000   # all windows scored, for the recall
    python -m benchmarks.scale search DIR --windows 1000000  # warm and cold, memory, recall

``real`` indexes MSR-VTT videos (the splits test, val and train in this order) and the 26 clips.
``make`` makes every window from two of theirs: the frames of the first, as a scene of twelve,
moved by up to a half towards the second, with a little noise of their own; the signatures by which
copies are known are moved, mirrored and mixed. So vectors stay where those of real windows are, and
no two windows are copies. Of the twelve 1 to 12 are pictures of their own, any number as often;
the others equal the one before, as in films. The rows are those that `Store.write` writes (same
functions); they are written 65,625 at a time, as a run over many machines does, not a video at a
time.

``truth`` scores every window with the sentence of each MSR-VTT test video (1k-A, 476) as a search
does, from the stored frames, hub correction included. ``search`` asks the same sentences: its
recall is the share of the ten best windows that are among those that the search scored exactly.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# As `sureshot search` does; read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import lance
import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, UInt8

from benchmarks.data import folder, jsfusion, split
from sureshot.library.ranking import CANDIDATES
from sureshot.library.search import Searcher, open_index
from sureshot.models.encoders import VideoFeatures
from sureshot.store.index import Store
from sureshot.store.maintenance import index_vectors
from sureshot.store.rows import (
    EncodedWindow,
    StoredWindows,
    VideoRecord,
    sum_of_checks,
    unpack,
    video_rows,
    window_rows,
)
from sureshot.store.tables import Tables

FRAMES = 12
PER_VIDEO = 125  # windows of a video, about an hour of it
AT_ONCE = 525  # videos written together, in a file that is never joined with another
_GREY = 256  # values of a signature that are no colour
NOISE = 0.1  # length of the noise on a frame, of the length of a frame
TOP = 10


def main() -> None:
    """Do one step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("real", "make", "finish", "truth", "search"))
    parser.add_argument("place", type=Path)
    parser.add_argument("--windows", type=int, default=10_000)
    parser.add_argument("--videos", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=100, help="of the warm searches")
    parser.add_argument("--part", default="1/1", help="of several processes, as 1/2")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after; go on next time")
    options = parser.parse_args()
    index = options.place / str(options.windows)
    match options.step:
        case "real":
            real(options.place, options.videos)
        case "make":
            first, parts = (int(number) for number in options.part.split("/"))
            part = (first - 1, parts)
            make(options.place, options.windows, options.seed, part=part, seconds=options.seconds)
        case "finish":
            finish(index)
        case "truth":
            truth(index)
        case _:
            search(index, options.queries)


def real(place: Path, count: int) -> None:
    """Index real videos."""
    videos = place / "videos"
    videos.mkdir(parents=True, exist_ok=True)
    for name in [n for part in ("test", "val", "train") for n in split(part)][:count]:
        link = videos / f"{name}.mp4"
        link.unlink(missing_ok=True)
        link.symlink_to(folder("msrvtt") / "videos" / link.name)
    sources = [str(videos), str(folder("clips") / "videos")]
    command = [sys.executable, "-m", "sureshot", "index", *sources, "--db", str(place / "real")]
    subprocess.run(command, check=True)


# --- made-up windows ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Scenes:
    """Real windows as scenes of so many frames."""

    frames: Float[np.ndarray, "scenes frames dim"]
    signatures: UInt8[np.ndarray, "scenes frames 288"]
    lengths: Float[np.ndarray, " scenes"]
    noise: Float[np.ndarray, "some dim"]


def scenes(windows: StoredWindows) -> Scenes:
    """Windows with their frames spread over twelve, those between two a mean of both."""
    frames, signatures = [], []
    for row, mask in enumerate(windows.mask):
        there = int(mask.sum())
        at = np.linspace(0, there - 1, FRAMES)
        low, part = np.floor(at).astype(int), (at % 1)[:, None].astype(np.float32)
        high = np.minimum(low + 1, there - 1)
        frames.append(windows.frames[row, low] * (1 - part) + windows.frames[row, high] * part)
        signatures.append(windows.signatures[row, np.round(at).astype(int)])
    every = np.stack(frames)
    noise = np.random.default_rng(0).standard_normal((1 << 14, every.shape[-1]), np.float32)
    noise *= NOISE * np.linalg.norm(every, axis=-1).mean() / np.sqrt(every.shape[-1])
    return Scenes(
        frames=every,
        signatures=np.stack(signatures),
        lengths=np.clip(windows.end - windows.start, 2, 30),
        noise=noise,
    )


def made_up(
    known: Scenes, count: int, draw: np.random.Generator
) -> tuple[Float[np.ndarray, "count frames dim"], UInt8[np.ndarray, "count frames 288"]]:
    """Frames and signatures of windows between two real ones each."""
    one, two = draw.integers(0, len(known.frames), (2, count))
    share = draw.uniform(0.05, 0.5, (count, 1)).astype(np.float32)
    pictures = draw.integers(1, FRAMES + 1, count)
    firsts = np.cumsum(pictures) - pictures
    # Of each picture: its window, and which frame of the real ones it is made from.
    row = np.repeat(np.arange(count), pictures)
    at = (np.arange(len(row)) - firsts[row]) * FRAMES // pictures[row]
    frames = known.frames[one[row], at]
    means = known.frames.mean(1)
    moved = frames + (share * (means[two] - means[one]))[row]
    moved += known.noise[draw.integers(0, len(known.noise), len(row))]
    moved *= (np.linalg.norm(frames, axis=1) / np.linalg.norm(moved, axis=1))[:, None]
    # Signatures of their own: moved round, mirrored, and mixed with others.
    turned = known.signatures[one[row], at]
    places = _TURNS[draw.integers(0, len(_TURNS), count)][row]
    turned[:, :_GREY] = np.take_along_axis(turned, places, 1)
    parts = (256 * share[row]).astype(np.uint16)
    mixed = (turned * (256 - parts) + known.signatures[two[row], at] * parts) >> 8
    shown = firsts[:, None] + np.arange(FRAMES) * pictures[:, None] // FRAMES
    return moved[shown], mixed.astype(np.uint8)[shown]


def _turns() -> Int[np.ndarray, "turns 256"]:
    """Where each grey value of a signature comes from: moved round in each way, mirrored or not."""
    picture = np.arange(_GREY).reshape(16, 16)
    both = (picture, picture[:, ::-1])
    ways = [np.roll(one, (y, x), (0, 1)) for one in both for y in range(16) for x in range(16)]
    return np.stack(ways).reshape(-1, _GREY)


_TURNS = _turns()


def path_of(number: int) -> Path:
    """Where a made-up video would lie."""
    return Path(f"/videos/{number // 1000:04}/{number:07}.mp4")


def video(known: Scenes, number: int, seed: int) -> tuple[VideoRecord, list[EncodedWindow]]:
    """A made-up video."""
    draw = np.random.default_rng((seed, number))
    frames, signatures = made_up(known, PER_VIDEO, draw)
    ends = np.cumsum(draw.choice(known.lengths, PER_VIDEO) * draw.uniform(0.8, 1.2, PER_VIDEO))
    starts = np.concatenate([[0.0], ends[:-1]])
    windows = [
        EncodedWindow(
            start=start,
            end=end,
            times=np.linspace(start, end, FRAMES, endpoint=False),
            signatures=signatures[at],
            frames=frames[at],
        )
        for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    ]
    return VideoRecord(path_of(number), "file", 1 << 20, 1, duration=windows[-1].end), windows


def make(place: Path, count: int, seed: int, *, part: tuple[int, int], seconds: float) -> bool:
    """Write windows that an index does not have yet, for so long; whether all are there then."""
    began = time.perf_counter()
    origin = Store.open(place / "real")
    cache = place / "real.npz"
    if not cache.exists():
        known = scenes(origin.finder.windows("true", order="key"))
        np.savez(cache, **{name: getattr(known, name) for name in Scenes.__slots__})
    with np.load(cache) as kept:
        known = Scenes(**{name: kept[name] for name in Scenes.__slots__})
    store = Store.create(place / str(count), origin.settings, origin.fingerprint, origin.dim)
    there = {record.path for record in store.videos()}
    numbers = range(part[0], count // PER_VIDEO, part[1])
    left = [number for number in numbers if path_of(number) not in there]
    print(f"{len(known.frames)} real windows, {store.count()} of {count} made", flush=True)
    for first in range(0, len(left), AT_ONCE):
        if time.perf_counter() - began > seconds:
            break
        write(store, (video(known, number, seed) for number in left[first : first + AT_ONCE]))
    print(f"{store.count()} windows after {time.perf_counter() - began:.0f} s", flush=True)
    return store.count() == count // PER_VIDEO * PER_VIDEO


def finish(index: Path) -> None:
    """Join small files, index the vectors."""
    store = Store.open(index)
    began, before = time.perf_counter(), store.bytes_on_disk()
    index_vectors(Tables(store.location))
    took, size = time.perf_counter() - began, store.bytes_on_disk()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"vectors indexed in {took:.0f} s, {time.process_time():.0f} s of a processor")
    print(f"{(size - before) / store.count():.0f} bytes a window, peak {peak:.0f} MB", flush=True)
    began = time.perf_counter()
    store.compact()
    print(f"joined in {time.perf_counter() - began:.0f} s")
    print(f"{store.bytes_on_disk() / 1e9:.3f} GB for {store.count()} windows")


def write(store: Store, batch: Iterable[tuple[VideoRecord, list[EncodedWindow]]]) -> None:
    """Some videos in two commits, of the rows that the store writes."""
    header = Tables(store.location).header()
    parts, known = [], []
    for record, windows in batch:
        rows = window_rows(record, windows, header)
        parts.append(rows)
        known.append(replace(record, windows=len(rows), check_windows=sum_of_checks(rows)))
    lance.write_dataset(pa.concat_tables(parts), f"{store.location}/windows.lance", mode="append")
    rows = video_rows(known, header)
    lance.write_dataset(rows, f"{store.location}/videos.lance", mode="append")


# --- measurements ---------------------------------------------------------------------------------


def truth(index: Path) -> None:
    """Score every window with every sentence, and keep the best of each."""
    searcher = open_index(index)
    how, texts = searcher._comparing, sentences()
    codes = how.texts(searcher.encoder.encode_texts(texts))
    best = np.full((len(texts), TOP), -np.inf, np.float32)
    rows = np.zeros((len(texts), TOP), np.int64)
    keys: list[str] = []
    table = lance.dataset(f"{index}/windows.lance")
    scan = table.scanner(columns=["packed"], batch_size=2048, batch_readahead=2)
    for batch in scan.to_batches():
        count = len(batch)
        windows = [unpack(value) for value in batch["packed"].to_pylist()]
        frames = np.stack([window.frames for _, _, window in windows]).astype(np.float32)
        coded = how.videos(VideoFeatures.of_frames(frames, np.ones((count, FRAMES), bool)))
        scores = np.concatenate([best, how.similarity(codes, coded)], 1)
        here = np.broadcast_to(len(keys) + np.arange(count), (len(texts), count))
        top = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
        best = np.take_along_axis(scores, top, 1)
        rows = np.take_along_axis(np.concatenate([rows, here], 1), top, 1)
        keys += [key for key, _, _ in windows]
    np.savez(index.parent / f"truth-{index.name}.npz", best=best, keys=np.array(keys)[rows])


def sentences() -> list[str]:
    """The sentence of each test video at hand."""
    asked = jsfusion()
    return [asked[name] for name in split("test") if name in asked]


def search(index: Path, rounds: int) -> None:
    """Cold in processes of their own, then warm in this one; recall where the truth is known."""
    texts = sentences()
    size = Store.open(index)
    print(f"{size.count()} windows, {size.bytes_on_disk() / 1e9:.3f} GB")
    for name, evict in (("files not in memory", True), ("files in memory", False)):
        seconds = []
        for text in texts[:3]:
            if evict:
                forget(index)
            began = time.perf_counter()
            command = [sys.executable, "-m", "sureshot", "search", text, "--db", str(index)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - began)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        shown = ", ".join(f"{second:.2f}" for second in seconds)
        print(f"cold, {name}: {shown} s, peak {peak:.0f} MB", flush=True)
    searcher = open_index(index)
    warm(searcher, texts[20:], rounds)
    many(searcher, texts)
    recall(searcher, texts, index.parent / f"truth-{index.name}.npz")
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def forget(index: Path) -> None:
    """Drop the files of an index from the memory of the system."""
    for path in index.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(searcher: Searcher, texts: Sequence[str], rounds: int) -> None:
    """Each sentence once, in an open index; before it a few that do not count."""
    for text in texts[-10:]:
        searcher.search(text)
    seconds, busy = [], time.process_time()
    for text in texts[:rounds]:
        began = time.perf_counter()
        searcher.search(text)
        seconds.append(1000 * (time.perf_counter() - began))
    busy = 1000 * (time.process_time() - busy) / len(seconds)
    slow = statistics.quantiles(seconds, n=20)[-1]
    print(
        f"warm, with percentages: median {statistics.median(seconds):.0f} ms, "
        f"19 of 20 below {slow:.0f}; {busy:.0f} ms of a processor ({len(seconds)} queries)",
        flush=True,
    )


def many(searcher: Searcher, texts: Sequence[str]) -> None:
    """All sentences at once."""
    began = time.perf_counter()
    count = sum(1 for _ in searcher.search_many(texts))
    took = 1000 * (time.perf_counter() - began) / count
    print(f"{count} at once: {took:.0f} ms each", flush=True)


def recall(searcher: Searcher, texts: Sequence[str], known: Path) -> None:
    """Share of the best windows that are among the candidates of a search."""
    if not known.exists():
        return
    with np.load(known) as kept:
        keys = kept["keys"]
    shares = []
    codes = searcher._comparing.texts(searcher.encoder.encode_texts(texts))
    for vector, best in zip(searcher._comparing.text_vectors(codes), keys, strict=True):
        near = searcher.store.finder.nearest(
            vector, CANDIDATES, hub_corrected=searcher._comparing.hub_corrected
        )
        shares.append(len(set(best.tolist()) & set(near.keys)) / TOP)
    whole = np.mean(np.array(shares) == 1)
    print(f"recall@{TOP} {np.mean(shares):.4f} over {len(shares)} sentences, whole for {whole:.3f}")


if __name__ == "__main__":
    main()

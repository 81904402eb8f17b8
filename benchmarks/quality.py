"""Recall of the command line on real videos: index a folder, ask, rank the files.

    python -m benchmarks.quality clips          # 26 clips from elsewhere, one sentence each
    python -m benchmarks.quality msrvtt         # the 476 test videos at hand, one sentence each
    python -m benchmarks.quality unshared       # those 348 that share no upload with training
    python -m benchmarks.quality keywords       # the 476 asked for by one to three words
    python -m benchmarks.quality rooms          # photos of rooms, never trained on, as videos
    python -m benchmarks.quality msrvtt --model DIR

``msrvtt`` and ``unshared`` are "MSR-VTT 1k-A frame subset" of 476 and 348: gallery, frames and
encoder are not those of the published protocol, and their numbers do not stand beside published
ones. A keyword is right where one of the twenty captions of a video holds all its words. Nothing
that looks at other queries is used. Copies are not folded, so that every file can be ranked, and
each file is listed once.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from benchmarks import data
from benchmarks.bundled.items import rooms as held_out_rooms
from sureshot.research.queries import by_words, keywords

_KEYWORDS = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """Videos, queries, and which videos are right answers to which query."""

    videos: list[Path]
    queries: list[str]
    relevant: Bool[np.ndarray, "queries videos"]


def main() -> None:
    """Index, search, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=sorted(ASKED))
    parser.add_argument("--model", default="bundled")
    options = parser.parse_args()
    for title, asked in ASKED[options.data]().items():
        ranked, seconds = answered(asked, options.model)
        report(title, asked, ranked, seconds)


def answered(asked: Asked, model: str) -> tuple[list[list[int]], float]:
    """Columns of the videos in the order of each answer, and the seconds that indexing took."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        folder, index = work / "videos", str(work / "index")
        folder.mkdir()
        names = [_placed(folder, path) for path in asked.videos]
        began = time.monotonic()
        sureshot("index", str(folder), "--db", index, "--model", model)
        seconds = time.monotonic() - began
        (work / "queries.txt").write_text("\n".join(asked.queries), "utf-8")
        listed = ["--from-file", str(work / "queries.txt"), "-k", "100"]
        fair = ["--per-video", "1", "--no-merge-copies", "--json"]
        lines = sureshot("search", *listed, *fair, "--db", index).splitlines()
    column = {name: number for number, name in enumerate(names)}
    hits = [[Path(hit["path"]).name for hit in json.loads(line)["hits"]] for line in lines]
    return [[column[name] for name in row] for row in hits], seconds


def _placed(folder: Path, path: Path) -> str:
    """Link a file into a folder; a photo becomes a video of two frames, the fewest there can be."""
    if path.suffix != ".webp":
        (folder / path.name).symlink_to(path)
        return path.name
    (folder / path.stem).mkdir()
    for number in (1, 2):
        (folder / path.stem / f"{number:04}.webp").symlink_to(path)
    return path.stem


def clips() -> dict[str, Asked]:
    """The 26 clips with their sentences."""
    folder = data.folder("clips") / "videos"
    return {"clips": _own([(folder / name, [text]) for name, text in data.clip_captions().items()])}


def msrvtt(part: str = "test") -> dict[str, Asked]:
    """The 476 test videos, or a part of them, with their JSFusion sentences."""
    folder, sentences = data.folder("msrvtt") / "videos", data.jsfusion()
    return {part: _own([(folder / f"{i}.mp4", [sentences[i]]) for i in data.split(part)])}


def words() -> dict[str, Asked]:
    """The 476 test videos, asked for by keywords."""
    names, captions = data.split("test"), data.captions()
    folder = data.folder("msrvtt") / "videos"
    texts = [text for name in names for text in captions[name]]
    owner = np.repeat(np.arange(len(names)), [len(captions[name]) for name in names])
    queries = keywords(texts, _KEYWORDS, np.random.default_rng(0))
    relevant = by_words(queries, texts, owner, len(names))
    return {"keywords": Asked([folder / f"{name}.mp4" for name in names], queries, relevant)}


def rooms() -> dict[str, Asked]:
    """Photos of rooms that no model was trained on, all their sentences."""
    return {
        family: _own([(item.path, list(item.captions)) for item in items])
        for family, items in held_out_rooms().items()
    }


def _own(listed: list[tuple[Path, list[str]]]) -> Asked:
    """Queries of which each is about the video it was written for."""
    owner = np.repeat(np.arange(len(listed)), [len(texts) for _, texts in listed])
    return Asked(
        videos=[path for path, _ in listed],
        queries=[text for _, texts in listed for text in texts],
        relevant=owner[:, None] == np.arange(len(listed)),
    )


ASKED: dict[str, Callable[[], dict[str, Asked]]] = {
    "clips": clips,
    "keywords": words,
    "msrvtt": msrvtt,
    "rooms": rooms,
    "unshared": lambda: msrvtt("test_unshared"),
}


def report(title: str, asked: Asked, ranked: list[list[int]], seconds: float) -> None:
    """Recall with a bootstrap interval over queries."""
    right = [asked.relevant[row, columns] for row, columns in enumerate(ranked)]
    several = asked.relevant.sum(1).max() > 1
    ranks = ranks_of(asked, ranked)
    print(f"{title}: {len(asked.queries)} queries, {len(asked.videos)} videos")
    for k in (1, 5, 10):
        shown = "a right one in the first" if several else "R@"
        print(f"  {shown} {k:<2} {interval(ranks <= k)}")
    if several:
        five = np.array([row[:5].mean() for row in right])
        chance = 100 * asked.relevant.mean()
        print(f"  right of the first 5 {interval(five)}; of all videos {chance:.1f} %")
    print(f"  median rank {np.median(ranks):.0f}; indexed in {seconds:.0f} s")


def ranks_of(asked: Asked, ranked: list[list[int]]) -> Int[np.ndarray, " queries"]:
    """The place of the first right video of each query; behind all where none was listed."""
    right = [asked.relevant[row, columns] for row, columns in enumerate(ranked)]
    return np.array([np.argmax(row) + 1 if row.any() else len(asked.videos) for row in right])


def interval(values: Float[np.ndarray, " queries"] | Bool[np.ndarray, " queries"]) -> str:
    """Mean in percent, and where it would lie with other queries in 95 of 100 cases."""
    draw = np.random.default_rng(0)
    resampled = values[draw.integers(0, len(values), (2000, len(values)))].mean(1)
    low, high = np.percentile(100 * resampled, [2.5, 97.5])
    return f"{100 * values.mean():5.1f} % ({low:.1f} to {high:.1f})"


def sureshot(*arguments: str) -> str:
    """Run the command line; what it prints."""
    command = [sys.executable, "-m", "sureshot", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if __name__ == "__main__":
    main()

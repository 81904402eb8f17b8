"""How true the time ranges of a search are, on films joined from captioned videos.

    python -m benchmarks.ranges clips [--fade 1] [--least 12] [--layouts 30:0 10:0 30:10]

A layout is the longest window and the seconds that are looked at at a time (0: windows end at cuts
and by length alone), as `IndexSettings` has them. One caption of each video is asked in its film. A
hit is a moment whose best frame lies where the video does; the errors are those of the first hit
among three moments.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.films import LEAST, Interval, captioned, join_several
from sureshot.library.indexing import ingest
from sureshot.library.results import Answer
from sureshot.library.search import Searcher
from sureshot.models.encoders.base import Encoder
from sureshot.models.load import load_searchable
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings

MOMENTS = 3  # of a film that are looked at


@dataclass(slots=True)
class Found:
    """What became of the queries of one layout: a value a query, errors of those that were hit."""

    ranks: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    overlaps: list[float] = field(default_factory=list)

    def add(self, answer: Answer, there: Interval) -> None:
        """Note where an answer has the moment that was meant."""
        for hit in answer:
            if there.start <= hit.peak <= there.end:
                shared = min(hit.end, there.end) - max(hit.start, there.start)
                both = max(hit.end, there.end) - min(hit.start, there.start)
                self.ranks.append(hit.rank)
                self.starts.append(abs(hit.start - there.start))
                self.ends.append(abs(hit.end - there.end))
                self.overlaps.append(shared / both)
                return
        self.ranks.append(MOMENTS + 1)

    def __str__(self) -> str:
        ranks = np.array(self.ranks)
        medians = [float(np.median(part)) for part in (self.starts, self.ends, self.overlaps)]
        return (
            f"hit@1 {(ranks == 1).sum()} hit@3 {(ranks <= MOMENTS).sum()} of {len(ranks)}; start "
            f"{medians[0]:.2f} s, end {medians[1]:.2f} s, IoU {medians[2]:.2f} (medians), "
            f"mean IoU {np.mean(self.overlaps):.2f}"
        )


def measure(
    films: Mapping[Path, Sequence[Interval]],
    texts: Mapping[Path, str],
    settings: IndexSettings,
    encoder: Encoder,
) -> None:
    """Index each film by itself, ask for each of its videos, print."""
    found, windows, size, seconds, took = Found(), 0, 0, 0.0, 0.0
    for film, intervals in films.items():
        with tempfile.TemporaryDirectory() as place:
            store = Store.create(place, settings, encoder.fingerprint, encoder.dim)
            told = ingest(store, encoder, [film])
            windows += told.windows
            seconds += told.seconds
            took += told.elapsed
            size += store.bytes_on_disk()
            searcher = Searcher(store, encoder)
            for there in intervals:
                found.add(searcher.search(texts[there.path], k=MOMENTS), there)
    hours = seconds / 3600
    print(f"window {settings.window:g} decode window {settings.decode_window:g}: {found}")
    print(
        f"    {windows / hours:.0f} windows and {size / hours / 1e6:.0f} MB an hour, indexed "
        f"{seconds / took:.1f} times as fast as it plays",
        flush=True,
    )


def main() -> None:
    """Join films, index them in each layout, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["clips", "train", "val", "test"])
    parser.add_argument("--fade", type=float, default=1.0)
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--videos", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--layouts", nargs="+", default=["30:0", "10:0", "30:10"])
    options = parser.parse_args()
    known = captioned(options.data)
    draw = np.random.default_rng(options.seed)
    paths = [sorted(known)[row] for row in draw.permutation(len(known))[: options.videos]]
    texts = {path: known[path][draw.integers(len(known[path]))] for path in paths}
    encoder = load_searchable(options.model, None)
    encoder.encode_frames(encoder.prepare(np.zeros((1, 64, 64, 3), np.uint8)))
    with tempfile.TemporaryDirectory() as place:
        began = time.perf_counter()
        films = join_several(
            paths,
            Path(place),
            count=options.count,
            fade=options.fade,
            seed=options.seed,
            least=options.least,
        )
        print(f"{len(films)} films joined in {time.perf_counter() - began:.0f} s", flush=True)
        for layout in options.layouts:
            window, look = map(float, layout.split(":"))
            measure(films, texts, IndexSettings(window=window, decode_window=look), encoder)


if __name__ == "__main__":
    main()

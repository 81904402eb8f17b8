"""Percentages of the moments of films: what is said of each place, and how often it is right.

    python -m benchmarks.moments [--data val] [--least 4] [--fade 1] [--videos 60] [--films 1]
                                 [--takes 1] [--seed 0] [--without NAME]

Films are joined from MSR-VTT validation videos, or from the 26 clips, each on screen for ``least``
seconds at least (with ``--takes 2`` in two pieces, as in `benchmarks.films`), and captions of each
video are asked of all films together. Every video asked for is there, and searches are told so. A
moment is right where its best frame lies in a video one of whose captions holds all content words
of the query (`sureshot.research.queries`), or in the one that the query was written for. A scene
counts once: a moment of a video that a better one shows is passed over. ``--without MSR-VTT`` first
makes a card of the other data sets alone; without it the card that ships is measured.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from benchmarks import trust
from benchmarks.films import LEAST, Interval, captioned, join_several
from sureshot.files import CARD
from sureshot.library.indexing import Run
from sureshot.library.results import CONFIDENT, Hit
from sureshot.library.search import Searcher
from sureshot.metrics.confidence import ece, ece_floor
from sureshot.models.load import load, load_searchable
from sureshot.research.queries import by_words
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings
from sureshot.trust.card import save_card

PLACES = 6
_EACH = 5  # captions of a video


def main() -> None:
    """Join, index, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=["clips", "val"], default="val")
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--fade", type=float, default=1.0)
    parser.add_argument("--videos", type=int, default=60)
    parser.add_argument("--films", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--takes", type=int, default=1)
    parser.add_argument("--without", default="")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    known = captioned(options.data)
    draw = np.random.default_rng(options.seed)
    paths = [sorted(known)[row] for row in draw.permutation(len(known))[: options.videos]]
    encoder = load_searchable("bundled", None)
    with tempfile.TemporaryDirectory() as place:
        films = join_several(
            paths,
            Path(place) / "films",
            count=options.films,
            fade=options.fade,
            seed=options.seed,
            least=options.least,
            takes=options.takes,
        )
        settings = IndexSettings()
        index = Path(place) / "index"
        store = Store.create(str(index), settings, encoder.fingerprint, encoder.dim)
        Run(store, encoder, list(films)).ingest()
        if options.without:
            scorer = load("bundled")
            parts = trust.worlds(scorer, options.cache)
            rest = [one for name, one in parts.items() if not name.startswith(options.without)]
            bank = None if scorer.bank is None else scorer.bank.digest
            card = trust.card_of(rest, model=scorer.fingerprint, bank=bank)
            save_card(card, index / CARD)
        said, right, overlap = asked(Searcher(store, encoder), films, known, draw)
    report(said, right, overlap)


def asked(
    searcher: Searcher,
    films: dict[Path, list[Interval]],
    known: dict[Path, list[str]],
    draw: np.random.Generator,
) -> tuple[Float[np.ndarray, "queries places"], Bool[np.ndarray, "queries places"], list[float]]:
    """What is said of the scenes at each place, NaN after the last, and what is right.

    The third is, of the first moments that show the very video, their time in common with it
    over the time that either lasts.
    """
    shown = list(dict.fromkeys(one.path for intervals in films.values() for one in intervals))
    captions = [text for path in shown for text in known[path]]
    owner = np.repeat(np.arange(len(shown)), [len(known[path]) for path in shown])
    chosen = [
        (int(row), number)
        for number in range(len(shown))
        for row in draw.permutation(np.flatnonzero(owner == number))[:_EACH]
    ]
    texts = [captions[row] for row, _ in chosen]
    relevant = by_words(texts, captions, owner, len(shown))
    relevant[np.arange(len(chosen)), [number for _, number in chosen]] = True
    number = {path: place for place, path in enumerate(shown)}
    said = np.full((len(texts), PLACES), np.nan)
    right = np.zeros((len(texts), PLACES), bool)
    overlap = []
    for row, text in enumerate(texts):
        seen: set[Path] = set()
        for hit in searcher.search(text, limit=PLACES, per_video=PLACES, present=True):
            there = _shown_at(hit, films[hit.path])
            if not seen and number[there.path] == chosen[row][1]:
                both = min(hit.end, there.end) - max(hit.start, there.start)
                either = max(hit.end, there.end) - min(hit.start, there.start)
                overlap.append(max(0.0, both) / either)
            if there.path not in seen:
                said[row, len(seen)] = np.nan if hit.probability is None else hit.probability
                right[row, len(seen)] = relevant[row, number[there.path]]
                seen.add(there.path)
    return said, right, overlap


def _shown_at(hit: Hit, intervals: list[Interval]) -> Interval:
    """What a film shows where a hit is best."""
    return [interval for interval in intervals if interval.start <= hit.peak][-1]


def report(
    said: Float[np.ndarray, "queries places"],
    right: Bool[np.ndarray, "queries places"],
    overlap: list[float],
) -> None:
    """A line a place, and all of them together."""
    shared = f"; IoU of the first moment with its scene {np.mean(overlap):.3f}" if overlap else ""
    print(f"{len(said)} queries{shared}")
    for place in range(PLACES):
        there = np.isfinite(said[:, place])
        if not there.any():
            continue
        one, true = said[there, place], right[there, place]
        error = ece(one, true) - ece_floor(one, np.random.default_rng(0))
        print(
            f"  place {place + 1}: said {100 * one.mean():5.1f} %, right {100 * true.mean():5.1f} %"
            f", bias {100 * (one.mean() - true.mean()):+5.1f}, ECE over its floor {error:+.3f}"
        )
    sure = said[:, 0] >= CONFIDENT
    those = f", right of them {100 * right[sure, 0].mean():.1f} %" if sure.any() else ""
    print(f"  sure {100 * sure.mean():.1f} %{those}")


if __name__ == "__main__":
    main()

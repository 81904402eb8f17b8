"""Percentages of the moments of films: what is said of each place, and how often it is right.

    python -m benchmarks.moments [--fade 1] [--videos 60] [--films 1] [--seed 0] [--without NAME]

Films are joined from MSR-VTT validation videos, and captions of each video are asked of all films
together. Every video asked for is there. A moment is right where its best frame lies in a video
one of whose captions holds all content words of the query (`benchmarks.relevance`), or in the one
that the query was written for. ``--without MSR-VTT`` first makes a card of the other data sets
alone; without it the card that ships is measured.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from benchmarks import trust
from benchmarks.films import Interval, captioned, join_several
from benchmarks.relevance import by_words
from sureshot.files import CARD
from sureshot.library.confidence import CONFIDENT
from sureshot.library.indexing import ingest
from sureshot.library.results import Hit
from sureshot.library.search import Searcher
from sureshot.metrics.confidence import ece, ece_floor
from sureshot.models.load import load, load_searchable
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings
from sureshot.trust.card import save_card

PLACES = 6
_EACH = 5  # captions of a video


def main() -> None:
    """Join, index, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fade", type=float, default=1.0)
    parser.add_argument("--videos", type=int, default=60)
    parser.add_argument("--films", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    known = captioned("val")
    draw = np.random.default_rng(options.seed)
    paths = [sorted(known)[row] for row in draw.permutation(len(known))[: options.videos]]
    encoder = load_searchable("bundled", None)
    with tempfile.TemporaryDirectory() as place:
        films = join_several(
            paths, Path(place) / "films", count=options.films, fade=options.fade, seed=options.seed
        )
        settings = IndexSettings()
        index = Path(place) / "index"
        store = Store.create(str(index), settings, encoder.fingerprint, encoder.dim)
        ingest(store, encoder, list(films))
        if options.without:
            scorer = load("bundled")
            parts = trust.worlds(scorer, options.cache)
            rest = [one for name, one in parts.items() if not name.startswith(options.without)]
            bank = None if scorer.bank is None else scorer.bank.digest
            card = trust.card_of(rest, model=scorer.fingerprint, bank=bank)
            save_card(card, index / CARD)
        said, right = asked(Searcher(store, encoder), films, known, draw)
    report(said, right)


def asked(
    searcher: Searcher,
    films: dict[Path, list[Interval]],
    known: dict[Path, list[str]],
    draw: np.random.Generator,
) -> tuple[Float[np.ndarray, "queries places"], Bool[np.ndarray, "queries places"]]:
    """What is said of the moments at each place, NaN under "probably not", and what is right."""
    shown = [interval.path for intervals in films.values() for interval in intervals]
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
    for row, text in enumerate(texts):
        for place, hit in enumerate(
            searcher.search(text, limit=PLACES, per_video=PLACES, present=True)
        ):
            said[row, place] = np.nan if hit.probability is None else hit.probability
            right[row, place] = relevant[row, number[_video_at(hit, films[hit.path])]]
    return said, right


def _video_at(hit: Hit, intervals: list[Interval]) -> Path:
    """The video that a film shows where a hit is best."""
    last = [interval for interval in intervals if interval.start <= hit.peak]
    return last[-1].path


def report(
    said: Float[np.ndarray, "queries places"], right: Bool[np.ndarray, "queries places"]
) -> None:
    """A line a place, and all of them together."""
    told = np.isfinite(said[:, 0])
    print(f"{len(said)} queries; {100 * (1 - told.mean()):.1f} % told that it is probably not here")
    for place in range(PLACES):
        there = np.isfinite(said[:, place])
        one, true = said[there, place], right[there, place]
        error = ece(one, true) - ece_floor(one, np.random.default_rng(0))
        print(
            f"  place {place + 1}: said {100 * one.mean():5.1f} %, right {100 * true.mean():5.1f} %"
            f", bias {100 * (one.mean() - true.mean()):+5.1f}, ECE over its floor {error:+.3f}"
        )
    sure = told & (said[:, 0] >= CONFIDENT)
    print(f"  sure {100 * sure.mean():.1f} %, right of them {100 * right[sure, 0].mean():.1f} %")


if __name__ == "__main__":
    main()

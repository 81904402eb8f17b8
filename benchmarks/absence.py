"""How often a search is told that nothing here answers it, when that is so and when it is not.

    python -m benchmarks.absence [--cache DIR] [--to results/trust]

Libraries of several sizes are drawn from MSR-VTT test, Flickr8k test and the 26 clips, and asked
what `benchmarks.fit_card` asks of each of them. A query is absent where no video of the library has
a caption that holds all its content words. Of the same kind are queries that were written for
videos of the same data set that were not drawn; of another kind are those of the other data sets.
The card has seen neither the videos nor the queries of the data set that the library is from.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import fit_card
from benchmarks.relevance import by_words
from sureshot.models.load import Scorer, load
from sureshot.research.features import SplitFeatures
from sureshot.research.scores import known_of, ranking
from sureshot.trust import fit
from sureshot.trust.assess import ABSTAIN
from sureshot.trust.card import Calibration

SIZES = (26, 72, 200, 1000)  # videos of a library, as far as a data set has so many
_DRAWS = 5


@dataclass(slots=True)
class Told:
    """How many of some queries are told that they are probably not here."""

    told: int = 0
    queries: int = 0

    def add(self, said: np.ndarray) -> None:
        """Count more of them."""
        self.told += int(said.sum())
        self.queries += len(said)

    @property
    def share(self) -> float | None:
        """The share of them; None without any."""
        return self.told / self.queries if self.queries else None


def main() -> None:
    """Measure, print, and write with --to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    scorer = load("bundled")
    known, _ = fit_card.galleries(scorer, options.cache)
    worlds = fit_card.worlds(scorer, options.cache)
    seen = fit_card.clips(scorer, options.cache)
    whole = fit_card.World(scorer, seen, seen.split.texts(), seen.split.owner())
    worlds["clips"] = (whole, {"captions": seen})
    queries = {name: list(kinds.values()) for name, (_, kinds) in worlds.items()}
    found = {}
    for name, (world, _) in worlds.items():
        card = fit.fit_card([part for title, part in known.items() if not title.startswith(name)])
        others = [texts for other in queries if other != name for texts in queries[other]]
        for size in (min(size, len(world.videos.videos)) for size in SIZES):
            row = told(card, scorer, world, size, queries[name], others)
            found[f"{name}, {size} videos"] = row
        for title in [title for title in found if title.startswith(name)]:
            print(title, json.dumps(found[title]), flush=True)
    if options.to is not None:
        text = json.dumps({"model": "bundled", "told that it is not here": found}, indent=1)
        (options.to / "absence.json").write_text(text + "\n", "utf-8")


def told(
    card: Calibration,
    scorer: Scorer,
    world: fit_card.World,
    size: int,
    same: Sequence[SplitFeatures],
    others: Sequence[SplitFeatures],
) -> dict[str, float | None]:
    """Shares of queries that are told it, in libraries of a size drawn from a data set."""
    rng = np.random.default_rng(0)
    there, near, far = Told(), Told(), Told()
    for texts, home in [*((texts, True) for texts in same), *((texts, False) for texts in others)]:
        scores = ranking(scorer, world.videos, texts).astype(np.float64)
        fits = by_words(texts.split.texts(), world.captions, world.owner, scores.shape[1])
        if home:
            fits[np.arange(len(fits)), texts.split.owner()] = True
        about = known_of(scorer, texts)
        for _ in range(_DRAWS):
            drawn = rng.permutation(scores.shape[1])[:size]
            said = card.p_inside(scores[:, drawn], about) < ABSTAIN
            present = fits[:, drawn].any(1)
            (near if home else far).add(said[~present])
            if home:
                there.add(said[present])
    return {
        "though it is here": there.share,
        "absent, of the same kind": near.share,
        "absent, of another kind": far.share,
    }


if __name__ == "__main__":
    main()

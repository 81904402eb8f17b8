"""Ranks of rows whose systems find a given share of the videos first."""

from collections.abc import Mapping, Sequence

import numpy as np

from sureshot.research.reproduction.runs import RunRanks, TableRanks

_VIDEOS, _CAPTIONS = 60, 2


def one_run(share: float, seed: int) -> RunRanks:
    """A run that finds about this share first, whose doubt ``vacuity`` knows when it does not."""
    draw = np.random.default_rng((seed, int(1000 * share)))
    owner = np.repeat(np.arange(_VIDEOS), _CAPTIONS)
    hit = draw.random(len(owner)) < share
    first = np.where(hit, owner, (owner + 1) % _VIDEOS)
    noise = draw.normal(size=len(owner))
    doubts = {
        "vacuity": noise - 2 * hit,
        "softmax entropy": noise,
        "known ambiguity": np.linspace(0, 1, len(owner)),
    }
    return RunRanks(
        queries=[f"{video}#{n % _CAPTIONS}" for n, video in enumerate(owner)],
        owner=owner,
        texts=np.where(hit, 1.0, 7.0),
        videos=np.where(hit[::_CAPTIONS], 1.0, 7.0),
        first=first,
        right=hit,
        doubts=doubts,
    )


def ranked(
    rows: Mapping[str, float],
    *,
    seeds: int = 10,
    tests: Sequence[str] = ("",),
    away: float = 0.0,
) -> dict[str, TableRanks]:
    """Ranks of a table by test set.

    Args:
        rows: share that each row finds first.
        seeds: seeds of each row.
        tests: names of the test sets.
        away: what the first row finds more on the second test set.
    """
    cells = [(row, seed) for seed in range(seeds) for row in rows]
    first = next(iter(rows))
    return {
        test: {
            (row, seed): one_run(rows[row] + (away if place and row == first else 0.0), seed)
            for row, seed in cells
        }
        for place, test in enumerate(tests)
    }

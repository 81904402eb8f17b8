"""Families of claims about systems whose true gaps are known, as tables of papers have them."""

import numpy as np

from sureshot.metrics.intervals import Comparison, SeedRanks, decide, paired_gap, recall_at_one

_CAPTIONS = 2  # of a video


def wrong_families(
    families: int,
    *,
    seed: int,
    claims: int = 12,
    printed: float = 0.0,
    seeds: int = 10,
    videos: int = 120,
) -> int:
    """How many families have a wrong verdict.

    All claims of a family hold a row of their own against one of two baselines, which they share;
    all rows find the same videos hard, and seeds go up and down with each other's.

    Args:
        families: number of families drawn.
        seed: number that they are drawn from.
        claims: claims of a family.
        printed: gap that is claimed and, if above 0, true; 0 is no gap, and 2 points claimed.
        seeds: seeds of each row.
        videos: videos of the test set.
    """
    draw = np.random.default_rng(seed)
    wrong = 0
    for _ in range(families):
        rows = _rows(draw, claims, printed, seeds, videos)
        family = []
        for number, row in enumerate(rows[2:]):
            gap = paired_gap(row, rows[number % 2], recall_at_one, draw)
            family.append(Comparison(gap, printed or 2.0))
        bad = {"ruled out", "contradicted"} if printed else {"supported", "contradicted"}
        wrong += any(one.verdict in bad or (printed > 0 and one.smaller) for one in decide(family))
    return wrong


def _rows(
    draw: np.random.Generator, claims: int, gap: float, seeds: int, videos: int
) -> list[SeedRanks]:
    """Two baselines and the rows of the claims, by chances to find a video first."""
    owner = np.repeat(np.arange(videos), _CAPTIONS)
    easy = draw.normal(-0.8, 1.0, len(owner))
    of_seeds = draw.normal(0, 0.05, (seeds, 1))
    found = []
    for number in range(2 + claims):
        taste = draw.normal(0, 0.25, videos)[owner]  # which videos a system happens to like
        noise = of_seeds + draw.normal(0, 0.05, (seeds, 1))
        noise = noise + draw.normal(0, 0.5, (seeds, len(owner)))
        score = easy + taste + noise
        shift = _shift(gap) if number >= 2 else 0.0
        ranks = np.where(score + shift > 0, 1.0, 2.0)
        found.append(
            SeedRanks(
                seeds=tuple(range(seeds)), texts=ranks, owner=owner, videos=ranks[:, ::_CAPTIONS]
            )
        )
    return found


def _shift(points: float) -> float:
    """What lifts the share above 0 by so many points, for the sum of all noises."""
    from scipy.stats import norm

    whole = (1 + 0.25**2 + 2 * 0.05**2 + 0.5**2) ** 0.5
    share = norm.sf(0.8 / whole)
    return float(0.8 + whole * norm.ppf(share + points / 100))

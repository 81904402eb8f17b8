"""Ranks to the numbers that papers print."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sureshot.errors import SureshotError


@dataclass(frozen=True, slots=True)
class Recall:
    """How well the queries of one direction were answered.

    Attributes:
        r1: R@1, percent of the queries whose rank is at most 1.
        r5: R@5, percent.
        r10: R@10, percent.
        r50: R@50, percent.
        median: MdR, the median rank; the mean of the middle two where their number is even.
        mean: MnR, the mean rank.
        n: queries.
    """

    r1: float
    r5: float
    r10: float
    r50: float
    median: float
    mean: float
    n: int

    def at(self, k: int) -> float:
        """R@k in percent.

        Raises:
            SureshotError: k is none of 1, 5, 10, 50.
        """
        kept = {1: self.r1, 5: self.r5, 10: self.r10, 50: self.r50}
        if k not in kept:
            raise SureshotError(f"R@{k} is not kept here; use 1, 5, 10 or 50, or recall_at.")
        return kept[k]


def recall(ranks: Float[np.ndarray, " queries"]) -> Recall:
    """Summary of the ranks of one direction.

    With the mean ranks of ties a query counts at k only if its shared place is within k: of two
    videos tied for the first place neither counts at 1 (rank 1.5), both count at 5.

    Args:
        ranks: 1 the best, whole or shared places.

    Raises:
        SureshotError: no query, or a rank below 1 or not finite.

    Differs:
        CLIP4Clip takes the lower of the two middle ranks of an even number of queries for sets
        with several captions a video, and their mean for the others; here it is always the mean.
        Collaborative Experts count a shared place up to half a place past k for k over 1.

    Examples:
        >>> recall(np.array([1.0, 1.5, 4.0, 60.0]))
        Recall(r1=25.0, r5=75.0, r10=75.0, r50=75.0, median=2.75, mean=16.625, n=4)
    """
    if len(ranks) == 0:
        raise SureshotError("There are no queries to summarise; give at least one text.")
    if not (np.isfinite(ranks) & (ranks >= 1)).all():
        raise SureshotError(
            "Ranks must be finite and count from 1; these are from "
            f"{ranks.min()} to {ranks.max()}. Zero-based ranks need 1 added."
        )
    return Recall(
        r1=recall_at(ranks, 1),
        r5=recall_at(ranks, 5),
        r10=recall_at(ranks, 10),
        r50=recall_at(ranks, 50),
        median=float(np.median(ranks)),
        mean=float(ranks.mean(dtype=np.float64)),
        n=len(ranks),
    )


def recall_at(ranks: Float[np.ndarray, " queries"], k: int) -> float:
    """R@k: percent of the queries whose rank is at most ``k``.

    Examples:
        >>> recall_at(np.array([1.0, 2.0, 2.5, 9.0]), 2)
        50.0
    """
    return 100.0 * float(np.count_nonzero(ranks <= k)) / len(ranks)


def r_sum(one: Recall) -> float:
    """R@1 + R@5 + R@10 of one direction, 0 to 300.

    References:
        "R@Sum" in table 4 of the DUQ paper.
    """
    return one.r1 + one.r5 + one.r10


def rsum(texts: Recall, videos: Recall, ks: Sequence[int] = (1, 5, 10)) -> float:
    """Sum of the recalls of both directions, 0 to 600 for three of them.

    Args:
        texts: text to video.
        videos: video to text.
        ks: which recalls; ActivityNet tables use 1, 5 and 50.

    References:
        "rsum" in the tables of the DVTR paper.
    """
    return sum(direction.at(k) for direction in (texts, videos) for k in ks)

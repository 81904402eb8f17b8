"""Retrieval where some queries have no answer, as Generalized Moment Retrieval measures it.

Every query comes with an existence score, the probability that something is right for it. Below a
threshold it is rejected, which is an empty answer; otherwise the best moments answer it. How well
existence scores separate the queries is their AUROC, `sureshot.metrics.confidence.auroc`.

References:
    "Retrieving Any Relevant Moments: Benchmark and Models for Generalized Moment Retrieval",
    arXiv:2605.02623, whose names (Rej-F1, G-mIoU@k) these are.

Differs:
    Moments are looked for in a whole gallery, not in one video, so those of other videos overlap by
    0; and each query has one right moment. The paper's own toolkit was not at hand, so G-mIoU@k is
    as its description reads.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

PerQuery = Bool[np.ndarray, " queries"]


class Moments(NamedTuple):
    """Some moments: the number of the video of each, and seconds; a whole video has 0 and inf."""

    video: Int[np.ndarray, " moments"]
    start: Float[np.ndarray, " moments"]
    end: Float[np.ndarray, " moments"]


def overlap(
    moments: Moments, sought: Int[np.ndarray, " queries"], found: Int[np.ndarray, "queries k"]
) -> Float[np.ndarray, "queries k"]:
    """Temporal intersection over union of the moments found with the one sought.

    Of whole videos it is 1 for the same one and 0 for any other; of moments without length it is 1
    for the same one.
    """
    video, start, end = (column[found] for column in moments)
    own = [column[sought][:, None] for column in moments]
    same = video == own[0]
    shared = np.maximum(np.minimum(end, own[2]) - np.maximum(start, own[1]), 0.0)
    union = np.maximum(end, own[2]) - np.minimum(start, own[1])
    whole = np.isinf(end) & np.isinf(own[2])
    ratio = np.divide(shared, union, out=np.zeros(found.shape), where=same & ~whole & (union > 0))
    return np.where(whole | (union == 0), same, ratio).astype(np.float64)


def rejection_f1(rejected: PerQuery, absent: PerQuery) -> float:
    """F1 of rejecting the queries without an answer (Rej-F1); 0 where there is nothing to reject.

    Examples:
        >>> rejection_f1(np.array([True, True, False]), np.array([True, False, True]))
        0.5
    """
    both = 2 * int((rejected & absent).sum())
    return both / (int(rejected.sum() + absent.sum()) or 1)


def generalized_miou(
    overlaps: Float[np.ndarray, "queries k"], rejected: PerQuery, absent: PerQuery
) -> float:
    """Mean over all queries of what each is answered with (G-mIoU@k).

    A query without an answer counts 1 if it is rejected, else 0. One with an answer counts 0 if it
    is rejected, else the best overlap of the first k moments.

    Args:
        overlaps: of the first k moments of each query with the one sought; not read where there
            is none.
    """
    answered = np.where(rejected, 0.0, overlaps.max(1))
    return float(np.where(absent, rejected, answered).mean())

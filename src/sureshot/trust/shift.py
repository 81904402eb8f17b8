"""Whether the queries that are asked still look like those that were labelled."""

import numpy as np
from jaxtyping import Float

from sureshot.errors import SureshotError


def shift_p_value(p_inside: Float[np.ndarray, " queries"], videos: int) -> float:
    """p-value of "these queries are like the labelled ones", 0 to 1; small says they differ.

    Queries like the labelled ones have p-values of being inside that are spread evenly over 0 to
    1. The largest gap between their distribution and the even one is compared with what chance
    makes (the test of Kolmogorov and Smirnov for two samples). It cannot tell harder queries from
    queries whose videos are not there: both come with small values. It holds for queries that do
    not depend on each other; the same one asked again and again looks like a shift.

    Args:
        p_inside: p-value of each query that its video is there, see `Calibration.p_inside`.
        videos: number of labelled videos of the reference, `Nonconformity.videos`.

    Raises:
        SureshotError: no query, no labelled video, or values outside of 0 to 1.
    """
    from scipy.special import kolmogorov  # its import takes as long as a search

    if not len(p_inside) or videos < 1:
        raise SureshotError(
            f"{len(p_inside)} queries cannot be compared with {videos} labelled videos."
        )
    ordered = np.sort(p_inside.astype(np.float64))
    if not (ordered[0] >= 0 and ordered[-1] <= 1):
        raise SureshotError("A p-value is NaN or outside of 0 to 1.")
    count = len(ordered)
    # The share of labelled videos as strange as each query; its p-value counts the query as well.
    share = np.clip((ordered * (videos + 1) - 1) / videos, 0, 1)
    before, after = np.arange(count) / count, np.arange(1, count + 1) / count
    largest = max(float((after - share).max()), float((share - before).max()))
    root = np.sqrt(count * videos / (count + videos))
    return float(kolmogorov((root + 0.12 + 0.11 / root) * largest))

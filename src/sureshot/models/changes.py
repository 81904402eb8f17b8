"""Where the scene changes, as the vectors of frames tell: at cuts, in fades and in slow pans alike.

Colours tell a cut from motion, but a cross-fade changes them no faster than motion does. What an
encoder sees changes more from scene to scene than within one, however slowly that comes about.
"""

import numpy as np
from jaxtyping import Float

from sureshot.models.mean_frames import unit_vectors

# Seconds for which a part must save what frames vary by to be worth its price:
_NOISE = 10.0  # the variance of frames side by side
_SPREAD = 1.0  # the variance of all frames
_LEAST = 1e-6  # so that equal frames are never parted


def parts(
    frames: Float[np.ndarray, "frames dim"],
    lasting: Float[np.ndarray, " frames"],
    *,
    price: float,
    shortest: float,
    longest: float,
) -> list[int]:
    r"""The first frame of each part of a stretch, so parted that every part varies little.

    .. math:: \min_{\text{parts } P} \sum_{p \in P} \Big( \beta + \sum_{f \in p} w_f
        \Big\lVert x_f - \frac{\sum_{g \in p} w_g x_g}{\sum_{g \in p} w_g} \Big\rVert^2 \Big)

    Args:
        frames: frame vectors in the order of time, compared at unit length.
        lasting: seconds that each frame stands for, above 0.
        price: what a part costs, as `price_of` works it out.
        shortest: seconds; parts are shorter only where nothing else is possible.
        longest: seconds; longer is only a frame that stands for more.

    References:
        Harchaoui and Cappé 2007, Retrospective Multiple Change-Point Estimation with Kernels, with
        a linear kernel; the least cost is found by dynamic programming.
    """
    vectors = unit_vectors(frames.astype(np.float64))
    passed = np.concatenate([[0.0], np.cumsum(lasting)])
    sums = np.concatenate(
        [np.zeros((1, frames.shape[1])), np.cumsum(vectors * lasting[:, None], 0)]
    )
    squares = np.concatenate([[0.0], np.cumsum(lasting * (vectors**2).sum(1))])
    least = np.zeros(len(frames) + 1)  # the cost of what comes from each frame on
    ends = np.zeros(len(frames), int)
    for first in reversed(range(len(frames))):
        last = int(np.searchsorted(passed, passed[first] + longest + 1e-6, side="right"))
        after = np.arange(first + 1, max(last, first + 2))
        seconds = passed[after] - passed[first]
        mean = ((sums[after] - sums[first]) ** 2).sum(1) / seconds
        cost = price + squares[after] - squares[first] - mean + least[after]
        cost[seconds < shortest - 1e-6] += squares[-1] + price
        # Of equal costs the longest part's: what stands still is parted by length, from its start.
        best = len(after) - 1 - int(np.round(cost[::-1], 9).argmin())
        least[first], ends[first] = cost[best], after[best]
    firsts = [0]
    while ends[firsts[-1]] < len(frames):
        firsts.append(int(ends[firsts[-1]]))
    return firsts


def price_of(
    frames: Float[np.ndarray, "frames dim"], lasting: Float[np.ndarray, " frames"]
) -> float:
    """What another part must save to be worth it, on the scale of the encoder and of the video.

    A change counts if it is large beside what all frames of the video differ by, and beside what
    frames side by side differ by: a film of many scenes has the first, a shaky shot the second.

    Args:
        frames: frame vectors of a whole video in the order of time, compared at unit length.
        lasting: seconds that each frame stands for, above 0.

    Returns:
        Squared length of unit vectors times seconds, above 0.
    """
    vectors = unit_vectors(frames.astype(np.float64))
    mean = np.average(vectors, axis=0, weights=lasting)
    spread = float(np.average(((vectors - mean) ** 2).sum(1), weights=lasting))
    steps = ((vectors[1:] - vectors[:-1]) ** 2).sum(1) / 2
    noise = float(np.median(steps)) if len(steps) else 0.0
    return max(_NOISE * noise, _SPREAD * spread, _LEAST)

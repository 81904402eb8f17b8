"""Smaller galleries drawn from one, so that what is fitted on them holds at every size."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float32, Int

from sureshot.errors import SureshotError
from sureshot.metrics.blocks import row_blocks


def gallery_sizes(videos: int, *, count: int = 6, smallest: float = 0.02) -> tuple[int, ...]:
    """Sizes from a share of the gallery to all of it, equally far apart in their logarithm.

    The smallest share is low, since a library may be far smaller than the labelled gallery.

    Args:
        videos: number of videos in the whole gallery.
        count: number of sizes; fewer come out where they coincide.
        smallest: smallest size as a share of the whole gallery; two videos at the least.

    Raises:
        SureshotError: no video, no size, or a share out of range.

    Examples:
        >>> gallery_sizes(1000)
        (20, 44, 96, 209, 457, 1000)
    """
    if videos < 1 or count < 1 or not 0 < smallest <= 1:
        raise SureshotError(
            f"{count} galleries from {smallest} of {videos} videos cannot be drawn; at least one "
            "of each and a share above 0, at most 1, are needed."
        )
    low = min(videos, max(2.0, smallest * videos))
    sizes = np.geomspace(low, videos, count) if count > 1 else np.array([videos])
    return tuple(int(size) for size in np.unique(np.rint(sizes)))


def draw_present(
    relevant: Bool[np.ndarray, "queries videos"], size: int, rng: np.random.Generator
) -> Int[np.ndarray, "queries size"]:
    """A gallery for each query that holds at least one video relevant to it.

    One relevant video is put in; the others are drawn from the rest of the gallery, so that other
    relevant ones come along as often as any.

    Args:
        relevant: which videos are relevant to which query.
        size: videos of each gallery.
        rng: source of all chance.

    Returns:
        Columns, in ascending order.

    Raises:
        SureshotError: a query without a relevant video, or a size out of range.
    """
    if not 1 <= size <= relevant.shape[1]:
        raise SureshotError(
            f"A gallery of {size} videos cannot be drawn from {relevant.shape[1]}; give 1 to "
            f"{relevant.shape[1]}."
        )
    if not relevant.any(1).all():
        query = int(np.argmin(relevant.any(1)))
        raise SureshotError(f"Query {query} has no relevant video, so none can be put in.")
    drawn = []
    for rows, keys in _keys(relevant, rng):
        first = np.where(relevant[rows], keys, 2).argmin(1)
        # Its key was the smallest of some, so the rest is drawn anew for all to be alike.
        keys = rng.random(keys.shape, dtype=np.float32)
        keys[np.arange(len(keys)), first] = -1
        drawn.append(_smallest(keys, size))
    return np.concatenate(drawn)


def _keys(
    relevant: Bool[np.ndarray, "queries videos"], rng: np.random.Generator
) -> Iterator[tuple[slice, Float32[np.ndarray, "rows videos"]]]:
    """Random numbers from 0 to 1 for some queries at a time; the smallest ones draw a gallery."""
    for rows in row_blocks(*relevant.shape):
        yield rows, rng.random(relevant[rows].shape, dtype=np.float32)


def _smallest(keys: np.ndarray, size: int) -> Int[np.ndarray, "queries size"]:
    if size == keys.shape[1]:
        return np.broadcast_to(np.arange(size), keys.shape).copy()
    return np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)

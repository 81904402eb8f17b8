"""Smaller galleries drawn from one, so that what is fitted on them holds at every size."""

import numpy as np
from jaxtyping import Bool, Int, Integer

from sureshot.errors import SureshotError

_CELLS = 1 << 22  # random numbers drawn together


def gallery_sizes(videos: int, *, count: int = 5, smallest: float = 0.1) -> tuple[int, ...]:
    """Sizes from a share of the gallery to all of it, equally far apart in their logarithm.

    Args:
        videos: of the gallery.
        count: sizes, fewer where they coincide.
        smallest: share of the gallery of the smallest, which has two videos at least.

    Raises:
        SureshotError: no video, no size, or a share out of range.

    Examples:
        >>> gallery_sizes(1000)
        (100, 178, 316, 562, 1000)
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
    relevant: Bool[np.ndarray, "queries videos"],
    size: int,
    rng: np.random.Generator,
    sought: Integer[np.ndarray, " queries"] | None = None,
) -> Int[np.ndarray, "queries size"]:
    """A gallery for each query that holds at least one video relevant to it.

    One relevant video is put in; the others are drawn from the rest of the gallery, so that other
    relevant ones come along as often as any.

    Args:
        relevant: which videos are relevant to which query.
        size: videos of each gallery.
        rng: source of all chance.
        sought: column of the video that is put in; a relevant one drawn by lot if left out.

    Returns:
        Columns, in ascending order.

    Raises:
        SureshotError: a query without a relevant video, or a size out of range.
    """
    _sized(size, relevant.shape[1], "")
    if not relevant.any(1).all():
        query = int(np.argmin(relevant.any(1)))
        raise SureshotError(f"Query {query} has no relevant video, so none can be put in.")
    drawn = []
    for rows, keys in _keys(relevant, rng):
        if sought is None:
            first = np.where(relevant[rows], keys, 2).argmin(1)
            # Its key was the smallest of some, so the rest is drawn anew for all to be alike.
            keys = rng.random(keys.shape, dtype=np.float32)
        else:
            first = sought[rows]
        keys[np.arange(len(keys)), first] = -1
        drawn.append(_smallest(keys, size))
    return np.concatenate(drawn)


def draw_absent(
    relevant: Bool[np.ndarray, "queries videos"], size: int, rng: np.random.Generator
) -> Int[np.ndarray, "queries size"]:
    """A gallery for each query from which all videos relevant to it are missing.

    Args:
        relevant: which videos are relevant to which query.
        size: videos of each gallery.
        rng: source of all chance.

    Returns:
        Columns, in ascending order.

    Raises:
        SureshotError: a query with fewer other videos than ``size``; see `most_absent`.
    """
    _sized(size, most_absent(relevant), " that are not relevant to every query")
    drawn = []
    for rows, keys in _keys(relevant, rng):
        keys[relevant[rows]] = 2
        drawn.append(_smallest(keys, size))
    return np.concatenate(drawn)


def most_absent(relevant: Bool[np.ndarray, "queries videos"]) -> int:
    """Size of the largest galleries that `draw_absent` can draw for all of these queries."""
    return int((~relevant).sum(1).min()) if len(relevant) else 0


def _keys(relevant: Bool[np.ndarray, "queries videos"], rng: np.random.Generator):  # type: ignore[no-untyped-def]
    step = max(1, _CELLS // relevant.shape[1])
    for start in range(0, len(relevant), step):
        rows = slice(start, start + step)
        yield rows, rng.random(relevant[rows].shape, dtype=np.float32)


def _smallest(keys: np.ndarray, size: int) -> Int[np.ndarray, "queries size"]:
    if size == keys.shape[1]:
        return np.broadcast_to(np.arange(size), keys.shape).copy()
    return np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)


def _sized(size: int, most: int, which: str) -> None:
    if not 1 <= size <= most:
        raise SureshotError(
            f"A gallery of {size} videos cannot be drawn from {most}{which}; give 1 to {most}."
        )

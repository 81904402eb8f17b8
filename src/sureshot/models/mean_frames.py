"""Frames to one vector a video, and its similarity with the vector of a text."""

import numpy as np
from jaxtyping import Bool, Float

PATCH_GRID = 3  # rows and columns that the patches of a frame are pooled to, stored or trained on


def mean_pool(
    frames: Float[np.ndarray, "videos frames dim"], mask: Bool[np.ndarray, "videos frames"]
) -> Float[np.ndarray, "videos dim"]:
    r"""Unit vector along the mean of each video's real frames.

    .. math:: v = \frac{\sum_{f \in F} x_f}{\lVert \sum_{f \in F} x_f \rVert}

    Frames are summed as they come, not normalised first: a frame the encoder says little about
    then weighs little. A video whose frames cancel out, or are all zero, pools to zero.

    Args:
        frames: frame vectors of any length.
        mask: True where a frame is real; every video has at least one.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3 (mean pooling).

    Differs:
        CLIP4Clip normalises each frame before the mean.
    """
    # Double precision: squares of large and small single ones neither overflow nor vanish in it.
    total = frames.sum(1, dtype=np.float64, where=mask[..., None])
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return (total / np.where(length > 0, length, 1)).astype(frames.dtype)


def unit_vectors(x: Float[np.ndarray, "*n dim"]) -> Float[np.ndarray, "*n dim"]:
    """Vectors at unit length; a zero vector stays zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def pool_grid(
    patches: Float[np.ndarray, "frames patches dim"], side: int = PATCH_GRID
) -> Float[np.ndarray, "frames cells dim"]:
    """Mean of the patches in each cell of a ``side`` x ``side`` grid, row by row.

    Patches that do not form a square, or no more than the grid has cells, come back as they are.
    """
    frames, count, dim = patches.shape
    across = round(count**0.5)
    if across * across != count or across <= side:
        return patches
    square = patches.reshape(frames, across, across, dim)
    rows = [part.mean(1) for part in np.array_split(square, side, axis=1)]
    cells = [part.mean(1) for row in rows for part in np.array_split(row, side, axis=1)]
    return np.stack(cells, axis=1)


def cosine(
    texts: Float[np.ndarray, "texts dim"], videos: Float[np.ndarray, "videos dim"]
) -> Float[np.ndarray, "texts videos"]:
    """Inner products of unit vectors: rows texts, columns videos, higher is better, in [-1, 1].

    Args:
        texts: unit vectors.
        videos: unit vectors; a zero vector scores 0 with everything.

    Examples:
        >>> cosine(np.array([[0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, -1.0]]))
        array([[ 0.6, -0.8]])
    """
    return texts @ videos.T

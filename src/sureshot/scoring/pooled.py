"""Similarity of pooled texts and pooled videos."""

import numpy as np
from jaxtyping import Float


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

"""Vectors as they are stored: the mean of a window's frames, and what its hub correction takes off.

A score of an encoder alone is the product of a sentence with the mean frame, less the correction.
With the correction as one more number of each vector, and -1 as one more of the sentence, that is
one product. So candidates are the windows that score best; without it, they were those that lie
nearest, and of a million windows those are hubs: of the ten best by score 92 % were among the
nearest 200 of 100,000 (LOG.md).

A trained model scores in its own way, of which the correction is no part that could be added to
products. It has 0 there. So have the numbers that fill a vector up to its width.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float

from sureshot.errors import ModelError
from sureshot.models.bank import FILE, bank_of, home_of
from sureshot.models.comparing import Corrected, MeanFrames
from sureshot.models.encoders.protocol import VideoFeatures
from sureshot.store.header import Header


def with_hubs(
    pooled: Float[np.ndarray, "windows dim"], header: Header
) -> Float[np.ndarray, "windows width"]:
    """Pooled vectors as an index stores them.

    Args:
        pooled: unit vectors.
        header: what the index says of itself.
    """
    width = header.width - pooled.shape[1]
    if not width:
        return pooled
    more = np.zeros((len(pooled), width), pooled.dtype)
    how = _correction(header.settings.model, header.fingerprint)
    if how is not None:
        one = np.ones((len(pooled), 1), bool)
        more[:, 0] = how.videos(VideoFeatures.of_frames(pooled[:, None], one)).offsets
    return np.concatenate([pooled, more], axis=1)


def asking(
    vector: Float[np.ndarray, " dim"], width: int, *, less_hubs: bool
) -> Float[np.ndarray, " width"]:
    """A query as it is multiplied with stored vectors.

    Args:
        vector: the query, unit length.
        width: numbers of a stored vector; those of formats up to 3 have no correction.
        less_hubs: whether the correction is taken off.
    """
    more = np.zeros(width - len(vector), vector.dtype)
    more[:1] = -float(less_hubs)
    return np.concatenate([vector, more])


@lru_cache(maxsize=4)
def _correction(model: str, fingerprint: str) -> Corrected | None:
    """The hub correction of an encoder alone; None where there is none that can be used."""
    if not (home_of(model) / FILE).is_file():
        return None
    from sureshot.models.checkpoint import is_checkpoint  # it imports torch

    try:
        bank = None if is_checkpoint(home_of(model)) else bank_of(model, fingerprint)
    except ModelError:  # a search says so; it costs candidates only
        return None
    return None if bank is None else Corrected(MeanFrames(), bank)

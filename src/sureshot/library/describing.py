"""Sentences ranked by how well they fit one video."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sureshot.errors import QueryError
from sureshot.library.answer import Description, Descriptions
from sureshot.library.query_video import asked_windows
from sureshot.library.text_warnings import text_warnings
from sureshot.models.comparing import Comparing
from sureshot.models.encoders import Encoder
from sureshot.places import absolute
from sureshot.store.header import IndexSettings
from sureshot.store.store import Store
from sureshot.text import clean


def ranked_texts(
    video: str | Path,
    texts: Sequence[str],
    *,
    at: float | None,
    encoder: Encoder,
    how: Comparing,
    store: Store | IndexSettings,
) -> Descriptions:
    """Texts ranked by how well they fit a video, or what it shows at one time.

    Args:
        video: any video file, photo or folder of frames.
        texts: the texts to choose from, at least one.
        at: seconds; None takes the whole video, whose best-fitting window counts.
        encoder: what encodes texts and frames.
        how: how its model compares them.
        store: index that may have the video's windows; or how a video is cut, where there is none.

    Raises:
        VideoError: the video cannot be read.
        QueryError: no text, or an empty one; or ``at`` lies outside the video.
    """
    if not texts:
        raise QueryError("There is no sentence to choose from; give at least one.")
    path = absolute(video)
    cleaned = [clean(text) for text in texts]
    features = encoder.encode_texts(cleaned)
    windows = asked_windows(store, encoder, path, at)
    scores = how.similarity(how.texts(features), how.videos(windows)).max(1)
    order = np.argsort(-scores, kind="stable")
    return Descriptions(
        video=path,
        at=at,
        ranked=tuple(
            Description(rank, cleaned[row], float(scores[row])) for rank, row in enumerate(order, 1)
        ),
        status="not calibrated",
        model=encoder.name,
        warnings=text_warnings(encoder, cleaned, features),
    )

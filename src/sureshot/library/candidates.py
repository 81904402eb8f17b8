"""The windows that a query may mean, scored exactly, and the hits among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.library.answer import Hit
from sureshot.library.request import NearWindows, Request, best_moments, scored_hits, why_few
from sureshot.library.videos import Score
from sureshot.models.encoders.protocol import TextFeatures
from sureshot.store.rows import union
from sureshot.store.store import Store

PER_VIDEO = 3  # moments of one video in an answer, so that a long film does not crowd others out
CANDIDATES = 200  # windows scored exactly, at least
_GONE = "Files that are gone stay in the index until `sureshot index FOLDER --prune` forgets them."


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A query with what the encoder and the way of comparing made of it.

    Attributes:
        text: the query, cleaned.
        features: its features.
        codes: its codes.
    """

    text: str
    features: TextFeatures
    codes: Any


def near_windows(
    store: Store,
    vectors: Float[np.ndarray, "queries dim"],
    score: Score,
    wanted: int,
    asked: Request,
) -> NearWindows:
    """The windows nearest to queries any of which may match.

    Args:
        store: the index.
        vectors: unit vectors of the queries.
        score: what scores windows by the query that fits them best.
        wanted: how many windows for each query.
        asked: what the search was asked for.
    """
    near = [
        store.nearest(v, wanted, asked.under, asked.without, less_hubs=asked.less_hubs)
        for v in vectors
    ]
    windows = union(near)
    whole = all(len(part.keys) < wanted for part in near)
    return NearWindows(windows=windows, scores=score(windows.features), wanted=wanted, whole=whole)


def near_each(
    store: Store,
    vectors: Float[np.ndarray, "queries dim"],
    scores: Sequence[Score],
    wanted: int,
    asked: Request,
) -> list[NearWindows]:
    """The windows nearest to each of some sentences, from one pass over the index.

    Args:
        store: the index.
        vectors: unit vector of each sentence.
        scores: what scores windows by each sentence.
        wanted: how many windows for each.
        asked: what the search was asked for, which leaves no video out.
    """
    near = store.finder.nearest_many(vectors, wanted, asked.under, less_hubs=asked.less_hubs)
    return [
        NearWindows(
            windows=windows,
            scores=score(windows.features),
            wanted=wanted,
            whole=len(windows.keys) < wanted,
        )
        for windows, score in zip(near, scores, strict=True)
    ]


def answer_hits(
    store: Store,
    vectors: Float[np.ndarray, "queries dim"],
    score: Score,
    asked: Request,
    near: NearWindows,
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Hits for queries any of which may match, and notes where there are fewer than asked for.

    There are more candidates where folding eats them up, but not without end.

    Args:
        store: the index.
        vectors: unit vectors of the queries.
        score: what scores windows by the query that fits them best.
        asked: what the search was asked for.
        near: the windows nearest to the queries.
    """
    wanted = max(near.wanted, 10 * asked.k)
    most = asked.per_video or PER_VIDEO
    while True:
        if wanted > near.wanted:
            near = near_windows(store, vectors, score, wanted, asked)
        kept, left_out = best_moments(near, asked, most)
        if len(kept) >= asked.k or near.whole or wanted >= asked.most:
            break
        wanted = min(4 * wanted, asked.most)
    while asked.per_video is None and left_out and len(kept) < asked.k:
        most *= 2
        kept, left_out = best_moments(near, asked, most)
    windows = near.windows
    hits = scored_hits(kept, windows, score)
    notes = why_few(asked, len(hits), near, left_out)
    if any(hit.missing for hit in hits):
        notes.append(_GONE)
    return hits, tuple(notes)

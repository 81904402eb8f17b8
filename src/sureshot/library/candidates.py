"""The windows that a query may mean, scored exactly, and the hits among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sureshot.library.answer import Hit
from sureshot.library.looked import Looked
from sureshot.library.request import NearWindows, Request, best_moments, scored_hits, why_few
from sureshot.models.comparing import Comparing
from sureshot.models.encoders.protocol import TextFeatures
from sureshot.store.rows import union
from sureshot.store.store import Store

PER_VIDEO = 3  # moments of one video in an answer, so that a long film does not crowd others out
CANDIDATES = 200  # windows scored exactly, at least
# An index of so few windows is kept in memory, and all of them are scored. With 252 windows a
# search takes 23 ms of a core in place of 51, with 553 it takes 38 in place of 65; from 1000 on to
# choose candidates first is as quick.
IN_MEMORY = 600
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


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search found in the index.

    Attributes:
        near: the windows nearest to the query.
        hits: the hits among them.
        notes: why they are fewer than were asked for, where they are.
        searched: windows of the index that were looked at.
        trouble: what reading met that is damaged.
    """

    near: NearWindows
    hits: tuple[Hit, ...]
    notes: tuple[str, ...]
    searched: int
    trouble: tuple[str, ...]


class Candidates:
    """Finds the windows that queries may mean.

    Args:
        store: the index.
        how: how windows are compared with queries.
    """

    def __init__(self, store: Store, how: Comparing) -> None:
        self._store = store
        self._how = how
        self._every: Looked | None = None

    def near_any(self, texts: Any, wanted: int, asked: Request) -> NearWindows:
        """The windows nearest to queries any of which may match.

        Args:
            texts: codes of the queries.
            wanted: how many windows for each query.
            asked: what the search was asked for.
        """
        near = [
            self._store.nearest(v, wanted, asked.under, asked.without, less_hubs=asked.less_hubs)
            for v in self._how.text_vectors(texts)
        ]
        whole = all(len(part.keys) < wanted for part in near)
        return NearWindows.of(Looked(union(near), self._how), texts, wanted, whole=whole)

    def near_each(self, texts: Sequence[Any], wanted: int, asked: Request) -> list[NearWindows]:
        """The windows nearest to each of some sentences, from one pass over the index.

        Args:
            texts: codes of each sentence.
            wanted: how many windows for each.
            asked: what the search was asked for, which leaves no video out.
        """
        every = self._every_window(max(wanted, IN_MEMORY)) if asked.under is None else None
        if every is not None:
            looked = [every] * len(texts)
        else:
            vectors = np.concatenate([self._how.text_vectors(text) for text in texts])
            near = self._store.finder.nearest_many(
                vectors, wanted, asked.under, less_hubs=asked.less_hubs
            )
            looked = [Looked(part, self._how) for part in near]
        return [
            NearWindows.of(
                part, text, wanted, whole=part is every or len(part.windows.keys) < wanted
            )
            for part, text in zip(looked, texts, strict=True)
        ]

    def hits(self, asked: Request, near: NearWindows) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
        """Hits for a query, and notes where there are fewer than asked for.

        There are more candidates where folding eats them up, but not without end.

        Args:
            asked: what the search was asked for.
            near: the windows nearest to the query.
        """
        wanted = max(near.wanted, 10 * asked.k)
        most = asked.per_video or PER_VIDEO
        while True:
            if wanted > near.wanted:
                near = self.near_any(near.texts, wanted, asked)
            kept, left_out = best_moments(near, asked, most)
            if len(kept) >= asked.k or near.whole or wanted >= asked.most:
                break
            wanted = min(4 * wanted, asked.most)
        while asked.per_video is None and left_out and len(kept) < asked.k:
            most *= 2
            kept, left_out = best_moments(near, asked, most)
        hits = scored_hits(kept, near)
        notes = why_few(asked, len(hits), near, left_out)
        if any(hit.missing for hit in hits):
            notes.append(_GONE)
        return hits, tuple(notes)

    def _every_window(self, most: int) -> Looked | None:
        """All windows of an index that has so few."""
        windows = self._store.finder.every(most)
        known = self._every
        if windows is None or (known is not None and known.windows is windows):
            return None if windows is None else known
        self._every = Looked(windows, self._how)
        return self._every

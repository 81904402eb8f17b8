"""A sentence in, an answer out."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.errors import QueryError, StoreError
from sureshot.library.answer import Answer, Descriptions
from sureshot.library.candidates import CANDIDATES, Candidates, Found, Sentence
from sureshot.library.confidence import (
    Judged,
    Rivals,
    describe_card,
    drift,
    find_card,
    judged,
    left_out,
)
from sureshot.library.describing import ranked_texts
from sureshot.library.query_video import asked_windows
from sureshot.library.request import NearWindows, Request, check_shares, why_nothing
from sureshot.library.sentences import Sentences
from sureshot.library.text_warnings import is_foreign, text_warnings
from sureshot.library.videos import Gallery, Told, every_window
from sureshot.models.bank import bank_of
from sureshot.models.comparing import MeanFrames, comparing
from sureshot.models.encoders import Encoder
from sureshot.models.loading import load_searchable
from sureshot.models.retriever import Retriever
from sureshot.places import absolute, absolute_model, index_place
from sureshot.store.conditions import Among, Under
from sureshot.store.header import IndexSettings
from sureshot.store.store import Store
from sureshot.text import clean, counted, plain, printable
from sureshot.trust.signals import About, word_counts

_FOREIGN = "No percentages: they were learned on words that the model knows."
_FOLDED = 20  # moments whose copies are no rivals of theirs
_TEXTS = 64  # encoded at once
_TOGETHER = 16  # sentences whose candidates are in memory together, 32 MB of the bundled model


def open_index(
    db: str | Path | None = None, *, model: str | None = None, device: str | None = None
) -> "Searcher":
    """Open an index for searching.

    Args:
        db: folder or object-storage URI; None is the default index of this user.
        model: the encoder or the checkpoint, needed only where the recorded one has moved (a local
            folder); it must be the one that wrote the index.
        device: torch device; None takes a GPU where there is one.

    Raises:
        StoreError: no index, damaged, too new, or written by another model.
        ModelError: the index's model cannot be loaded here.
    """
    store = Store.open(index_place(db), cached=True)
    encoder = load_searchable(absolute_model(model) if model else store.settings.model, device)
    store.check_model(encoder.name, encoder.fingerprint)
    return Searcher(store, encoder)


def describe(
    video: str | Path,
    texts: Sequence[str],
    *,
    at: float | None = None,
    db: str | Path | None = None,
    model: str | None = None,
    device: str | None = None,
) -> Descriptions:
    """Sentences ranked by how well they fit a video; no index is needed.

    Args:
        video: any video file, photo or folder of frames, indexed or not.
        texts: the sentences to choose from, at least one.
        at: seconds; None takes the whole video, whose best-fitting window counts.
        db: folder or object-storage URI of an index whose model compares; None is the default index
            of this user, where there is one and no model is named.
        model: an encoder or a checkpoint; None is that of the index, else ``bundled``.
        device: torch device; None takes a GPU where there is one.

    Raises:
        VideoError: the video cannot be read.
        QueryError: no sentence, or an empty one; or ``at`` lies outside the video.
        StoreError: there is no index at ``db``, or it is of another model.
        ModelError: the model cannot be loaded here.
    """
    if db is not None or (model is None and Store.exists(index_place())):
        return open_index(db, model=model, device=device).describe(video, texts, at=at)
    name = absolute_model(model) if model else IndexSettings().model
    encoder = load_searchable(name, device)
    settings = IndexSettings(model=name)
    if isinstance(encoder, Retriever):
        settings = replace(settings, frames=encoder.frames)
    return ranked_texts(
        video,
        texts,
        at=at,
        encoder=encoder,
        how=comparing(encoder, bank_of(encoder.name, encoder.fingerprint)),
        store=settings,
    )


def as_searcher(
    db: "str | Path | Searcher | None", model: str | None, device: str | None
) -> "Searcher":
    """An index that may be open already; else as `open_index`."""
    return db if isinstance(db, Searcher) else open_index(db, model=model, device=device)


class Searcher:
    """Searches one index with the encoder that wrote it.

    Args:
        store: the index.
        encoder: encoder of the same fingerprint; a trained model scores by its own similarity.

    Attributes:
        store: the index.
        encoder: the encoder.
        bank: hub correction of the model, which all scores of sentences are less; None without.

    Raises:
        ModelError: its hub correction cannot be used.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.store = store
        self.encoder = encoder
        self.bank = bank_of(encoder.name, encoder.fingerprint)
        self._comparing = comparing(encoder, self.bank)
        self._sentences = Sentences(encoder)
        self._candidates = Candidates(store, self._comparing)
        self.refresh_card()

    def refresh_card(self) -> None:
        """Look for the calibration card again, after one was made."""
        self._card, self._yours, self._card_warnings = find_card(
            self.store.location, self.encoder.name, self.encoder.fingerprint, self.bank
        )

    def learned_from(self) -> str:
        """What percentages are learned from, or why there are none."""
        if self._card is None:
            return "; ".join(("not calibrated", *self._card_warnings))
        return describe_card(self._card)

    def __repr__(self) -> str:
        videos, windows = self.store.count_videos(), self.store.count()
        size = f"{counted(videos, 'video')} in {counted(windows, 'window')}"
        return f"{plain(self.store.location)}: {size}, model {plain(self.encoder.name)}"

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        under: str | Under | None = None,
        per_video: int | None = None,
        fold: bool = True,
        coverage: float = 0.9,
        minimum: float = 0.0,
    ) -> Answer:
        """Moments that a sentence describes, best first.

        Args:
            query: a sentence or a few words.
            k: how many moments at most.
            under: only videos at or below this path, or those that were chosen.
            per_video: moments of one video at most; None takes 3, and more only where the other
                videos do not fill the answer.
            fold: whether copies of a video share a row.
            coverage: share of queries whose set of plausible moments is to hold a right one, where
                percentages were learned.
            minimum: leave out hits that are right with a lower probability than this.

        Raises:
            QueryError: an empty query, ``k`` or ``per_video`` below 1, ``coverage`` not between 0
                and 1, or ``minimum`` not from 0 to below 1.
            StoreError: the index cannot be read.
        """
        wanted: dict[str, Any] = {"k": k, "under": under, "per_video": per_video, "fold": fold}
        (answer,) = self.search_many([query], **wanted, coverage=coverage, minimum=minimum)
        return answer

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int = 10,
        under: str | Under | None = None,
        per_video: int | None = None,
        fold: bool = True,
        coverage: float = 0.9,
        minimum: float = 0.0,
    ) -> Iterator[Answer]:
        """What `search` finds for each of many sentences, sixteen from one pass over the index.

        The other arguments are those of `search`.

        Raises:
            QueryError: as `search` raises it; answers to what stands before are given first.
            StoreError: the index cannot be read.
        """
        asked = self._asked(k=k, per_video=per_video, fold=fold, under=_below(under))
        check_shares(coverage, minimum)
        for first in range(0, len(queries), _TOGETHER):
            began = time.perf_counter()
            texts = [clean(query) for query in queries[first : first + _TOGETHER]]
            features = self._sentences.features(texts)
            codes = [self._comparing.texts(one) for one in features]
            near = self._candidates.near_each(codes, CANDIDATES, asked)
            found = [self._candidates.hits(asked, one) for one in near]
            searched, trouble = self.store.count(asked.under), tuple(self.store.trouble())
            seen = [
                Found(near=one, hits=hits, notes=notes, searched=searched, trouble=trouble)
                for one, (hits, notes) in zip(near, found, strict=True)
            ]
            sentences = [Sentence(*parts) for parts in zip(texts, features, codes, strict=True)]
            answers = list(self._judged(sentences, asked, seen, coverage, minimum))
            seconds = (time.perf_counter() - began) / len(texts)
            yield from (replace(answer, seconds=seconds) for answer in answers)

    def _judged(
        self,
        sentences: Sequence[Sentence],
        asked: Request,
        seen: Sequence[Found],
        coverage: float,
        minimum: float,
    ) -> Iterator[Answer]:
        """Hits and notes for sentences as answers, with percentages where there is a card."""
        percentages: dict[int, Judged] = {}
        if self._card is not None:
            # How often the model is right was learned on captions of words it knows.
            strange = [not self._yours and is_foreign(self.encoder, s.text) for s in sentences]
            rows = [row for row, one in enumerate(seen) if one.hits and not strange[row]]
            rivals = [self._rivals(sentences[r], seen[r].near, seen[r].searched) for r in rows]
            hits = [seen[row].hits for row in rows]
            told = judged(self._card, rivals, hits, coverage, yours=self._yours)
            percentages = dict(zip(rows, told, strict=True))
        for row, (sentence, one) in enumerate(zip(sentences, seen, strict=True)):
            warnings = (
                *text_warnings(self.encoder, [sentence.text], sentence.features),
                *one.notes,
            )
            if row not in percentages:
                foreign = one.hits and self._card is not None
                why = (_FOREIGN,) if foreign else self._card_warnings
                yield self._answer(sentence.text, asked, one, (*warnings, *why))
                continue
            status, known, all_hits, more = percentages[row]
            kept = tuple(h for h in all_hits if h.relevant is None or h.relevant >= minimum)
            more += left_out(len(all_hits) - len(kept), len(kept), minimum)
            answer = self._answer(sentence.text, asked, one, (*warnings, *more))
            yield replace(answer, status=status, confidence=known, hits=kept)

    def _asked(self, **asked: Any) -> Request:
        """A request for what sentences describe."""
        return Request(**asked, less_hubs=self._comparing.less_hubs)

    def rivals(self, query: str, *, under: str | Under | None = None) -> Rivals:
        """The moments that a sentence may mean, by which percentages are worked out.

        Args:
            query: a sentence or a few words.
            under: only videos at or below this path.

        Raises:
            QueryError: an empty query.
            SureshotError: nothing is indexed there.
        """
        text = clean(query)
        (features,) = self._sentences.features([text])
        codes = self._comparing.texts(features)
        asked = self._asked(k=1, per_video=1, fold=True, under=_below(under))
        near = self._candidates.near_any(codes, CANDIDATES, asked)
        if not near.windows.keys:
            raise StoreError(why_nothing(asked, self.store.count()))
        sentence = Sentence(text=text, features=features, codes=codes)
        return self._rivals(sentence, near, self.store.count(asked.under))

    def drift(self, answers: Sequence[Answer]) -> tuple[str, ...]:
        """A warning where many answers are unlike those of the queries that were judged."""
        known = [answer.confidence for answer in answers if answer.confidence is not None]
        return () if self._card is None else drift(self._card, known)

    def all_scores(self, queries: Sequence[str], *, told: Told | None = None) -> Gallery:
        """The score of every sentence with every indexed window.

        Args:
            queries: sentences.
            told: called with windows done and windows there are.

        Raises:
            QueryError: no query, or an empty one.
            StoreError: the index cannot be read.
        """
        if not queries:
            raise QueryError("There is no query to score; give at least one.")
        texts = [clean(query) for query in queries]
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        codes = [self._comparing.texts(self.encoder.encode_texts(part)) for part in parts]
        return every_window(self.store, self._comparing, codes, told)

    def like(
        self,
        video: str | Path,
        *,
        at: float | None = None,
        k: int = 10,
        under: str | Under | None = None,
        per_video: int | None = None,
        fold: bool = True,
    ) -> Answer:
        """Moments that look like a video or photo, or like what a video shows at one time.

        Args:
            video: any video file, photo or folder of frames, indexed or not.
            at: seconds; other moments of the same video count too. None takes the whole video,
                whose best-fitting window counts, and looks in the other ones.
            k: how many moments at most.
            under: only videos at or below this path, or those that were chosen.
            per_video: moments of one video at most; None takes 3, and more only where the other
                videos do not fill the answer.
            fold: whether copies of a video share a row.

        Raises:
            VideoError: the video cannot be read.
            QueryError: ``at`` lies outside the video.
        """
        began = time.perf_counter()
        path = absolute(video)
        asked = Request(k=k, per_video=per_video, fold=fold, under=_below(under), like=path, at=at)
        looks = MeanFrames()
        candidates = Candidates(self.store, looks)
        vectors = looks.videos(asked_windows(self.store, self.encoder, path, at))
        near = candidates.near_any(vectors, CANDIDATES, asked)
        hits, notes = candidates.hits(asked, near)
        searched, trouble = self.store.count(asked.under), tuple(self.store.trouble())
        name = printable(path) + (f"@{at:g}" if at is not None else "")
        seen = Found(near=near, hits=hits, notes=notes, searched=searched, trouble=trouble)
        answer = self._answer(name, asked, seen, notes)
        return replace(answer, seconds=time.perf_counter() - began)

    def describe(
        self, video: str | Path, texts: Sequence[str], *, at: float | None = None
    ) -> Descriptions:
        """Sentences ranked by how well they fit a video, or what it shows at one time.

        Args:
            video: any video file or folder of frames, indexed or not.
            texts: the sentences to choose from, at least one.
            at: seconds; None takes the whole video, whose best-fitting window counts.

        Raises:
            VideoError: the video cannot be read.
            QueryError: no sentence, or an empty one.
        """
        return ranked_texts(
            video, texts, at=at, encoder=self.encoder, how=self._comparing, store=self.store
        )

    def _rivals(self, sentence: Sentence, near: NearWindows, searched: int) -> Rivals:
        apart = near.looked.copies.without(near.moments, _FOLDED)
        elsewhere = self._comparing.elsewhere(sentence.codes)
        return Rivals(
            moments=apart,
            about=About(
                elsewhere=None if elsewhere is None else elsewhere.astype(np.float64),
                words=word_counts([sentence.text]),
                videos=searched,
            ),
        )

    def _answer(self, query: str, asked: Request, seen: Found, warnings: tuple[str, ...]) -> Answer:
        """Hits as an answer without percentages; how long it took is not known yet."""
        warnings = (*warnings, *seen.trouble)
        if not seen.hits:
            warnings = (*warnings, why_nothing(asked, seen.searched or self.store.count()))
        return Answer(
            query=query,
            hits=seen.hits,
            status="not calibrated",
            model=self.encoder.name,
            searched=seen.searched,
            seconds=0.0,
            warnings=warnings,
        )


def _below(path: str | Under | None) -> Under | None:
    return path if path is None or isinstance(path, Among) else absolute(path)

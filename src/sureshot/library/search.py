"""A sentence in, an answer out."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.errors import QueryError, StoreError, VideoError
from sureshot.library.confidence import (
    Judged,
    RankedScores,
    describe_card,
    drift,
    find_card,
    judged,
    left_out,
)
from sureshot.library.query_checks import clean, is_foreign, text_warnings
from sureshot.library.ranking import (
    CANDIDATES,
    Candidates,
    EncodedQuery,
    Gallery,
    Ranking,
    Request,
    check_shares,
    every_window,
    why_nothing,
)
from sureshot.library.results import Answer, Description, Descriptions
from sureshot.media.discover import Source, discover, frame_files
from sureshot.models.encoders.base import Encoder, TextFeatures, VideoFeatures
from sureshot.models.hub_bank import bank_of
from sureshot.models.load import Retriever, load_searchable
from sureshot.models.similarity import MeanFrames, Similarity, similarity_for
from sureshot.paths import absolute, absolute_model, index_place
from sureshot.progress import Progress, Silent
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings, StoredWindows
from sureshot.store.vector_search import Selection, VideoSet
from sureshot.text import counted, plain, printable
from sureshot.trust.signals import QueryContext, word_counts

_MOST = 24  # windows of a long video that are looked at


def asked_windows(
    store: Store | IndexSettings, encoder: Encoder, path: Path, at: float | None
) -> VideoFeatures:
    """The windows of a video to look at, from the index or else decoded now.

    Args:
        store: the index; or how a video is cut into windows, where there is no index.
        encoder: the encoder that wrote the index.
        path: any video file, photo or folder of frames, absolute.
        at: seconds; None takes at most 24 windows, evenly over the whole video.
    """
    from sureshot.library.encoding import encode_video

    source = _source(path)
    stored = None if isinstance(store, IndexSettings) else _stored(store, source)
    if stored is not None:
        start, end, windows = stored.start, stored.end, stored.features
    else:
        settings = store if isinstance(store, IndexSettings) else store.settings
        try:
            encoded = encode_video(source, settings, encoder).windows
        except VideoError as error:
            raise VideoError(f"{printable(path)} {error}.", transient=error.transient) from error
        windows = _padded([w.frames for w in encoded])
        start = np.array([w.start for w in encoded])
        end = np.array([w.end for w in encoded])
    if at is None:
        spread = np.linspace(0, len(start) - 1, min(len(start), _MOST))
        return windows.part(spread.round().astype(int))
    if not 0 <= at <= end[-1]:
        last = f"{end[-1]:.2f}".rstrip("0").rstrip(".")
        raise QueryError(f"{printable(path)} is {last} s long; there is nothing at {at:g} s.")
    here = max(int(np.searchsorted(start, at, side="right")) - 1, 0)
    return windows.part(slice(here, here + 1))


def _stored(store: Store, source: Source) -> StoredWindows | None:
    """The windows that the index has of a video; None if it is not indexed or has changed since."""
    record = next((r for r in store.videos() if r.path == source.path), None)
    if record is None or not record.windows or record.mtime_ns != source.mtime_ns:
        return None
    windows = store.windows_of(source.path)
    # Another process may have removed it since.
    return windows if len(windows.keys) == record.windows else None


def _source(path: Path) -> Source:
    """The one video at a path."""
    try:
        ordinary = path.is_dir() and not frame_files(path)
    except OSError:
        ordinary = False  # `discover` says why
    # It would search all that lies below an ordinary folder.
    found = None if ordinary else next(discover([path]), None)
    if isinstance(found, Source):
        return found
    if found is not None:
        raise QueryError(f"{printable(path)} cannot be read: {found.reason}.")
    raise QueryError(f"{printable(path)} is not a video file or a folder of numbered frames.")


def _padded(windows: Sequence[Float[np.ndarray, "_ dim"]]) -> VideoFeatures:
    """The frames of some windows as videos."""
    counts = np.array([len(frames) for frames in windows])
    mask = np.arange(counts.max())[None, :] < counts[:, None]
    frames = np.zeros((*mask.shape, windows[0].shape[1]), windows[0].dtype)
    frames[mask] = np.concatenate(windows)
    return VideoFeatures.of_frames(frames, mask)


def ranked_texts(
    video: str | Path,
    texts: Sequence[str],
    *,
    at: float | None,
    encoder: Encoder,
    how: Similarity,
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


_KEPT = 256  # sentences that are remembered


class Sentences:
    """Encodes sentences for several threads.

    Args:
        encoder: what encodes.
        kept: how many sentences are remembered, the latest ones.
    """

    def __init__(self, encoder: Encoder, kept: int = _KEPT) -> None:
        self._encoder = encoder
        self._kept = kept
        self._known: OrderedDict[str, TextFeatures] = OrderedDict()
        self._guard = threading.Lock()

    def features(self, texts: Sequence[str]) -> list[TextFeatures]:
        """What the encoder makes of each text, none of them empty; nobody may change it."""
        with self._guard:
            new = list(dict.fromkeys(text for text in texts if text not in self._known))
            if new:
                features = self._encoder.encode_texts(new)
                self._known |= {text: _row(features, row) for row, text in enumerate(new)}
            for text in texts:
                self._known.move_to_end(text)
            found = [self._known[text] for text in texts]
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return found


def _row(features: TextFeatures, row: int) -> TextFeatures:
    """One of several texts, without the padding that the longest of them brought."""
    if len(features.mask) == 1:
        return features
    one, real = slice(row, row + 1), int(features.mask[row].nonzero()[0][-1]) + 1
    return replace(
        features,
        sentence=features.sentence[one],
        words=features.words[one, :real].copy(),
        mask=features.mask[one, :real].copy(),
        truncated=features.truncated[one],
        length=None if features.length is None else features.length[one],
    )


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
        how=similarity_for(encoder, bank_of(encoder.name, encoder.fingerprint)),
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
        encoder: encoder of the same fingerprint; a trained model scores by its own similarity.

    Attributes:
        bank: hub correction of the model, which all scores of sentences are less; None without.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.store = store
        self.encoder = encoder
        self.bank = bank_of(encoder.name, encoder.fingerprint)
        self._comparing = similarity_for(encoder, self.bank)
        self._sentences = Sentences(encoder)
        self._candidates = Candidates(store, self._comparing)
        self.refresh_card()

    def refresh_card(self) -> None:
        """Look for the calibration card again, after one was made."""
        self._card, self._personal, self._card_warnings = find_card(
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
        limit: int = 10,
        folder: str | Selection | None = None,
        per_video: int | None = None,
        merge_copies: bool = True,
        coverage: float = 0.9,
        min: float = 0.0,
    ) -> Answer:
        """Moments that a sentence describes, best first.

        Args:
            query: a sentence or a few words.
            limit: how many moments at most.
            folder: only videos at or below this path, or those that were chosen.
            per_video: moments of one video at most; None takes 3, and more only where the other
                videos do not fill the answer.
            merge_copies: whether copies of a video share a row.
            coverage: share of queries whose set of plausible moments is to hold a right one, where
                percentages were learned.
            min: leave out hits that are right with a lower probability than this.

        Raises:
            QueryError: an empty query, or a number out of its range.
            StoreError: the index cannot be read.
        """
        wanted: dict[str, Any] = {
            "limit": limit,
            "folder": folder,
            "per_video": per_video,
            "merge_copies": merge_copies,
        }
        (answer,) = self.search_many([query], **wanted, coverage=coverage, min=min)
        return answer

    def search_many(
        self,
        queries: Sequence[str],
        *,
        limit: int = 10,
        folder: str | Selection | None = None,
        per_video: int | None = None,
        merge_copies: bool = True,
        coverage: float = 0.9,
        min: float = 0.0,
    ) -> Iterator[Answer]:
        """What `search` finds for each of many sentences, sixteen from one pass over the index.

        The other arguments are those of `search`.
        """
        asked = self._asked(
            limit=limit, per_video=per_video, merge_copies=merge_copies, folder=_below(folder)
        )
        check_shares(coverage, min)
        for first in range(0, len(queries), _TOGETHER):
            began = time.perf_counter()
            texts = [clean(query) for query in queries[first : first + _TOGETHER]]
            features = self._sentences.features(texts)
            codes = [self._comparing.texts(one) for one in features]
            near = self._candidates.near_each(codes, CANDIDATES, asked)
            rankings = [self._candidates.with_hits(asked, one) for one in near]
            sentences = [EncodedQuery(*parts) for parts in zip(texts, features, codes, strict=True)]
            answers = list(self._judged(sentences, asked, rankings, coverage, min))
            seconds = (time.perf_counter() - began) / len(texts)
            yield from (replace(answer, seconds=seconds) for answer in answers)

    def _judged(
        self,
        sentences: Sequence[EncodedQuery],
        asked: Request,
        rankings: Sequence[Ranking],
        coverage: float,
        min: float,
    ) -> Iterator[Answer]:
        """Hits and notes for sentences as answers, with percentages where there is a card."""
        searched = self.store.count(asked.folder)
        percentages: dict[int, Judged] = {}
        if self._card is not None:
            # How often the model is right was learned on captions of words it knows.
            strange = [not self._personal and is_foreign(self.encoder, s.text) for s in sentences]
            rows = [row for row, one in enumerate(rankings) if one.hits and not strange[row]]
            rivals = [self._rivals(sentences[row], rankings[row], searched) for row in rows]
            hits = [rankings[row].hits for row in rows]
            found = judged(self._card, rivals, hits, coverage, personal=self._personal)
            percentages = dict(zip(rows, found, strict=True))
        for row, (sentence, one) in enumerate(zip(sentences, rankings, strict=True)):
            warnings = (
                *text_warnings(self.encoder, [sentence.text], sentence.features),
                *one.notes,
            )
            if row not in percentages:
                foreign = one.hits and self._card is not None
                why = (_FOREIGN,) if foreign else self._card_warnings
                yield self._answer(sentence.text, asked, one, searched, (*warnings, *why))
                continue
            status, known, all_hits, more = percentages[row]
            kept = tuple(h for h in all_hits if h.relevant is None or h.relevant >= min)
            more += left_out(len(all_hits) - len(kept), len(kept), min)
            notes = (*warnings, *self._card_warnings, *more)
            answer = self._answer(sentence.text, asked, one, searched, notes)
            yield replace(answer, status=status, confidence=known, hits=kept)

    def _asked(self, **asked: Any) -> Request:
        """A request for what sentences describe."""
        return Request(**asked, hub_corrected=self._comparing.hub_corrected)

    def rivals(self, query: str, *, folder: str | Selection | None = None) -> RankedScores:
        """The moments that a sentence may mean, by which percentages are worked out.

        Args:
            query: a sentence or a few words.
            folder: only videos at or below this path.
        """
        text = clean(query)
        (features,) = self._sentences.features([text])
        codes = self._comparing.texts(features)
        asked = self._asked(limit=1, per_video=1, merge_copies=True, folder=_below(folder))
        near = self._candidates.near_any(codes, CANDIDATES, asked)
        if not near.windows.keys:
            raise StoreError(why_nothing(asked, self.store.count()))
        sentence = EncodedQuery(text=text, features=features, codes=codes)
        return self._rivals(sentence, near, self.store.count(asked.folder))

    def drift(self, answers: Sequence[Answer]) -> tuple[str, ...]:
        """A warning where many answers are unlike those of the queries that were judged."""
        known = [answer.confidence for answer in answers if answer.confidence is not None]
        return () if self._card is None else drift(self._card, known)

    def all_scores(self, queries: Sequence[str], *, progress: Progress | None = None) -> Gallery:
        """The score of every sentence with every indexed window.

        Args:
            queries: sentences.
            progress: hears how many windows are scored.
        """
        if not queries:
            raise QueryError("There is no query to score; give at least one.")
        texts = [clean(query) for query in queries]
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        codes = [self._comparing.texts(self.encoder.encode_texts(part)) for part in parts]
        return every_window(self.store, self._comparing, codes, progress or Silent())

    def like(
        self,
        video: str | Path,
        *,
        at: float | None = None,
        limit: int = 10,
        folder: str | Selection | None = None,
        per_video: int | None = None,
        merge_copies: bool = True,
    ) -> Answer:
        """Moments that look like a video or photo, or like what a video shows at one time.

        The other arguments are those of `search`.

        Args:
            video: any video file, photo or folder of frames, indexed or not.
            at: seconds; other moments of the same video count too. None takes the whole video,
                whose best-fitting window counts, and looks in the other ones.
        """
        began = time.perf_counter()
        path = absolute(video)
        asked = Request(
            limit=limit,
            per_video=per_video,
            merge_copies=merge_copies,
            folder=_below(folder),
            like=path,
            at=at,
        )
        looks = MeanFrames()
        candidates = Candidates(self.store, looks)
        vectors = looks.videos(asked_windows(self.store, self.encoder, path, at))
        near = candidates.near_any(vectors, CANDIDATES, asked)
        ranking = candidates.with_hits(asked, near)
        searched = self.store.count(asked.folder)
        name = printable(path) + (f"@{at:g}" if at is not None else "")
        answer = self._answer(name, asked, ranking, searched, ranking.notes)
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

    def _rivals(self, sentence: EncodedQuery, ranking: Ranking, searched: int) -> RankedScores:
        apart = ranking.looked.copies.without(ranking.moments, _FOLDED)
        background = self._comparing.background(sentence.codes)
        return RankedScores(
            moments=apart,
            about=QueryContext(
                background=None if background is None else background.astype(np.float64),
                words=word_counts([sentence.text]),
                videos=searched,
            ),
        )

    def _answer(
        self,
        query: str,
        asked: Request,
        ranking: Ranking,
        searched: int,
        warnings: tuple[str, ...],
    ) -> Answer:
        """Hits as an answer without percentages; how long it took is not known yet."""
        warnings = (*warnings, *self.store.trouble())
        if not ranking.hits:
            warnings = (*warnings, why_nothing(asked, searched or self.store.count()))
        return Answer(
            query=query,
            hits=ranking.hits,
            status="not calibrated",
            model=self.encoder.name,
            searched=searched,
            seconds=0.0,
            warnings=warnings,
        )


def _below(path: str | Selection | None) -> Selection | None:
    return path if path is None or isinstance(path, VideoSet) else absolute(path)

"""A sentence in, an answer out."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from sureshot.errors import QueryError, StoreError, option
from sureshot.library import confidence, query_checks, video_list
from sureshot.library.file_names import FileNames
from sureshot.library.ranking import Candidates, Moment, Query, Ranking
from sureshot.library.results import Answer, Description, Descriptions, NameMatch
from sureshot.library.spelling import speller
from sureshot.library.words import Words
from sureshot.media.discover import Source, discover, frame_files
from sureshot.media.lines import Line
from sureshot.models.encoders.base import (
    Encoder,
    FrameFeatures,
    TextFeatures,
    VideoFeatures,
    shares,
    stack,
)
from sureshot.models.hub_bank import bank_of
from sureshot.models.load import load_searchable
from sureshot.models.similarity import MeanFrames, Similarity, similarity_for
from sureshot.paths import IndexPlace, absolute, absolute_model, as_list, index_place
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings, StoredWindows, VideoRecord
from sureshot.store.vector_search import Folders, Selection, VideoSet
from sureshot.text import at_time, counted, other_script, plain, printable
from sureshot.trust.signals import QueryContext, word_counts

if TYPE_CHECKING:
    from PIL import Image

_MOST = 24  # windows of a long video that are looked at
_FOREIGN = "the model doesn't know these words."
_NEGATED = "these show what you asked to leave out."
_NO_SHARES = "coverage", "min", "prior", "present"  # options of answers that have percentages
_SHOWING = "Showing results for “{}”. {} searches for “{}” instead."
_ONLY_NAMES = "Pictures were not searched, as this names a video or folder."
_LONG = 60  # words of a query from which on misspelt ones are not replaced
_WITH_WORDS = 10  # moments of pictures that lines may join, at least
_FOLDED = 20  # moments whose copies are no rivals of theirs
_KEPT = 256  # sentences that are remembered
_TOGETHER = 16  # sentences whose candidates are in memory together, 32 MB of the bundled model


def asked_windows(
    store: Store | IndexSettings, encoder: Encoder, path: Path, at: float | None
) -> VideoFeatures:
    """The windows of a video to look at, from the index or else decoded now.

    ``store`` may be how a video is cut into windows, where there is no index; ``path`` is that of
    any video file, photo or folder of frames. Without a second it is at most 24 windows, evenly
    over the whole video.
    """
    from sureshot.library.encoding import encode_video
    from sureshot.media.video import naming

    source = _source(path)
    stored = None if isinstance(store, IndexSettings) else _stored(store, source)
    if stored is not None:
        start, end, windows = stored.start, stored.end, stored.features
    else:
        settings = store if isinstance(store, IndexSettings) else store.settings
        with naming(path):
            encoded = encode_video(source, settings, encoder, at).windows
        shown = [w.frames for w in encoded]
        windows = stack(
            [FrameFeatures(f, patches=f[:, None][:, :0], backbone=f[:, :0]) for f in shown]
        )
        start = np.array([w.start for w in encoded])
        end = np.array([w.end for w in encoded])
    if at is None:
        spread = np.linspace(0, len(start) - 1, min(len(start), _MOST))
        return windows.part(spread.round().astype(int))
    if not 0 <= at <= end[-1]:
        from sureshot.media.frames import is_photo

        if is_photo(path):
            raise QueryError(f"{printable(path)} is a photo; leave out the time, {at:g} s.")
        last = f"{end[-1]:.2f}".rstrip("0").rstrip(".")
        raise QueryError(f"{printable(path)} is {last} s long; there is nothing at {at:g} s.")
    here = max(int(np.searchsorted(start, at, side="right")) - 1, 0)
    return windows.part(slice(here, here + 1))


def _stored(store: Store, source: Source) -> StoredWindows | None:
    """The windows that the index has of a video; None if it is not indexed or has changed since."""
    record = store.at([source.path]).get(source.path)
    if record is None or not record.windows or record.mtime_ns != source.mtime_ns:
        return None
    windows = store.windows_of(source.path)
    # Another process may have removed it since.
    return windows if len(windows.keys) == record.windows else None


def save_picture(picture: "Image.Image | UInt8[np.ndarray, ...]", file: Path) -> Path:
    """Write a picture into a file; QueryError if it is none."""
    from PIL import Image, ImageOps

    try:
        if not isinstance(picture, Image.Image):
            colours = picture.shape[2:] if picture.ndim > 1 else (0,)
            if picture.dtype != np.uint8 or colours not in ((), (3,), (4,)):
                raise ValueError
            picture = Image.fromarray(picture)
        if picture.mode in ("I", "F"):  # which number is white is not said
            raise QueryError(f"A picture of mode {picture.mode} has no range; convert it to RGB.")
        image = ImageOps.exif_transpose(picture)
        # What has 16 bits is left to the reader of files, who knows how to scale it.
        (image if image.mode.startswith("I;16") else image.convert("RGBA")).save(file)
    except (TypeError, ValueError, AttributeError, KeyError, OSError) as error:
        kind = getattr(picture, "dtype", type(picture).__name__)
        shape = f" of shape {picture.shape}" if hasattr(picture, "shape") else ""
        raise QueryError(
            f"What to look for is {kind}{shape}; give a file, an image of Pillow, or an array of "
            "bytes (uint8) of height x width, or height x width x 3."
        ) from error
    return file


def _source(path: Path) -> Source:
    try:
        ordinary = path.is_dir() and not frame_files(path)
    except OSError:
        ordinary = False  # `discover` says why
    # It would search all that is below an ordinary folder.
    found = None if ordinary else next(discover([path]), None)
    if isinstance(found, Source):
        return found
    if found is not None:
        raise QueryError(f"{printable(path)} cannot be read: {found.reason}.")
    raise QueryError(f"{printable(path)} is not a video file or a folder of numbered frames.")


def _ranked(
    video: str | Path,
    texts: Sequence[str],
    at: float | str | None,
    encoder: Encoder,
    similarity: Similarity,
    store: Store | IndexSettings,
) -> Descriptions:
    """Texts ranked by how well they fit a video; ``store`` is that of `asked_windows`."""
    texts, at = as_list(texts), query_checks.seconds(at, "at")
    if not texts:
        raise QueryError("There is no sentence to choose from; give at least one.")
    path = absolute(video)
    cleaned = [query_checks.clean(text) for text in texts]
    features = encoder.encode_texts(cleaned)
    windows = asked_windows(store, encoder, path, at)
    scores = similarity.similarity(similarity.texts(features), similarity.videos(windows)).max(1)
    order = np.argsort(-scores, kind="stable")
    return Descriptions(
        video=path,
        at=at,
        ranked=tuple(
            Description(rank, cleaned[row], float(scores[row])) for rank, row in enumerate(order, 1)
        ),
        status="not calibrated",
        model=encoder.name,
        warnings=query_checks.text_warnings(encoder, cleaned, features),
    )


class Sentences:
    """Encodes sentences for several threads, and remembers the latest of them."""

    def __init__(self, encoder: Encoder, kept: int = _KEPT) -> None:
        self._encoder = encoder
        self._kept = kept
        self._known: dict[str, TextFeatures] = {}  # the latest last
        self._guard = threading.Lock()

    def features(self, texts: Sequence[str]) -> list[TextFeatures]:
        """What the encoder makes of each text, none of them empty; it must not be changed."""
        with self._guard:
            new = list(dict.fromkeys(text for text in texts if text not in self._known))
            if new:
                features = self._encoder.encode_texts(new)
                self._known |= {text: _row(features, row) for row, text in enumerate(new)}
            for text in texts:
                self._known[text] = self._known.pop(text)
            found = [self._known[text] for text in texts]
            for text in list(self._known)[: -self._kept]:
                del self._known[text]
        return found


def _row(features: TextFeatures, row: int) -> TextFeatures:
    """One of several texts, without the padding that the longest of them brought."""
    one, real = features.part([row]), int(features.mask[row].nonzero()[0][-1]) + 1
    return replace(one, words=one.words[:, :real], mask=one.mask[:, :real])


def open_index(
    db: IndexPlace = None, *, model: str | Path | None = None, device: str | None = None
) -> "Searcher":
    """Open an index for searching.

    Args:
        db: folder or object-storage URI; None is the default index of this user. One that is open
            comes back.
        model: the encoder or the checkpoint, needed only where the recorded one has moved (a local
            folder); it must be the one that wrote the index.
        device: torch device; None takes a GPU where there is one.

    Raises:
        StoreError: no index, damaged, too new, or written by another model.
        ModelError: the index's model cannot be loaded here.
    """
    if isinstance(db, Searcher):
        return db
    store = Store.open(index_place(db), cached=True)
    encoder = load_searchable(absolute_model(model) if model else store.settings.model, device)
    store.check_model(encoder.name, encoder.fingerprint)
    return Searcher(store, encoder)


def describe(
    video: str | Path,
    texts: Sequence[str],
    *,
    at: float | str | None = None,
    db: IndexPlace = None,
    model: str | Path | None = None,
    device: str | None = None,
) -> Descriptions:
    """Sentences ranked by how well they fit a video; no index is needed.

    Args:
        video: any video file, photo or folder of frames, indexed or not.
        texts: the sentences to choose from, at least one.
        at: seconds, or a clock time such as ``1:30``; None takes the whole video, whose
            best-fitting window counts.
        db: an index whose model compares; None is the default index of this user, where there is
            one and no model is named.
        model: an encoder or a checkpoint; None is that of the index, else ``bundled``.

    Raises:
        SureshotError: the video, the index or the model cannot be read, there is no sentence, or
            ``at`` is outside the video.
    """
    from sureshot.library.encoding import as_trained

    if db is not None or (model is None and Store.exists(index_place())):
        return open_index(db, model=model, device=device).describe(video, texts, at=at)
    name = absolute_model(model) if model else IndexSettings().model
    encoder = load_searchable(name, device)
    settings = as_trained(IndexSettings(model=name), encoder)
    how = similarity_for(encoder, bank_of(encoder.name, encoder.fingerprint))
    return _ranked(video, texts, at, encoder, how, settings)


class Searcher:
    """Searches one index with the encoder that wrote it.

    `len` is the number of its videos, iterating gives what is known of each, and a ``with`` block
    gives the memory back that searches took. Pickled, it is opened again where it is unpickled.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.encoder = encoder
        # The hub correction of the model, if it has one, which is taken off scores of sentences.
        self.bank = bank_of(encoder.name, encoder.fingerprint)
        self._comparing = similarity_for(encoder, self.bank)
        self._turn = threading.Lock()
        self._use(store)
        self.refresh_card()

    @property
    def location(self) -> str:
        """Where the index is."""
        return self.store.location

    def _use(self, store: Store) -> None:
        self.store = store
        self._sentences = Sentences(self.encoder)
        self._candidates = Candidates(store, self._comparing)
        self._names, self._words = FileNames(store), Words(store)
        self._selected: tuple[Any, Selection | None] = None, None  # by the latest filter

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(open_index, self.store.location, model=self.encoder.name), ()

    def __enter__(self) -> "Searcher":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the memory that searches took; the next one takes it again."""
        store = Store.open(self.store.location, cached=True)
        store.check_model(self.encoder.name, self.encoder.fingerprint)
        self._use(store)

    def _look(self) -> None:
        """Open the index again where another is in its place; of another model it is refused."""
        if not self.store.is_remote and self.store.is_replaced():
            self.close()

    def __len__(self) -> int:
        return self.store.count_videos()

    def __bool__(self) -> bool:
        return True  # of an index without videos as well

    def __iter__(self) -> Iterator[VideoRecord]:
        return iter(video_list.split_failed(self.store.videos())[0])

    def videos(self, *, sort: str = "path", **wanted: Any) -> video_list.VideoPage:
        """All videos, or those that fit, failed ones among them.

        Args:
            sort: by ``path``, or by ``date``, the newest first.
            wanted: ``folder``, ``longer``, ``shorter``, ``since`` and ``until``, as in `search`.
        """
        return video_list.videos(self.store, sort=sort, **wanted)

    def refresh_card(self) -> None:
        """Look for the calibration card again, after one was made or deleted."""
        self._found_card: tuple[Any, confidence.FoundCard] = None, (None, ())

    def _current_card(self) -> confidence.FoundCard:
        """The card as `find_card` returns it; another process may have written or deleted it."""
        # The stamp is the older of the two, so a card that is written meanwhile is read next time.
        stamp, (known, found) = confidence.card_stamp(self.store.location), self._found_card
        if known != stamp:
            model, fingerprint = self.encoder.name, self.encoder.fingerprint
            found = confidence.find_card(self.store.location, model, fingerprint, self.bank)
            self._found_card = stamp, found
        return found

    def learned_from(self) -> str:
        """What percentages are learned from, or why there are none."""
        card, warnings = self._current_card()
        if card is None:
            return "; ".join(("not calibrated", *warnings))
        return confidence.describe_card(card)

    def __repr__(self) -> str:
        try:
            videos, windows = self.store.count_videos(), self.store.count()
            size = f"{counted(videos, 'video')} in {counted(windows, 'window')}"
        except StoreError:  # a debugger asks as well
            size = "cannot be read"
        return f"{plain(self.store.location)}: {size}, model {plain(self.encoder.name)}"

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        folder: Folders | VideoSet | None = None,
        longer: float | str | None = None,
        shorter: float | str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        sort: video_list.Sort = "best",
        per_video: int | None = None,
        merge_copies: bool = True,
        correct: bool = True,
        coverage: float = 0.9,
        min: float = 0.0,
        prior: float | None = None,
        present: bool = False,
    ) -> Answer:
        """Moments that a sentence describes, best first.

        Args:
            limit: how many moments at most.
            folder: only videos at or below this path, or in folders of this name, or of any in a
                list; or a set of videos.
            longer, shorter: only videos that last so long or longer, and so long or less: seconds,
                or a clock time such as ``1:30``.
            since, until: only videos recorded on this day or later, and on this day or before: a
                date, or text such as ``2024-05-31``, ``2024-05`` or ``2024``. Where neither a file
                nor its name says when it was recorded, its last change counts.
            sort: order of the hits: ``best`` first, or the same hits by ``date``, the newest first;
                `Hit.rank` stays.
            per_video: moments of one video at most; None takes 3, and more only where the other
                videos do not fill the answer.
            merge_copies: whether copies of a video share a row.
            correct: whether misspelt words are replaced by the nearest that the model knows, and
                only names are searched where it knows no word and names match.
            coverage: share of queries whose set of plausible moments is to hold a right one, where
                percentages were learned.
            min: leave out hits that are right with a lower probability than this.
            prior: share of searches that are for what is in the library, above 0 and at most 1,
                in place of `SURESHOT_PRIOR`; None, where that is not set, is one half, moved by
                what was judged of the library.
            present: whether it is known to be there, which is a prior of 1.

        Raises:
            QueryError: an empty query, or a number out of its range.
            StoreError: the index cannot be read.
        """
        options = dict(locals())  # at once: a debugger adds names to them
        del options["self"], options["query"]
        return next(self.search_many([query], **options))

    async def asearch(self, query: str, **options: Any) -> Answer:
        """What `search` returns, found in a thread; of several at once one after another."""
        import asyncio

        def search() -> Answer:
            with self._turn:
                return self.search(query, **options)

        return await asyncio.to_thread(search)

    def search_many(
        self,
        queries: Sequence[str],
        *,
        correct: bool = True,
        sort: video_list.Sort = "best",
        **options: Any,
    ) -> Iterator[Answer]:
        """What `search` finds for each of many sentences, sixteen from one pass over the index.

        The options are those of `search`.
        """
        video_list.check_sort(sort)
        self._look()
        self._select(options)
        if options.get("prior") is None:  # pictures and words alike
            options["prior"] = query_checks.usual_prior()
        queries = as_list(queries)
        for first in range(0, len(queries), _TOGETHER):
            began = time.perf_counter()
            texts = [query_checks.clean(text) for text in queries[first : first + _TOGETHER]]
            phrases = [self._words.phrase(text) for text in texts]
            meant = [
                self._corrected(text) if correct and not phrase else text
                for text, phrase in zip(texts, phrases, strict=True)
            ]
            found = zip(self._queries(meant, **options), texts, phrases, strict=True)
            asked = [self._named(one, text, phrase, correct) for one, text, phrase in found]
            # A line joins the same moment whether that is asked for among three hits or ten.
            least = _WITH_WORDS if self._words.are_there() else 0
            near = [
                one if one.query.skips_pictures else self._candidates.with_hits(one, least)
                for one in self._candidates.near_each(asked)
            ]
            searched = self.store.count(asked[0].folder)
            rated = [self._words.added(self._rated(one, searched), one.query) for one in near]
            answers = [_finished(answer, one) for answer, one in zip(rated, asked, strict=True)]
            answers = self._dated(answers, sort)
            seconds = (time.perf_counter() - began) / len(asked)
            yield from (replace(answer, seconds=seconds) for answer in answers)

    def rivals(self, queries: Sequence[str]) -> Iterator[tuple[list[Moment], QueryContext]]:
        """The moments that each sentence may mean, best first, and what else percentages depend on.

        Sixteen sentences take one pass over the index. Every moment of a library counts, also
        several of one film; those that show the same pictures as a better one do not. They depend
        on the query and the library alone, not on how many hits of them are shown, so a hit has the
        same percentage in every answer.
        """
        searched = self.store.count()
        for first in range(0, len(queries), _TOGETHER):
            texts = map(query_checks.clean, queries[first : first + _TOGETHER])
            for ranking in self._candidates.near_each(self._queries([*texts])):
                if not ranking.moments:
                    raise StoreError(ranking.query.why_nothing(searched))
                yield _apart(ranking), self._context(ranking.query, searched)

    def like(
        self,
        video: "str | Path | Image.Image | UInt8[np.ndarray, ...]",
        *,
        at: float | str | None = None,
        sort: video_list.Sort = "best",
        **options: Any,
    ) -> Answer:
        """Moments that look like a video or photo, or like what a video shows at one time.

        Args:
            video: any video file, photo or folder of frames, indexed or not; or a picture: an image
                of Pillow, or an array of bytes, grey, RGB or with alpha.
            at: seconds, or a clock time such as ``1:30``; other moments of the same video count
                too. None takes the whole video, whose best-fitting window counts, and looks in
                the other ones.

        Those of `search` that choose videos and hits are taken too: ``limit``, ``folder``,
        ``longer``, ``shorter``, ``since``, ``until``, ``sort``, ``per_video``, ``merge_copies``.
        """
        if not isinstance(video, str | Path):
            if at is not None:
                raise QueryError("A picture has no seconds; leave out at.")
            with tempfile.TemporaryDirectory(prefix="sureshot-") as folder:
                file = save_picture(video, Path(folder, "picture.png"))
                return replace(self.like(file, at=at, sort=sort, **options), query="a picture")
        began = time.perf_counter()
        video_list.check_sort(sort)
        at = query_checks.seconds(at, "at")
        for name in _NO_SHARES:
            if name in options:
                raise QueryError(
                    f"{option(name)} is about percentages, which an answer to a photo or video has "
                    "none of; leave it out."
                )
        self._look()
        self._select(options)
        path = absolute(video)
        looks = MeanFrames()
        asked = Query(text=at_time(path, at), codes=None, like=path, at=at, **options)
        windows = asked_windows(self.store, self.encoder, path, at)
        asked = replace(asked, codes=looks.videos(windows))
        candidates = Candidates(self.store, looks)
        ranking = candidates.with_hits(candidates.near(asked))
        (answer,) = self._dated([self._answer(ranking, self.store.count(asked.folder))], sort)
        return replace(answer, seconds=time.perf_counter() - began)

    def describe(
        self, video: str | Path, texts: Sequence[str], *, at: float | str | None = None
    ) -> Descriptions:
        """Sentences ranked by how well they fit a video, see `describe` in this module."""
        self._look()
        ranked = _ranked(video, texts, at, self.encoder, self._comparing, self.store)
        return self._words.described(ranked)

    def lines(self, video: str | Path) -> list[Line]:
        """The indexed words of a video in the order of time."""
        return self.store.lines.of(absolute(video))

    def _select(self, options: dict[str, Any]) -> None:
        """Replace the options of a `VideoFilter` by the videos that it selects."""
        names = [one.name for one in fields(video_list.VideoFilter)]
        chosen = {name: options.pop(name, None) for name in names}
        folder = chosen["folder"]
        if not isinstance(folder, VideoSet | str | Path | None):
            chosen["folder"] = folder = tuple(folder)
        wanted = video_list.VideoFilter(**chosen)
        # To read all videos takes longer than the search: for the same filter once is enough.
        several = folder if isinstance(folder, tuple) else (folder,)
        place = [absolute(one) for one in several if isinstance(one, str | Path)]
        state = None
        with contextlib.suppress(StoreError):  # of which the answer warns
            state = self.store.state()
        now, (known, found) = (state, wanted, place), self._selected
        if state is None or known != now:
            found = wanted.videos(self.store)
            self._selected = now, found
        options["folder"] = found

    def _dated(self, answers: Sequence[Answer], sort: video_list.Sort) -> list[Answer]:
        """Answers whose hits know what the index does of their videos, in the order asked for."""
        known: dict[Path, VideoRecord] = {}
        with contextlib.suppress(StoreError):  # of which the answers warn
            known = self.store.at({hit.path for answer in answers for hit in answer})
        dates: dict[Path, dict[str, Any]] = {
            path: {"date": record.date.text, "date_from": record.date.source}
            for path, record in known.items()
        }
        rate, done = self.store.settings.frame_rate, []
        for answer in answers:  # another process may have removed videos since
            hits = [replace(h, frame_rate=rate, **dates.get(h.path, {})) for h in answer]
            if sort == "date" and len(hits) > 1:
                places = {path: video_list.newest_first(record) for path, record in known.items()}
                hits.sort(key=lambda hit: (places.get(hit.path, (0.0, hit.path)), hit.rank))
                answer = answer.noted(video_list.by_date([hit.date_from for hit in hits]))
            done.append(replace(answer, hits=tuple(hits)))
        return done

    def _queries(self, texts: Sequence[str], **options: Any) -> list[Query]:
        """Cleaned sentences as they are searched for."""
        Query("", None, **options)  # wrong options are refused before anything is encoded
        return [
            Query(
                text=text,
                codes=self._comparing.texts(features),
                warnings=query_checks.text_warnings(self.encoder, [text], features),
                **options,
            )
            for text, features in zip(texts, self._sentences.features(texts), strict=True)
        ]

    def _corrected(self, text: str) -> str:
        """A cleaned text without misspelt words, as far as it is known what was meant."""
        known = self.encoder.vocabulary
        foreign = other_script(text) or query_checks.looks_foreign(text)
        # Of a long text each word takes milliseconds, and others wait for their turn.
        if known is None or foreign or text.count(" ") >= _LONG:
            return text
        return speller(known).corrected(
            text,
            lambda word: self._names.has(word) or self._words.has(word),
            self._words.spelt_like,
        )

    def _named(self, asked: Query, typed: str, phrase: str, correct: bool) -> Query:
        """A query with the names that match it, and with what to know about its words.

        Of a phrase in words it does not matter what the model knows.
        """
        names, found = self._names.matches(typed, asked.folder)
        unknown = query_checks.is_foreign(self.encoder, asked.text)
        is_name = _is_name(typed, names)
        only = correct and found > 0 and (unknown or is_name)
        warnings = [] if phrase else [*asked.warnings]
        if only:
            dated = [one for one in asked.warnings if query_checks.RECORDED in one and not is_name]
            warnings = [_ONLY_NAMES, *dated]
        if typed == asked.text:
            typed = ""
        else:
            warnings.insert(0, _SHOWING.format(plain(asked.text), option("correct", False), typed))
        return replace(
            asked,
            phrase=phrase,
            typed=typed,
            names=names,
            names_found=found,
            only_names=only,
            warnings=tuple(warnings),
        )

    def _context(self, query: Query, searched: int) -> QueryContext:
        """What percentages depend on besides the scores."""
        background, texts = self._comparing.background(query.codes), [query.text]
        return QueryContext(
            background=None if background is None else background.astype(np.float64),
            words=word_counts(texts),
            common=shares(self.encoder.vocabulary, texts),
            videos=searched,
        )

    def _rated(self, ranking: Ranking, searched: int) -> Answer:
        """The answer to a sentence, with its percentages where there are some."""
        query, answer = ranking.query, self._answer(ranking, searched)
        card, warnings = self._current_card()
        if card is None:
            return answer.noted(*warnings)
        if not answer.hits:
            return answer
        # Captions and judgements alike are about words that the model knows.
        if query_checks.is_foreign(self.encoder, query.text):
            return replace(answer, unrated=_FOREIGN)
        if query_checks.is_negated(query.text):
            return replace(answer, unrated=_NEGATED)
        rated = confidence.judged(
            card,
            answer,
            [moment.score for moment in _apart(ranking)],
            self._context(query, searched),
            coverage=query.coverage,
            prior=query.prior,
            whole=ranking.whole,
        )
        return rated.noted(*warnings)

    def _answer(self, ranking: Ranking, searched: int) -> Answer:
        """Hits as an answer without percentages; how long it took is not known yet."""
        query, folder = ranking.query, ranking.query.folder
        notes = [folder.note] if isinstance(folder, VideoSet) and folder.note else []
        warnings = [*query.warnings, *notes, *ranking.notes, *self.store.trouble()]
        if not ranking.hits and not query.skips_pictures:
            warnings.append(query.why_nothing(searched or self.store.count()))
        return Answer(
            query=query.text,
            hits=ranking.hits,
            typed=query.typed,
            names=query.names,
            names_found=query.names_found,
            status="not calibrated",
            model=self.encoder.name,
            searched=searched,
            seconds=0.0,
            warnings=tuple(warnings),
        )


def _apart(ranking: Ranking) -> list[Moment]:
    return ranking.looked.copies.folded(ranking.moments, _FOLDED)


def _is_name(typed: str, names: Sequence[NameMatch]) -> bool:
    """Whether a query is the name of a video: with its ending, or one with a number, as cameras do.

    ``red`` may mean the colour where there is a ``red.mp4``.
    """
    asked = typed.strip().casefold()
    paths = [name.path for name in names if name.videos is None]
    numbered = any(map(str.isdigit, asked)) and asked in [path.stem.casefold() for path in paths]
    return numbered or asked in [path.name.casefold() for path in paths]


def _finished(answer: Answer, asked: Query) -> Answer:
    """An answer of pictures and words with what was asked about its percentages."""
    if answer.hits and answer.confidence is None and (asked.min or asked.present):
        named = option("min") if asked.min else option("present", True)
        return answer.noted(f"There are no percentages here, so {named} changes nothing.")
    given = confidence.given_present(answer) if asked.present else answer
    return confidence.likely(given, asked.min)

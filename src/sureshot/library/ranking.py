"""The windows that a query may mean, scored exactly, and the hits among them."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from sureshot.errors import QueryError, option
from sureshot.library.results import FrameScore, Hit
from sureshot.media.discover import is_gone
from sureshot.media.signature import Patterns
from sureshot.models.encoders.base import TextFeatures, VideoFeatures
from sureshot.models.similarity import Similarity
from sureshot.progress import Progress
from sureshot.store.index import Store
from sureshot.store.rows import StoredWindows, VideoRecord, union
from sureshot.store.vector_search import Selection, VideoSet
from sureshot.text import counted, printable

_GAP = 1.0  # seconds between windows that still count as adjacent
_CLOSE = 0.2  # a neighbour joins if it lies within this share of the best-to-median distance
_NOISE = 0.005  # scores this close are alike, however close all the others are, too


@dataclass(slots=True)
class Moment:
    """Adjacent windows of one video.

    Attributes:
        best: row of its best window.
        rows: rows of all its windows in the order of time, the best among them.
        score: score of the best window.
        copies: videos folded under this one.
    """

    path: Path
    best: int
    rows: list[int]
    start: float
    end: float
    score: float
    copies: list[Path] = field(default_factory=list)

    def alone(self) -> "Moment":
        """The same moment without copies."""
        return replace(self, copies=[])


def join_adjacent(
    paths: Sequence[Path],
    start: Float[np.ndarray, " windows"],
    end: Float[np.ndarray, " windows"],
    scores: Float[np.ndarray, " windows"],
    *,
    per_video: int | None,
) -> list[Moment]:
    """Moments, best first, each grown from a window to its neighbours that score nearly as well.

    "Nearly" is relative to this query's own spread, since scores of different queries do not
    compare: a neighbour joins if it lies within a fifth of the distance from the best score to the
    median one. So a long shot comes out as one range, and a scene beside it stays out. Where all
    windows score alike, as in a library of one shot, differences below 0.005 do not count.

    Args:
        paths: the video of each window.
        scores: similarity of each window to the query, higher is better.
        per_video: moments kept from one video; None keeps all.
    """
    if len(paths) == 0:
        return []
    slack = max(_CLOSE * float(scores.max() - np.median(scores)), _NOISE)
    by_video: dict[Path, list[int]] = {}
    for row in np.argsort(start, kind="stable").tolist():
        by_video.setdefault(paths[row], []).append(row)
    starts, ends, values = start.tolist(), end.tolist(), scores.tolist()
    moments = []
    for path, rows in by_video.items():
        for best, near in _grow(rows, starts, ends, values, slack, per_video or len(rows)):
            moments.append(
                Moment(
                    path=path,
                    best=best,
                    rows=near,
                    start=starts[near[0]],
                    end=max(ends[row] for row in near),
                    score=values[best],
                )
            )
    # Ties in the order of paths and times, so that an answer never depends on the store's order.
    return sorted(moments, key=lambda m: (-m.score, m.path, m.start))


def _grow(
    rows: list[int],
    start: Sequence[float],
    end: Sequence[float],
    scores: Sequence[float],
    slack: float,
    most: int,
) -> list[tuple[int, list[int]]]:
    """Best window and windows of each moment of one video; ``rows`` are in the order of time."""
    if len(rows) == 1:
        return [(rows[0], rows)]
    free = set(range(len(rows)))
    met = [start[two] - end[one] <= _GAP for one, two in pairwise(rows)]
    grown: list[tuple[int, list[int]]] = []
    while free and len(grown) < most:
        seed = max(free, key=lambda i: (scores[rows[i]], -i))
        enough = scores[rows[seed]] - slack
        fit = {i for i in free if scores[rows[i]] >= enough}
        low = high = seed
        while low - 1 in fit and met[low - 1]:
            low -= 1
        while high + 1 in fit and met[high]:
            high += 1
        free -= set(range(low, high + 1))
        grown.append((rows[seed], rows[low : high + 1]))
    return grown


_COPY = 0.75  # share of frames that must be found again in another video to call it a copy


class Copies:
    """Tells moments that show the same pictures, comparing any two windows once.

    Only another video can be a copy: a shot that one video repeats stays two moments.

    Args:
        paths: the video of each window.
        signatures: signatures of the frames of each window, padding zero.
    """

    def __init__(
        self, paths: Sequence[Path], signatures: UInt8[np.ndarray, "windows frames 288"]
    ) -> None:
        numbers = {path: number for number, path in enumerate(dict.fromkeys(paths))}
        self._video = np.array([numbers[path] for path in paths], int)
        self._signatures = signatures
        self._frames: Patterns | None = None
        self._telling = np.zeros(0)
        self._found: dict[int, Bool[np.ndarray, "windows frames"]] = {}
        self._shown: dict[tuple[int, ...], Bool[np.ndarray, " windows"]] = {}

    def merge(self, moments: Sequence[Moment], most: int) -> list[Moment]:
        """The first ``most`` moments, with later ones that show the same pictures under them.

        Args:
            moments: moments of these windows, best first.
            most: moments kept.
        """
        originals = self._originals(moments, most)
        kept: dict[int, Moment] = {}
        for place, moment in enumerate(moments):
            if place in originals:
                copies = kept[originals[place]].copies
                if moment.path not in copies:
                    copies.append(moment.path)
            elif len(kept) < most:
                kept[place] = moment.alone()
        return list(kept.values())

    def without(self, moments: Sequence[Moment], most: int) -> list[Moment]:
        """All moments but those that `merge` would put under the first ``most``."""
        originals = self._originals(moments, most)
        return [moment for place, moment in enumerate(moments) if place not in originals]

    def _originals(self, moments: Sequence[Moment], most: int) -> dict[int, int]:
        """The place of the moment of which each copy is one, by the place of the copy."""
        originals: dict[int, int] = {}
        best = np.array([moment.best for moment in moments], int)
        kept = 0
        self._look([row for moment in moments[:most] for row in moment.rows])
        for place, moment in enumerate(moments):
            if kept == most:
                break
            if place not in originals:
                kept += 1
                for later in np.flatnonzero(self._showing(moment)[best[place + 1 :]]).tolist():
                    originals.setdefault(place + 1 + later, place)
        return originals

    def _showing(self, moment: Moment) -> Bool[np.ndarray, " windows"]:
        """Which windows show what a moment shows.

        All windows of the moment count: of two copies of a long shot another one may score best.
        """
        if (known := self._shown.get(tuple(moment.rows))) is not None:
            return known
        self._look(moment.rows)
        found = np.any([self._found[row] for row in moment.rows], axis=0).sum(-1)
        copies = (found >= _COPY * self._telling) & (self._telling > 0)
        if len(moment.rows) == 1:  # of longer ones there may be very many
            self._shown[tuple(moment.rows)] = copies
        return copies

    def _look(self, rows: Sequence[int]) -> None:
        """Compare all windows with those of some that were not compared yet."""
        rows = list(dict.fromkeys(row for row in rows if row not in self._found))
        if not rows:
            return
        if self._frames is None:
            frames = Patterns(self._signatures)
            self._telling = frames.telling.sum(-1)
            self._frames = frames
        one, other = self._frames.alike(rows)
        size = self._signatures.shape[1]
        apart = self._video[one // size] != self._video[other // size]
        one, other = one[apart], other[apart]
        place = np.zeros(len(self._video), int)
        place[rows] = np.arange(len(rows))
        found = np.zeros((len(rows), *self._signatures.shape[:2]), bool)
        found[place[other // size], one // size, one % size] = True
        self._found |= dict(zip(rows, found, strict=True))


class WindowScores:
    """Windows with their codes, those of their frames, and their copies, each worked out once.

    Args:
        windows: the windows; nobody may change them.
        how: how they are compared with queries.
    """

    def __init__(self, windows: StoredWindows, how: Similarity) -> None:
        self.windows = windows
        self._how = how
        self._guard = threading.Lock()
        self._parts: list[Any] = []
        self._places: dict[int, tuple[int, int]] = {}  # part and first frame of a window

    @cached_property
    def copies(self) -> Copies:
        """Which of the windows show the same pictures."""
        return Copies(self.windows.paths, self.windows.signatures)

    @cached_property
    def _codes(self) -> Any:
        return self._how.videos(self.windows.features)

    def scores(self, texts: Any) -> Float[np.ndarray, " windows"]:
        """Score of each window with that of some coded texts which fits it best."""
        return self._how.similarity(texts, self._codes).max(0)

    def frame_scores(self, texts: Any, rows: Sequence[int]) -> list[Float[np.ndarray, " frames"]]:
        """Scores of the real frames of some windows, each as if it were the whole video."""
        with self._guard:
            self._code([row for row in rows if row not in self._places])
        places = [self._places[row] for row in rows]
        scores = {
            part: self._how.similarity(texts, self._parts[part]).max(0)
            for part in {part for part, _ in places}
        }
        counts = self.windows.mask[list(rows)].sum(1).tolist()
        return [
            scores[part][first : first + count]
            for (part, first), count in zip(places, counts, strict=True)
        ]

    def _code(self, rows: Sequence[int]) -> None:
        """Code the frames of windows that are asked for the first time."""
        if not rows:
            return
        chosen = list(rows)
        mask = self.windows.mask[chosen]
        single = self.windows.frames[chosen][mask][:, None]
        codes = self._how.videos(VideoFeatures.of_frames(single, np.ones((len(single), 1), bool)))
        counts = mask.sum(1)
        firsts = np.cumsum(counts) - counts
        self._places |= {
            row: (len(self._parts), first) for row, first in zip(rows, firsts.tolist(), strict=True)
        }
        self._parts.append(codes)


_LOOKED_AT = 2000  # windows; they take memory with all their frames


@dataclass(frozen=True, slots=True)
class Request:
    """What a search was asked for, beside its query.

    Attributes:
        like: the video that more like it is looked for; None for a sentence.
        at: seconds of the moment in that video; None for the whole of it.
        hub_corrected: whether candidates are chosen by scores less the model's hub correction.
    """

    limit: int
    per_video: int | None
    merge_copies: bool
    folder: Selection | None = None
    like: Path | None = None
    at: float | None = None
    hub_corrected: bool = False

    def __post_init__(self) -> None:
        for name in ("limit", "per_video"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise QueryError(f"{name} is {value}; it must be at least 1.")

    @property
    def without(self) -> Path | None:
        """The video that is left out whole."""
        return self.like if self.at is None else None

    @property
    def most(self) -> int:
        """How many windows are looked at, at most; more of them are copies than it is worth."""
        return max(_LOOKED_AT, 10 * self.limit)

    def is_asked(self, moment: Moment) -> bool:
        """Whether a moment is the very one that more like it is looked for."""
        at = self.at
        return at is not None and moment.path == self.like and moment.start <= at <= moment.end


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The windows nearest to a query, and the hits among them.

    Attributes:
        looked: the windows.
        texts: the codes of the query.
        scores: their exact scores.
        moments: their moments, best first.
        wanted: how many windows were asked for.
        whole: whether there are no others.
        hits: the hits, once they were chosen, perhaps from more windows than these.
        notes: why they are fewer than were asked for, where they are.
    """

    looked: WindowScores
    texts: Any
    scores: Float[np.ndarray, " windows"]
    moments: list[Moment]
    wanted: int
    whole: bool
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, looked: WindowScores, texts: Any, wanted: int, *, whole: bool) -> "Ranking":
        """Score and rank windows."""
        scores, found = looked.scores(texts), looked.windows
        moments = join_adjacent(found.paths, found.start, found.end, scores, per_video=None)
        return cls(looked, texts, scores, moments, wanted, whole)

    @property
    def windows(self) -> StoredWindows:
        """The windows."""
        return self.looked.windows


def check_shares(coverage: float, min: float) -> None:
    """Check what a search asks of percentages."""
    if not 0 < coverage < 1:
        raise QueryError(f"coverage is {coverage}; it must be between 0 and 1, such as 0.9.")
    if not 0 <= min < 1:
        raise QueryError(f"min is {min}; it must be 0 or more and below 1, such as 0.2.")


def why_few(asked: Request, hits: int, ranking: Ranking, left_out: bool) -> list[str]:
    """Why an answer has fewer hits than were asked for, though there may be more moments.

    Args:
        asked: the request.
        hits: how many there are.
        ranking: windows that were looked at.
        left_out: whether a video has more moments than it may give.

    Returns:
        One sentence, or none where there are enough, or no more.
    """
    few = f"{counted(hits, 'hit')} of {asked.limit} asked for: "
    if hits >= asked.limit or (ranking.whole and not left_out):
        return []
    if left_out:
        return [f"{few}one video gives at most {asked.per_video} ({option('per_video')})."]
    looked_at = counted(len(ranking.windows.keys), "nearest window")
    return [f"{few}the {looked_at} are copies of these. Look elsewhere with {option('folder')}."]


def why_nothing(asked: Request, windows: int) -> str:
    """Why an answer has no hits, which is never for lack of a good one: there is a nearest."""
    if windows == 0:
        return "Nothing is indexed yet; do that with `sureshot index FOLDER`."
    if isinstance(asked.folder, VideoSet):
        return f"Nothing is indexed {asked.folder}."
    if asked.folder is not None:
        return f"Nothing is indexed at or below {printable(asked.folder)}."
    if asked.at is not None:
        return "Nothing else is indexed than the moment that was asked about."
    return "No other video is indexed."


def best_moments(ranking: Ranking, asked: Request, most: int) -> tuple[list[Moment], bool]:
    """The best moments, at most so many of a video, and whether a video has more of them."""
    seen: Counter[Path] = Counter()
    moments = []
    for moment in ranking.moments:
        if asked.is_asked(moment):
            continue
        seen[moment.path] += 1
        if seen[moment.path] <= most:
            moments.append(moment)
    left_out = max(seen.values(), default=0) > most
    if asked.merge_copies:
        return ranking.looked.copies.merge(moments, asked.limit), left_out
    return moments[: asked.limit], left_out


def scored_hits(moments: Sequence[Moment], ranking: Ranking) -> tuple[Hit, ...]:
    """Moments with a score of its own for each frame, as if that were the whole video.

    Args:
        moments: best first.
        ranking: the windows that they are moments of.
    """
    rows = [row for moment in moments for row in moment.rows]
    scores = dict(zip(rows, ranking.looked.frame_scores(ranking.texts, rows), strict=True))
    times, mask = ranking.windows.times, ranking.windows.mask
    return tuple(
        Hit(
            rank=rank,
            path=moment.path,
            start=moment.start,
            end=moment.end,
            score=moment.score,
            frames=tuple(
                FrameScore(time, score)
                for row in moment.rows
                for time, score in zip(
                    times[row][mask[row]].tolist(), scores[row].tolist(), strict=True
                )
            ),
            copies=tuple(moment.copies),
            missing=is_gone(moment.path),
        )
        for rank, moment in enumerate(moments, 1)
    )


PER_VIDEO = 3  # moments of one video in an answer, so that a long film does not crowd others out
CANDIDATES = 200  # windows scored exactly, at least
# An index of so few windows is kept in memory, and all of them are scored. With 252 windows a
# search takes 23 ms of a core in place of 51, with 553 it takes 38 in place of 65; from 1000 on to
# choose candidates first is as quick.
IN_MEMORY = 600
_GONE = "Files that are gone stay in the index until `sureshot index FOLDER --prune` forgets them."


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQuery:
    """A query with what the encoder and the way of comparing made of it.

    Attributes:
        text: the query, cleaned.
        features: its features.
        codes: its codes.
    """

    text: str
    features: TextFeatures
    codes: Any


class Candidates:
    """Finds the windows that queries may mean.

    Args:
        how: how windows are compared with queries.
    """

    def __init__(self, store: Store, how: Similarity) -> None:
        self._store = store
        self._how = how
        self._every: WindowScores | None = None

    def near_any(self, texts: Any, wanted: int, asked: Request) -> Ranking:
        """The windows nearest to queries any of which may match.

        Args:
            texts: codes of the queries.
            wanted: how many windows for each query.
            asked: what the search was asked for.
        """
        near = [
            self._store.nearest(
                v, wanted, asked.folder, asked.without, hub_corrected=asked.hub_corrected
            )
            for v in self._how.text_vectors(texts)
        ]
        whole = all(len(part.keys) < wanted for part in near)
        return Ranking.of(WindowScores(union(near), self._how), texts, wanted, whole=whole)

    def near_each(self, texts: Sequence[Any], wanted: int, asked: Request) -> list[Ranking]:
        """The windows nearest to each of some sentences, from one pass over the index.

        Args:
            texts: codes of each sentence.
            wanted: how many windows for each.
            asked: what the search was asked for, which leaves no video out.
        """
        every = self._every_window(max(wanted, IN_MEMORY)) if asked.folder is None else None
        if every is not None:
            looked = [every] * len(texts)
        else:
            vectors = np.concatenate([self._how.text_vectors(text) for text in texts])
            near = self._store.finder.nearest_many(
                vectors, wanted, asked.folder, hub_corrected=asked.hub_corrected
            )
            looked = [WindowScores(part, self._how) for part in near]
        return [
            Ranking.of(part, text, wanted, whole=part is every or len(part.windows.keys) < wanted)
            for part, text in zip(looked, texts, strict=True)
        ]

    def with_hits(self, asked: Request, ranking: Ranking) -> Ranking:
        """A ranking with its hits, and notes where there are fewer than asked for.

        More windows are looked at where copies leave too few hits, up to ``asked.most``.
        """
        near, wanted = ranking, max(ranking.wanted, 10 * asked.limit)
        most = asked.per_video or PER_VIDEO
        while True:
            if wanted > near.wanted:
                near = self.near_any(near.texts, wanted, asked)
            kept, left_out = best_moments(near, asked, most)
            if len(kept) >= asked.limit or near.whole or wanted >= asked.most:
                break
            wanted = min(4 * wanted, asked.most)
        while asked.per_video is None and left_out and len(kept) < asked.limit:
            most *= 2
            kept, left_out = best_moments(near, asked, most)
        hits = scored_hits(kept, near)
        notes = why_few(asked, len(hits), near, left_out)
        if any(hit.missing for hit in hits):
            notes.append(_GONE)
        return replace(ranking, hits=hits, notes=tuple(notes))

    def _every_window(self, most: int) -> WindowScores | None:
        """All windows of an index that has so few."""
        windows = self._store.finder.all_windows(most)
        known = self._every
        if windows is None or (known is not None and known.windows is windows):
            return None if windows is None else known
        self._every = WindowScores(windows, self._how)
        return self._every


_AT_ONCE = 2000  # windows held in memory


@dataclass(frozen=True, slots=True)
class Gallery:
    """Scores of some queries with every window of an index.

    Attributes:
        scores: score of each window, higher is better.
        paths: the video of each window, in order; its windows in the order of time.
        start: where each window begins, in seconds.
        end: where it ends, in seconds.
        background: what each text scores with videos that the model brings along; None without.
    """

    scores: Float[np.ndarray, "texts windows"]
    paths: list[Path]
    start: Float[np.ndarray, " windows"]
    end: Float[np.ndarray, " windows"]
    background: Float[np.ndarray, " texts"] | None = None


def every_window(
    store: Store, comparing: Similarity, texts: Sequence[Any], progress: Progress
) -> Gallery:
    """The score of every text with every window, none left out.

    Args:
        comparing: how the index's model compares.
        texts: codes of texts in batches of any size, at least one batch.
        progress: hears how many windows are scored.
    """
    videos = [video for video in store.videos() if video.windows]
    total = sum(video.windows for video in videos)
    queries = comparing.join(texts)
    none = np.zeros((len(comparing.text_vectors(queries)), 0), np.float32)
    scores, starts, ends = [none], [np.zeros(0)], [np.zeros(0)]
    paths: list[Path] = []
    for part in _parts(videos):
        windows = store.windows_in(part)
        codes = comparing.videos(windows.features)
        scores.append(np.concatenate([comparing.similarity(batch, codes) for batch in texts]))
        paths += windows.paths
        starts.append(windows.start)
        ends.append(windows.end)
        progress.update("scored", len(paths), total)
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = sorted(range(len(paths)), key=lambda row: (paths[row], start[row]))
    return Gallery(
        scores=np.concatenate(scores, axis=1)[:, order],
        paths=[paths[row] for row in order],
        start=start[order],
        end=end[order],
        background=comparing.background(queries),
    )


def _parts(videos: Sequence[VideoRecord]) -> Iterator[list[VideoRecord]]:
    """Videos in order, so many at a time that their windows fit into memory."""
    part: list[VideoRecord] = []
    windows = 0
    for video in videos:
        if part and windows + video.windows > _AT_ONCE:
            yield part
            part, windows = [], 0
        part.append(video)
        windows += video.windows
    if part:
        yield part

"""The windows that a query may mean, scored exactly, and the hits among them."""

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, UInt8

from sureshot.errors import QueryError, option
from sureshot.library.query_checks import parse_share
from sureshot.library.results import Copy, FrameScore, Hit, NameMatch, Piece, looked_for
from sureshot.media.discover import is_away, is_gone
from sureshot.media.signature import COPY, Patterns
from sureshot.models.encoders.base import VideoFeatures, mean_pool, unit_vectors
from sureshot.models.similarity import Similarity
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.rows import StoredWindows, union
from sureshot.store.vector_search import Selection, said
from sureshot.text import counted
from sureshot.trust.card import checked_prior

_T = TypeVar("_T")
_GAP = 1.0  # seconds between windows that still count as adjacent
_CLOSE = 0.2  # a neighbour joins if it is within this share of the best-to-median distance
_ASKED = 8  # copies of a hit whose files are looked for
_ROUNDING = 2e-7  # of a score of 1, or of the largest one; two or three steps of single precision
_NOISE = 0.005  # scores this close are alike, however close all the others are, too


@dataclass(slots=True)
class Moment:
    """Adjacent windows of one video."""

    path: Path
    best: int  # row of its best window
    rows: list[int]  # of all its windows in the order of time
    start: float
    end: float
    score: float  # of the best window
    copies: list["Moment"] = field(default_factory=list)  # one per video with the same pictures
    pieces: list["Moment"] = field(default_factory=list)  # of the same scene, in the order of time
    gone: bool = False  # whether it is known that the file is gone

    def from_what_is_there(self) -> "Moment":
        """The same pictures in the first copy whose file is there, where this one's is gone."""
        if not self.copies or not is_gone(self.path):
            return self
        asked = self.copies[:_ASKED]
        there = next((copy for copy in asked if not is_gone(copy.path)), None)
        if there is None:
            return self
        gone = replace(self, copies=[], pieces=[], gone=True)
        others = [gone, *(copy for copy in self.copies if copy is not there)]
        return replace(there, score=self.score, copies=others)


def join_adjacent(
    paths: Sequence[Path],
    start: Float[np.ndarray, " windows"],
    end: Float[np.ndarray, " windows"],
    scores: Float[np.ndarray, " windows"],
) -> list[Moment]:
    """Moments, best first, each grown from a window to its neighbours that score nearly as well.

    "Nearly" is relative to this query's own spread, since scores of different queries do not
    compare: a neighbour joins if it is within a fifth of the distance from the best score to the
    median one, of all windows or of all videos, whichever is lower: a camera that stands still for
    hours may have most of the windows. So a long shot comes out as one range, and the scene after
    it stays out. Where all windows score alike, as in a library of one shot, differences below
    0.005 do not count.
    """
    if len(paths) == 0:
        return []
    usual = min(np.median(scores), _median_of_videos(paths, scores))
    slack = max(_CLOSE * float(scores.max() - usual), _NOISE)
    by_video: dict[Path, list[int]] = {}
    for row in np.argsort(start, kind="stable").tolist():
        by_video.setdefault(paths[row], []).append(row)
    starts, ends, values = start.tolist(), end.tolist(), scores.tolist()
    moments = [
        Moment(
            path=path,
            best=best,
            rows=near,
            start=starts[near[0]],
            end=max(ends[row] for row in near),
            score=values[best],
        )
        for path, rows in by_video.items()
        for best, near in _grow(rows, starts, ends, values, slack)
    ]
    # Ties in the order of paths and times, so that an answer never depends on the store's order.
    return sorted(moments, key=lambda m: (-m.score, m.path, m.start))


def _median_of_videos(paths: Sequence[Path], scores: Float[np.ndarray, " windows"]) -> float:
    """The median score where each video counts the same, however many windows it has."""
    windows, rising = Counter(paths), np.argsort(scores)
    shares = np.cumsum([1 / (windows[paths[row]] * len(windows)) for row in rising.tolist()])
    middle = np.searchsorted(shares, [0.5 - 1e-9, 0.5 + 1e-9])
    return float(scores[rising[middle]].mean())


def _grow(
    rows: list[int],
    start: Sequence[float],
    end: Sequence[float],
    scores: Sequence[float],
    slack: float,
) -> list[tuple[int, list[int]]]:
    """Best window and windows of each moment of one video; ``rows`` are in the order of time."""
    free = set(range(len(rows)))
    met = [start[two] - end[one] <= _GAP for one, two in pairwise(rows)]
    grown: list[tuple[int, list[int]]] = []
    while free:
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


_SCENE = 0.7  # cosine, free of what all windows have in common, from which two show one scene
_RESUMED = 30.0  # seconds to the nearest piece of the scene, at most


def join_scenes(moments: Sequence[Moment], looks: Float[np.ndarray, "windows dim"]) -> list[Moment]:
    """Moments, best first, each with the later ones of its video that look the same.

    A shot that is resumed soon, and each side of a shot and counter-shot, is one moment, which
    keeps the times of its best piece. ``looks`` are unit vectors.
    """
    found: list[Moment] = []
    of_video: dict[Path, list[Moment]] = {}
    for moment in moments:
        scenes = of_video.setdefault(moment.path, [])
        alike = (scene for scene in scenes if looks[scene.best] @ looks[moment.best] >= _SCENE)
        start, end = moment.start - _RESUMED, moment.end + _RESUMED
        near = (s for s in alike if any(p.start <= end and p.end >= start for p in (s, *s.pieces)))
        scene = next(near, None)
        if scene is not None:
            scene.pieces.append(moment)
        else:
            found.append(moment)
            scenes.append(moment)
    for moment in found:
        moment.pieces.sort(key=lambda piece: piece.start)
    return found


_KNOWN = 1024  # moments whose copies are kept in memory


class Copies:
    """Tells moments that show the same pictures, comparing any two windows once.

    Only another video can be a copy: a shot that one video repeats stays two moments.
    Signatures are zero where a window is padded.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        signatures: UInt8[np.ndarray, "windows frames 288"],
        times: Float[np.ndarray, "windows frames"],
    ) -> None:
        numbers = {path: number for number, path in enumerate(dict.fromkeys(paths))}
        self._video = np.array([numbers[path] for path in paths], int)
        self._signatures, self._times = signatures, times
        self._found: dict[int, Bool[np.ndarray, "windows frames"]] = {}
        self._shown: dict[tuple[int, ...], Bool[np.ndarray, " windows"]] = {}  # of moments

    @cached_property
    def _patterns(self) -> Patterns:
        return Patterns(self._signatures)

    def folded(self, moments: Sequence[Moment], limit: int) -> list[Moment]:
        """Moments, best first; those that show the same as one of the first ``limit`` are under it.

        Of each other video there is one copy, its best; they stand in the order of paths.
        """
        best = np.array([moment.best for moment in moments], int)
        free = np.ones(len(moments), bool)  # of what is a copy of a better one
        kept: list[Moment] = []
        self._look([row for moment in moments[:limit] for row in moment.rows])
        for place, moment in enumerate(moments):
            if not free[place]:
                continue
            copies: dict[Path, Moment] = {}
            if len(kept) < limit:
                free[place] = False
                for later in np.flatnonzero(free & self._showing(moment)[best]).tolist():
                    copies.setdefault(moments[later].path, moments[later])
                    free[later] = False
            # Not by scores: equal pictures have other last bits where another machine encoded them.
            sorted_copies = [copies[path] for path in sorted(copies)]
            kept.append(replace(moment, copies=sorted_copies) if copies else moment)
        return kept

    def _showing(self, moment: Moment) -> Bool[np.ndarray, " windows"]:
        """Which windows show what a moment shows.

        All windows of the moment count: of two copies of a long shot another one may score best.
        """
        rows = tuple(moment.rows)
        known = self._shown.get(rows)
        if known is None:
            self._look(rows)
            found = np.any([self._found[row] for row in rows], axis=0).sum(-1)
            telling = self._patterns.telling.sum(-1)
            known = (found >= COPY * telling) & (telling > 0)
            rest = np.flatnonzero(~known & (self._video != self._video[rows[0]]))
            known[rest] = self._patterns.in_step(rows, rest, self._times)
            if len(self._shown) >= _KNOWN:
                self._shown.clear()
            self._shown[rows] = known
        return known

    def _look(self, rows: Sequence[int]) -> None:
        """Compare all windows with those of some that were not compared yet."""
        rows = list(dict.fromkeys(row for row in rows if row not in self._found))
        if not rows:
            return
        one, other = self._patterns.alike(rows)
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

    Searches of several threads share them, so the windows must not be changed.
    """

    def __init__(self, windows: StoredWindows, similarity: Similarity) -> None:
        self.windows = windows
        self._similarity = similarity
        self._frames: dict[int, Any] = {}  # codes of the frames of a window

    @cached_property
    def copies(self) -> Copies:
        """Which of the windows show the same pictures."""
        return Copies(self.windows.paths, self.windows.signatures, self.windows.times)

    @cached_property
    def _codes(self) -> Any:
        return self._similarity.videos(self.windows.features)

    @cached_property
    def looks(self) -> Float[np.ndarray, "windows dim"]:
        """Unit vector of each window, free of what all of them have in common.

        So one threshold holds for encoders that put all pictures close together.
        """
        mean = mean_pool(self.windows.frames, self.windows.mask)
        return unit_vectors(mean - mean.sum(0) / max(len(mean), 1))

    def scores(self, texts: Any) -> Float[np.ndarray, " windows"]:
        """Score of each window with that of some coded texts which fits it best.

        Scores that differ by rounding alone, which depends on what else is scored, are made equal:
        copies keep their order.
        """
        scores = self._similarity.similarity(texts, self._codes).max(0)
        rising = np.argsort(scores)
        near = np.diff(scores[rising], prepend=-np.inf) <= _ROUNDING * np.abs(scores).max(initial=1)
        scores[rising] = scores[rising][~near][np.cumsum(~near) - 1]  # what is NaN is near nothing
        return scores

    def frame_scores(self, texts: Any, row: int) -> Float[np.ndarray, " frames"]:
        """Scores of the real frames of a window, each as if it were the whole video."""
        if row not in self._frames:
            single = self.windows.frames[row][self.windows.mask[row]][:, None]
            features = VideoFeatures.of_frames(single, np.ones((len(single), 1), bool))
            self._frames[row] = self._similarity.videos(features)
        return self._similarity.similarity(texts, self._frames[row]).max(0)


PER_VIDEO = 3  # moments of one video in an answer, so that a long film does not crowd others out
CANDIDATES = 200  # windows scored exactly, at least
# An index of so few windows is kept in memory, and all of them are scored. With 252 windows a
# search takes 23 ms of a core in place of 51, with 553 it takes 38 in place of 65; from 1000 on to
# choose candidates first is as quick.
IN_MEMORY = 600
_LOOKED_AT = 2000  # windows; they take memory with all their frames
_GONE = "Files that are gone stay in the index until `sureshot index FOLDER --prune` forgets them."
_AWAY = "The folder of some of these is not there now; is its disk connected?"


_COUNTS, _SHARES = ("limit", "per_video"), ("coverage", "min", "prior")
_ALL = 2**31  # more than any index has, and less than Lance can count to


def _number(name: str, value: Any) -> int | float:
    """An option that is a number, also of numpy, or a share as it is typed."""
    try:
        if name not in _SHARES:
            return min(operator.index(value), _ALL)
        share = parse_share(value) if isinstance(value, str) else float(value)
        if not math.isnan(share):
            return share
        raise ValueError
    except (TypeError, ValueError, OverflowError):
        kind = "a share, such as 0.5 or 50%" if name in _SHARES else "a whole number"
        raise QueryError(f"{name} is {value!r}; give {kind}.") from None


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is looked for, and how it was asked for; the options are those of `Searcher.search`."""

    text: str  # the sentence, cleaned, or a name for what is to look alike
    codes: Any  # of the texts any of which may match
    limit: int = 10
    per_video: int | None = None
    merge_copies: bool = True
    folder: Selection | None = None
    coverage: float = 0.9
    min: float = 0.0
    prior: float | None = None
    present: bool = False
    like: Path | None = None  # the video that more like it is looked for; None for a sentence
    at: float | None = None  # seconds of the moment in that video; None for the whole of it
    warnings: tuple[str, ...] = ()  # on the text; the next three are as of `Answer`
    typed: str = ""
    names: tuple[NameMatch, ...] = ()
    names_found: int = 0
    only_names: bool = False  # where names match and the model knows no word of the text
    phrase: str = ""  # what stands in quotes, where words alone are searched for it; else empty

    def __post_init__(self) -> None:
        for name in (*_COUNTS, *_SHARES):
            value = getattr(self, name)
            if value is not None or name not in ("per_video", "prior"):
                value = _number(name, value)
                object.__setattr__(self, name, value)
                if name in _COUNTS and value < 1:
                    raise QueryError(f"{name} is {value}; it must be at least 1.")
        if not 0 < self.coverage < 1:
            raise QueryError(
                f"coverage is {self.coverage}; it must be between 0 and 1, such as 0.9."
            )
        if not 0 <= self.min < 1:
            raise QueryError(f"min is {self.min}; it must be 0 or more and below 1, such as 0.2.")
        if self.prior is not None:
            checked_prior(self.prior)

    @property
    def skips_pictures(self) -> bool:
        """Whether only names, or only words, are searched."""
        return self.only_names or bool(self.phrase)

    def why_nothing(self, windows: int) -> str:
        """Why there are no hits, which is never for lack of a good one: there is a nearest."""
        if windows == 0:
            return "Nothing is indexed yet; do that with `sureshot index FOLDER`."
        where = "" if self.folder is None else f" {said(self.folder)}"
        if self.like is None:
            return f"Nothing is indexed{where}."
        if self.at is not None:
            return f"Nothing else is indexed{where} than the moment that was asked about."
        return f"No other video is indexed{where}."


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The windows nearest to a query, and the hits among them."""

    query: Query
    looked: WindowScores
    moments: list[Moment]  # of the windows, best first
    count: int  # of the windows that were asked for
    whole: bool  # whether there are no others
    hits: tuple[Hit, ...] = ()  # once they were chosen, perhaps from more windows than these
    notes: tuple[str, ...] = ()  # why they are fewer than were asked for, where they are

    @classmethod
    def of(cls, query: Query, looked: WindowScores, count: int, *, whole: bool) -> "Ranking":
        """Score and rank windows."""
        found, scores = looked.windows, looked.scores(query.codes)
        moments = join_adjacent(found.paths, found.start, found.end, scores)
        # Not the very one that more like it is looked for; before pieces of its scene join it.
        at, like = query.at, query.like
        if at is not None:
            moments = [m for m in moments if m.path != like or not m.start <= at <= m.end]
        moments = join_scenes(moments, looked.looks)
        return cls(query=query, looked=looked, moments=moments, count=count, whole=whole)

    def best(self, count: int, limit: int) -> tuple[list[Moment], bool]:
        """So many best moments, at most ``limit`` of a video, and whether a video has more."""
        moments = capped(self.moments, [moment.path for moment in self.moments], limit)
        left_out = len(moments) < len(self.moments)
        if self.query.merge_copies:
            return self.looked.copies.folded(moments, count)[:count], left_out
        return moments[:count], left_out

    def scored(self, moments: Sequence[Moment]) -> tuple[Hit, ...]:
        """Moments of these windows as hits, with a score of its own for each frame."""
        codes, times, mask = self.query.codes, self.looked.windows.times, self.looked.windows.mask
        moments = [moment.from_what_is_there() for moment in moments]
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
                        times[row][mask[row]].tolist(),
                        self.looked.frame_scores(codes, row).tolist(),
                        strict=True,
                    )
                ),
                copies=copies_at(
                    [(one.path, one.start, one.end, one.gone) for one in moment.copies]
                ),
                pieces=tuple(Piece(piece.start, piece.end) for piece in moment.pieces),
                **looked_for(moment.path),
            )
            for rank, moment in enumerate(moments, 1)
        )

    def why_few(self, hits: int, left_out: bool) -> list[str]:
        """Why there are only so many hits, though there may be more moments.

        They are ``left_out`` where a video has more than it may give.
        """
        few = few_hits(hits, self.query.limit)
        if hits >= self.query.limit or (self.whole and not left_out):
            return []
        if left_out:
            one = f"one video gives at most {self.query.per_video}"
            return [f"{few}{one} ({option('per_video')})."]
        looked_at = counted(len(self.looked.windows.keys), "nearest window")
        return [
            f"{few}the {looked_at} are copies of these. Look elsewhere with {option('folder')}."
        ]


def capped(rows: Sequence[_T], paths: Sequence[Path], most: int) -> list[_T]:
    """The rows, best first, without those of a video after so many of it."""
    seen: Counter[Path] = Counter()
    kept = []
    for row, path in zip(rows, paths, strict=True):
        seen[path] += 1
        if seen[path] <= most:
            kept.append(row)
    return kept


def copies_at(places: Sequence[tuple[Path, float, float, bool]]) -> tuple[Copy, ...]:
    """Copies of a hit: path, start, end, and whether it is known that the file is gone.

    Of the first few on disks it is found out; a hit may have thousands, and storage takes long.
    """
    copies = []
    for number, (path, start, end, known) in enumerate(places):
        asked = number < _ASKED and not isinstance(path, ObjectPath)
        gone = known or (asked and is_gone(path))
        copies.append(Copy(path, start, end, missing=gone, away=gone and is_away(path)))
    return tuple(copies)


def few_hits(hits: int, limit: int) -> str:
    """How a note begins on fewer hits than were asked for."""
    return f"{counted(hits, 'hit')} of {limit} asked for: "


def notes_on_files(hits: Sequence[Hit]) -> list[str]:
    """What to know of hits whose files are gone."""
    gone = any(hit.missing and not hit.away for hit in hits)
    return [_GONE] * gone + [_AWAY] * any(hit.away for hit in hits)


class Candidates:
    """Finds the windows of an index that queries may mean."""

    def __init__(self, store: Store, similarity: Similarity) -> None:
        self._store = store
        self._similarity = similarity
        self._every: WindowScores | None = None  # of the newest version that was read

    def near(self, query: Query, count: int = CANDIDATES) -> Ranking:
        """The windows nearest to a query, so many for each of its texts."""
        without = query.like if query.at is None else None
        near = [
            self._store.finder.nearest(
                v, count, query.folder, without, hub_corrected=self._similarity.hub_corrected
            )
            for v in self._similarity.text_vectors(query.codes)
        ]
        whole = all(len(part.keys) < count for part in near)
        return Ranking.of(query, WindowScores(union(near), self._similarity), count, whole=whole)

    def near_each(self, queries: Sequence[Query], count: int = CANDIDATES) -> list[Ranking]:
        """The windows nearest to each of some sentences, from one pass over the index.

        All of them are asked with the same options.
        """
        folder = queries[0].folder
        every = self._store.finder.all_windows(max(count, IN_MEMORY)) if folder is None else None
        if every is not None:
            if self._every is None or self._every.windows is not every:
                self._every = WindowScores(every, self._similarity)
            looked = [self._every] * len(queries)
        else:
            vectors = np.concatenate(
                [self._similarity.text_vectors(query.codes) for query in queries]
            )
            near = self._store.finder.nearest_many(
                vectors, count, folder, hub_corrected=self._similarity.hub_corrected
            )
            looked = [WindowScores(part, self._similarity) for part in near]
        whole = every is not None
        return [
            Ranking.of(query, part, count, whole=whole or len(part.windows.keys) < count)
            for part, query in zip(looked, queries, strict=True)
        ]

    def with_hits(self, ranking: Ranking, least: int = 0) -> Ranking:
        """A ranking with its hits, ``least`` of them too, and notes where there are fewer.

        More windows are looked at where copies leave too few hits, but not without end.
        """
        query, count = ranking.query, max(ranking.query.limit, least)
        near, wanted = ranking, max(ranking.count, 10 * count)
        end = max(_LOOKED_AT, 10 * count)
        most = query.per_video or PER_VIDEO
        while True:
            if wanted > near.count:
                near = self.near(query, wanted)
            kept, left_out = near.best(count, most)
            if len(kept) >= count or near.whole or wanted >= end:
                break
            wanted = min(4 * wanted, end)
        while query.per_video is None and left_out and len(kept) < count:
            most *= 2
            kept, left_out = near.best(count, most)
        hits = near.scored(kept)
        notes = [*near.why_few(len(hits), left_out), *notes_on_files(hits)]
        return replace(ranking, hits=hits, notes=tuple(notes))

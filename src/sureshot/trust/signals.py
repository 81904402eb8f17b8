"""What the scores of one query say about how far its ranking can be believed.

The scores are those that order the results: similarities minus the hub correction, if any. Rows
are queries, higher is better; ``-inf`` rules a column out, which is then no part of the gallery.
Columns, called videos below, are what can be right or wrong by itself: the videos of a data set,
the moments of a library. Every signal is finite for every row of numbers: constant scores, ties and
a gallery of one video included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from sureshot.errors import SureshotError

RESULTS = 10  # best videos of a query whose probabilities are fitted
SMALLEST = 10  # videos; a smaller gallery counts as having so many
_NEXT = 9  # videos after one that its `gap` averages
_FAR = 0.3  # a margin above this says no more than this
_FEW = 3  # a query of so many words is one of keywords, which more videos fit
_COMMON = 3.0  # in logs; a query as common, or as rare, says no more
QUERY_SIGNALS = ("top", "margin", "gap", "background", "log_videos", "common")
RESULT_SIGNALS = ("score", "below_top", "gap", "log_rank", *QUERY_SIGNALS[3:])

Scores = Float[np.ndarray, "queries videos"]
Relevant = Bool[np.ndarray, "queries videos"]
PerQuery = Float[np.ndarray, " queries"]


@dataclass(frozen=True, slots=True, eq=False)
class QueryContext:
    """What is known of some queries besides the scores of a gallery.

    Attributes:
        background: what each scores with videos from elsewhere; None for a model without any.
        words: number of words of each, 1 or more; None where that is not known.
        common: log of the share of captions from elsewhere that say what each says; None where that
            is not known.
        videos: size of the whole gallery, where the scores are of its best videos only; None is the
            number of scores that rule nothing out.
    """

    background: PerQuery | None = None
    words: Int[np.ndarray, " queries"] | None = None
    common: PerQuery | None = None
    videos: int | None = None

    def of(self, rows: Any) -> "QueryContext":
        """The same of some of the queries."""
        known = {name: getattr(self, name) for name in ("background", "words", "common")}
        return replace(self, **{n: one[rows] for n, one in known.items() if one is not None})

    def of_few_words(self, queries: int) -> Bool[np.ndarray, " queries"]:
        """Which of so many queries are keywords, of three words at most."""
        return np.zeros(queries, bool) if self.words is None else self.words <= _FEW


UNKNOWN = QueryContext()


def word_counts(texts: Sequence[str]) -> Int[np.ndarray, " texts"]:
    """Number of words of each text, 1 at the least."""
    return np.array([max(1, len(text.split())) for text in texts], int)


def query_signals(
    scores: Scores, about: QueryContext = UNKNOWN
) -> Float64[np.ndarray, "queries 6"]:
    """The signals of each query, in the order of `QUERY_SIGNALS`.

    With the scores s(1) >= s(2) >= ... of a query and N videos:

    * top: s(1);
    * margin: s(1) - s(2), at most 0.3; 0 where there is one video alone, so it never looks sure;
    * gap: s(1) minus the mean of s(2) to s(10), or of as many as there are;
    * background: what the query scores with videos from elsewhere; 0 where that is not known;
    * log_videos: log N, of 10 at the least;
    * common: log of N times the share of captions that say it, about how many videos of a general
      library show it, from -3 to 3: near ties of "car" are many right videos, those of a sentence
      are not. 0 where that is not known.

    Each of the six earns its place; what else was tried is in LOG.md.

    Examples:
        >>> query_signals(np.array([[0.5, 0.25, 0.25]]))[0, :3]
        array([0.5 , 0.25, 0.25])
    """
    _, best = _best(scores, 1 + _NEXT)
    margin = np.minimum(_above_next(best[:, :2], 1), _FAR)
    columns = [best[:, :1], margin, _above_next(best, 1), _context(scores, about)]
    return np.concatenate(columns, axis=1)


def result_signals(
    scores: Scores, about: QueryContext = UNKNOWN, *, results: int | None = RESULTS
) -> tuple[Int[np.ndarray, "queries results"], Float64[np.ndarray, "queries results 7"]]:
    """Columns of the best videos of each query, best first, and the `RESULT_SIGNALS` of each.

    Of a result with the score s: s itself; s(1) - s; the gap, as of a query but to the scores that
    follow it, 0 at the end of the list; log(1 + rank), the first rank 1; and those of the query.

    Args:
        results: number of videos; all of them if None or if there are fewer. Videos that are ruled
            out come last, with signals of 0 but for rank and those of the query.
    """
    count = min(results or scores.shape[1], scores.shape[1])
    order, best = _best(scores, count + _NEXT)
    score, real = best[:, :count], best[:, :count] > -np.inf
    own = [
        np.where(real, score, 0),
        np.where(real, best[:, :1] - score, 0),
        _above_next(best, count),
        np.broadcast_to(np.log(2.0 + np.arange(count)), score.shape),
    ]
    shared = _context(scores, about)[:, None].repeat(count, axis=1)
    return order[:, :count], np.concatenate([np.stack(own, axis=-1), shared], axis=-1)


def top_is_relevant(scores: Scores, relevant: Relevant) -> Bool[np.ndarray, " queries"]:
    """Whether the first video of each query is relevant; of a tie for the first place, all of it.

    Constant scores are never right by the order of the columns.
    """
    return (relevant | (scores < scores.max(1, keepdims=True))).all(1)


def gallery_size(scores: Scores, about: QueryContext) -> Float64[np.ndarray, " queries"]:
    """Number of videos that each query was compared with, `SMALLEST` at the least."""
    there = (scores > -np.inf).sum(1)
    known = there if about.videos is None else np.full(len(scores), about.videos)
    return np.maximum(known, SMALLEST).astype(np.float64)


def _context(scores: Scores, about: QueryContext) -> Float64[np.ndarray, "queries 3"]:
    none = np.zeros(len(scores))
    background = none if about.background is None else about.background
    size = np.log(gallery_size(scores, about))
    common = none if about.common is None else np.clip(about.common + size, -_COMMON, _COMMON)
    return np.stack([background, size, common], axis=1)


def _best(
    scores: Scores, count: int
) -> tuple[Int[np.ndarray, "queries best"], Float64[np.ndarray, "queries best"]]:
    """Columns and scores of the best videos, descending; ties in the order of the columns."""
    if not scores.size:
        raise SureshotError(
            f"There are {len(scores)} queries and {scores.shape[1]} videos; give at least one "
            "of each."
        )
    if not (scores.max(1) > -np.inf).all() or not (scores < np.inf).all():
        raise SureshotError("Scores must be numbers below infinity, one at least in each row.")
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(scores, order, 1).astype(np.float64)


def _above_next(
    ordered: Float64[np.ndarray, "queries best"], count: int
) -> Float64[np.ndarray, "queries results"]:
    """Each of the first scores minus the mean of those that follow it, nine at most; else 0."""
    real = ordered > -np.inf
    values = np.where(real, ordered, 0)
    total = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    number = np.cumsum(np.pad(real.astype(int), ((0, 0), (1, 0))), axis=1)
    first = np.arange(1, count + 1)
    last = np.minimum(first + _NEXT, ordered.shape[1])
    following = number[:, last] - number[:, first]
    mean = (total[:, last] - total[:, first]) / np.maximum(following, 1)
    return np.where((following > 0) & real[:, :count], values[:, :count] - mean, 0)

"""What the scores of one query say about how far its ranking can be believed.

The scores are those that order the results: similarities minus the hub correction, if any. Rows
are queries, higher is better; ``-inf`` rules a column out, which is then no part of the gallery.
Columns, called videos below, are what can be right or wrong by itself: the videos of a data set,
the moments of a library. Every signal is finite for every row of numbers: constant scores, ties and
a gallery of one video included. All but N look at the best hundred videos only, since a search
knows no more of a large library.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import row_blocks

BEST = 100  # videos of a query that signals look at
RESULTS = 10  # best videos of a query whose probabilities are fitted, listed and measured
_NEXT = 9  # videos after the first that `gap` averages
_SUREST = 30.0  # logits are kept within this
_ELSEWHERE = 0.75  # chosen on validation data, see LOG.md


class QuerySignals(NamedTuple):
    """One number of each kind per query.

    With the scores s(1) >= s(2) >= ... of the best videos and p = softmax(s / T):

    Attributes:
        top: s(1).
        margin: s(1) - s(2).
        gap: s(1) minus the mean of s(2) to s(10), or of as many as there are.
        top_logit: log p(1) / (1 - p(1)), within -30 and 30.
        entropy: entropy of p, in nats.
        top_less_lse: s(1) - T log sum exp(s / T), 0 or less.
        background: what the query scores with videos from elsewhere; 0 where that is not known.
        log_words: log of its number of words; 0 where that is not known.
        log_videos: log N, the size of the whole gallery.
    """

    top: Float64[np.ndarray, " queries"]
    margin: Float64[np.ndarray, " queries"]
    gap: Float64[np.ndarray, " queries"]
    top_logit: Float64[np.ndarray, " queries"]
    entropy: Float64[np.ndarray, " queries"]
    top_less_lse: Float64[np.ndarray, " queries"]
    background: Float64[np.ndarray, " queries"]
    log_words: Float64[np.ndarray, " queries"]
    log_videos: Float64[np.ndarray, " queries"]


class ResultSignals(NamedTuple):
    """One number of each kind per result, the results of a query best first.

    With the score s of the result, those of the best videos and p = softmax(s / T):

    Attributes:
        score: s.
        logit: log p / (1 - p), within -30 and 30.
        below_top: s(1) - s.
        gap: s minus the mean of the nine scores after it, or of as many as there are; at the end of
            the list 0.
        log_rank: log(1 + rank), the first rank 1; ties keep the order of the columns.
        background, log_words, log_videos: as in `QuerySignals`.
    """

    score: Float64[np.ndarray, "queries results"]
    logit: Float64[np.ndarray, "queries results"]
    below_top: Float64[np.ndarray, "queries results"]
    gap: Float64[np.ndarray, "queries results"]
    log_rank: Float64[np.ndarray, "queries results"]
    background: Float64[np.ndarray, "queries results"]
    log_words: Float64[np.ndarray, "queries results"]
    log_videos: Float64[np.ndarray, "queries results"]


@dataclass(frozen=True, slots=True, eq=False)
class QueryContext:
    """What is known of some queries besides the scores of a gallery.

    Attributes:
        background: what each scores with videos from elsewhere; None for a model without any.
        words: number of words of each, 1 or more; None where that is not known.
        videos: size of the whole gallery, where the scores are of its best videos only; None is the
            number of scores that rule nothing out.
    """

    background: Float[np.ndarray, " queries"] | None = None
    words: Int[np.ndarray, " queries"] | None = None
    videos: int | None = None

    def of(self, rows: Any) -> "QueryContext":
        """The same of some of the queries."""
        return QueryContext(
            background=None if self.background is None else self.background[rows],
            words=None if self.words is None else self.words[rows],
            videos=self.videos,
        )


UNKNOWN = QueryContext()


def word_counts(texts: Sequence[str]) -> Int[np.ndarray, " texts"]:
    """Number of words of each text, 1 at the least."""
    return np.array([max(1, len(text.split())) for text in texts], int)


def query_signals(
    scores: Float[np.ndarray, "queries videos"], temperature: float, about: QueryContext = UNKNOWN
) -> QuerySignals:
    """The signals of each query, with temperature T, see `fit_temperature`.

    A single video has nothing to be compared with. It gets the signals of a gallery that
    holds it twice, a tie, so one video alone never looks sure.

    Examples:
        >>> signals = query_signals(np.array([[0.5, 0.25, 0.25]]), 0.1)
        >>> signals.top, signals.margin
        (array([0.5]), array([0.25]))
    """
    _check(scores, temperature)
    parts = [
        _query_signals(_softmax(scores[rows], temperature, about.of(rows)))
        for rows in row_blocks(*scores.shape)
    ]
    return QuerySignals._make(map(np.concatenate, zip(*parts, strict=True)))


def result_signals(
    scores: Float[np.ndarray, "queries videos"],
    temperature: float,
    about: QueryContext = UNKNOWN,
    *,
    results: int | None = None,
) -> tuple[Int[np.ndarray, "queries results"], ResultSignals]:
    """Columns of the best videos of each query, best first, and the signals of each.

    Args:
        results: number of videos; all of them if left out or if there are fewer. Videos that are
            ruled out come last, with signals of 0 but for rank and N.
    """
    _check(scores, temperature)
    count = min(results or scores.shape[1], scores.shape[1])
    orders, parts = zip(
        *(
            _result_signals(_softmax(scores[rows], temperature, about.of(rows)), count)
            for rows in row_blocks(*scores.shape)
        ),
        strict=True,
    )
    signals = ResultSignals._make(map(np.concatenate, zip(*parts, strict=True)))
    return np.concatenate(orders), signals


def features(
    signals: QuerySignals | ResultSignals, *, smallest: int = 1
) -> Float64[np.ndarray, "rows signals"]:
    """Signals as a logistic regression takes them: one row per query, or per result.

    A gallery of fewer videos than ``smallest`` counts as having so many.
    """
    videos = np.maximum(signals.log_videos, np.log(smallest))
    return np.stack(signals._replace(log_videos=videos), axis=-1).reshape(-1, len(signals))


def fit_temperature(
    scores: Float[np.ndarray, "queries videos"], relevant: Bool[np.ndarray, "queries videos"]
) -> float:
    """The T at which softmax(s / T) gives the relevant videos the most likelihood.

    Minimises the mean of -log of the total probability of each query's relevant videos over log T,
    by golden sections between 1/1000 and 1000 times the spread of the scores. Queries without a
    relevant video, and those with nothing else, do not count. Fit it on other queries than those
    whose calibration it will be judged by.
    """
    _check(scores, 1.0)
    counts = relevant.any(1) & ~relevant.all(1)
    if not counts.any():
        raise SureshotError(
            "No query has both a relevant video and another one; a temperature needs some."
        )
    below, sought = scores[counts].astype(np.float64), relevant[counts]
    below -= below.max(1, keepdims=True)
    spread = float(below[np.isfinite(below)].std()) or 1.0

    def loss(log_t: float) -> float:
        z = np.exp(below / np.exp(log_t))
        share = np.where(sought, z, 0).sum(1) / z.sum(1)
        return float(-np.log(np.maximum(share, 1e-300)).mean())

    low, high = np.log(spread) - np.log(1000), np.log(spread) + np.log(1000)
    while high - low > 1e-4:
        step = (np.sqrt(5) - 1) / 2 * (high - low)
        if loss(high - step) <= loss(low + step):
            high = low + step
        else:
            low = high - step
    return float(np.exp((low + high) / 2))


def top_is_relevant(
    scores: Float[np.ndarray, "queries videos"], relevant: Bool[np.ndarray, "queries videos"]
) -> Bool[np.ndarray, " queries"]:
    """Whether the first video of each query is relevant; of a tie for the first place, all of it.

    Constant scores are never right by the order of the columns.
    """
    return (relevant | (scores < scores.max(1, keepdims=True))).all(1)


def margin_over_bank(
    scores: Float[np.ndarray, "queries videos"],
    background: Float[np.ndarray, " queries"] | None = None,
) -> Float64[np.ndarray, " queries"]:
    """How far the best video of each query stands out: s(1) - 0.75 e.

    e is what the query scores with videos from elsewhere (`sureshot.models.hub_bank.Bank`): a query
    that fits those as well as anything in the gallery is probably not about the gallery.
    Without them it is s(1).
    """
    best = scores.max(1).astype(np.float64)
    return best if background is None else best - _ELSEWHERE * background


class _Softmax(NamedTuple):
    """What both kinds of signals need of some queries; ``z`` is exp((s - s(1)) / T)."""

    scores: Float64[np.ndarray, "queries videos"]
    best: Float64[np.ndarray, "queries best"]  # descending
    z: Float64[np.ndarray, "queries best"]
    rest: Float64[np.ndarray, " queries"]  # sum of z without the first; of one video its own
    temperature: float
    top_logit: Float64[np.ndarray, " queries"]
    log_videos: Float64[np.ndarray, " queries"]  # of 2 videos at the least
    background: Float64[np.ndarray, " queries"]
    log_words: Float64[np.ndarray, " queries"]


def _softmax(
    given: Float[np.ndarray, "queries videos"], temperature: float, about: QueryContext
) -> _Softmax:
    scores = given.astype(np.float64)
    shown = min(BEST, scores.shape[1])
    best = -np.sort(-np.partition(scores, -shown, axis=1)[:, -shown:], axis=1)
    z = np.exp((best - best[:, :1]) / temperature)
    there = (scores > -np.inf).sum(1)
    rest = np.where(there > 1, z[:, 1:].sum(1), 1.0)
    videos = there if about.videos is None else np.full(len(scores), about.videos)
    unknown = np.zeros(len(scores))
    return _Softmax(
        scores=scores,
        best=best,
        z=z,
        rest=rest,
        temperature=temperature,
        top_logit=np.maximum(-np.log(np.maximum(rest, np.exp(-_SUREST))), -_SUREST),
        log_videos=np.log(np.maximum(videos, 2)),
        background=unknown if about.background is None else about.background.astype(np.float64),
        log_words=unknown if about.words is None else np.log(about.words),
    )


def _query_signals(row: _Softmax) -> QuerySignals:
    top = row.best[:, 0]
    total = np.log1p(row.rest)
    below = np.where(row.z > 0, row.best - top[:, None], 0)
    return QuerySignals(
        top=top,
        margin=_above(row.best[:, :2], 1)[:, 0],
        gap=_above(row.best[:, : 1 + _NEXT], 1)[:, 0],
        top_logit=row.top_logit,
        entropy=total - (row.z * below).sum(1) / row.temperature / (1 + row.rest),
        top_less_lse=-row.temperature * total,
        log_videos=row.log_videos,
        background=row.background,
        log_words=row.log_words,
    )


def _result_signals(
    row: _Softmax, count: int
) -> tuple[Int[np.ndarray, "queries results"], ResultSignals]:
    order = np.argsort(-row.scores, axis=1, kind="stable")[:, : count + _NEXT]
    below = np.take_along_axis(row.scores, order, 1)
    order, score = order[:, :count], below[:, :count]
    top = row.best[:, :1]
    z = np.exp((score - top) / row.temperature)
    inside = np.where(np.arange(count) < BEST, z, 0)
    with np.errstate(divide="ignore"):
        # The others of any but the best include the best, so the sum of the others is 1 or more.
        others = np.maximum(1 + row.rest[:, None] - inside, 1.0)
        logit = np.clip(np.log(z) - np.log(others), -_SUREST, _SUREST)
    logit[:, 0] = row.top_logit
    real = score > -np.inf
    return order, ResultSignals(
        score=np.where(real, score, 0),
        logit=np.where(real, logit, 0),
        below_top=np.where(real, top - score, 0),
        gap=_above(below, count),
        log_rank=np.broadcast_to(np.log(2.0 + np.arange(count)), score.shape),
        log_videos=np.broadcast_to(row.log_videos[:, None], score.shape),
        background=np.broadcast_to(row.background[:, None], score.shape),
        log_words=np.broadcast_to(row.log_words[:, None], score.shape),
    )


def _above(
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


def _check(scores: Float[np.ndarray, "queries videos"], temperature: float) -> None:
    if not scores.size:
        raise SureshotError(
            f"There are {len(scores)} queries and {scores.shape[1]} videos; give at least one "
            "of each."
        )
    if not 0 < temperature < np.inf:
        raise SureshotError(f"The temperature is {temperature}; it must be finite and above 0.")
    if not (scores.max(1) > -np.inf).all() or not (scores < np.inf).all():
        raise SureshotError("Scores must be numbers below infinity, one at least in each row.")

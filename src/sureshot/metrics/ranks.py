"""Similarity matrix to ranks of what was sought, with ties counted exactly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import NotFiniteError, SureshotError

CELLS = 1 << 22  # numbers looked at together

Scores = Float[np.ndarray, "texts videos"]
Owners = Integer[np.ndarray, " texts"]  # column of the video that each text describes


def row_blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices that cover ``range(rows)``, each of at most `CELLS` numbers or of a single row.

    Examples:
        >>> list(row_blocks(5, CELLS // 2))
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, CELLS // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


Ties = Literal["mean", "best"]


def text_ranks(
    similarity: Scores, owner: Owners, *, ties: Ties = "mean"
) -> Float64[np.ndarray, " texts"]:
    """Rank of each text's own video among all videos, 1 the best.

    rank = 1 + number of videos that score higher + a share of those that score the same: half of
    them (``mean``: places that are tied are shared) or none (``best``). Every text is one query,
    however many of them describe one video. Videos that no text describes count as candidates.
    Scores are compared as they are, in their own precision.

    Args:
        similarity: higher is better; ``-inf`` rules a video out, ``+inf`` beats every number. What
            is a list, or a tensor in the memory of the processor, is made an array.

    Differs:
        CLIP4Clip counts each tied place as a further query and leaves out queries whose own score
        is NaN or infinite, so its denominator is not the number of queries. Here it always is.

    Examples:
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.4, 0.1], [0.3, 0.2, -np.inf]])
        >>> text_ranks(scores, np.array([0, 1, 2]))
        array([1. , 1.5, 3. ])
    """
    similarity, owner = np.asarray(similarity), np.asarray(owner)
    check(similarity, owner)
    ranks = np.empty(len(owner))
    for part in row_blocks(len(owner), similarity.shape[1]):
        rows, own = similarity[part], owner[part]
        sought = rows[np.arange(len(own)), own][:, None]
        ranks[part] = _rank((rows > sought).sum(1), (rows == sought).sum(1) - 1, ties)
    return ranks


def video_ranks(
    similarity: Scores, owner: Owners, *, ties: Ties = "mean"
) -> Float64[np.ndarray, " queries"]:
    """Rank of what describes each video, 1 the best.

    All texts of one video are one candidate that scores as its best text does; the rank is that of
    the own one among all, as CLIP4Clip and X-Pool publish it. The queries are the videos that have
    a text, in the order of the columns, that is ``np.unique(owner)``; a video without one has
    nothing to be found and is no query.

    Differs:
        Collaborative Experts rank the best own text among all texts, and own texts that tie with
        each other share their places. R@1 is the same if no scores tie; for larger k it is never
        higher than here.

    Examples:
        >>> scores = np.array([[0.9, 0.8], [0.1, 0.7], [0.2, 0.6]])
        >>> video_ranks(scores, np.array([0, 0, 1]))
        array([1., 2.])
    """
    similarity, owner = np.asarray(similarity), np.asarray(owner)
    check(similarity, owner)
    videos = np.unique(owner)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], videos)
    ranks = np.empty(len(videos))
    for part in row_blocks(len(videos), len(owner)):
        texts = similarity[:, videos[part]][order]
        groups = np.maximum.reduceat(texts, starts, axis=0)
        own = np.arange(len(videos))[part]
        sought = groups[own, np.arange(len(own))]
        better, same = (groups > sought).sum(0), (groups == sought).sum(0) - 1
        ranks[part] = _rank(better, same, ties)
    return ranks


def relevant_ranks(
    similarity: Float[np.ndarray, "queries candidates"],
    relevant: Bool[np.ndarray, "queries candidates"],
) -> Float64[np.ndarray, " queries"]:
    """Rank of each query's best relevant candidate, 1 the best, where several may be relevant.

    rank = 1 + number of candidates that are not relevant and score higher than the best relevant
    one + half of those that score the same. Rows are queries: for videos as queries give both
    matrices turned over.

    Examples:
        >>> scores = np.array([[0.9, 0.8, 0.7], [0.2, 0.4, 0.4]])
        >>> relevant_ranks(scores, np.array([[False, True, True], [True, True, False]]))
        array([2. , 1.5])
    """
    similarity, relevant = np.asarray(similarity), np.asarray(relevant)
    if similarity.shape != relevant.shape or not relevant.any(1).all():
        raise SureshotError(
            f"Scores of shape {similarity.shape} and relevance of shape {relevant.shape}: every "
            "query needs a relevant candidate in a matrix of the same shape."
        )
    refuse_nan(similarity)
    ranks = np.empty(len(similarity))
    for part in row_blocks(*similarity.shape):
        rows, right = similarity[part], relevant[part]
        best = rows.max(1, where=right, initial=-np.inf)[:, None]
        ranks[part] = _rank((rows > best).sum(1), ((rows == best) & ~right).sum(1), "mean")
    return ranks


def check(similarity: Scores, owner: Integer[np.ndarray, " other"]) -> None:
    """Refuse scores and owners that cannot be ranked."""
    if similarity.ndim != 2 or owner.ndim != 1 or owner.dtype.kind not in "iu":
        raise SureshotError(
            f"Scores of shape {similarity.shape} and owners of shape {owner.shape}, "
            f"{owner.dtype}: give a matrix of texts and videos, and a whole number for each text."
        )
    texts, videos = similarity.shape
    if len(owner) != texts:
        raise SureshotError(
            f"{texts} rows of similarities but {len(owner)} owners; each text needs the one video "
            "that it describes."
        )
    outside = np.flatnonzero((owner < 0) | (owner >= videos))
    if len(outside):
        raise SureshotError(
            f"Text {outside[0]} belongs to video {owner[outside[0]]}, but the matrix has columns "
            f"0 to {videos - 1}; add the missing videos or leave the text out."
        )
    refuse_nan(similarity)


def refuse_nan(similarity: Scores) -> None:
    """Refuse a matrix that holds a NaN."""
    bad: Bool[np.ndarray, " texts"] = np.empty(len(similarity), bool)
    for part in row_blocks(*similarity.shape):
        bad[part] = np.isnan(similarity[part]).any(1)
    rows = np.flatnonzero(bad)
    if len(rows):
        column = int(np.argmax(np.isnan(similarity[rows[0]])))
        raise NotFiniteError(
            f"The score of row {rows[0]} with column {column} is NaN ({len(rows)} of {len(bad)} "
            "rows hold one). A score that is not a number has no rank and is never left out; find "
            "what made it: an empty mask, a zero vector, or a model whose training diverged."
        )


def _rank(
    better: Integer[np.ndarray, " n"], same: Integer[np.ndarray, " n"], ties: Ties
) -> Float64[np.ndarray, " n"]:
    return 1.0 + better + (0.5 * same if ties == "mean" else 0.0)


@dataclass(frozen=True, slots=True)
class Recall:
    """How well the queries of one direction were answered.

    Attributes:
        r1, r5, r10, r50: R@k, percent of the queries whose rank is at most k.
        median: MdR, the median rank; the mean of the middle two where their number is even.
        mean: MnR, the mean rank.
        n: queries.
    """

    r1: float
    r5: float
    r10: float
    r50: float
    median: float
    mean: float
    n: int


def recall(ranks: Float[np.ndarray, " queries"]) -> Recall:
    """Summary of the ranks of one direction.

    With the mean ranks of ties a query counts at k only if its shared place is within k: of two
    videos tied for the first place neither counts at 1 (rank 1.5), both count at 5.

    Differs:
        CLIP4Clip takes the lower of the two middle ranks of an even number of queries for sets
        with several captions per video, and their mean for the others; here it is always the mean.
        Collaborative Experts count a shared place up to half a place past k for k over 1.

    Examples:
        >>> recall(np.array([1.0, 1.5, 4.0, 60.0]))
        Recall(r1=25.0, r5=75.0, r10=75.0, r50=75.0, median=2.75, mean=16.625, n=4)
    """
    ranks = _checked(ranks)
    if not (np.isfinite(ranks) & (ranks >= 1)).all():
        raise SureshotError(
            "Ranks must be finite and count from 1; these are from "
            f"{ranks.min()} to {ranks.max()}. Zero-based ranks need 1 added."
        )
    return Recall(
        **{f"r{k}": recall_at(ranks, k) for k in (1, 5, 10, 50)},
        median=float(np.median(ranks)),
        mean=float(ranks.mean(dtype=np.float64)),
        n=len(ranks),
    )


def _checked(ranks: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
    """A row of ranks, from a list too."""
    ranks = np.asarray(ranks)
    if ranks.ndim != 1 or len(ranks) == 0:
        raise SureshotError(
            f"Ranks of shape {ranks.shape}: there are no queries to summarise; give a row of the "
            "rank of each text, at least one."
        )
    return ranks


def recall_at(ranks: Float[np.ndarray, " queries"], k: int) -> float:
    """R@k: percent of the queries whose rank is at most ``k``.

    Examples:
        >>> recall_at(np.array([1.0, 2.0, 2.5, 9.0]), 2)
        50.0
    """
    ranks = _checked(ranks)
    return 100.0 * float(np.count_nonzero(ranks <= k)) / len(ranks)


def rsum(texts: Recall, videos: Recall, ks: Sequence[int] = (1, 5, 10)) -> float:
    """Sum of the recalls of both directions, 0 to 600 for three; ActivityNet has 1, 5 and 50.

    Each of ``ks`` is 1, 5, 10 or 50.

    References:
        "rsum" in the tables of the DVTR paper.
    """
    return sum(getattr(direction, f"r{k}") for direction in (texts, videos) for k in ks)

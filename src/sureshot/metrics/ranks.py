"""Similarity matrix to ranks of what was sought, with ties counted exactly."""

from typing import Literal, assert_never

import numpy as np
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.blocks import row_blocks

Ties = Literal["mean", "best", "worst"]
VideoQuery = Literal["group", "caption"]


def text_ranks(
    similarity: Float[np.ndarray, "texts videos"],
    owner: Integer[np.ndarray, " texts"],
    *,
    ties: Ties = "mean",
) -> Float64[np.ndarray, " texts"]:
    """Rank of each text's own video among all videos, 1 the best.

    rank = 1 + number of videos that score higher + a share of those that score the same: half of
    them (``mean``: places that are tied are shared), none (``best``) or all (``worst``). Every
    text is one query, however many of them describe one video. Videos that no text describes
    count as candidates. Scores are compared as they are, in their own precision.

    Args:
        similarity: higher is better; ``-inf`` rules a video out, ``+inf`` beats every number.
        owner: column of the video that each text describes.
        ties: what equal scores do to the rank.

    Raises:
        SureshotError: a score is NaN, or ``owner`` does not fit the matrix.

    Differs:
        CLIP4Clip counts each tied place as a further query and leaves out queries whose own score
        is NaN or infinite, so its denominator is not the number of queries. Here it always is.

    Examples:
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.4, 0.1], [0.3, 0.2, -np.inf]])
        >>> text_ranks(scores, np.array([0, 1, 2]))
        array([1. , 1.5, 3. ])
    """
    check(similarity, owner)
    ranks = np.empty(len(owner))
    for part in row_blocks(len(owner), similarity.shape[1]):
        rows, own = similarity[part], owner[part]
        sought = rows[np.arange(len(own)), own][:, None]
        ranks[part] = _rank((rows > sought).sum(1), (rows == sought).sum(1) - 1, ties)
    return ranks


def video_ranks(
    similarity: Float[np.ndarray, "texts videos"],
    owner: Integer[np.ndarray, " texts"],
    how: VideoQuery = "group",
    *,
    ties: Ties = "mean",
) -> Float64[np.ndarray, " queries"]:
    """Rank of what describes each video, 1 the best.

    The queries are the videos that have a text, in the order of the columns, that is
    ``np.unique(owner)``; a video without one has nothing to be found and is no query.

    * ``group``: all texts of one video are one candidate that scores as its best text does; the
      rank is that of the own group among the groups. CLIP4Clip and X-Pool publish this.
    * ``caption``: every text is a candidate; the rank is that of the best own text among all.

    R@1 is the same in both if no scores tie; for larger k the group form is never lower.

    Args:
        similarity: higher is better; ``-inf`` rules a text out, ``+inf`` beats every number.
        owner: column of the video that each text describes.
        how: what a candidate is.
        ties: what equal scores do to the rank, as in `text_ranks`.

    Raises:
        SureshotError: a score is NaN, or ``owner`` does not fit the matrix.

    Differs:
        In the code of Collaborative Experts own texts that tie with each other share their places,
        which makes two equal captions of one video worse than one. Here only texts of other videos
        compete.

    Examples:
        >>> scores = np.array([[0.9, 0.8], [0.1, 0.7], [0.2, 0.6]])
        >>> video_ranks(scores, np.array([0, 0, 1]))
        array([1., 2.])
        >>> video_ranks(scores, np.array([0, 0, 1]), "caption")
        array([1., 3.])
    """
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
        match how:
            case "group":
                better, same = (groups > sought).sum(0), (groups == sought).sum(0) - 1
            case "caption":
                mine = owner[order][:, None] == videos[part]
                better, same = (texts > sought).sum(0), ((texts == sought) & ~mine).sum(0)
            case _:
                assert_never(how)
        ranks[part] = _rank(better, same, ties)
    return ranks


def check(
    similarity: Float[np.ndarray, "texts videos"], owner: Integer[np.ndarray, " other"]
) -> None:
    """Refuse scores and owners that cannot be ranked.

    Raises:
        SureshotError: a score is NaN, or ``owner`` does not name one column for each row.
    """
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


def refuse_nan(similarity: Float[np.ndarray, "texts videos"]) -> None:
    """Refuse a matrix that holds a NaN.

    Raises:
        SureshotError: names the first row that holds one and how many rows do.
    """
    bad: Bool[np.ndarray, " texts"] = np.empty(len(similarity), bool)
    for part in row_blocks(*similarity.shape):
        bad[part] = np.isnan(similarity[part]).any(1)
    rows = np.flatnonzero(bad)
    if len(rows):
        column = int(np.argmax(np.isnan(similarity[rows[0]])))
        raise SureshotError(
            f"The score of row {rows[0]} with column {column} is NaN ({len(rows)} of {len(bad)} "
            "rows hold one). A score that is not a number has no rank and is never left out; find "
            "what made it: an empty mask, a zero vector, or a model whose training diverged."
        )


def _rank(
    better: Integer[np.ndarray, " n"], same: Integer[np.ndarray, " n"], ties: Ties
) -> Float64[np.ndarray, " n"]:
    match ties:
        case "mean":
            return 1.0 + better + same / 2
        case "best":
            return 1.0 + better
        case "worst":
            return 1.0 + better + same
        case _:
            assert_never(ties)

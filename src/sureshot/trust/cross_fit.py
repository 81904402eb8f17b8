"""What calibrations say of labelled queries that they have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.trust.card import Calibration
from sureshot.trust.conformal import COVERAGES
from sureshot.trust.fitting import fit_card
from sureshot.trust.logistic import sigmoid
from sureshot.trust.signals import RESULTS, UNKNOWN, About, query_signals, result_signals


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A calibration and the queries that it is asked about.

    Attributes:
        card: calibration that was fitted to none of them.
        rows: places of these queries among all of them.
    """

    card: Calibration
    rows: Int[np.ndarray, " rows"]


@dataclass(frozen=True, slots=True, eq=False)
class PredictedSets:
    """The conformal set of each query at one coverage.

    Attributes:
        coverage: share of the sets that was promised to hold the video sought.
        holds: whether the set of each query holds its video.
        size: number of videos in each set.
    """

    coverage: float
    holds: Bool[np.ndarray, " queries"]
    size: Int[np.ndarray, " queries"]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What was predicted of each query, and which of its first results are relevant.

    Attributes:
        p_top1: probability that the first result is right.
        softmax: softmax of the first result, at the temperature of the calibration.
        p_relevant: probability that each of the first ten results is right.
        mass: softmax of each of them.
        relevant: whether each of them is the video sought.
        p_inside: p-value of "its video is there".
        absent_p_top1: ``p_top1`` once the query's own video is gone.
        absent_p_inside: ``p_inside`` once the query's own video is gone.
        sets: conformal sets of each coverage that could be promised.
    """

    p_top1: Float64[np.ndarray, " queries"]
    softmax: Float64[np.ndarray, " queries"]
    p_relevant: Float64[np.ndarray, "queries results"]
    mass: Float64[np.ndarray, "queries results"]
    relevant: Bool[np.ndarray, "queries results"]
    p_inside: Float64[np.ndarray, " queries"]
    absent_p_top1: Float64[np.ndarray, " queries"]
    absent_p_inside: Float64[np.ndarray, " queries"]
    sets: tuple[PredictedSets, ...]


def cross_fitted(
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    folds: int,
    seed: int,
    about: About = UNKNOWN,
) -> list[Part]:
    """Calibrations of parts of the videos, each for the queries of the videos it has not seen.

    All videos stay in the gallery. Only the queries are split, those of a video together.

    Args:
        scores: scores that order the results.
        owner: column of the video that each query is about.
        folds: number of parts, 2 or more.
        seed: seed of all chance.
        about: what else is known of the queries.

    Raises:
        SureshotError: a part is too small or too one-sided to be calibrated without.
    """
    videos = np.random.default_rng(seed).permutation(np.unique(owner))
    fold = np.empty(scores.shape[1], int)
    fold[videos] = np.arange(len(videos)) % folds
    parts = []
    for number in range(folds):
        known = np.flatnonzero(fold[owner] != number)
        own = owner[known]
        relevant = own[:, None] == np.arange(scores.shape[1])
        card = fit_card(scores[known], relevant, own, about=about.of(known), seed=seed)
        parts.append(Part(card, np.flatnonzero(fold[owner] == number)))
    return parts


def predict_unseen(
    parts: Sequence[Part],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    about: About = UNKNOWN,
) -> Predictions:
    """What each calibration says of its queries, put together in the order of the queries.

    Args:
        parts: calibrations, with every query in one of them.
        scores: scores of two videos or more, that order the results.
        owner: column of the video that each query is about.
        about: what else is known of the queries.
    """
    queries, results = len(scores), min(RESULTS, scores.shape[1])
    of_first = {name: np.empty(queries) for name in _OF_FIRST}
    of_each = {name: np.empty((queries, results)) for name in ("p_relevant", "mass")}
    relevant = np.empty((queries, results), bool)
    for part in parts:
        rows, card = part.rows, part.card
        present, own = scores[rows], owner[rows]
        absent = np.where(own[:, None] == np.arange(scores.shape[1]), -np.inf, present)
        known = about.of(rows)
        of_first["p_top1"][rows] = card.p_top1(present, known)
        of_first["softmax"][rows] = sigmoid(query_signals(present, card.temperature).top_logit)
        of_first["p_inside"][rows] = card.p_inside(present, known)
        of_first["absent_p_top1"][rows] = card.p_top1(absent, known)
        of_first["absent_p_inside"][rows] = card.p_inside(absent, known)
        order, of_each["p_relevant"][rows] = card.p_relevant(present, known, results=results)
        _, signals = result_signals(present, card.temperature, results=results)
        of_each["mass"][rows] = sigmoid(signals.logit)
        relevant[rows] = order == own[:, None]
    sets = (_sets(parts, scores, owner, coverage, about) for coverage in COVERAGES)
    return Predictions(
        **of_first,
        **of_each,
        relevant=relevant,
        sets=tuple(promised for promised in sets if promised is not None),
    )


_OF_FIRST = ("p_top1", "softmax", "p_inside", "absent_p_top1", "absent_p_inside")


def _sets(
    parts: Sequence[Part],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    coverage: float,
    about: About,
) -> PredictedSets | None:
    """Nothing where one of the calibrations cannot promise it."""
    holds, size = np.empty(len(scores), bool), np.empty(len(scores), int)
    for part in parts:
        chosen = part.card.members(scores[part.rows], coverage, about.of(part.rows))
        if chosen is None:
            return None
        holds[part.rows] = chosen[np.arange(len(chosen)), owner[part.rows]]
        size[part.rows] = chosen.sum(1)
    return PredictedSets(coverage, holds, size)

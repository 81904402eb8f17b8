"""What calibrations say of labelled queries that they have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.trust.card import Calibration, Target
from sureshot.trust.fitting import fit
from sureshot.trust.signals import query_signals, result_signals

COVERAGES = (0.8, 0.9, 0.95)
RISKS = (0.1, 0.2, 0.3)
RESULTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A calibration and the queries that it is asked about.

    Attributes:
        card: fitted to none of them.
        rows: of the queries.
    """

    card: Calibration
    rows: Int[np.ndarray, " rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The conformal sets of one coverage.

    Attributes:
        coverage: that was promised.
        holds: whether the set of each query holds its video.
        size: videos in each set.
    """

    coverage: float
    holds: Bool[np.ndarray, " queries"]
    size: Int[np.ndarray, " queries"]


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """The answers that are given under one certified risk.

    Attributes:
        risk: that was certified.
        answered: whether each query is answered.
        certified: calibrations that could certify it; the others answer nothing.
        asked: calibrations in all.
    """

    risk: float
    answered: Bool[np.ndarray, " queries"]
    certified: int
    asked: int


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What was said of each query.

    Attributes:
        p_top1: probability that the first result is right.
        softmax: of the first result, at the temperature of the calibration.
        p_relevant: probability of each of the first ten results.
        mass: softmax of each of them.
        relevant: whether each is relevant.
        p_inside: p-value of "its video is there".
        absent_p_top1: the first probability once the query's own video is gone.
        absent_p_inside: likewise the p-value.
        sets: of each coverage that could be promised.
        bounded: of each risk.
    """

    p_top1: Float64[np.ndarray, " queries"]
    softmax: Float64[np.ndarray, " queries"]
    p_relevant: Float64[np.ndarray, "queries results"]
    mass: Float64[np.ndarray, "queries results"]
    relevant: Bool[np.ndarray, "queries results"]
    p_inside: Float64[np.ndarray, " queries"]
    absent_p_top1: Float64[np.ndarray, " queries"]
    absent_p_inside: Float64[np.ndarray, " queries"]
    sets: tuple[Sets, ...]
    bounded: tuple[Bounded, ...]


def cross_fitted(
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    folds: int,
    seed: int,
    elsewhere: Float[np.ndarray, " queries"] | None = None,
) -> list[Part]:
    """Calibrations of parts of the videos, each for the queries of the videos it has not seen.

    All videos stay in the gallery. Only the queries are split, those of a video together.

    Args:
        scores: that order the results.
        owner: column of the video that each query is about.
        folds: parts, 2 or more.
        seed: of all chance.
        elsewhere: what each query scores with videos that the model brings along.

    Raises:
        SureshotError: a part is too small or too one-sided to be calibrated without.
    """
    names = np.random.default_rng(seed).permutation(np.unique(owner))
    part = np.empty(scores.shape[1], int)
    part[names] = np.arange(len(names)) % folds
    found = []
    for number in range(folds):
        known = np.flatnonzero(part[owner] != number)
        about = owner[known]
        relevant = about[:, None] == np.arange(scores.shape[1])
        apart = None if elsewhere is None else elsewhere[known]
        card = fit(scores[known], relevant, about, sought=about, elsewhere=apart, seed=seed)
        found.append(Part(card, np.flatnonzero(part[owner] == number)))
    return found


def judge(
    parts: Sequence[Part],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    elsewhere: Float[np.ndarray, " queries"] | None = None,
) -> Judgement:
    """What each calibration says of its queries, put together in the order of the queries.

    Args:
        parts: every query in one of them.
        scores: of two videos or more, that order the results.
        owner: column of the video that each query is about.
        elsewhere: what each query scores with videos that the model brings along.
    """
    queries = len(scores)
    results = min(RESULTS, scores.shape[1])
    one = {name: np.empty(queries) for name in _EACH}
    several = {name: np.empty((queries, results)) for name in ("p_relevant", "mass")}
    relevant = np.empty((queries, results), bool)
    for part in parts:
        own, about = scores[part.rows], owner[part.rows]
        apart = None if elsewhere is None else elsewhere[part.rows]
        gone = np.where(about[:, None] == np.arange(own.shape[1]), -np.inf, own)
        one["p_top1"][part.rows] = part.card.p_top1(own)
        one["softmax"][part.rows] = top_softmax(own, part.card.temperature)
        one["p_inside"][part.rows] = part.card.p_inside(own, apart)
        one["absent_p_top1"][part.rows] = part.card.p_top1(gone)
        one["absent_p_inside"][part.rows] = part.card.p_inside(gone, apart)
        order, several["p_relevant"][part.rows] = part.card.p_relevant(own, results=results)
        _, signals = result_signals(own, part.card.temperature, results=results)
        several["mass"][part.rows] = _sigmoid(signals[:, :, _LOGIT])
        relevant[part.rows] = order == about[:, None]
    sets = (_sets(parts, scores, owner, coverage) for coverage in COVERAGES)
    return Judgement(
        **one,
        **several,
        relevant=relevant,
        sets=tuple(found for found in sets if found is not None),
        bounded=tuple(_bounded(parts, one["p_top1"], risk) for risk in RISKS),
    )


def target_of(card: Calibration) -> Target:
    """What its sets are asked to hold: the annotated video where the labels named it."""
    return "any" if card.annotated is None else "annotated"


def top_softmax(
    scores: Float[np.ndarray, "queries videos"], temperature: float
) -> Float64[np.ndarray, " queries"]:
    """Softmax probability of the first video of each query."""
    return _sigmoid(query_signals(scores, temperature)[:, _TOP_LOGIT])


_EACH = ("p_top1", "softmax", "p_inside", "absent_p_top1", "absent_p_inside")
_TOP_LOGIT, _LOGIT = 3, 1  # among the signals of a query, and of a result


def _sets(
    parts: Sequence[Part],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
    coverage: float,
) -> Sets | None:
    """Nothing where one of the calibrations cannot promise it."""
    holds, size = np.empty(len(scores), bool), np.empty(len(scores), int)
    for part in parts:
        chosen = part.card.members(scores[part.rows], coverage, target_of(part.card))
        if chosen is None:
            return None
        holds[part.rows] = chosen[np.arange(len(chosen)), owner[part.rows]]
        size[part.rows] = chosen.sum(1)
    return Sets(coverage, holds, size)


def _bounded(
    parts: Sequence[Part], p_top1: Float64[np.ndarray, " queries"], risk: float
) -> Bounded:
    answered = np.zeros(len(p_top1), bool)
    certified = 0
    for part in parts:
        found = part.card.certificate(risk)
        if found is not None:
            certified += 1
            answered[part.rows] = p_top1[part.rows] >= found.threshold
    return Bounded(risk, answered, certified, len(parts))


def _sigmoid(logit: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    return np.exp(-np.logaddexp(0, -logit))

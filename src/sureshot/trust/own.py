"""Judgements of a library itself, on top of the card of its model.

The card was learned on other people's videos. A few judgements say whether its percentages are all
too low or all too high here, more of them whether they are spread too far, and many replace it.
Every step is a maximum a posteriori around the card, so no number of judgements makes it worse on
average, and none is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float64, Int

from sureshot.trust.card import Calibration, Own
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.logistic import Logistic
from sureshot.trust.signals import About, features, query_signals, result_signals

JUDGED = 10  # queries that the level of the percentages is learned from, at least
SLOPE = 50  # from which their spread is learned as well
ALL = 200  # from which every weight is
SETS = 9  # queries with a right hit from which sets are of the library's own
_RESULTS = 10  # hits of a query that are learned from
_LEVEL, _SPREAD, _EACH = 0.7, 0.3, 0.5  # spreads of the prior, in logits; see LOG.md


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuery:
    """A query whose hits somebody judged.

    Attributes:
        scores: scores of its hits, best first.
        right: whether each of these is right: 1 right, 0 wrong, -1 not known.
        about: what else is known of the query, and the size of the library.
    """

    scores: Float[np.ndarray, " hits"]
    right: Int[np.ndarray, " hits"]
    about: About


def adapt(card: Calibration, judged: Sequence[JudgedQuery]) -> Calibration:
    """The card of a model, moved towards what was judged.

    Args:
        card: card that was learned elsewhere.
        judged: queries whose first hit was judged, or another one; at least one of them.
    """
    known = [query for query in judged if query.right[0] >= 0]
    free = "level" if len(known) < SLOPE else "slope" if len(known) < ALL else "all"
    slope = 0.0 if free == "level" else _SPREAD
    each = _EACH if free == "all" else 0.0
    firsts = np.concatenate([_first(card, query) for query in known])
    right = np.array([query.right[0] for query in known])
    top1 = card.top1.adapted(firsts, right, shift=_LEVEL, slope=slope, each=each)
    rows, labels, weights = _results(card, judged)
    result = card.result.adapted(
        rows, labels, shift=_LEVEL, slope=slope, each=each, weights=weights
    )
    below = _below(judged)
    moved = replace(card, top1=top1, result=result)
    if below is not None:
        moved = replace(
            moved,
            references=tuple(
                tuple(replace(reference, below=below) for reference in part)
                for part in card.references
            ),
        )
    own = Own(
        queries=len(known),
        right=float(right.mean()),
        said=_mean(card.top1, firsts),
        says=_mean(top1, firsts),
        free=free,
        sets=below is not None,
    )
    return replace(moved, own=own)


def _first(card: Calibration, query: JudgedQuery) -> Float64[np.ndarray, "one signals"]:
    signals = query_signals(query.scores[None], card.temperature, query.about)
    return features(signals, smallest=card.valid_for.smallest)


def _results(
    card: Calibration, judged: Sequence[JudgedQuery]
) -> tuple[
    Float64[np.ndarray, "rows signals"], Int[np.ndarray, " rows"], Float64[np.ndarray, " rows"]
]:
    """Signals of the judged hits, which are right, and weights: a query weighs 1, however many."""
    rows, labels, weights = [], [], []
    for query in judged:
        known = np.flatnonzero(query.right[:_RESULTS] >= 0)
        _, signals = result_signals(
            query.scores[None], card.temperature, query.about, results=_RESULTS
        )
        rows.append(features(signals, smallest=card.valid_for.smallest)[known])
        labels.append(query.right[known])
        weights.append(np.full(len(known), 1 / max(1, len(known))))
    return np.concatenate(rows), np.concatenate(labels), np.concatenate(weights)


def _below(judged: Sequence[JudgedQuery]) -> Nonconformity | None:
    """How far the right hits of these queries lie below the best; None if they are too few.

    Of a query without a right hit all its hits are thought of as wrong.
    """
    found = [query for query in judged if (query.right == 1).any()]
    if len(found) < SETS:
        return None
    below = [
        query.scores[0] - query.scores[query.right == 1].max()
        if (query.right == 1).any()
        else query.scores[0] - query.scores[-1]
        for query in judged
    ]
    return Nonconformity.of(np.array(below, np.float64))


def _mean(fit: Logistic, rows: Float64[np.ndarray, "rows signals"]) -> float:
    return float(fit.probability(rows).mean())

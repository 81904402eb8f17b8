"""The calibration card: what was learned from labelled queries, and what it holds for.

Half of the queries that a card is made of have no answer in their gallery, so its percentages are
about a search whose video may not be there. With the signals x of `sureshot.trust.signals`,

    P(it is here) = sigmoid(w x + log(r / (1 - r)))        r: share of searches for what is here
    P(a hit is right) = P(it is here) * P(the hit is right | it is here)

where r, the prior, is one half unless somebody says or judges otherwise; with r = 1 what is left is
the probability of those who know that it is here.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Num

from sureshot.errors import ArgumentError, SureshotError, option, reason_of
from sureshot.files import write_text
from sureshot.settings import SETTINGS, build, parse_json, read_text, to_values
from sureshot.trust.signals import (
    QUERY_SIGNALS,
    RESULT_SIGNALS,
    RESULTS,
    UNKNOWN,
    PerQuery,
    QueryContext,
    Scores,
    gallery_size,
    query_signals,
    result_signals,
)

COVERAGES = (0.8, 0.9, 0.95)  # of the sets that are printed and measured
PRIOR = 0.5  # share of searches for what is here, where nothing else is known
_DIGITS = 7
_EPS = 1e-6  # relative; scores of one pair differ by less between two ways to compute them


@dataclass(frozen=True)
class Quality:
    """How good the probability of a right first hit was on queries it was not fitted to.

    Half of these queries have no answer.

    Attributes:
        cases: number of answers that were judged.
        share: share of the cases whose first hit is right.
        auroc: how often a right case has the higher probability than a wrong one; 0.5 is chance.
        auroc_low: lower end of the 95 % interval of ``auroc`` over videos.
        auroc_high: upper end of that interval.
        brier: mean squared error of the probability.
        brier_base: mean squared error of always saying ``share``.
        ece: expected calibration error in 15 bins.
        ece_floor: calibration error that a perfect probability has on as many cases.
        absent_auroc: AUROC of P(it is here), queries that have an answer against those without.
    """

    cases: int
    share: float
    auroc: float
    auroc_low: float
    auroc_high: float
    brier: float
    brier_base: float
    ece: float
    ece_floor: float
    absent_auroc: float


@dataclass(frozen=True)
class Depths:
    """How far the best right video of labelled queries scores below the best of all.

    The conformal set of a new query takes every video that is no further below the best one than a
    quantile of these. Of all queries like the labelled ones, whose video is in the gallery, the
    share that finds it in the set is at least the coverage; nothing is promised for one query.

    Attributes:
        few: whether the queries were keywords, of three words at most.
        scores: depth of each query, ascending.
        weights: weight of each; those of one video share the weight of one.
    """

    videos: int
    few: bool
    scores: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.weights) or not min(self.weights, default=0) > 0:
            raise SureshotError("depths need a weight above 0 for each score")
        ascending = all(a <= b for a, b in pairwise(self.scores))
        if not (ascending and all(map(math.isfinite, (*self.scores, *self.weights)))):
            raise SureshotError("depths need finite scores in ascending order, one at least")

    @classmethod
    def of(
        cls, scores: PerQuery, weights: PerQuery, *, videos: int = 1, few: bool = False
    ) -> "Depths":
        """Depths in order, rounded to seven digits."""
        order = np.argsort(scores, kind="stable")
        columns = [
            tuple(float(f"{value:.{_DIGITS}g}") for value in column[order])
            for column in (scores, weights)
        ]
        return cls(videos, few, *columns)

    def quantile(self, coverage: float) -> float:
        """The smallest score with at least ``coverage`` of the weight at or below it.

        A new query weighs 1 as well. With one query per video this is the
        ceil((n + 1) coverage)-th smallest of n scores. It is ``inf`` where there are too few videos
        to promise such a coverage; that is no set of all videos.

        References:
            Lee, Barber and Willett, "Distribution-free inference with hierarchical data",
            arXiv:2306.06342.

        Examples:
            >>> Depths.of(np.arange(9.0), np.ones(9)).quantile(0.9)
            8.0
            >>> Depths.of(np.arange(8.0), np.ones(8)).quantile(0.9)
            inf
        """
        if not 0 < coverage < 1:
            raise SureshotError(
                f"coverage is {coverage}; it must be above 0 and below 1, for instance 0.9."
            )
        place = int(np.searchsorted(self._share, coverage - 1e-9))
        return self.scores[place] if place < len(self.scores) else math.inf

    @cached_property
    def _share(self) -> PerQuery:
        total = np.cumsum(self.weights)
        return total / (total[-1] + 1)

    def blended(
        self,
        depths: Float[np.ndarray, " judged"],
        known: Bool[np.ndarray, " judged"],
        weights: Float[np.ndarray, " judged"],
        worth: float,
    ) -> "Depths":
        """These and those of some judged queries, in which all of these weigh ``worth``.

        Args:
            known: whether a right video was found at that depth. Where it was not, it is deeper:
                as deep as those of these that are.
        """
        old, share = np.array(self.scores), np.array(self.weights) / sum(self.weights)
        all_depths, all_weights = [old, depths[known]], [worth * share, weights[known]]
        for depth, weight in zip(depths[~known], weights[~known], strict=True):
            deeper = share * (old > depth)
            if deeper.any():
                all_weights[0] = all_weights[0] + weight * deeper / deeper.sum()
            else:
                all_depths.append(np.array([depth]))
                all_weights.append(np.array([weight]))
        return Depths.of(
            np.concatenate(all_depths),
            np.concatenate(all_weights),
            videos=self.videos,
            few=self.few,
        )


_LEVEL = 0.1  # penalty of the bias, of those of coefficients
_STEPS = 100
_DONE = 1e-10  # gradient of one unit of weight

Signals = Float[np.ndarray, "rows signals"]
PerRow = Float[np.ndarray, " rows"]
Outcomes = Num[np.ndarray, " rows"] | Bool[np.ndarray, " rows"]
Coefficients = Float64[np.ndarray, " columns"]


@dataclass(frozen=True)
class Logistic:
    """A probability from some signals: sigmoid(bias + coef . (x - mean) / scale).

    Attributes:
        mean, scale: mean and spread of each signal where it was fitted; 1 for a constant one.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coef: tuple[float, ...]
    bias: float

    @classmethod
    def fit(cls, signals: Signals, right: Outcomes, weights: PerRow | None = None) -> "Logistic":
        """Minimise |coef|^2 / 2 + the sum of the log losses, each with its weight.

        Signals are standardised first, so the penalty treats all alike. That of the bias is a
        tenth. It keeps the fit finite where the labels can be separated, or are all the same. On
        synthetic data it calibrates 60 to 600 labelled queries better than one three times as
        strong, and no worse than one a third as strong. A constant signal gets coefficient 0.

        Examples:
            >>> fitted = Logistic.fit(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]))
            >>> fitted.probability(np.array([[0.0], [2.0]])).round(2)
            array([0.17, 0.56])
        """
        weights = np.ones(len(signals)) if weights is None else weights
        total = weights.sum()
        mean = weights @ signals / total
        spread = np.sqrt(weights @ (signals - mean) ** 2 / total)
        # A constant column may differ from its own mean by rounding.
        constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        scale = np.where(constant, 1.0, spread)
        inputs = np.where(constant, 0.0, (signals - mean) / scale)
        *coef, bias = _newton(
            np.column_stack([inputs, np.ones(len(inputs))]),
            right.astype(np.float64),
            weights,
            penalty=np.append(np.ones(inputs.shape[1]), _LEVEL),
        ).tolist()
        return cls(tuple(mean.tolist()), tuple(scale.tolist()), tuple(coef), bias)

    def shifted(
        self, signals: Signals, right: Outcomes, weights: PerRow, spread: float
    ) -> "Logistic":
        """The same with another bias, moved by new data: a maximum a posteriori.

        The shift has a normal distribution around 0 with this ``spread`` in logits, so that few
        rows move it little, and rows of one label only, or none, are enough.
        """
        moved = _newton(
            np.ones((len(signals), 1)),
            right.astype(np.float64),
            weights,
            penalty=np.array([spread**-2]),
            offset=self.logit(signals),
        )
        return replace(self, bias=self.bias + float(moved[0]))

    def logit(self, signals: Float[np.ndarray, "*rows signals"]) -> Float64[np.ndarray, "*rows"]:
        """Logit of each row."""
        inputs = (signals.astype(np.float64) - np.array(self.mean)) / np.array(self.scale)
        return np.asarray(inputs @ np.array(self.coef) + self.bias)

    def probability(
        self, signals: Float[np.ndarray, "*rows signals"]
    ) -> Float64[np.ndarray, "*rows"]:
        """Probability of each row, 0 to 1."""
        return sigmoid(self.logit(signals))


def sigmoid(logit: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """Probability of a logit, 1 / (1 + exp(-logit)), without overflow."""
    return np.exp(-np.logaddexp(0, -logit))


def _newton(
    design: Float64[np.ndarray, "rows columns"],
    labels: PerRow,
    weights: PerRow,
    *,
    penalty: Coefficients,
    offset: PerRow | float = 0.0,
) -> Coefficients:
    """Coefficients at the least penalised loss; ``offset`` is added to every logit."""

    def loss(weight: Coefficients) -> float:
        logit = design @ weight + offset
        data = weights * (np.logaddexp(0, logit) - labels * logit)
        return float(data.sum() + (penalty * weight**2).sum() / 2)

    coef = np.zeros(design.shape[1])
    here = loss(coef)
    for _ in range(_STEPS):
        predicted = sigmoid(design @ coef + offset)
        gradient = design.T @ (weights * (predicted - labels)) + penalty * coef
        if np.abs(gradient).max(initial=0) <= _DONE * max(1.0, weights.sum()):
            break
        curvature = weights * predicted * (1 - predicted)
        hessian = (design * curvature[:, None]).T @ design + np.diag(penalty + 1e-12)
        step = np.linalg.solve(hessian, gradient)
        # Far from the minimum a whole step may climb; halves of it come to descend.
        while (there := loss(coef - step)) > here and np.abs(step).max() > 1e-14:
            step /= 2
        coef, here = coef - step, min(there, here)
    return coef


VERSION = 5
_KIND = "sureshot calibration"
_AGAIN = "Calibrate again with `sureshot calibrate`."

_NEEDED = {
    "background": "scores of videos from elsewhere",
    "common": "how common they are",
    "words": "their number of words",
}

Source = Literal["judgements", "reference", "tested"]


@dataclass(frozen=True)
class Validity:
    """What a card is valid for.

    Attributes:
        model: fingerprint of the model that gave the scores.
        bank: fingerprint of the hub correction in the scores; None without one.
        smallest: videos of the smallest gallery it was fitted on.
        largest: videos of the largest one.
        queries: labelled queries that have a relevant video.
        videos: videos that the queries are about.
        background: whether queries came with their scores against videos from elsewhere.
        words: whether they came with their number of words.
        common: whether they came with how common they are.
        dataset: title of where the labels come from.
        date: date of the calibration, such as 2026-11-30.
        source: whose videos the labels are about: ``judgements`` of the library itself,
            ``reference``, one captioned set from elsewhere, or ``tested``, several such sets, whose
            percentages were measured on other videos.
        photos: whether these videos are all photographs.
    """

    model: str
    bank: str | None
    smallest: int
    largest: int
    queries: int
    videos: int
    background: bool
    words: bool
    common: bool
    dataset: str
    date: str
    source: Source = "tested"
    photos: bool = False


@dataclass(frozen=True)
class Personal:
    """What judgements of the library itself changed about the card of its model.

    Attributes:
        queries: judged queries that something was learned from.
        absent: number of them for what is not in the library.
        right: share of the queries with a right video, and a first hit that was judged, of which
            that hit was right; None where there are none.
        before: mean probability of these before, if it is here.
        after: the same afterwards.
    """

    queries: int
    absent: int
    right: float | None
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Calibration:
    """Turns scores into probabilities and sets; `sureshot.trust.fit.fit_card` makes one.

    Scores are rows of queries and columns of videos, and are those that order the results:
    similarities, minus the hub correction where there is one.

    Attributes:
        valid_for: what it is valid for.
        present: probability, at a prior of one half, that a right video is in the gallery, from
            `QUERY_SIGNALS`.
        first: probability that the first result is right if one is, from the same.
        later: the same of any other result, from `RESULT_SIGNALS`.
        absent_below: P(it is here) below which an answer is called absent, of sentences and of
            keywords: about one in twelve of the queries whose video is there are below it, at a
            prior of one half.
        depths: how deep the right videos are, by size of the gallery, ascending, of sentences and
            then of keywords where there were some.
        quality: how good the probabilities are on queries they were not fitted to; None before
            that was measured.
        prior: share of searches for what is here.
        personal: what judgements of the library itself changed; None where there are none.
    """

    valid_for: Validity
    present: Logistic
    first: Logistic
    later: Logistic
    absent_below: tuple[float, float]
    depths: tuple[Depths, ...]
    quality: Quality | None
    prior: float = PRIOR
    personal: Personal | None = None
    signals: tuple[str, ...] = QUERY_SIGNALS
    result_signals: tuple[str, ...] = RESULT_SIGNALS
    version: int = VERSION

    def __post_init__(self) -> None:
        if (self.signals, self.result_signals) != (QUERY_SIGNALS, RESULT_SIGNALS):
            _damaged("its signals are not those of this version")
        fits = (self.present, QUERY_SIGNALS), (self.first, QUERY_SIGNALS)
        for fit, names in (*fits, (self.later, RESULT_SIGNALS)):
            if not len(fit.coef) == len(fit.mean) == len(fit.scale) == len(names):
                _damaged("it has not one coefficient per signal")
            if min(fit.scale) <= 0:
                _damaged("the scale of a signal is not above 0")
        sizes = [(depths.few, depths.videos) for depths in self.depths]
        if not sizes or sizes != sorted(set(sizes)) or sizes[0][1] < 1:
            _damaged("the sizes of its galleries do not ascend")
        if len(self.absent_below) != 2:
            _damaged("it has not one threshold of each kind")
        if not 0 < self.prior <= 1:
            _damaged("its prior is not between 0 and 1")

    @property
    def is_personal(self) -> bool:
        """Whether judgements of the library itself made it, or moved it."""
        return self.valid_for.source == "judgements" or self.personal is not None

    @property
    def may_be_sure(self) -> bool:
        """Whether an answer may be called sure: not where nothing ties it to this library.

        Cards of other footage were off by up to 16 points on an average of 4 (LOG.md).
        """
        return self.is_personal or self.valid_for.source == "tested"

    def p_present(
        self, scores: Scores, about: QueryContext = UNKNOWN, *, prior: float | None = None
    ) -> PerQuery:
        """Probability that a right video is in the gallery.

        In a gallery smaller than ten it is what the same signals mean in one of ten. In one that
        has outgrown the card it is extrapolated in log N.

        Args:
            prior: share of searches for what is here, above 0, at most 1; None is that of the card.
        """
        self._check_known(about)
        prior = checked_prior(self.prior if prior is None else prior)
        if prior == 1:
            return np.ones(len(scores))
        odds = math.log(prior / (1 - prior))
        return sigmoid(self.present.logit(query_signals(scores, about)) + odds)

    def called_absent(
        self, scores: Scores, about: QueryContext = UNKNOWN
    ) -> Bool[np.ndarray, " queries"]:
        """Whether the video of each query is probably not in the gallery, see ``absent_below``."""
        return self.p_present(scores, about) < self.absent_limits(len(scores), about)

    def absent_limits(self, queries: int, about: QueryContext = UNKNOWN) -> PerQuery:
        """The one of ``absent_below`` for each query."""
        return np.where(about.of_few_words(queries), *self.absent_below[::-1])

    def p_first(self, scores: Scores, about: QueryContext = UNKNOWN) -> PerQuery:
        """Probability that the first result of each query is right, if a right one is there."""
        self._check_known(about)
        return self.first.probability(query_signals(scores, about))

    def p_right(
        self,
        scores: Scores,
        about: QueryContext = UNKNOWN,
        *,
        results: int | None = RESULTS,
        prior: float | None = None,
        whole: Bool[np.ndarray, " queries"] | None = None,
    ) -> tuple[Int[np.ndarray, "queries results"], Float64[np.ndarray, "queries results"]]:
        """Columns of the best videos, best first, and the probability that each is right.

        Probabilities never rise. They were fitted to the first ten results; further down they are
        extrapolated. In a gallery smaller than any they were fitted on they are scaled so that all
        of them together are no less than the probability that a right one is here: the only video
        is right if any is.

        Args:
            results: number of videos of each query; all if None.
            prior: as of `p_present`; 1 gives the probabilities for what is known to be here.
            whole: whether these are the scores of all that is there, though ``about`` counts it
                otherwise, as windows of which several are one moment.
        """
        order, signals = result_signals(scores, about, results=results)
        probability = self.later.probability(signals)
        probability[:, 0] = self.p_first(scores, about)
        probability = np.minimum.accumulate(probability, axis=1)
        if order.shape == scores.shape:
            listed = np.isfinite(np.take_along_axis(scores, order, axis=1))
            count = listed.sum(axis=1)
            if about.videos is not None:
                count = np.where(False if whole is None else whole, count, about.videos)
            total = np.minimum((probability * listed).sum(axis=1), 1.0)
            probability /= np.where(count < self.valid_for.smallest, total, 1.0)[:, None]
        here = self.p_present(scores, about, prior=prior)[:, None]
        return order, here * probability

    def reach(
        self, scores: Scores, coverage: float, about: QueryContext = UNKNOWN
    ) -> PerQuery | None:
        """How far below the best video of each query its set of plausible ones reaches, in scores.

        Of all queries like those of the card, whose video is there, the share that finds a right
        one in the set is at least ``coverage``; that of keywords and that of sentences each, but
        not that of any other kind. Between the sizes of the card it is interpolated in log N, and
        outside of them that of the nearest is taken. None where there are too few labels to promise
        that.
        """
        known = {few: [d for d in self.depths if d.few == few] for few in (False, True)}
        asked = about.of_few_words(len(scores))
        size, reaches = np.log(gallery_size(scores, about)), np.empty(len(scores))
        for few, other in ((False, True), (True, False)):
            part = known[few] or known[other]
            each = [depths.quantile(coverage) for depths in part]
            if not np.isfinite(each).all():
                return None
            sizes = np.log([depths.videos for depths in part])
            reaches[asked == few] = np.interp(size, sizes, each)[asked == few]
        return reaches

    def members(
        self, scores: Scores, coverage: float = 0.9, about: QueryContext = UNKNOWN
    ) -> Bool[np.ndarray, "queries videos"] | None:
        """Which videos are in the set of each query, see `reach`.

        Ties are in, and so is what differs by rounding.
        """
        reach = self.reach(scores, coverage, about)
        if reach is None:
            return None
        top = scores.max(1, keepdims=True)
        return scores >= top - reach[:, None] - _EPS * np.abs(top)

    def _check_known(self, about: QueryContext) -> None:
        for name, missing in _NEEDED.items():
            if getattr(self.valid_for, name) and getattr(about, name) is None:
                raise SureshotError(
                    f"Queries came without {missing}, and the calibration was made with it; its "
                    f"percentages would mean something else. {_AGAIN}"
                )

    def mismatches(self, model: str, bank: str | None) -> tuple[str, ...]:
        """Why this card is not about some scores; empty if it is. Show no percentage otherwise."""
        reasons = []
        if model != self.valid_for.model:
            reasons.append(f"The calibration is of another model. {_AGAIN}")
        if bank != self.valid_for.bank:
            reasons.append(
                f"The calibration was made with another hub correction than the model's. {_AGAIN}"
            )
        return tuple(reasons)

    def to_json(self) -> str:
        """The card as JSON text, with a checksum over all the rest."""
        values = {"kind": _KIND, **to_values(self)}
        return json.dumps({**values, "checksum": _checksum(values)}, allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Calibration":
        """A card from the text that `to_json` gave; refused if damaged or edited by hand."""
        try:
            values = parse_json(text)
        except ValueError as error:
            is_json = not isinstance(error, json.JSONDecodeError)
            _damaged(str(error) if is_json else "it is not JSON")
        if not isinstance(values, dict) or values.pop("kind", None) != _KIND:
            _damaged("it is another file")
        if type(version := values.get("version")) is not int:
            _damaged("its version is no number")
        if version != VERSION:
            fix = "Update Sureshot." if version > VERSION else _AGAIN
            raise SureshotError(
                f"The calibration card is of version {version} and this Sureshot reads {VERSION}. "
                f"{fix}"
            )
        checksum = values.pop("checksum", None)
        if checksum != _checksum({"kind": _KIND, **values}):
            raise SureshotError(
                "The calibration card was changed after it was made, so its percentages cannot be "
                f"believed. Put the original back, or make a new one. {_AGAIN}"
            )
        try:
            return build(cls, values)
        except SureshotError as error:
            _damaged(str(error))


def checked_prior(prior: float) -> float:
    """A share of searches for what is here, if it is one."""
    if not 0 < prior <= 1:
        raise ArgumentError(
            f"{option('prior', str(prior))} must be above 0 and at most 1, such as 0.5: the share "
            "of searches for what is here."
        )
    return prior


def _checksum(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(why: str) -> NoReturn:
    raise SureshotError(f"The calibration card cannot be used: {why[:300]}. {_AGAIN}")


def load_card(path: Path) -> Calibration:
    """The card of a file, if it can be believed."""
    try:
        text = read_text(path, SETTINGS)
    except OSError as error:
        raise SureshotError(
            f"The calibration card {path} cannot be read: {reason_of(error)}. {_AGAIN}"
        ) from None
    except ValueError as error:
        _damaged(str(error))
    return Calibration.from_json(text)


def save_card(card: Calibration, path: Path) -> None:
    """Write a card, whole or not at all; an older one is replaced."""
    try:
        write_text(path, card.to_json() + "\n")
    except OSError as error:
        raise SureshotError(
            f"The calibration card {path} cannot be written: {reason_of(error)}. Fix that, then "
            "try again."
        ) from None

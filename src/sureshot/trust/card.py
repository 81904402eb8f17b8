"""The calibration card: what was learned from labelled queries, and what it holds for."""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer, Num

from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_text
from sureshot.settings import SETTINGS, build, parse_json, read_text, to_values
from sureshot.trust.signals import (
    RESULTS,
    UNKNOWN,
    QueryContext,
    QuerySignals,
    ResultSignals,
    features,
    margin_over_bank,
    query_signals,
    result_signals,
)


@dataclass(frozen=True)
class ProbabilityQuality:
    """How good a probability was on the queries it was not fitted to.

    Attributes:
        cases: number of results that were judged.
        share: share of the cases that is right.
        auroc: how often a right case has the higher probability than a wrong one; 0.5 is chance.
        auroc_low: lower end of the 95 % interval of ``auroc`` over videos.
        auroc_high: upper end of that interval.
        brier: mean squared error of the probability.
        brier_base: mean squared error of always saying ``share``.
        ece: expected calibration error in 15 bins.
        ece_floor: calibration error that a perfect probability has on as many cases.
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


@dataclass(frozen=True)
class Quality:
    """What the certifying queries say.

    Attributes:
        top1: quality of the probability that the first result is relevant.
        result: quality of the probability that one of the first ten results is.
        absent_auroc: AUROC of `margin_over_bank`, queries whose relevant videos are all there
            against the same queries with all of them removed; None where that leaves no video.
    """

    top1: ProbabilityQuality
    result: ProbabilityQuality
    absent_auroc: float | None


COVERAGES = (0.8, 0.9, 0.95)  # of the sets that are printed and measured
_DIGITS = 7
_EPS = 1e-6  # relative; scores of one pair differ by less between two ways to compute them


@dataclass(frozen=True)
class Nonconformity:
    """What labelled queries score, the larger the stranger; a reference for new ones.

    For a conformal set the nonconformity of a query is how far the video it seeks scores below the
    best one, and the set takes every video that is no further below than a quantile of these. Of
    all queries like the labelled ones, whose video is in the gallery, the share that finds it in
    the set is at least the coverage; nothing is promised for one query or one kind of queries.
    Queries of one video are not independent, so they share the weight of one.

    Attributes:
        scores: score of each query, ascending.
        sharing: how many of them are of the same video as each.
    """

    scores: tuple[float, ...]
    sharing: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.sharing) or min(self.sharing, default=1) < 1:
            raise SureshotError("A reference needs a number of queries, 1 or more, per score.")
        ascending = all(a <= b for a, b in pairwise(self.scores))
        if not (self.scores and ascending and all(map(math.isfinite, self.scores))):
            raise SureshotError("A reference needs finite scores in ascending order, one at least.")

    @classmethod
    def of(
        cls,
        scores: Float[np.ndarray, " queries"],
        video: Integer[np.ndarray, " queries"] | None = None,
    ) -> "Nonconformity":
        """A reference from the scores of labelled queries, each about a video of this number.

        Scores are rounded up to seven digits, which makes sets a trifle larger, never smaller.
        """
        about = np.arange(len(scores)) if video is None else video
        _, place, count = np.unique(about, return_inverse=True, return_counts=True)
        order = np.argsort(scores, kind="stable")
        rounded = tuple(_rounded_up(float(score)) for score in scores[order])
        return cls(rounded, tuple(int(n) for n in count[place][order]))

    @cached_property
    def videos(self) -> int:
        """Videos that the queries are about."""
        return round(sum(1 / n for n in self.sharing))

    @cached_property
    def _below(self) -> Float64[np.ndarray, " one_more"]:
        """Weight of the 0, 1, 2, ... smallest scores; all videos and a new one weigh 1."""
        weights = 1 / np.array(self.sharing) / (self.videos + 1)
        return np.concatenate([[0.0], np.cumsum(weights)])

    def quantile(self, coverage: float) -> float:
        """The smallest score with at least ``coverage`` of the weight at or below it.

        With one query per video: the ceil((n + 1) coverage)-th smallest of n scores. It is ``inf``
        where there are too few videos to promise such a coverage; that is no set of all videos.

        References:
            Lee, Barber and Willett, "Distribution-free inference with hierarchical data",
            arXiv:2306.06342.

        Examples:
            >>> Nonconformity.of(np.arange(9.0)).quantile(0.9)
            8.0
            >>> Nonconformity.of(np.arange(8.0)).quantile(0.9)
            inf
        """
        if not 0 < coverage < 1:
            raise SureshotError(
                f"coverage is {coverage}; it must be above 0 and below 1, for instance 0.9."
            )
        place = int(np.searchsorted(self._below, coverage - 1e-12))
        return self.scores[place - 1] if place <= len(self.scores) else math.inf

    def p_value(self, scores: Float[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """How many are at least as strange, of the reference and the new one itself; above 0.

        Where the new query is like those of the reference, it is below any a in at most a share
        a of cases.
        """
        rounding = _EPS * np.abs(scores)
        place = np.searchsorted(self.scores, scores - rounding, side="left")
        return np.minimum(1.0, 1 - self._below[place])


def _rounded_up(value: float) -> float:
    """The next number of seven digits, itself if it is one."""
    if value == 0:
        return 0.0
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    near = round(value, places)
    return near if near >= value else round(near + 10.0**-places, places)


_STEPS = 100
_DONE = 1e-10  # gradient of one unit of weight


@dataclass(frozen=True)
class Logistic:
    """A probability from some features: sigmoid(bias + coef . (x - mean) / scale).

    Attributes:
        mean: mean of each feature where it was fitted.
        scale: spread of each feature where it was fitted; 1 for a constant one.
        bias: logit where every feature is at its mean.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coef: tuple[float, ...]
    bias: float

    @classmethod
    def fit(
        cls,
        features: Float[np.ndarray, "rows features"],
        right: Num[np.ndarray, " rows"] | Bool[np.ndarray, " rows"],
        weights: Float[np.ndarray, " rows"] | None = None,
    ) -> "Logistic":
        """Minimise |coef|^2 / 2 + the sum of the log losses, each with its weight.

        Features are standardised first, so the penalty treats all alike; the bias is not
        penalised. The penalty keeps the fit finite where the labels can be separated. On synthetic
        data it calibrates 60 to 600 labelled queries better than one three times as strong, and no
        worse than one a third as strong. A constant feature gets coefficient 0.

        Examples:
            >>> fitted = Logistic.fit(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]))
            >>> fitted.probability(np.array([[0.0], [2.0]])).round(2)
            array([0.15, 0.53])
        """
        weights = np.ones(len(features)) if weights is None else weights
        total = weights.sum()
        share = (weights * right).sum() / total
        if not 1e-12 < share < 1 - 1e-12:
            raise SureshotError(
                "All labels are the same; a probability needs answers that were right and answers "
                "that were wrong. Judge more queries."
            )
        mean = weights @ features / total
        spread = np.sqrt(weights @ (features - mean) ** 2 / total)
        # A constant column may differ from its own mean by rounding.
        constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        scale = np.where(constant, 1.0, spread)
        inputs = np.where(constant, 0.0, (features - mean) / scale)
        count = inputs.shape[1]
        *coef, bias = _newton(
            np.column_stack([inputs, np.ones(len(inputs))]),
            right.astype(np.float64),
            weights,
            penalty=np.append(np.ones(count), 0.0),
            start=np.append(np.zeros(count), np.log(share / (1 - share))),
        ).tolist()
        return cls(tuple(mean.tolist()), tuple(scale.tolist()), tuple(coef), bias)

    def adapted(
        self,
        features: Float[np.ndarray, "rows features"],
        right: Num[np.ndarray, " rows"] | Bool[np.ndarray, " rows"],
        weights: Float[np.ndarray, " rows"] | None = None,
        *,
        shift: float,
        slope: float = 0.0,
        each: float = 0.0,
    ) -> "Logistic":
        """The same fit, moved by new data as far as they outweigh it: a maximum a posteriori.

        The new logit is l + a + b l + c x, where l is the old one and x are the standardised
        features. a, b and c come from normal distributions around 0, so that few rows move it
        little, rows of one label only are enough, and many rows replace it.

        Args:
            shift: spread of a, logits above 0.
            slope: spread of b; 0 keeps it at 0.
            each: spread of each c; 0 keeps them at 0.
        """
        inputs, coef = self._standardised(features), np.array(self.coef)
        logit = inputs @ coef + self.bias
        columns, spread = [np.ones((len(inputs), 1))], [shift]
        if slope:
            columns.append(logit[:, None])
            spread.append(slope)
        if each:
            columns.append(inputs)
            spread += [each] * inputs.shape[1]
        moved = _newton(
            np.concatenate(columns, axis=1),
            right.astype(np.float64),
            np.ones(len(inputs)) if weights is None else weights,
            penalty=1 / np.square(spread),
            start=np.zeros(len(spread)),
            offset=logit,
        )
        by = moved[1] if slope else 0.0
        coef = coef * (1 + by) + (moved[-len(coef) :] if each else 0.0)
        bias = self.bias * (1 + by) + moved[0]
        return replace(self, coef=tuple(coef.tolist()), bias=float(bias))

    def probability(
        self, features: Float[np.ndarray, "rows features"]
    ) -> Float64[np.ndarray, " rows"]:
        """Probability of each row, 0 to 1."""
        return sigmoid(self._standardised(features) @ np.array(self.coef) + self.bias)

    def _standardised(
        self, features: Float[np.ndarray, "rows features"]
    ) -> Float64[np.ndarray, "rows features"]:
        return (features.astype(np.float64) - np.array(self.mean)) / np.array(self.scale)


def sigmoid(logit: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """Probability of a logit, 1 / (1 + exp(-logit)), without overflow."""
    return np.exp(-np.logaddexp(0, -logit))


def _newton(
    design: Float64[np.ndarray, "rows columns"],
    labels: Float64[np.ndarray, " rows"],
    weights: Float64[np.ndarray, " rows"],
    *,
    penalty: Float64[np.ndarray, " columns"],
    start: Float64[np.ndarray, " columns"],
    offset: Float64[np.ndarray, " rows"] | float = 0.0,
) -> Float64[np.ndarray, " columns"]:
    """Coefficients at the least penalised loss; ``offset`` is added to every logit."""
    coef = start

    def loss(weight: Float64[np.ndarray, " columns"]) -> float:
        logit = design @ weight + offset
        data = weights * (np.logaddexp(0, logit) - labels * logit)
        return float(data.sum() + (penalty * weight**2).sum() / 2)

    here = loss(coef)
    for _ in range(_STEPS):
        predicted = sigmoid(design @ coef + offset)
        gradient = design.T @ (weights * (predicted - labels)) + penalty * coef
        if np.abs(gradient).max() <= _DONE * weights.sum():
            break
        curvature = weights * predicted * (1 - predicted)
        hessian = (design * curvature[:, None]).T @ design + np.diag(penalty + 1e-12)
        step = np.linalg.solve(hessian, gradient)
        # Far from the minimum a whole step may climb; halves of it come to descend.
        while (there := loss(coef - step)) > here and np.abs(step).max() > 1e-14:
            step /= 2
        coef, here = coef - step, min(there, here)
    return coef


VERSION = 3
_KIND = "sureshot calibration"
_AGAIN = "Calibrate again with `sureshot calibrate`."


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
        fitted: videos whose queries the probabilities were fitted to.
        certified: videos whose queries sets and p-values come from.
        background: whether queries came with their scores against videos from elsewhere.
        words: whether they came with their number of words.
        dataset: title of where the labels come from.
        date: date of the calibration, such as 2026-11-30.
    """

    model: str
    bank: str | None
    smallest: int
    largest: int
    queries: int
    videos: int
    fitted: int
    certified: int
    background: bool
    words: bool
    dataset: str
    date: str


@dataclass(frozen=True)
class Reference:
    """What queries whose video is there score in galleries of one size.

    Attributes:
        videos: size of the gallery.
        best: minus the `sureshot.trust.signals.margin_over_bank` of each.
        below: how far the best relevant video of each is below the best of all.
    """

    videos: int
    best: Nonconformity
    below: Nonconformity


@dataclass(frozen=True)
class Personal:
    """What judgements of the library itself changed about the card of its model.

    Attributes:
        queries: judged queries of which a first hit was known to be right or wrong.
        right: share of these first hits that was right.
        before: mean probability of them before.
        after: mean probability of them afterwards.
        level: what was changed: ``level`` of all percentages; ``slope`` too; or ``all`` weights.
        sets: whether the sizes of sets are of these judgements.
    """

    queries: int
    right: float
    before: float
    after: float
    level: str
    sets: bool


@dataclass(frozen=True)
class Calibration:
    """Turns scores into probabilities, sets and p-values; `fit_card` makes one.

    Scores are rows of queries and columns of videos, and are those that order the results:
    similarities, minus the hub correction where there is one.

    Attributes:
        valid_for: what it is valid for.
        refused: why no percentage may be shown; empty if they may.
        temperature: temperature of the softmax in the signals.
        top1: probability that the first result is relevant, from `QuerySignals`.
        result: probability that a result is relevant, from `ResultSignals`.
        references: what queries score that have an answer, by size of the gallery, ascending, for
            each data set that it was learned from.
        quality: how good the probabilities are on queries they were not fitted to; None before
            that was measured.
        personal: what judgements of the library itself changed; None where there are none.
        signals, result_signals: names of the signals of a query and of a result.
    """

    valid_for: Validity
    refused: str
    temperature: float
    top1: Logistic
    result: Logistic
    references: tuple[tuple[Reference, ...], ...]
    quality: Quality | None
    personal: Personal | None = None
    signals: tuple[str, ...] = QuerySignals._fields
    result_signals: tuple[str, ...] = ResultSignals._fields
    version: int = VERSION

    def __post_init__(self) -> None:
        for fit, names, known in (
            (self.top1, self.signals, QuerySignals._fields),
            (self.result, self.result_signals, ResultSignals._fields),
        ):
            if names != known:
                _damaged("its signals are not those of this version")
            if not len(fit.coef) == len(fit.mean) == len(fit.scale) == len(known):
                _damaged("it has not one coefficient per signal")
            if min(fit.scale) <= 0:
                _damaged("the scale of a signal is not above 0")
        for references in self.references or ((),):
            sizes = [reference.videos for reference in references]
            if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1:
                _damaged("the sizes of its galleries do not ascend")
        if not self.temperature > 0:
            _damaged("its temperature is not above 0")

    def p_top1(
        self, scores: Float[np.ndarray, "queries videos"], about: QueryContext = UNKNOWN
    ) -> Float64[np.ndarray, " queries"]:
        """Probability that the first result of each query is relevant, if a relevant one is there.

        In a gallery smaller than the smallest calibrated one it is what the same signals mean in
        that one, so a small library makes nothing surer. In one that has outgrown the card it is
        extrapolated in log N.
        """
        self._check_known(about)
        signals = query_signals(scores, self.temperature, about)
        return self.top1.probability(features(signals, smallest=self.valid_for.smallest))

    def p_relevant(
        self,
        scores: Float[np.ndarray, "queries videos"],
        about: QueryContext = UNKNOWN,
        *,
        results: int | None = RESULTS,
    ) -> tuple[Int[np.ndarray, "queries results"], Float64[np.ndarray, "queries results"]]:
        """Columns of the best videos, best first, and the probability that each is relevant.

        Probabilities never rise; that of the first is `p_top1`. The others were fitted to the first
        ten results and judged by them; further down they are extrapolated.

        Args:
            results: number of videos of each query; all if None.
        """
        first = self.p_top1(scores, about)
        order, signals = result_signals(scores, self.temperature, about, results=results)
        rows = features(signals, smallest=self.valid_for.smallest)
        probability = self.result.probability(rows).reshape(order.shape)
        probability[:, 0] = first
        return order, np.minimum.accumulate(probability, axis=1)

    def p_inside(
        self, scores: Float[np.ndarray, "queries videos"], about: QueryContext = UNKNOWN
    ) -> Float64[np.ndarray, " queries"]:
        """p-value of "a relevant video is in the gallery", above 0.

        Of the queries whose video is there, at most a share a gets a value below a, on average over
        the data sets of the card. The best score in a gallery, and with it the margin, rises with
        its size; between the calibrated sizes the p-value is interpolated in log size, and outside
        of them that of the nearest is taken: too large in a gallery that has outgrown the card,
        too small in one below its range.
        """
        self._check_known(about)
        if not (scores.max(1) > -np.inf).all():
            raise SureshotError("A row of scores rules out every video.")
        strange = -margin_over_bank(scores, about.background)
        found = []
        for part in self.references:
            each = np.stack([reference.best.p_value(strange) for reference in part], axis=1)
            found.append(self._at_size(part, each, scores, about))
        return np.mean(found, axis=0)

    def reach(
        self,
        scores: Float[np.ndarray, "queries videos"],
        coverage: float,
        about: QueryContext = UNKNOWN,
    ) -> Float64[np.ndarray, " queries"] | None:
        """How far below the best video of each query its set of plausible ones reaches, in scores.

        Of all queries like those of one data set of the card, whose video is there, the share that
        finds a relevant one in the set is at least ``coverage``; where the data sets differ the
        largest set is taken. It does not hold for one query, nor for one kind of queries. None
        where there are too few labels to promise that.
        """
        reaches = []
        for part in self.references:
            each = np.array([[reference.below.quantile(coverage) for reference in part]])
            if np.isinf(each).any():
                return None
            reaches.append(self._at_size(part, each.repeat(len(scores), 0), scores, about))
        return np.max(reaches, axis=0)

    @staticmethod
    def _at_size(
        part: tuple[Reference, ...],
        values: Float64[np.ndarray, "queries sizes"],
        scores: Float[np.ndarray, "queries videos"],
        about: QueryContext,
    ) -> Float64[np.ndarray, " queries"]:
        """What is known at some sizes of a gallery, interpolated in log size; the ends go on."""
        known = np.log([reference.videos for reference in part])
        there = (scores > -np.inf).sum(1) if about.videos is None else [about.videos] * len(scores)
        pairs = zip(np.log(there), values, strict=True)
        return np.array([np.interp(size, known, row) for size, row in pairs])

    def members(
        self,
        scores: Float[np.ndarray, "queries videos"],
        coverage: float = 0.9,
        about: QueryContext = UNKNOWN,
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
        missing = ""
        if self.valid_for.words and about.words is None:
            missing = "their number of words"
        if self.valid_for.background and about.background is None:
            missing = "scores of videos from elsewhere"
        if missing:
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
        except json.JSONDecodeError:
            _damaged("it is not JSON")
        except ValueError as error:
            _damaged(str(error))
        if not isinstance(values, dict) or values.pop("kind", None) != _KIND:
            _damaged("it is another file")
        if type(version := values.get("version")) is not int:
            _damaged("its version is no number")
        if version != VERSION:
            raise SureshotError(
                f"The calibration card is of version {version} and this Sureshot reads {VERSION}; "
                "update Sureshot, or calibrate again with `sureshot calibrate`."
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


def _checksum(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(why: str) -> NoReturn:
    raise SureshotError(f"The calibration card cannot be used: {why[:300]}. {_AGAIN}")


def load_card(path: Path) -> Calibration:
    """The card of a file.

    Raises:
        SureshotError: it cannot be read, or holds no card that can be believed.
    """
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
    """Write a card, whole or not at all; an older one is replaced. A refused one is not written."""
    if card.refused:
        raise SureshotError(f"This calibration is not kept: {card.refused}")
    try:
        write_text(path, card.to_json() + "\n")
    except OSError as error:
        raise SureshotError(
            f"The calibration card {path} cannot be written: {reason_of(error)}. Fix that, then "
            "try again."
        ) from None

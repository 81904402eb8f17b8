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
        ascending = all(a <= b for a, b in pairwise(self.scores))
        if len(self.scores) != len(self.sharing) or min(self.sharing, default=1) < 1:
            raise SureshotError("A reference needs a number of queries, 1 or more, a score.")
        if not (self.scores and ascending and all(map(math.isfinite, self.scores))):
            raise SureshotError("A reference needs finite scores in ascending order, one at least.")

    @classmethod
    def of(
        cls,
        scores: Float[np.ndarray, " queries"],
        video: Integer[np.ndarray, " queries"] | None = None,
    ) -> "Nonconformity":
        """A reference from the scores of labelled queries.

        Scores are rounded up to seven digits, which makes sets a trifle larger, never smaller.

        Args:
            video: number of the video that each query is about; all different if left out.
        """
        if not np.isfinite(scores).all():
            raise SureshotError("A reference needs finite scores, one at least.")
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
    def _values(self) -> Float64[np.ndarray, " queries"]:
        return np.array(self.scores)

    @cached_property
    def _below(self) -> Float64[np.ndarray, " one_more"]:
        """Weight of the 0, 1, 2, ... smallest scores; all videos and a new one weigh 1."""
        weights = 1 / np.array(self.sharing) / (self.videos + 1)
        return np.concatenate([[0.0], np.cumsum(weights)])

    def quantile(self, coverage: float) -> float:
        """The smallest score with at least ``coverage`` of the weight at or below it.

        One query a video: the ceil((n + 1) coverage)-th smallest of n scores.

        Returns:
            The score, or ``inf`` where there are too few videos to promise such a coverage. An
            infinite quantile is no set of all videos; it is no promise.

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

        Where the new query is like those of the reference, it lies below any a in at most a share
        a of cases.
        """
        rounding = _EPS * np.abs(scores)
        place = np.searchsorted(self._values, scores - rounding, side="left")
        return np.minimum(1.0, 1 - self._below[place])


def _rounded_up(value: float) -> float:
    """The next number of seven digits, itself if it is one."""
    if value == 0:
        return 0.0
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    near = round(value, places)
    return near if near >= value else round(near + 10.0**-places, places)


# On synthetic data 60 to 600 labelled queries are calibrated better than with 0.3, and no worse
# than with anything up to 3.
STRENGTH = 1.0
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

    def __post_init__(self) -> None:
        sizes = {len(self.mean), len(self.scale), len(self.coef)}
        if len(sizes) != 1 or min(self.scale, default=1) <= 0:
            raise SureshotError(
                f"A logistic regression has {len(self.mean)} means, {len(self.scale)} scales and "
                f"{len(self.coef)} coefficients; it needs one of each, and scales above 0."
            )

    @classmethod
    def fit(
        cls,
        features: Float[np.ndarray, "rows features"],
        labels: Num[np.ndarray, " labels"] | Bool[np.ndarray, " labels"],
        *,
        strength: float = STRENGTH,
        weights: Float[np.ndarray, " weights"] | None = None,
    ) -> "Logistic":
        """Minimise |coef|^2 / 2 + strength * (weighted sum of the log losses).

        Features are standardised first, so the penalty treats all alike; the bias is not
        penalised. The penalty keeps the fit finite where the labels can be separated.

        Args:
            features: a constant one gets coefficient 0.
            labels: 0 or 1, or a share between them.
            strength: weight of the data against the penalty, above 0.
            weights: weights of the rows, 0 or more; all 1 if left out.

        Examples:
            >>> fitted = Logistic.fit(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]))
            >>> fitted.probability(np.array([[0.0], [2.0]])).round(2)
            array([0.15, 0.53])
        """
        if not 0 < strength < np.inf:
            raise SureshotError(f"strength is {strength}; it must be finite and above 0.")
        each = _checked_weights(features, labels, weights)
        weight = each[:, None]
        mean = (weight * features).sum(0) / weight.sum()
        spread = np.sqrt((weight * (features - mean) ** 2).sum(0) / weight.sum())
        # A constant column may differ from its own mean by rounding.
        constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        scale = np.where(constant, 1.0, spread)
        inputs = np.where(constant, 0.0, (features - mean) / scale)
        weighed = strength * each
        share = (weighed * labels).sum() / weighed.sum()
        if not 1e-12 < share < 1 - 1e-12:
            raise SureshotError(
                "All labels are the same; a probability needs answers that were right and answers "
                "that were wrong. Judge more queries."
            )
        coef = _newton(
            np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1),
            labels.astype(np.float64),
            weighed,
            penalty=np.append(np.ones(inputs.shape[1]), 0.0),
            start=np.append(np.zeros(inputs.shape[1]), np.log(share / (1 - share))),
        )
        return cls(
            mean=tuple(mean.tolist()),
            scale=tuple(scale.tolist()),
            coef=tuple(coef[:-1].tolist()),
            bias=float(coef[-1]),
        )

    def adapted(
        self,
        features: Float[np.ndarray, "rows features"],
        labels: Num[np.ndarray, " labels"] | Bool[np.ndarray, " labels"],
        *,
        shift: float,
        slope: float = 0.0,
        each: float = 0.0,
        weights: Float[np.ndarray, " weights"] | None = None,
    ) -> "Logistic":
        """The same fit, moved by new data as far as they outweigh it: a maximum a posteriori.

        The new logit is l + a + b l + c x, where l is the old one and x are the standardised
        features. a, b and c come from normal distributions around 0, so that few rows move it
        little, rows of one label only are enough, and many rows replace it.

        Args:
            shift: spread of a, logits above 0.
            slope: spread of b; 0 keeps it at 0.
            each: spread of each c; 0 keeps them at 0.
            weights: weights of the rows, 0 or more; all 1 if left out.
        """
        weight = _checked_weights(features, labels, weights)
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
            labels.astype(np.float64),
            weight,
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
        """Probabilities strictly as the fit says, 0 to 1."""
        if features.shape[1] != len(self.coef):
            raise SureshotError(
                f"{features.shape[1]} features were given to a fit of {len(self.coef)}."
            )
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


def _checked_weights(
    features: Float[np.ndarray, "rows features"],
    labels: Num[np.ndarray, " labels"] | Bool[np.ndarray, " labels"],
    weights: Float[np.ndarray, " weights"] | None,
) -> Float64[np.ndarray, " rows"]:
    """The weights, or ones, of rows that can be fitted to."""
    weight = np.ones(len(features)) if weights is None else weights.astype(np.float64)
    if not len(features) or not len(features) == len(labels) == len(weight):
        raise SureshotError(
            f"{len(features)} rows, {len(labels)} labels and {len(weight)} weights; a fit needs "
            "one of each, and one row at least."
        )
    if not np.isfinite(features).all():
        raise SureshotError("A feature is not finite; nothing can be fitted to it.")
    if not ((labels >= 0) & (labels <= 1)).all():
        raise SureshotError("A label is NaN or outside of 0 to 1.")
    if not (np.isfinite(weight) & (weight >= 0)).all() or not weight.sum() > 0:
        raise SureshotError("Weights must be finite, 0 or more, and not all 0.")
    return weight


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
        below: how far the best relevant video of each lies below the best of all.
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
        signals, result_signals: names of the signals of a query and of a result, which must be
            those of this version.
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
        if self.version != VERSION:
            _damaged(f"it is of version {self.version}, this Sureshot reads {VERSION}")
        for fitted, names, known in (
            (self.top1, self.signals, QuerySignals._fields),
            (self.result, self.result_signals, ResultSignals._fields),
        ):
            if names != known:
                _damaged("its signals are not those of this version")
            if len(fitted.coef) != len(known):
                _damaged("it has not one coefficient a signal")
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
        """The best videos of each query, and the probability that each is relevant, never rising.

        That of the first is `p_top1`. The others were fitted to the first ten results and judged
        by them; further down they are extrapolated.

        Args:
            results: number of videos of each query; all if None.

        Returns:
            Columns, best first, and probabilities.
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
        sizes, queries = np.log(_sizes(scores, about)), np.arange(len(scores))
        found = []
        for part in self.references:
            values = np.stack([reference.best.p_value(strange) for reference in part])
            known = np.log([reference.videos for reference in part])
            place = np.interp(sizes, known, np.arange(len(known)))
            low = np.floor(place).astype(int)
            high, share = np.minimum(low + 1, len(known) - 1), place - low
            found.append((1 - share) * values[low, queries] + share * values[high, queries])
        return np.mean(found, axis=0)

    def reach(
        self,
        scores: Float[np.ndarray, "queries videos"],
        coverage: float = 0.9,
        about: QueryContext = UNKNOWN,
    ) -> Float64[np.ndarray, " queries"] | None:
        """How far below the best video of each query its set of plausible ones reaches.

        Of all queries like those of one data set of the card, whose video is there, the share that
        finds a relevant one in the set is at least ``coverage``; where the data sets differ the
        largest set is taken. It does not hold for one query, nor for one kind of queries.

        Returns:
            A difference of scores for each query; None where there are too few labels.
        """
        sizes = np.log(_sizes(scores, about))
        reaches = []
        for part in self.references:
            known = [(one.videos, one.below.quantile(coverage)) for one in part]
            if any(np.isinf(reach) for _, reach in known):
                return None
            videos, reach = zip(*known, strict=True)
            reaches.append(np.interp(sizes, np.log(videos), reach))
        return np.max(reaches, axis=0)

    def members(
        self,
        scores: Float[np.ndarray, "queries videos"],
        coverage: float = 0.9,
        about: QueryContext = UNKNOWN,
    ) -> Bool[np.ndarray, "queries videos"] | None:
        """Which videos are in the set of each query; None where there are too few labels.

        Ties are in, and so is what differs by rounding. See `reach`.
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
        """A card from the text that `to_json` gave.

        Raises:
            SureshotError: not a card, of another version, damaged, or edited by hand.
        """
        try:
            values = parse_json(text)
        except json.JSONDecodeError:
            _damaged("it is not JSON")
        except ValueError as error:
            _damaged(str(error))
        if not isinstance(values, dict) or values.get("kind") != _KIND:
            _damaged("it is another file")
        version = values.get("version")
        if isinstance(version, int) and version < VERSION:
            raise SureshotError(f"The calibration card was made by an older Sureshot. {_AGAIN}")
        if isinstance(version, int) and version > VERSION:
            raise SureshotError(
                f"The calibration card is of version {version}, this Sureshot reads {VERSION}; "
                "update Sureshot, or calibrate again with `sureshot calibrate`."
            )
        checksum = values.pop("checksum", None)
        if checksum != _checksum(values):
            raise SureshotError(
                "The calibration card was changed after it was made, so its percentages cannot be "
                f"believed. Put the original back, or make a new one. {_AGAIN}"
            )
        del values["kind"]
        try:
            return build(cls, values)
        except SureshotError as error:
            _damaged(str(error))


def _sizes(
    scores: Float[np.ndarray, "queries videos"], about: QueryContext
) -> Int[np.ndarray, " queries"]:
    if about.videos is not None:
        return np.full(len(scores), about.videos)
    return (scores > -np.inf).sum(1)


def _checksum(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(why: str) -> NoReturn:
    raise SureshotError(f"The calibration card cannot be used: {why[:300]}. {_AGAIN}")


def load_card(path: Path) -> Calibration:
    """The card of a file.

    Raises:
        SureshotError: the file cannot be read, or holds no card that can be believed.
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
    """Write a card, whole or not at all; an older one is replaced.

    Raises:
        SureshotError: the card allows no percentages, or it cannot be written.
    """
    if card.refused:
        raise SureshotError(f"This calibration is not kept: {card.refused}")
    try:
        write_text(path, card.to_json() + "\n")
    except OSError as error:
        raise SureshotError(
            f"The calibration card {path} cannot be written: {reason_of(error)}. Fix that, then "
            "try again."
        ) from None

"""The calibration card: what was learned from labelled queries, and what it holds for."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_text
from sureshot.settings import build, to_values
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.logistic import Logistic
from sureshot.trust.risk import Certificate
from sureshot.trust.signals import (
    RESULTS,
    QuerySignals,
    ResultSignals,
    features,
    query_signals,
    result_signals,
    standing,
)

VERSION = 2
_KIND = "sureshot calibration"
_AGAIN = "Calibrate again with `sureshot calibrate`."

Target = Literal["any", "annotated"]


@dataclass(frozen=True)
class Validity:
    """What a card is valid for.

    Attributes:
        model: fingerprint of the model that gave the scores.
        bank: fingerprint of the hub correction in the scores; None without one.
        smallest: number of videos of the smallest gallery it was fitted on.
        largest: number of videos of the largest one.
        queries: number of labelled queries, those without a relevant video not counted.
        videos: number of videos that the queries are about.
        fitted: number of videos whose queries the probabilities were fitted to.
        certified: number of videos whose queries sets, p-values and bounds come from.
        absent: share of queries without a relevant video that ``p_top1`` and the bounds of the
            risk reckon with; at 0 both are about queries whose video is there.
        elsewhere: whether p-values compare with videos from elsewhere.
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
    absent: float
    elsewhere: bool
    dataset: str
    date: str


@dataclass(frozen=True)
class Inside:
    """How far the best video of a query stands out when a relevant one is there.

    Attributes:
        videos: size of the gallery.
        best: minus the `sureshot.trust.signals.standing` of labelled queries.
    """

    videos: int
    best: Nonconformity


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
        absent_auroc: AUROC of the standing, queries whose relevant videos are all there against
            the same queries with all of them removed; None where that leaves no video.
    """

    top1: ProbabilityQuality
    result: ProbabilityQuality
    absent_auroc: float | None


@dataclass(frozen=True)
class Calibration:
    """Turns scores into probabilities, sets and p-values; `fit_card` makes one.

    Scores are rows of queries and columns of videos, and are those that order the results:
    similarities, less the hub correction where there is one.

    Attributes:
        valid_for: what it is valid for.
        refused: why no percentage may be shown; empty if they may.
        temperature: temperature of the softmax in the signals.
        top1: probability that the first result is relevant, from `QuerySignals`.
        result: probability that a result is relevant, from `ResultSignals`.
        annotated: minus the score of the video each query is about; None if unknown.
        any: minus the best score among the relevant videos of each query.
        inside: how far the best video stands out, by size of the gallery, ascending.
        certificates: bounds of the risks that could be certified, ascending.
        quality: how good the probabilities are on queries they were not fitted to; None before
            that was measured.
        signals: names of the signals of a query, which must be those of this version.
        result_signals: names of the signals of a result, which must be those of this version.
        version: version of the file format.
    """

    valid_for: Validity
    refused: str
    temperature: float
    top1: Logistic
    result: Logistic
    annotated: Nonconformity | None
    any: Nonconformity
    inside: tuple[Inside, ...]
    certificates: tuple[Certificate, ...]
    quality: Quality | None
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
        sizes = [inside.videos for inside in self.inside]
        if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1:
            _damaged("the sizes of its galleries do not ascend")
        if not self.temperature > 0:
            _damaged("its temperature is not above 0")

    def p_top1(
        self, scores: Float[np.ndarray, "queries videos"]
    ) -> Float64[np.ndarray, " queries"]:
        """Probability that the first result of each query is relevant.

        In a gallery smaller than the smallest calibrated one it is what the same signals mean in
        that one, so a small library makes nothing surer. In one that has outgrown the card it is
        extrapolated in log N.

        Raises:
            SureshotError: scores that are no scores.
        """
        signals = query_signals(scores, self.temperature)
        return self.top1.probability(features(signals, smallest=self.valid_for.smallest))

    def p_relevant(
        self,
        scores: Float[np.ndarray, "queries videos"],
        *,
        results: int | None = RESULTS,
    ) -> tuple[Int[np.ndarray, "queries results"], Float64[np.ndarray, "queries results"]]:
        """The best videos of each query, and the probability that each is relevant.

        That of the first is `p_top1`. The others were fitted to the first ten results and judged
        by them; further down they are extrapolated.

        Args:
            scores: scores that order the results.
            results: number of videos of each query; all if None.

        Returns:
            Columns, best first, and probabilities.

        Raises:
            SureshotError: as for `p_top1`.
        """
        order, signals = result_signals(scores, self.temperature, results=results)
        rows = features(signals, smallest=self.valid_for.smallest)
        probability = self.result.probability(rows).reshape(order.shape)
        probability[:, 0] = self.p_top1(scores)
        return order, probability

    def p_inside(
        self,
        scores: Float[np.ndarray, "queries videos"],
        elsewhere: Float[np.ndarray, " queries"] | None = None,
    ) -> Float64[np.ndarray, " queries"]:
        """p-value of "a relevant video is in the gallery", above 0.

        Of the queries whose video is there, at most a share a gets a value below a. The best score
        in a gallery, and with it the standing, rises with its size; between the calibrated sizes
        the p-value is interpolated in log size, and outside of them that of the nearest is taken:
        too large in a gallery that has outgrown the card, too small in one below its range.

        Args:
            scores: scores that order the results.
            elsewhere: what each query scores with videos from elsewhere, where the model has some;
                see `sureshot.trust.signals.standing`.

        Raises:
            SureshotError: scores that are no scores, or ``elsewhere`` is missing where the card was
                made with it, or given where it was not.
        """
        if (elsewhere is not None) != self.valid_for.elsewhere:
            has, needs = ("with", "no") if elsewhere is not None else ("without", "such")
            raise SureshotError(
                f"Queries came {has} scores of videos from elsewhere and the calibration knows "
                f"{needs} scores; the p-values would mean something else. {_AGAIN}"
            )
        if not (scores.max(1) > -np.inf).all():
            raise SureshotError("A row of scores rules out every video.")
        best, sizes = standing(scores, elsewhere), (scores > -np.inf).sum(1)
        known = np.log([inside.videos for inside in self.inside])
        values = np.stack([inside.best.p_value(-best) for inside in self.inside])
        at = np.clip(np.interp(np.log(sizes), known, np.arange(len(known))), 0, len(known) - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, len(known) - 1)
        queries = np.arange(len(best))
        share = at - low
        return (1 - share) * values[low, queries] + share * values[high, queries]

    def members(
        self,
        scores: Float[np.ndarray, "*any"],
        coverage: float = 0.9,
        target: Target = "any",
    ) -> Bool[np.ndarray, "*any"] | None:
        """Which videos are in the conformal set.

        Args:
            scores: scores of any videos, that order the results.
            coverage: share of queries whose set holds the target, of those whose target is there.
            target: ``any`` relevant video, or the ``annotated`` one.

        Returns:
            None where there are too few labels to promise this coverage.

        Raises:
            SureshotError: ``coverage`` out of range, or nothing was annotated.
        """
        reference = self.any if target == "any" else self.annotated
        if reference is None:
            raise SureshotError(
                "The labels of this calibration do not say which one video a query is about; "
                'ask for the target "any".'
            )
        return reference.members(scores, coverage)

    def certificate(self, risk: float) -> Certificate | None:
        """The laxest certificate of at most this risk; None if it cannot be certified."""
        kept = [known for known in self.certificates if known.risk <= risk + 1e-9]
        return max(kept, key=lambda known: known.risk) if kept else None

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
            values = json.loads(text, parse_constant=lambda name: _damaged(f"it holds {name}"))
        except (json.JSONDecodeError, RecursionError):
            _damaged("it is not JSON")
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


def _checksum(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(why: str) -> NoReturn:
    raise SureshotError(f"The calibration card cannot be used: {why}. {_AGAIN}")


FILE = "trust.json"  # in the folder of an index or of a checkpoint


def save_card(card: Calibration, path: Path) -> None:
    """Write a card, whole or not at all; one that lay there before is replaced.

    Raises:
        SureshotError: the card allows no percentages, or it cannot be written.
    """
    if card.refused:
        raise SureshotError(f"This calibration is not kept: {card.refused}")
    try:
        write_text(path, card.to_json() + "\n")
    except OSError as error:
        raise SureshotError(
            f"The calibration card {path} cannot be written: {reason_of(error)}."
        ) from None

"""The calibration card: what was learned from labelled queries, and what it holds for."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_text
from sureshot.formats import SETTINGS, parse_json, read_text
from sureshot.settings import build, to_values
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.logistic import Logistic
from sureshot.trust.quality import Quality
from sureshot.trust.signals import (
    RESULTS,
    UNKNOWN,
    About,
    QuerySignals,
    ResultSignals,
    features,
    query_signals,
    result_signals,
    standing,
)

VERSION = 3
_KIND = "sureshot calibration"
_EPS = 1e-6  # relative; scores of one pair differ by less between two ways to compute them
_AGAIN = "Calibrate again with `sureshot calibrate`."


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
        certified: number of videos whose queries sets and p-values come from.
        elsewhere: whether queries came with what they score with videos from elsewhere.
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
    elsewhere: bool
    words: bool
    dataset: str
    date: str


@dataclass(frozen=True)
class Reference:
    """What queries whose video is there score in galleries of one size.

    Attributes:
        videos: size of the gallery.
        best: minus the `sureshot.trust.signals.standing` of each.
        below: how far the best relevant video of each lies below the best of all.
    """

    videos: int
    best: Nonconformity
    below: Nonconformity


@dataclass(frozen=True)
class Own:
    """What judgements of the library itself changed about the card of its model.

    Attributes:
        queries: judged queries of which a first hit was known to be right or wrong.
        right: share of these first hits that was right.
        said: mean probability of them before.
        says: mean probability of them afterwards.
        free: what was changed: ``level`` of all percentages; ``slope`` as well; or ``all`` weights.
        sets: whether the sizes of sets are of these judgements.
    """

    queries: int
    right: float
    said: float
    says: float
    free: str
    sets: bool


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
        references: what queries score that have an answer, by size of the gallery, ascending, for
            each data set that it was learned from.
        quality: how good the probabilities are on queries they were not fitted to; None before
            that was measured.
        own: what judgements of the library itself changed; None where there are none.
        signals: names of the signals of a query, which must be those of this version.
        result_signals: names of the signals of a result, which must be those of this version.
        version: version of the file format.
    """

    valid_for: Validity
    refused: str
    temperature: float
    top1: Logistic
    result: Logistic
    references: tuple[tuple[Reference, ...], ...]
    quality: Quality | None
    own: Own | None = None
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
        self, scores: Float[np.ndarray, "queries videos"], about: About = UNKNOWN
    ) -> Float64[np.ndarray, " queries"]:
        """Probability that the first result of each query is relevant, if a relevant one is there.

        In a gallery smaller than the smallest calibrated one it is what the same signals mean in
        that one, so a small library makes nothing surer. In one that has outgrown the card it is
        extrapolated in log N.

        Raises:
            SureshotError: scores that are no scores, or queries of which less is known than the
                card was made with.
        """
        self._check_known(about)
        signals = query_signals(scores, self.temperature, about)
        return self.top1.probability(features(signals, smallest=self.valid_for.smallest))

    def p_relevant(
        self,
        scores: Float[np.ndarray, "queries videos"],
        about: About = UNKNOWN,
        *,
        results: int | None = RESULTS,
    ) -> tuple[Int[np.ndarray, "queries results"], Float64[np.ndarray, "queries results"]]:
        """The best videos of each query, and the probability that each is relevant, never rising.

        That of the first is `p_top1`. The others were fitted to the first ten results and judged
        by them; further down they are extrapolated.

        Args:
            scores: scores that order the results.
            about: what else is known of the queries.
            results: number of videos of each query; all if None.

        Returns:
            Columns, best first, and probabilities.

        Raises:
            SureshotError: as for `p_top1`.
        """
        first = self.p_top1(scores, about)
        order, signals = result_signals(scores, self.temperature, about, results=results)
        rows = features(signals, smallest=self.valid_for.smallest)
        probability = self.result.probability(rows).reshape(order.shape)
        probability[:, 0] = first
        return order, np.minimum.accumulate(probability, axis=1)

    def p_inside(
        self, scores: Float[np.ndarray, "queries videos"], about: About = UNKNOWN
    ) -> Float64[np.ndarray, " queries"]:
        """p-value of "a relevant video is in the gallery", above 0.

        Of the queries whose video is there, at most a share a gets a value below a, on average over
        the data sets of the card. The best score in a gallery, and with it the standing, rises with
        its size; between the calibrated sizes the p-value is interpolated in log size, and outside
        of them that of the nearest is taken: too large in a gallery that has outgrown the card,
        too small in one below its range.

        Raises:
            SureshotError: as for `p_top1`, or a row that rules out every video.
        """
        self._check_known(about)
        if not (scores.max(1) > -np.inf).all():
            raise SureshotError("A row of scores rules out every video.")
        best, sizes = standing(scores, about.elsewhere), _sizes(scores, about)
        return np.mean([_at_size(part, sizes, -best) for part in self.references], axis=0)

    def reach(
        self,
        scores: Float[np.ndarray, "queries videos"],
        coverage: float = 0.9,
        about: About = UNKNOWN,
    ) -> Float64[np.ndarray, " queries"] | None:
        """How far below the best video of each query its set of plausible ones reaches.

        Of all queries like those of one data set of the card, whose video is there, the share that
        finds a relevant one in the set is at least ``coverage``; where the data sets differ the
        largest set is taken. It does not hold for one query, nor for one kind of queries.

        Returns:
            A difference of scores for each query; None where there are too few labels.

        Raises:
            SureshotError: ``coverage`` out of range.
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
        about: About = UNKNOWN,
    ) -> Bool[np.ndarray, "queries videos"] | None:
        """Which videos are in the set of each query; None where there are too few labels.

        Ties are in, and so is what differs by rounding. See `reach`.
        """
        reach = self.reach(scores, coverage, about)
        if reach is None:
            return None
        top = scores.max(1, keepdims=True)
        return scores >= top - reach[:, None] - _EPS * np.abs(top)

    def _check_known(self, about: About) -> None:
        for what, given, needed in (
            ("scores of videos from elsewhere", about.elsewhere, self.valid_for.elsewhere),
            ("their number of words", about.words, self.valid_for.words),
        ):
            if needed and given is None:
                raise SureshotError(
                    f"Queries came without {what}, and the calibration was made with it; its "
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
    scores: Float[np.ndarray, "queries videos"], about: About
) -> Int[np.ndarray, " queries"]:
    if about.videos is not None:
        return np.full(len(scores), about.videos)
    return (scores > -np.inf).sum(1)


def _at_size(
    references: Sequence[Reference],
    sizes: Int[np.ndarray, " queries"],
    strange: Float64[np.ndarray, " queries"],
) -> Float64[np.ndarray, " queries"]:
    """p-values among the references of one data set, between two sizes interpolated."""
    known = np.log([reference.videos for reference in references])
    values = np.stack([reference.best.p_value(strange) for reference in references])
    at = np.interp(np.log(sizes), known, np.arange(len(known)))
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, len(known) - 1)
    queries = np.arange(len(strange))
    share = at - low
    return (1 - share) * values[low, queries] + share * values[high, queries]


def _checksum(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(why: str) -> NoReturn:
    raise SureshotError(f"The calibration card cannot be used: {why[:300]}. {_AGAIN}")


FILE = "trust.json"  # in the folder of an index or of a checkpoint


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
    """Write a card, whole or not at all; one that lay there before is replaced.

    Raises:
        SureshotError: the card allows no percentages, or it cannot be written.
    """
    if card.refused:
        raise SureshotError(f"This calibration is not kept: {card.refused}")
    try:
        write_text(path, card.to_json() + "\n")
    except OSError as error:
        why = f"The calibration card {path} cannot be written: {reason_of(error)}."
        raise SureshotError(f"{why} Mend that, then try again.") from None

"""How far answers of a model can be believed: numbers for programs, and tables for a terminal."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.errors import SureshotError, option
from sureshot.metrics import confidence
from sureshot.metrics.hubs import hubness_skewness
from sureshot.metrics.intervals import (
    Interval,
    Statistic,
    interval,
    mean_of,
    of_percent,
    ratio_of,
    resampling_note,
)
from sureshot.metrics.ranks import check, row_blocks
from sureshot.settings import to_values
from sureshot.text import aligned, counted
from sureshot.trust.card import COVERAGES, Calibration, sigmoid
from sureshot.trust.fit import fit_card, labelled
from sureshot.trust.signals import (
    UNKNOWN,
    PerQuery,
    QueryContext,
    Scores,
    top_is_relevant,
)

_PLACES = 6  # whose percentages are looked at one by one
_PASSED_OVER = 0.1  # share of the queries with their video that may be called absent
_SUREST = 0.7  # share of the queries whose coverage is looked at by itself
_TAU, _LARGEST = 5.0, 30.0  # of `sureshot.models.losses.uncertainty.evidence`


Owners = Integer[np.ndarray, " queries"]  # column of the video that each query is about
# Calibrations, each with the rows of the queries it judges, none of which it was fitted to.
Parts = list[tuple[Calibration, Int[np.ndarray, " rows"]]]


def cross_fitted(
    scores: Scores, owner: Owners, folds: int, seed: int, about: QueryContext = UNKNOWN
) -> Parts:
    """Calibrations of parts of the videos, each for the queries of the videos it has not seen.

    All videos stay in the gallery. Only the queries are split, those of a video together.
    """
    videos = np.random.default_rng(seed).permutation(np.unique(owner))
    parts = []
    for number in range(folds):
        judged = np.isin(owner, videos[number::folds])
        known = np.flatnonzero(~judged)
        own = owner[known]
        relevant = own[:, None] == np.arange(scores.shape[1])
        card = fit_card([labelled(scores[known], relevant, own, about.of(known))], seed=seed)
        parts.append((card, np.flatnonzero(judged)))
    return parts


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What was predicted of each query, and which of its first ten results are relevant.

    The probability that each of these is right, ``known`` that its video is there; that the
    ``first`` is right and that its video is ``here``, where that is not known; and whether the
    answer is ``called`` absent, with all videos, in row 0, and with its own taken away, in row 1.
    """

    known: Float64[np.ndarray, "queries results"]
    relevant: Bool[np.ndarray, "queries results"]
    first: Float64[np.ndarray, "2 queries"]
    here: Float64[np.ndarray, "2 queries"]
    called: Bool[np.ndarray, "2 queries"]


def predict_unseen(
    parts: Parts, scores: Scores, owner: Owners, about: QueryContext = UNKNOWN
) -> Predictions:
    """What each calibration says of its queries, in the order of the queries."""
    found = []
    for card, rows in parts:
        own, context = owner[rows, None], about.of(rows)
        gone = np.where(own == np.arange(scores.shape[1]), -np.inf, scores[rows])
        order, known = card.p_right(scores[rows], context, prior=1)
        asked = scores[rows], gone
        here = np.stack([card.p_present(each, context) for each in asked])
        first = here * np.stack([card.p_first(each, context) for each in asked])
        called = np.stack([card.called_absent(each, context) for each in asked])
        found.append((known, order == own, first.T, here.T, called.T))
    back = np.argsort(np.concatenate([rows for _, rows in parts]))
    known, relevant, *twice = (np.concatenate(each)[back] for each in zip(*found, strict=True))
    return Predictions(known, relevant, *(each.T for each in twice))


def predicted_sets(
    parts: Parts, scores: Scores, coverage: float, about: QueryContext = UNKNOWN
) -> Bool[np.ndarray, "queries videos"] | None:
    """Which videos are in the conformal set of each query; None where one card promises none."""
    inside = np.empty(scores.shape, bool)
    for card, rows in parts:
        members = card.members(scores[rows], coverage, about.of(rows))
        if members is None:
            return None
        inside[rows] = members
    return inside


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """Results that were graded, each about a query's video, and the chance that draws intervals."""

    right: Bool[np.ndarray, " cases"]
    video: Integer[np.ndarray, " cases"]
    rng: np.random.Generator
    resamples: int

    def twice(self, right: Bool[np.ndarray, " twice"]) -> "Graded":
        """Every query as two cases: the first ones of all, then the second ones."""
        return replace(self, right=right, video=np.tile(self.video, 2))

    def interval(self, statistic: Statistic) -> Interval:
        """A statistic of the results, and where it would be for other videos."""
        return interval(statistic, self.video, self.rng, resamples=self.resamples)

    def auroc(self, values: PerQuery) -> Interval:
        """Area of an order; unknown where all right results, or all wrong ones, are one video's."""
        found = self.interval(confidence.auroc_of(values, self.right))
        apart = min(len(np.unique(self.video[of])) for of in (self.right, ~self.right))
        return replace(found, low=0.0, high=1.0) if apart == 1 else found

    def share(
        self, hits: Bool[np.ndarray, " cases"], among: Bool[np.ndarray, " cases"] | float = 1.0
    ) -> Interval:
        """Share of hits, in which each video counts once, however many queries it has."""
        _, place, count = np.unique(self.video, return_inverse=True, return_counts=True)
        weight = among / count[place]
        return of_percent(self.interval(ratio_of(hits * weight, weight)), len(count), 1.0)


@dataclass(frozen=True, slots=True)
class Order:
    """How one signal orders queries by whether they are answered right.

    See `sureshot.metrics.confidence`; ``risk_50`` and ``risk_80`` are shares of wrong answers among
    the surer half, and the surer 80 %.
    """

    signal: str
    auroc: Interval
    aurc: float
    excess_aurc: float
    augrc: float
    risk_50: float
    risk_80: float
    nauc: float


@dataclass(frozen=True, slots=True)
class Probability:
    """How true a probability of a right answer is; see `sureshot.metrics.confidence`.

    ``brier_of_base_rate`` is that of always saying the share that is right.
    """

    signal: str
    brier: Interval
    brier_of_base_rate: float
    nll: float
    ece: float
    ece_floor: float


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """Mean probability of the results at one place, 1 the first, and the share that is right."""

    place: int
    predicted: float
    right: float


@dataclass(frozen=True, slots=True)
class SetRow:
    """Sets of one promised coverage, 0 to 1, their sizes, and the share that is empty.

    Coverages count every video once, however many queries it has; sizes are of all queries.
    """

    coverage: float
    covered: Interval  # share of the sets that holds the target
    mean: float
    median: float
    empty: float
    worst_third: float  # coverage in that third of the queries, by entropy, where it is lowest
    answered: float  # coverage among the 70 % with the highest probability of a right answer


@dataclass(frozen=True, slots=True)
class AbsentRow:
    """How well a signal separates queries whose video is there from those whose video is not."""

    signal: str
    auroc: Interval
    fpr_95: float  # share of the absent that pass where 95 % of the present do
    caught: float  # share of the absent that are called so where 10 % of the present are


def fit_temperature(scores: Scores, owner: Owners) -> float:
    """The T at which softmax(s / T) gives the annotated videos the most likelihood.

    Minimises the mean of -log of their probabilities over log T, by golden sections between 1/1000
    and 1000 times the spread of the scores, of which not all may be equal.
    """
    below = scores.astype(np.float64)
    below -= below.max(1, keepdims=True)
    own, spread = below[np.arange(len(below)), owner], np.log(below.std() or 1.0)

    def loss(log_t: float) -> float:
        t = np.exp(log_t)
        return float((np.log(np.exp(below / t).sum(1)) - own / t).mean())

    low, high = spread - np.log(1000), spread + np.log(1000)
    while high - low > 1e-4:
        step = (np.sqrt(5) - 1) / 2 * (high - low)
        if loss(high - step) <= loss(low + step):
            high = low + step
        else:
            low = high - step
    return float(np.exp((low + high) / 2))


def softmax_signals(scores: Scores, temperature: float) -> tuple[PerQuery, ...]:
    """Of p = softmax(s / T) the logit of the largest, the entropy, and T log sum exp(s / T)."""
    parts = []
    for rows in row_blocks(*scores.shape):
        below = scores[rows].astype(np.float64)
        top = below.max(1)
        below -= top[:, None]
        z = np.exp(below / temperature)
        total = z.sum(1)
        rest = np.maximum(total - 1, 1e-13)
        entropy = np.log(total) - (z * below).sum(1) / temperature / total
        parts.append((-np.log(rest), entropy, top + temperature * np.log(total)))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def plain_confidences(scores: Scores, temperature: float) -> dict[str, PerQuery]:
    """Confidences that need no labels: of the scores alone, higher is surer.

    The highest similarity, the margin and the standard deviation are those that mteb abstains by,
    the last three one minus the vacuity that DUQ reads as uncertainty, of raw similarities.
    """
    logit, entropy, energy = softmax_signals(scores, temperature)
    two = -np.sort(-scores, axis=1)[:, :2].astype(np.float64)

    def belief(evidence: Callable[[np.ndarray], np.ndarray]) -> PerQuery:
        """The share of the mass that evidence holds, which is all but the vacuity."""
        blocks = (scores[rows].astype(np.float64) for rows in row_blocks(*scores.shape))
        mean = np.concatenate([evidence(block).mean(1) for block in blocks])
        return mean / (mean + 1)

    return {
        "highest similarity": two[:, 0],
        "margin": two[:, 0] - two[:, -1],
        "standard deviation": scores.astype(np.float64).std(1),
        "softmax probability": logit,
        "entropy": -entropy,
        "energy": energy,
        "DUQ 1-u, ReLU evidence": belief(lambda s: np.maximum(s, 0)),
        "DUQ 1-u, softplus evidence": belief(lambda s: np.logaddexp(0, s)),
        "DUQ 1-u, exp evidence": belief(lambda s: np.exp(np.minimum(s / _TAU, _LARGEST))),
    }


def orders(confidences: Mapping[str, PerQuery], graded: Graded) -> tuple[Order, ...]:
    """How each confidence, by the name of its signal, orders the queries; higher is surer."""
    right, wrong = graded.right, ~graded.right
    return tuple(
        Order(
            signal=name,
            auroc=graded.auroc(values),
            aurc=confidence.aurc(values, wrong),
            excess_aurc=confidence.excess_aurc(values, wrong),
            augrc=confidence.augrc(values, wrong),
            risk_50=confidence.risk_at_coverage(values, wrong, 0.5),
            risk_80=confidence.risk_at_coverage(values, wrong, 0.8),
            nauc=confidence.abstention_nauc(values, right),
        )
        for name, values in confidences.items()
    )


def probabilities(
    predicted: Mapping[str, Float[np.ndarray, " cases"]], graded: Graded
) -> tuple[Probability, ...]:
    """How true each probability of a right result is, by the name of its signal."""
    right = graded.right
    return tuple(
        Probability(
            signal=name,
            brier=graded.interval(mean_of(confidence.squared_errors(probability, right))),
            brier_of_base_rate=confidence.brier(np.full(len(right), right.mean()), right),
            nll=confidence.nll(probability, right),
            ece=confidence.ece(probability, right),
            ece_floor=confidence.ece_floor(probability, graded.rng),
        )
        for name, probability in predicted.items()
    )


def _set_row(
    coverage: float,
    inside: Bool[np.ndarray, "queries videos"],
    entropy: PerQuery,
    p_top1: PerQuery,
    graded: Graded,
) -> SetRow:
    holds = inside[np.arange(len(inside)), graded.video]
    size = inside.sum(1)
    third = _places(entropy) * 3 // len(entropy)
    thirds = [graded.share(holds, third == number).value for number in range(3)]
    surest = _places(-p_top1) < _SUREST * len(p_top1)
    return SetRow(
        coverage=coverage,
        covered=graded.share(holds),
        mean=float(size.mean()),
        median=float(np.median(size)),
        empty=float((size == 0).mean()),
        worst_third=min(thirds),
        answered=graded.share(holds, surest).value,
    )


def _places(values: PerQuery) -> Int[np.ndarray, " queries"]:
    """Places from 0, the smallest value."""
    return np.argsort(np.argsort(values, kind="stable"))


_WIDTH = 100

OURS = "P(first is right)"
BEST = "highest similarity"
HERE = "P(it is there)"


@dataclass(frozen=True, slots=True, eq=False)
class TrustReport:
    """How far answers can be believed; see `measure`.

    ``probabilities`` are of a right first result where the video is there, ``unknown`` those where
    half of the queries are asked without their video, and it is not known which. In ``existence``,
    P(it is there), row 0 is asked with all videos and row 1 without the query's own.
    """

    title: str
    queries: int
    videos: int
    queried_videos: int
    right: Bool[np.ndarray, " queries"]  # whether the first result is the annotated video
    hubness: float  # skewness of the 10-occurrence
    resamples: int
    seed: int
    correction: str = ""
    nothing: str = ""  # why nothing could be measured
    refused: str = ""  # why nothing could be calibrated; then there are only orders
    calibration: str = ""
    warnings: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    gain: Interval | None = None  # AUROC of ours minus that of the highest similarity
    probabilities: tuple[Probability, ...] = ()
    unknown: tuple[Probability, ...] = ()
    places: tuple[PlaceRow, ...] = ()
    sets: tuple[SetRow, ...] = ()
    absent: tuple[AbsentRow, ...] = ()
    false_abstention: Interval | None = None  # share of those there that is called absent
    existence: Float[np.ndarray, "2 queries"] | None = None
    reliability: Mapping[str, confidence.Reliability] = field(default_factory=dict)  # by name
    confidences: Mapping[str, PerQuery] = field(default_factory=dict)  # by the name of the signal
    # Number of videos in the set of each query, by coverage.
    sizes: Mapping[float, Int[np.ndarray, " queries"]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; shares are 0 to 1."""
        renamed = {"gain": "auroc_gain", "hubness": "hubness_skewness_10"}
        of_queries = ("confidences", "sizes", "existence")
        names = [one.name for one in fields(self) if one.name not in of_queries]
        values = {renamed.get(name, name): to_values(getattr(self, name)) for name in names}
        bins = [
            {"signal": name, **{key: one.tolist() for key, one in to_values(found).items()}}
            for name, found in self.reliability.items()
        ]
        return values | {"right": float(self.right.mean()), "reliability": bins}

    def text(self) -> str:
        """Tables for a terminal of 100 columns; long sentences are broken."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        queries = counted(self.queries, "query", "queries")
        videos = counted(self.queried_videos, "video")
        right = _percent(self.right.mean())
        yield (
            f"Trust: the first result is the annotated video for {right} of {queries} about "
            f"{videos}."
        )
        if self.correction:
            yield f"Scores include the {self.correction}."
        if self.nothing:
            yield from _wrapped(f"! {self.nothing}")
            return
        yield from _wrapped(self.calibration)
        if self.refused:
            yield from _wrapped(f"! Nothing could be calibrated. {self.refused}")
        for warning in self.warnings:
            yield from _wrapped(f"! {warning}")
        yield resampling_note(self.resamples, self.seed)
        yield "\nWhich signal separates right first results from wrong ones?"
        yield "AUROC 0.5 is chance; risk 50, risk 80: how many of the surest 50 or 80 % are wrong."
        columns = ["AUROC", "AURC", "E-AURC", "AUGRC", "risk 50", "risk 80", "nAUC"]
        yield from _table(self.orders, ["", *columns], _value)
        if self.gain is not None:
            yield f"AUROC of {OURS} minus that of {BEST}: {_value(self.gain, '+.3f')}"
        if not self.refused:
            yield from self._calibrated()

    def _calibrated(self) -> Iterator[str]:
        columns = ["", "Brier", "of base rate", "NLL", "ECE", "best ECE"]
        yield "\nAre the probabilities of the first result true, for what is known to be there?"
        yield "Best ECE: that of a perfect probability with as few queries."
        yield from _table(self.probabilities, columns, _value)
        yield "\nAnd where half of the queries are asked without their video?"
        yield from _table(self.unknown, columns, _value)
        yield "\nPredicted at each place, and how often it is right:"
        yield from _table(self.places, ["place", "predicted", "right"], _percent)
        yield "\nHow often do the sets hold the annotated video?"
        if self.sets:
            yield from _wrapped(
                "Worst third: the third of the queries, by entropy, where they do so least often. "
                "Surest 70 %: by the probability of a right first result."
            )
            columns = ["mean size", "median", "empty", "worst third", "surest 70 %"]
            yield from _table(
                self.sets,
                ["promised", "held", *columns],
                _percent,
                mean="{:.1f}".format,
                median="{:.0f}".format,
            )
        else:
            yield "There are too few queries to promise any coverage."
        yield "\nDoes it show when the video is not there?"
        yield "Each query is asked with its video and without it; videos like it stay."
        columns = ["", "AUROC", "FPR95", "caught at 10 %"]
        yield from _table(self.absent, columns, _value, caught=_percent)
        if self.false_abstention is not None:
            yield (
                f"Called absent though the video is there: {_percent(self.false_abstention)} of "
                "the queries."
            )
        yield f"\nHubness: skewness of N_10 is {self.hubness:.2f}; 0 means no hubs."


def _table(
    rows: Sequence[Any],
    headings: Sequence[str],
    form: Callable[[Any], str],
    **forms: Callable[[Any], str],
) -> list[str]:
    """The fields of some rows below their headings, numbers and intervals in these forms."""

    def cell(row: Any, name: str) -> str:
        value = getattr(row, name)
        return f"{value}" if isinstance(value, str | int) else forms.get(name, form)(value)

    return aligned([headings, *([cell(row, one.name) for one in fields(row)] for row in rows)])


def _wrapped(text: str) -> list[str]:
    indent = "  " if text.startswith("! ") else ""
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _value(found: Interval | float, form: str = ".3f") -> str:
    if isinstance(found, Interval):
        return f"{found.value:{form}} {found.ends(form)}"
    return f"{found:{form}}"


def _percent(share: Interval | float) -> str:
    if isinstance(share, Interval):
        ends = Interval(100 * share.value, 100 * share.low, 100 * share.high).ends()
        return f"{_percent(share.value)} {ends}"
    return f"{100 * share:.1f} %"


def measure(
    scores: Scores,
    owner: Integer[np.ndarray, " owners"],
    about: QueryContext = UNKNOWN,
    *,
    title: str = "",
    correction: str = "",
    card: Calibration | None = None,
    papers: Mapping[str, Float[np.ndarray, " measured"]] | None = None,
    scale: float | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> TrustReport:
    """Judge every query by a calibration that has not seen it, and count how often that was true.

    The first result is right if it is the annotated video; no other video counts as relevant.
    Where nothing can be measured, or nothing calibrated, the report says why.

    Args:
        scores: that order the results; rows are queries, columns videos; a list or tensor too.
        owner: column of the video that each query is about.
        card: calibration to measure, of the same model and hub correction. If left out, the videos
            are split by lot, and the queries of each part are judged by a calibration on those of
            the others; the gallery is the same for all.
        papers: uncertainties of each query that the model's paper defines; higher is less sure.
        scale: factor on the scores in the model's own softmax, if it has one.
    """
    scores, owner, papers = np.asarray(scores), np.asarray(owner), papers or {}
    known = {} if about.background is None else {"background": about.background}
    _check(scores, owner, {**papers, **known})
    relevant = owner[:, None] == np.arange(scores.shape[1])
    graded = Graded(
        right=top_is_relevant(scores, relevant),
        video=owner,
        rng=np.random.default_rng(seed),
        resamples=resamples,
    )
    report = TrustReport(
        title=title,
        queries=len(scores),
        videos=scores.shape[1],
        queried_videos=len(np.unique(owner)),
        right=graded.right,
        hubness=hubness_skewness(scores),
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    if nothing := _nothing(scores, owner, graded.right):
        return replace(report, nothing=nothing)
    # The baselines may see all labels; ours has seen none of those that it is judged by.
    temperature = fit_temperature(scores, owner)
    confidences = plain_confidences(scores, temperature)
    confidences |= {f"minus {name}": -values for name, values in papers.items()}
    try:
        parts = _parts(scores, owner, about, card, seed)
    except SureshotError as error:
        return replace(
            report,
            refused=f"Part of these queries was to calibrate for the rest. {error}",
            orders=orders(confidences, graded),
            confidences=confidences,
        )
    calibration, warnings = _described(len(parts), card, report)
    found = predict_unseen(parts, scores, owner, about)
    ours = found.known[:, 0]
    confidences = {OURS: ours, **confidences}
    scales = {"softmax, fitted temperature": temperature}
    if scale is not None:
        scales[f"softmax, model's scale {scale:.4g}"] = 1 / scale
    softmaxes = {name: sigmoid(softmax_signals(scores, t)[0]) for name, t in scales.items()}
    predicted = {OURS: ours, **softmaxes}
    both = graded.twice(np.concatenate([graded.right, np.zeros(len(owner), bool)]))
    unknown = {OURS: found.first.ravel()}
    best, gone = scores.max(1), np.where(relevant, -np.inf, scores).max(1)
    own, theirs = confidence.auroc_of(ours, graded.right), confidence.auroc_of(best, graded.right)
    inside = {
        coverage: members
        for coverage in COVERAGES
        if (members := predicted_sets(parts, scores, coverage, about)) is not None
    }
    compared = {BEST: np.stack([best, gone]), HERE: found.here, OURS: found.first}
    # Intervals draw random numbers in this order.
    return replace(
        report,
        calibration=calibration,
        warnings=warnings,
        orders=orders(confidences, graded),
        gain=graded.interval(lambda weights: own(weights) - theirs(weights)),
        probabilities=probabilities(predicted, graded),
        unknown=probabilities(unknown, both),
        places=tuple(
            PlaceRow(place, float(found.known[:, place - 1].mean()), float(right.mean()))
            for place, right in enumerate(found.relevant.T[:_PLACES], 1)
        ),
        sets=tuple(
            _set_row(coverage, members, -confidences["entropy"], ours, graded)
            for coverage, members in inside.items()
        ),
        absent=tuple(_absent_row(name, asked, graded) for name, asked in compared.items()),
        false_abstention=graded.share(found.called[0]),
        existence=found.here,
        reliability={
            **{name: confidence.reliability(p, graded.right) for name, p in predicted.items()},
            f"{OURS}, half absent": confidence.reliability(unknown[OURS], both.right),
        },
        confidences=confidences,
        sizes={coverage: members.sum(1) for coverage, members in inside.items()},
    )


def _absent_row(signal: str, asked: Float[np.ndarray, "2 queries"], graded: Graded) -> AbsentRow:
    """How a signal tells each query from the same one without its own video, in row 1."""
    (present, absent), values = asked, asked.ravel()
    there = np.repeat([1.0, 0.0], len(present))
    # Calling so many of the present absent, how many of the absent are caught.
    cut = np.sort(present)[int(_PASSED_OVER * len(present))]
    return AbsentRow(
        signal=signal,
        auroc=graded.twice(there == 1).auroc(values),
        fpr_95=confidence.fpr_at_tpr(values, there),
        caught=float((absent < cut).mean()),
    )


def _parts(
    scores: Scores, owner: Owners, about: QueryContext, card: Calibration | None, seed: int
) -> Parts:
    if card is not None:
        return [(card, np.arange(len(scores)))]
    try:
        return cross_fitted(scores, owner, 2, seed, about)
    except SureshotError:
        # Four parts of five are more to calibrate on than one of two.
        return cross_fitted(scores, owner, 5, seed, about)


def _nothing(scores: Scores, owner: Owners, right: Bool[np.ndarray, " queries"]) -> str:
    """Why there is nothing to measure; empty if there is."""
    if scores.shape[1] < 2:
        return "The gallery has one video, so every answer is that one; there is nothing to judge."
    if (scores == scores[:, :1]).all():
        return "All videos score the same for each query, so nothing can be found."
    if len(np.unique(owner)) < 2:
        return "All queries are about one video; trust needs queries about several."
    if right.all() or not right.any():
        which = "right" if right.all() else "wrong"
        return f"All {len(right)} first results are {which}: there is nothing to tell apart."
    return ""


def _described(
    parts: int, card: Calibration | None, report: TrustReport
) -> tuple[str, tuple[str, ...]]:
    """How it was calibrated, and what speaks against the numbers."""
    if card is None:
        calibration = (
            f"Calibrated on these queries, in {parts} parts by video: no query is judged by "
            "a fit that saw its video."
        )
        return calibration, ()
    valid = card.valid_for
    calibration = (
        f"Calibrated by a card that was made on {valid.queries} queries about {valid.videos} "
        f"videos of {valid.dataset or 'unnamed data'}{', ' if valid.date else ''}{valid.date}."
    )
    warnings = []
    if valid.dataset and valid.dataset == report.title:
        warnings.append(
            "The card was made on the data it is measured on, so its numbers are too good. "
            f"Measure on another split, or leave out {option('card')}."
        )
    if not valid.smallest <= report.videos <= valid.largest:
        warnings.append(
            f"The gallery has {report.videos} videos, and the card was made with {valid.smallest} "
            f"to {valid.largest}; its probabilities are extrapolated."
        )
    return calibration, tuple(warnings)


def _check(
    scores: Scores, owner: Owners, papers: Mapping[str, Float[np.ndarray, " measured"]]
) -> None:
    if not scores.size:
        raise SureshotError("There are no scores; trust needs one query and one video at least.")
    if not np.isfinite(scores).all():
        raise SureshotError("A score is NaN or infinite; trust cannot be measured on it.")
    check(scores, owner)
    for name, values in papers.items():
        if len(values) != len(scores) or not np.isfinite(values).all():
            raise SureshotError(
                f"The uncertainty {name!r} is not one finite number for each of {len(scores)} "
                "queries."
            )

"""How far answers can be believed, measured on queries whose right answers are known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.errors import SureshotError, option
from sureshot.metrics.bootstrap import Interval, interval, of_columns
from sureshot.metrics.detection import auroc, fpr_at_tpr
from sureshot.metrics.hubs import hubness_skewness
from sureshot.metrics.reliability import reliability
from sureshot.trust.assessment import ABSTAIN
from sureshot.trust.card import Calibration
from sureshot.trust.cross_fit import (
    Bounded,
    Judgement,
    Part,
    Sets,
    cross_fitted,
    judge,
    target_of,
    top_softmax,
)
from sureshot.trust.report import (
    BEST,
    OURS,
    SOFTMAX,
    AbsentRow,
    RiskRow,
    SetRow,
    TrustReport,
)
from sureshot.trust.signals import fit_temperature, query_signals, top_is_relevant
from sureshot.trust.table import (
    Order,
    Probability,
    orders,
    plain_confidences,
    probabilities,
)

_ANSWERED = 0.7  # share of the queries whose coverage is looked at by itself
_MORE = 5  # parts, where the queries of fewer are too few to calibrate on
_ENTROPY = 4  # among the signals of a query


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The queries, and the chance and number of resamples for intervals."""

    scores: Float[np.ndarray, "queries videos"]
    owner: Integer[np.ndarray, " queries"]
    elsewhere: Float[np.ndarray, " queries"] | None
    right: Bool[np.ndarray, " queries"]
    rng: np.random.Generator
    resamples: int

    def share(
        self, hits: Bool[np.ndarray, " queries"], among: Bool[np.ndarray, " queries"] | None = None
    ) -> Interval:
        """Share of hits, in which each video counts once, however many queries it has."""
        _, place, count = np.unique(self.owner, return_inverse=True, return_counts=True)
        weight = 1 / count[place]
        if among is not None:
            weight = weight * among
        rows = np.stack([hits * weight, weight], axis=1)
        return interval(rows, self.owner, _ratio, self.rng, resamples=self.resamples)


def measure(
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " owners"],
    elsewhere: Float[np.ndarray, " apart"] | None = None,
    *,
    title: str = "",
    correction: str = "",
    card: Calibration | None = None,
    papers: Mapping[str, Float[np.ndarray, " measured"]] | None = None,
    scale: float | None = None,
    folds: int = 2,
    resamples: int = 200,
    seed: int = 0,
) -> TrustReport:
    """Judge every query by a calibration that has not seen it, and count how often that was true.

    The first result is right if it is the annotated video; no other video counts as relevant.

    Args:
        scores: that order the results; rows are queries, columns videos.
        owner: column of the video that each query is about.
        elsewhere: what each query scores with videos that the model brings along.
        title: of the data and split.
        correction: what was done to the scores before, if anything.
        card: calibration to measure, of the same model and hub correction. If left out, the videos
            are split by lot, and the queries of each part are judged by a calibration on those of
            the others; the gallery is the same for all.
        papers: uncertainties of each query that the model's paper defines; higher is less sure.
        scale: factor on the scores in the model's own softmax, if it has one.
        folds: parts of the videos; five where what these leave is too little to calibrate on.
        resamples: of whole videos, for the intervals.
        seed: of all chance.

    Returns:
        A report. Where nothing can be measured, or nothing calibrated, it says why.

    Raises:
        SureshotError: scores or uncertainties that are not finite, arguments that do not fit
            together, or ``folds`` below 2.
    """
    papers = papers or {}
    apart = {} if elsewhere is None else {"elsewhere": elsewhere}
    _check(scores, owner, {**papers, **apart}, scale, folds)
    relevant = owner[:, None] == np.arange(scores.shape[1])
    asked = _Asked(
        scores,
        owner,
        elsewhere,
        top_is_relevant(scores, relevant),
        np.random.default_rng(seed),
        resamples,
    )
    about = TrustReport(
        title=title,
        queries=len(scores),
        videos=scores.shape[1],
        asked=len(np.unique(owner)),
        right=asked.right,
        hubness=hubness_skewness(scores),
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    nothing = _nothing(asked)
    if nothing:
        return replace(about, nothing=nothing)
    try:
        parts = _parts(asked, card, folds, seed)
    except SureshotError as error:
        temperature = fit_temperature(scores, relevant)
        signals = _signals(asked, temperature, papers)
        return replace(
            about,
            refused=f"Part of these queries was to calibrate for the rest. {error}",
            orders=_orders(asked, signals),
            confidences=signals,
        )
    how, warnings = _told(parts, card, about)
    return _measured(replace(about, how=how, warnings=warnings), asked, parts, papers, scale)


def _measured(
    about: TrustReport,
    asked: _Asked,
    parts: list[Part],
    papers: Mapping[str, Float[np.ndarray, " measured"]],
    scale: float | None,
) -> TrustReport:
    """Everything there is to say, from calibrations that have not seen their queries."""
    said = judge(parts, asked.scores, asked.owner, asked.elsewhere)
    # The fits differ a little; signals are compared over all queries, so at one temperature.
    temperature = float(np.exp(np.mean([np.log(part.card.temperature) for part in parts])))
    confidences = {OURS: said.p_top1, **_signals(asked, temperature, papers)}
    predicted = {OURS: said.p_top1, f"{SOFTMAX}, fitted temperature": said.softmax}
    if scale is not None:
        predicted[f"{SOFTMAX}, model's scale {scale:.4g}"] = top_softmax(asked.scores, 1 / scale)
    several = np.repeat(asked.owner, said.relevant.shape[1])
    by_result = {
        "P(result is right)": said.p_relevant.ravel(),
        f"{SOFTMAX} of the result": said.mass.ravel(),
    }
    entropy = query_signals(asked.scores, temperature)[:, _ENTROPY]
    return replace(
        about,
        orders=_orders(asked, confidences),
        gain=_gain(asked, said.p_top1),
        probabilities=_probabilities(asked, predicted, asked.right, asked.owner),
        results=_probabilities(asked, by_result, said.relevant.ravel(), several),
        target=target_of(parts[0].card),
        sets=tuple(_set_row(asked, found, entropy, said.p_top1) for found in said.sets),
        absent=_absent_rows(asked, said),
        false_abstention=asked.share(said.p_inside < ABSTAIN),
        risks=tuple(_risk_row(asked, found) for found in said.bounded),
        reliability={name: reliability(p, asked.right) for name, p in predicted.items()},
        confidences=confidences,
        sizes={found.coverage: found.size for found in said.sets},
    )


def _orders(
    asked: _Asked, confidences: Mapping[str, Float[np.ndarray, " queries"]]
) -> tuple[Order, ...]:
    rng, resamples = asked.rng, asked.resamples
    return tuple(orders(confidences, asked.right, asked.owner, rng, resamples=resamples))


def _probabilities(
    asked: _Asked,
    predicted: Mapping[str, Float[np.ndarray, " cases"]],
    right: Bool[np.ndarray, " cases"],
    video: Integer[np.ndarray, " cases"],
) -> tuple[Probability, ...]:
    rng, resamples = asked.rng, asked.resamples
    return tuple(probabilities(predicted, right, video, rng, resamples=resamples))


def _parts(asked: _Asked, card: Calibration | None, folds: int, seed: int) -> list[Part]:
    if card is not None:
        return [Part(card, np.arange(len(asked.scores)))]
    try:
        return cross_fitted(asked.scores, asked.owner, folds, seed, asked.elsewhere)
    except SureshotError:
        # What is left of several parts without one is more than half of the videos.
        return cross_fitted(asked.scores, asked.owner, max(folds, _MORE), seed, asked.elsewhere)


def _signals(
    asked: _Asked, temperature: float, papers: Mapping[str, Float[np.ndarray, " measured"]]
) -> dict[str, Float[np.ndarray, " queries"]]:
    """Confidences without labels, and those of the paper turned round."""
    return {
        **plain_confidences(asked.scores, temperature),
        **{f"minus {name}": -values for name, values in papers.items()},
    }


def _gain(asked: _Asked, ours: Float64[np.ndarray, " queries"]) -> Interval:
    best = asked.scores.max(1).astype(np.float64)
    rows = np.stack([ours, best, asked.right.astype(np.float64)], axis=1)

    def gap(part: np.ndarray) -> float:
        return auroc(part[:, 0], part[:, 2]) - auroc(part[:, 1], part[:, 2])

    return interval(rows, asked.owner, gap, asked.rng, resamples=asked.resamples)


def _set_row(
    asked: _Asked,
    found: Sets,
    entropy: Float64[np.ndarray, " queries"],
    p_top1: Float64[np.ndarray, " queries"],
) -> SetRow:
    third = _places(entropy) * 3 // len(entropy)
    answered = _places(-p_top1) < _ANSWERED * len(p_top1)
    groups = [asked.share(found.holds, third == number).value for number in range(3)]
    return SetRow(
        coverage=found.coverage,
        covered=asked.share(found.holds),
        mean=float(found.size.mean()),
        median=float(np.median(found.size)),
        empty=float((found.size == 0).mean()),
        worst_third=min(groups),
        answered=asked.share(found.holds, answered).value,
    )


def _absent_rows(asked: _Asked, said: Judgement) -> tuple[AbsentRow, ...]:
    """Each query beside itself without its own video."""
    gone = asked.scores.copy()
    gone[np.arange(len(gone)), asked.owner] = -np.inf
    pairs = {
        BEST: (asked.scores.max(1).astype(np.float64), gone.max(1).astype(np.float64)),
        "p-value of its being there": (said.p_inside, said.absent_p_inside),
        OURS: (said.p_top1, said.absent_p_top1),
    }
    there = np.repeat([1.0, 0.0], len(gone))
    owner = np.tile(asked.owner, 2)
    rows = []
    for name, (present, absent) in pairs.items():
        both = np.stack([np.concatenate([present, absent]), there], axis=1)
        found = interval(both, owner, of_columns(auroc), asked.rng, resamples=asked.resamples)
        # Calling so many of the present absent, how many of the absent are caught.
        cut = np.sort(present)[int(ABSTAIN * len(present))]
        rows.append(
            AbsentRow(name, found, fpr_at_tpr(both[:, 0], both[:, 1]), float((absent < cut).mean()))
        )
    return tuple(rows)


def _risk_row(asked: _Asked, found: Bounded) -> RiskRow:
    wrong = None
    if found.answered.any():
        rows = np.stack([~asked.right & found.answered, found.answered], axis=1).astype(np.float64)
        wrong = interval(rows, asked.owner, _ratio, asked.rng, resamples=asked.resamples)
    return RiskRow(found.risk, float(found.answered.mean()), wrong, found.certified, found.asked)


def _ratio(rows: Float64[np.ndarray, "queries 2"]) -> float:
    """Sum of the one column over that of the other; 0 where there is nothing."""
    part, whole = rows.sum(0)
    return float(part / whole) if whole > 0 else 0.0


def _places(values: Float64[np.ndarray, " queries"]) -> Int[np.ndarray, " queries"]:
    """Places from 0, the smallest value."""
    places = np.empty(len(values), int)
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    return places


def _nothing(asked: _Asked) -> str:
    """Why there is nothing to measure; empty if there is."""
    count, videos = len(asked.right), asked.scores.shape[1]
    if videos < 2:
        return "The gallery has one video, so every answer is that one; there is nothing to judge."
    if (asked.scores == asked.scores[:, :1]).all():
        return "All videos score the same for each query; such scores find nothing."
    if len(np.unique(asked.owner)) < 2:
        return "All queries are about one video; trust needs queries about several."
    if asked.right.all() or not asked.right.any():
        which = "right" if asked.right.all() else "wrong"
        return f"All {count} first results are {which}: there is nothing to tell apart."
    return ""


def _told(
    parts: list[Part], card: Calibration | None, about: TrustReport
) -> tuple[str, tuple[str, ...]]:
    """How it was calibrated, and what speaks against the numbers."""
    if card is None:
        how = (
            f"calibrated on these queries in {len(parts)} parts by video: none is judged by a fit "
            "that saw its video"
        )
        refusals = dict.fromkeys(part.card.refused for part in parts if part.card.refused)
        return how, tuple(f"Such a calibration would be refused. {why}" for why in refusals)
    valid = card.valid_for
    how = (
        f"calibrated by a card on {valid.queries} queries about {valid.videos} videos of "
        f"{valid.dataset or 'unnamed data'}{', ' if valid.date else ''}{valid.date}"
    )
    warnings = []
    if valid.dataset and valid.dataset == about.title:
        warnings.append(
            "The card was made on the very data that it is measured on: its numbers are too good. "
            f"Measure on another split, or leave out {option('card')}."
        )
    if valid.absent:
        warnings.append(
            f"The card reckons with {100 * valid.absent:.3g} % of queries whose video is not "
            "there, and here all are: its probabilities of a right answer are too low."
        )
    if card.refused:
        warnings.append(f"The card refuses percentages. {card.refused}")
    if not valid.smallest <= about.videos <= valid.largest:
        warnings.append(
            f"The gallery has {about.videos} videos, and the card was made with {valid.smallest} "
            f"to {valid.largest}; its probabilities are extrapolated."
        )
    return how, tuple(warnings)


def _check(
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " owners"],
    papers: Mapping[str, Float[np.ndarray, " measured"]],
    scale: float | None,
    folds: int,
) -> None:
    if not scores.size or len(owner) != len(scores):
        raise SureshotError(
            f"The scores are {scores.shape} and {len(owner)} owners were given; trust needs one "
            "owner a query, and one query and one video at least."
        )
    if not np.isfinite(scores).all():
        raise SureshotError("A score is NaN or infinite; trust cannot be measured on it.")
    if owner.min() < 0 or owner.max() >= scores.shape[1]:
        raise SureshotError(
            f"A query is about video {int(owner.max())} or {int(owner.min())}, and the columns are "
            f"0 to {scores.shape[1] - 1}."
        )
    for name, values in papers.items():
        if len(values) != len(scores) or not np.isfinite(values).all():
            raise SureshotError(
                f"The uncertainty {name!r} is not one finite number for each of {len(scores)} "
                "queries."
            )
    if scale is not None and not 0 < scale < np.inf:
        raise SureshotError(f"scale is {scale}; it must be finite and above 0.")
    if folds < 2:
        raise SureshotError(f"folds is {folds}; at least 2 are needed.")

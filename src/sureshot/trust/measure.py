"""How far answers can be believed, measured on queries whose right answers are known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Integer

from sureshot.errors import SureshotError, option
from sureshot.metrics.hubs import hubness_skewness
from sureshot.metrics.reliability import reliability
from sureshot.trust.assessment import ABSTAIN
from sureshot.trust.card import Calibration
from sureshot.trust.cross_fit import Part, cross_fitted, predict_unseen
from sureshot.trust.logistic import sigmoid
from sureshot.trust.report import BEST, INSIDE, OURS, SOFTMAX, TrustReport
from sureshot.trust.signals import (
    UNKNOWN,
    About,
    fit_temperature,
    query_signals,
    top_is_relevant,
)
from sureshot.trust.table import (
    Graded,
    absent_row,
    auroc_gain,
    orders,
    place_rows,
    plain_confidences,
    probabilities,
    set_row,
)

_MORE = 5  # parts, where the queries of fewer are too few to calibrate on


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The queries, which video each is about, and what the paper of the model says of each."""

    scores: Float[np.ndarray, "queries videos"]
    owner: Integer[np.ndarray, " queries"]
    about: About
    papers: Mapping[str, Float[np.ndarray, " queries"]]

    def confidences(self, temperature: float) -> dict[str, Float[np.ndarray, " queries"]]:
        """Confidences without labels, and those of the paper turned round."""
        return {
            **plain_confidences(self.scores, temperature),
            **{f"minus {name}": -values for name, values in self.papers.items()},
        }


def measure(
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " owners"],
    about: About = UNKNOWN,
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
        scores: scores that order the results; rows are queries, columns videos.
        owner: column of the video that each query is about.
        about: what else is known of the queries.
        title: title of the data and split.
        correction: what was done to the scores before, if anything.
        card: calibration to measure, of the same model and hub correction. If left out, the videos
            are split by lot, and the queries of each part are judged by a calibration on those of
            the others; the gallery is the same for all.
        papers: uncertainties of each query that the model's paper defines; higher is less sure.
        scale: factor on the scores in the model's own softmax, if it has one.
        folds: number of parts of the videos; five where what these leave is too little to calibrate
            on.
        resamples: number of times that whole videos are drawn for the intervals.
        seed: seed of all chance.

    Returns:
        A report. Where nothing can be measured, or nothing calibrated, it says why.

    Raises:
        SureshotError: scores or uncertainties that are not finite, arguments that do not fit
            together, or ``folds`` below 2.
    """
    papers = papers or {}
    known = {} if about.elsewhere is None else {"elsewhere": about.elsewhere}
    _check(scores, owner, {**papers, **known}, scale, folds)
    relevant = owner[:, None] == np.arange(scores.shape[1])
    asked = _Asked(scores=scores, owner=owner, about=about, papers=papers)
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
        asked=len(np.unique(owner)),
        right=graded.right,
        hubness=hubness_skewness(scores),
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    nothing = _nothing(asked, graded)
    if nothing:
        return replace(report, nothing=nothing)
    try:
        parts = _parts(asked, card, folds, seed)
    except SureshotError as error:
        confidences = asked.confidences(fit_temperature(scores, relevant))
        return replace(
            report,
            refused=f"Part of these queries was to calibrate for the rest. {error}",
            orders=orders(confidences, graded),
            confidences=confidences,
        )
    how, warnings = _described(parts, card, report)
    return _measured(replace(report, how=how, warnings=warnings), asked, graded, parts, scale)


def _measured(
    report: TrustReport, asked: _Asked, graded: Graded, parts: list[Part], scale: float | None
) -> TrustReport:
    """Everything there is to say, from calibrations that have not seen their queries."""
    said = predict_unseen(parts, asked.scores, asked.owner, asked.about)
    # The fits differ a little; signals are compared over all queries, so at one temperature.
    temperature = float(np.exp(np.mean([np.log(part.card.temperature) for part in parts])))
    confidences = {OURS: said.p_top1, **asked.confidences(temperature)}
    predicted = {OURS: said.p_top1, f"{SOFTMAX}, fitted temperature": said.softmax}
    if scale is not None:
        logit = query_signals(asked.scores, 1 / scale).top_logit
        predicted[f"{SOFTMAX}, model's scale {scale:.4g}"] = sigmoid(logit)
    each = replace(
        graded,
        right=said.relevant.ravel(),
        video=np.repeat(asked.owner, said.relevant.shape[1]),
    )
    by_result = {
        "P(result is right)": said.p_relevant.ravel(),
        f"{SOFTMAX} of the result": said.mass.ravel(),
    }
    entropy = query_signals(asked.scores, temperature).entropy
    best = asked.scores.max(1)
    gone = asked.scores.copy()
    gone[np.arange(len(gone)), asked.owner] = -np.inf
    return replace(
        report,
        orders=orders(confidences, graded),
        gain=auroc_gain(said.p_top1, best, graded),
        probabilities=probabilities(predicted, graded),
        results=probabilities(by_result, each),
        places=place_rows(said.p_relevant, said.relevant),
        sets=tuple(set_row(sets, entropy, said.p_top1, graded) for sets in said.sets),
        absent=(
            absent_row(BEST, best, gone.max(1), graded),
            absent_row(INSIDE, said.p_inside, said.absent_p_inside, graded),
            absent_row(OURS, said.p_top1, said.absent_p_top1, graded),
        ),
        false_abstention=graded.share(said.p_inside < ABSTAIN),
        reliability={name: reliability(p, graded.right) for name, p in predicted.items()},
        confidences=confidences,
        sizes={sets.coverage: sets.size for sets in said.sets},
    )


def _parts(asked: _Asked, card: Calibration | None, folds: int, seed: int) -> list[Part]:
    if card is not None:
        return [Part(card, np.arange(len(asked.scores)))]
    try:
        return cross_fitted(asked.scores, asked.owner, folds, seed, asked.about)
    except SureshotError:
        # What is left of several parts without one is more than half of the videos.
        return cross_fitted(asked.scores, asked.owner, max(folds, _MORE), seed, asked.about)


def _nothing(asked: _Asked, graded: Graded) -> str:
    """Why there is nothing to measure; empty if there is."""
    count, videos = len(graded.right), asked.scores.shape[1]
    if videos < 2:
        return "The gallery has one video, so every answer is that one; there is nothing to judge."
    if (asked.scores == asked.scores[:, :1]).all():
        return "All videos score the same for each query; such scores find nothing."
    if len(np.unique(asked.owner)) < 2:
        return "All queries are about one video; trust needs queries about several."
    if graded.right.all() or not graded.right.any():
        which = "right" if graded.right.all() else "wrong"
        return f"All {count} first results are {which}: there is nothing to tell apart."
    return ""


def _described(
    parts: list[Part], card: Calibration | None, report: TrustReport
) -> tuple[str, tuple[str, ...]]:
    """How it was calibrated, and what speaks against the numbers."""
    if card is None:
        how = (
            f"Calibrated on these queries, in {len(parts)} parts by video: no query is judged by a "
            "fit that saw its video."
        )
        refusals = dict.fromkeys(part.card.refused for part in parts if part.card.refused)
        return how, tuple(f"Such a calibration would be refused. {why}" for why in refusals)
    valid = card.valid_for
    how = (
        f"Calibrated by a card that was made on {valid.queries} queries about {valid.videos} "
        f"videos of {valid.dataset or 'unnamed data'}{', ' if valid.date else ''}{valid.date}."
    )
    warnings = []
    if valid.dataset and valid.dataset == report.title:
        warnings.append(
            "The card was made on the very data that it is measured on: its numbers are too good. "
            f"Measure on another split, or leave out {option('card')}."
        )
    if card.refused:
        warnings.append(f"The card refuses percentages. {card.refused}")
    if not valid.smallest <= report.videos <= valid.largest:
        warnings.append(
            f"The gallery has {report.videos} videos, and the card was made with {valid.smallest} "
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

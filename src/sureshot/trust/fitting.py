"""From labelled queries to a calibration card.

The videos of the queries are split by lot. To the queries of one third the probabilities are
fitted, in galleries of several sizes drawn from the whole; those of the other two thirds give sets,
p-values and bounds, and judge the probabilities. No video is on both sides.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.bootstrap import interval
from sureshot.metrics.detection import auroc, auroc_of
from sureshot.metrics.reliability import brier, ece, ece_floor
from sureshot.text import counted
from sureshot.trust.card import Calibration, Inside, ProbabilityQuality, Quality, Validity
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.galleries import draw_absent, draw_present, gallery_sizes, most_absent
from sureshot.trust.logistic import Logistic
from sureshot.trust.risk import RISKS, Certificate, certify, thresholds
from sureshot.trust.signals import (
    RESULTS,
    features,
    fit_temperature,
    query_signals,
    result_signals,
    standing,
    top_is_relevant,
)

QUERIES = 50  # fewer are not calibrated on
VIDEOS = 20
OUTCOMES = 20  # right ones, and wrong ones
_FITTED = 1500  # queries that probabilities are fitted to, at most
_KEPT = 1000  # scores a reference on the card, at most or one a video
_RESAMPLES = 200


@dataclass(frozen=True, slots=True, eq=False)
class _Labelled:
    """Some labelled queries.

    Attributes:
        scores: scores that order the results.
        elsewhere: what each query scores with videos that are not in the gallery, if known.
        relevant: whether each video is relevant to each query.
        sought: column of the video each query is about, if known.
        video: number of the video each query belongs to.
    """

    scores: Float[np.ndarray, "queries videos"]
    elsewhere: Float[np.ndarray, " queries"] | None
    relevant: Bool[np.ndarray, "queries videos"]
    sought: Integer[np.ndarray, " queries"] | None
    video: Int[np.ndarray, " queries"]

    def of(self, rows: Int[np.ndarray, " rows"]) -> "_Labelled":
        """Some of the queries."""
        return _Labelled(
            scores=self.scores[rows],
            elsewhere=None if self.elsewhere is None else self.elsewhere[rows],
            relevant=self.relevant[rows],
            sought=None if self.sought is None else self.sought[rows],
            video=self.video[rows],
        )

    def at_most(self, queries: int, rng: np.random.Generator) -> "_Labelled":
        """So many queries of each video that all together are no more, or one of each."""
        each = max(1, queries // len(np.unique(self.video)))
        mixed = rng.permutation(len(self.video))
        mixed = mixed[np.argsort(self.video[mixed], kind="stable")]
        _, first, count = np.unique(self.video[mixed], return_index=True, return_counts=True)
        place = np.arange(len(mixed)) - np.repeat(first, count)
        return self.of(np.sort(mixed[place < each]))

    def within(self, columns: Int[np.ndarray, "queries size"]) -> "_Labelled":
        """The same queries, each in a gallery of its own."""
        return replace(
            self,
            scores=np.take_along_axis(self.scores, columns, 1),
            relevant=np.take_along_axis(self.relevant, columns, 1),
            sought=None,
        )

    def present(self, size: int, rng: np.random.Generator) -> "_Labelled":
        """In galleries that hold a relevant video."""
        return self.within(draw_present(self.relevant, size, rng, self.sought))

    def absent(self, size: int, rng: np.random.Generator) -> "_Labelled":
        """In galleries, as large as there are up to this size, without any relevant video."""
        return self.within(draw_absent(self.relevant, min(size, most_absent(self.relevant)), rng))


def fit_card(
    scores: Float[np.ndarray, "queries videos"],
    relevant: Bool[np.ndarray, "other_queries other_videos"],
    video: Integer[np.ndarray, " labelled"],
    *,
    sought: Integer[np.ndarray, " annotated"] | None = None,
    elsewhere: Float[np.ndarray, " asked"] | None = None,
    model: str = "",
    bank: str | None = None,
    dataset: str = "",
    date: str = "",
    absent: float = 0.0,
    sizes: tuple[int, ...] | None = None,
    seed: int = 0,
) -> Calibration:
    """Calibrate on labelled queries that no model was trained on or chosen by.

    Queries without a relevant video are left out: those are made by taking the relevant videos
    of the others away.

    Args:
        scores: finite scores that order all videos of a gallery for labelled queries:
            similarities, less the hub correction where there is one.
        relevant: whether each video is relevant to each query. Where only one video a query is
            known, "relevant" means that one, and probabilities are of finding that one.
        video: number of the video, or of the group of near copies, that a query belongs to.
            Queries of one are never on both sides of the split.
        sought: column of the video that each query is about, itself relevant; -1 for the queries
            that are left out.
        elsewhere: what each query scores with videos from elsewhere, where the model has some.
        model: fingerprint of what gave the scores.
        bank: fingerprint of the hub correction; None without one.
        dataset: title of the labels.
        date: date to note on the card.
        absent: share of queries to reckon with whose video is not there, 0 to below 1.
        sizes: numbers of videos of the galleries to fit on; six from a fiftieth of the gallery to
            all of it if left out.
        seed: seed of all chance.

    Returns:
        A card. Its ``refused`` says so where the probabilities do not separate right from wrong
        answers on the certifying queries.

    Raises:
        SureshotError: fewer than 50 queries or 20 videos, fewer than 20 right or 20 wrong first
            results, or arguments that do not fit together.
    """
    if not 0 <= absent < 1:
        raise SureshotError(f"absent is {absent}; it must be 0 or more and below 1.")
    known = _labelled(scores, relevant, video, sought, elsewhere)
    rng = np.random.default_rng(seed)
    _enough(known)
    names = rng.permutation(np.unique(known.video))
    third = np.isin(known.video, names[: len(names) // 3])
    fitted = known.of(np.flatnonzero(third)).at_most(_FITTED, rng)
    certifying = known.of(np.flatnonzero(~third))
    gallery = known.scores.shape[1]
    drawn = _sizes(sizes, gallery)
    temperature = fit_temperature(fitted.scores, fitted.relevant)
    top1, result = _probabilities(fitted, drawn, temperature, absent, rng)
    # Chances of their own, so that no part depends on how much another one drew.
    certified, judged = rng.spawn(2)
    reference = certifying.at_most(_KEPT, certified)
    card = Calibration(
        valid_for=Validity(
            model=model,
            bank=bank,
            smallest=drawn[0],
            largest=drawn[-1],
            queries=len(known.video),
            videos=len(names),
            fitted=len(np.unique(fitted.video)),
            certified=len(np.unique(certifying.video)),
            absent=float(absent),
            elsewhere=elsewhere is not None,
            dataset=dataset,
            date=date,
        ),
        refused="",
        temperature=temperature,
        top1=top1,
        result=result,
        annotated=_annotated(reference),
        any=Nonconformity.of(
            -np.where(reference.relevant, reference.scores, -np.inf).max(1).astype(np.float64),
            reference.video,
        ),
        inside=tuple(_inside(reference, size, certified) for size in drawn),
        certificates=_certificates(fitted, certifying, top1, temperature, absent, certified),
        quality=None,
    )
    quality = _quality(card, certifying, judged)
    return replace(card, quality=quality, refused=_refusal(quality.top1))


def _probabilities(
    fitted: _Labelled,
    sizes: tuple[int, ...],
    temperature: float,
    absent: float,
    rng: np.random.Generator,
) -> tuple[Logistic, Logistic]:
    """Fits for the first result and for the first ten; all galleries of a query weigh as one."""
    drawn = [(fitted.present(size, rng), (1 - absent) / len(sizes)) for size in sizes]
    if absent:
        drawn += [(fitted.absent(size, rng), absent / len(sizes)) for size in sizes]
    firsts, results = [], []
    for part, weight in drawn:
        first = features(query_signals(part.scores, temperature))
        firsts.append((first, top_is_relevant(part.scores, part.relevant), weight))
        order, signals = result_signals(part.scores, temperature, results=RESULTS)
        relevant = np.take_along_axis(part.relevant, order, 1).ravel()
        results.append((features(signals), relevant, weight))
    return _logistic(firsts), _logistic(results)


def _logistic(
    parts: list[tuple[Float64[np.ndarray, "_ signals"], Bool[np.ndarray, " _"], float]],
) -> Logistic:
    return Logistic.fit(
        np.concatenate([signals for signals, _, _ in parts]),
        np.concatenate([right for _, right, _ in parts]),
        weights=np.concatenate([np.full(len(right), weight) for _, right, weight in parts]),
    )


def _stream(
    queries: _Labelled, top1: Logistic, temperature: float, absent: float, rng: np.random.Generator
) -> tuple[Float64[np.ndarray, " queries"], Bool[np.ndarray, " queries"]]:
    """Probabilities and outcomes in the whole gallery, some queries having lost their videos."""
    probability = top1.probability(features(query_signals(queries.scores, temperature)))
    right = top_is_relevant(queries.scores, queries.relevant)
    lost = np.flatnonzero(rng.random(len(right)) < absent)
    if len(lost):
        gone = queries.of(lost).absent(queries.scores.shape[1], rng)
        signals = features(query_signals(gone.scores, temperature))
        probability[lost], right[lost] = top1.probability(signals), False
    return probability, right


def _certificates(
    fitted: _Labelled,
    certifying: _Labelled,
    top1: Logistic,
    temperature: float,
    absent: float,
    rng: np.random.Generator,
) -> tuple[Certificate, ...]:
    """One query a video, since the bound needs independent ones."""
    single = certifying.at_most(1, rng)
    confidence, right = _stream(single, top1, temperature, absent, rng)
    foretold, _ = _stream(fitted, top1, temperature, absent, rng)
    tried = (
        certify(confidence, ~right, thresholds(foretold, len(right), risk), risk) for risk in RISKS
    )
    return tuple(certificate for certificate in tried if certificate is not None)


def _quality(card: Calibration, queries: _Labelled, rng: np.random.Generator) -> Quality:
    absent = card.valid_for.absent
    probability, right = _stream(queries, card.top1, card.temperature, absent, rng)
    order, pairs = card.p_relevant(queries.scores, results=RESULTS)
    relevant = np.take_along_axis(queries.relevant, order, 1)
    videos = np.repeat(queries.video, order.shape[1])
    return Quality(
        top1=_judged(probability, right, queries.video, rng),
        result=_judged(pairs.ravel(), relevant.ravel(), videos, rng),
        absent_auroc=_absent_auroc(queries),
    )


def _judged(
    probability: Float64[np.ndarray, " cases"],
    right: Bool[np.ndarray, " cases"],
    video: Int[np.ndarray, " cases"],
    rng: np.random.Generator,
) -> ProbabilityQuality:
    separation = interval(auroc_of(probability, right), video, rng, resamples=_RESAMPLES)
    share = float(right.mean())
    return ProbabilityQuality(
        cases=len(right),
        share=share,
        auroc=separation.value,
        auroc_low=separation.low,
        auroc_high=separation.high,
        brier=brier(probability, right),
        brier_base=share * (1 - share),
        ece=ece(probability, right),
        ece_floor=ece_floor(probability, rng),
    )


def _absent_auroc(queries: _Labelled) -> float | None:
    gone = np.where(queries.relevant, -np.inf, queries.scores)
    rest = standing(gone, queries.elsewhere)
    rest = rest[rest > -np.inf]
    if not len(rest):
        return None
    best = np.concatenate([standing(queries.scores, queries.elsewhere), rest])
    return auroc(best, np.arange(len(best)) < len(queries.scores))


def _refusal(judged: ProbabilityQuality) -> str:
    if judged.auroc_low <= 0.5:
        return (
            f"On the {judged.cases} certifying queries the probability does not tell right from "
            f"wrong first results (AUROC {judged.auroc:.2f}, from {judged.auroc_low:.2f} to "
            f"{judged.auroc_high:.2f}); judge more queries or use a better model."
        )
    if judged.brier >= judged.brier_base:
        return (
            f"On the {judged.cases} certifying queries the probability is no better than always "
            f"saying {100 * judged.share:.0f} % (Brier score {judged.brier:.3f} against "
            f"{judged.brier_base:.3f}); judge more queries."
        )
    return ""


def _inside(queries: _Labelled, size: int, rng: np.random.Generator) -> Inside:
    best = standing(queries.present(size, rng).scores, queries.elsewhere)
    return Inside(size, Nonconformity.of(-best, queries.video))


def _annotated(queries: _Labelled) -> Nonconformity | None:
    if queries.sought is None:
        return None
    sought_scores = queries.scores[np.arange(len(queries.sought)), queries.sought]
    return Nonconformity.of(-sought_scores.astype(np.float64), queries.video)


def _sizes(sizes: tuple[int, ...] | None, gallery: int) -> tuple[int, ...]:
    if sizes is None:
        return gallery_sizes(gallery)
    if not sizes or min(sizes) < 1 or max(sizes) > gallery:
        raise SureshotError(f"Galleries of {sizes} cannot be drawn from {gallery} videos.")
    return tuple(sorted(set(sizes)))


def _labelled(
    scores: Float[np.ndarray, "queries videos"],
    relevant: Bool[np.ndarray, "other_queries other_videos"],
    video: Integer[np.ndarray, " labelled"],
    sought: Integer[np.ndarray, " annotated"] | None,
    elsewhere: Float[np.ndarray, " asked"] | None,
) -> _Labelled:
    """The queries that have a relevant video, all arguments checked."""
    known = np.zeros(len(scores)) if elsewhere is None else elsewhere
    shapes = {scores.shape, relevant.shape}
    rows = {len(scores), len(video), len(known), len(video if sought is None else sought)}
    if len(shapes) != 1 or len(rows) != 1:
        raise SureshotError(
            f"The scores are {scores.shape}, the labels {relevant.shape}, with {len(video)} videos "
            "of queries; give all for the same queries and videos."
        )
    if not np.isfinite(scores).all() or not np.isfinite(known).all():
        raise SureshotError("A score is NaN or infinite; nothing can be calibrated on it.")
    there = np.flatnonzero(relevant.any(1))
    if not len(there):
        raise SureshotError(
            "None of the labelled queries has a relevant video in the gallery, so there is nothing "
            "to calibrate on; label queries whose videos are there."
        )
    if sought is not None:
        columns = sought[there]
        inside = (columns >= 0) & (columns < scores.shape[1])
        if not inside.all() or not relevant[there, columns].all():
            raise SureshotError("A query is about a video that is not labelled relevant to it.")
    _, number = np.unique(video, return_inverse=True)
    labelled = _Labelled(
        scores=scores, elsewhere=elsewhere, relevant=relevant, sought=sought, video=number
    )
    return labelled.of(there)


def _enough(known: _Labelled) -> None:
    queries, videos = len(known.video), len(np.unique(known.video))
    right = int(top_is_relevant(known.scores, known.relevant).sum())
    wrong = queries - right
    wanted = [
        (queries, QUERIES, f"{counted(queries, 'query has', 'queries have')} a right video"),
        (videos, VIDEOS, f"{counted(videos, 'video is', 'videos are')} right for a query"),
        (right, OUTCOMES, f"{counted(right, 'query has', 'queries have')} a right first hit"),
        (wrong, OUTCOMES, f"{counted(wrong, 'query has', 'queries have')} a wrong first hit"),
    ]
    for count, least, few in wanted:
        if count < least:
            raise SureshotError(
                f"Only {few}; {least} are needed for percentages. Judge more queries."
            )

"""From labelled queries to a calibration card.

The videos of the queries are split by lot. To the queries of one third the probabilities are
fitted, in galleries of several sizes drawn from the whole; those of the other two thirds give sets
and p-values, and judge the probabilities. No video is on both sides. Every query has a relevant
video in its galleries: a percentage says how likely a hit is right *if* what was asked for is here.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.bootstrap import interval
from sureshot.metrics.detection import auroc, auroc_of
from sureshot.metrics.reliability import brier, ece, ece_floor
from sureshot.text import counted
from sureshot.trust.card import Calibration, Reference, Validity
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.galleries import gallery_sizes
from sureshot.trust.labelled import Labelled, labelled
from sureshot.trust.logistic import Logistic
from sureshot.trust.quality import ProbabilityQuality, Quality
from sureshot.trust.signals import (
    RESULTS,
    UNKNOWN,
    About,
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
_FITTED = 1500  # queries of one data set that probabilities are fitted to, at most
_KEPT = 1000  # scores a reference on the card, at most or one a video
_SHARED = 150  # the same where there are several data sets
_RESAMPLES = 200


def fit_card(
    scores: Float[np.ndarray, "queries videos"],
    relevant: Bool[np.ndarray, "other_queries other_videos"],
    video: Integer[np.ndarray, " labelled"],
    *,
    about: About = UNKNOWN,
    model: str = "",
    bank: str | None = None,
    dataset: str = "",
    date: str = "",
    sizes: tuple[int, ...] | None = None,
    seed: int = 0,
) -> Calibration:
    """Calibrate on labelled queries of one gallery; see `fit_over`, and `labelled` for the data."""
    return fit_over(
        [labelled(scores, relevant, video, about)],
        model=model,
        bank=bank,
        dataset=dataset,
        date=date,
        sizes=sizes,
        seed=seed,
    )


def fit_over(
    galleries: Sequence[Labelled],
    *,
    model: str = "",
    bank: str | None = None,
    dataset: str = "",
    date: str = "",
    sizes: tuple[int, ...] | None = None,
    seed: int = 0,
) -> Calibration:
    """Calibrate on labelled queries of several data sets, which weigh the same.

    Args:
        galleries: labelled queries that no model was trained on or chosen by. Where only one video
            a query is known, "relevant" means that one, and probabilities are of finding that one.
            Of all, or of none, it is known what they score elsewhere and how many words they have.
        model: fingerprint of what gave the scores.
        bank: fingerprint of the hub correction; None without one.
        dataset: title of the labels.
        date: date to note on the card.
        sizes: numbers of videos of the galleries to fit on; six from a fiftieth of each gallery to
            all of it if left out.
        seed: seed of all chance.

    Returns:
        A card. Its ``refused`` says so where the probabilities do not separate right from wrong
        answers on the certifying queries.

    Raises:
        SureshotError: fewer than 50 queries or 20 videos, fewer than 20 right or 20 wrong first
            results, or sizes that cannot be drawn.
    """
    rng = np.random.default_rng(seed)
    _enough(galleries)
    drawn = [_sizes(sizes, part.scores.shape[1]) for part in galleries]
    parts = [_split(part, rng) for part in galleries]
    fitted = [part.at_most(_FITTED, rng) for part, _ in parts]
    certifying = [rest for _, rest in parts]
    cooled = [np.log(fit_temperature(part.scores, part.relevant)) for part in fitted]
    temperature = float(np.exp(np.mean(cooled)))
    top1, result = _probabilities(fitted, drawn, temperature, rng)
    # Chances of their own, so that no part depends on how much another one drew.
    certified, judged = rng.spawn(2)
    known = galleries[0].about
    card = Calibration(
        valid_for=Validity(
            model=model,
            bank=bank,
            smallest=min(sizes[0] for sizes in drawn),
            largest=max(sizes[-1] for sizes in drawn),
            queries=sum(len(part.video) for part in galleries),
            videos=sum(_videos(part) for part in galleries),
            fitted=sum(_videos(part) for part in fitted),
            certified=sum(_videos(part) for part in certifying),
            elsewhere=known.elsewhere is not None,
            words=known.words is not None,
            dataset=dataset,
            date=date,
        ),
        refused="",
        temperature=temperature,
        top1=top1,
        result=result,
        references=tuple(
            _references(_thinned(part, len(galleries), certified), sizes, certified)
            for part, sizes in zip(certifying, drawn, strict=True)
        ),
        quality=None,
    )
    quality = _quality(card, certifying, judged)
    return replace(card, quality=quality, refused=_refusal(quality.top1))


def _split(part: Labelled, rng: np.random.Generator) -> tuple[Labelled, Labelled]:
    """The queries of a third of the videos, and those of the others."""
    names = rng.permutation(np.unique(part.video))
    third = np.isin(part.video, names[: len(names) // 3])
    return part.of(np.flatnonzero(third)), part.of(np.flatnonzero(~third))


def _videos(part: Labelled) -> int:
    return len(np.unique(part.video))


def _probabilities(
    fitted: Sequence[Labelled],
    drawn: Sequence[tuple[int, ...]],
    temperature: float,
    rng: np.random.Generator,
) -> tuple[Logistic, Logistic]:
    """Fits for the first result and for the first ten; all galleries of a query weigh as one."""
    every = sum(len(part.video) for part in fitted) / len(fitted)
    firsts, results = [], []
    for part, sizes in zip(fitted, drawn, strict=True):
        weight = every / len(part.video) / len(sizes)
        for size in sizes:
            one = part.present(size, rng)
            first = features(query_signals(one.scores, temperature, one.about))
            firsts.append((first, top_is_relevant(one.scores, one.relevant), weight))
            order, signals = result_signals(one.scores, temperature, one.about, results=RESULTS)
            relevant = np.take_along_axis(one.relevant, order, 1).ravel()
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


def _thinned(part: Labelled, parts: int, rng: np.random.Generator) -> Labelled:
    """As many queries as the references of one of some data sets are to hold."""
    if parts == 1:
        return part.at_most(_KEPT, rng)
    single = part.at_most(1, rng)
    return single.of(np.sort(rng.permutation(len(single.video))[:_SHARED]))


def _references(
    queries: Labelled, sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[Reference, ...]:
    references = []
    for size in sizes:
        one = queries.present(size, rng)
        best = -standing(one.scores, one.about.elsewhere)
        below = one.scores.max(1).astype(np.float64) - one.best_relevant()
        references.append(
            Reference(
                videos=size,
                best=Nonconformity.of(best, one.video),
                below=Nonconformity.of(below, one.video),
            )
        )
    return tuple(references)


def _quality(card: Calibration, parts: Sequence[Labelled], rng: np.random.Generator) -> Quality:
    """Queries of a data set are of videos of their own, so their numbers go on."""
    said, right, of_first, pairs, relevant, of_pair, before = [], [], [], [], [], [], 0
    for part in parts:
        said.append(card.p_top1(part.scores, part.about))
        right.append(top_is_relevant(part.scores, part.relevant))
        of_first.append(part.video + before)
        order, probability = card.p_relevant(part.scores, part.about, results=RESULTS)
        pairs.append(probability.ravel())
        relevant.append(np.take_along_axis(part.relevant, order, 1).ravel())
        of_pair.append(np.repeat(part.video + before, order.shape[1]))
        before += int(part.video.max()) + 1
    join = np.concatenate
    return Quality(
        top1=_judged(join(said), join(right), join(of_first), rng),
        result=_judged(join(pairs), join(relevant), join(of_pair), rng),
        absent_auroc=_absent_auroc(parts),
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


def _absent_auroc(parts: Sequence[Labelled]) -> float | None:
    there, gone = [], []
    for part in parts:
        there.append(standing(part.scores, part.about.elsewhere))
        rest = np.where(part.relevant, -np.inf, part.scores)
        lost = standing(rest, part.about.elsewhere)
        gone.append(lost[lost > -np.inf])
    best = np.concatenate([*there, *gone])
    present = np.arange(len(best)) < sum(map(len, there))
    return None if present.all() else auroc(best, present)


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


def _sizes(sizes: tuple[int, ...] | None, gallery: int) -> tuple[int, ...]:
    if sizes is None:
        return gallery_sizes(gallery)
    if not sizes or min(sizes) < 1 or max(sizes) > gallery:
        raise SureshotError(f"Galleries of {sizes} cannot be drawn from {gallery} videos.")
    return tuple(sorted(set(sizes)))


def _enough(galleries: Sequence[Labelled]) -> None:
    queries = sum(len(part.video) for part in galleries)
    videos = sum(_videos(part) for part in galleries)
    right = sum(int(top_is_relevant(part.scores, part.relevant).sum()) for part in galleries)
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

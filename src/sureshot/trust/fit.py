"""From labelled queries to a calibration card.

The videos of the queries are split by lot. To the queries of one third the probabilities are
fitted, in galleries of several sizes drawn from the whole; those of the other two thirds give sets
and p-values, and judge the probabilities. No video is on both sides. Every query has a relevant
video in its galleries: a percentage says how likely a hit is right *if* what was asked for is here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.metrics.confidence import auroc, auroc_of, brier, ece, ece_floor
from sureshot.metrics.intervals import interval
from sureshot.metrics.ranks import row_blocks
from sureshot.settings import to_values
from sureshot.text import counted, percent, plain, printable
from sureshot.trust.card import (
    COVERAGES,
    Calibration,
    Logistic,
    Nonconformity,
    Personal,
    ProbabilityQuality,
    Quality,
    Reference,
    Validity,
    save_card,
)
from sureshot.trust.signals import (
    RESULTS,
    UNKNOWN,
    QueryContext,
    features,
    fit_temperature,
    margin_over_bank,
    query_signals,
    result_signals,
    top_is_relevant,
)


def gallery_sizes(videos: int) -> tuple[int, ...]:
    """Six sizes from a fiftieth of a gallery to all of it, equally far apart in their logarithm.

    The smallest share is low, since a library may be far smaller than the labelled gallery. Two
    videos are the least; sizes that coincide are given once.

    Examples:
        >>> gallery_sizes(1000)
        (20, 44, 96, 209, 457, 1000)
    """
    sizes = np.geomspace(min(videos, max(2.0, 0.02 * videos)), videos, 6)
    return tuple(int(size) for size in np.unique(np.rint(sizes)))


def draw_present(
    relevant: Bool[np.ndarray, "queries videos"], size: int, rng: np.random.Generator
) -> Int[np.ndarray, "queries size"]:
    """Columns, ascending, of a gallery for each query that holds at least one video relevant to it.

    One relevant video is put in; the others are drawn from the rest of the gallery, so that other
    relevant ones come along as often as any.
    """
    drawn = np.empty((len(relevant), size), int)
    for rows in row_blocks(*relevant.shape):
        keys = rng.random(relevant[rows].shape, dtype=np.float32)
        first = np.where(relevant[rows], keys, 2).argmin(1)
        # Its key was the smallest of some, so the rest is drawn again for all to be alike.
        keys = rng.random(keys.shape, dtype=np.float32)
        keys[np.arange(len(keys)), first] = -1
        drawn[rows] = np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)
    return drawn


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Some queries, each with a relevant video in the gallery.

    Attributes:
        video: number of the video, or of the group of near copies, that each query belongs to.
    """

    scores: Float[np.ndarray, "queries videos"]
    relevant: Bool[np.ndarray, "queries videos"]
    video: Int[np.ndarray, " queries"]
    about: QueryContext

    @property
    def video_count(self) -> int:
        """Videos, or groups of near copies, that the queries belong to."""
        return len(np.unique(self.video))

    def of(self, rows: Int[np.ndarray, " rows"]) -> "Labelled":
        """Some of the queries."""
        return Labelled(
            scores=self.scores[rows],
            relevant=self.relevant[rows],
            video=self.video[rows],
            about=self.about.of(rows),
        )

    def at_most(self, queries: int, rng: np.random.Generator) -> "Labelled":
        """As many queries of each video, one at least, that all together are no more than these."""
        each = max(1, queries // self.video_count)
        mixed = rng.permutation(len(self.video))
        mixed = mixed[np.argsort(self.video[mixed], kind="stable")]
        _, first, count = np.unique(self.video[mixed], return_index=True, return_counts=True)
        place = np.arange(len(mixed)) - np.repeat(first, count)
        return self.of(np.sort(mixed[place < each]))

    def present(self, size: int, rng: np.random.Generator) -> "Labelled":
        """The same queries, each in a gallery of its own that holds a relevant video."""
        columns = draw_present(self.relevant, size, rng)
        return replace(
            self,
            scores=np.take_along_axis(self.scores, columns, 1),
            relevant=np.take_along_axis(self.relevant, columns, 1),
        )

    def first_is_right(self) -> Bool[np.ndarray, " queries"]:
        """Whether the first result of each query is relevant."""
        return top_is_relevant(self.scores, self.relevant)


def labelled(
    scores: Float[np.ndarray, "queries videos"],
    relevant: Bool[np.ndarray, "other_queries other_videos"],
    video: Integer[np.ndarray, " labelled"],
    about: QueryContext = UNKNOWN,
) -> Labelled:
    """The queries that have a relevant video.

    Where only one video per query is known, "relevant" means that one, and probabilities are of
    finding that one.

    Args:
        scores: finite scores that order all videos of a gallery: similarities, minus the hub
            correction where there is one.
        video: number of the video, or of the group of near copies, that a query belongs to.
    """
    none = np.zeros(len(scores))
    apart = none if about.background is None else about.background
    words = none if about.words is None else about.words
    if scores.shape != relevant.shape or {len(video), len(apart), len(words)} != {len(scores)}:
        raise SureshotError(
            f"The scores are {scores.shape}, the labels {relevant.shape}, with {len(video)} videos "
            "of queries; give all for the same queries and videos."
        )
    if not np.isfinite(scores).all() or not np.isfinite(apart).all():
        raise SureshotError("A score is NaN or infinite; nothing can be calibrated on it.")
    there = np.flatnonzero(relevant.any(1))
    if not len(there):
        raise SureshotError(
            "None of the labelled queries has a relevant video in the gallery, so there is nothing "
            "to calibrate on; label queries whose videos are there."
        )
    _, number = np.unique(video, return_inverse=True)
    known = Labelled(scores=scores, relevant=relevant, video=number, about=about)
    return known.of(there)


QUERIES = 50  # fewer are not calibrated on
VIDEOS = 20
OUTCOMES = 20  # right ones, and wrong ones
_FITTED = 1500  # queries of one data set that probabilities are fitted to, at most
_KEPT = 1000  # scores per reference on the card, at most, or one per video
_SHARED = 150  # the same where there are several data sets
_RESAMPLES = 200


def fit_card(
    galleries: Sequence[Labelled],
    *,
    model: str = "",
    bank: str | None = None,
    dataset: str = "",
    date: str = "",
    seed: int = 0,
) -> Calibration:
    """Calibrate on labelled queries of one data set, or of several, which weigh the same.

    The card's ``refused`` says so where the probabilities do not separate right from wrong answers
    on the certifying queries.

    Args:
        galleries: labelled queries that no model was trained on or chosen by. Of all, or of none,
            the background and the number of words are known.
        model: fingerprint of what gave the scores.
        bank: fingerprint of the hub correction; None without one.

    Raises:
        SureshotError: fewer than 50 queries or 20 videos, or fewer than 20 right or 20 wrong first
            results.
    """
    rng = np.random.default_rng(seed)
    _check_enough(galleries)
    drawn = [gallery_sizes(part.scores.shape[1]) for part in galleries]
    thirds, certifying = [], []
    for part in galleries:
        names = rng.permutation(np.unique(part.video))
        third = np.isin(part.video, names[: len(names) // 3])
        thirds.append(part.of(np.flatnonzero(third)))
        certifying.append(part.of(np.flatnonzero(~third)))
    fitted = [part.at_most(_FITTED, rng) for part in thirds]
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
            videos=sum(part.video_count for part in galleries),
            fitted=sum(part.video_count for part in fitted),
            certified=sum(part.video_count for part in certifying),
            background=known.background is not None,
            words=known.words is not None,
            dataset=dataset,
            date=date,
        ),
        refused="",
        temperature=temperature,
        top1=top1,
        result=result,
        references=tuple(
            _references(part, sizes, len(galleries) > 1, certified)
            for part, sizes in zip(certifying, drawn, strict=True)
        ),
        quality=None,
    )
    quality = _quality(card, certifying, judged)
    return replace(card, quality=quality, refused=_refusal(quality.top1))


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
            right = one.first_is_right()
            first = features(query_signals(one.scores, temperature, one.about))
            firsts.append((first, right, np.full(len(right), weight)))
            order, signals = result_signals(one.scores, temperature, one.about, results=RESULTS)
            right = np.take_along_axis(one.relevant, order, 1).ravel()
            results.append((features(signals), right, np.full(len(right), weight)))
    return Logistic.fit(*_joined(firsts)), Logistic.fit(*_joined(results))


def _joined(parts: Sequence[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _references(
    queries: Labelled, sizes: tuple[int, ...], shared: bool, rng: np.random.Generator
) -> tuple[Reference, ...]:
    """Scores of the certifying queries of one data set; fewer where several share the card."""
    queries = queries.at_most(1 if shared else _KEPT, rng)
    if shared:
        queries = queries.of(np.sort(rng.permutation(len(queries.video))[:_SHARED]))
    references = []
    for size in sizes:
        one = queries.present(size, rng)
        best = -margin_over_bank(one.scores, one.about.background)
        sought = np.where(one.relevant, one.scores, -np.inf).max(1).astype(np.float64)
        below = one.scores.max(1).astype(np.float64) - sought
        references.append(
            Reference(
                videos=size,
                best=Nonconformity.of(best, one.video),
                below=Nonconformity.of(below, one.video),
            )
        )
    return tuple(references)


def _quality(card: Calibration, parts: Sequence[Labelled], rng: np.random.Generator) -> Quality:
    firsts, results, there, gone = [], [], [], []
    before = 0  # queries of a data set are of videos of their own, so their numbers go on
    for part in parts:
        video = part.video + before
        before = int(video.max()) + 1
        firsts.append((card.p_top1(part.scores, part.about), part.first_is_right(), video))
        order, probability = card.p_relevant(part.scores, part.about)
        right = np.take_along_axis(part.relevant, order, 1).ravel()
        results.append((probability.ravel(), right, np.repeat(video, order.shape[1])))
        there.append(margin_over_bank(part.scores, part.about.background))
        rest = np.where(part.relevant, -np.inf, part.scores)
        lost = margin_over_bank(rest, part.about.background)
        gone.append(lost[lost > -np.inf])
    best = np.concatenate([*there, *gone])
    present = np.arange(len(best)) < sum(map(len, there))
    return Quality(
        top1=_judged(firsts, rng),
        result=_judged(results, rng),
        absent_auroc=None if present.all() else auroc(best, present),
    )


def _judged(
    parts: Sequence[tuple[np.ndarray, ...]], rng: np.random.Generator
) -> ProbabilityQuality:
    """How good probabilities are, given with what was right and the video of each."""
    probability, right, video = _joined(parts)
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


def _check_enough(galleries: Sequence[Labelled]) -> None:
    queries = sum(len(part.video) for part in galleries)
    videos = sum(part.video_count for part in galleries)
    right = sum(int(part.first_is_right().sum()) for part in galleries)
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


JUDGED = 10  # queries that the level of the percentages is learned from, at least
SLOPE = 50  # from which their spread is learned as well
ALL = 200  # from which every weight is
SETS = 9  # queries with a right hit from which sets are of the library's own
_LEVEL, _SPREAD, _EACH = 0.7, 0.3, 0.5  # spreads of the prior, in logits; see LOG.md


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuery:
    """A query whose hits somebody judged.

    Attributes:
        scores: scores of its hits, best first.
        right: whether each of these is right: 1 right, 0 wrong, -1 not known.
        about: what else is known of the query, and the size of the library.
    """

    scores: Float[np.ndarray, " hits"]
    right: Int[np.ndarray, " hits"]
    about: QueryContext


def adapt(card: Calibration, judged: Sequence[JudgedQuery]) -> Calibration:
    """The card of a model, moved towards what was judged in a library.

    A few judgements say whether its percentages are all too low or too high here, more of them
    whether they are spread too far, and many replace it. Every step is a maximum a posteriori
    around the card, so none is refused.

    Args:
        judged: queries of which at least one hit was judged; of one of them the first hit.
    """
    known = [query for query in judged if query.right[0] >= 0]
    level = "level" if len(known) < SLOPE else "slope" if len(known) < ALL else "all"
    slope = 0.0 if level == "level" else _SPREAD
    each = _EACH if level == "all" else 0.0
    smallest = card.valid_for.smallest
    firsts, results = [], []
    for query in judged:
        row = query.scores[None]
        if query.right[0] >= 0:
            signals = query_signals(row, card.temperature, query.about)
            firsts.append((features(signals, smallest=smallest), query.right[:1]))
        hits = np.flatnonzero(query.right[:RESULTS] >= 0)
        _, several = result_signals(row, card.temperature, query.about, results=RESULTS)
        weight = np.full(len(hits), 1 / max(1, len(hits)))  # a query weighs 1
        results.append((features(several, smallest=smallest)[hits], query.right[hits], weight))
    seen, right = _joined(firsts)
    top1 = card.top1.adapted(seen, right, shift=_LEVEL, slope=slope, each=each)
    result = card.result.adapted(*_joined(results), shift=_LEVEL, slope=slope, each=each)
    below = _below(judged)
    references = card.references
    if below is not None:
        references = tuple(
            tuple(replace(reference, below=below) for reference in part) for part in references
        )
    personal = Personal(
        queries=len(known),
        right=float(right.mean()),
        before=float(card.top1.probability(seen).mean()),
        after=float(top1.probability(seen).mean()),
        level=level,
        sets=below is not None,
    )
    return replace(card, top1=top1, result=result, references=references, personal=personal)


def _below(judged: Sequence[JudgedQuery]) -> Nonconformity | None:
    """How far the right hits of these queries are below the best; None if they are too few.

    Where none is right all hits are taken as wrong: the right one is below the last.
    """
    found = [(query.right == 1).any() for query in judged]
    if sum(found) < SETS:
        return None
    below = [
        query.scores[0] - (query.scores[query.right == 1].max() if right else query.scores[-1])
        for query, right in zip(judged, found, strict=True)
    ]
    return Nonconformity.of(np.array(below, np.float64))


@dataclass(frozen=True, slots=True)
class Sets:
    """How large the conformal sets of one coverage are.

    Attributes:
        coverage: share of queries whose set holds a right video, of those that have one.
        videos: mean number of videos in a set; None with too few labels to promise the coverage.
    """

    coverage: float
    videos: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Calibrated:
    """A card and what it was made of.

    Attributes:
        gallery: number of videos that were searched.
        sets: mean size of the sets at each coverage.
        absent: number of queries that were judged to have no right video here.
        not_found: number of queries for which no right video was found.
        left_out: number of queries about videos that are not in the index.
        labels: name of the file of judgements, if there was one.
        file: where the card is; None where it was refused or not to be saved.
    """

    card: Calibration
    gallery: int
    sets: tuple[Sets, ...]
    absent: int = 0
    not_found: int = 0
    left_out: int = 0
    labels: str = ""
    file: Path | None = None

    def saved(self, file: Path) -> "Calibrated":
        """The same with its card in a file. A refused card is not written; an older one stays."""
        if self.card.refused:
            return self
        save_card(self.card, file)
        return replace(self, file=file)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        card = self.card
        return {
            "card": None if self.file is None else printable(self.file),
            "refused": card.refused,
            "valid_for": to_values(card.valid_for),
            "gallery": self.gallery,
            "absent": self.absent,
            "not_found": self.not_found,
            "left_out": self.left_out,
            "quality": None if card.quality is None else to_values(card.quality),
            "personal": None if card.personal is None else to_values(card.personal),
            "sets": [to_values(row) for row in self.sets],
        }

    def __repr__(self) -> str:
        """What the labels gave, in a few sentences."""
        place = [] if self.file is None else [f"Card: {plain(self.file)}"]
        if self.card.personal is not None:
            return "\n".join([*self._moved(self.card.personal), *place])
        valid, refused = self.card.valid_for, self.card.refused
        queries = counted(valid.queries, "query", "queries")
        lines = [
            f"Calibrated on {queries} about {counted(valid.videos, 'video')} "
            f"({plain(valid.dataset)}){self._others()}; {counted(self.gallery, 'video')} searched.",
            *self._measured(),
        ]
        if refused:
            stays = "Any existing calibration card is kept."
            return "\n".join([*lines, f"No percentages and no card: {plain(refused)} {stays}"])
        lines += [
            "How many videos to check for the right one to be among them:",
            *(
                f"  for {100 * row.coverage:.0f} % of queries: "
                + (
                    "too few labels to promise that"
                    if row.videos is None
                    else f"{row.videos:.1f} on average"
                )
                for row in self.sets
            ),
            f"Valid for this model, libraries of {valid.smallest} to {valid.largest} "
            f"moments and queries like these. Date: {plain(valid.date)}.",
        ]
        return "\n".join([*lines, *place])

    def _moved(self, personal: Personal) -> list[str]:
        """What judgements changed, and what more of them would."""
        queries = counted(personal.queries, "judged query", "judged queries")
        more = {
            "level": f"From {SLOPE} judgements on their spread is fitted as well, from {ALL} on "
            "every weight.",
            "slope": f"From {ALL} judgements on every weight is fitted.",
            "all": "All calibration weights were refitted.",
        }
        sets = (
            ""
            if personal.sets
            else f" From {SETS} right hits on, how many to look through is yours."
        )
        return [
            f"Calibrated on {queries} ({plain(self.labels)}){self._others()}.",
            f"First hits were right {percent(personal.right)} of the time. Average predicted: "
            f"{percent(personal.before)} before, {percent(personal.after)} now.",
            f"{more[personal.level]}{sets}",
        ]

    def _others(self) -> str:
        # What is learned from judgements counts these: their first hits are wrong.
        not_found = self.not_found if self.card.personal is None else 0
        parts = [
            (self.absent, "with nothing right here"),
            (not_found, "for which nothing right was found"),
            (self.left_out, "left out because their videos are not in the index"),
        ]
        return "".join(f", {count} more {what}" for count, what in parts if count)

    def _measured(self) -> list[str]:
        quality = self.card.quality
        if quality is None:
            return []
        first, hits = quality.top1, quality.result
        lines = [
            f"Measured on {first.cases} of these queries, held out of the fit:",
            f"  The first hit is right for {100 * first.share:.0f} % of them.",
            f"  Right and wrong first hits are separated with AUROC {first.auroc:.2f} "
            f"({first.auroc_low:.2f} to {first.auroc_high:.2f}); 0.5 is chance, 1 perfect.",
            f"  The percentages are off by {100 * first.ece:.0f} points; perfect ones would be off "
            f"by {100 * first.ece_floor:.0f} with so few queries.",
            f"  Brier score {first.brier:.3f}; always saying {100 * first.share:.0f} % has "
            f"{first.brier_base:.3f}. Of all hits {hits.brier:.3f}; always saying "
            f"{100 * hits.share:.0f} % has {hits.brier_base:.3f}.",
        ]
        if quality.absent_auroc is not None:
            lines += [
                "  Queries with nothing right here are separated from the others with AUROC "
                f"{quality.absent_auroc:.2f}."
            ]
        return lines


def date_or_today(text: str) -> str:
    """A date as ``2026-11-30``; where none is given, today's in UTC."""
    try:
        return (date.fromisoformat(text) if text else datetime.now(UTC).date()).isoformat()
    except ValueError:
        raise ArgumentError(
            f"{option('date', text)} is not a date; write it as 2026-11-30."
        ) from None


def sets_of(
    card: Calibration, scores: Float[np.ndarray, "queries videos"], about: QueryContext = UNKNOWN
) -> tuple[Sets, ...]:
    """How large the conformal sets of a card are on average, for each of `COVERAGES`."""
    rows = []
    for coverage in COVERAGES:
        members = card.members(scores, coverage, about)
        rows.append(Sets(coverage, None if members is None else float(members.sum(1).mean())))
    return tuple(rows)

"""From labelled queries to a calibration card, and from a card to one of a person's own.

Every query is asked in galleries of several sizes drawn from the whole, in each of them once with a
relevant video there and once with all of them taken out: who searches does not know whether it is
there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.metrics.confidence import auroc, auroc_of, brier, ece, ece_floor
from sureshot.metrics.intervals import interval
from sureshot.metrics.ranks import row_blocks
from sureshot.settings import to_values
from sureshot.text import counted, percent, plain, printable
from sureshot.trust.card import (
    Calibration,
    Depths,
    Logistic,
    Personal,
    Quality,
    Source,
    Validity,
    save_card,
)
from sureshot.trust.signals import (
    QUERY_SIGNALS,
    RESULT_SIGNALS,
    RESULTS,
    SMALLEST,
    UNKNOWN,
    QueryContext,
    Relevant,
    Scores,
    query_signals,
    result_signals,
    top_is_relevant,
)


def gallery_sizes(videos: int) -> tuple[int, ...]:
    """Six sizes from ten to all of a gallery, equally far apart in their logarithm.

    A library may be far smaller than the labelled gallery. Sizes that coincide are given once.

    Examples:
        >>> gallery_sizes(1000)
        (10, 25, 63, 158, 398, 1000)
    """
    sizes = np.geomspace(min(videos, SMALLEST), videos, 6)
    return tuple(int(size) for size in np.unique(np.rint(sizes)))


def draw_present(
    relevant: Relevant, size: int, rng: np.random.Generator
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
    """Some queries and the videos of a gallery.

    Attributes:
        video: number of the video, or of the group of near copies, that each query belongs to.
    """

    scores: Scores
    relevant: Relevant
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

    def without_answer(self) -> "Labelled":
        """The same queries without their relevant videos; none that would have no video left."""
        gone = replace(
            self,
            scores=np.where(self.relevant, -np.inf, self.scores),
            relevant=np.zeros_like(self.relevant),
        )
        return gone.of(np.flatnonzero(~self.relevant.all(1)))

    def first_is_right(self) -> Bool[np.ndarray, " queries"]:
        """Whether the first result of each query is relevant."""
        return top_is_relevant(self.scores, self.relevant)


def labelled(
    scores: Scores,
    relevant: Relevant,
    video: Integer[np.ndarray, " queries"],
    about: QueryContext = UNKNOWN,
) -> Labelled:
    """The queries that have a relevant video.

    Where only one video per query is known, "relevant" means that one, and probabilities are of
    finding that one.

    Args:
        scores: finite scores that order all videos of a gallery: similarities, minus the hub
            correction where there is one.
        video: as of `Labelled`; of several kinds of queries about the same videos the same numbers.
    """
    known = [one for one in (about.background, about.words, about.common) if one is not None]
    if not all(np.isfinite(part).all() for part in (scores, *known)):
        raise SureshotError("A score is NaN or infinite; nothing can be calibrated on it.")
    there = np.flatnonzero(relevant.any(1))
    if not len(there):
        raise SureshotError(
            "None of the labelled queries has a relevant video in the gallery, so there is nothing "
            "to calibrate on; label queries whose videos are there."
        )
    return Labelled(scores=scores, relevant=relevant, video=video, about=about).of(there)


QUERIES = 50  # fewer are not calibrated on
FOOTAGE = 200  # captioned videos or photographs from elsewhere that are enough
_CAUTION = 0.1  # logits that less is said after such footage; without it one case of 108 says 5.1
# points too much, and people mind that more than too little
_OF_A_KIND = 20  # videos with keywords, and with sentences, for a table of either
_FITTED = 1500  # queries of one data set that probabilities are fitted to, at most
_KEPT = 200  # depths of one size on the card, at most
_RESAMPLES = 200
_MISSED = 1 / 12  # share of the queries with an answer that are called absent; see LOG.md


def fit_card(
    galleries: Sequence[Labelled],
    *,
    of: Sequence[int] | None = None,
    model: str = "",
    bank: str | None = None,
    dataset: str = "",
    date: str = "",
    source: Source = "tested",
    photos: bool = False,
    seed: int = 0,
) -> Calibration:
    """Calibrate on labelled queries of one data set, or of several, which weigh the same.

    Args:
        galleries: labelled queries that no model was trained on or chosen by. Of all, or of none,
            the background and the number of words are known.
        of: number of the data set of each gallery: several kinds of queries may be about the same
            videos. None: each is of another one.
        model, bank, source, photos: as of `sureshot.trust.card.Validity`.

    Raises:
        SureshotError: fewer than 50 queries with a right video.
    """
    rng = np.random.default_rng(seed)
    count = sum(len(part.video) for part in galleries)
    if count < QUERIES:
        raise SureshotError(
            f"Only {counted(count, 'query has', 'queries have')} a right video; {QUERIES} are "
            "needed for percentages."
        )
    if all(part.relevant.all() for part in galleries):
        raise SureshotError(
            "Every video is right for every query, which says nothing about searches for what is "
            "not there; index more videos."
        )
    parts = [part.at_most(_FITTED, rng) for part in galleries]
    each = sum(len(part.video) for part in parts) / len(parts)  # of every data set in the fit
    of = range(len(parts)) if of is None else of
    cases = _Cases.joined(
        [
            _Cases.of(part, kind, number, each, rng)
            for kind, (number, part) in enumerate(zip(of, parts, strict=True))
        ]
    )
    kinds = [len(np.unique(cases.video[cases.few == few])) for few in (False, True)]
    if min(kinds) < _OF_A_KIND:  # the fewer say nothing by themselves, and count with the others
        cases = replace(cases, few=np.zeros_like(cases.few))
    present, first, later = _fit(cases)
    if source == "reference":
        first = replace(first, bias=first.bias - _CAUTION)
    known = galleries[0].about
    return Calibration(
        valid_for=Validity(
            model=model,
            bank=bank,
            smallest=int(cases.size.min()),
            largest=int(cases.size.max()),
            queries=count,
            videos=len({(n, v) for n, part in zip(of, galleries, strict=True) for v in part.video}),
            background=known.background is not None,
            words=known.words is not None,
            common=known.common is not None,
            dataset=dataset,
            date=date,
            source=source,
            photos=photos,
        ),
        present=present,
        first=first,
        later=later,
        absent_below=(_absent_below(cases, present, False), _absent_below(cases, present, True)),
        depths=_depths(cases),
        quality=_quality(cases, rng),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """Queries in galleries that were drawn for them, each with a right video and without one.

    Attributes:
        query, result: their signals.
        hits: whether each of the first results is relevant; False after the last.
        shown: whether there is such a result.
        right: whether the first result is relevant, and no tie with another.
        present: whether a relevant video is in the gallery.
        depth: how far the best relevant one is below the best; infinite without one.
        few: whether the query is one of keywords.
        size: of the gallery before relevant videos were taken out.
        kind: number of the gallery.
        video: number that no two data sets share.
        weight: all cases of a data set together have the same.
    """

    query: Float64[np.ndarray, "cases 6"]
    result: Float64[np.ndarray, "cases results 7"]
    hits: Bool[np.ndarray, "cases results"]
    shown: Bool[np.ndarray, "cases results"]
    right: Bool[np.ndarray, " cases"]
    present: Bool[np.ndarray, " cases"]
    depth: Float64[np.ndarray, " cases"]
    few: Bool[np.ndarray, " cases"]
    size: Int[np.ndarray, " cases"]
    kind: Int[np.ndarray, " cases"]
    video: Int[np.ndarray, " cases"]
    weight: Float64[np.ndarray, " cases"]

    @classmethod
    def of(
        cls, queries: Labelled, kind: int, number: int, weight: float, rng: np.random.Generator
    ) -> "_Cases":
        """The queries of one kind about one data set, in galleries of all sizes."""
        parts = []
        for size in gallery_sizes(queries.scores.shape[1]):
            there = queries.present(size, rng)
            both = there, there.without_answer()
            parts += [cls._one(asked, size) for asked in both if len(asked.video)]
        one = cls.joined(parts)
        return replace(
            one,
            kind=np.full(len(one.right), kind),
            video=one.video + number * _APART,
            weight=np.full(len(one.right), weight / len(one.right)),
        )

    @classmethod
    def _one(cls, asked: Labelled, size: int) -> "_Cases":
        order, result = result_signals(asked.scores, asked.about)
        sought = np.where(asked.relevant, asked.scores, -np.inf).max(1)
        count = len(asked.video)
        wide = (0, RESULTS - order.shape[1])
        shown = np.take_along_axis(asked.scores, order, 1) > -np.inf
        return cls(
            query=query_signals(asked.scores, asked.about),
            result=np.pad(result, ((0, 0), wide, (0, 0))),
            hits=np.pad(np.take_along_axis(asked.relevant, order, 1), ((0, 0), wide)),
            shown=np.pad(shown, ((0, 0), wide)),
            right=asked.first_is_right(),
            present=np.asarray(asked.relevant.any(1)),
            depth=asked.scores.max(1).astype(np.float64) - sought,
            few=asked.about.of_few_words(count),
            size=np.full(count, size),
            kind=np.zeros(count, int),
            video=asked.video,
            weight=np.ones(count),
        )

    @classmethod
    def joined(cls, parts: Sequence["_Cases"]) -> "_Cases":
        """All cases of some parts."""
        names = cls.__slots__
        return cls(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})

    def of_rows(self, rows: Bool[np.ndarray, " cases"]) -> "_Cases":
        """Some of the cases."""
        return _Cases(**{name: getattr(self, name)[rows] for name in self.__slots__})


_APART = 1 << 32  # between the numbers of the videos of two data sets


def _fit(cases: _Cases) -> tuple[Logistic, Logistic, Logistic]:
    """P(it is here), of the first result P(right | it is here), and the same of the later ones."""
    there = cases.of_rows(cases.present)
    later = there.shown[:, 1:]
    weight = np.broadcast_to(there.weight[:, None], later.shape)[later]
    # Every query is asked with and without an answer, so how common it is says nothing of that.
    here = np.where(np.array(QUERY_SIGNALS) == "common", 0.0, cases.query)
    return (
        Logistic.fit(here, cases.present, cases.weight),
        Logistic.fit(there.query, there.right, there.weight),
        Logistic.fit(there.result[:, 1:][later], there.hits[:, 1:][later], weight),
    )


def _absent_below(cases: _Cases, present: Logistic, few: bool) -> float:
    """P(it is here) that so many of the queries with an answer, of sentences or keywords, miss."""
    rows = cases.present & (cases.few == few)
    rows = rows if rows.any() else cases.present
    here = present.probability(cases.query[rows])
    order = np.argsort(here)
    missed = np.cumsum(cases.weight[rows][order]) / cases.weight[rows].sum()
    return float(here[order[np.searchsorted(missed, _MISSED)]])


def _depths(cases: _Cases) -> tuple[Depths, ...]:
    """How deep right videos are in galleries of each size, of sentences and of keywords.

    Sizes of several data sets differ; those between two of the card's count with the nearer one.
    """
    ends = np.array(gallery_sizes(int(cases.size.max())))
    nearest = np.abs(np.log(cases.size[:, None] / ends)).argmin(1)
    found = []
    for few in (False, True):
        for number, size in enumerate(ends.tolist()):
            rows = cases.present & (cases.few == few) & (nearest == number)
            if not rows.any():
                continue
            depth, weight = cases.depth[rows], cases.weight[rows]
            # Kinds count apart: together they hold 2 points less often what they promise (LOG.md).
            own = np.stack([cases.kind[rows], cases.video[rows]])
            _, place, count = np.unique(own, axis=1, return_inverse=True, return_counts=True)
            weight = weight / weight.mean() / count[place]
            order = np.argsort(depth, kind="stable")
            depth, weight = depth[order], weight[order] * len(count) / weight.sum()
            if len(depth) > _KEPT:  # the same distribution in fewer numbers, rounded outwards
                share = np.cumsum(weight) / weight.sum()
                steps = np.arange(1, _KEPT + 1) / _KEPT
                depth = depth[np.searchsorted(share, steps - 1e-9)]
                weight = np.full(_KEPT, len(count) / _KEPT)
            found.append(Depths.of(depth, weight, videos=size, few=few))
    return tuple(found)


def _quality(cases: _Cases, rng: np.random.Generator) -> Quality | None:
    """How good probabilities are that were fitted to the queries of the other half of the videos.

    None where there are too few videos, or all first results are right or wrong.

    They are judged in the whole galleries alone: smaller ones are easier, so that a mixture of
    sizes would tell right from wrong by the size.
    """
    names, place = np.unique(cases.video, return_inverse=True)
    if len(names) < _OF_A_KIND or not cases.right.any():
        return None
    half = rng.permutation(len(names))[place] % 2
    number = cases.video // _APART
    largest = np.array([cases.size[number == n].max() for n in range(number.max() + 1)])
    whole = cases.size == largest[number]
    parts, shares, here = [], [], []
    for side in (0, 1):
        present, first, _ = _fit(cases.of_rows(half != side))
        parts.append(cases.of_rows(whole & (half == side)))
        here.append(present.probability(parts[-1].query))
        shares.append(here[-1] * first.probability(parts[-1].query))
    cases, present_share = _Cases.joined(parts), np.concatenate(here)
    probability, right = np.concatenate(shares), cases.right
    separation = interval(auroc_of(probability, right), cases.video, rng, resamples=_RESAMPLES)
    share = float(right.mean())
    return Quality(
        cases=len(right),
        share=share,
        auroc=separation.value,
        auroc_low=separation.low,
        auroc_high=separation.high,
        brier=brier(probability, right),
        brier_base=share * (1 - share),
        ece=ece(probability, right),
        ece_floor=ece_floor(probability, rng),
        absent_auroc=auroc(present_share, cases.present),
    )


JUDGED = 5  # queries that percentages are learned from, at least
ENOUGH = 100  # of which more teach little more
# Spread of the prior of a shift, in logits, by what the card was learned from; see LOG.md.
_LEVELS = {"tested": 0.15, "reference": 0.5, "judgements": 1.0}
_SEARCHES = 100  # judged searches that the prior of presence weighs as much as
_DEPTHS = 100  # judged queries that the depths of a card weigh as much as


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuery:
    """A query whose hits somebody judged.

    Attributes:
        scores: of its hits, best first.
        right: of each of these: 1 right, 0 wrong, -1 not known.
        absent: whether somebody said that nothing in the library is right.
        present: whether a right video is known, which may be none of the hits.
        searched: whether it is one of somebody's searches, which tells how often what they look for
            is here; a query of a list of right answers does not.
    """

    scores: Float[np.ndarray, " hits"]
    right: Int[np.ndarray, " hits"]
    about: QueryContext
    absent: bool = False
    present: bool = False
    searched: bool = True

    @property
    def seen(self) -> int:
        """How many hits from the first on were judged."""
        known = self.right >= 0
        return len(known) if known.all() else int(known.argmin())

    @property
    def depth(self) -> float:
        """How far the best right hit is below the best of all, or the last that was looked at."""
        if (self.right == 1).any():
            return float(self.scores[0] - self.scores[self.right == 1].max())
        return float(self.scores[0] - self.scores[self.seen - 1]) if self.seen else np.nan


# What any model's signals say, in units of their spread in the library: one fit to nine models, six
# real and three that stand for strong ones. Off by up to 35 points before judgements move it, so
# it is never shown alone. `python -m benchmarks.trust_models` gives these numbers.
_PRESENT = {"top": 0.43, "gap": 0.15, "log_videos": 0.01, "bias": -0.05}
_FIRST = {"top": 0.33, "margin": 0.41, "gap": 0.32, "log_videos": -0.43, "bias": 1.45}
_LATER = {"score": 0.32, "below_top": -0.82, "gap": 0.05, "log_rank": -0.08, "log_videos": -0.14}
_LATER |= {"bias": -0.59}
_ABSENT = 0.36  # P(it is here) that one in twelve of the queries with an answer miss
# Depths of the best right video of a tenth, two tenths, ... of the queries, by size of the gallery.
_DEEP = {
    10: (0, 0, 0, 0, 0, 0, 0.1, 0.48, 1.04, 7.26),
    40: (0, 0, 0, 0, 0, 0.29, 0.63, 1.05, 1.74, 7.63),
    150: (0, 0, 0, 0.12, 0.38, 0.69, 1.07, 1.54, 2.31, 11.37),
    476: (0, 0, 0.03, 0.29, 0.57, 0.87, 1.25, 1.74, 2.51, 10.2),
}


def scale_free(
    judged: Sequence[JudgedQuery], *, model: str, bank: str | None, dataset: str, date: str
) -> Calibration:
    """What is known of a model that was never calibrated, for `adapt` to move; not to be shown.

    Signals are measured in units of their spread over the judged queries, which needs no verdicts.

    Args:
        dataset: name of the judgements.
    """
    if not any((query.right == 1).any() for query in judged):
        raise SureshotError(
            f"None of the {len(judged)} judged queries has a right video, so there is nothing to "
            "calibrate on. Judge some whose videos are in the index."
        )
    signals = np.concatenate([query_signals(query.scores[None], query.about) for query in judged])
    mean, spread = (of.tolist() for of in (signals.mean(0), signals.std(0)))
    units = {name: (mean[i], spread[i] or 1.0) for i, name in enumerate(QUERY_SIGNALS[:3])}
    (top, score), (_, gap) = units["top"], units["gap"]
    of_results = {"score": (top, score), "below_top": (0.0, score), "gap": (0.0, gap)}

    def logistic(
        names: Sequence[str], known: Mapping[str, float], units: Mapping[str, tuple[float, float]]
    ) -> Logistic:
        means, scales = zip(*(units.get(name, (0.0, 1.0)) for name in names), strict=True)
        coef = tuple(known.get(name, 0.0) for name in names)
        return Logistic(mean=means, scale=scales, coef=coef, bias=known["bias"])

    return Calibration(
        valid_for=Validity(
            model=model,
            bank=bank,
            smallest=min(_DEEP),
            largest=max(max(_DEEP), max(query.about.videos or 0 for query in judged)),
            queries=len(judged),
            videos=0,
            background=False,
            words=False,
            common=False,
            dataset=dataset,
            date=date,
            source="judgements",
        ),
        present=logistic(QUERY_SIGNALS, _PRESENT, units),
        first=logistic(QUERY_SIGNALS, _FIRST, units),
        later=logistic(RESULT_SIGNALS, _LATER, of_results),
        absent_below=(_ABSENT, _ABSENT),
        depths=tuple(
            Depths.of(score * np.array(deep), np.full(len(deep), 100 / len(deep)), videos=size)
            for size, deep in _DEEP.items()
        ),
        quality=None,
    )


def adapt(card: Calibration, judged: Sequence[JudgedQuery]) -> Calibration:
    """The card of a model, moved towards what was judged in a library.

    Four numbers move, each a maximum a posteriori around the card, so none is refused and few
    judgements move little: the level of the first hit's probability and that of the later ones, the
    prior of presence, and how deep right videos are. A query of which no hit shown was right has
    its right one further down; unless no query was said to have none, when it counts as both, as
    likely as the card says. The prior follows searches alone, not lists of right answers.

    Args:
        judged: queries of which a hit was judged, or that were said to have no answer here.
    """
    known = [query for query in judged if query.absent or (query.right >= 0).any()]
    if not known:
        return card
    found = np.array([(query.right == 1).any() for query in known])
    # Who says of some searches that nothing here is right leaves none of those unsaid.
    says_so = any(query.absent and query.searched for query in known)
    here = np.array([_here(card, query, says_so) for query in known])
    searched = np.array([query.searched for query in known], np.float64)
    signals = np.concatenate([query_signals(query.scores[None], query.about) for query in known])
    right = np.array([query.right[0] for query in known])
    told = (right >= 0) & (here > 0)
    weight = here[told]
    level = _LEVELS[card.valid_for.source]
    first = card.first.shifted(signals[told], right[told] == 1, weight, level)
    before, after = (one.probability(signals[told]) for one in (card.first, first))
    shares = [
        float(np.average(of, weights=weight)) if weight.sum() else None
        for of in (right[told] == 1, before, after)
    ]
    personal = Personal(len(known), sum(query.absent for query in known), *shares)
    # Where nothing right was found it is deeper than the last that was looked at.
    deep = np.array([query.depth for query in known])
    use = (here > 0) & np.isfinite(deep)
    return replace(
        card,
        first=first,
        later=_later(card, known, here),
        prior=float((_SEARCHES * card.prior + here @ searched) / (_SEARCHES + searched.sum())),
        depths=tuple(
            depths.blended(deep[use], found[use], here[use], _DEPTHS) if use.any() else depths
            for depths in card.depths
        ),
        personal=personal,
    )


def _here(card: Calibration, query: JudgedQuery, says_so: bool) -> float:
    """Probability that something in the library is right for a judged query."""
    if query.absent or query.present or says_so or (query.right == 1).any():
        return 0.0 if query.absent else 1.0
    row = query.scores[None]
    (order,), (each,) = card.p_right(row, query.about, results=None, prior=1)
    here = card.p_present(row, query.about)[0]
    missed = here * np.prod(1 - each[query.right[order] == 0])
    return float(missed / (missed + 1 - here))


def _later(
    card: Calibration, judged: Sequence[JudgedQuery], here: Float64[np.ndarray, " judged"]
) -> Logistic:
    """The probability of later hits, moved by queries whose hits were judged one after the other.

    Of a right hit that somebody marked further down it is not known what was passed over.
    """
    parts = []
    for query, weight in zip(judged, here, strict=True):
        seen = min(query.seen, RESULTS)
        if seen > 1 and weight:
            _, signals = result_signals(query.scores[None], query.about, results=seen)
            each = np.full(seen - 1, weight / (seen - 1))  # a query weighs 1 at most
            parts.append((signals[0, 1:], query.right[1:seen] == 1, each))
    if not parts:
        return card.later
    signals, right, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return card.later.shifted(signals, right, weights, _LEVELS[card.valid_for.source])


@dataclass(frozen=True, slots=True, repr=False)
class Calibrated:
    """A card and what it was made of.

    Attributes:
        gallery: number of videos that were searched.
        absent: number of queries that were judged to have no right video here.
        not_found: number of queries for which no right video was found.
        left_out: number of queries about videos that are not in the index.
        labels: name of the file of judgements, if there was one.
        file: where the card is; None where it was not to be saved.
    """

    card: Calibration
    gallery: int
    absent: int = 0
    not_found: int = 0
    left_out: int = 0
    labels: str = ""
    file: Path | None = None

    def saved(self, file: Path) -> "Calibrated":
        """The same with its card in a file."""
        save_card(self.card, file)
        return replace(self, file=file)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        card = self.card
        return {
            "card": None if self.file is None else printable(self.file),
            "valid_for": to_values(card.valid_for),
            "gallery": self.gallery,
            "absent": self.absent,
            "not_found": self.not_found,
            "left_out": self.left_out,
            "prior": card.prior,
            "quality": None if card.quality is None else to_values(card.quality),
            "personal": None if card.personal is None else to_values(card.personal),
        }

    def __repr__(self) -> str:
        """What the labels gave, in a few sentences."""
        card, personal = self.card, self.card.personal
        place = [] if self.file is None else [f"Card: {plain(self.file)}"]
        if personal is not None:
            queries = counted(personal.queries, "judged query", "judged queries")
            said = f"They assume that {percent(card.prior)} of searches are for what is here."
            right, before, after = personal.right, personal.before, personal.after
            if right is not None and before is not None and after is not None:
                share = {0.0: "none", 1.0: "all"}.get(right, percent(right))  # there may be four
                said = (
                    f"Where it was here, the first hit was right in {share} of these "
                    f"searches. The percentages said {percent(before)} before and say "
                    f"{percent(after)} now. {said}"
                )
            lines = [f"Calibrated on {queries} ({plain(self.labels)}){self._others()}.", said]
            return "\n".join([*lines, *place])
        valid, quality = card.valid_for, card.quality
        footage = "photograph" if valid.photos else "video"
        lines = [
            f"Calibrated on {counted(valid.queries, 'query', 'queries')} about "
            f"{counted(valid.videos, footage)} ({plain(valid.dataset)}){self._others(' more')}; "
            f"{counted(self.gallery, footage)} searched."
        ]
        if quality is not None:
            lines += [
                "Each was asked with its video there and without it. On queries held out of the "
                "fit:",
                f"  The first hit is right for {100 * quality.share:.0f} % of them. Right and "
                f"wrong ones are separated with AUROC {quality.auroc:.2f} "
                f"({quality.auroc_low:.2f} to {quality.auroc_high:.2f}); 0.5 is chance, 1 perfect.",
                f"  The percentages are off by {100 * quality.ece:.0f} points; perfect ones would "
                f"be off by {100 * quality.ece_floor:.0f} with so few queries.",
                f"  Brier score {quality.brier:.3f}; always saying {100 * quality.share:.0f} % has "
                f"{quality.brier_base:.3f}.",
                "  Queries with nothing right here are separated from the others with AUROC "
                f"{quality.absent_auroc:.2f}.",
            ]
        lines += [
            f"Valid for this model, libraries of {valid.smallest} to {valid.largest} "
            f"moments and queries like these. Date: {plain(valid.date)}."
        ]
        if not card.may_be_sure:
            few = f" {FOOTAGE} or more would be better." if valid.videos < FOOTAGE else ""
            lines.append(
                f"Learned on {counted(valid.videos, footage)} alone: on yours percentages are "
                f"often too low, and no answer is called sure before you judge {JUDGED} searches."
                + few
            )
        return "\n".join([*lines, *place])

    def _others(self, more: str = "") -> str:
        parts = [
            (self.absent, "with nothing right here"),
            (self.not_found, "for which nothing right was found"),
            (self.left_out, "left out because their videos are not in the index"),
        ]
        named = [f"{count}{more} {what}" for count, what in parts if count]
        return f", {', '.join(named)}" if named else ""


def date_or_today(text: str) -> str:
    """A date as ``2026-11-30``; where none is given, today's in UTC."""
    try:
        return (date.fromisoformat(text) if text else datetime.now(UTC).date()).isoformat()
    except ValueError:
        raise ArgumentError(
            f"{option('date', text)} is not a date; write it as 2026-11-30."
        ) from None

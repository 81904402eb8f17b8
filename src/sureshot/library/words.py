"""Words of videos searched: which lines a query may mean, how sure, and one list with pictures.

Each source has weights of its own for a few signals (benchmarks/words.py fits them): how near two
sentences are, and which of the words and letters asked for a line has. A nested logit gives
percentages: whether any line is meant, and which. A moment that several sources speak for is one
row.
"""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from sureshot.errors import StoreError
from sureshot.library.confidence import status_of
from sureshot.library.file_names import all_words, name_parts
from sureshot.library.query_checks import RECORDED, phrase_of
from sureshot.library.ranking import PER_VIDEO, Query, capped, copies_at, few_hits, notes_on_files
from sureshot.library.results import (
    CONFIDENT,
    Answer,
    Confidence,
    Copy,
    Descriptions,
    Hit,
    LineMatch,
    looked_for,
)
from sureshot.media.discover import is_gone
from sureshot.media.lines import Line
from sureshot.store.index import Store
from sureshot.store.lines import FoundLine, Lines
from sureshot.store.vector_search import Selection
from sureshot.text import counted, plain
from sureshot.trust.signals import RESULTS

_T = TypeVar("_T")
LOOKED_AT = 50  # lines by their words, and as many by what they say
SURE = 0.5  # probability from which words alone make an answer
_SURELY = 0.9  # of a higher prior words have no more, as pictures may have what is there
LIKELY = 0.05  # probability below which a line is not shown
_NEAR = 1.0  # seconds between lines of one moment
_SHORTEST = 1.0  # seconds of a hit
_LONG = 30.0  # seconds of a shot up to which a line in it and its pictures are one moment
_SHOWN = 3  # lines of a moment
_CUTS = 15  # words of a phrase after which another line may begin
_CROSSING = 500  # lines with a part of a phrase that are looked at
_PAUSE = 5.0  # seconds between the two lines of a phrase
SIGNALS = (
    *("similarity", "similarity of words", "words", "missing", "letters", "quoted", "lines"),
    *("similarity of others", "rarity of others", "rarity of few words", "rarity of the query"),
)
_OTHERS = 10  # lines after the one that is most like a query
_UNLIKE = 0.2  # similarity of a line that is not there
_RARE = 6.5  # mean rarity of the words of what people say; percentages were fitted up to it
_FEW = 2  # words of a query up to which lines that have them in any order are right together
_LEAST, _MOST = 30, 1000  # lines; for fewer or more percentages were not fitted
WITHIN = 2.0  # how much surer it is which line is meant than whether any is
# Of a query of many words, and of one of one or two: python -m benchmarks.words fit
WEIGHTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "subtitles": (
        (5.843, 2.286, 4.313, -4.465, -1.214, 3.458, 0.092, -8.865, -1.751, 0.000, 0.689, -0.424),
        (-5.176, 6.941, 8.057, 0.000, 4.552, 0.609, -0.173, 2.345, 0.000, 0.046, 0.000, -15.627),
    ),
    "picture": (
        (4.114, 1.151, 0.499, 0.877, 9.672, 0.078, 0.011, -7.683, -1.499, 0.000, 0.617, -3.177),
        (-4.874, 6.767, 0.848, 0.000, 7.528, -0.520, -0.200, 0.992, 0.000, 0.041, 0.000, -9.954),
    ),
    "speech": (
        (4.329, 1.177, 2.099, -0.674, 5.915, 0.731, 0.062, -7.749, -1.427, 0.000, 0.664, -2.763),
        (-3.887, 5.329, 1.707, 0.000, 4.325, 0.267, -0.182, 0.693, 0.000, 0.039, 0.000, -8.027),
    ),
}
_NO_LINES = "No words of your videos are indexed, so pictures were searched for the phrase."
_SAID = "“{}” is said or written in {}. In quotes ('\"…\"' in a terminal) words alone are searched."
_VALID_FOR = "lines made of captions and of sentences such as people say"


@dataclass(frozen=True, slots=True)
class _Scored:
    """A line with the probability that it is what a query means."""

    found: FoundLine
    probability: float
    words: tuple[str, ...]  # that the query has
    alternative: tuple[str, ...]  # its words; empty for those of the lines that are right together
    copies: tuple[Path, ...]  # other videos of the same content, which have it too


def parts(text: str) -> list[str]:
    """The words of a text without capitals, accents and endings; what says nothing is left out.

    Examples:
        >>> parts("The Passwords of Émile"), parts("我们 ok")
        (['password', 'emil'], ['我们', 'ok'])
    """
    return [_stem(word) for word in name_parts(text)]


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in all_words(text)]


def _row(text: str) -> str:
    return f" {' '.join(_stems(text))} "


def _meets(said: list[str], words: list[str], step: int) -> bool:
    """Whether a line begins with some words, or ends with them where the step is -1."""
    part = said[: len(words)] if step == 1 else said[-len(words) :]
    return bool(words) and part == words


def _stem(word: str) -> str:
    return _english().stemWord(word)


@cache
def _english() -> Any:
    """Snowball's rules, by which Lance looks for words as well."""
    from Stemmer import Stemmer

    return Stemmer("english", 0)  # its cache takes longer than to compute a word again


def signals(query: str, found: Sequence[FoundLine], lines: int) -> Float[np.ndarray, "found 11"]:
    """The signals of lines that were found among so many, in the order of `SIGNALS`.

    They are the similarity of the sentences, also times the logarithm of the number of words asked;
    the share of these words, weighted by how rare they are in captions, that a line has; the share
    of all words, articles too, that it lacks; the share of their triples of letters that it has;
    the logarithm of the number of words if it has them in a row, else 0; and, of the query alone,
    the logarithm of the number of lines searched, the mean similarity of the ten lines of the
    source after the one most like it, how rare the words of all its lines that were found are in
    captions, which describe what is seen, the square of how rare the words of the query are if only
    one or two say anything, and how rare all are. For such a short query what a line lacks and how
    rare all words are is 0.

    Where other lines are as like, a likeness says little; the same words in other videos are no
    other line. Everyday words alone ask for pictures; a word that no caption has asks for lines.
    Where people talk, the words of captions ask for pictures more than where lines describe.
    """
    words = all_words(query)
    letters, row = _triples(words), f" {' '.join(words)} "
    length, rare = math.log(len(words) + 1), {part: _rarity(part) for part in parts(query)}
    whole = sum(rare.values())
    few = 1 <= len(rare) <= _FEW
    mean, many = (whole / len(rare), 0.0) if few else (0.0, 1.0)
    count = math.log(min(max(lines, _LEAST), _MOST))
    asked = (mean**2, many * _mean_rarity(words))
    others, rows = _others(found), []
    for one in found:
        similar, usual = others[one.line.source]
        said, telling = all_words(one.line.text), set(parts(one.line.text))
        rows.append(
            (
                one.similarity,
                one.similarity * length,
                sum(rare[part] for part in rare if part in telling) / (whole or 1),
                many * len({*words}.difference(said)) / max(len({*words}), 1),
                len(letters & _triples(said)) / max(len(letters), 1),
                length * (row in f" {' '.join(said)} "),
                *(count, similar, many * usual, *asked),
            )
        )
    return np.array(rows, float).reshape(len(found), len(SIGNALS))


def _others(found: Sequence[FoundLine]) -> dict[str, tuple[float, float]]:
    """Of each source how like its ten next lines are, and how rare the words of all of them.

    Lines with the same words are one line.
    """
    of_source: dict[str, dict[tuple[str, ...], float]] = {}
    for one in sorted(found, key=lambda one: one.similarity):
        of_source.setdefault(one.line.source, {})[tuple(all_words(one.line.text))] = one.similarity
    around = {}
    for source, texts in of_source.items():
        near = [*sorted(texts.values(), reverse=True)[1:], *[_UNLIKE] * _OTHERS][:_OTHERS]
        # Of words that captions have: others may be misread.
        known = (list(filter(_in_captions().__contains__, map(_stem, words))) for words in texts)
        usual = [_mean_rarity(words) for words in known if words] or [_RARE]
        around[source] = sum(near) / _OTHERS, sum(usual) / len(usual)
    return around


def _rarity(part: str) -> float:
    """Of a word in captions, as the logarithm of the share that has it, at least 1."""
    return max(1.0, -math.log((_in_captions().get(part, 0) + 1) / 1e5))


def _mean_rarity(words: Sequence[str]) -> float:
    """Of all words of a text, articles too, not of single letters; at most as where people talk."""
    each = [_rarity(_stem(word)) for word in words if len(word) > 1]
    return min(sum(each) / len(each), _RARE) if each else _RARE


@cache
def _in_captions() -> dict[str, int]:
    """How many captions of the bundled model have a word, without its ending."""
    from sureshot.models.encoders.bundled import caption_words

    counts = Counter[str]()
    for word, captions in caption_words().items():
        counts[_stem(word)] += captions
    return counts


def _triples(words: Sequence[str]) -> set[str]:
    """Letters that follow each other, by three: readers of pictures lose spaces."""
    letters = "".join(words)
    return {letters[first : first + 3] for first in range(max(len(letters) - 2, 1))}


def probabilities(
    query: str,
    found: Sequence[FoundLine],
    values: Float[np.ndarray, "found 11"],
    prior: float | None = None,
) -> tuple[Float[np.ndarray, " found"], float, list[tuple[str, ...]]]:
    r"""Probability of each line that it is meant, and that any is; and which alternative it is of.

    With the weighted signals :math:`u` of the alternatives, a nested logit:

    .. math:: P(\text{any}) = \sigma\Big(\tfrac1\tau \log \sum_j e^{\tau u_j}\Big), \quad
        P(i) = P(\text{any})\, e^{\tau u_i} / \sum_j e^{\tau u_j}

    Lines rule each other out, except those that are right together and those with the same words:
    these are one alternative, as likely as the likeliest of them. So many lines with a word do not
    make it likelier that the word is meant for lines.

    Args:
        prior: share of searches for what is there, in pictures or words; None is one half.
    """
    which = [
        () if right else tuple(all_words(one.line.text))
        for one, right in zip(found, are_right_together(query, values), strict=True)
    ]
    if not found:
        return np.zeros(0), 0.0, which
    few = int(has_few_words(values))
    weights = np.array([WEIGHTS[one.line.source][few] for one in found])
    logits = (values * weights[:, :-1]).sum(1) + weights[:, -1]
    if prior is not None:  # weights were fitted with about as many lines that are there
        logits += math.log(min(prior, _SURELY) / (1 - min(prior, _SURELY)))
    numbers: dict[tuple[str, ...], int] = {}
    of = np.array([numbers.setdefault(one, len(numbers)) for one in which], int)
    best = np.full(len(numbers), -np.inf)
    np.maximum.at(best, of, logits)
    odds = np.exp(WITHIN * (best - best.max()))
    any_line = best.max() + math.log(odds.sum()) / WITHIN
    said = 1 / (1 + math.exp(min(-any_line, 700.0)))
    return said * odds[of] / odds.sum(), said, which


def has_few_words(values: Float[np.ndarray, "found 11"]) -> bool:
    """Whether one or two words of a query say anything."""
    return bool((values[:, SIGNALS.index("rarity of few words")] > 0).any())


def are_right_together(
    query: str, values: Float[np.ndarray, "found 11"]
) -> Bool[np.ndarray, " found"]:
    """Which lines have all of a query in a row, or its one or two words in any order."""
    if len(all_words(query)) <= _FEW:
        return values[:, SIGNALS.index("words")] > 1 - 1e-9
    return values[:, SIGNALS.index("quoted")] > 0


class Words:
    """Searches the lines of an index."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def has(self, word: str) -> bool:
        """Whether a word is in any line."""
        return self._looked_up(lambda lines: lines.has(word), False)

    def spelt_like(self, word: str) -> Mapping[str, int]:
        """Words of lines, those that are nearly a word among them, and in how many each is."""
        return self._looked_up(lambda lines: lines.spelt_like(word), {})

    def are_there(self) -> bool:
        """Whether the index has any lines."""
        return self._looked_up(lambda lines: True, False)

    def _looked_up(self, look: Callable[[Lines], _T], nothing: _T) -> _T:
        with contextlib.suppress(StoreError):  # of which `added` warns
            if self._store.lines.count():
                return look(self._store.lines)
        return nothing

    def phrase(self, query: str) -> str:
        """The quoted phrase for which words alone are searched; empty where there is none."""
        return phrase_of(query) if phrase_of(query) and self.are_there() else ""

    def added(self, answer: Answer, asked: Query) -> Answer:
        """An answer of pictures with what is said and written that the query may mean."""
        try:
            if not self._store.lines.count():
                quoted = phrase_of(asked.text) and answer.hits
                return answer.noted(_NO_LINES) if quoted else answer
            scored, said = self._scored(asked)
        except StoreError as error:
            return answer[: asked.limit].noted(str(error))
        whole = [one for one in scored if _row(asked.text) in _row(one.found.line.text)]
        if not asked.phrase:
            scored = [one for one in scored if one.probability >= LIKELY]
            said = min(said, sum(one.probability for one in scored))
        elif not scored:
            none = f"No words here are “{asked.phrase}”."
            return answer.noted(f"{none} Without quotes, pictures are searched too.")
        answer = _merged(answer, asked, scored, said)
        if whole and answer.status == "probably not here":
            more = " or more" if len(whole) >= LOOKED_AT else ""
            videos = counted(len({one.found.path for one in whole}), "video") + more
            answer = answer.noted(_SAID.format(plain(asked.text), videos))
        # Of the table of lines trouble is known only now.
        warnings = dict.fromkeys([*answer.warnings, *self._store.trouble()])
        return replace(answer, warnings=tuple(warnings))

    def described(self, found: Descriptions) -> Descriptions:
        """Sentences for a video, those first that are said or written in it."""
        rows = []
        try:
            if not self._store.lines.count(found.video):
                return found
            for one in found:
                scored, _ = self._scored(Query(text=one.text, codes=None, folder=found.video))
                heard = [
                    _match(line)
                    for line in scored
                    if line.probability >= SURE
                    and (found.at is None or _is_near(line.found.line, found.at))
                ]
                rows.append(replace(one, lines=tuple(heard[:_SHOWN])))
            said = [line.text for line in self._store.lines.of(found.video)]
        except StoreError as error:
            return replace(found, warnings=(*found.warnings, str(error)))
        rows.sort(key=lambda row: (not row.lines, row.rank))
        ranked = tuple(replace(row, rank=rank) for rank, row in enumerate(rows, 1))
        return replace(found, ranked=ranked, warnings=tuple(_unsaid(found.warnings, said)))

    def _scored(self, asked: Query) -> tuple[list[_Scored], float]:
        """Lines that may be meant, the likeliest first, and the probability that any is."""
        from sureshot.models.encoders.bundled import sentence_encoder

        text = asked.phrase or asked.text
        (vector,) = sentence_encoder().encode([text]).sentence
        if asked.phrase:
            found = self._store.lines.having(text, vector, LOOKED_AT, asked.folder)
            found += self._crossing(text, vector, asked.folder)
        else:
            found = self._store.lines.search(text, vector, LOOKED_AT, asked.folder)
        found, copies = self._of_contents(found, asked.merge_copies)
        shares, said = np.ones(len(found)), 1.0  # each line found for a phrase has the very words
        which: list[tuple[str, ...]] = [()] * len(found)
        if not asked.phrase:
            values = signals(text, found, self._store.lines.count(asked.folder))
            shares, said, which = probabilities(text, found, values, asked.prior)
        wanted = set(parts(text))
        scored = [
            _Scored(
                found=found[row],
                probability=float(shares[row]),
                words=tuple(
                    word
                    for word in dict.fromkeys(re.findall(r"\w+", found[row].line.text))
                    if wanted & {*parts(word)}
                ),
                alternative=which[row],
                copies=copies[row],
            )
            for row in range(len(found))
        ]
        # What is equally likely stands in an order of its own: Lance's depends on its files.
        scored.sort(key=lambda one: (one.found.path, one.found.line.start))
        scored.sort(key=lambda one: (one.probability, one.found.similarity), reverse=True)
        return scored, said

    def _crossing(
        self, phrase: str, vector: Float[np.ndarray, " 384"], folder: Selection | None
    ) -> list[FoundLine]:
        """Two lines in a row of one track, as one, that have a phrase which neither has."""
        words = phrase.split()
        # With the stems of what the next line begins, or the one before it ends with.
        begun: list[tuple[FoundLine, int, list[str]]] = []
        for cut in range(1, min(len(words), _CUTS + 1)):
            head, tail = (_stems(" ".join(part)) for part in (words[:cut], words[cut:]))
            step, here, rest = (1, head, tail) if len(head) >= len(tail) else (-1, tail, head)
            part = " ".join(words[:cut] if step == 1 else words[cut:])
            near = self._store.lines.having(part, vector, _CROSSING, folder)
            near = [one for one in near if _meets(_stems(one.line.text), here, -step)]
            begun += [(one, step, rest) for one in near]
        found = []
        others = self._store.lines.next_to([(one, step) for one, step, _ in begun])
        for (one, step, rest), other in zip(begun, others, strict=True):
            if other is None or not _meets(_stems(other.line.text), rest, step):
                continue
            first, second = (one.line, other.line)[::step]
            if first.language == second.language and second.start - first.end <= _PAUSE:
                both = second._replace(start=first.start, text=f"{first.text} {second.text}")
                found.append(replace(one, line=both))
        return found

    def _of_contents(
        self, found: Sequence[FoundLine], merge_copies: bool
    ) -> tuple[list[FoundLine], list[tuple[Path, ...]]]:
        """Lines of one video of each content, with its copies: a file that is there, if any is."""
        known = self._store.at({one.path for one in found}) if merge_copies else {}
        alike: dict[tuple[str, Line], list[FoundLine]] = {}
        for one in found:
            record = known.get(one.path)
            alike.setdefault((record.digest if record else str(one.path), one.line), []).append(one)
        for some in alike.values():
            if len(some) > 1:
                some.sort(key=lambda one: (is_gone(one.path), one.path))
        first = [some[0] for some in alike.values()]
        return first, [tuple(one.path for one in some[1:]) for some in alike.values()]


def _is_near(place: Line | Hit | Copy, time: float) -> bool:
    return place.start - _NEAR <= time <= place.end + _NEAR


def _match(one: _Scored) -> LineMatch:
    return LineMatch(**one.found.line._asdict(), words=one.words)


@dataclass(slots=True)
class _Row:
    """A moment, and the probability that its pictures are meant."""

    hit: Hit
    pictures: float | None
    shares: dict[tuple[str, ...], float] = field(default_factory=dict)  # of its alternatives

    @property
    def words(self) -> float:
        """The probability that its words are meant."""
        return min(sum(self.shares.values()), 1.0)  # alternatives rule each other out

    @property
    def probability(self) -> float | None:
        """That it is meant by one or the other; None where neither is known."""
        if self.pictures is None:  # words too little to count say nothing of the pictures
            return self.words if self.words > SURE else None
        return _either(self.pictures, self.words)

    @property
    def order(self) -> float:
        """Without a percentage a moment is as likely as not: words never put pictures lower."""
        return SURE if self.probability is None else self.probability

    def takes(self, one: _Scored) -> bool:
        """Whether a line is of this moment; other pieces of its scene are none of it.

        In a long shot, such as a whole lecture, each line is a moment of its own.
        """
        start, paths = one.found.line.start, (one.found.path, *one.copies)
        # A copy may stand for the video of the line, which is gone.
        places: list[Hit | Copy] = [self.hit, *(c for c in self.hit.copies if c.missing)]
        short = (place for place in places if place.end - place.start <= _LONG)
        return any(place.path in paths and _is_near(place, start) for place in short)

    def add(self, one: _Scored) -> None:
        lines = (*self.hit.lines, _match(one))[:_SHOWN]
        self.shares[one.alternative] = max(one.probability, self.shares.get(one.alternative, 0.0))
        least = SURE if self.pictures is None else self.pictures
        source = lines[0].source if self.words > least or not self.hit.frames else "frames"
        self.hit = replace(self.hit, lines=lines, source=source)


def _either(one: float, other: float) -> float:
    return 1 - (1 - one) * (1 - other)


def _row_of(one: _Scored) -> _Row:
    """A moment of words alone."""
    path, line = one.found.path, one.found.line
    start = max(min(line.start, line.end - _SHORTEST), 0.0)  # not after the end of the video
    end = max(line.end, start + _SHORTEST)
    hit = Hit(
        rank=0,
        path=path,
        start=start,
        end=end,
        score=one.found.similarity,
        copies=copies_at([(other, start, end, False) for other in one.copies]),
        source=line.source,
        **looked_for(path),
    )
    return _Row(hit, 0.0)


def _merged(answer: Answer, asked: Query, lines: Sequence[_Scored], said: float) -> Answer:
    """Hits of pictures and lines in one list by their probabilities, as many as were asked for."""
    rows = [_Row(hit, hit.probability) for hit in answer.hits]
    for one in lines:
        row = next((row for row in rows if row.takes(one)), None)
        if row is None:
            rows.append(row := _row_of(one))
        row.add(one)
    expected = sum(sorted((row.words for row in rows), reverse=True)[:RESULTS])
    first = _kept(rows, replace(asked, limit=max(asked.limit, RESULTS)))
    rows = _kept(rows, asked)
    hits = tuple(
        replace(row.hit, rank=rank, probability=row.probability) for rank, row in enumerate(rows, 1)
    )
    notes = _unsaid(answer.warnings, [one.found.line.text for one in lines])
    fewer, few = few_hits(len(answer.hits), asked.limit), few_hits(len(hits), asked.limit)
    notes = [few + n.removeprefix(fewer) if n.startswith(fewer) else n for n in notes]
    notes = [n for n in notes if len(hits) < asked.limit or not n.startswith(few)]
    of_more = notes_on_files(answer.hits)  # than are shown
    notes = [*(note for note in notes if note not in of_more), *notes_on_files(hits)]
    answer = replace(answer, hits=hits, warnings=tuple(notes))
    if not lines:
        return answer
    if answer.confidence is None and said < SURE and any(row.hit.frames for row in rows):
        # Of pictures nothing is known, and of words too little: `--min` hides none of them.
        return replace(answer, hits=tuple(replace(hit, probability=None) for hit in hits))
    return _with_confidence(answer, asked, said, expected, first)


def _kept(rows: Sequence[_Row], asked: Query) -> list[_Row]:
    """The moments that were asked for, the likeliest first.

    A video gives as many as it may, and more only where others do not fill the answer.
    """
    most, rows = asked.per_video or PER_VIDEO, sorted(rows, key=lambda row: -row.order)
    paths, enough = [row.hit.path for row in rows], min(asked.limit, len(rows))
    while len(kept := capped(rows, paths, most)) < enough and not asked.per_video:
        most *= 2
    return kept[: asked.limit]


def _unsaid(notes: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Notes, without those on words, other than dates, that lines have and the model lacks."""
    said = {word for line in lines for word in _stems(line)}
    quoted = {note: {*_stems(" ".join(re.findall("“(.+?)”", note)))} for note in notes}
    return [note for note, words in quoted.items() if words - said or not words or RECORDED in note]


def _with_confidence(
    answer: Answer, asked: Query, said: float, expected: float, rows: Sequence[_Row]
) -> Answer:
    """How sure an answer is, of which words have a share.

    Where the pictures have no percentage, what is asked for is as likely in them as in any search.

    Args:
        said: probability that any line is meant.
        expected: how many of the ten best moments have a line that is meant, on average.
        rows: the best moments, ten at least where there are so many.
    """
    prior = 0.5 if asked.prior is None else asked.prior
    unknown = prior if any(row.hit.frames for row in rows) else 0.0
    present = _either(unknown if answer.present is None else answer.present, said)
    plausible = _plausible(rows, asked.coverage * present, answer.present)
    known = answer.confidence or Confidence(
        right=0.0,
        coverage=asked.coverage,
        plausible=None,
        prior=prior,
        valid_for="" if asked.phrase else _VALID_FOR,
    )
    known = replace(
        known,
        right=max(hit.probability or 0.0 for hit in answer.hits),
        plausible=plausible,
        expected=min(known.expected + expected, RESULTS),
    )
    hits = tuple(
        replace(hit, plausible=None if plausible is None else hit.rank <= plausible)
        for hit in answer.hits
    )
    absent = answer.status == "probably not here" and present < min(known.absent_below, SURE)
    sure = status_of(hits, known)
    enough = np.inf if known.reference and said < CONFIDENT else CONFIDENT
    return replace(
        answer,
        hits=hits,
        status="probably not here" if absent and sure != "confident" else sure,
        present=present,
        answerable="no" if absent else "yes" if present >= enough else "unknown",
        confidence=known,
        unrated="",
    )


def _plausible(rows: Sequence[_Row], wanted: float, present: float | None) -> int | None:
    """How many moments it takes so that one of them is right with a probability.

    Pictures are right one by one if it is in the library at all, which is one chance for all of
    them. Of alternatives that have a line in several of them, one is meant in all of these or in
    none.

    Args:
        present: probability that any picture is right; None where it is not known.
    """
    here = present or 1.0
    missed, shares = 1.0, dict[tuple[str, ...], float]()
    for rank, row in enumerate(rows, 1):
        missed *= 1 - min((row.pictures or 0.0) / here, 1.0)
        shares |= row.shares
        if _either(here * (1 - missed), min(sum(shares.values()), 1.0)) >= wanted:
            return rank
    return None

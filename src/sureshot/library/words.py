"""Words of videos searched: which lines a query may mean, how sure, and one list with pictures.

Each source has a percentage of its own, a logistic of a few signals (benchmarks/words.py fits it):
how near the two sentences are, how many words of each are in the other, and how far the line is
ahead of all others. A moment that several sources speak for is one row.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from sureshot.errors import StoreError
from sureshot.library.file_names import name_parts
from sureshot.library.ranking import PER_VIDEO, Query
from sureshot.library.results import Answer, Confidence, Hit, LineMatch, Status
from sureshot.media.discover import is_away, is_gone
from sureshot.media.lines import Line
from sureshot.store.index import Store
from sureshot.store.lines import FoundLine
from sureshot.store.vector_search import Selection

LOOKED_AT = 50  # lines by their words, and as many by what they say
SURE = 0.8  # probability from which a line, or what is asked for, counts as there
LIKELY = 0.05  # probability below which a line is not shown
_NEAR = 1.0  # seconds between lines of one moment
_SHOWN = 3  # lines of a moment
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "”": "”"}
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDINGS = ("ing", "ed", "es", "s")
SIGNALS = ("similarity", "query words", "line words", "in a row", "ahead")
# benchmarks/words.py --fit, seed 0
WEIGHTS: dict[str, tuple[float, ...]] = {
    "subtitles": (6.0, 4.0, 2.0, 1.0, 4.0, -9.0),
    "picture": (6.0, 4.0, 2.0, 1.0, 4.0, -9.0),
    "speech": (6.0, 4.0, 2.0, 1.0, 4.0, -9.0),
}
_VALID_FOR = "lines made of MSR-VTT captions"


@dataclass(frozen=True, slots=True)
class _Scored:
    """A line with the probability that it is what a query means."""

    found: FoundLine
    probability: float
    words: tuple[str, ...]


def phrase_of(query: str) -> str:
    """What stands in quotes, where a query is nothing else; else empty.

    Examples:
        >>> phrase_of('"the password"'), phrase_of('a "red" car')
        ('the password', '')
    """
    inner = query[1:-1].strip()
    if len(query) > 2 and query[-1] == _QUOTES.get(query[0]) and query[0] not in inner:
        return inner
    return ""


def parts(text: str) -> list[str]:
    """The words of a text without capitals, accents and endings; some scripts by letters.

    Examples:
        >>> parts("The Passwords of Émile"), parts("我们 ok")
        (['password', 'emile'], ['我', '们', 'ok'])
    """
    found: list[str] = []
    for part in name_parts(text):
        found += part if _WIDE.match(part) else [_stem(part)]
    return found


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def signals(query: str, found: Sequence[FoundLine]) -> Float[np.ndarray, "lines 5"]:
    """The signals of lines, in the order of `SIGNALS`; the last one is among all of them."""
    asked = parts(query)
    rows = []
    for one in found:
        said = parts(one.line.text)
        both = set(asked) & set(said)
        rows.append(
            (
                one.similarity,
                sum(word in both for word in asked) / max(len(asked), 1),
                sum(word in both for word in said) / max(len(said), 1),
                _in_a_row(asked, said) / max(len(asked), 1),
            )
        )
    values = np.array(rows, float).reshape(len(found), 4)
    total = values.sum(1)
    ahead = np.array([t - max(np.delete(total, row), default=0.0) for row, t in enumerate(total)])
    return np.column_stack([values, ahead])


def _in_a_row(asked: Sequence[str], said: Sequence[str]) -> int:
    """The most words that follow each other in both."""
    best, before = 0, [0] * (len(said) + 1)
    for word in asked:
        now = [0] * (len(said) + 1)
        for place, other in enumerate(said, 1):
            if word == other:
                now[place] = before[place - 1] + 1
        best, before = max(best, *now), now
    return best


def probabilities(
    found: Sequence[FoundLine], values: Float[np.ndarray, "lines 5"], prior: float | None = None
) -> Float[np.ndarray, " lines"]:
    """Probability of each line that it is meant, one in two searches being for what is there."""
    weights = np.array([WEIGHTS[one.line.source] for one in found])
    weights = weights.reshape(len(found), len(SIGNALS) + 1)
    logits = (values * weights[:, :-1]).sum(1) + weights[:, -1]
    if prior is not None and prior < 1:
        logits += math.log(prior / (1 - prior))
    right = 1 / (1 + np.exp(-logits))
    return right / max(float(right.sum()), 1.0)


class Words:
    """Searches the lines of an index."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def has(self, word: str) -> bool:
        """Whether a word is in any line."""
        try:
            return self._store.lines.count() > 0 and self._store.lines.has(word)
        except StoreError:  # of which the search warns
            return False

    def phrase(self, query: str) -> str:
        """The quoted phrase for which words alone are searched; empty where there is none."""
        return phrase_of(query) if phrase_of(query) and self._count() else ""

    def _count(self, selection: Selection | None = None) -> int:
        try:
            return self._store.lines.count(selection)
        except StoreError:
            return 0

    def added(self, answer: Answer, asked: Query) -> Answer:
        """An answer of pictures with what is said and written that the query may mean."""
        if not self._count():
            return answer
        try:
            scored = self._scored(asked)
        except StoreError as error:
            return replace(answer, warnings=(*answer.warnings, str(error)))
        if asked.phrase:
            return _of_words(answer, asked, scored)
        likely = [one for one in scored if one.probability >= LIKELY]
        return _merged(answer, asked, likely) if likely else answer

    def _scored(self, asked: Query) -> list[_Scored]:
        """Lines that are likeliest meant, the likeliest first."""
        from sureshot.models.encoders.bundled import sentence_encoder

        text = asked.phrase or asked.text
        (vector,) = sentence_encoder().encode([text]).sentence
        if asked.phrase:
            found = self._store.lines.having(text, vector, LOOKED_AT, asked.folder)
        else:
            found = self._store.lines.search(text, vector, LOOKED_AT, asked.folder)
        found = self._one_of_copies(found)
        values = signals(text, found)
        shares = probabilities(found, values, asked.prior)
        wanted = set(parts(text))
        return [
            _Scored(found[row], float(shares[row]), _words_of(found[row].line, wanted))
            for row in sorted(range(len(found)), key=lambda row: (-shares[row], row))
        ]

    def _one_of_copies(self, found: Sequence[FoundLine]) -> list[FoundLine]:
        """Lines without those of videos with the same content as that of an earlier one."""
        known = self._store.at({one.path for one in found})
        kept: dict[tuple[str, Line], FoundLine] = {}
        for one in found:
            record = known.get(one.path)
            kept.setdefault((record.digest if record else str(one.path), one.line), one)
        return list(kept.values())


def _words_of(line: Line, wanted: set[str]) -> tuple[str, ...]:
    """Words of a line that a query has, as they are written there."""
    words = dict.fromkeys(re.findall(r"\w+", line.text))
    return tuple(word for word in words if wanted & set(parts(word)))


def _match(one: _Scored) -> LineMatch:
    return LineMatch(**one.found.line._asdict(), words=one.words)


@dataclass(slots=True)
class _Row:
    """A moment, and the shares of probability that its pictures and its words have."""

    hit: Hit
    pictures: float | None
    words: float = 0.0

    @property
    def probability(self) -> float | None:
        """Of both together; None where neither is known."""
        if self.pictures is None:
            return self.words or None
        return self.pictures + self.words

    def takes(self, one: _Scored) -> bool:
        """Whether a line is of this moment."""
        line, hit = one.found.line, self.hit
        near = hit.start - _NEAR <= line.start <= hit.end + _NEAR
        return one.found.path == hit.path and near

    def add(self, one: _Scored) -> None:
        """Take a line in."""
        lines = (*self.hit.lines, _match(one))[:_SHOWN]
        self.words += one.probability
        least = 0.5 if self.pictures is None else self.pictures
        source = lines[0].source if self.words > least or not self.hit.frames else "frames"
        self.hit = replace(self.hit, lines=lines, source=source)


def _row_of(one: _Scored) -> _Row:
    """A moment of words alone."""
    path, line = one.found.path, one.found.line
    gone = is_gone(path)
    hit = Hit(
        rank=0,
        path=path,
        start=line.start,
        end=max(line.end, line.start),
        score=one.found.similarity,
        missing=gone,
        away=gone and is_away(path),
        source=line.source,
    )
    row = _Row(hit, 0.0)
    row.add(one)
    return row


def _merged(answer: Answer, asked: Query, likely: Sequence[_Scored]) -> Answer:
    """Hits of pictures and lines in one list by their probabilities.

    What is said or written leaves pictures the share of searches that mean neither.
    """
    said = sum(one.probability for one in likely)
    rows = [
        _Row(hit, None if hit.probability is None else (1 - said) * hit.probability)
        for hit in answer.hits
    ]
    for one in likely:
        row = next((row for row in rows if row.takes(one)), None)
        if row is None:
            rows.append(_row_of(one))
        else:
            row.add(one)
    return _answer_of(answer, asked, rows, said)


def _of_words(answer: Answer, asked: Query, scored: Sequence[_Scored]) -> Answer:
    """The answer to a quoted phrase: words alone."""
    rows: list[_Row] = []
    for one in scored:
        row = next((row for row in rows if row.takes(one)), None)
        if row is None:
            rows.append(_row_of(one))
        else:
            row.add(one)
    if not rows:
        nothing = f"No words here have “{asked.phrase}”. Without quotes, pictures are searched too."
        return replace(answer, hits=(), warnings=(*answer.warnings, nothing))
    return _answer_of(answer, asked, rows, sum(one.probability for one in scored))


def _answer_of(answer: Answer, asked: Query, rows: Sequence[_Row], said: float) -> Answer:
    """An answer with rows by their probabilities, of which words have a share in sum."""
    # Without percentages of pictures a line goes first if it is meant more likely than not.
    ordered = sorted(
        rows,
        key=lambda row: (
            -(0.5 if row.pictures is None and not row.words else row.probability or 0.0)
        ),
    )
    kept, seen = [], dict[object, int]()
    for row in ordered:
        seen[row.hit.path] = seen.get(row.hit.path, 0) + 1
        enough = row.probability is None or row.probability >= asked.min
        if enough and seen[row.hit.path] <= (asked.per_video or PER_VIDEO):
            kept.append(row)
    hits = tuple(
        replace(row.hit, rank=rank, probability=row.probability)
        for rank, row in enumerate(kept[: asked.limit], 1)
    )
    known, prior = answer.confidence, 0.5 if asked.prior is None else asked.prior
    pictures = answer.present
    if known is None and any(row.hit.frames for row in rows):
        if said < SURE:
            return replace(answer, hits=hits)  # of pictures nothing is known
        pictures = prior
    present = said + (1 - said) * (1.0 if asked.present else pictures or 0.0)
    right = max((row.probability or 0.0 for row in rows), default=0.0)
    status: Status = answer.status
    if right >= SURE:
        status = "confident"
    elif said >= 0.5 or status == "not calibrated":
        status = "several plausible"
    return replace(
        answer,
        hits=hits,
        status=status,
        present=present,
        answerable="no"
        if status == "probably not here"
        else "yes"
        if present >= SURE
        else "unknown",
        confidence=Confidence(
            right=right,
            coverage=asked.coverage,
            plausible=1 if right >= asked.coverage else None if known is None else known.plausible,
            prior=1.0 if asked.present else prior,
            valid_for=_VALID_FOR,
        )
        if known is None
        else replace(known, right=right, plausible=1 if right >= asked.coverage else None),
    )

"""Queries as people type them: cleaned, times read, and what a user should know about a text."""

import calendar
import contextlib
import functools
import itertools
import math
import os
import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from datetime import date
from importlib.resources import files

from sureshot.errors import ArgumentError, QueryError, option
from sureshot.models.encoders import Encoder, TextFeatures
from sureshot.models.encoders.base import Vocabulary, seen_words
from sureshot.text import encodable, other_script, plain

_LONGEST = 100_000  # characters of a query that are looked at
# Endings that may be exchanged for one another, or for none, in a word that is the same.
_EXCHANGED = [*itertools.product(("", "s", "es", "ed", "ing", "er"), repeat=2)]
_THING = re.compile("(?:any|some|every)thing|videos?|clips?|footage", re.I)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "”": "”"}


def clean(query: str) -> str:
    """A query as one line of printable text; it is refused where nothing is left of it."""
    if not isinstance(query, str):
        raise QueryError(f"The query is {query!r}; give a sentence as text.")
    text = encodable(query[:_LONGEST])  # a terminal gives halves for bytes that are no text
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    text = " ".join(text.split())
    if not any(c.isprintable() for c in text.replace(" ", "")):
        raise QueryError('The query is empty; describe what you look for, like "a dog on a beach".')
    return text


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


def parse_time(text: str) -> float:
    """Seconds from ``90``, ``90.5``, ``1:30`` or ``1:02:05``.

    Examples:
        >>> parse_time("1:30")
        90.0
    """
    seconds, parts = 0.0, text.split(":")
    try:
        for part in parts:
            if float(part) < 0:
                raise ValueError
            seconds = seconds * 60 + float(part)
    except ValueError:
        seconds = math.nan
    if len(parts) > 3 or not math.isfinite(seconds):
        raise QueryError(f"{text!r} is not a time; write seconds (90) or a clock time (1:30).")
    return seconds


def seconds(given: float | str | None, name: str) -> float | None:
    """Seconds that an option of a name is given as, as a number or a clock time; None stays."""
    if given is None:
        return None
    try:
        number = parse_time(given) if isinstance(given, str) else float(given)
    except QueryError as error:
        raise ArgumentError(f"{option(name)}: {error}") from None
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        shown = given if math.isnan(number) else f"{number:g}"
        raise ArgumentError(f"{option(name)} is {shown}; give seconds, 0 or more.")
    return number


def parse_share(text: str) -> float:
    """A share of 1 from ``20%``, ``20 %`` or ``0.2``; not a number where it is none.

    Examples:
        >>> parse_share("20 %"), parse_share("0.2"), parse_share("much")
        (0.2, 0.2, nan)
    """
    number, sign, rest = text.strip().partition("%")
    try:
        return math.nan if rest else float(number) / (100 if sign else 1)
    except ValueError:
        return math.nan


def usual_prior() -> float | None:
    """The share of searches for what is there, of `SURESHOT_PRIOR`; None if that is not set."""
    text = os.environ.get("SURESHOT_PRIOR", "").strip()
    if not text:
        return None
    share = parse_share(text)
    if not 0 < share <= 1:
        raise QueryError(
            f"SURESHOT_PRIOR in the environment is {plain(text)!r}; it must be above 0% and at "
            "most 100%, such as 90%."
        )
    return share


def unknown_words(text: str, vocabulary: Container[str]) -> tuple[tuple[str, ...], bool]:
    """Words that are not in a vocabulary, and whether nothing else of a text is known.

    Words such as "the" and "after" say nothing of a picture; nor do dates, numbers and signs.

    Examples:
        >>> unknown_words("the quokkas of Berghain", {"quokka"})
        (('Berghain',), False)
        >>> unknown_words("videos from last summer", {"summer", "video"})
        ((), True)
    """
    # Words for any thing, or for none, name nothing that is seen.
    nothing = _limits(False)[_NEGATION]
    text = _limits(False)[_WHEN].sub(" ", _DATE.sub(" ", text))
    words = [w for w in seen_words(text) if not (nothing.fullmatch(w) or _THING.fullmatch(w))]

    def is_known(word: str) -> bool:
        return any(word.removesuffix(one) + other in vocabulary for one, other in _EXCHANGED)

    unknown = tuple(dict.fromkeys(word for word in words if not is_known(word.lower())))
    return unknown, len(unknown) == len(set(words))


# Letters that no English word has, as é or ñ in words it has borrowed.
_FOREIGN_LETTERS = frozenset("ßąćęłńśźżőűășțğışěřů")


def looks_foreign(text: str) -> bool:
    """Whether a text has more words of one other European language than it has English ones.

    Only frequent words are known; a text that has none of them is taken for English.

    Examples:
        >>> looks_foreign("ein Hund am Strand"), looks_foreign("a dog on the beach")
        (True, False)
        >>> looks_foreign("Die Ärzte live at the beach"), looks_foreign("crème brûlée")
        (False, False)
    """
    words = set(re.findall(r"[^\W\d_]+", text.lower()))
    strange = sum(not _FOREIGN_LETTERS.isdisjoint(word) for word in words)
    return any(
        len(words & theirs) + strange > len(words & ours) for theirs, ours in _telling_words()
    )


@functools.cache
def _telling_words() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Of each other language the frequent words that English has not, and the other way round."""
    text = files("sureshot.library").joinpath("frequent_words.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    by_name = {name: frozenset(words) for name, *words in lines}
    english = by_name.pop("en")
    return tuple((words - english, english - words) for words in by_name.values())


_TALKS = "(?:talk|speak|sing|chat|rap|argu|lectur)(?:e?s|ing)?"
_LANGUAGES = """
    arabic bengali chinese dutch english french german greek hebrew hindi italian japanese korean
    latin mandarin polish portuguese punjabi russian spanish swedish tamil turkish urdu vietnamese
"""
_LANGUAGE = f"(?:{'|'.join(_LANGUAGES.split())})"
# Not `calendar.month_name`, which is in the language of the program.
_MONTH_NAMES = """
    january february march april may june july august september october november december
"""
_MONTHS = _MONTH_NAMES.split()
_PLAIN = [month for month in _MONTHS if month not in ("march", "may")]  # months, nothing else
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_DIGITAL = 1990  # year before which hardly anybody has videos, but pictures show cars of it
_DATE = re.compile(  # 2024-05-31, 2024-05, 31.5.2024, or a month and a day, before or after it
    r"(?<!\w)((?:19|20)\d\d-(?:0\d|1[0-2])(?:-\d\d)?)(?!\w)"
    r"|(?<!\w)(\d\d?\.\d\d?\.(?:19|20)\d\d)(?!\w)"
    rf"|(?:(?<!\w)(?:(\d\d?)(?:st|nd|rd|th)? (?:of )?)?({'|'.join(_MONTHS)})"
    r"(?: (\d\d?)(?:st|nd|rd|th)?)?,? (?:of )?)?(?<!\w)((?:19|20)\d\d)(?!\w)",
    re.I,
)
_PERIODS = "day|week|weekend|month|year|night|spring|summer|autumn|fall|winter"
FIRST_NAMES = """
    adam alice andrew angela anna anne barbara ben carol caroline charlie charlotte chris
    claire daniel david diana elizabeth ella emily emma eric eva george hannah helen henry ian jack
    james jane jason jennifer jessica jim joe john jonas joseph julia karen kate kevin laura leo
    linda lisa lucas lucy maria marie martin mary max mia michael mike nicole nina noah oliver
    olivia oscar paul peter richard robert ryan sarah simon sofia sophia steve susan thomas tim tom
    william
"""
_NEGATION = "does not understand {}"
_WHEN = "knows no dates or times ({})"
RECORDED = "For videos recorded then"
# What a picture does not show, by what this model lacks: the words it is asked for with.
_LIMITS = {
    _NEGATION: r"not|no|without|never|nobody|nothing|none|neither|except|\w+n['’]t",
    "hears nothing ({})": (
        r"(?<!sing a )(?<!singing a )(?<!sings a )(?:music(?! videos?)|songs?)|sounds?"
        r"|nois(?:es?|y)|loud(?:ly)?|audio|voices?|melody|melodies|lyrics|silence|silent|soundtracks?|hear[sd]?"
        r"|hearing|narrat(?:es?|ing|ion|or)"
    ),
    "does not know what is said ({})": (
        rf"{_TALKS} (?:\w+ )?about|{_TALKS} (?:in )?{_LANGUAGE}|(?<!that )says?|said|saying"
        r"|mention(?:s|ing)?|discuss(?:es|ing)?|speech(?:es)?|accent"
    ),
    _WHEN: (
        rf"yesterday|today|tomorrow|tonight|(?:last|this|next) (?:{_PERIODS})"
        rf"|\w+ (?:{_PERIODS})s? ago|(?:19|20)\d\d|{'|'.join(_PLAIN)}|{_DAYS}"
        r"|\d\d?:\d\d|\d\d? ?(?:am|pm)|o['’]clock"
    ),
}
_LIMITS_OF_SMALL = {
    "reads no text ({})": (
        r"text|written|subtitles?|titled|that (?:reads?|says?)|words?|letters?"
        r"|(?:license|number) plates?"
    ),
    "does not count ({})": (
        r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|exactly"
        r"|(?<!\d[-.,:])\d{1,3}(?![-.,:]\d| ?[ap]m\b)"
    ),
    "knows few names ({})": rf"{'|'.join(FIRST_NAMES.split())}",
}
_KNOWN_NAME = 20  # captions with a word in capitals, from which on the model may know its looks
_CAPITAL = re.compile(r"(?<=[\w,] )[A-Z][a-z]\w*")


@functools.cache
def _limits(of_small: bool) -> dict[str, re.Pattern[str]]:
    listed = _LIMITS | (_LIMITS_OF_SMALL if of_small else {})
    return {lack: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.I) for lack, words in listed.items()}


def limits(text: str, vocabulary: Vocabulary | None) -> str:
    """What of a query no model of pictures sees, in sentences; empty where nothing was found.

    A small model, whose vocabulary is given, cannot read, count or tell people apart either.
    """
    patterns = _limits(vocabulary is not None)
    found = {lack: m[0] for lack, pattern in patterns.items() if (m := pattern.search(text))}
    if vocabulary is not None:
        for word in _CAPITAL.findall(text):
            known = word.lower() in _MONTHS or re.fullmatch(_DAYS, word, re.I)
            if not known and vocabulary.captions.get(word.lower(), 0) < _KNOWN_NAME:
                found.setdefault("knows few names ({})", word)
    lacks = [lack.format(f"“{plain(word)}”") for lack, word in found.items()]
    if not lacks:
        return ""
    said = f"The model {_enumerated(lacks, 'and')}."
    return f"{said} {_recorded(text, found[_WHEN])}".strip() if _WHEN in found else said


def _recorded(text: str, word: str) -> str:
    """A sentence on the options for the days of a text; empty where its first time is of a day."""
    if found := sorted(_days_of(text)):
        since, until = found[0][0], max(last for _, last in found)
        options = f"{option('since', str(since))} {option('until', str(until))}"
        return f"{RECORDED}, add {options}."
    if re.search(r":|\d ?[ap]m|clock|\d{4}", word, re.I):
        return ""
    return f"For videos recorded on certain days, add {option('since')} and {option('until')}."


def _days_of(text: str) -> Iterator[tuple[date, date]]:
    """First and last day of each year, month or day that a text names and videos may be of."""
    for found in _DATE.finditer(text):
        iso, dotted, *spelt = found.groups()
        if iso or dotted:
            parts = [*map(int, iso.split("-") if iso else reversed(dotted.split(".")))]
            year, of_year, day = (*parts, 0)[:3]  # without a day it is all of the month
            months = (of_year, of_year)
        else:
            before, month, after, number = spelt
            year, day = int(number), int(before or after or 0)
            months = (_MONTHS.index(month.lower()) + 1,) * 2 if month else (1, 12)
        with contextlib.suppress(ValueError):  # a thirteenth month
            days = calendar.monthrange(year, months[1])[1]
            one, other = (day, day) if 0 < day <= days else (1, days)
            first, last = date(year, months[0], one), date(year, months[1], other)
            if year >= _DIGITAL and first <= date.today():
                yield first, last


def is_negated(text: str) -> bool:
    """Whether a text says what is not to be seen, for which models find just that."""
    return bool(_limits(False)[_NEGATION].search(text))


_SHOWN = 3  # words that are named
_REMEDY = (
    "Say it in English, or index with a multilingual model such as google/siglip2-base-patch16-224."
)


def text_warnings(
    encoder: Encoder, texts: Sequence[str], features: TextFeatures
) -> tuple[str, ...]:
    """What the model does not see or read of cleaned texts, or a language that it does not know."""
    strange = [encoder.latin_only and (other_script(t) or looks_foreign(t)) for t in texts]
    lacks = (
        "" if foreign else limits(text, encoder.vocabulary)
        for text, foreign in zip(texts, strange, strict=True)
    )
    warnings = list(dict.fromkeys(filter(None, lacks)))
    if features.truncated.any():
        longest = features.mask.shape[1]
        warnings.append(
            f"The text is longer than the model reads; what follows its first {longest} tokens "
            f"was left out."
        )
    knows = f"{encoder.name!r} knows English only"
    if encoder.latin_only and any(other_script(text) for text in texts):
        warnings.append(f"The model {knows}; this answer is guesswork. {_REMEDY}")
    elif any(strange):
        warnings.append(f"This does not look like English, and the model {knows}. {_REMEDY}")
    elif encoder.vocabulary is not None:
        found = [unknown_words(text, encoder.vocabulary.captions) for text in texts]
        words = list(dict.fromkeys(word for unknown, _ in found for word in unknown))
        if words:
            warnings.append(
                f"No caption that the model learned from had {_listed(words)}, so it may "
                f"not know what that is."
            )
        elif any(nothing for _, nothing in found):
            warnings.append("Name something that can be seen; nothing here says what to look for.")
    return tuple(warnings)


def is_foreign(encoder: Encoder, text: str) -> bool:
    """Whether nothing in a text is known to a model, so that percentages do not hold for it.

    That is a language it does not know, or no word of the captions it learned from.
    """
    if encoder.latin_only and (other_script(text) or looks_foreign(text)):
        return True
    known = encoder.vocabulary
    return known is not None and unknown_words(text, known.captions)[1]


def _listed(words: Sequence[str]) -> str:
    """Some words in quotes, the first few of many."""
    more = [f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else []
    return _enumerated([*(f"“{plain(word)}”" for word in words[:_SHOWN]), *more], "or")


def _enumerated(parts: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))

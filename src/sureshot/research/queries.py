"""Queries as people type them, made of captions, and which videos they describe.

A video that a query was not written for is relevant too if *one* caption that people wrote for it
holds every content word of the query. That reads no model. It is strict (it finds a fraction of
what a person would call right) and by words (of twenty such pairs looked at, three were wrong: "a
man is sitting" and a caption of a woman sitting beside a man).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Integer

from sureshot.datasets.split import Split

_LISTED = """
    a an the is are was were be been being am of in on at to and or with for from by as it
    its his her their this that these those there here he she they them him who which
    while into onto up down out over some someone somebody something has have had having
    do does doing then than so very about off just also one
"""
LISTED = frozenset(_LISTED.split())  # words that say nothing of what is to be seen
_MEANT = {
    "man": ("guy", "men", "male", "gentleman"),
    "woman": ("lady", "women", "female"),
    "child": ("kid", "kids", "children"),
    "person": ("people", "persons"),
}
_SAME = {word: meant for meant, words in _MEANT.items() for word in words}
_ENDINGS = ("ings", "ing", "ies", "es", "ed", "s")
_LENGTHS = (1, 1, 2, 2, 3)  # words of a search, one of them by lot
_SHORTEST = 3  # letters that are left of a word
_KEYWORDS, _SENTENCES = 500, 600  # queries of the other kinds
_QUESTIONS = (
    "where is the video of {}",
    "show me {}",
    "is there a clip in which {}?",
    "find {}",
    "do I have a video where {}",
    "when does {}",
    "the one with {}",
)


class Queries(NamedTuple):
    """Queries of one kind."""

    texts: Sequence[str]
    owner: Integer[np.ndarray, " queries"]  # number of the video that each was written for
    content: Sequence[str] | None  # words of each that say which other videos it describes, if any


def kinds(split: Split, rng: np.random.Generator) -> dict[str, Queries]:
    """Captions as they are; keywords, one to three words; questions; and the first halves.

    Where captions have no Latin words there are neither keywords nor questions.
    """
    texts, owner = split.texts(), split.owner()
    words = keywords(texts, min(_KEYWORDS, 20 * len(split.items)), rng)
    some = rng.permutation(len(texts))[:_SENTENCES]
    plain = [texts[row].strip().rstrip(".") for row in some]
    halves = [" ".join(text.split()[: max(3, len(text.split()) // 2)]) for text in plain]
    found = {"captions": Queries(texts, owner, texts), "short": Queries(halves, owner[some], None)}
    if words:
        fitting = by_words(words, texts, owner, len(split.items))
        own = np.array([int(rng.choice(np.flatnonzero(row))) for row in fitting])
        asked = [str(rng.choice(_QUESTIONS)).format(text.lower()) for text in plain]
        found["keywords"] = Queries(words, own, words)
        found["questions"] = Queries(asked, owner[some], plain)
    return found


def by_words(
    texts: Sequence[str],
    captions: Sequence[str],
    owner: Integer[np.ndarray, " captions"],
    videos: int,
) -> Bool[np.ndarray, "texts videos"]:
    """Which videos have a caption that holds every content word of a text."""
    relevant = np.zeros((len(texts), videos), bool)
    holding: dict[str, set[int]] = {}  # captions that hold a word
    for row, caption in enumerate(captions):
        for word in content(caption):
            holding.setdefault(word, set()).add(row)
    for row, text in enumerate(texts):
        if words := content(text):
            found = set.intersection(*(holding.get(word, set()) for word in words))
            relevant[row, owner[sorted(found)]] = True
    return relevant


def keywords(captions: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Searches of one to three words that stand side by side in a caption, each once.

    Captions are drawn by lot, so words come as often as there are videos that they fit. There are
    fewer than ``count`` where the captions give no more.
    """
    found: dict[str, None] = {}
    for row in rng.integers(len(captions), size=20 * count):
        words = [
            word
            for word in re.findall(r"[a-z0-9]+", captions[row].lower())
            if word.isalpha() and word not in LISTED and len(word) >= _SHORTEST
        ]
        length = int(rng.choice(_LENGTHS))
        if len(words) >= length:
            first = int(rng.integers(len(words) - length + 1))
            found[" ".join(words[first : first + length])] = None
        if len(found) == count:
            break
    return [text for text in found if content(text)]


def content(text: str) -> frozenset[str]:
    """Stems of the words of a text that say what is to be seen."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_stem(word) for word in words if word not in LISTED)


def _stem(word: str) -> str:
    word = _SAME.get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST and word[-1] in "ey" else word

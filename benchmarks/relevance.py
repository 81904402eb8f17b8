"""Which videos a query describes beyond the one it was written for, as far as captions say so.

A video counts as relevant to a query if *one* caption that people wrote for it holds every content
word of the query. That reads no model. It is strict (it finds a fraction of what a person would
call right) and by words (of twenty such pairs looked at, three were wrong: "a man is sitting" and a
caption of a woman sitting beside a man).
"""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Integer

_LISTED = """
    a an the is are was were be been being am of in on at to and or with for from by as it
    its his her their this that these those there here he she they them him who which
    while into onto up down out over some someone somebody something has have had having
    do does doing then than so very about off just also one
"""
_EMPTY = frozenset(_LISTED.split())
_SAME = {
    "guy": "man",
    "men": "man",
    "male": "man",
    "gentleman": "man",
    "lady": "woman",
    "women": "woman",
    "female": "woman",
    "kid": "child",
    "kids": "child",
    "children": "child",
    "people": "person",
    "persons": "person",
}
_ENDINGS = ("ings", "ing", "ies", "es", "ed", "s")
_SHORTEST = 3  # letters that are left of a word


def by_captions(
    texts: Sequence[str], owner: Integer[np.ndarray, " texts"], videos: int
) -> Bool[np.ndarray, "texts videos"]:
    """Relevance of every video to every caption of a split; to its own it always is."""
    words = [content(text) for text in texts]
    relevant = owner[:, None] == np.arange(videos)
    holding: dict[str, set[int]] = {}  # captions that hold a word
    for row, own in enumerate(words):
        for word in own:
            holding.setdefault(word, set()).add(row)
    for row, own in enumerate(words):
        if own:
            found = set.intersection(*(holding[word] for word in own))
            relevant[row, owner[sorted(found)]] = True
    return relevant


def content(text: str) -> frozenset[str]:
    """Stems of the words of a text that say what is to be seen."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_stem(word) for word in words if word not in _EMPTY)


def _stem(word: str) -> str:
    word = _SAME.get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST and word[-1] in "ey" else word

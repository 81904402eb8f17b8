"""Words of a query that the captions which a model learned from did not have."""

import re
from collections.abc import Set

# Words that say nothing of a picture.
_LISTED = """
    about after all also an and any are around as at be been being but by can did do does for from
    had has have he her here his how in into is it its me my near no not of off on or our out over
    she so some that the their them then there these they this those to under up us was we were what
    when where which while who with you your
"""
_EMPTY = frozenset(_LISTED.split())
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENDINGS = ("s", "es", "ed", "ing", "er")  # with or without which a word is the same


def unknown_words(text: str, vocabulary: Set[str]) -> tuple[tuple[str, ...], bool]:
    """Words that are not in a vocabulary, and whether nothing else of a text is known.

    Words such as "the" and "after" say nothing of a picture; nor do numbers and signs.

    Args:
        text: a query.
        vocabulary: words in small letters.

    Examples:
        >>> unknown_words("the quokkas of Berghain", {"quokka"})
        (('Berghain',), False)
        >>> unknown_words("the zzzz", {"quokka"})
        (('zzzz',), True)
        >>> unknown_words("!!!", {"quokka"}), unknown_words("the", {"quokka"})
        (((), True), ((), True))
    """
    words = [word for word in _WORD.findall(text) if word.lower() not in _EMPTY]
    unknown = tuple(dict.fromkeys(w for w in words if not _is_known(w.lower(), vocabulary)))
    return unknown, len(unknown) == len(set(words))


def _is_known(word: str, vocabulary: Set[str]) -> bool:
    stems = [word, *(word.removesuffix(ending) for ending in _ENDINGS)]
    return any(
        stem in vocabulary or any(stem + ending in vocabulary for ending in _ENDINGS)
        for stem in stems
    )

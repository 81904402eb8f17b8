"""Whether a text in Latin letters is in another language than English, told by its commonest words.

A list of words, not one of the libraries that name a language: what matters is English or not, for
texts of a few words, before a search that takes less than a second. The light one among them
(py3langid) takes 1.9 s to load and then misses more; LOG.md has the numbers.
"""

import functools
import re
from importlib.resources import files

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = "en"
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
    words = set(_WORD.findall(text.lower()))
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
    english = by_name.pop(_ENGLISH)
    return tuple((words - english, english - words) for words in by_name.values())

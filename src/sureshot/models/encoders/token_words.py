"""Which word of a text each token of an encoder belongs to."""

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tokenizers import Encoding

_WORD = re.compile(r"\w+(?:['’]\w+)*")  # letters and digits; other signs are no words


@runtime_checkable
class Worded(Protocol):
    """An encoder that can say which words its word tokens are."""

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each real token of each text, in the order of `TextFeatures.words`.

        A word of several tokens is named by each of them; a token that is no word of the text, such
        as its start or a comma, has an empty name.
        """
        ...


def token_words(text: str, encoding: Encoding) -> tuple[str, ...]:
    """The word of each token, as the text writes it; empty where a token is no word of it.

    Args:
        text: what was cut.
        encoding: how; its offsets are places in the text.
    """
    spans = [(found.start(), found.end(), found.group()) for found in _WORD.finditer(text)]
    words = []
    for first, last in encoding.offsets:
        # Some tokens begin with the space before their word.
        inside = [word for start, end, word in spans if start < last and first < end]
        words.append(inside[0] if inside else "")
    return tuple(words)

"""Misspelt words of a query, and the nearest words that the model or a line of a video knows."""

import functools
import math
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from sureshot.models.encoders.base import Vocabulary

if TYPE_CHECKING:
    from symspellpy import SymSpell
    from symspellpy.suggest_item import SuggestItem

# Four letters and more, and neither part of a name such as VID_2085, beach.mp4 or doesn't.
_WORD = re.compile(r"(?<![\w'’.@/\\])[^\W\d_]{4,}(?![\w'’@/\\])(?!\.\w)")
_FARTHEST = 2  # letters put in, left out, changed, or exchanged with their neighbour
_FEWEST = 3  # captions of a word that others are corrected to
_FREQUENT = 50  # captions from which on a word of them is taken for right
_TIMES = 20  # a word of captions is taken for a slip of one that so many times as many have
_IN_LINES = 0.8  # of the cost: one line of the videos searched says as much as 100 captions
_LETTERS = 5  # that a query of which the list reads a prefix; what is found does not depend on it
_SOUNDS = {"ph": "f", "ck": "k", "qu": "k", "wh": "w", "sh": "1", "ch": "2", "th": "3"}
_LIKE = str.maketrans("cqzy", "kksi")


class Speller:
    """Finds misspelt words, and what was meant by them.

    A word is taken for right if a list of English words, the model's tokenizer or many captions
    have it. One that is not is corrected to a word of the captions that is near to it by its
    letters, the shorter it is, the nearer, or to such a word that the lines of videos have and
    captions do not. What is nearest to nothing stays as it is, as names do.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._captions = vocabulary.captions
        self._is_token = vocabulary.is_token

    @functools.cached_property
    def _english(self) -> frozenset[str]:
        listed = files("symspellpy").joinpath("frequency_dictionary_en_82_765.txt")
        lines = listed.read_text("utf-8-sig").splitlines()
        return frozenset(line.partition(" ")[0] for line in lines)

    @functools.cached_property
    def _near(self) -> "SymSpell":
        """The words of captions that others are corrected to."""
        return _lookup(
            {word: captions for word, captions in self._captions.items() if self._is_offered(word)}
        )

    def corrected(
        self,
        text: str,
        is_name: Callable[[str], bool],
        in_lines: Callable[[str], Mapping[str, int]] = lambda _: {},
    ) -> str:
        """A text with what was meant in the place of misspelt words.

        ``is_name`` says whether a word is in the name of something that is searched, or in a line;
        ``in_lines`` gives words of lines, a word's like among them, and in how many lines each is.
        """
        found = {}
        for match in _WORD.finditer(text):
            word = match[0]
            # A capital letter within a sentence begins a name, unless all of it is in capitals.
            named = word[0].isupper() and text[: match.start()].strip() and not text.isupper()
            small = word.lower()
            if self._is_right(small) or is_name(word):
                continue
            near = [] if named or not word.isascii() else self._fitting(small, self._near)
            lines = {
                one: count
                for one, count in in_lines(word).items()
                if abs(len(one) - len(word)) <= _FARTHEST and not self._is_offered(one)
            }
            rated = [(_cost(small, one), one.term) for one in near]
            rated += [
                (_cost(small, one) - _IN_LINES, one.term)
                for one in self._fitting(small, _lookup(lines))
            ]
            if rated:
                found[word] = min(rated)[1]
        return _WORD.sub(lambda match: found.get(match[0], match[0]), text)

    def _is_listed(self, word: str) -> bool:
        return self._is_token(word) or word in self._english

    def _is_offered(self, word: str) -> bool:
        """Whether it is a word of captions that others are corrected to."""
        often = self._captions.get(word, 0) >= _FEWEST
        return often and len(word) > 2 and self._is_listed(word)

    def _is_right(self, word: str) -> bool:
        # The list of English words, which takes longest, comes last.
        if self._captions.get(word, 0) >= _FREQUENT or self._is_listed(word):
            return True
        is_plural = word.endswith("s") and not word.endswith(("os", "ss"))
        return is_plural and self._is_right(word[:-1])

    def _fitting(self, word: str, words: "SymSpell") -> list["SuggestItem"]:
        """Those of some words that can have been meant."""
        from symspellpy import Verbosity

        near = words.lookup(word, Verbosity.ALL, max_edit_distance=_FARTHEST)
        is_joined = any(
            self._captions.get(word[:cut], 0) >= 5 and self._captions.get(word[cut:], 0) >= 5
            for cut in range(3, len(word) - 2)
        )
        return [one for one in near if self._fits(word, one, is_joined)]

    def _fits(self, word: str, found: "SuggestItem", is_joined: bool) -> bool:
        """Whether a near word can have been meant: chance brings short words near to one another.

        ``is_joined`` says whether two words make it up, as in "firetruck".
        """
        meant, letters = found.term, len(word)
        is_heard, is_mixed = sounds(meant) == sounds(word), sorted(meant) == sorted(word)
        if self._captions.get(word, 0) * _TIMES > found.count:
            return False
        if meant[0] != word[0] and not is_heard and not is_mixed:
            return False
        if found.distance > 1:
            is_near = letters >= (6 if is_heard else 8) and len(meant) > letters - 2
            return is_near and not is_joined
        if letters == 4:
            return is_mixed or (is_heard and len(meant) > letters)
        return letters > 5 or is_heard or is_mixed or len(meant) != letters


def _lookup(words: Mapping[str, int]) -> "SymSpell":
    from symspellpy import SymSpell

    near = SymSpell(_FARTHEST, prefix_length=_LETTERS)
    for word, count in words.items():
        near.create_dictionary_entry(word, count)
    return near


def _cost(word: str, found: "SuggestItem") -> float:
    """How far what was found is from a word: by its letters, its sound and how rare it is."""
    heard = sounds(found.term) == sounds(word)
    return found.distance - 0.75 * heard - 0.4 * math.log10(found.count)


def sounds(word: str) -> str:
    """The consonants of a word as they are heard, about, after its first letter.

    Examples:
        >>> sounds("elefant") == sounds("elephant"), sounds("bycicle") == sounds("bicycle")
        (True, True)
    """
    for letters, sound in _SOUNDS.items():
        word = word.replace(letters, sound)
    word = word.translate(_LIKE)
    heard = word[0] + re.sub("[aeiou]", "", word[1:])
    return re.sub(r"(.)\1+", r"\1", heard)


speller = functools.lru_cache(maxsize=4)(Speller)

"""Videos and folders found by their names, next to what is found by the pictures."""

import functools
import os
import re
import unicodedata
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.errors import StoreError
from sureshot.library.results import NameMatch, looked_for
from sureshot.paths import video_id
from sureshot.store.index import Store
from sureshot.store.rows import from_text, to_text
from sureshot.store.vector_search import Selection, VideoSet
from sureshot.text import EMPTY_WORDS

_PART = re.compile(r"[^\W\d_]+|\d+")
_NAME = re.compile(r"[^\W_]+")  # letters and numbers that follow each other, as in S01E02
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SHOWN = 5  # videos and folders that an answer names


def name_parts(text: str) -> list[str]:
    """The words and numbers of a query or a name, without capitals and accents.

    Examples:
        >>> name_parts("VID_2085.mp4"), name_parts("the Ärzte"), name_parts("Straße")
        (['vid', '2085', 'mp', '4'], ['arzte'], ['strasse'])
    """
    return [part for part in all_words(text) if part not in EMPTY_WORDS]


def all_words(text: str) -> list[str]:
    """The words and numbers of a text, also those that say nothing, such as "the"."""
    return _PART.findall(_THOUSANDS.sub("", _folded(text)))


def _folded(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


class FileNames:
    """The names below the folder that all videos of an index are in.

    They are read from the index with a search, in 50 ms of 100,000 videos, and kept until videos
    come or go.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # The state of the index, and a table: paths, whole, and names, which are folded below what
        # all share. In one, as several threads search.
        self._known: tuple[Any, Any] = (None, None)

    def has(self, word: str) -> bool:
        """Whether a word is in any of the names."""
        return bool(asked := _asked(word)) and len(_named(asked, self._read())) > 0

    def matches(self, query: str, selection: Selection | None) -> tuple[tuple[NameMatch, ...], int]:
        """The first videos and folders whose names have all words of a query, and how many do.

        A folder stands for all below it; a video whose own name has a word stands for itself.
        """
        asked = _asked(query)
        if not any(len(one) > 2 + (len(_PART.findall(one)) > 1) for one in asked):
            return (), 0  # "mp4" is as little as "tv"
        every = self._read()
        found = _named(asked, every)
        if not len(found) or len(found) == len(every) > 1:  # what all have tells nothing
            return (), 0
        found = _within(found, selection)
        folders = pc.replace_substring_regex(found["name"], "[^/]*$", "")
        by_folder = functools.reduce(pc.and_, [_has(one, folders) for one in asked])
        own = found["path"].filter(pc.invert(by_folder)).to_pylist()
        folders = pc.replace_substring_regex(found["path"].filter(by_folder), "[^/]*$", "")
        counts, top = Counter[str](), ""
        for row in sorted(pc.value_counts(folders).to_pylist(), key=lambda row: row["values"]):
            if not (top and row["values"].startswith(top)):  # those below a folder follow it
                top = row["values"]
            counts[top] += row["counts"]
        shown = [NameMatch(from_text(name), counts[name]) for name in sorted(counts)[:_SHOWN]]
        files = map(from_text, sorted(own)[: _SHOWN - len(shown)])
        shown += [NameMatch(path, **looked_for(path)) for path in files]
        return tuple(shown), len(counts) + len(own)

    def _read(self) -> Any:
        state: Any = None
        known, every = self._known
        try:
            state = self._store.state()
            paths = None if state == known else self._store.paths()
        except StoreError:  # of which the answer warns
            state, paths = None, pa.array([], pa.string())
        if paths is not None:
            ends = [end or "" for end in pc.min_max(paths).as_py().values()]
            shared = os.path.commonprefix(ends)  # noqa: RUF071 - cut at a slash below
            below = pc.utf8_slice_codeunits(paths, shared.rfind("/") + 1)
            folded = pc.replace_substring(pc.utf8_lower(below), "ß", "ss")
            folded = pc.utf8_normalize(folded, "NFKD")
            names = pc.replace_substring_regex(folded, r"\p{Mn}", "")
            every = pa.table({"path": paths, "name": names})
            self._known = state, every
        return every


def _asked(text: str) -> list[str]:
    """What a name must have: each word, each number, and each row of both as one, as in S01E02."""
    rows = dict.fromkeys(_NAME.findall(_folded(text)))
    return [row for row in rows if row not in EMPTY_WORDS]


def _named(asked: list[str], every: Any) -> Any:
    """The rows with all of some words in their names."""
    for one in sorted(asked, key=len, reverse=True):
        # Few names have the longest word, and to look for letters alone takes least.
        longest = max(_PART.findall(one), key=len)
        every = every.filter(pc.match_substring(every["name"], _stem(longest)))
        every = every.filter(_has(one, every["name"]))
    return every


def _stem(part: str) -> str:
    return part.removesuffix("s") if len(part) > 3 else part


def _has(one: str, names: Any) -> Any:
    """Which names have a number, a word, in the plural too, or a row of both, as IMG_0042 has."""
    *parts, last = _PART.findall(one)
    before = "[^0-9]" if one[0].isdigit() else r"[^\p{L}]"
    after = "([^0-9]|$)" if last.isdigit() else r"(e?s)?([^\p{L}]|$)"
    row = r"[^\p{L}0-9]*".join([*parts, last if last.isdigit() else _stem(last)])
    return pc.match_substring_regex(names, f"(^|{before}){row}{after}")


def _within(rows: Any, selection: Selection | None) -> Any:
    if selection is None:
        return rows
    if isinstance(selection, VideoSet):
        ids = (video_id(from_text(path)) for path in rows["path"].to_pylist())
        return rows.filter(pa.array([one in selection.ids for one in ids], pa.bool_()))
    top = to_text(selection)
    below = pc.starts_with(rows["path"], top.rstrip("/") + "/")
    return rows.filter(pc.or_(below, pc.equal(rows["path"], top)))

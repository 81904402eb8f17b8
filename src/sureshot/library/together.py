"""Searches of several threads, those of the same instant in one pass over the index."""

import threading
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sureshot.library.answer import Answer
from sureshot.library.search import Searcher


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A search that waits for its turn.

    Attributes:
        searcher: the open index.
        query: what to look for.
        asked: what else `Searcher.search` is given.
        kind: what those have in common that can be answered together.
        answer: where the answer goes.
    """

    searcher: Searcher
    query: str
    asked: dict[str, Any]
    kind: Hashable
    answer: "Future[Answer]" = field(default_factory=Future)


class Together:
    """Searches for several threads.

    A pass over the index, the network of the sentences and most of the rest cost little more for
    eight sentences than for two. So one thread at a time searches, for all that wait by then.
    """

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._guard = threading.Lock()
        self._turn = threading.Lock()

    def search(self, searcher: Searcher, query: str, **asked: Any) -> Answer:
        """What `Searcher.search` gives, and raises.

        Args:
            searcher: the open index.
            query: a sentence or a few words.
            asked: the other arguments of `Searcher.search`, all hashable.
        """
        # Refused here, where it fails nobody else who waits.
        kind = searcher, frozenset(asked.items())
        mine = Waiting(searcher=searcher, query=query, asked=asked, kind=kind)
        with self._guard:
            self._waiting.append(mine)
        with self._turn:
            if not mine.answer.done():  # else the thread whose turn it was has done this one too
                self._search()
        return mine.answer.result()

    def _search(self) -> None:
        """Answer all that wait by now."""
        with self._guard:
            waiting, self._waiting = self._waiting, []
        kinds: dict[Hashable, list[Waiting]] = {}
        for one in waiting:
            kinds.setdefault(one.kind, []).append(one)
        for alike in kinds.values():
            try:
                texts = [one.query for one in alike]
                found = list(alike[0].searcher.search_many(texts, **alike[0].asked))
            except BaseException:
                for one in alike:  # each gets what it is to blame for itself
                    _alone(one)
            else:
                for one, answer in zip(alike, found, strict=True):
                    one.answer.set_result(answer)


def _alone(one: Waiting) -> None:
    try:
        one.answer.set_result(one.searcher.search(one.query, **one.asked))
    except BaseException as error:
        one.answer.set_exception(error)

"""Searches that wait are answered together, each as if it were alone."""

import threading

import pytest

from sureshot.errors import QueryError
from sureshot.library.search import Searcher, open_index
from sureshot.web.session import SearchBatcher


@pytest.fixture
def searcher(library) -> Searcher:
    return open_index(library.db)


class Slow(Searcher):
    """An open index that answers when it is told to, and notes what it was asked."""

    def __init__(self, searcher: Searcher) -> None:
        super().__init__(searcher.store, searcher.encoder)
        self.asked: list[tuple[list[str], dict]] = []
        self.begun, self.free = threading.Event(), threading.Event()

    def search_many(self, queries, **asked):
        self.asked.append((list(queries), asked))
        self.begun.set()
        self.free.wait(60)
        return super().search_many(queries, **asked)


def told(answer):
    return {name: value for name, value in answer.to_dict().items() if name != "seconds"}


def test_those_that_wait_are_answered_together_as_each_alone(searcher) -> None:
    slow, together, found = Slow(searcher), SearchBatcher(), {}
    calls = [
        ("red", {"limit": 2}),
        ("green", {"limit": 2}),
        ("blue", {"limit": 2}),
        ("red", {"limit": 1}),
    ]
    calls += [(" ", {"limit": 2})]

    def ask(number):
        query, asked = calls[number]
        try:
            found[number] = told(together.search(slow, query, **asked))
        except QueryError as error:
            found[number] = str(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(calls))]
    threads[0].start()
    assert slow.begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    while len(together._waiting) < 4:  # until all of them wait
        threads[1].join(0.01)
    slow.free.set()
    for thread in threads:
        thread.join()
    assert slow.asked[0] == (["red"], {"limit": 2})
    assert (["red"], {"limit": 1}) in slow.asked
    assert ([" ", "blue", "green"], {"limit": 2}) in [(sorted(q), asked) for q, asked in slow.asked]
    for number, (query, asked) in enumerate(calls[:4]):
        assert found[number] == told(searcher.search(query, **asked))
    assert "query is empty" in found[4]


def test_an_error_reaches_who_asked(searcher) -> None:
    together = SearchBatcher()
    with pytest.raises(QueryError, match="limit is 0"):
        together.search(searcher, "red", limit=0)
    with pytest.raises(TypeError):  # before anybody waits for it
        together.search(searcher, "red", limit=[1])
    assert not together._waiting and len(together.search(searcher, "red", limit=1)) == 1

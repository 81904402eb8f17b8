"""Threads work ahead, within bounds, in order, and end when they are asked to."""

import threading
import time
from contextlib import closing

import pytest

from sureshot.media import workers
from sureshot.media.workers import Prefetcher, heartbeat, stream
from tests.processes import error_after_ctrl_c


def decoding_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("decode-")]


def wait_for(condition) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


class Recorder:
    """Squares that are noted as they are begun and may be held up."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go = threading.Event()

    def __call__(self, key: int) -> int:
        self.begun.append(key)
        assert self.go.wait(20)
        return key * key


@pytest.fixture
def work():
    recorder = Recorder()
    yield recorder
    recorder.go.set()


def test_results_are_those_of_their_keys_in_any_order(work) -> None:
    work.go.set()
    with Prefetcher(work, 3) as squares:
        squares.want(range(20))
        assert [squares.get(key) for key in (7, 3, 19, 0)] == [49, 9, 361, 0]
    assert not decoding_threads()


def test_wanted_keys_are_begun_at_once_and_worked_on_once(work) -> None:
    with Prefetcher(work, 2) as squares:
        squares.want([4, 5, 6])
        wait_for(lambda: len(work.begun) == 2)
        assert sorted(work.begun) == [4, 5]
        work.go.set()
        assert [squares.get(4), squares.get(4), squares.get(6)] == [16, 16, 36]
        squares.want([4, 6])
        assert squares.get(4) == 16
        assert sorted(work.begun) == [4, 5, 6]


def test_a_key_that_is_wanted_no_more_is_dropped_and_not_begun(work) -> None:
    with Prefetcher(work, 1) as squares:
        squares.want([1, 2, 3])
        wait_for(lambda: work.begun == [1])
        squares.want([3])
        work.go.set()
        assert squares.get(3) == 9
        assert work.begun == [1, 3]
        assert squares.get(1) == 1  # asked for all the same
        assert work.begun == [1, 3, 1]


def test_an_error_comes_with_its_key_alone() -> None:
    with Prefetcher(lambda key: 6 // key, 2) as shares:
        shares.want([0, 1, 2])
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                shares.get(0)
        assert (shares.get(1), shares.get(2)) == (6, 3)


def test_a_stream_has_all_results_those_of_an_item_in_order() -> None:
    words = [f"{first}123" for first in "abcdefgh"]
    found = list(stream(lambda word: ((word[0], c) for c in word), words, waiting=2, workers=3))
    assert len(found) == 32
    for word in words:
        assert "".join(c for first, c in found if first == word[0]) == word
    assert not decoding_threads()
    assert list(stream(iter, [], waiting=1)) == list(stream(iter, ["", ""], waiting=1)) == []


def test_a_stream_goes_ahead_as_far_as_there_is_room() -> None:
    made = []

    def count(item: int):
        for number in range(100):
            made.append(number)
            yield number

    with closing(stream(count, [0], waiting=5, workers=1)) as numbers:
        assert next(numbers) == 0
        # One is taken, five wait, one is in the hand of the thread.
        wait_for(lambda: len(made) == 7)
        time.sleep(0.2)
        assert len(made) == 7
    assert not decoding_threads()
    assert len(made) == 7


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(3)])
def test_an_error_of_a_stream_is_raised_where_it_is_read(error: BaseException) -> None:
    def work(item: int):
        yield item
        raise error

    with pytest.raises(type(error)):
        list(stream(work, range(10), waiting=1, workers=2))
    assert not decoding_threads()


@pytest.mark.parametrize("kind", ["keys", "stream"])
def test_work_that_hangs_does_not_keep_an_end_waiting(
    monkeypatch: pytest.MonkeyPatch, work, kind: str
) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 0.2)
    squares = Prefetcher(work, 2)
    numbers = stream(lambda key: [key or work(key)], [1, 0, 2], waiting=3, workers=2)
    began = time.monotonic()
    if kind == "keys":
        squares.want([1, 2, 3])
        wait_for(lambda: len(work.begun) == 2)
    else:
        assert {next(numbers), next(numbers)} == {1, 2}
    numbers.close()
    squares.close()
    assert time.monotonic() - began < 10
    assert len(decoding_threads()) == (2 if kind == "keys" else 1)
    work.go.set()
    wait_for(lambda: not decoding_threads())
    assert len(work.begun) == (2 if kind == "keys" else 1)


def wait_for_a_stream() -> None:
    with closing(stream(lambda key: [threading.Event().wait(60)], [1], waiting=1)) as results:
        next(results)


def test_ctrl_c_ends_the_wait_and_the_process() -> None:
    began = time.monotonic()
    assert error_after_ctrl_c(0.2, wait_for_a_stream).startswith("KeyboardInterrupt")
    assert time.monotonic() - began < 40


def test_work_that_hangs_is_given_up_and_the_rest_goes_on():
    late, came = threading.Event(), threading.Event()

    def work(item):
        if item == "late":
            late.wait(60)
            came.set()
            yield "too late"
            raise ValueError("ignored")
        came.wait(60)
        for _ in range(5):  # longer than the patience, but with heartbeats
            time.sleep(0.1)
            heartbeat()
        yield item

    def stuck(item):
        late.set()
        return f"{item} is stuck"

    items = ["late", "one", "two"]
    results = list(stream(work, items, waiting=1, workers=1, stuck=stuck, patience=0.3))
    assert results[0] == "late is stuck" and sorted(results[1:]) == ["one", "two"]

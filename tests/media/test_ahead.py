"""Threads work ahead, within bounds, in order, and end when they are told to."""

import threading
import time
from contextlib import closing

import pytest

from sureshot.media import workers
from sureshot.media.workers import Ahead, heartbeat, stream
from tests.processes import error_after_ctrl_c


def decoding_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("decode-")]


def wait_for(condition) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


class Recorder:
    """Work that takes note of what it is asked for and may be held up."""

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


# --- results by key -------------------------------------------------------------------------------


def test_results_are_those_of_their_keys_in_any_order(work) -> None:
    work.go.set()
    with Ahead(work, 3) as squares:
        squares.want(range(20))
        assert [squares.get(key) for key in (7, 3, 19, 0)] == [49, 9, 361, 0]
    assert not decoding_threads()


def test_the_wanted_are_begun_before_they_are_asked_for_and_worked_on_once(work) -> None:
    with Ahead(work, 2) as squares:
        squares.want([4, 5, 6])
        wait_for(lambda: len(work.begun) == 2)
        assert sorted(work.begun) == [4, 5]
        work.go.set()
        assert [squares.get(4), squares.get(4), squares.get(6)] == [16, 16, 36]
        squares.want([4, 6])
        assert squares.get(4) == 16
        assert sorted(work.begun) == [4, 5, 6]


def test_what_is_wanted_no_more_is_let_go_and_not_begun(work) -> None:
    with Ahead(work, 1) as squares:
        squares.want([1, 2, 3])
        wait_for(lambda: work.begun == [1])
        squares.want([3])
        work.go.set()
        assert squares.get(3) == 9
        assert work.begun == [1, 3]
        assert squares.get(1) == 1  # asked for all the same
        assert work.begun == [1, 3, 1]


def test_an_error_comes_with_its_key_alone() -> None:
    with Ahead(lambda key: 6 // key, 2) as shares:
        shares.want([0, 1, 2])
        with pytest.raises(ZeroDivisionError):
            shares.get(0)
        with pytest.raises(ZeroDivisionError):
            shares.get(0)
        assert (shares.get(1), shares.get(2)) == (6, 3)


def test_a_block_that_fails_ends_the_threads_without_the_rest_of_the_work(work) -> None:
    work.go.set()
    with pytest.raises(KeyError), Ahead(work, 1) as squares:
        squares.want([1])
        assert squares.get(1) == 1
        raise KeyError
    assert not decoding_threads()
    assert work.begun == [1]


# --- streams --------------------------------------------------------------------------------------


def letters(word: str):
    yield from word


def test_a_stream_has_all_results_those_of_an_item_in_order() -> None:
    words = [f"{first}123" for first in "abcdefgh"]
    found = list(stream(lambda word: ((word[0], c) for c in word), words, waiting=2, workers=3))
    assert len(found) == 32
    for word in words:
        assert "".join(c for first, c in found if first == word[0]) == word
    assert not decoding_threads()


def test_a_stream_of_nothing_ends_at_once() -> None:
    assert list(stream(letters, [], waiting=1)) == []
    assert list(stream(letters, ["", ""], waiting=1)) == []


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
        time.sleep(0.3)
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


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["keys", "stream"])
def test_work_that_hangs_does_not_keep_an_end_waiting(
    monkeypatch: pytest.MonkeyPatch, work, kind: str
) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 0.2)
    squares = Ahead(work, 2)
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


def wait_for_a_key() -> None:
    with Ahead(lambda key: threading.Event().wait(60), 2) as results:
        results.get(0)


def wait_for_a_stream() -> None:
    with closing(stream(lambda key: [threading.Event().wait(60)], [1], waiting=1)) as results:
        next(results)


@pytest.mark.parametrize("work", [wait_for_a_key, wait_for_a_stream])
def test_ctrl_c_ends_the_wait_and_the_process(work) -> None:
    began = time.monotonic()
    assert error_after_ctrl_c(0.2, work).startswith("KeyboardInterrupt")
    assert time.monotonic() - began < 40


def test_work_that_hangs_is_given_up_and_the_rest_goes_on():
    hanging = threading.Event()

    def work(item):
        if item == "hangs":
            hanging.wait(60)
        yield f"{item} done"

    items = ["hangs", "one", "two", "three"]
    results = list(
        stream(work, items, waiting=2, workers=1, stuck=lambda i: f"{i} is stuck", patience=0.8)
    )
    hanging.set()
    assert results == ["hangs is stuck", "one done", "two done", "three done"]


def test_work_that_beats_is_not_stuck_however_long_it_takes():
    def work(item):
        for _ in range(20):
            time.sleep(0.1)
            heartbeat()
        yield item

    assert list(stream(work, ["slow"], waiting=1, stuck=lambda i: "stuck", patience=0.8)) == [
        "slow"
    ]


def test_what_is_given_up_is_not_heard_when_it_comes_back():
    late, came = threading.Event(), threading.Event()

    def work(item):
        if item == "late":
            late.wait(60)
            came.set()
            yield "too late"
            raise ValueError("nobody hears this")
        came.wait(60)
        yield item

    def stuck(item):
        late.set()
        return f"{item} is stuck"

    items = ["late", "last"]
    results = list(stream(work, items, waiting=1, workers=1, stuck=stuck, patience=0.8))
    assert results == ["late is stuck", "last"]


def test_a_beat_outside_means_nothing():
    heartbeat()

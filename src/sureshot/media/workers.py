"""Work that threads do before it is asked for, so that decoding hides behind the network.

Decoders and networks both give the interpreter free while they work. The threads are daemons, and
whoever ends early waits a moment for them, but not for one that is stuck in a broken file.

No thread can be ended from outside. One that is stuck is left behind with its file, and another
takes its place; it costs a core and its memory until the program ends.
"""

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL = 0.1  # seconds between looks at whether to stop
_PATIENCE = 2.0  # seconds that an early stop waits for the threads
# Seconds a thread may work without a `heartbeat`. A decoder speaks at each packet; the
# largest frame takes it seconds.
_STUCK = 120.0
_TICK = 0.25  # seconds between looks at who is stuck
_HERE = threading.local()  # `run`: what this thread works on, if anybody waits for it


def heartbeat() -> None:
    """Tell whoever waits for this thread that its work goes on; elsewhere it means nothing."""
    if (run := getattr(_HERE, "run", None)) is not None:
        run.beats += 1


class Ahead(Generic[Key, Result]):
    """Results of a function for the keys that are wanted soon; a context manager.

    Args:
        work: gives the result of a key; called in several threads at once.
        workers: number of threads; None takes half the cores, at most four.
    """

    def __init__(self, work: Callable[[Key], Result], workers: int | None = None) -> None:
        self._work = work
        self._threads = _Threads(workers or _usual_workers())
        self._futures: dict[Key, Future[Result]] = {}

    def want(self, keys: Iterable[Key]) -> None:
        """Begin with these in their order, and let go of all others."""
        wanted = dict.fromkeys(keys)
        for key in self._futures.keys() - wanted.keys():
            self._futures.pop(key).cancel()
        for key in wanted:
            self._future(key)

    def get(self, key: Key) -> Result:
        """Wait for the result of a key; it is kept until the key is wanted no more.

        Raises:
            Exception: whatever the work on this key raised.
        """
        return self._future(key).result()

    def close(self) -> None:
        """End the threads; one that is stuck is left behind."""
        self.want(())
        self._threads.close()

    def __enter__(self) -> "Ahead[Key, Result]":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _future(self, key: Key) -> Future[Result]:
        if key not in self._futures:
            self._futures[key] = future = Future[Result]()
            self._threads.submit(partial(_fulfil, future, partial(self._work, key)))
        return self._futures[key]


def stream(
    work: Callable[[Item], Iterable[Result]],
    items: Sequence[Item],
    *,
    waiting: int,
    workers: int | None = None,
    stuck: Callable[[Item], Result] | None = None,
    patience: float = _STUCK,
) -> Generator[Result, None, None]:
    """Results of all items as they come: those of one item in order, items in no fixed order.

    To end early, close it (`contextlib.closing`); the threads end with it.

    Args:
        work: gives the results of an item; called in several threads at once. Calls `heartbeat` now
            and then.
        items: what is worked on, begun in this order.
        waiting: most results that wait to be taken; with so many, the threads wait too.
        workers: number of threads; None takes half the cores, at most four.
        stuck: gives the last result of an item whose work is given up because its thread says
            nothing any more; None waits forever.
        patience: seconds without a word after which it is given up.

    Raises:
        Exception: whatever the work on an item raised; the other items end with it.
    """
    results: queue.Queue[tuple[_Run[Item], Result | _Done]] = queue.Queue(waiting)
    threads = _Threads(min(workers or _usual_workers(), len(items)))
    going: set[_Run[Item]] = set()

    def do(run: _Run[Item]) -> None:
        end = _Done()
        going.add(run)
        _HERE.run = run
        try:
            for result in work(run.item):
                if not threads.put(results, (run, result)):
                    return
        except BaseException as error:
            end = _Done(error)
        threads.put(results, (run, end))

    try:
        for item in items:
            threads.submit(partial(do, _Run(item=item)))
        left = len(items)
        while left:
            run, result = _next(results, going, math.inf if stuck is None else patience)
            if not isinstance(result, _Done):
                yield result
                continue
            going.discard(run)
            left -= 1
            if result.error is not None:
                raise result.error
            if result.is_lost and stuck is not None:
                threads.start_one()
                yield stuck(run.item)
    finally:
        threads.close()


@dataclass(frozen=True, slots=True)
class _Done:
    """All results of an item have come, or its work raised an error, or hangs."""

    error: BaseException | None = None
    is_lost: bool = False


@dataclass(slots=True, eq=False)
class _Run(Generic[Item]):
    """The work on one item.

    Attributes:
        item: what is worked on.
        beats: how often its thread has said that it goes on.
    """

    item: Item
    beats: int = 0
    _heard: int = -1
    _silent: float = 0.0
    _looked: float = 0.0

    def silence(self) -> float:
        """Seconds since the last beat during which somebody looked.

        A machine that slept, or a caller who was busy, does not make it stuck.
        """
        now = time.monotonic()
        new = self.beats != self._heard
        self._silent = 0.0 if new else self._silent + min(now - self._looked, 2 * _TICK)
        self._heard, self._looked = self.beats, now
        return self._silent


def _next(
    results: "queue.Queue[tuple[_Run[Item], Result | _Done]]",
    going: set[_Run[Item]],
    patience: float,
) -> "tuple[_Run[Item], Result | _Done]":
    """What comes next from the work that goes on; what was given up may speak again, unheard."""
    while True:
        try:
            run, result = results.get(timeout=_TICK)
        except queue.Empty:
            for run in tuple(going):
                if run.silence() > patience:
                    return run, _Done(is_lost=True)
        else:
            if run in going:
                return run, result


class _Threads:
    """A few daemon threads that do what they are given in its order."""

    def __init__(self, count: int) -> None:
        self._stopped = threading.Event()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        for _ in range(count):
            self.start_one()

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def start_one(self) -> None:
        """Start one more thread."""
        name = f"decode-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def put(self, results: queue.Queue[Result], result: Result) -> bool:
        """Wait for room in a queue; False if it is time to stop instead."""
        while not self._stopped.is_set():
            heartbeat()
            with contextlib.suppress(queue.Full):
                results.put(result, timeout=_POLL)
                return True
        return False

    def close(self) -> None:
        self._stopped.set()
        until = time.monotonic() + _PATIENCE
        for _ in self._threads:
            self.submit(lambda: None)  # wakes one that has nothing to do
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if self._stopped.is_set():
                return
            job()


def _usual_workers() -> int:
    return max(1, min(4, (os.cpu_count() or 2) // 2))


def _fulfil(future: Future[Result], work: Callable[[], Result]) -> None:
    """Do the work of a future, unless nobody wants it any more."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

"""Daemon threads that decode ahead, so that decoding hides behind the network.

Decoders and networks both release the interpreter while they work. No thread can be ended from
outside: one that is stuck in a broken file is left behind and another takes its place. It costs a
core and its memory until the process ends.
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
_STUCK = (
    120.0  # seconds without a `heartbeat`; decoders give one per packet, the largest in seconds
)
_TICK = 0.25  # seconds between looks at who is stuck
_HERE = threading.local()  # `task`: what this thread works on for `stream`


def heartbeat() -> None:
    """Tell `stream` that the work of this thread goes on; anywhere else it does nothing."""
    if (task := getattr(_HERE, "task", None)) is not None:
        task.beats += 1


class Prefetcher(Generic[Key, Result]):
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
        """Begin with these in their order, and drop all others."""
        wanted = dict.fromkeys(keys)
        for key in self._futures.keys() - wanted.keys():
            self._futures.pop(key).cancel()
        for key in wanted:
            self._future(key)

    def get(self, key: Key) -> Result:
        """Wait for the result of a key, or raise what its work raised; kept while it is wanted."""
        return self._future(key).result()

    def close(self) -> None:
        """End the threads; one that is stuck is left behind."""
        self.want(())
        self._threads.close()

    def __enter__(self) -> "Prefetcher[Key, Result]":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _future(self, key: Key) -> Future[Result]:
        if key not in self._futures:
            self._futures[key] = future = Future[Result]()
            self._threads.submit(partial(self._fulfil, future, key))
        return self._futures[key]

    def _fulfil(self, future: Future[Result], key: Key) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(self._work(key))
            except BaseException as error:
                future.set_exception(error)


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

    To end early, close it (`contextlib.closing`); the threads end with it. What the work on an item
    raises is raised here.

    Args:
        work: gives the results of an item, with a `heartbeat` now and then; called in several
            threads at once.
        items: what to work on, begun in this order.
        waiting: most results that wait to be taken; then the threads wait too.
        workers: number of threads; None takes half the cores, at most four.
        stuck: gives the last result of an item whose thread is given up; None waits forever.
        patience: seconds without a heartbeat after which a thread is given up.
    """
    results: queue.Queue[tuple[_Task[Item], Result | _End]] = queue.Queue(waiting)
    threads = _Threads(min(workers or _usual_workers(), len(items)))
    running: set[_Task[Item]] = set()

    def run(task: _Task[Item]) -> None:
        end = _End()
        running.add(task)
        _HERE.task = task
        try:
            for result in work(task.item):
                if not threads.put(results, (task, result)):
                    return
        except BaseException as error:
            end = _End(error)
        threads.put(results, (task, end))

    try:
        for item in items:
            threads.submit(partial(run, _Task(item)))
        left = len(items)
        while left:
            task, result = _next(results, running, math.inf if stuck is None else patience)
            if not isinstance(result, _End):
                yield result
                continue
            running.discard(task)
            left -= 1
            if result.error is not None:
                raise result.error
            if result.is_stuck and stuck is not None:
                threads.start_one()
                yield stuck(task.item)
    finally:
        threads.close()


@dataclass(frozen=True, slots=True)
class _End:
    """The work on an item is done, has failed or is stuck."""

    error: BaseException | None = None
    is_stuck: bool = False


@dataclass(slots=True, eq=False)
class _Task(Generic[Item]):
    """The work on one item."""

    item: Item
    beats: int = 0
    _heard: int = -1
    _silent: float = 0.0
    _looked: float = 0.0

    def silence(self) -> float:
        """Seconds since the last beat during which the caller looked.

        A machine that slept, or a caller that was busy, does not make a thread stuck.
        """
        now = time.monotonic()
        new = self.beats != self._heard
        self._silent = 0.0 if new else self._silent + min(now - self._looked, 2 * _TICK)
        self._heard, self._looked = self.beats, now
        return self._silent


def _next(
    results: "queue.Queue[tuple[_Task[Item], Result | _End]]",
    running: set[_Task[Item]],
    patience: float,
) -> "tuple[_Task[Item], Result | _End]":
    """The next result of a running task; those that were given up before are ignored."""
    while True:
        try:
            task, result = results.get(timeout=_TICK)
        except queue.Empty:
            for task in tuple(running):
                if task.silence() > patience:
                    return task, _End(is_stuck=True)
        else:
            if task in running:
                return task, result


class _Threads:
    """Daemon threads that run jobs in the order they are submitted."""

    def __init__(self, count: int) -> None:
        self._stopped = threading.Event()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        for _ in range(count):
            self.start_one()

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def start_one(self) -> None:
        name = f"decode-{len(self._threads)}"
        self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
        self._threads[-1].start()

    def put(self, results: queue.Queue[Result], result: Result) -> bool:
        """Wait for room in a queue; False if it is time to stop instead."""
        while not self._stopped.is_set():
            heartbeat()
            with contextlib.suppress(queue.Full):
                results.put(result, timeout=_POLL)
                return True
        return False

    def close(self) -> None:
        """End the threads; one that is stuck is left behind."""
        self._stopped.set()
        until = time.monotonic() + _PATIENCE
        for _ in self._threads:
            self.submit(lambda: None)  # wakes one that has nothing to do
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._stopped.is_set():
            job = self._jobs.get()
            if not self._stopped.is_set():
                job()


def _usual_workers() -> int:
    return max(1, min(4, (os.cpu_count() or 2) // 2))

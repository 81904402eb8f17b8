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
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL = 0.1  # seconds between looks at whether to stop
_PATIENCE = 2.0  # seconds that an early stop waits for the threads
# Seconds without a `heartbeat`; decoders give one per packet, the largest in seconds.
_STUCK = 120.0
_TICK = 0.25  # seconds between looks at who is stuck
_HERE = threading.local()  # what this thread works on for `stream`, and how it gives results
_DONE, _GIVEN_UP = StopIteration(), TimeoutError()  # how the work on an item may end


def heartbeat() -> None:
    """Tell `stream` that the work of this thread goes on; anywhere else it does nothing."""
    if (task := getattr(_HERE, "task", None)) is not None:
        task.silence = 0.0


def report(result: object) -> None:
    """Give `stream` a result from inside the work of this thread, before the next one it yields.

    For what takes long until it has one; anywhere else it does nothing.
    """
    if (put := getattr(_HERE, "put", None)) is not None:
        put(result)


class Prefetcher(Generic[Key, Result]):
    """Results of a function, called in several threads, for keys wanted soon; a context manager."""

    def __init__(self, work: Callable[[Key], Result], workers: int | None = None) -> None:
        self._work = work
        self._futures: dict[Key, Future[Result]] = {}
        self._due: queue.SimpleQueue[tuple[Key, Future[Result]] | None] = queue.SimpleQueue()
        self._threads = _Threads(self._run, workers or usual_workers())

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
        for _ in self._threads:
            self._due.put(None)
        self._threads.close()

    def __enter__(self) -> "Prefetcher[Key, Result]":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _future(self, key: Key) -> Future[Result]:
        if key not in self._futures:
            self._futures[key] = future = Future[Result]()
            self._due.put((key, future))
        return self._futures[key]

    def _run(self) -> None:
        while due := self._due.get():
            key, future = due
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
        waiting: most results that wait to be taken; then the threads wait too.
        workers: number of threads; None takes `usual_workers`.
        stuck: gives the last result of an item whose thread is given up; None waits forever.
        patience: seconds without a heartbeat after which a thread is given up.
    """
    results: queue.Queue[_Message] = queue.Queue(waiting)
    running: set[_Task[Item]] = set()
    stopped = threading.Event()
    todo = iter(items)  # `next` of a sequence is safe in threads

    def run() -> None:
        for item in todo:
            task = _HERE.task = _Task(item)
            running.add(task)
            put = _HERE.put = partial(_put, results, stopped, task)
            end: BaseException = _DONE
            try:
                for result in work(item):
                    if not put(result):
                        return
            except BaseException as error:
                end = error
            put(None, end)

    threads = _Threads(run, min(workers or usual_workers(), len(items)))
    left = len(items)
    try:
        while left:
            task, result, end = _next(results, running, patience if stuck else math.inf)
            if end is None:
                yield result
                continue
            running.discard(task)
            left -= 1
            if end is _GIVEN_UP:
                threads.start_one()
                yield stuck(task.item)  # type: ignore[misc]
            elif end is not _DONE:
                raise end
    finally:
        stopped.set()
        deque(todo, maxlen=0)  # nothing more is begun
        threads.close()


class _Task(Generic[Item]):
    """The work of one thread on one item."""

    def __init__(self, item: Item) -> None:
        self.item = item
        # Seconds since the last heartbeat during which the caller looked: a machine that slept, or
        # a caller that was busy, does not make a thread stuck.
        self.silence = 0.0


# What the work on an item gave, or how it ended.
_Message: TypeAlias = tuple[_Task[Any], Any, BaseException | None]


def _put(
    results: queue.Queue[_Message],
    stopped: threading.Event,
    task: _Task[Any],
    result: Any,
    end: BaseException | None = None,
) -> bool:
    """Wait for room in a queue; False if it is time to stop instead."""
    while not stopped.is_set():
        heartbeat()
        with contextlib.suppress(queue.Full):
            results.put((task, result, end), timeout=_POLL)
            return True
    return False


def _next(results: queue.Queue[_Message], running: set[_Task[Any]], patience: float) -> _Message:
    """The next result of a running task; those that were given up before are ignored."""
    while True:
        try:
            message = results.get(timeout=_TICK)
        except queue.Empty:
            for task in tuple(running):
                task.silence += _TICK
                if task.silence > patience:
                    return task, None, _GIVEN_UP
        else:
            if message[0] in running:
                return message


class _Threads(list[threading.Thread]):
    """Daemon threads that run one function."""

    def __init__(self, run: Callable[[], None], count: int) -> None:
        super().__init__()
        self._run = run
        for _ in range(count):
            self.start_one()

    def start_one(self) -> None:
        self.append(threading.Thread(target=self._run, name=f"decode-{len(self)}", daemon=True))
        self[-1].start()

    def close(self) -> None:
        """Wait for them to end; one that is stuck is left behind."""
        until = time.monotonic() + _PATIENCE
        for thread in self:
            thread.join(max(0.0, until - time.monotonic()))


def usual_workers() -> int:
    """Half the cores, at most four: what else works at the same time needs some."""
    return max(1, min(4, (os.cpu_count() or 2) // 2))

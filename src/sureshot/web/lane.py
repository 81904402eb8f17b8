"""A few threads that work through calls in turn, and turn away what would wait too long."""

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from sureshot.web.replies import BusyError

Made = TypeVar("Made")
_NICE = 5  # less than indexing, which can wait longer than somebody who wants to watch


class Lane:
    """Threads for one kind of work.

    Args:
        workers: calls that run at once.
        waiting: calls that may wait for their turn.
        aside: whether other work of this machine comes first.
    """

    def __init__(self, workers: int, waiting: int, *, aside: bool = False) -> None:
        self._threads = ThreadPoolExecutor(workers, "sureshot", _step_aside if aside else None)
        self._turns = asyncio.Semaphore(workers)
        self._waiting = waiting

    async def run(self, request: Request, call: Callable[[], Made]) -> Made:
        """What a call gives, as soon as it has had its turn.

        Args:
            request: who asked; who has gone by the time of its turn gets nothing.
            call: the work.

        Raises:
            BusyError: too many wait already.
        """
        if self._waiting <= 0:
            raise BusyError("This machine has more to do than it can; try again in a moment.")
        self._waiting -= 1
        try:
            async with self._turns:
                if await request.is_disconnected():
                    raise ClientDisconnect
                return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self._waiting += 1

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _step_aside() -> None:
    """Let other threads come first, where one thread can say so for itself alone."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)

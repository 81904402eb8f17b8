"""Work in turn."""

import asyncio
import threading

import pytest
from starlette.requests import ClientDisconnect

from sureshot.web.schema import BusyError
from sureshot.web.session import WorkQueue


class Asker:
    """A request whose sender may have gone."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone

    async def is_disconnected(self) -> bool:
        return self.gone


def test_so_many_run_at_once_so_many_wait_and_the_rest_is_turned_away() -> None:
    free, running, most = threading.Event(), [0], [0]
    lock = threading.Lock()

    def work() -> str:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        free.wait()
        with lock:
            running[0] -= 1
        return "done"

    async def all_at_once() -> list[str | BaseException]:
        lane = WorkQueue(2, 6)
        asked = [asyncio.create_task(lane.run(Asker(), work)) for _ in range(9)]
        while running[0] < 2:  # until both threads are at it
            await asyncio.sleep(0.01)
        free.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert await lane.run(Asker(), lambda: "later") == "later"
        lane.close()
        return ended

    ended = asyncio.run(all_at_once())
    assert (ended.count("done"), most) == (6, [2])
    assert [type(one) for one in ended if one != "done"] == [BusyError] * 3


def test_who_has_gone_gets_nothing_done() -> None:
    done: list[int] = []

    async def ask() -> None:
        lane = WorkQueue(1, 2, aside=True)
        with pytest.raises(ClientDisconnect):
            await lane.run(Asker(gone=True), lambda: done.append(1))
        await lane.run(Asker(), lambda: done.append(2))
        lane.close()

    asyncio.run(ask())
    assert done == [2]

"""The open index that requests share, and their turns."""

import asyncio
import shutil
import threading

import pytest
from starlette.requests import ClientDisconnect

import sureshot
from sureshot.errors import QueryError, StoreError, VideoError
from sureshot.library.search import Searcher, open_index
from sureshot.paths import video_id
from sureshot.web.schema import BusyError, FileGoneError, NotFoundError
from sureshot.web.session import SearchBatcher, Session, WorkQueue
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture
def films(tmp_path):
    """Two videos, and one that is none."""
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "a.mp4", ["red"], seconds=1, rate=5)
    coloured(folder / "b.mp4", ["blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    return folder


@pytest.fixture
def desk(tmp_path):
    desk = Session(db=str(tmp_path / "db"))
    yield desk
    desk.close()


def test_an_index_may_come_later_and_be_replaced(desk, films, tmp_path) -> None:
    with pytest.raises(StoreError, match="no index"):
        desk.searcher()
    index(desk.opening["db"], films)
    first = desk.searcher()
    assert desk.searcher() is first and len(first.search("red")) == 2
    assert desk.store() is first.store
    shutil.rmtree(desk.opening["db"])
    with pytest.raises(StoreError, match="no index"):
        desk.searcher()
    index(desk.opening["db"], films / "a.mp4")
    assert desk.searcher() is not first and len(desk.searcher().search("red")) == 1


def test_new_videos_are_found_and_removed_ones_are_not(desk, films) -> None:
    desk = Session(**desk.opening, refresh=0)
    index(desk.opening["db"], films / "a.mp4")
    for name in ("0" * 32, video_id(films / "b.mp4"), str(films / "a.mp4"), "../a.mp4", ""):
        with pytest.raises(NotFoundError):
            desk.video(name)
    index(desk.opening["db"], films / "b.mp4")
    assert desk.video(video_id(films / "b.mp4")).path == films / "b.mp4"
    sureshot.library.catalog.remove([films / "b.mp4"], db=desk.opening["db"])
    with pytest.raises(NotFoundError):
        desk.video(video_id(films / "b.mp4"))


def test_made_up_ids_do_not_make_it_read_on_and_on(desk, films, monkeypatch) -> None:
    desk = Session(**desk.opening, refresh=1000)  # no read takes so long
    index(desk.opening["db"], films)
    store, reads = desk.searcher().store, []
    read = store.videos
    monkeypatch.setattr(store, "videos", lambda: reads.append(1) or read())
    for number in range(20):
        with pytest.raises(NotFoundError):
            desk.video(f"{number:032}")
    assert len(reads) < 20


def test_a_file_that_is_gone_or_could_not_be_indexed_is_told_of(desk, films) -> None:
    index(desk.opening["db"], films)
    (films / "a.mp4").unlink()
    with pytest.raises(FileGoneError, match=r"a\.mp4 is gone"):
        desk.file(video_id(films / "a.mp4"))
    with pytest.raises(VideoError, match=r"broken\.mp4 is not a video"):
        desk.file(video_id(films / "broken.mp4"))


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
        lane = WorkQueue(2, 6, 60)
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
        lane = WorkQueue(1, 2, 60, low_priority=True)
        with pytest.raises(ClientDisconnect):
            await lane.run(Asker(gone=True), lambda: done.append(1))
        await lane.run(Asker(), lambda: done.append(2))
        lane.close()

    asyncio.run(ask())
    assert done == [2]


def test_what_hangs_is_given_up_and_keeps_nothing_else_waiting() -> None:
    hangs = threading.Event()

    async def ask() -> list[str | BaseException]:
        lane = WorkQueue(2, 20, 0.05)
        asked = [lane.run(Asker(), hangs.wait) for _ in range(6)]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert await lane.run(Asker(), lambda: "done") == "done"
        lane.close()
        return ended

    ended = asyncio.run(ask())
    hangs.set()
    assert [type(one) for one in ended] == [BusyError] * 6
    assert "was given up" in str(ended[0])


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


def timeless(answer):
    return {name: value for name, value in answer.to_dict().items() if name != "seconds"}


def test_those_that_wait_are_answered_together_as_each_alone(library) -> None:
    searcher = open_index(library.db)
    slow, together, found = Slow(searcher), SearchBatcher(), {}
    calls = [(query, {"limit": 2}) for query in ("red", "green", "blue", " ")]
    calls.insert(3, ("red", {"limit": 1}))

    def ask(number):
        query, asked = calls[number]
        try:
            found[number] = timeless(together.search(slow, query, **asked))
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
        assert found[number] == timeless(searcher.search(query, **asked))
    assert "query is empty" in found[4]


def test_an_error_reaches_who_asked(library) -> None:
    searcher, together = open_index(library.db), SearchBatcher()
    with pytest.raises(QueryError, match="limit is 0"):
        together.search(searcher, "red", limit=0)
    with pytest.raises(TypeError):  # before anybody waits for it
        together.search(searcher, "red", limit=[1])
    assert not together._waiting and len(together.search(searcher, "red", limit=1)) == 1

"""What all requests share: the open index, its videos by id, and the threads that do the work."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from sureshot.errors import VideoError
from sureshot.library.results import Answer
from sureshot.library.search import Searcher, open_index
from sureshot.media.discover import is_gone
from sureshot.paths import index_place
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from sureshot.text import plain
from sureshot.web.schema import BusyError, FileGoneError, NotFoundError

Made = TypeVar("Made")
_NICE = 5  # less than indexing, which can wait longer than somebody who wants to watch


class WorkQueue:
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


@dataclass(frozen=True, slots=True, eq=False)
class PendingSearch:
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


class SearchBatcher:
    """Searches for several threads.

    A pass over the index, the network of the sentences and most of the rest cost little more for
    eight sentences than for two. So one thread at a time searches, for all that wait by then.
    """

    def __init__(self) -> None:
        self._waiting: list[PendingSearch] = []
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
        mine = PendingSearch(searcher=searcher, query=query, asked=asked, kind=kind)
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
        kinds: dict[Hashable, list[PendingSearch]] = {}
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


def _alone(one: PendingSearch) -> None:
    try:
        one.answer.set_result(one.searcher.search(one.query, **one.asked))
    except BaseException as error:
        one.answer.set_exception(error)


_FRESH = 2.0  # seconds during which the list of videos is not read again
_AT_ONCE = 16  # searches that may be answered together; one thread does the work
_SEARCHES, _PICTURES, _CLIPS = 200, 400, 64  # requests that may wait


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Which index is served, and how.

    Attributes:
        db: folder or object-storage URI; None is the default index of this user.
        model: the model of the index, if its folder has moved.
        device: torch device; None takes a GPU where there is one.
    """

    db: str | None = None
    model: str | None = None
    device: str | None = None


class Session:
    """The open index and the threads.

    Args:
        place: the index; it need not be there yet.

    Attributes:
        place: the index.
        searches: threads that search.
        together: what answers searches that wait at the same time.
        pictures: threads that fetch single frames.
        clips: threads that transcode, after all others.
        firsts: one thread that transcodes the few seconds that somebody waits for.
        closing: whether the server is about to end.
    """

    def __init__(self, place: ServeOptions) -> None:
        self.place = place
        self.closing = False
        cores = os.cpu_count() or 2
        self.searches = WorkQueue(_AT_ONCE, _SEARCHES)
        self.together = SearchBatcher()
        self.pictures = WorkQueue(min(cores, 4), _PICTURES)
        self.clips = WorkQueue(max(1, min(cores // 2, 2)), _CLIPS, aside=True)
        self.firsts = WorkQueue(1, _CLIPS)
        self._opening = threading.Lock()
        self._searcher: Searcher | None = None
        self._stamp: tuple[int, ...] = ()
        self._records: dict[str, VideoRecord] = {}
        self._read_at = self._looked_at = -_FRESH

    def searcher(self) -> Searcher:
        """The open index; opened anew where another one lies in its place.

        Raises:
            StoreError: there is none, it is damaged, or of another model.
            ModelError: its model cannot be loaded here.
        """
        with self._opening:
            stamp = self._stamp_now()
            if self._searcher is None or stamp != self._stamp or self._is_replaced():
                self._searcher = None
                self._read_at = -_FRESH
                self._searcher = open_index(
                    self.place.db, model=self.place.model, device=self.place.device
                )
                self._stamp = stamp
            return self._searcher

    def renew(self) -> Searcher:
        """The same index with its calibration card read again.

        Searches that are under way keep the card that they began with.
        """
        old = self.searcher()
        new = Searcher(old.store, old.encoder)
        with self._opening:
            if self._searcher is old:
                self._searcher = new
        return new

    def store(self) -> Store:
        """The index without its model.

        Raises:
            StoreError: there is none, or it is damaged.
        """
        open_already = self._searcher
        if open_already is not None and self._stamp_now() == self._stamp:
            return open_already.store
        return Store.open(index_place(self.place.db))

    def video(self, name: str) -> VideoRecord:
        """The indexed video of an id; nothing else has one.

        Raises:
            UnknownError: no video has it.
            StoreError: the index cannot be read.
        """
        if name not in self._records or time.monotonic() - self._read_at > _FRESH:
            self._read_videos()
        record = self._records.get(name)
        if record is None:
            raise NotFoundError("There is no such video in the index; it may have been removed.")
        return record

    def file(self, name: str) -> VideoRecord:
        """The indexed video of an id, whose file is there.

        Raises:
            UnknownError: no video has the id.
            GoneError: its file is gone.
            VideoError: it could not be indexed.
        """
        record = self.video(name)
        if is_gone(record.path):
            raise FileGoneError(f"{plain(record.path)} is gone from where it was indexed.")
        if record.reason:
            raise VideoError(f"{plain(record.path)} {record.reason}.")
        return record

    def forget_videos(self) -> None:
        """Read the list of videos again before it is needed next."""
        self._read_at = -_FRESH

    def close(self) -> None:
        """Begin nothing more."""
        self.closing = True
        for lane in (self.searches, self.pictures, self.clips, self.firsts):
            lane.close()

    def _read_videos(self) -> None:
        if time.monotonic() - self._read_at <= _FRESH:
            return  # made-up ids do not make the server read on and on
        self._records = {record.id: record for record in self.store().videos()}
        self._read_at = time.monotonic()

    def _is_replaced(self) -> bool:
        """Whether another index lies in object storage by now, which has no numbers of files."""
        if self._stamp or self._searcher is None or time.monotonic() - self._looked_at <= _FRESH:
            return False
        self._looked_at = time.monotonic()
        return self._searcher.store.is_replaced()

    def _stamp_now(self) -> tuple[int, ...]:
        """What tells an index from one that was made later in its place."""
        try:
            status = Path(index_place(self.place.db), "videos.lance").stat()
        except OSError:  # in object storage, or not there
            return ()
        return status.st_dev, status.st_ino

"""What all requests share: the open index, its videos by id, and the threads that do the work."""

import asyncio
import errno
import functools
import inspect
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from sureshot.errors import VideoError, reason_of
from sureshot.library import catalog
from sureshot.library.catalog import Contents, forget_films
from sureshot.library.results import Answer
from sureshot.library.search import Searcher, open_index
from sureshot.media.discover import is_away, is_gone
from sureshot.paths import absolute, index_place
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from sureshot.store.vector_search import Folders, VideoSet, is_selected, said
from sureshot.text import plain
from sureshot.web.schema import BusyError, DiskFullError, FileGoneError, NotFoundError, json_reply

_T = TypeVar("_T")
_NICE = 5  # less than indexing (10), which can wait longer than somebody who wants to watch
_AT_ONCE = 16  # searches that may be answered together; one thread does the work
_SEARCHES, _PICTURES, _CLIPS = 200, 400, 64  # requests that may wait
_SPARE = 16  # threads of calls that were given up and have not ended


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class WorkQueue:
    """Threads for one kind of work.

    A call that takes too long is given up: its thread ends when it can, and another one takes its
    place, so that a disk or a network that hangs keeps nothing else waiting. Of calls that run or
    wait more than so many are refused.
    """

    def __init__(
        self, workers: int, waiting: int, seconds: float, *, low_priority: bool = False
    ) -> None:
        self._threads = ThreadPoolExecutor(
            workers + _SPARE, "sureshot", _lower_priority if low_priority else None
        )
        self._free = asyncio.Semaphore(workers)
        self._room = waiting
        self._seconds = seconds
        self._closed = False

    async def run(self, request: Request, call: Callable[[], _T]) -> _T:
        """The result of a call, which is not made if the client has gone by its turn."""
        if self._room <= 0:
            raise BusyError("This machine has more to do than it can; try again in a moment.")
        self._room -= 1
        try:
            async with self._free:
                if await request.is_disconnected():
                    raise ClientDisconnect
                if self._closed:
                    raise BusyError("Sureshot is being ended.")
                running = asyncio.get_running_loop().run_in_executor(self._threads, call)
                return await asyncio.wait_for(running, self._seconds)
        except TimeoutError:
            raise BusyError(
                f"This took more than {self._seconds:g} s and was given up; does the disk or the "
                "network of the video answer?"
            ) from None
        except OSError as error:
            if error.errno in NO_ROOM:
                raise DiskFullError(
                    "There is no room in the temporary folder of this machine; make some."
                ) from None
            what = plain(error.filename) if error.filename else "A file"
            raise FileGoneError(f"{what} cannot be read: {reason_of(error)}.") from None
        finally:
            self._room += 1

    def close(self) -> None:
        """Start nothing more."""
        self._closed = True
        self._threads.shutdown(wait=False)


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


class SearchBatcher:
    """Answers searches of several threads together.

    A pass over the index and the text network cost little more for eight sentences than for two,
    so one thread at a time searches, for all that wait by then.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, str, Future[Answer]]] = []
        self._guard = threading.Lock()
        self._turn = threading.Lock()

    def search(self, searcher: Searcher, query: str, **options: Any) -> Answer:
        """What `Searcher.search` returns, and raises; all options are hashable."""
        kind = searcher, frozenset(options.items())  # fails here, not for others who wait
        answer: Future[Answer] = Future()
        with self._guard:
            self._waiting.append((kind, query, answer))
        with self._turn:
            if not answer.done():  # else the thread before has answered this one too
                self._run_waiting()
        return answer.result()

    def _run_waiting(self) -> None:
        with self._guard:
            waiting, self._waiting = self._waiting, []
        batches = defaultdict(list)
        for kind, query, answer in waiting:
            batches[kind].append((query, answer))
        for (searcher, options), batch in batches.items():
            try:
                queries = [query for query, _ in batch]
                found = list(searcher.search_many(queries, **dict(options)))
            except BaseException:
                for query, answer in batch:  # one by one, so that each gets its own error
                    try:
                        answer.set_result(searcher.search(query, **dict(options)))
                    except BaseException as error:
                        answer.set_exception(error)
            else:
                for (_, answer), one in zip(batch, found, strict=True):
                    answer.set_result(one)


class Session:
    """The open index, which need not be there yet, and the threads.

    Args:
        within: folders; what is not at or below one, links followed, is not shown. Empty: all is.
        refresh: seconds for which the list of videos is not read again.
        opening: ``db``, ``model`` and ``device`` as of `sureshot.open_index`.
    """

    def __init__(
        self, *, within: Sequence[str | Path] = (), refresh: float = 2.0, **opening: str | None
    ) -> None:
        self.opening = opening
        index_place(
            opening.get("db")
        )  # one that no index can have is refused before anything is served
        self.closing = False
        cores = os.cpu_count() or 2
        # What opens videos has threads of its own: it is what may hang.
        self.searches = WorkQueue(_AT_ONCE, _SEARCHES, 300.0)  # the first one loads the model
        self.files = WorkQueue(8, _SEARCHES, 60.0)
        self.pictures = WorkQueue(min(cores, 4), _PICTURES, 30.0)  # single frames
        self.previews = WorkQueue(1, _CLIPS, 120.0)  # the few seconds that somebody waits for
        self.clips = WorkQueue(max(1, min(cores // 2, 2)), _CLIPS, 1800.0, low_priority=True)
        self.batcher = SearchBatcher()
        tops = [absolute(folder) for folder in within]
        self._within = [top if isinstance(top, ObjectPath) else top.resolve() for top in tops]
        # `file` looks again, as links may change.
        self._may_show = functools.cache(self._is_within)
        self._refresh = refresh
        self._opening = threading.Lock()
        self._searcher: Searcher | None = None
        self._videos: dict[str, VideoRecord] = {}
        self._videos_read = self._remote_checked = -refresh
        self._all_shown: Any = None  # state of the index in which nothing is hidden

    def searcher(self) -> Searcher:
        """The open index, reopened when another one has taken its place."""
        with self._opening:
            if self._searcher is None or self._is_replaced(self._searcher.store):
                self._searcher = None
                self.forget_videos()
                self._searcher = open_index(**self.opening)
            return self._searcher

    def store(self) -> Store:
        """The index without its model."""
        searcher = self._searcher
        if searcher is not None and (searcher.store.is_remote or not searcher.store.is_replaced()):
            return searcher.store
        return Store.open(index_place(self.opening.get("db")))

    def video(self, name: str) -> VideoRecord:
        """The indexed video of an id."""
        record = self._known().get(name)
        if record is None:
            raise NotFoundError("There is no such video in the index; it may have been removed.")
        return record

    def _known(self) -> dict[str, VideoRecord]:
        """The videos that may be shown, by their ids."""
        is_old = time.monotonic() - self._videos_read > self._refresh
        if is_old:  # also when an id is unknown: made-up ids must not cause a read each
            videos = self.store().videos()
            self._videos = {one.id: one for one in videos if self._may_show(one.path)}
            self._videos_read = time.monotonic()
        return self._videos

    def shows(self, name: str) -> bool:
        """Whether the video of an id, which may be gone from the index, may be spoken of."""
        return not self._within or name in self._known()

    def among(self, folder: Folders | None) -> Folders | VideoSet | None:
        """The videos of folders, or all where that is None, without those not to be shown.

        Where nothing is hidden no set is made: of many videos that takes longer than the search.
        """
        if self._within:
            store = self.store()
            if (state := store.state()) != self._all_shown:
                shown = all(self._may_show(one.path) for one in store.videos())
                self._all_shown = state if shown else None
            if self._all_shown is None:
                return self._inside(folder)
        return folder

    def _inside(self, folder: Folders | None) -> VideoSet:
        known = self._known().values()
        wanted = None if folder is None else self.store().select(folder, known)
        ids = frozenset(record.id for record in known if is_selected(record, wanted))
        words = "in the folders that are served" if wanted is None else said(wanted)
        return VideoSet(ids, words, wanted.note if isinstance(wanted, VideoSet) else "")

    def status(self) -> Contents:
        """What the index holds, of what may be shown."""
        within = self._inside(None) if self._within else None
        return catalog.status(self.opening.get("db"), within=within)

    def file(self, name: str) -> VideoRecord:
        """The indexed video of an id, whose file is there and may be played."""
        record = self.video(name)
        path = record.path
        if is_gone(path) and is_away(path):
            raise FileGoneError(f"{plain(path)} is not there now; is its disk connected?")
        if is_gone(path):
            forget_films([record])
            raise FileGoneError(f"{plain(path)} is gone from where it was indexed.")
        if record.reason:
            raise VideoError(f"{plain(path)} {record.reason}.")
        is_object = isinstance(path, ObjectPath)
        if not (is_object or path.is_file() or path.is_dir()):  # a pipe would be waited for
            raise VideoError(f"{plain(path)} is no longer a regular file.")
        if not self._is_within(path):
            raise NotFoundError(
                f"{plain(path)} is outside the folders that are served, or a link leads out of "
                "them; `sureshot serve --root DIR` says which are."
            )
        return record

    def _is_within(self, path: Path) -> bool:
        """Whether a video, and each of its frames, is below one of the folders, links followed."""
        if not self._within:
            return True
        if isinstance(path, ObjectPath):
            return any(path.is_relative_to(top) for top in self._within)
        try:
            links = [one for one in path.iterdir() if one.is_symlink()] if path.is_dir() else []
            real = [one.resolve() for one in (path, *links)]
        except (OSError, RuntimeError):  # it may not be read, or links lead in a circle
            return False
        return all(any(one.is_relative_to(top) for top in self._within) for one in real)

    def forget_videos(self) -> None:
        """Read the list of videos again when it is needed next."""
        self._videos_read, self._all_shown = -self._refresh, None

    def close(self) -> None:
        """Start nothing more."""
        self.closing = True
        for queue in (self.searches, self.files, self.pictures, self.previews, self.clips):
            queue.close()

    def _is_replaced(self, store: Store) -> bool:
        """Whether another index is in its place by now; storage is asked now and then."""
        if store.is_remote:
            if time.monotonic() - self._remote_checked <= self._refresh:
                return False
            self._remote_checked = time.monotonic()
        return store.is_replaced()


def of_app(name: str) -> Any:
    """A parameter that the application holds under a name."""

    async def held(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(held)


SessionOf = Annotated[Session, of_app("session")]


def queued(queue: str) -> Callable[[Callable[..., dict[str, Any] | BaseModel]], Any]:
    """Makes an endpoint of a function: it is called in a queue of the session, for its JSON.

    The fields of the endpoint are the parameters of the function.
    """

    def decorate(function: Callable[..., dict[str, Any] | BaseModel]) -> Any:
        signature = inspect.signature(function)
        request = inspect.Parameter("_request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)

        @functools.wraps(function)
        async def endpoint(_request: Request, **fields: Any) -> Response:
            session = _request.app.state.session
            work = getattr(session, queue).run(_request, lambda: function(**fields))
            return json_reply(await work)

        parameters = [*signature.parameters.values(), request]
        endpoint.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=Response
        )
        return endpoint

    return decorate

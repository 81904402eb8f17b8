"""The one indexing run that a server has at a time, and orders to it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from sureshot.errors import ArgumentError, SureshotError, reason_of
from sureshot.library.results import JSON_SCHEMA, json_text
from sureshot.paths import absolute
from sureshot.s3 import ObjectPath
from sureshot.text import plain, printable
from sureshot.web.schema import BusyError, FoldersReply, JobReply, NotFoundError, errors, json_reply
from sureshot.web.session import ServeOptions, Session

Order = Literal["pause", "resume", "cancel"]
_GOING = ("running", "paused")
_NICE = 10  # of the run: whatever else this machine does comes first
_PATIENCE = 20.0  # seconds that a run has to end when the server does


class Jobs:
    """Indexing from the page.

    Args:
        served: the index.
        ended: called when a run has ended.
        nice: how far a run steps back for everything else, as the command of that name has it.
    """

    def __init__(
        self, served: ServeOptions, ended: Callable[[], None] = lambda: None, *, nice: int = _NICE
    ) -> None:
        self._served = served
        self._ended = ended
        self._nice = nice
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._state: dict[str, Any] | None = None
        self.version = 0

    def state(self) -> dict[str, Any]:
        """How far the last run is, as plain values for JSON; ``job`` is null before the first."""
        return {"job": self._state}

    def start(self, folders: Sequence[Path]) -> None:
        """Begin to index.

        Raises:
            BusyError: another run goes on.
            SureshotError: no process can be started.
        """
        with self._lock:
            if self._state is not None and self._state["state"] in _GOING:
                raise BusyError("Videos are being indexed already; wait for that, or cancel it.")
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "sureshot.web.index_worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the server, which ends it in order
                )
            except OSError as error:
                raise SureshotError(f"Indexing does not start: {error.strerror}.") from None
            self._process = process
            names = [os.fspath(folder) for folder in folders]
            self._set(
                {
                    "state": "running",
                    "folders": names,
                    "said": "looking for videos",
                    "share": 0.0,
                    "current": "",
                    "failed": [],
                    "error": None,
                }
            )
            served = self._served
            asked = {"db": served.db, "model": served.model, "device": served.device}
            self._write(json.dumps({"folders": names, "nice": self._nice, **asked}))
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def order(self, order: Order) -> None:
        """Have the run pause, go on or end.

        Raises:
            UnknownError: there is none.
        """
        with self._lock:
            if self._state is None or self._state["state"] not in _GOING:
                raise NotFoundError("Nothing is being indexed.")
            self._write(order)
            if order != "cancel":
                self._set({"state": "paused" if order == "pause" else "running"})

    def close(self) -> None:
        """End the run; what it has written stays."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _write(self, line: str) -> None:
        """Tell the process; of one that has ended the reader hears."""
        process = self._process
        with contextlib.suppress(OSError, ValueError):
            if process is not None and process.stdin is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            values = json.loads(line)
            del values["schema"]
            with self._lock:
                # What it says of the time before an order must not undo the order.
                if self._state is not None and values["state"] == "running":
                    values["state"] = self._state["state"]
                self._set(values)
        process.wait()
        process.stdout.close()
        with self._lock, contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        with self._lock:
            if self._state is not None and self._state["state"] in _GOING:
                told = "Indexing ended without a word; index the folder again to go on."
                self._set({"state": "failed", "error": {"code": "system", "message": told}})
        self._ended()

    def _set(self, values: dict[str, Any]) -> None:
        state = (self._state or {}) | values
        if values.get("error"):
            state["said"] = values["error"]["message"]
        self._state = state
        self.version += 1


_MOST = 1000  # folders of one that are shown


class Roots:
    """The roots, and what lies below them.

    Args:
        paths: folders.

    Raises:
        ArgumentError: one of them is no folder.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._roots = [absolute(path) for path in paths]
        for root in self._roots:
            if isinstance(root, ObjectPath) or not root.is_dir():
                raise ArgumentError(f"There is no folder {plain(root)} to index from.")

    def allowed(self, folder: str) -> Path:
        """A folder at or below a root, links in its name followed.

        Raises:
            UnknownError: it is somewhere else, or is no folder.
        """
        wrong = NotFoundError(
            "This folder cannot be indexed from here; `sureshot serve --root DIR` says which may."
        )
        if "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117 - text of a stranger
            raise wrong
        try:
            real = Path(folder).resolve(strict=True)
            inside = any(real.is_relative_to(root.resolve()) for root in self._roots)
            if not inside or not real.is_dir():
                raise wrong
        except (OSError, RuntimeError):  # a loop of links
            raise wrong from None
        return absolute(folder)

    def below(self, folder: str | None) -> dict[str, Any]:
        """The folders in one, or the roots, as plain values for JSON.

        Raises:
            UnknownError: it may not be looked into.
            SureshotError: it cannot be read.
        """
        if folder is None:
            return _values(None, None, self._roots)
        path = self.allowed(folder)
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if _shown(entry)]
        except OSError as error:
            raise SureshotError(f"{plain(path)} cannot be read: {reason_of(error)}.") from None
        inside = [path / name for name in sorted(names, key=str.casefold)[:_MOST]]
        above = None if path in self._roots else path.parent
        return _values(path, above, inside)


def _shown(entry: os.DirEntry[str]) -> bool:
    # A link may lead out, and a name that is not text cannot be sent back.
    if entry.name.startswith(".") or not entry.name.isprintable():
        return False
    return entry.is_dir(follow_symlinks=False)


def _values(path: Path | None, above: Path | None, folders: Sequence[Path]) -> dict[str, Any]:
    return {
        "schema": JSON_SCHEMA,
        "folder": None if path is None else printable(path),
        "above": None if above is None else printable(above),
        "folders": [
            {"path": printable(one), "name": printable(one if path is None else one.name)}
            for one in folders
        ],
    }


_LOOK = 0.2  # seconds between looks at how far it is
_ALIVE = 15.0  # seconds after which a silent connection says that it is there


class FoldersWanted(BaseModel):
    """What to index."""

    folders: list[Annotated[str, Field(max_length=4096)]] = Field(min_length=1, max_length=20)


class IndexingRoutes:
    """The addresses that index.

    Args:
        desk: the open index.
        jobs: the run.
        roots: folders that may be indexed.
    """

    def __init__(self, desk: Session, jobs: Jobs, roots: Roots) -> None:
        self._desk = desk
        self._jobs = jobs
        self._roots = roots

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["indexing"])
        add = router.add_api_route
        job: dict[int | str, dict[str, Any]] = {200: {"model": JobReply}}
        folders: dict[int | str, dict[str, Any]] = {200: {"model": FoldersReply}}
        stream: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
        add("/api/folders", self.folders, responses=folders | errors(404, 409))
        add("/api/index", self.job, responses=job)
        add("/api/index", self.start, methods=["POST"], responses=job | errors(403, 404, 409, 411))
        add("/api/index/events", self.events, response_class=Response, responses=stream)
        add(
            "/api/index/{order}",
            self.order,
            methods=["POST"],
            responses=job | errors(403, 404, 411),
        )
        return router

    async def folders(
        self,
        request: Request,
        folder: Annotated[
            str | None, Query(description="Folder to look into; none for the roots.")
        ] = None,
    ) -> Response:
        """Folders that may be indexed."""
        call = self._desk.pictures.run(request, lambda: self._roots.below(folder))
        return json_reply(await call)

    async def job(self) -> Response:
        """How far the last run is."""
        return json_reply(self._jobs.state())

    async def start(self, request: Request, wish: FoldersWanted) -> Response:
        """Index folders with all that is below them; only what is new or changed costs time."""

        def begin() -> None:
            self._jobs.start([self._roots.allowed(folder) for folder in wish.folders])

        await self._desk.pictures.run(request, begin)
        return json_reply(self._jobs.state())

    async def order(self, order: Literal["pause", "resume", "cancel"]) -> Response:
        """Have the run pause, go on or end; what is indexed stays."""
        self._jobs.order(order)
        return json_reply(self._jobs.state())

    async def events(self, request: Request) -> Response:
        """How far the run is, told as it goes (server-sent events)."""
        return StreamingResponse(self._told(request), media_type="text/event-stream")

    async def _told(self, request: Request) -> AsyncIterator[str]:
        seen, silent = -1, 0.0
        while not self._desk.closing and not await request.is_disconnected():
            if self._jobs.version != seen:
                seen, silent = self._jobs.version, 0.0
                yield f"data: {json.dumps(json.loads(json_text(self._jobs.state())))}\n\n"
            elif silent > _ALIVE:
                silent = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(_LOOK)
            silent += _LOOK

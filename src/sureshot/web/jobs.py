"""Indexing from the page: one run at a time in its own process, and the folders it may read."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import unicodedata
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from sureshot.errors import ArgumentError, SureshotError, reason_of
from sureshot.library.results import json_text
from sureshot.paths import absolute
from sureshot.s3 import SCHEME, ObjectPath
from sureshot.text import plain, printable
from sureshot.web.schema import (
    BusyError,
    Document,
    ErrorValues,
    NotFoundError,
    Reason,
    field,
    json_reply,
    replies,
)
from sureshot.web.session import Session, SessionOf, of_app, queued

Order = Literal["pause", "resume", "cancel"]
_ACTIVE = ("running", "paused")
_PATIENCE = 20.0  # seconds that a run has to end when the server does
_MOST = 1000  # subfolders that are listed
_POLL = 0.2  # seconds between looks at the state
_KEEP_ALIVE = 15.0  # seconds after which a silent event stream sends a comment


class JobValues(BaseModel):
    """How far an indexing run is."""

    state: Literal["running", "paused", "done", "cancelled", "failed"]
    folders: list[str]
    text: str = "looking for videos"
    share: float = 0.0
    current: str = ""
    failures: int = 0
    failed: list[Reason] = []  # the last of them
    error: ErrorValues | None = None


class JobReply(Document):
    """The last indexing run, if there was one."""

    job: JobValues | None


class Jobs:
    """The one indexing run that a server has at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._job: JobValues | None = None
        self.version = 0  # raised with each change of the state

    def state(self) -> JobReply:
        """How far the last run is."""
        return JobReply(job=self._job)

    def start(self, folders: Sequence[Path], roots: Sequence[Path] | None = None) -> None:
        """Start to index, and nothing outside of the roots whatever links lead there."""
        with self._lock:
            if self._job is not None and self._job.state in _ACTIVE:
                raise BusyError("Videos are being indexed already; wait for that, or cancel it.")
            try:
                process = subprocess.Popen(
                    # -P: files of the folder that we are in, perhaps of downloads, are no modules.
                    [sys.executable, "-P", "-m", "sureshot.web.index_worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the server, which ends it in order
                )
            except OSError as error:
                raise SureshotError(f"Indexing does not start: {error.strerror}.") from None
            self._process = process
            names = [os.fspath(folder) for folder in folders]
            self._job = JobValues(state="running", folders=names)
            self.version += 1
            bounds = None if roots is None else [os.fspath(root) for root in roots]
            request = {"folders": names, "roots": bounds, **self._session.opening}
            self._write(json.dumps(request))
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def order(self, order: Order) -> None:
        """Pause the run, resume it or cancel it."""
        with self._lock:
            if self._job is None or self._job.state not in _ACTIVE:
                raise NotFoundError("Nothing is being indexed.")
            self._write(order)
            if order != "cancel":
                self._update(state="paused" if order == "pause" else "running")

    def close(self) -> None:
        """End the run; what it has written stays."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _write(self, line: str) -> None:
        """Send a line to the process; if it has ended, the reader notices."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None and process.stdin is not None
        for line in process.stdout:
            try:
                values = json.loads(line)
            except ValueError:  # the last one, of a process that was killed
                break
            del values["schema"]
            with self._lock:
                if values["state"] == "running":  # may be older than an order
                    del values["state"]
                self._update(**values)
        code = process.wait()
        process.stdout.close()
        with self._lock:
            with contextlib.suppress(OSError):
                process.stdin.close()
            is_last = process is self._process  # another may have been started since its last line
            if is_last and self._job is not None and self._job.state in _ACTIVE:
                why = "`sureshot serve` printed why"
                if code < 0:
                    why = f"the system ended it (signal {-code}), perhaps for lack of memory"
                message = f"Indexing broke off: {why}. Index the folder again to go on."
                self._update(state="failed", error={"code": "system", "message": message})
        self._session.forget_videos()

    def _update(self, **values: Any) -> None:
        assert self._job is not None
        if values.get("error"):
            values["text"] = values["error"]["message"]
        self._job = JobValues.model_validate(self._job.model_dump() | values)
        self.version += 1


class FolderValues(BaseModel):
    """A folder."""

    path: str
    name: str


class FoldersReply(Document):
    """The folders in one, or the roots; `above` is null at a root."""

    folder: str | None
    above: str | None
    folders: list[FolderValues]


class Roots:
    """Folders that may be indexed, with all below them."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [absolute(path) for path in paths]
        for root in self.paths:
            try:
                is_there = root.is_dir()
            except OSError as error:
                raise ArgumentError(f"{plain(root)} cannot be read: {reason_of(error)}.") from None
            if not is_there:
                raise ArgumentError(f"There is no folder {plain(root)}; name one with --root.")

    def allowed(self, folder: str) -> Path:
        """A folder at or below a root, links in its name followed."""
        refusal = NotFoundError(
            "This folder cannot be indexed from here; `sureshot serve --root DIR` says which may."
        )
        if folder.startswith(SCHEME):
            bucket = absolute(folder)
            if not any(bucket.is_relative_to(root) for root in self.paths):
                raise refusal
            return bucket
        if "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117 - untrusted text
            raise refusal
        try:
            real = Path(folder).resolve(strict=True)
            is_inside = any(real.is_relative_to(root.resolve()) for root in self.paths)
            if not is_inside or not real.is_dir():
                raise refusal
        except (OSError, RuntimeError):  # a loop of links
            raise refusal from None
        return absolute(folder)

    def below(self, folder: str | None) -> FoldersReply:
        """The folders in one, or the roots."""
        if folder is None:
            roots = [FolderValues(path=printable(r), name=printable(r)) for r in self.paths]
            return FoldersReply(folder=None, above=None, folders=roots)
        path = self.allowed(folder)
        try:
            if isinstance(path, ObjectPath):
                folders = [one.name for one in path.entries() if one.listed is None]
                names = [name for name in folders if not name.startswith(".")]
            else:
                with os.scandir(path) as entries:
                    names = [entry.name for entry in entries if _is_listed(entry)]
        except OSError as error:
            raise SureshotError(f"{plain(path)} cannot be read: {reason_of(error)}.") from None
        names = sorted(names, key=str.casefold)[:_MOST]
        return FoldersReply(
            folder=printable(path),
            above=None if path in self.paths else printable(path.parent),
            folders=[FolderValues(path=printable(path / name), name=name) for name in names],
        )


def _is_listed(entry: os.DirEntry[str]) -> bool:
    # A link may lead out, and a name that is not text cannot be sent back.
    odd = any(unicodedata.category(letter) in ("Cc", "Cs") for letter in entry.name)
    if odd or entry.name.startswith("."):
        return False
    return entry.is_dir(follow_symlinks=False)


class FoldersRequest(BaseModel):
    """What to index."""

    folders: list[Annotated[str, Field(max_length=4096)]] = Field(min_length=1, max_length=20)


JobsOf = Annotated[Jobs, of_app("jobs")]
RootsOf = Annotated[Roots, of_app("roots")]
router = APIRouter(tags=["indexing"])


@router.get("/api/folders", responses=replies(FoldersReply, 404, 409))
@queued("files")
def folders(
    roots: RootsOf,
    folder: Annotated[str | None, field("Folder to look into; none for the roots.")] = None,
) -> FoldersReply:
    """Folders that may be indexed."""
    return roots.below(folder)


@router.get("/api/index", responses={200: {"model": JobReply}})
async def job(jobs: JobsOf) -> Response:
    """How far the last run is."""
    return json_reply(jobs.state())


@router.post("/api/index", responses=replies(JobReply, 403, 404, 409, 411))
@queued("files")
def start(jobs: JobsOf, roots: RootsOf, body: FoldersRequest) -> JobReply:
    """Index folders with all that is below them; only what is new or changed costs time."""
    jobs.start([roots.allowed(folder) for folder in body.folders], roots.paths)
    return jobs.state()


@router.get(
    "/api/index/events",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(request: Request, session: SessionOf, jobs: JobsOf) -> Response:
    """How far the run is, as server-sent events."""

    async def stream() -> AsyncIterator[str]:
        seen, silent = -1, 0.0
        while not session.closing and not await request.is_disconnected():
            if jobs.version != seen:
                seen, silent = jobs.version, 0.0
                yield f"data: {json_text(jobs.state().model_dump(by_alias=True))}\n\n"
            elif silent > _KEEP_ALIVE:
                silent = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(_POLL)
            silent += _POLL

    return StreamingResponse(stream(), media_type="text/event-stream")


@router.post("/api/index/{order}", responses=replies(JobReply, 403, 404, 411))
async def order(jobs: JobsOf, order: Order) -> Response:
    """Pause the run, resume it or cancel it; what is indexed stays."""
    jobs.order(order)
    return json_reply(jobs.state())

"""Indexing over HTTP: folders, the run, orders to it, and its progress as it comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from sureshot.library.printed import json_text
from sureshot.web.desk import Desk
from sureshot.web.folders import Roots
from sureshot.web.jobs import Jobs
from sureshot.web.replies import json_reply
from sureshot.web.schema import FoldersReply, JobReply, errors

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

    def __init__(self, desk: Desk, jobs: Jobs, roots: Roots) -> None:
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

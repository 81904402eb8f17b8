"""Searches over HTTP: by words, by a moment, a frame or a photo; and what fits a video best."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from sureshot.errors import QueryError
from sureshot.library.answer import Answer
from sureshot.library.choosing import Choice
from sureshot.library.pictures import like_frame, like_photo
from sureshot.library.search import Searcher
from sureshot.places import absolute
from sureshot.text import plain
from sureshot.web.desk import Desk
from sureshot.web.replies import json_reply
from sureshot.web.schema import AnswerReply, DescriptionsReply, errors

_MOST = 1000  # hits of one query on all pages

Words = Annotated[str, Query(description="What to look for, in a sentence.", max_length=100_000)]
Limit = Annotated[int, Query(description="Hits of a page.", ge=1, le=100)]
Cursor = Annotated[
    str | None,
    Query(description="Where to go on: `next` of the page before.", pattern=r"^[0-9]{1,4}$"),
]
Folder = Annotated[
    str | None, Query(description="Only videos at or below this path.", max_length=4096)
]
Length = Annotated[float | None, Query(description="Seconds that a video lasts.", ge=0, le=1e9)]
Since = Annotated[date | None, Query(description="First day of the last change, in UTC.")]
Until = Annotated[date | None, Query(description="Last day of the last change, in UTC.")]
PerVideo = Annotated[int | None, Query(description="Hits of one video at most.", ge=1, le=1000)]
Fold = Annotated[bool, Query(description="Show near-copies as one hit.")]
Coverage = Annotated[
    float, Query(description="How often the plausible hits should include a right one.", gt=0, lt=1)
]
Minimum = Annotated[
    float, Query(description="Leave out hits that are less likely right.", ge=0, lt=1)
]
VideoId = Annotated[str, Query(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]
At = Annotated[float | None, Query(description="Seconds into the video.", ge=0, le=1e7)]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every search that is answered by pages may be asked with."""

    limit: Limit = 10
    folder: Folder = None
    shortest: Length = None
    longest: Length = None
    since: Since = None
    until: Until = None
    per_video: PerVideo = None
    fold: Fold = True

    def choice(self) -> Choice:
        """The videos that are searched.

        Raises:
            QueryError: the folder can be no path.
        """
        return Choice(
            under=path_of(self.folder),
            shortest=self.shortest,
            longest=self.longest,
            since=self.since,
            until=self.until,
        )


class Searching:
    """The addresses that search.

    Args:
        desk: the open index.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["search"])
        add = router.add_api_route
        answer: dict[int | str, dict[str, Any]] = {200: {"model": AnswerReply}}
        described: dict[int | str, dict[str, Any]] = {200: {"model": DescriptionsReply}}
        add("/api/search", self.search, responses=answer | errors(400, 409))
        add("/api/like", self.like, responses=answer | errors(400, 404, 409, 410))
        add(
            "/api/like",
            self.like_photo,
            methods=["POST"],
            responses=answer | errors(400, 403, 409, 411, 413),
            openapi_extra={
                "requestBody": {
                    "required": True,
                    "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
                }
            },
        )
        add("/api/describe", self.describe, responses=described | errors(400, 404, 409, 410))
        return router

    async def search(
        self,
        request: Request,
        q: Words,
        wanted: Annotated[Wanted, Depends()],
        cursor: Cursor = None,
        coverage: Coverage = 0.9,
        minimum: Minimum = 0.0,
    ) -> Response:
        """Moments that a sentence describes, best first."""
        trust = {"coverage": coverage, "minimum": minimum}

        def ask(searcher: Searcher, asked: dict[str, Any]) -> Answer:
            return self._desk.together.search(searcher, q, **asked, **trust)

        return await self._paged(request, ask, wanted, cursor)

    async def like(
        self,
        request: Request,
        video: VideoId,
        wanted: Annotated[Wanted, Depends()],
        at: At = None,
        frame: Annotated[
            bool, Query(description="Only the frame at that time, not the moment around it.")
        ] = False,
        cursor: Cursor = None,
    ) -> Response:
        """Moments that look like a video, like a moment of it, or like one frame of it."""
        if frame and at is None:
            raise QueryError("A frame is asked for without its time; give `at` in seconds.")

        def ask(searcher: Searcher, asked: dict[str, Any]) -> Answer:
            path = self._desk.file(video).path
            if frame and at is not None:
                return like_frame(searcher, path, at, **asked)
            return searcher.like(path, at=at, **asked)

        return await self._paged(request, ask, wanted, cursor)

    async def like_photo(
        self,
        request: Request,
        wanted: Annotated[Wanted, Depends()],
        name: Annotated[str, Query(description="What to call it.", max_length=255)] = "photo",
    ) -> Response:
        """Moments that look like a photo, whose bytes are the body of the request."""
        data = await request.body()

        def ask(searcher: Searcher, asked: dict[str, Any]) -> Answer:
            return like_photo(searcher, data, plain(name), **asked)

        return await self._paged(request, ask, wanted, None)

    async def describe(
        self,
        request: Request,
        video: VideoId,
        text: Annotated[
            list[Annotated[str, Query(max_length=10_000)]],
            Query(description="Sentences to choose from.", min_length=1, max_length=100),
        ],
        at: At = None,
    ) -> Response:
        """Sentences ranked by how well they fit a video, or what it shows at one time."""

        def ask() -> dict[str, Any]:
            searcher = self._desk.searcher()
            return searcher.describe(self._desk.file(video).path, text, at=at).to_dict()

        return json_reply(await self._desk.searches.run(request, ask))

    async def _paged(
        self,
        request: Request,
        ask: Callable[[Searcher, dict[str, Any]], Answer],
        wanted: Wanted,
        cursor: str | None,
    ) -> Response:
        """One page of an answer."""
        done = int(cursor or 0)
        most = min(done + wanted.limit, _MOST)
        choice = wanted.choice()  # a wrong one is refused before it waits for its turn
        asked = {"per_video": wanted.per_video, "fold": wanted.fold, "k": most}

        def answer() -> dict[str, Any]:
            searcher = self._desk.searcher()
            found = ask(searcher, asked | {"under": choice.videos(searcher.store)})
            values = found.to_dict()
            more = len(found) == most and most < _MOST
            return values | {"hits": values["hits"][done:], "next": str(most) if more else None}

        return json_reply(await self._desk.searches.run(request, answer))


def path_of(folder: str | None) -> Path | None:
    """The path of a folder that is compared with those of videos, and never looked into.

    Raises:
        QueryError: it can be no path.
    """
    if not folder:
        return None
    try:
        if "\0" in folder:
            raise QueryError("The folder is no path.")
        return absolute(os.fsdecode(folder.encode("utf-8", "surrogateescape")))
    except UnicodeEncodeError:
        raise QueryError("The folder is no path.") from None

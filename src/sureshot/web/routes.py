"""Searches over HTTP: by words, by a moment, a frame or a photo; and what fits a video best."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field
from starlette.responses import Response

from sureshot.errors import QueryError, SureshotError
from sureshot.library.calibration import calibrate, forget
from sureshot.library.catalog import Choice, list_videos, remove, status, video_values
from sureshot.library.clips import like_frame, like_photo, still
from sureshot.library.judging import Judgements, judge_moments
from sureshot.library.labels import JudgedMoment, labels_of_index
from sureshot.library.results import Answer
from sureshot.library.search import Searcher
from sureshot.paths import absolute, video_id
from sureshot.text import clean, plain
from sureshot.trust.fit import JUDGED
from sureshot.web.schema import (
    AnswerReply,
    DescriptionsReply,
    JudgedReply,
    LearnedReply,
    RemovedReply,
    StatusReply,
    VideoReply,
    VideosReply,
    errors,
    json_reply,
)
from sureshot.web.session import Session

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

    def __init__(self, desk: Session) -> None:
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


_KEPT = "private, max-age=86400"  # a browser may keep a picture for a day

Id = Annotated[str, PathParameter(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]


class Shelf:
    """The addresses that say what there is.

    Args:
        desk: the open index.
    """

    def __init__(self, desk: Session) -> None:
        self._desk = desk

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["index"])
        add = router.add_api_route

        def replies(model: Any, *codes: int) -> dict[int | str, dict[str, Any]]:
            return {200: {"model": model}, **errors(*codes)}

        picture: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}
        add("/api/status", self.status, responses=replies(StatusReply, 409))
        add("/api/videos", self.videos, responses=replies(VideosReply, 400, 409))
        one = "/api/videos/{name}"
        add(one, self.video, responses=replies(VideoReply, 404, 409))
        gone = replies(RemovedReply, 403, 404, 409)
        add(one, self.remove, methods=["DELETE"], responses=gone)
        add(
            "/api/thumbnail/{name}",
            self.thumbnail,
            response_class=Response,
            responses=picture | errors(404, 409, 410),
        )
        card = "/api/calibration"
        add(card, self.learned, responses=replies(LearnedReply, 409))
        add(card, self.forget, methods=["DELETE"], responses=replies(LearnedReply, 403, 409))
        return router

    async def status(self, request: Request) -> Response:
        """What the index holds, with which model, and what failed and why."""

        def ask() -> dict[str, Any]:
            contents = status(self._desk.place.db)
            return contents.to_dict() | {"summary": contents.summary}

        return json_reply(await self._desk.searches.run(request, ask))

    async def videos(
        self,
        request: Request,
        limit: Annotated[int, Query(description="Videos of a page.", ge=1, le=500)] = 100,
        cursor: Annotated[
            str | None, Query(description="`next` of the page before.", max_length=20_000)
        ] = None,
        folder: Annotated[
            str | None, Query(description="Only videos at or below this path.", max_length=4096)
        ] = None,
        newest: Annotated[
            bool, Query(description="Only those that can be found, the last changed first.")
        ] = False,
    ) -> Response:
        """The videos in the order of their paths, failed ones among them."""
        under = path_of(folder)

        def ask() -> dict[str, Any]:
            store = self._desk.store()
            page = list_videos(store, limit=limit, after=cursor, under=under, newest=newest)
            return page.to_dict()

        return json_reply(await self._desk.searches.run(request, ask))

    async def video(self, request: Request, name: Id) -> Response:
        """One video."""
        call = lambda: video_values(self._desk.video(name))  # noqa: E731
        return json_reply(await self._desk.searches.run(request, call))

    async def remove(
        self,
        request: Request,
        name: Id,
        exclude: Annotated[
            bool, Query(description="Also leave it out of what is indexed later.")
        ] = False,
    ) -> Response:
        """Forget a video. Its file is not touched."""

        def ask() -> dict[str, Any]:
            path = self._desk.video(name).path
            removed = remove([path], db=self._desk.place.db, exclude=exclude)
            self._desk.forget_videos()
            return {"removed": removed}

        return json_reply(await self._desk.searches.run(request, ask))

    async def thumbnail(
        self,
        request: Request,
        name: Id,
        at: Annotated[float, Query(description="Seconds into the video.", ge=0, le=1e7)] = 0.0,
        side: Annotated[int, Query(description="Shorter side in pixels.", ge=16, le=720)] = 180,
    ) -> Response:
        """What a video shows at one time, as a JPEG."""

        def draw() -> bytes:
            path = self._desk.file(name).path
            return still(path, at, side=side, rate=self._desk.store().settings.frame_rate)

        data = await self._desk.pictures.run(request, draw)
        return Response(data, headers={"Cache-Control": _KEPT}, media_type="image/jpeg")

    async def learned(self, request: Request) -> Response:
        """What percentages are learned from."""

        def ask() -> dict[str, Any]:
            return {"learned_from": self._desk.searcher().learned_from(), "forgotten": None}

        return json_reply(await self._desk.searches.run(request, ask))

    async def forget(self, request: Request) -> Response:
        """Forget percentages of your own, and go back to those of the model."""

        def ask() -> dict[str, Any]:
            forgotten = forget(self._desk.searcher())
            return {"learned_from": self._desk.renew().learned_from(), "forgotten": forgotten}

        return json_reply(await self._desk.searches.run(request, ask))


_Id = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Second = Annotated[float, Field(ge=0, le=1e7)]


class ShownMoment(BaseModel):
    """A hit as the answer gave it."""

    video: _Id
    start: _Second
    end: _Second


class Click(BaseModel):
    """What somebody says of hits of a query: that they are right, wrong, or that none is here."""

    query: str = Field(max_length=100_000)
    verdict: Literal["right", "wrong", "absent"]
    moments: list[ShownMoment] = Field(min_length=1, max_length=1000)


class Learner:
    """Learns from judgements in the background, once more where some came meanwhile.

    Args:
        desk: the open index.

    Attributes:
        said: what was learned last, or why nothing was.
    """

    def __init__(self, desk: Session) -> None:
        self._desk = desk
        self._lock = threading.Lock()
        self._wanted = self._going = False
        self.said = ""

    @property
    def is_learning(self) -> bool:
        """Whether percentages are about to change."""
        return self._going

    def learn(self) -> None:
        """Learn from all judgements of the index, soon."""
        with self._lock:
            self._wanted = True
            if self._going:
                return
            self._going = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._going, self._wanted = self._wanted, False
                if not self._going:
                    return
            try:
                done = calibrate(db=self._desk.renew())
                self.said = repr(done).splitlines()[1] if done.card.personal else repr(done)
            except SureshotError as error:
                self.said = str(error)
            except BaseException:
                self._going = False
                raise


class JudgingRoutes:
    """The addresses that judge.

    Args:
        desk: the open index.
    """

    def __init__(self, desk: Session) -> None:
        self._desk = desk
        self._learner = Learner(desk)

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["judging"])
        add = router.add_api_route
        judged: dict[int | str, dict[str, Any]] = {200: {"model": JudgedReply}}
        add("/api/judge", self.judged, responses=judged | errors(400, 409))
        wrong = errors(400, 403, 404, 409, 411)
        add("/api/judge", self.judge, methods=["POST"], responses=judged | wrong)
        add("/api/calibration", self.learn, methods=["POST"], responses=judged | errors(403, 409))
        return router

    async def judged(
        self,
        request: Request,
        query: Annotated[str, Query(description="A query.", max_length=100_000)] = "",
    ) -> Response:
        """What was judged so far, of a query and in all."""
        return json_reply(await self._desk.searches.run(request, lambda: self._told(query)))

    async def judge(self, request: Request, click: Click) -> Response:
        """Say of hits whether they are right; ten judged searches are learned from."""

        def keep() -> dict[str, Any]:
            moments = []
            for shown in click.moments:
                if not shown.start < shown.end:
                    raise QueryError("A moment ends after it begins; this one does not.")
                moments.append(
                    JudgedMoment(
                        video=self._desk.video(shown.video).path,
                        start=shown.start,
                        end=shown.end,
                        right=click.verdict == "right",
                    )
                )
            searcher = self._desk.searcher()
            kept = judge_moments(searcher, click.query, moments, absent=click.verdict == "absent")
            if kept.telling >= JUDGED:
                self._learner.learn()
            return self._told(click.query)

        return json_reply(await self._desk.searches.run(request, keep))

    async def learn(self, request: Request) -> Response:
        """Learn from what was judged, now."""

        def ask() -> dict[str, Any]:
            self._learner.learn()
            return self._told("")

        return json_reply(await self._desk.searches.run(request, ask))

    def _told(self, query: str) -> dict[str, Any]:
        kept = Judgements(labels_of_index(self._desk.store().location))
        label = kept.of(clean(query)) if query else None
        return {
            "judged": len(kept),
            "said": f"{kept.said} {self._learner.said}".strip() if len(kept) else "",
            "learning": self._learner.is_learning,
            "state": "" if label is None else label.state,
            "moments": [
                {"id": video_id(m.video), "start": m.start, "end": m.end, "right": m.right}
                for m in (() if label is None else label.moments)
            ],
        }

"""What the index holds over HTTP: its state, its videos, and pictures out of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sureshot.library.calibration import forget
from sureshot.library.contents import remove, status
from sureshot.library.listing import list_videos, video_values
from sureshot.library.pictures import still
from sureshot.web.desk import Desk
from sureshot.web.replies import json_reply
from sureshot.web.schema import (
    LearnedReply,
    RemovedReply,
    StatusReply,
    VideoReply,
    VideosReply,
    errors,
)
from sureshot.web.searching import path_of

_KEPT = "private, max-age=86400"  # a browser may keep a picture for a day

Id = Annotated[str, Path(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]


class Shelf:
    """The addresses that say what there is.

    Args:
        desk: the open index.
    """

    def __init__(self, desk: Desk) -> None:
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

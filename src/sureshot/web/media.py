"""Videos over HTTP: what to play of them, the film itself, and a moment cut out to keep."""

import urllib.parse
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.responses import Response

from sureshot.errors import QueryError
from sureshot.library.clips import cut, export_name
from sureshot.library.playing import Film, film_of, first_part, write_part
from sureshot.media.playable import MP4
from sureshot.store.rows import VideoRecord
from sureshot.web.clip_cache import ClipCache
from sureshot.web.desk import Desk
from sureshot.web.ranges import FilePart
from sureshot.web.replies import json_reply
from sureshot.web.schema import FilmReply, errors

_LONGEST = 600.0  # seconds that are cut out at once

Id = Annotated[str, InPath(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]
At = Annotated[float, Query(description="Second that is looked for.", ge=0, le=1e7)]
Start = Annotated[
    float | None, Query(description="Second at which the moment begins.", ge=0, le=1e7)
]
End = Annotated[float | None, Query(description="Second at which it ends.", ge=0, le=1e7)]


class Media:
    """The addresses that play.

    Args:
        desk: the open index.
        cache: where films are kept that had to be made.
    """

    def __init__(self, desk: Desk, cache: ClipCache) -> None:
        self._desk = desk
        self._cache = cache

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["media"])
        add = router.add_api_route
        told: dict[int | str, dict[str, Any]] = {200: {"model": FilmReply}}
        film: dict[int | str, dict[str, Any]] = {200: {"content": {"video/*": {}}}}
        part: dict[int | str, dict[str, Any]] = {206: {"content": {"video/*": {}}}}
        wrong = errors(400, 404, 409, 410)
        add("/api/playing/{name}", self.playing, responses=told | wrong)
        film_wrong = errors(400, 404, 409, 410, 416, 507)
        for address, call in (("/api/media/{name}", self.film), ("/api/cut/{name}", self.cut)):
            add(address, call, response_class=Response, responses=film | part | film_wrong)
            add(address, call, methods=["HEAD"], include_in_schema=False)
        return router

    async def playing(
        self, request: Request, name: Id, at: At = 0.0, start: Start = None, end: End = None
    ) -> Response:
        """What `/api/media` plays so that a moment is seen, and at which second that begins."""
        asked = {"at": at, "start": start, "end": end}
        query = urllib.parse.urlencode({k: v for k, v in asked.items() if v is not None})
        url = f"/api/media/{name}?{query}"

        def ask() -> dict[str, Any]:
            record = self._desk.file(name)
            film = self._film(record, at, start, end)
            first = first_part(film, at)
            if first is None or self._cache.has(self._stamp(record, film)):
                return film.to_dict() | {"url": url, "first": None}
            soon = {"url": f"{url}&first=true", "start": first.start, "end": first.end}
            return film.to_dict() | {"url": url, "first": soon}

        return json_reply(await self._desk.searches.run(request, ask))  # before pictures that wait

    async def film(
        self,
        request: Request,
        name: Id,
        at: At = 0.0,
        start: Start = None,
        end: End = None,
        first: Annotated[
            bool, Query(description="Of a film that must be made only the seconds seen first.")
        ] = False,
    ) -> Response:
        """The video as it is, or the film that stands for it where browsers do not play it."""

        def ask() -> tuple[VideoRecord, Film, bool]:
            record = self._desk.file(name)
            film = self._film(record, at, start, end)
            early = first_part(film, at) if first else None
            return record, early or film, early is not None

        record, film, soon = await self._desk.searches.run(request, ask)
        if film.how.way == "direct":
            return FilePart(request, record.path, film.how.type)
        lane = self._desk.firsts if soon else self._desk.clips
        path = await lane.run(request, lambda: self._made(record, film))
        return FilePart(request, path, film.how.type)

    async def cut(
        self,
        request: Request,
        name: Id,
        start: Annotated[float, Query(description="Seconds.", ge=0, le=1e7)],
        end: Annotated[float, Query(description="Seconds.", gt=0, le=1e7)],
        rank: Annotated[int, Query(description="First part of its name.", ge=1, le=9999)] = 1,
    ) -> Response:
        """A moment as an mp4 to keep, cut to the frame."""
        if not 0 < end - start <= _LONGEST:
            raise QueryError(f"Cut out more than 0 and at most {_LONGEST:g} seconds at once.")
        record = await self._desk.searches.run(request, lambda: self._desk.file(name))
        rate = self._desk.store().settings.frame_rate

        def make(target: Path) -> None:
            cut(record.path, start, end, target, frame_rate=rate, overwrite=True)

        stamp = f"cut {record.id} {start:.3f} {end:.3f} {_stamp(record.path)}"
        path = await self._desk.clips.run(request, lambda: self._cache.film(stamp, make))
        reply = FilePart(request, path, MP4)
        called = urllib.parse.quote(export_name(record.path, start, end, rank), safe="")
        reply.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{called}"
        return reply

    def _film(self, record: VideoRecord, at: float, start: float | None, end: float | None) -> Film:
        begins, ends = at if start is None else start, at if end is None else end
        return film_of(record, at=at, start=min(begins, at), end=max(ends, at))

    def _made(self, record: VideoRecord, film: Film) -> Path:
        rate = self._desk.store().settings.frame_rate
        return self._cache.film(
            self._stamp(record, film), lambda target: write_part(record, film, target, rate=rate)
        )

    def _stamp(self, record: VideoRecord, film: Film) -> str:
        """What tells a film from every other one."""
        rate = self._desk.store().settings.frame_rate
        way = f"{film.how.way} {film.start} {film.end}" if film.how.way == "clip" else "remux"
        return f"{way} {record.id} {rate} {_stamp(record.path)}"


def _stamp(path: Path) -> str:
    """What tells a file from one that takes its place."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"

"""The addresses of the server put together behind the gate."""

from collections.abc import Iterable
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from sureshot import __version__
from sureshot.errors import SureshotError
from sureshot.web.clip_cache import ClipCache
from sureshot.web.desk import Desk
from sureshot.web.folders import Roots
from sureshot.web.gate import Doorkeeper
from sureshot.web.indexing_routes import IndexingRoutes
from sureshot.web.jobs import Jobs
from sureshot.web.judging_routes import JudgingRoutes
from sureshot.web.media import Media
from sureshot.web.replies import on_error, on_http, on_invalid
from sureshot.web.searching import Searching
from sureshot.web.shelf import Shelf

_PAGE = Path(__file__).parent / "page"
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_ABOUT = "The functions of `sureshot` over HTTP. docs/json.md says what the fields mean."


def make_app(
    desk: Desk,
    cache: ClipCache,
    jobs: Jobs,
    roots: Roots,
    *,
    token: str,
    names: Iterable[str] = (),
    password: str = "",
) -> ASGIApp:
    """The server's application.

    Args:
        desk: the open index.
        cache: where films are kept that had to be made.
        jobs: indexing runs.
        roots: folders that may be indexed.
        token: secret that the page carries, and that whoever changes something must show.
        names: host names beside those of loopback.
        password: what a network has to know; empty where only this machine is served.
    """
    app = FastAPI(
        title="Sureshot",
        version=__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,  # it would load code from elsewhere; /api is our own
        redoc_url=None,
    )
    app.add_exception_handler(SureshotError, on_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(ClientDisconnect, _on_gone)
    rooms = (
        Searching(desk),
        Shelf(desk),
        Media(desk, cache),
        JudgingRoutes(desk),
        IndexingRoutes(desk, jobs, roots),
    )
    for room in rooms:
        app.include_router(room.routes())
    for address, name in (("/", "index.html"), ("/api", "api.html")):
        app.add_route(address, _file(name, token))
    for name in ("page.css", "page.js", "api.js", "icon.svg"):
        app.add_route(f"/{name}", _file(name, token))
    return Doorkeeper(app, token=token, names=names, password=password)


def _file(name: str, token: str):  # type: ignore[no-untyped-def]
    """What answers with a file of the page, in which the token stands in its place."""
    data = (_PAGE / name).read_text("utf-8").replace("{{token}}", token).encode()

    async def answer(request: Request) -> Response:
        return Response(data, media_type=_KINDS[Path(name).suffix])

    return answer


async def _on_gone(request: Request, error: Exception) -> Response:
    """Nobody reads it."""
    return Response(status_code=499)

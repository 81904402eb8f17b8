"""The server's process: its socket, its address, its beginning and its end."""

import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from sureshot import __version__
from sureshot.errors import ArgumentError, SureshotError, option, reason_of
from sureshot.paths import cache_dir
from sureshot.text import plain
from sureshot.web.jobs import IndexingRoutes, Jobs, Roots
from sureshot.web.media import ClipCache, Media
from sureshot.web.routes import JudgingRoutes, Searching, Shelf
from sureshot.web.schema import on_error, on_http, on_invalid
from sureshot.web.security import SecurityMiddleware, is_loopback, own_names
from sureshot.web.session import ServeOptions, Session

_PAGE = Path(__file__).parent / "page"
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_ABOUT = "The functions of `sureshot` over HTTP. docs/json.md says what the fields mean."


def make_app(
    desk: Session,
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
    return SecurityMiddleware(app, token=token, names=names, password=password)


def _file(name: str, token: str):  # type: ignore[no-untyped-def]
    """What answers with a file of the page, in which the token stands in its place."""
    data = (_PAGE / name).read_text("utf-8").replace("{{token}}", token).encode()

    async def answer(request: Request) -> Response:
        return Response(data, media_type=_KINDS[Path(name).suffix])

    return answer


async def _on_gone(request: Request, error: Exception) -> Response:
    """Nobody reads it."""
    return Response(status_code=499)


PORT = 8460  # where the page is if nothing else is
_LONGEST_HEAD = 600_000  # bytes of an address with its headers: a long query has 100 000 letters
_ALIVE = 5  # seconds for requests under way when the server ends
_SHORTEST = 8  # letters of a password
_MANY = 512  # connections
_ANYTHING = "anything"  # a search whose answer nobody reads


class _Server(uvicorn.Server):
    """A server that says when it answers, and ends without noise."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to end: what would go on for ever is told to stop."""
        self._ending()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on Ctrl-C and on SIGTERM, which is no failure and is not passed on."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def run_server(
    place: ServeOptions,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    password_file: str | Path | None = None,
    roots: Sequence[str | Path] = (),
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve an index until Ctrl-C or SIGTERM.

    Args:
        place: the index; it need not be there yet.
        host: address to listen at; another one than loopback asks for a password.
        port: port to listen at, 0 for any that is free; None takes 8460, or any if that is taken.
        roots: folders below which the page may index; none takes the home folder.
        password_file: file whose first line is the password.
        ready: called with the address of the page once it answers.

    Raises:
        ArgumentError: the host asks for a password, the file holds none, or a root is no folder.
        SureshotError: nothing can listen there.
    """
    password = "" if password_file is None else _password(Path(password_file))
    open_to_all = not is_loopback(host)
    if open_to_all and not password:
        raise ArgumentError(
            f"With {option('host', host)} others in your network could see your videos. Write a "
            f"password into a file and name it with {option('password_file')}."
        )
    desk = Session(place)
    names = own_names(host) if open_to_all else ()
    cache = ClipCache(cache_dir() / "films")
    jobs, allowed = Jobs(place, desk.forget_videos), Roots(roots or [Path.home()])
    token = secrets.token_urlsafe(24)
    app = make_app(desk, cache, jobs, allowed, token=token, names=names, password=password)
    with closing(_listening(host, port)) as listening:
        address = _address(host, listening.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            server_header=False,
            http="h11",
            ws="none",
            lifespan="off",
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            limit_concurrency=_MANY,
            timeout_graceful_shutdown=_ALIVE,
        )
        threading.Thread(target=_warm, args=(desk,), daemon=True).start()
        try:
            _Server(config, lambda: ready(address), desk.close).run(sockets=[listening])
        finally:
            desk.close()
            jobs.close()


def _warm(desk: Session) -> None:
    """Open the index and its model before the first search asks for them; it says what is wrong."""
    with suppress(SureshotError):
        desk.searcher().search(_ANYTHING, k=1)


def _listening(host: str, port: int | None) -> socket.socket:
    wanted = PORT if port is None else port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, wanted), family=family, backlog=256)
    except OSError as error:
        if port is None:
            return _listening(host, 0)
        raise SureshotError(
            f"Nothing can listen at {plain(host)}, port {port}: {reason_of(error)}. Choose another "
            f"with {option('port')}; 0 takes any that is free."
        ) from None


def _address(host: str, port: int) -> str:
    named = "localhost" if host == "127.0.0.1" else f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}/"


def _password(file: Path) -> str:
    try:
        lines = file.expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise ArgumentError(f"The password in {plain(file)} cannot be read: {reason}.") from None
    password = lines[0].strip() if lines else ""
    if len(password) < _SHORTEST:
        raise ArgumentError(
            f"The first line of {plain(file)} has fewer than {_SHORTEST} letters; write a longer "
            "password there."
        )
    return password

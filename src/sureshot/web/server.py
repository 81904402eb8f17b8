"""The server's process: its socket, its address, its beginning and its end."""

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from sureshot import __version__
from sureshot.errors import ArgumentError, SureshotError, option, reason_of
from sureshot.paths import cache_dir
from sureshot.text import plain
from sureshot.web import jobs as jobs_module
from sureshot.web import media, routes
from sureshot.web.jobs import Jobs, Roots
from sureshot.web.media import ClipCache
from sureshot.web.schema import HANDLERS
from sureshot.web.security import SecurityMiddleware, is_loopback, own_names
from sureshot.web.session import ServeOptions, Session

_PAGE = Path(__file__).parent / "page"
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def make_app(
    session: Session,
    cache: ClipCache,
    jobs: Jobs,
    roots: Roots,
    *,
    token: str,
    names: Iterable[str] = (),
    password: str = "",
) -> ASGIApp:
    """The application behind its security checks (`SecurityMiddleware`).

    Args:
        cache: where films are kept that had to be made.
        token: secret that the page carries and every change must bring.
    """
    app = FastAPI(
        title="Sureshot",
        version=__version__,
        description="The functions of `sureshot` over HTTP; docs/json.md describes the fields.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # it would load code from elsewhere; /api is our own
        redoc_url=None,
        exception_handlers=HANDLERS,
    )
    app.state.session, app.state.cache = session, cache
    app.state.jobs, app.state.roots = jobs, roots
    app.state.learner = routes.Learner(session)
    for router in (routes.router, media.router, jobs_module.router):
        app.include_router(router)
    for address, name in (("/", "index.html"), ("/api", "api.html")):
        app.add_route(address, _file(name, token))
    for name in ("page.css", "page.js", "api.js", "icon.svg"):
        app.add_route(f"/{name}", _file(name, token))
    return SecurityMiddleware(app, token=token, names=names, password=password)


def _file(name: str, token: str) -> Callable[[Request], Awaitable[Response]]:
    """Serves a file of the page with the token filled in."""
    data = (_PAGE / name).read_text("utf-8").replace("{{token}}", token).encode()

    async def answer(request: Request) -> Response:
        return Response(data, media_type=_KINDS[name.rpartition(".")[2]])

    return answer


PORT = 8460
_LONGEST_HEAD = 600_000  # bytes of an address with its headers: a long query has 100 000 letters
_GRACE = 5  # seconds for running requests when the server ends
_SHORTEST = 8  # letters of a password
_MANY = 512  # connections


class _Server(uvicorn.Server):
    """A server that reports when it answers, and ends without noise."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()  # ends event streams, which would go on for ever
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals that ended the server are not passed on."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def run_server(
    options: ServeOptions,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    password_file: str | Path | None = None,
    roots: Sequence[str | Path] = (),
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve an index until Ctrl-C or SIGTERM.

    Args:
        options: the index; it need not be there yet.
        host: address to listen at; any but loopback needs a password.
        port: 0 takes any that is free, None 8460, or any if that is taken.
        password_file: file whose first line is the password.
        roots: folders below which the page may index; none takes the home folder.
        ready: called with the address of the page once it answers.

    Raises:
        ArgumentError: the host needs a password, the file holds none, or a root is not a folder.
        SureshotError: nothing can listen there.
    """
    password = "" if password_file is None else _password(Path(password_file))
    is_open = not is_loopback(host)
    if is_open and not password:
        raise ArgumentError(
            f"With {option('host', host)} others in your network could see your videos. Write a "
            f"password into a file and name it with {option('password_file')}."
        )
    session = Session(options)
    jobs = Jobs(session)
    app = make_app(
        session,
        ClipCache(cache_dir() / "films"),
        jobs,
        Roots(roots or [Path.home()]),
        token=secrets.token_urlsafe(24),
        names=own_names(host) if is_open else (),
        password=password,
    )
    with closing(_listen(host, port)) as listening:
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
            timeout_graceful_shutdown=_GRACE,
        )
        threading.Thread(target=_warm_up, args=(session,), daemon=True).start()
        try:
            _Server(config, lambda: ready(address), session.close).run(sockets=[listening])
        finally:
            session.close()
            jobs.close()


def _warm_up(session: Session) -> None:
    """Open the index and its model before the first search, which reports what is wrong."""
    with suppress(SureshotError):
        session.searcher().search("anything", limit=1)


def _listen(host: str, port: int | None) -> socket.socket:
    chosen = PORT if port is None else port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, chosen), family=family, backlog=256)
    except OSError as error:
        if port is None:
            return _listen(host, 0)
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

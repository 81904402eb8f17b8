"""The server's process: its socket, its address, its beginning and its end."""

import asyncio
import logging
import os
import secrets
import shlex
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from sureshot import __version__
from sureshot.errors import ArgumentError, SureshotError, option, reason_of
from sureshot.library.catalog import films_dir
from sureshot.text import plain, printable
from sureshot.web import jobs as jobs_module
from sureshot.web import media, routes
from sureshot.web.jobs import Jobs, Roots
from sureshot.web.media import ClipCache
from sureshot.web.schema import HANDLERS, check_fields, errors
from sureshot.web.security import SecurityMiddleware, is_loopback, own_names
from sureshot.web.session import Session

_PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html"),
    "/api": ("api.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/api.js": ("api.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def make_app(
    session: Session, cache: ClipCache, jobs: Jobs, roots: Roots, **checks: Any
) -> ASGIApp:
    """The application behind its checks, which take the other arguments of `SecurityMiddleware`."""
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
    refused = errors(401, 421, 429)
    for router in (routes.router, media.router, jobs_module.router):
        app.include_router(router, dependencies=[Depends(check_fields)], responses=refused)
    for address in _FILES:
        app.add_route(address, _file)
    kinds = {"password": "basic", "secret": "bearer"}
    schemes = {name: {"type": "http", "scheme": kinds[name]} for name in kinds if checks.get(name)}
    if schemes:  # generated clients send what it asks for
        document = app.openapi()
        document.setdefault("components", {})["securitySchemes"] = schemes
        document["security"] = [{name: []} for name in schemes]
    return SecurityMiddleware(app, **checks)


async def _file(request: Request) -> Response:
    name, kind = _FILES[request.url.path]
    return Response((_PAGE / name).read_bytes(), media_type=kind)


PORT = 8460
_LONGEST_HEAD = 600_000  # bytes of an address with its headers: a long query has 100 000 letters
_GRACE = 5  # seconds for running requests when the server ends
_SHORTEST = 8  # letters of a password
_WAITING, _OF_ONE = 400, 64  # connections without a request: in all, and of one address
_HEAD_TIME = 10.0  # seconds that the head of a request may take
_PIECE_TIME = 30.0  # seconds until the next piece of a body
_GRACE_OF_MANY = 1.0  # seconds, where its address has opened many: a request comes at once
_ALL = {  # hosts that are all addresses of this machine: their family, loopback, one elsewhere
    "0.0.0.0": (socket.AF_INET, "127.0.0.1", "192.0.2.1"),
    "::": (socket.AF_INET6, "::1", "2001:db8::1"),
}
# Connections without a request, with their address and since when, the oldest first.
_silent: dict["_Connection", tuple[str, float]] = {}


class _Connection(H11Protocol):
    """A connection that must bring the head of a request, and pieces of it, within some seconds.

    Where too many have brought none, each new one closes the oldest: whoever has something to ask
    does so at once.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_waiting()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
            if self.cycle.more_body:
                self._timer = self.loop.call_later(_PIECE_TIME, self.transport.close)

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()  # may begin with the next request

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(_HEAD_TIME, self.transport.close)
        host, now = self.client[0] if self.client else "", self.loop.time()
        _silent[self] = host, now
        same = [one for one, (other, _) in _silent.items() if other == host]
        if len(_silent) > _WAITING:
            next(iter(_silent))._close()
        elif len(same) > _OF_ONE and now - _silent[same[0]][1] > _GRACE_OF_MANY:
            same[0]._close()

    def _close(self) -> None:
        self._stop_waiting()
        self.transport.close()

    def _stop_waiting(self) -> None:
        _silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a message is of more than of a request that the end of the server cut off."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError) and "graceful" not in str(record.msg)


class _Server(uvicorn.Server):
    """Calls what it is given once it answers, and before it ends."""

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
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    names: Sequence[str] = (),
    password_file: str | Path | None = None,
    with_token: bool = True,
    roots: Sequence[str | Path] = (),
    ready: Callable[[str, str], None] = lambda address, once: None,
    **opening: Any,
) -> None:
    """Serve an index, which need not be there yet, until Ctrl-C or SIGTERM.

    The options are those of `sureshot serve`, and of `sureshot.open_index`; the port None is 8460,
    or any if that is taken, and a password takes the place of the token. ``ready`` is called once
    the page answers, with its address and one that works once.
    """
    password = "" if password_file is None else _password(Path(password_file))
    for name in names:
        if not name.strip(" .") or any(sign in name for sign in "/:@ "):
            raise ArgumentError(
                f"{option('name', name)} is no name of a host; leave out what is not, such as "
                "https:// and the port."
            )
    is_open = not is_loopback(host) or bool(names)
    if is_open and not password:
        asked = option("name", names[0]) if is_loopback(host) else option("host", host)
        raise ArgumentError(
            f"With {asked} others in your network could see your videos. Write a "
            f"password into a file and name it with {option('password_file')}."
        )
    secret, once = (
        secrets.token_urlsafe(24) if with_token and not password else "" for _ in range(2)
    )
    session = Session(within=roots, **opening)
    jobs = Jobs(session)
    app = make_app(
        session,
        ClipCache(films_dir()),
        jobs,
        Roots(roots or [Path.home()]),
        secret=secret,
        once=once,
        names=own_names(host) | {name.lower().rstrip(".") for name in names} if is_open else (),
        password=password,
    )
    with closing(_listen(host, port)) as listening:
        page = _address(host, listening.getsockname()[1])
        addresses = [f"{page}?token={token}" if token else page for token in (secret, once)]
        config = uvicorn.Config(
            app,
            log_config=None,  # tracebacks go to standard error
            log_level="error",
            access_log=False,
            proxy_headers=False,  # else whoever is on this machine chooses where he asks from
            server_header=False,
            http=_Connection,
            ws="none",
            lifespan="off",
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            timeout_graceful_shutdown=_GRACE,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_fault)
        threading.Thread(target=_warm_up, args=(session,), daemon=True).start()
        try:
            _Server(config, lambda: ready(*addresses), session.close).run(sockets=[listening])
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
    """The address of the page, as a browser can open it."""
    if host in _ALL:  # else that of loopback, or by which this machine reaches others
        family, host, elsewhere = _ALL[host]
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))  # nothing is sent
            host = str(probe.getsockname()[0])
    named = "localhost" if host == "127.0.0.1" else f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}/"


def _password(file: Path) -> str:
    file = file.expanduser()
    try:
        mode = file.stat().st_mode
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise ArgumentError(f"The password in {plain(file)} cannot be read: {reason}.") from None
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        raise ArgumentError(
            f"Others on this machine can read the password in {plain(file)}; keep it to yourself "
            f"with: chmod 600 {shlex.quote(printable(file))}"
        )
    password = lines[0].strip() if lines else ""
    if len(password) < _SHORTEST:
        raise ArgumentError(
            f"The first line of {plain(file)} has fewer than {_SHORTEST} letters; write a longer "
            "password there."
        )
    return password

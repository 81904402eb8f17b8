"""What a request must bring before anything else looks at it.

1. Its Host names this machine: a page from elsewhere whose name was bound to this address anew
   cannot read a thing.
2. It does not come from a page of another site.
3. Where the server is open to a network, it brings the password.
4. If it changes anything, it brings the token that our own page carries.
5. It is small.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sureshot.web.schema import error_reply

TOKEN = "X-Sureshot-Token"  # header of what changes something
LARGEST = 25_000_000  # bytes of a request
_READING = frozenset({"GET", "HEAD"})
_PATIENCE = 1.0  # seconds that a wrong password waits for its answer
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; media-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this very machine.

    Examples:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0")]
        [True, True, True, False]
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str) -> frozenset[str]:
    """Names by which others may call this machine, where it listens at more than loopback."""
    own = socket.gethostname().lower()
    return frozenset({host.lower(), own, f"{own}.local", socket.getfqdn().lower()})


class SecurityMiddleware:
    """The middleware that lets requests through.

    Args:
        app: what is behind the gate.
        token: secret that our page carries.
        names: host names that are let through beside those of loopback; with any, plain addresses
            are as well, since nobody can bind a name to this machine and call it by an address.
        password: what a network has to know; empty where only this machine is served.
    """

    def __init__(
        self, app: ASGIApp, *, token: str, names: Iterable[str] = (), password: str = ""
    ) -> None:
        self._app = app
        self._token = token
        self._names = frozenset(names)
        self._password = password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self._refusal(scope)
        if (
            refused is not None
            and refused.status_code == 401
            and "authorization" in Headers(scope=scope)
        ):
            await asyncio.sleep(_PATIENCE)
        await (refused or self._app)(scope, receive, sending)

    def _refusal(self, scope: Scope) -> Response | None:
        """The reply to a request that is not let through."""
        headers = Headers(scope=scope)
        if not self._is_ours(headers.getlist("host")):
            return error_reply(
                "This server answers to localhost only; open the address that it printed.",
                421,
                "host",
            )
        if not _from_here(scope, headers):
            return error_reply(
                "A page of another site asked for this; nothing was done.", 403, "site"
            )
        if self._password and not self._knows_password(headers.get("authorization", "")):
            return error_reply(
                "A password is needed here.",
                401,
                "password",
                {"WWW-Authenticate": 'Basic realm="Sureshot"'},
            )
        if scope["method"] in _READING:
            return None
        if not _equal(headers.get(TOKEN, ""), self._token):
            return error_reply(
                f"This changes something, so it needs the header {TOKEN} with the token that the "
                "page carries; load the page anew.",
                403,
                "token",
            )
        return _too_large(headers)

    def _is_ours(self, hosts: list[str]) -> bool:
        """Whether a request calls this machine by a name of its own."""
        if len(hosts) != 1:
            return False
        host = _without_port(hosts[0]).lower()
        if is_loopback(host) or host in self._names:
            return True
        return bool(self._names) and _is_address(host)

    def _knows_password(self, authorization: str) -> bool:
        kind, _, encoded = authorization.partition(" ")
        try:
            given = base64.b64decode(encoded, validate=True).partition(b":")[2]
        except (ValueError, binascii.Error):
            return False
        same = hmac.compare_digest(given, self._password.encode())
        return same and kind.lower() == "basic"


def _from_here(scope: Scope, headers: Headers) -> bool:
    """Whether no other site makes a browser ask; a link to the page may stand anywhere."""
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return True
    opens_page = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
    return opens_page and headers.get("sec-fetch-dest") == "document"


def _too_large(headers: Headers) -> Response | None:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        return error_reply("Say with Content-Length how large the request is.", 411, "length")
    if int(length[:12]) > LARGEST:
        return error_reply(f"This is larger than {LARGEST // 1_000_000} MB.", 413, "size")
    return None


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _without_port(host: str) -> str:
    """A host as a name or address.

    Examples:
        >>> [_without_port(host) for host in ("[::1]:80", "[::1]", "localhost:80", "127.0.0.1")]
        ['::1', '::1', 'localhost', '127.0.0.1']
    """
    if host.startswith("["):
        inside, _, rest = host[1:].partition("]")
        return inside if rest == "" or (rest[0] == ":" and rest[1:].isdigit()) else ""
    name, _, port = host.partition(":")
    return name if port.isdigit() or not port else ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

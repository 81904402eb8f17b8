"""Request checks: host, origin, password, token and size.

1. Host must name this machine, so that a foreign name rebound to this address reads nothing.
2. The request must not come from a page of another site.
3. A server that is open to a network needs the password.
4. Anything but reading needs the token that the page carries.
5. The body must be small.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import re
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sureshot.web.schema import error_reply

TOKEN = "X-Sureshot-Token"
LARGEST = 25_000_000  # bytes of a request
_HOST = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<name>[^:]+))(?::\d*)?")
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
    """Names by which other machines may call this one when it listens beyond loopback."""
    own = socket.gethostname().lower()
    return frozenset({host.lower(), own, f"{own}.local", socket.getfqdn().lower()})


class SecurityMiddleware:
    """Refuse requests that fail one of the checks, and set security headers on every reply.

    Args:
        names: accepted host names besides loopback. With any, bare IP addresses are accepted too:
            DNS rebinding needs a name.
        password: required for every request; empty when only this machine is served.
        delay: seconds before a wrong password is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        names: Iterable[str] = (),
        password: str = "",
        delay: float = 1.0,
    ) -> None:
        self._app = app
        self._token = token
        self._names = frozenset(names)
        self._password = password
        self._delay = delay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None and refusal.status_code == 401 and "authorization" in headers:
            await asyncio.sleep(self._delay)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_ours(headers.getlist("host")):
            return error_reply(
                "This server answers to localhost only; open the address that it printed.",
                421,
                "host",
            )
        if not _is_same_site(scope, headers):
            return error_reply("A page of another site sent this; nothing was done.", 403, "site")
        if self._password and not self._has_password(headers.get("authorization", "")):
            challenge = {"WWW-Authenticate": 'Basic realm="Sureshot"'}
            return error_reply("This server needs a password.", 401, "password", challenge)
        if scope["method"] in ("GET", "HEAD"):
            return None
        if not hmac.compare_digest(headers.get(TOKEN, "").encode(), self._token.encode()):
            return error_reply(
                f"Changes need the header {TOKEN} with the token from the page; reload the page.",
                403,
                "token",
            )
        return _size_refusal(headers)

    def _is_ours(self, hosts: list[str]) -> bool:
        match = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if match is None:
            return False
        host = match["ipv6"] or match["name"]
        return is_loopback(host) or host in self._names or (bool(self._names) and _is_address(host))

    def _has_password(self, authorization: str) -> bool:
        kind, _, encoded = authorization.partition(" ")
        try:
            given = base64.b64decode(encoded, validate=True).partition(b":")[2]
        except (ValueError, binascii.Error):
            return False
        same = hmac.compare_digest(given, self._password.encode())
        return same and kind.lower() == "basic"


def _is_same_site(scope: Scope, headers: Headers) -> bool:
    """Whether no other site made the browser send this; a link may open the page itself."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    opens_page = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
    return opens_page and headers.get("sec-fetch-dest") == "document"


def _size_refusal(headers: Headers) -> Response | None:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        return error_reply("State the size of the request in Content-Length.", 411, "length")
    if int(length[:12]) > LARGEST:
        return error_reply(f"This is larger than {LARGEST // 1_000_000} MB.", 413, "size")
    return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

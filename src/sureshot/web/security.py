"""Request checks: host, origin, credentials and size.

1. Host must name this machine, so that a foreign name rebound to this address reads nothing.
2. The request must not come from a page of another site.
3. It must bring the secret of the printed address or, where there is one, the password; or the
   cookie that either has left. Loopback is no exception: other accounts reach it as well.
4. Anything but reading needs a header that no page of another site can send.
5. The body must be small.
"""

import base64
import contextlib
import hmac
import html
import ipaddress
import math
import re
import secrets
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from urllib.parse import parse_qs, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sureshot.errors import option
from sureshot.web.schema import error_reply

CHANGES = "X-Sureshot"
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
_NEEDS_SECRET = (
    "This server answers to those who know its secret. Open the address that `sureshot serve` "
    "printed, with the token at its end; programs send that as `Authorization: Bearer`."
)
_FREE = 3  # wrong passwords of an address before it has to wait
_LONGEST = 300.0  # seconds that it waits then, after 1, 2, 4 ...
_FORGIVEN = 3600.0  # seconds after the last wrong one
_BURST = 20.0  # wrong passwords of all addresses at once; then one a second
_ADDRESSES = 10_000  # that are remembered


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this very machine.

    Examples:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0")]
        [True, True, True, False]
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def own_names(host: str) -> frozenset[str]:
    """Names by which other machines may call this one when it listens beyond loopback."""
    own = socket.gethostname().lower()
    return frozenset({host.lower(), own, f"{own}.local", socket.getfqdn().lower()})


class Guesses:
    """Wrong passwords: each makes its address wait longer, and many make all addresses wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, tuple[int, float]] = {}  # how many, and when the last one
        self._all = 0.0  # time up to which the guesses of all addresses are used up

    def wait(self, host: str) -> float:
        """Seconds until a password from an address is looked at."""
        now = self._clock()
        number, last = self._wrong.get(_network(host), (0, 0.0))
        own = min(2.0 ** (number - _FREE), _LONGEST) if number >= _FREE else 0.0
        return max(last + own - now, self._all - _BURST - now, 0.0)

    def wrong(self, host: str) -> None:
        """A wrong password came from an address."""
        now, network = self._clock(), _network(host)
        number, last = self._wrong.pop(network, (0, now))
        if len(self._wrong) >= _ADDRESSES:
            del self._wrong[next(iter(self._wrong))]  # the one that was wrong longest ago
        self._wrong[network] = (number + 1 if now - last < _FORGIVEN else 1), now
        self._all = max(self._all, now) + 1


@dataclass(eq=False, repr=False)
class SecurityMiddleware:
    """Refuse requests that fail one of the checks, and set security headers on every reply.

    Args:
        secret: of the printed address; with neither this nor a password, all may ask.
        once: a secret that opens the page once, for the command line of a browser, which other
            accounts can see.
        names: accepted host names besides loopback. With any, bare IP addresses are accepted too:
            DNS rebinding needs a name.
        password: what a browser asks for; then the secret does not count.
    """

    app: ASGIApp
    _: KW_ONLY
    secret: str = ""
    once: str = ""
    names: Collection[str] = ()
    password: str = ""
    guesses: Guesses = field(default_factory=Guesses)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope = _in_origin_form(scope)
        headers = Headers(scope=scope)
        refusal, cookie = self._looked_at(scope, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                reply = MutableHeaders(scope=message)
                reply.update(_HEADERS)
                reply.setdefault("Cache-Control", "no-store")
                if cookie:
                    reply.append("Set-Cookie", f"{cookie}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        # A file that was cut short leaves the reply unfinished, which closes the connection.
        with contextlib.suppress(EOFError):
            await (refusal or self.app)(scope, receive, send_with_headers)

    def _looked_at(self, scope: Scope, headers: Headers) -> tuple[Response | None, str]:
        """Why a request is refused, if it is, and the cookie to set, if any."""
        if not self._is_ours(headers.getlist("host")):
            message = (
                "This server does not answer to that name. Open the address that it printed, or "
                f"give it the name with {option('name')}."
            )
            return error_reply(message, 421, "host"), ""
        if not _is_same_site(scope, headers):
            message = "A page of another site sent this; nothing was done."
            return error_reply(message, 403, "site"), ""
        refusal, cookie = self._stranger(scope, headers)
        if refusal is None and scope["method"] not in ("GET", "HEAD"):
            by_program = headers.get("authorization", "").lower().startswith("bearer ")
            if not by_program and CHANGES not in headers:
                message = f"Changes need the header `{CHANGES}: 1`, which other sites cannot send."
                return error_reply(message, 403, "header"), ""
            refusal = _size_refusal(headers)
        return refusal, cookie

    def _stranger(self, scope: Scope, headers: Headers) -> tuple[Response | None, str]:
        """The refusal of somebody who shows nothing, and the cookie for who shows it first."""
        if not self.password and not self.secret:
            return None, ""
        name = f"sureshot-{(scope.get('server') or ('', 0))[1]}"  # cookies hold for all ports
        if _same(cookie_parser(headers.get("cookie", "")).get(name, ""), self.cookie):
            return None, ""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if self.password:
            host = (scope.get("client") or ("",))[0]
            encoded = given if kind.lower() == "basic" else None
            refusal = self._password_refusal(host, encoded)
        elif kind.lower() == "bearer" and _same(given.strip(), self.secret):
            return None, ""
        else:
            refusal = self._secret_refusal(scope)
        return refusal, "" if refusal else f"{name}={self.cookie}"

    def _password_refusal(self, host: str, encoded: str | None) -> Response | None:
        if encoded is not None:
            wait = math.ceil(self.guesses.wait(host))
            if wait:
                message = f"Too many wrong passwords; try again in {wait} s."
                return error_reply(message, 429, "password", {"Retry-After": str(wait)})
            if _same(_password_in(encoded), self.password):
                return None
            self.guesses.wrong(host)
        challenge = {"WWW-Authenticate": 'Basic realm="Sureshot"'}
        return error_reply("This server needs a password.", 401, "password", challenge)

    def _secret_refusal(self, scope: Scope) -> Response | None:
        challenge = {"WWW-Authenticate": 'Bearer realm="Sureshot"'}
        if scope["path"] not in ("/", "/api"):
            return error_reply(_NEEDS_SECRET, 401, "token", challenge)
        (token, *_) = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        if self.once and _same(token, self.once):
            self.once = ""
            return None
        if _same(token, self.secret):
            return None
        page = (
            '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">'
            f"<title>Sureshot</title><p>{html.escape(_NEEDS_SECRET)}</p>"
        )
        return HTMLResponse(page, 401, challenge)

    def _is_ours(self, hosts: list[str]) -> bool:
        match = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if match is None:
            return False
        host = match["ipv6"] or match["name"].rstrip(".")
        is_named = host in self.names or (bool(self.names) and _address(host) is not None)
        return is_loopback(host) or is_named


def _in_origin_form(scope: Scope) -> Scope:
    """The same request, where it names a whole address, as those that pass a proxy do."""
    whole = re.fullmatch(rb"https?://([^/]*)(.*)", scope["raw_path"], re.IGNORECASE)
    if whole is None:
        return scope
    host, path = whole[1], whole[2] or b"/"
    headers = [(b"host", host), *(one for one in scope["headers"] if one[0] != b"host")]
    path_named = {"raw_path": path, "path": unquote(path.decode("latin-1"))}
    return {**scope, **path_named, "headers": headers}


def _same(given: str, known: str) -> bool:
    """Whether two secrets are the same, in a time that does not say where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())


def _password_in(encoded: str) -> str:
    """The password of Basic authentication."""
    try:
        return base64.b64decode(encoded, validate=True).partition(b":")[2].decode()
    except ValueError:
        return ""


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
    if int(length.lstrip("0")[:12] or 0) > LARGEST:
        return error_reply(f"This is larger than {LARGEST // 1_000_000} MB.", 413, "size")
    return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _network(host: str) -> str:
    """What counts as one address: of IPv6 a household has 64 bits to choose from."""
    address = _address(host)
    if not isinstance(address, ipaddress.IPv6Address) or address.ipv4_mapped:
        return host
    return address.exploded[:19]

"""Host, origin, password, token and size of requests."""

import base64

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from sureshot.web.security import LARGEST, TOKEN, SecurityMiddleware, is_loopback, own_names

SECRET = "a secret of the tests"
OPEN = {TOKEN: SECRET}


async def behind(scope, receive, send):
    await PlainTextResponse("inside")(scope, receive, send)


def client(**settings) -> TestClient:
    return TestClient(
        SecurityMiddleware(behind, token=SECRET, **settings), base_url="http://127.0.0.1"
    )


def test_all_names_of_loopback_are_let_through() -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8460", "127.0.0.2:1"):
        assert client().get("/", headers={"Host": host}).text == "inside", host


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.7"),
        *("[::2]", "", "localhost:evil", "[::1]evil", "127.0.0.1:80:80", "evil@localhost"),
    ],
)
def test_a_name_bound_to_this_machine_anew_reads_nothing(host) -> None:
    reply = client().get("/", headers={"Host": host})
    assert (reply.status_code, "localhost only" in reply.json()["error"]["message"]) == (421, True)


def test_two_hosts_are_none() -> None:
    headers = [("Host", "localhost"), ("Host", "evil.example")]
    assert client().get("/", headers=headers).status_code == 421


def test_pages_of_other_sites_read_nothing() -> None:
    for site in ("cross-site", "same-site"):
        reply = client().get("/api/status", headers={"Sec-Fetch-Site": site})
        assert (reply.status_code, "another site" in reply.json()["error"]["message"]) == (
            403,
            True,
        )
    assert client().get("/api/status", headers={"Sec-Fetch-Site": "same-origin"}).text == "inside"


def test_a_link_from_elsewhere_opens_the_page_and_nothing_else() -> None:
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert client().get("/", headers=link).text == "inside"
    assert client().get("/api/status", headers=link).status_code == 403
    assert client().get("/", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_what_changes_something_needs_the_token(method) -> None:
    assert client().request(method, "/").status_code == 403
    assert client().request(method, "/", headers={TOKEN: SECRET[:-1]}).status_code == 403
    assert client().request(method, "/", headers={TOKEN: "é".encode("latin-1")}).status_code == 403
    assert client().request(method, "/", headers=OPEN).text == "inside"


def test_the_host_is_looked_at_before_the_token() -> None:
    assert client().post("/", headers=OPEN | {"Host": "evil.example"}).status_code == 421


def test_large_requests_are_turned_away_unread() -> None:
    large = OPEN | {"Content-Length": str(LARGEST + 1)}
    assert client().post("/", headers=large).status_code == 413
    assert client().post("/", headers=OPEN | {"Content-Length": "9" * 30}).status_code == 413
    assert client().post("/", headers=OPEN | {"Content-Length": "-1"}).status_code == 411

    def unknown():
        yield b"some"

    assert client().post("/", headers=OPEN, content=unknown()).status_code == 411


def test_every_reply_forbids_code_and_content_from_elsewhere() -> None:
    for reply in (client().get("/"), client().get("/", headers={"Host": "evil.example"})):
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in reply.headers


# --- a network ------------------------------------------------------------------------------------


def known(password: str, user: str = "me") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_a_network_needs_the_password_even_to_read() -> None:
    guarded = client(names=own_names("0.0.0.0"), password="swordfish", delay=0.0)
    reply = guarded.get("/")
    assert (reply.status_code, reply.headers["WWW-Authenticate"][:5]) == (401, "Basic")
    for wrong in ("swordfis", "swordfish ", "", "swordfish:"):
        assert guarded.get("/", headers=known(wrong)).status_code == 401
    for odd in ("Basic", "Basic !", "Bearer swordfish", "Basic " + "é"):
        assert guarded.get("/", headers={"Authorization": odd.encode()}).status_code == 401
    assert guarded.get("/", headers=known("swordfish")).text == "inside"
    assert guarded.post("/", headers=known("swordfish")).status_code == 403


def test_in_a_network_addresses_and_own_names_are_let_through() -> None:
    guarded = client(names=own_names("0.0.0.0"), password="swordfish")
    for host, code in (("192.168.0.7:8460", 200), ("[fe80::1]", 200), ("evil.example", 421)):
        assert guarded.get("/", headers=known("swordfish") | {"Host": host}).status_code == code


def test_loopback_is_this_machine_alone() -> None:
    assert all(map(is_loopback, ("localhost", "LOCALHOST", "127.1.2.3", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.com", "localhost.example.com", "")))

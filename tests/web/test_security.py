"""Host, origin, credentials and size of requests."""

import base64

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from sureshot.web.security import (
    CHANGES,
    LARGEST,
    Guesses,
    SecurityMiddleware,
    is_loopback,
    own_names,
)

SECRET, ONCE = "a secret of the tests", "a secret that works once"
MEANT = {CHANGES: "1"}


async def behind(scope, receive, send):
    await PlainTextResponse("inside")(scope, receive, send)


def client(**settings) -> TestClient:
    return TestClient(SecurityMiddleware(behind, **settings), base_url="http://127.0.0.1:8460")


def refused(reply, code, words):
    return (reply.status_code, words in reply.json()["error"]["message"]) == (code, True)


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
def test_a_name_rebound_to_this_machine_reads_nothing(host) -> None:
    assert refused(client().get("/", headers={"Host": host}), 421, "does not answer to that name")
    two = [("Host", "localhost"), ("Host", host)]
    assert client().get("/", headers=two).status_code == 421


def test_pages_of_other_sites_read_nothing_and_a_link_opens_the_page() -> None:
    for site in ("cross-site", "same-site"):
        reply = client().get("/api/status", headers={"Sec-Fetch-Site": site})
        assert refused(reply, 403, "another site")
    assert client().get("/api/status", headers={"Sec-Fetch-Site": "same-origin"}).text == "inside"
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert client().get("/", headers=link).text == "inside"
    assert client().get("/api/status", headers=link).status_code == 403
    assert client().get("/", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_what_changes_something_needs_a_header_that_other_sites_cannot_send(method) -> None:
    assert client().request(method, "/").status_code == 403
    assert client().request(method, "/", headers=MEANT).text == "inside"
    assert client().request(method, "/", headers=MEANT | {"Host": "evil.example"}).is_error


def test_large_requests_are_turned_away_unread() -> None:
    for length in (str(LARGEST + 1), "9" * 30, "00000000000099999999"):
        large = MEANT | {"Content-Length": length}
        assert client().post("/", headers=large).status_code == 413
    assert client().post("/", headers=MEANT | {"Content-Length": "-1"}).status_code == 411
    assert client().post("/", headers=MEANT | {"Content-Length": "0" * 30}).text == "inside"

    def unknown():
        yield b"some"

    assert client().post("/", headers=MEANT, content=unknown()).status_code == 411


def test_every_reply_forbids_code_and_content_from_elsewhere() -> None:
    for reply in (client().get("/"), client().get("/", headers={"Host": "evil.example"})):
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in reply.headers


# --- the secret of the printed address ------------------------------------------------------------


def test_without_the_secret_nothing_is_answered_on_loopback_either() -> None:
    page = client(secret=SECRET, once=ONCE)
    assert refused(page.get("/api/status"), 401, "its secret")
    for address in ("/", "/api", "/?token=", f"/?token={SECRET}x", f"/?token={ONCE}x", "/?token=é"):
        reply = page.get(address)
        assert (reply.status_code, "its secret" in reply.text) == (401, True), address
        assert reply.headers["Content-Type"].startswith("text/html")
    for wrong in (f"Bearer {SECRET[:-1]}", f"Bearer {ONCE}", f"Basic {SECRET}", "Bearer", "é"):
        reply = page.get("/api/status", headers={"Authorization": wrong.encode()})
        assert (reply.status_code, "Set-Cookie" in reply.headers) == (401, False), wrong
    assert page.post("/", headers=MEANT).status_code == 401
    assert page.get(f"/api/status?token={SECRET}").status_code == 401  # only the page takes it


def test_the_secret_leaves_a_cookie_that_scripts_and_other_sites_cannot_read() -> None:
    page = client(secret=SECRET)
    reply = page.get("/", params={"token": SECRET, "q": "red"})
    assert reply.text == "inside"
    cookie, *settings = reply.headers["Set-Cookie"].split("; ")
    assert settings == ["Path=/", "HttpOnly", "SameSite=Strict"] and SECRET not in cookie
    reply = page.get("/api/status")
    assert reply.text == "inside" and "Set-Cookie" not in reply.headers
    assert page.post("/").status_code == 403
    assert page.post("/", headers=MEANT).text == "inside"
    name, _, value = cookie.partition("=")
    for other in (f"{name}={value[:-1]}", f"{name}=", f"other={value}"):
        stranger = client(secret=SECRET)
        assert stranger.get("/", headers={"Cookie": other}).status_code == 401


def test_a_secret_for_a_command_line_works_once() -> None:
    guarded = SecurityMiddleware(behind, secret=SECRET, once=ONCE)
    first, second = (TestClient(guarded, base_url="http://localhost") for _ in range(2))
    assert first.get("/", params={"token": ONCE}).text == "inside"
    assert first.get("/api/status").text == "inside"
    assert second.get("/", params={"token": ONCE}).status_code == 401
    assert second.get("/", params={"token": SECRET}).text == "inside"


def test_programs_send_the_secret_with_each_request() -> None:
    page, known = client(secret=SECRET), {"Authorization": f"Bearer {SECRET}"}
    for method in ("GET", "POST", "DELETE"):
        reply = page.request(method, "/api/status", headers=known)
        assert reply.text == "inside" and "Set-Cookie" not in reply.headers


# --- a network ------------------------------------------------------------------------------------


def known(password: str, user: str = "me") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def guarded(**settings) -> TestClient:
    return client(names=own_names("0.0.0.0"), password="swordfish", **settings)


def test_a_network_needs_the_password_even_to_read() -> None:
    reply = guarded().get("/")
    assert (reply.status_code, reply.headers["WWW-Authenticate"][:5]) == (401, "Basic")
    for wrong in ("swordfis", "swordfish ", "", "swordfish:"):
        assert guarded().get("/", headers=known(wrong)).status_code == 401
    for odd in ("Basic", "Basic !", "Bearer swordfish", "Basic " + "é"):
        assert guarded().get("/", headers={"Authorization": odd.encode()}).status_code == 401
    assert guarded().get("/", headers=known("swordfish")).text == "inside"
    assert guarded().post("/", headers=known("swordfish")).status_code == 403


def test_in_a_network_addresses_and_own_names_are_let_through() -> None:
    for host, code in (("192.168.0.7:8460", 200), ("[fe80::1]", 200), ("evil.example", 421)):
        reply = guarded().get("/", headers=known("swordfish") | {"Host": host})
        assert reply.status_code == code


def test_who_guesses_waits_and_who_was_let_in_does_not() -> None:
    now = [0.0]
    page = guarded(guesses=Guesses(lambda: now[0]))
    inside = {"Cookie": page.get("/", headers=known("swordfish")).headers["Set-Cookie"]}
    page.cookies.clear()
    codes = [page.get("/", headers=known("wrong")).status_code for _ in range(10)]
    assert codes == [401] * 3 + [429] * 7
    reply = page.get("/", headers=known("swordfish"))  # not even the right one is looked at
    assert refused(reply, 429, "try again in 1 s") and reply.headers["Retry-After"] == "1"
    assert page.get("/", headers=inside).text == "inside"
    now[0] = 1.0
    assert page.get("/", headers=known("wrong")).status_code == 401
    now[0] = 2.5
    assert page.get("/", headers=known("swordfish")).status_code == 429  # 2 s by now
    now[0] = 3.0
    assert page.get("/", headers=known("swordfish")).text == "inside"


def test_many_who_guess_together_wait_as_well() -> None:
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    looked_at = 0
    for number in range(60_000):
        host = f"10.{number % 250}.{number // 250 % 250}.1" if number % 2 else f"fe80::{number:x}"
        if not guesses.wait(host):
            guesses.wrong(host)
            looked_at += 1
        now[0] += 0.01
    assert looked_at <= 600 + 21 and guesses.wait("10.0.0.99") > 0
    now[0] += 4000
    assert not guesses.wait("10.0.0.1")


def test_of_a_household_with_ipv6_all_addresses_are_one() -> None:
    guesses = Guesses(lambda: 0.0)
    for number in range(3):
        guesses.wrong(f"2001:db8::{number}")
    assert guesses.wait("2001:db8::ffff") and not guesses.wait("2001:db8:1::1")


def test_loopback_is_this_machine_alone() -> None:
    assert all(map(is_loopback, ("localhost", "LOCALHOST", "127.1.2.3", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.com", "localhost.example.com", "")))

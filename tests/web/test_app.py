"""The addresses put together."""

import re

from tests.web.visitor import ALLOWED, TOKEN


def test_the_page_carries_the_token(visitor) -> None:
    reply = visitor.get("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert f'content="{TOKEN}"' in reply.text and "{{" not in reply.text


def test_nothing_on_the_page_is_inline_or_from_elsewhere(visitor) -> None:
    for address in ("/", "/api"):
        page = visitor.get(address).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)
        assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)


def test_the_page_makes_no_code_or_markup_of_texts_and_is_small(visitor) -> None:
    files = ("/", "/page.css", "/page.js", "/icon.svg")
    assert sum(len(visitor.get(file).content) for file in files) < 100_000
    for file in ("/page.js", "/api.js"):
        code = visitor.get(file).text
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|Function\(|document\.write", code
        )


def test_addresses_that_do_not_exist_are_told(visitor) -> None:
    for address in (
        "/nothing",
        "/../pyproject.toml",
        "/page/../app.py",
        "/%2e%2e/%2e%2e/etc/passwd",
    ):
        reply = visitor.get(address)
        assert (reply.status_code, list(reply.json())) == (404, ["schema", "error"])
    reply = visitor.post("/api/status", headers=ALLOWED)
    assert (reply.status_code, "other methods" in reply.json()["error"]["message"]) == (405, True)


def test_the_openapi_document_names_every_address_and_loads_no_page_from_elsewhere(visitor) -> None:
    paths = visitor.get("/api/openapi.json").json()["paths"]
    assert {"/api/search", "/api/like", "/api/describe", "/api/videos", "/api/status"} <= set(paths)
    assert visitor.get("/docs").status_code == visitor.get("/redoc").status_code == 404

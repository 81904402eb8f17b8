"""The site: built without a warning, and nothing on it is fetched from elsewhere."""

import functools
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from tests.paths import ROOT
from tests.web.browser import WAIT, launched

pytest.importorskip("mkdocstrings_handlers.python", reason="the extra [docs] is not installed")
pytest.importorskip("material", reason="the extra [docs] is not installed")
LOADED = {"src", "srcset", "poster", "data"}
FETCHED = {
    "stylesheet",
    "icon",
    "preload",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
SAID = {
    "index.html": "In ten minutes",
    "reference/python/index.html": "open_index",
    "reference/systems/index.html": "X-Pool",
    "reference/rest/index.html": "/api/search",
    "recipes/published/index.html": "duq-msrvtt.toml",
    "results/index.html": "verdicts",
    "LOG/index.html": "2026",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does: any warning fails."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


class Fetched(HTMLParser):
    """What a page has a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.addresses += [value for name, value in named.items() if name in LOADED]
        if tag == "link" and FETCHED & set(named.get("rel", "").split()):
            self.addresses.append(named.get("href", ""))


@pytest.mark.slow
def test_every_part_is_there_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """In one test, as the site is built for each process that looks at it."""
    missing = {
        page: said for page, said in SAID.items() if said not in (site / page).read_text("utf-8")
    }
    assert not missing
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    found = set()
    for page in pages:
        reader = Fetched()
        reader.feed(page.read_text("utf-8"))
        found |= {address for address in reader.addresses if urlparse(address).netloc}
    for sheet in site.rglob("*.css"):
        found |= set(re.findall(r"url\([\"']?((?:https?:)?//[^)]+)\)", sheet.read_text("utf-8")))
        found |= set(re.findall(r"@import[^;]+", sheet.read_text("utf-8")))
    assert not found


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_a_word_is_found_without_a_network(address: str) -> None:
    asked: list[str] = []
    with launched() as browser:
        page: Any = browser.new_page()  # type: ignore[attr-defined]

        def local(route: Any) -> None:
            asked.append(route.request.url)
            route.continue_() if route.request.url.startswith(address) else route.abort()

        page.route("**/*", local)
        page.goto(f"{address}/docs/start/")
        page.fill("input.md-search__input", "drop-frame")
        page.wait_for_selector(".md-search-result__item", timeout=WAIT)
        assert "Editors" in page.inner_text(".md-search-result__list")
    assert all(one.startswith((address, "data:", "blob:")) for one in asked)

"""How tests ask the server."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from starlette.testclient import TestClient
from starlette.types import ASGIApp

from sureshot.web.jobs import Jobs, Roots
from sureshot.web.media import ClipCache
from sureshot.web.security import CHANGES
from sureshot.web.server import make_app
from sureshot.web.session import Session

HERE = "http://127.0.0.1:8460"
ALLOWED = {CHANGES: "1"}
UNKNOWN = "0" * 32


def app_of(desk: Session, cache: ClipCache, jobs: Jobs | None = None, *roots: Path) -> ASGIApp:
    """The server of an index, by default with nothing that may be indexed."""
    return make_app(desk, cache, jobs or Jobs(desk), Roots(roots))


@contextlib.contextmanager
def visiting(db: object, films: Path, **options: str) -> Iterator[TestClient]:
    """Asks a server of an index of its own."""
    session = Session(db=str(db), **options)
    try:
        with TestClient(app_of(session, ClipCache(films)), base_url=HERE) as client:
            yield client
    finally:
        session.close()

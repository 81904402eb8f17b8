"""What the tests of the web share."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.session import Session
from tests.paths import ROOT
from tests.small_library import Library
from tests.web.visitor import HERE, app_of

PATIENCE = 400  # seconds for a test of browsers and servers, on a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Wait longer for these tests than for others, and then end their process.

    A browser that hangs does so in its own loop, which swallows what a signal raises.
    """
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "web"):
            item.add_marker(pytest.mark.timeout(PATIENCE, method="thread"))


@pytest.fixture(scope="session")
def desk(library: Library) -> Iterator[Session]:
    """The small library, open for all tests, which leave it as it is."""
    desk = Session(db=library.db)
    yield desk
    desk.close()


@pytest.fixture(scope="session")
def visitor(desk: Session, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Somebody on this machine who has not loaded the page."""
    cache = ClipCache(tmp_path_factory.mktemp("films"))
    with TestClient(app_of(desk, cache), base_url=HERE) as client:
        yield client


@pytest.fixture(scope="session")
def red(library: Library) -> str:
    """Id of ``red.mp4``."""
    return video_id(library.videos / "red.mp4")

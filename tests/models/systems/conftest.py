"""What tests of systems share."""

from pathlib import Path

import pytest

from tests.golden.whole import sets, unpacked


@pytest.fixture(
    scope="session",
    params=[pytest.param(source, marks=pytest.mark.golden) for source in sets() or [None]],
    ids=lambda source: getattr(source, "name", "none"),
)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of whole official models."""
    if request.param is None:
        pytest.skip("SURESHOT_GOLDEN names no folder of whole models")
    return unpacked(request.param, tmp_path_factory.mktemp("whole"))

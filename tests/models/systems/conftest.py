"""What tests of systems share."""

from pathlib import Path

import pytest

from tests.golden.whole import sets, unpacked


@pytest.fixture(scope="session", params=sets() or [None], ids=str)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of whole official models."""
    if request.param is None:
        pytest.skip("SURESHOT_GOLDEN names no folder of whole models")
    return unpacked(request.param, tmp_path_factory.mktemp("whole"))

"""A plan with data of a few small videos."""

import pytest

from tests.walls import plan


@pytest.fixture(scope="package")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder

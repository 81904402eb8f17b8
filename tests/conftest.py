"""What several tests share."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.buckets import Bucket, storage
from tests.golden import folders, numbers
from tests.small_library import Library, build

# A script run in the background is started deaf to Ctrl-C, one under nohup to the end of its
# terminal, and every process it starts inherits that; the tests that end one would wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Each process of the tests gets one core, as do those that it starts: threads of several processes
# that wait for one another on the same cores take many times as long. PyTorch obeys this too; it is
# not imported here, as the process that hands out the tests does without.
os.environ["OMP_NUM_THREADS"] = "1"

# No test outlives a loss of power, so none waits for the disk. Processes that tests start do sync;
# tests/faults/disk.py looks at what is synced, and when.
os.fsync = lambda opened: None

# A machine that is busy with other things must not fail a test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a process, a browser or a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Five small videos and their index. Tests read it and leave it as it is."""
    return build(tmp_path_factory.mktemp("library"))


@pytest.fixture(
    params=[pytest.param(folder, id=folder.name, marks=pytest.mark.golden) for folder in folders()]
)
def golden(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """Reads a file of reference numbers by its name; skips the test where there is none."""

    def read(name: str) -> dict[str, Any]:
        path = request.param / f"{name}.json"
        if not path.exists():
            pytest.skip(f"{request.param} has no {path.name}")
        return numbers(path)

    return read


@pytest.fixture(scope="session")
def storage_of_session() -> Iterator[Bucket]:
    """An S3 storage that all tests of a process share."""
    with storage() as bucket:
        yield bucket


@pytest.fixture
def bucket(storage_of_session: Bucket) -> Iterator[Bucket]:
    """An empty bucket of an S3 storage, at which the environment points."""
    storage_of_session.clear()
    yield storage_of_session
    storage_of_session.fault = lambda asked: None

"""A table of what became of the cases of all benches, printed at the end."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.world import SEED, Outcomes, World, build


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A library to harm; only copies of its index are.

    `SURESHOT_FAULTS_WORLD` names a folder that keeps it, for runs one part after another.
    """
    kept = os.environ.get("SURESHOT_FAULTS_WORLD")
    return build(Path(kept) if kept else tmp_path_factory.mktemp("world"))


@pytest.fixture
def outcomes(request: pytest.FixtureRequest, record_property: Any) -> Iterator[Outcomes]:
    """Counts how cases end; fails the test at its end where one ended as none may."""
    counted = Outcomes()
    yield counted
    record_property("outcomes", dict(counted))
    few = "\n".join(counted.wrong[:20])
    assert not counted.wrong, f"seed {SEED}, {len(counted.wrong)} cases:\n{few}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, also of what workers have counted."""
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "outcomes" and report.when == "teardown":
                    total.update(value)
    if total:
        terminalreporter.section(f"faults, seed {SEED}")
        for kind, count in sorted(total.items()):
            terminalreporter.write_line(f"{count:6}  {kind}")

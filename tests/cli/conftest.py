"""What the tests of the command line share."""

from collections.abc import Callable

import pytest

from sureshot.cli.app import run
from tests.cli.terminal import PLAIN, Ran


@pytest.fixture
def sureshot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Runs a command in this process, as if its output went into files."""
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return call

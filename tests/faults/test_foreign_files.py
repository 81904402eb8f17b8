"""Foreign files give what they hold or a reason: no trace, no crash, no hang, no other file.

A case of a failure is written again by the module it names, whose docstring says how.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.mutants import originals
from tests.faults.world import SEED, Outcomes, by_parts, cases

_SECONDS = 400  # of one part; what hangs is named by its number
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no named pipes, no alarms")


def read(module: str, folder: Path, numbers: range, outcomes: Outcomes) -> None:
    """Read so many cases in a process of their own, and count how that ends."""
    words = [str(folder), str(SEED), str(numbers.start), str(len(numbers))]
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"tests.faults.{module}", *words],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return outcomes.fail(module, f"case {(folder / 'at').read_text()}: hangs")
    *said, last = done.stdout.splitlines() or [""]
    for line in said:
        kind, _, count = line.rpartition(" ")
        if line.startswith("case "):
            outcomes.fail(module, line)
        else:
            outcomes[f"{module}: {kind}"] += int(count)
    if last != "done":
        at = (folder / "at").read_text()
        outcomes.fail(module, f"case {at}: {done.returncode}, {last} {done.stderr[-500:]}")
    return None


@by_parts(cases(80, 20_000), 500)
def test_damaged_media(tmp_path: Path, outcomes: Outcomes, numbers: range) -> None:
    (tmp_path / "originals").mkdir()
    originals(tmp_path / "originals")
    read("mutants", tmp_path, numbers, outcomes)


@by_parts(cases(25, 1000), 250)
def test_damaged_files_of_every_other_kind(
    tmp_path: Path, outcomes: Outcomes, numbers: range
) -> None:
    read("parsers", tmp_path, numbers, outcomes)

"""Foreign files of every kind but media give what they hold or a sentence: no trace, no hang.

`SURESHOT_FAULTS` is how many cases of each kind are tried and `SURESHOT_FAULTS_SEED` which ones.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.world import SEED, Outcomes, by_parts, cases


@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm for what hangs")
@by_parts(cases(25, 1000), 250)
def test_damaged_files_are_read_or_refused_in_a_sentence(
    tmp_path: Path, outcomes: Outcomes, numbers: range
) -> None:
    words = [str(tmp_path), str(SEED), str(numbers.start), str(len(numbers))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.parsers", *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    *told, last = done.stdout.splitlines() or [""]
    for line in told:
        outcomes.fail("files but media", line)
    if not last.endswith(" done"):
        at = (tmp_path / "at").read_text()
        return outcomes.fail("files but media", f"ends at {at}: {last} {done.stderr[-500:]}")
    refused, all_, _ = last.split()
    outcomes["files but media: refused in a sentence"] += int(refused)
    outcomes["files but media: read"] += int(all_) - int(refused)
    return None

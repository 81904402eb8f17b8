"""Foreign files of every kind but media give what they hold or a sentence: no trace, no hang.

`SURESHOT_FAULTS` is how many cases of each kind are tried and `SURESHOT_FAULTS_SEED` which ones.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = int(os.environ.get("SURESHOT_FAULTS", "25"))
SEED = int(os.environ.get("SURESHOT_FAULTS_SEED", "0"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm for what hangs")
@pytest.mark.timeout(240 + CASES)
def test_damaged_files_are_read_or_refused_in_a_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.parsers", str(tmp_path), str(SEED), "0", str(CASES)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    *told, last = done.stdout.splitlines() or [""]
    if last != "done":
        told.append(f"ends at {(tmp_path / 'at').read_text()}: {done.stderr[-500:]}")
    assert not told, f"seed {SEED}: " + "; ".join(told[:20])

"""Foreign media give frames or a reason: no trace, no crash, no hang, no other file.

`SURESHOT_FAULTS` is how many cases of each fuzzer are tried (80 in every run) and
`SURESHOT_FAULTS_SEED` which ones. A case of a failure is written anew by
`python -m tests.faults.mutants`, whose docstring says how.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.mutants import originals

CASES = int(os.environ.get("SURESHOT_FAULTS", "80"))
SEED = int(os.environ.get("SURESHOT_FAULTS_SEED", "0"))
_BATCH = 500  # cases of one process
_SECONDS = 200  # of one batch; what hangs is told by its number
_ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes to wait at")
@pytest.mark.timeout(240 + CASES)
def test_damaged_media_give_frames_or_a_reason(tmp_path):
    (tmp_path / "originals").mkdir()
    originals(tmp_path / "originals")
    faults = []
    for first in range(0, CASES, _BATCH):
        words = [str(tmp_path), str(SEED), str(first), str(min(_BATCH, CASES - first))]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.faults.mutants", *words],
                cwd=_ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            faults.append(f"case {(tmp_path / 'at').read_text()}: hangs")
            continue
        *told, last = done.stdout.splitlines() or [""]
        faults += told
        if last != "done":
            faults.append(f"case {(tmp_path / 'at').read_text()}: ends with {done.returncode}")
    assert not faults, f"seed {SEED}: " + "; ".join(faults[:20])

"""Foreign media give frames or a reason: no trace, no crash, no hang, no other file.

`SURESHOT_FAULTS` asks for more cases (80 in every run) and `SURESHOT_FAULTS_SEED` for other ones. A
case of a failure is written anew by `python -m tests.faults.mutants`, whose docstring says how.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.mutants import originals
from tests.faults.world import SEED, Outcomes, by_parts, cases

_SECONDS = 400  # of one part; what hangs is told by its number
_ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes to wait at")
@by_parts(cases(80, 20_000), 500)
def test_damaged_media_give_frames_or_a_reason(
    tmp_path: Path, outcomes: Outcomes, numbers: range
) -> None:
    (tmp_path / "originals").mkdir()
    originals(tmp_path / "originals")
    words = [str(tmp_path), str(SEED), str(numbers.start), str(len(numbers))]
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
        return outcomes.fail("media", f"case {(tmp_path / 'at').read_text()}: hangs")
    *told, last = done.stdout.splitlines() or [""]
    for line in told:
        if line.startswith("case "):
            outcomes.fail("media", line)
        else:
            kind, _, count = line.rpartition(" ")
            outcomes[f"media: {kind}"] += int(count)
    if last != "done":
        at = (tmp_path / "at").read_text()
        outcomes.fail("media", f"case {at}: ends with {done.returncode}, {last}")
    return None

"""A long run of `index` commits thousands of times, and its memory must not grow with them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sureshot.store.store import Store
from tests.encoded import make_store, record
from tests.processes import finish, start

_STATM = Path("/proc/self/statm")
_PAGE = 4096  # bytes


def fail_many(db: str, out: Path) -> None:
    """Note videos that fail, each in a commit; bytes in memory after some and after all."""
    store, seen = Store.open(db), []
    for number in range(230):
        store.fail(replace(record(f"{number}.mp4"), reason="is empty"))
        if number in (79, 229):
            seen.append(int(_STATM.read_text().split()[1]) * _PAGE)
    out.write_text(json.dumps(seen))


@pytest.mark.skipif(not _STATM.exists(), reason="memory is read from /proc")
def test_commits_leave_nothing_in_memory(tmp_path: Path) -> None:
    make_store(tmp_path / "db")
    assert finish(start(fail_many, str(tmp_path / "db"), tmp_path / "seen")) == [0]
    early, late = json.loads((tmp_path / "seen").read_text())
    # What Lance keeps of every version by itself comes to 14 MB for these 150, with a bound to 4.
    assert late - early < 9e6

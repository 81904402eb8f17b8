"""A long run of `index` commits thousands of times, and its memory must not grow with them."""

from dataclasses import replace
from pathlib import Path

from sureshot.store.index import Store
from tests.encoded import make_store, record


def test_commits_leave_nothing_in_memory(tmp_path: Path) -> None:
    make_store(tmp_path / "db")
    store = Store.open(tmp_path / "db")
    kept = []
    for number in range(230):
        store.fail(replace(record(f"{number}.mp4"), reason="is empty"))
        if number in (79, 229):
            kept.append(store._tables._session.size_bytes())
    # Without a bound Lance keeps what it read of every version: 17 MB of these 230, and no end.
    assert kept[0] < kept[1] < 9e6

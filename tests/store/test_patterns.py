"""Patterns of what is left out lie in the index."""

from pathlib import Path

from sureshot.store.tables import Tables
from sureshot.store.writing import store_patterns, stored_patterns
from tests.encoded import make_store
from tests.processes import barrier, exclude, finish, start


def test_processes_that_leave_things_out_at_once_lose_no_pattern(tmp_path: Path) -> None:
    place = Path(make_store(tmp_path / "index").location)
    gate = barrier(2)
    finish(*(start(exclude, place, gate, letter, 6) for letter in "ab"))
    wanted = sorted(f"{letter}{number}" for letter in "ab" for number in range(6))
    assert stored_patterns(Tables(str(place))) == tuple(wanted)


def test_patterns_are_kept_until_they_are_forgotten(tmp_path: Path) -> None:
    tables = Tables(make_store(tmp_path / "index").location)
    assert stored_patterns(tables) == ()
    store_patterns(tables, ["b", "*.gif"], excluded=True)
    store_patterns(tables, [], excluded=True)
    assert stored_patterns(Tables(tables.location)) == ("*.gif", "b")
    store_patterns(tables, ["b", "unknown"], excluded=False)
    assert stored_patterns(tables) == ("*.gif",)

"""Patterns of what is left out lie in the index."""

from pathlib import Path

from sureshot.store.patterns import store_patterns, stored_patterns
from sureshot.store.tables import Tables
from tests.encoded import make_store


def test_patterns_are_kept_until_they_are_forgotten(tmp_path: Path) -> None:
    tables = Tables(make_store(tmp_path / "index").location)
    assert stored_patterns(tables) == ()
    store_patterns(tables, ["b", "*.gif"], excluded=True)
    store_patterns(tables, [], excluded=True)
    assert stored_patterns(Tables(tables.location)) == ("*.gif", "b")
    store_patterns(tables, ["b", "unknown"], excluded=False)
    assert stored_patterns(tables) == ("*.gif",)

"""A folder of results is its tables with ranks, and what they say of the claims."""

from benchmarks.claims_page import pages_of, read_tested

from tests.research.reproduction.results import controls, decided_controls


def test_only_tables_with_ranks_count(tmp_path):
    controls(tmp_path, seeds=2)
    assert [path.name for path in pages_of(tmp_path)] == ["controls.md"]
    found = read_tested(tmp_path)
    assert found.title == "Synthetic test"
    assert list(found.tables) == ["controls"] and not found.decided
    assert len(decided_controls().decided) == 14
    (tmp_path / "controls.npz").unlink()
    assert read_tested(tmp_path) is None

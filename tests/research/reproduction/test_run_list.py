"""Runs come back from their CSV file."""

from sureshot.research.reproduction.runs import Run, read_runs, write_runs


def test_runs_come_back_with_the_scores_that_each_has(tmp_path):
    runs = [
        Run("a", 0, {"R@1": 12.5}, 3, 250.25, 1000, 2.0, 1.5, curve=(1.0, 2.5)),
        Run("b", 1, {"R@1": 11.0, "away: R@1": 3.0}, 2, 240.0, 900, 1.0),
    ]
    write_runs(tmp_path / "table.csv", runs)
    assert read_runs(tmp_path / "table.csv") == runs
    assert read_runs(tmp_path / "none.csv") == []

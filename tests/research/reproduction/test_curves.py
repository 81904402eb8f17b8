"""Learning curves are those of the runs, a line a row."""

from benchmarks.claims_page import draw_curves

from sureshot.research.reproduction.runs import Run, write_runs


def run(variant, seed, curve):
    scores = [float(score) for score in curve]
    return Run(variant, seed, {"R@1": 1.0}, 2, 55.5, 10, 1.0, curve=scores)


def test_each_row_with_a_curve_has_a_line(tmp_path):
    runs = [run("CLIP4Clip", 0, [1, 2, 3]), run("CLIP4Clip", 1, [2, 3, 4]), run("DUQ", 0, [2, 5])]
    write_runs(tmp_path / "controls.csv", runs)
    path = tmp_path / "curves.svg"
    assert draw_curves(tmp_path, path, ["CLIP4Clip", "DUQ"])
    assert "CLIP4Clip" in path.read_text() and "DUQ" in path.read_text()
    assert draw_curves(tmp_path, path, ["DUQ"])
    assert "CLIP4Clip" not in path.read_text()


def test_runs_without_curves_are_not_drawn(tmp_path):
    write_runs(tmp_path / "controls.csv", [run("DUQ", 0, [])])
    assert not draw_curves(tmp_path, tmp_path / "curves.png", ["DUQ"])
    assert not draw_curves(tmp_path / "none", tmp_path / "curves.png", ["DUQ"])

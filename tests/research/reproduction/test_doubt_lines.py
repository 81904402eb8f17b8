"""The table of doubts has a line a row and doubt."""

from benchmarks.claims_page import doubt_lines, doubts_of

from tests.research.reproduction.ranked import ranked


def test_every_doubt_of_every_row_has_its_numbers():
    lines = list(doubt_lines(doubts_of(ranked({"DUQ": 0.5, "CLIP4Clip": 0.4}, seeds=2)[""])))
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    assert len(rows) == 2 * 3
    row, doubt, auroc, own, known, saved, off = rows[0]
    assert (row, doubt) == ("DUQ", "vacuity")
    assert float(auroc.split(" ± ")[0]) > 0.8 and float(own.split(" ± ")[0]) > 0.8
    assert -1 <= float(known.split(" ± ")[0]) <= 1
    assert float(saved.split(" ± ")[0]) > 20 and saved.endswith(" %")
    assert 0 <= float(off.split(" ± ")[0]) < 20

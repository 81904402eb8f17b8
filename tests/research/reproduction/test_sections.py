"""A section has what is about its claims, and nothing of others."""

from sureshot.research.reproduction.sections import section
from sureshot.research.reproduction.tested import read_tested
from tests.research.reproduction.results import controls
from tests.research.reproduction.test_dose import world


def test_a_section_tells_verdicts_doubts_and_curves_of_each_data_set(tmp_path):
    controls(tmp_path / "made")
    controls(tmp_path / "clips", title="Clips test")
    tested = [read_tested(tmp_path / name) for name in ("made", "clips")]
    lines = list(section("DUQ", tmp_path, tested, []))
    assert lines[0] == "## DUQ"
    assert [one for one in lines if one.startswith("On ")] == [
        "On Made world test:",
        "On Clips test:",
    ]
    assert sum(one.startswith("| it is DUQ's uncertainty") for one in lines) == 2
    assert sum(one.startswith("| DUQ | vacuity") for one in lines) == 2
    text = "\n".join(lines)
    assert "DVTR" not in text and "CLIP4Clip |" not in text.replace("than CLIP4Clip (ours) |", "")
    assert "(made/curves-duq.png)" in text and "(clips/curves-duq.png)" in text
    assert (tmp_path / "clips" / "curves-duq.png").exists()


def test_dose_and_response_stands_where_its_mechanism_does(tmp_path):
    controls(tmp_path / "made")
    worlds = [world(tmp_path / f"w{dose}", dose, known) for dose, known in ((0.9, 0.8), (0.0, 0.4))]
    tested = [read_tested(tmp_path / "made")]
    found = {name: "\n".join(section(name, tmp_path, tested, worlds)) for name in ("DUQ", "DVTR")}
    assert "(dose-common.png)" in found["DVTR"] and "| known eta | R@1 |" in found["DVTR"]
    assert "dose" not in found["DUQ"] and (tmp_path / "dose-common.png").exists()
    assert not list(section("nobody", tmp_path, tested, worlds))

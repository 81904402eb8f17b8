"""A section has what is about its claims, and nothing of others."""

from dataclasses import replace

from benchmarks.claims_page import section

from tests.research.reproduction.results import controls, decided_controls
from tests.research.reproduction.test_dose import world


def test_a_section_tells_verdicts_doubts_and_curves_of_each_data_set(tmp_path):
    controls(tmp_path / "synthetic", seeds=1)  # for its curves
    controls(tmp_path / "clips", seeds=1)
    made = replace(decided_controls(), folder=tmp_path / "synthetic")
    tested = [made, replace(made, folder=tmp_path / "clips", title="Clips test")]
    lines = list(section("DUQ", tmp_path, tested, []))
    assert lines[0] == "## DUQ"
    assert [one for one in lines if one.startswith("On ")] == [
        "On Synthetic test:",
        "On Clips test:",
    ]
    assert sum(one.startswith("| it is DUQ's uncertainty") for one in lines) == 2
    assert sum(one.startswith("| DUQ | vacuity") for one in lines) == 2
    text = "\n".join(lines)
    assert "DVTR" not in text and "CLIP4Clip |" not in text.replace("than CLIP4Clip (ours) |", "")
    assert "(synthetic/curves-duq.png)" in text and "(clips/curves-duq.png)" in text
    assert (tmp_path / "clips" / "curves-duq.png").exists()


def test_dose_and_response_stands_where_its_mechanism_does(tmp_path):
    worlds = [world(tmp_path / f"w{dose}", dose, known) for dose, known in ((0.9, 0.8), (0.0, 0.4))]
    tested = [replace(decided_controls(), folder=tmp_path / "synthetic")]
    found = {name: "\n".join(section(name, tmp_path, tested, worlds)) for name in ("DUQ", "DVTR")}
    assert "(dose-common.png)" in found["DVTR"] and "| known eta | R@1 |" in found["DVTR"]
    assert "dose" not in found["DUQ"] and (tmp_path / "dose-common.png").exists()
    assert not list(section("nobody", tmp_path, tested, worlds))

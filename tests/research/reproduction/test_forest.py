"""The forest shows each claim that was measured, under its data set."""

from benchmarks.claims_page import Claim, draw_forest, judge_claims

from tests.research.reproduction.ranked import ranked


def claims(*says):
    return [
        Claim(paper="DUQ", says=one, table="t", more="more", less="less", printed="+3.0")
        for one in says
    ]


def test_every_claim_that_was_measured_is_drawn(tmp_path):
    tables = {"t": ranked({"more": 0.6, "less": 0.4})}
    found = judge_claims(claims("evidence helps", "samples help"), tables)
    unmeasured = judge_claims(claims("frames help"), {})
    path = tmp_path / "claims.svg"
    assert draw_forest({"Synthetic": [*found, *unmeasured], "Other": unmeasured}, path)
    text = path.read_text()
    for word in ("evidence", "samples", "Synthetic", "supported"):
        assert word in text
    assert "frames" not in text and "Other" not in text


def test_nothing_measured_is_no_picture(tmp_path):
    path = tmp_path / "claims.png"
    assert not draw_forest({"Synthetic": judge_claims(claims("frames help"), {})}, path)
    assert not path.exists()

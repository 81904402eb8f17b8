"""The answer says what was found, what could have been seen, and what doubts are worth."""

from dataclasses import replace

from benchmarks.claims_page import answer_lines, read_tested

from tests.research.reproduction.results import controls, decided_controls


def test_three_sentences_answer():
    find, _, see, _, trust = answer_lines([decided_controls()])
    assert find.startswith("**Does uncertainty help to find videos?** Against the same system")
    assert "no gain could be seen" in find
    assert "DUQ's uncertainty -" in find and "DVTR's eta +0.0 [" in find
    assert ", and any video that fits +0.0 [" in find and "not run often enough" not in find
    assert see.startswith("**Could we have seen it?** Yes. Eta is a guess")
    assert "a known eta helps CLIP4Clip (+" in see and "of 100 searches would have been seen" in see
    assert trust.startswith("**Does it know when it is wrong?**") and "vacuity of" in trust
    assert trust.endswith("(10 seeds).")


def test_without_verdicts_it_says_so(tmp_path):
    controls(tmp_path, seeds=3)
    (text,) = answer_lines([read_tested(tmp_path)])
    assert "No claim has a verdict yet" in text
    assert list(answer_lines([])) == [text]


def test_a_mechanism_that_waits_is_named():
    found = decided_controls()
    findings = [one for one in found.findings if one.claim.more != "UATVR"]
    find, *_ = answer_lines([replace(found, findings=findings)])
    assert find.endswith(" (not run often enough to say: UATVR's uncertainty).")


def test_several_data_sets_are_told_apart():
    found = decided_controls()
    find, _, _, _, trust = answer_lines([found, replace(found, title="Clips test")])
    assert ": on Synthetic test: DUQ's uncertainty -" in find
    assert "; on Clips test: DUQ's uncertainty -" in find
    assert "on Synthetic test the papers' uncertainties" in trust
    assert "; on Clips test the papers' uncertainties" in trust

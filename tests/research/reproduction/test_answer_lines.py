"""The answer says what was found, what could have been seen, and what doubts are worth."""

from sureshot.research.reproduction.answer_lines import answer_lines
from sureshot.research.reproduction.tested import read_tested
from tests.research.reproduction.results import controls


def test_three_sentences_answer(tmp_path):
    controls(tmp_path)
    (text,) = answer_lines([read_tested(tmp_path)])
    find, see, trust = (text.split("**")[n] for n in (2, 4, 6))
    assert "of 6 claims with a verdict 0 are supported, 2 contradicted" in find
    assert "beyond its control DUQ's uncertainty -" in find
    assert "a known eta helps CLIP4Clip by +" in see
    assert "points would have been seen" in see
    assert "AUROC" in trust and "vacuity of" in trust


def test_without_verdicts_it_says_so(tmp_path):
    controls(tmp_path, seeds=3)
    (text,) = answer_lines([read_tested(tmp_path)])
    assert "No claim has a verdict yet" in text
    assert list(answer_lines([])) == [text]

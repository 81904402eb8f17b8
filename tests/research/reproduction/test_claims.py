"""A claim is judged by its two rows, seed by seed; and every claim names rows that there are."""

from dataclasses import replace

import pytest

from sureshot.research.reproduction.claims import Claim, judge_claim, load_claims
from sureshot.research.reproduction.tables import load_tables

CLAIM = Claim(paper="X", says="more helps", table="t", more="more", less="less", printed="+1.0")
TESTED = [claim for claim in load_claims() if not claim.untested]
SIX = ("R@1", "R@5", "R@10", "v2t R@1", "v2t R@5", "v2t R@10")


def scores(more, less, prefix=""):
    """R@1 of both rows of each seed; the other recalls are twice as far apart."""
    found = {}
    for row, values in (("more", more), ("less", less)):
        for seed, value in enumerate(values):
            own = {prefix + name: 2.0 * value for name in SIX} | {f"{prefix}R@1": value}
            found[row, seed] = own
    return found


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ([11.0, 11.2, 10.8], "held"),
        ([9.0, 8.8, 9.2], "reversed"),
        ([10.4, 10.4, 10.4], "not seen"),  # steady, and too small
        ([10.0, 14.0, 9.0], "not seen"),  # large, and all over the place
        ([11.0], "held"),
    ],
)
def test_a_gap_must_be_large_and_steady(more, verdict):
    found = judge_claim(CLAIM, scores(more, [10.0, 10.0, 10.0]))
    assert found.verdict == verdict
    assert found.gap == pytest.approx(sum(more) / len(more) - 10)
    assert (found.deviation is None) == (len(more) == 1)


def test_the_deviation_is_that_of_the_gap_and_not_of_the_rows():
    found = judge_claim(CLAIM, scores([10.0, 20.0, 30.0], [9.0, 19.0, 29.0]))
    assert (found.verdict, found.gap, found.deviation) == ("held", 1.0, 0.0)


def test_only_seeds_that_both_rows_have_count():
    found = judge_claim(CLAIM, scores([11.0, 99.0], [10.0]))
    assert (found.gap, found.deviation) == (1.0, None)
    assert judge_claim(CLAIM, scores([], [10.0])).verdict == "not run"


def test_the_sum_of_six_and_the_other_data_set():
    total = replace(CLAIM, metric="rsum")
    found = judge_claim(total, scores([11.0, 11.0], [10.0, 10.0]))
    assert found.gap == pytest.approx(1 + 5 * 2)
    away = judge_claim(CLAIM, scores([11.0, 11.0], [10.0, 10.0], "B: "), "B: ")
    assert away.gap == pytest.approx(1)


@pytest.mark.parametrize("claim", TESTED, ids=lambda claim: f"{claim.table} {claim.says}")
def test_both_rows_of_a_claim_are_in_its_table(claim):
    rows = {variant.name for variant in load_tables()[claim.table].variants}
    assert {claim.more, claim.less} <= rows and claim.more != claim.less
    assert (claim.printed == "") == (claim.paper == "ours" or claim.table == "duq-s5")
    assert not claim.elsewhere or load_tables()[claim.table].elsewhere


def test_every_table_of_a_paper_has_a_claim_and_what_cannot_be_tested_says_why():
    assert {claim.table for claim in TESTED} == set(load_tables())
    assert {claim.paper for claim in TESTED} == {"DUQ", "UATVR", "DVTR", "ours"}
    untested = [claim for claim in load_claims() if claim.untested]
    assert untested and not any(claim.table or claim.more or claim.less for claim in untested)

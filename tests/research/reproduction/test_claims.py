"""A claim is judged by its two rows, seed by seed; and every claim names rows that there are."""

from dataclasses import replace

import pytest

from sureshot.metrics.published import rows_of_table
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
    mean = judge_claim(replace(CLAIM, metric="geometric mean"), scores([11.0], [10.0]))
    assert mean.gap == pytest.approx(4 ** (1 / 3))  # of 1, 2 and 2 times a value
    away = judge_claim(CLAIM, scores([11.0, 11.0], [10.0, 10.0], "B: "), "B: ")
    assert away.gap == pytest.approx(1)


@pytest.mark.parametrize("claim", TESTED, ids=lambda claim: f"{claim.table} {claim.says}")
def test_both_rows_of_a_claim_are_in_its_table(claim):
    rows = {variant.name for variant in load_tables()[claim.table].variants}
    assert {claim.more, claim.less} <= rows and claim.more != claim.less
    assert (claim.printed == "") == (claim.paper == "ours")
    assert not claim.elsewhere or load_tables()[claim.table].elsewhere


def printed_value(claim, name):
    """What the paper prints for a row; None where it prints nothing there."""
    table = load_tables()[claim.table]
    (variant,) = [one for one in table.variants if one.name == name]
    if variant.paper:
        return float(variant.paper.split()[0])
    rows = [
        row.r1
        for row in rows_of_table(table.table)
        if row.direction == "t2v" and (row.method, row.variant) == (variant.method, variant.printed)
        if row.dataset == ("DiDeMo" if claim.elsewhere else rows_of_table(table.table)[0].dataset)
    ]
    return rows[0] if rows else None


def test_printed_gaps_are_those_of_the_printed_rows():
    checked = 0
    for claim in TESTED:
        both = printed_value(claim, claim.more), printed_value(claim, claim.less)
        if None in both or not claim.printed.startswith("+"):
            continue
        gap = float(claim.printed.split(",")[0])
        assert gap == pytest.approx(both[0] - both[1], abs=0.051), claim.says
        checked += 1
    assert checked == 28


def test_printed_gaps_of_the_comparison_of_all_systems_are_those_of_the_main_tables():
    gaps = {claim.says: claim.printed for claim in TESTED if claim.table == "systems"}
    assert gaps == {
        "it helps CLIP4Clip": "any system",
        "it helps X-Pool": "any system",
        "it helps CLIP2Video": "+2.7, MSR-VTT full, B/16 against B/32",  # 32.5 - 29.8
        "it helps HiT": "+3.3, MSR-VTT full",  # 13.8 - 10.5
        "DUQ beats UATVR": "+3.7",  # 51.2 - 47.5
        "UATVR beats CLIP2Video": "+1.9",  # 47.5 - 45.6
        "UATVR beats X-Pool": "+0.6",  # 47.5 - 46.9
    }


def test_every_ablation_has_a_claim_and_what_cannot_be_tested_says_why():
    ablations = {name for name, table in load_tables().items() if table.stand_in}
    assert {claim.table for claim in TESTED} == ablations
    assert {claim.paper for claim in TESTED} == {"DUQ", "UATVR", "DVTR", "ours"}
    untested = [claim for claim in load_claims() if claim.untested]
    assert untested and not any(claim.table or claim.more or claim.less for claim in untested)

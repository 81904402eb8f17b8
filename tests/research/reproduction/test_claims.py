"""A claim is judged by its two rows, seed by seed; and every claim names rows that there are."""

from dataclasses import replace

import pytest
from benchmarks.claims_page import Claim, judge_claims, load_claims

from sureshot.metrics.published import rows_of_table
from sureshot.research.reproduction.plan import load_tables
from tests.research.reproduction.ranked import ranked

CLAIM = Claim(paper="X", says="more helps", table="t", more="more", less="less", printed="+1.0")
TESTED = [claim for claim in load_claims() if not claim.untested]


def found(more, less, claim=CLAIM, test=""):
    """What ranks with these shares of hits say of a claim."""
    tables = {"t": ranked({"more": more, "less": less}, tests=("", "B: "))}
    (one,) = judge_claims([claim], tables)
    return one


@pytest.mark.parametrize(
    ("more", "verdict"),
    [(0.6, "supported"), (0.2, "contradicted"), (0.41, "too noisy to tell")],
)
def test_a_gap_over_ten_seeds_decides(more, verdict):
    one = found(more, 0.4, replace(CLAIM, printed="+0.5"))
    assert one.decision.verdict == verdict
    assert one.gap.value == pytest.approx(100 * (more - 0.4), abs=6)
    assert one.gap.seeds == 10


def test_a_small_gap_rules_a_large_printed_one_out():
    assert found(0.4, 0.4, replace(CLAIM, printed="+30.0")).decision.verdict == "ruled out"


def test_without_ranks_or_seeds_there_is_no_verdict():
    (one,) = judge_claims([CLAIM], {})
    assert (one.decision.verdict, one.gap) == ("not run", None)
    few = {"t": ranked({"more": 0.9, "less": 0.1}, seeds=9)}
    (one,) = judge_claims([CLAIM], few)
    assert one.decision.verdict == "not run" and one.gap.seeds == 9
    (one,) = judge_claims([replace(CLAIM, more="gone")], few)
    assert one.gap is None


def test_a_claim_about_another_data_set_is_judged_there():
    tables = {"t": ranked({"more": 0.4, "less": 0.4}, tests=("", "B: "), away=0.3)}
    home, away = judge_claims([CLAIM, replace(CLAIM, elsewhere=True)], tables)
    assert abs(home.gap.value) < 10 < away.gap.value


def test_what_fits_is_judged_only_where_it_is_known():
    tables = {"t": ranked({"more": 0.6, "less": 0.4})}
    fits = replace(CLAIM, metric="fits", printed="")
    assert judge_claims([fits], tables)[0].decision.verdict == "supported"
    for run in tables["t"][""].runs:
        del run.doubts["known ambiguity"]
    assert judge_claims([fits], tables)[0].gap is None


def test_claims_are_decided_with_their_family():
    """The same gap is enough alone, and not among many others."""
    tables = {"t": ranked({"more": 0.47, "less": 0.4})}
    (alone,) = judge_claims([CLAIM], tables)
    none = [replace(CLAIM, more="less", less="less", says=f"{n}") for n in range(30)]
    among = judge_claims([CLAIM, *none], tables)[0]
    apart = judge_claims([CLAIM, *[replace(one, family="other") for one in none]], tables)[0]
    assert among.decision.visible > apart.decision.visible == alone.decision.visible


def test_printed_gaps_are_read_from_words():
    assert replace(CLAIM, printed="+7.7, MSR-VTT to DiDeMo").printed_gap == 7.7
    assert replace(CLAIM, printed="any system").printed_gap is None


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
    assert checked == 26


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
    frames = {"duq-s5", "uatvr-5"}  # not testable on videos of two or four frames
    assert {claim.table for claim in TESTED} == (ablations - frames) | {"controls"}
    assert {claim.paper for claim in TESTED} == {"DUQ", "UATVR", "DVTR", "ours"}
    untested = [claim for claim in load_claims() if claim.untested]
    assert untested and not any(claim.table or claim.more or claim.less for claim in untested)

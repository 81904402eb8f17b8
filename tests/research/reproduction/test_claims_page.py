"""Claims are judged by their two rows, seed by seed, and the page says what was found."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from benchmarks.claims_page import (
    answer_lines,
    dose_lines,
    effect_lines,
    judge_claims,
    read_tested,
    responses,
    uncertainty_scores,
    write_pages,
)
from benchmarks.verdicts import Claim, Decision, load_claims

from sureshot.files import write_json
from sureshot.metrics.confidence import auroc
from sureshot.metrics.published import rows_of_table
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.plan import find_table, load_tables
from sureshot.research.reproduction.runs import PERCENT, write_ranks
from tests.research.reproduction.ranked import one_run, ranked

CLAIM = Claim(paper="X", says="more helps", table="t", more="more", less="less", printed="+1.0")
TESTED = [claim for claim in load_claims() if not claim.untested]


@pytest.mark.parametrize(
    ("more", "printed", "verdict"),
    [
        (0.6, "+0.5", "supported"),
        (0.2, "+0.5", "contradicted"),
        (0.41, "+0.5", "too noisy to tell"),
        (0.4, "+30.0", "ruled out"),
    ],
)
def test_a_gap_over_ten_seeds_decides(more, printed, verdict):
    tables = {"t": ranked({"more": more, "less": 0.4}, tests=("", "B: "))}
    (one,) = judge_claims([replace(CLAIM, printed=printed)], tables)
    assert one.decision.verdict == verdict
    assert one.gap.value == pytest.approx(100 * (more - 0.4), abs=6)
    assert one.gap.seeds == 10


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
    for run in tables["t"][""].values():
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


@pytest.mark.parametrize("claim", TESTED, ids=lambda claim: f"{claim.table} {claim.says}")
def test_both_rows_of_a_claim_are_in_its_table(claim):
    rows = {one.name: one.system.get("mode", "") for one in load_tables()[claim.table].variants}
    pairs = {mode: claim.rows(mode) for mode in ("well_posed", "paper")}
    told = {mode: pair for mode, pair in pairs.items() if all(pair)}
    assert told and all({*pair} <= {*rows} and len({*pair}) == 2 for pair in told.values())
    for mode, (more, _) in told.items():
        assert rows[more] in ("", mode), "a row that states another mode says nothing of this one"
    assert claim.printed or claim.paper == "ours"
    # Of each printed claim it is written down when its rows were chosen, and why.
    assert (claim.mapped and claim.why) or claim.paper == "ours"
    assert not claim.elsewhere or load_tables()[claim.table].tested_on


def printed_rows(claim, name, direction):
    """The printed rows of a row of a table."""
    table = load_tables()[claim.table]
    (variant,) = [one for one in table.variants if one.name == name]
    # Of a row that K does not change, several are printed; claims take that of the paper's K.
    names = [name for name in variant.printed if name.endswith("K=7")] or variant.printed
    return [
        row
        for row in rows_of_table(table.table)
        if row.direction == direction and row.method == variant.method and row.variant in names
        if row.dataset == ("DiDeMo" if claim.elsewhere else rows_of_table(table.table)[0].dataset)
    ]


def printed_value(claim, name):
    """What the paper prints for a row; None where it prints nothing there."""
    (variant,) = [one for one in load_tables()[claim.table].variants if one.name == name]
    if variant.paper:
        return float(variant.paper)
    return next((row.r1 for row in printed_rows(claim, name, "t2v")), None)


def printed_sum(claim, name):
    """The recalls of both directions that the paper prints for a row, added up."""
    rows = [printed_rows(claim, name, direction)[0] for direction in ("t2v", "v2t")]
    return sum(value for row in rows for value in (row.r1, row.r5, row.r10))


def test_printed_gaps_are_those_of_the_printed_rows():
    assert replace(CLAIM, printed="any system").printed_gap() is None
    checked, sums = 0, 0
    for claim in [claim for claim in TESTED if claim.paper != "ours"]:
        rows = claim.rows("well_posed" if claim.more else "paper")
        if claim.printed_rsum:
            more, less = (printed_sum(claim, row) for row in rows)
            assert claim.printed_gap("rsum") == pytest.approx(more - less, abs=0.051), claim.says
            sums += 1
        both = [printed_value(claim, row) for row in rows]
        if None in both or not claim.printed.startswith("+"):
            continue
        gap = float(claim.printed.split(",")[0])
        assert gap == pytest.approx(both[0] - both[1], abs=0.051), claim.says
        checked += 1
    assert (checked, sums) == (25, 4)


def test_every_ablation_has_a_claim_and_what_cannot_be_tested_says_why():
    tables = [one for one in load_tables().values() if one.kind != "figure"]
    ablations = {one.name for one in tables if one.stand_in}
    frames = {"duq-s5", "uatvr-5"}  # not testable on videos of two or four frames
    assert {claim.table for claim in TESTED} == (ablations - frames) | {"controls"}
    assert {claim.paper for claim in TESTED} == {"DUQ", "UATVR", "DVTR", "ours"}
    untested = [claim for claim in load_claims() if claim.untested]
    assert untested and not any(claim.table or claim.more or claim.less for claim in untested)


def page(folder, name, ranks, **facts):
    """Write the ranks of a table, and how it was made."""
    folder.mkdir(exist_ok=True)
    write_ranks(folder / f"{name}.npz", {"": ranks})
    about = Facts("", "A", "B", ["Synthetic test"], "small", "3 epochs", **facts, note="Old rows.")
    write_json(folder / f"{name}.json", asdict(about))


# --- uncertainties as confidences -----------------------------------------------------------------


def test_an_uncertainty_that_knows_scores_higher_than_noise():
    table = ranked({"DUQ": 0.5}, seeds=3)[""]
    found = {one.name: one for one in uncertainty_scores(table)}
    knows, noise = found["vacuity"], found["softmax entropy"]
    assert knows.of_paper and not noise.of_paper and len(knows.auroc) == 3
    assert min(knows.auroc) > 0.8 > 0.65 > noise.mean > 0.35
    run = one_run(0.5, 0)
    assert knows.auroc[0] == pytest.approx(auroc(-run.doubts["vacuity"], run.right))


def test_a_seed_without_a_percentage_is_left_out_and_a_perfect_row_has_no_score():
    run = one_run(0.5, 0)
    sure = replace(run, doubts={**run.doubts, PERCENT: np.where(run.right, 0.1, 0.8)})
    runs = {("DUQ", 1): one_run(0.5, 1), ("DUQ", 0): sure}
    found = {one.name: one for one in uncertainty_scores(runs)}
    assert found[PERCENT].auroc == [1.0] and len(found["vacuity"].auroc) == 2
    assert np.isnan(uncertainty_scores(ranked({"Bayes": 1.0}, seeds=2)[""])[0].auroc).all()


# --- dose and response ----------------------------------------------------------------------------


def test_a_response_grows_with_its_dose(tmp_path):
    table = find_table("dose-common")
    for dose, known in ((0.9, 0.8), (0.0, 0.4), (0.5, 0.6)):  # what a known eta finds
        share = dict.fromkeys([row.name for row in table.variants], 0.4)
        ranks = ranked(share | {"DVTR, known eta": known}, seeds=3)[""]
        page(tmp_path / f"w{dose}", "dose-common", ranks, options={"common": dose})
    found = responses(table, [*tmp_path.iterdir(), tmp_path])  # the last has no table
    known = [one for one in found if one.mechanism == "known eta"]
    assert [one.dose for one in known] == [0.0, 0.5, 0.9]
    assert abs(known[0].gap.value) < 12 < known[1].gap.value < known[2].gap.value
    assert known[2].gap.low > 0 and known[2].gap.seeds == 3
    lines = list(dose_lines(table, found))
    assert lines[0].endswith("| 0 | 0.5 | 0.9 |") and len(lines) == 3 + len(table.compared)
    assert not list(dose_lines(table, known[:1]))


# --- the page -------------------------------------------------------------------------------------


def controls(folder, seeds=10):
    """Write the table: a known eta helps, a learned one does not, DUQ is worse than its control."""
    share = dict.fromkeys([row.name for row in find_table("controls").variants], 0.4)
    page(folder, "controls", ranked(share | {"DVTR, known eta": 0.6, "DUQ": 0.2}, seeds=seeds)[""])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    controls(folder / "synthetic")
    (folder / "limits.md").write_text("What speaks against it: much.\n")
    return folder


def test_three_paragraphs_answer(results):
    (tested,) = read_tested(results / "synthetic")
    find, _, see, _, trust = answer_lines([tested])
    assert find.startswith("**Does uncertainty help to find videos?** In R@1 no mechanism beat its")
    assert "Not run" not in find
    effects = "\n".join(effect_lines([tested]))
    assert "| printed | +2.0 | +1.2 | +3.3 | 40 |" in effects and "] contradicted |" in effects
    assert "| +0.0 [" in effects and "] ruled out |" in effects
    assert "a known eta helps CLIP4Clip (+" in see and "would have been visible" in see
    assert trust.startswith("**Does it know when it is wrong?**") and "vacuity of" in trust
    duq = next(one for one in tested.findings if one.claim.less == "DUQ, means only")
    sums = [replace(duq, decision=Decision("supported", 1.0))]
    assert ", 1 is a gain and 0 are losses. " in next(answer_lines([replace(tested, sums=sums)]))
    findings = [one for one in tested.findings if one.claim.more != "UATVR"]
    find, *_ = answer_lines([replace(tested, findings=findings)])
    assert " Not run often enough to say: UATVR's uncertainty. " in find
    assert "Nothing is known yet of an enc" in find
    # An encoder that was trained too is a table of its own, and no verdict on frozen features.
    too = replace(tested, encoder="trained too", findings=[duq])
    assert too.name == "Synthetic test, encoder trained too, well-posed"
    assert "known yet" not in next(answer_lines([tested, too]))
    *_, row, _, _ = effect_lines([tested, too])
    assert row.startswith(f"| {too.name} | -") and "seeds" not in row


def read(folder):
    """Both pages, written now."""
    return [page.read_text("utf-8") for page in write_pages(folder) if page.suffix == ".md"]


def test_the_pages_have_the_verdicts_and_links_to_all_tables(results):
    text, verdicts = read(results)
    assert text.startswith("# Does uncertainty help text-video retrieval?\n")
    (row,) = [line for line in verdicts.splitlines() if line.startswith("| a known eta helps")]
    says, _, gap, verdict, visible, *_, seeds = row.strip("| ").split(" | ")
    assert (says, verdict, seeds) == ("a known eta helps CLIP4Clip", "supported", "10")
    assert gap.startswith("+") and "[" in gap and float(visible) > 0
    (fits,) = [line for line in verdicts.splitlines() if line.startswith("| with a known eta")]
    assert "] (fits) |" in fits
    assert "synthetic: [controls](synthetic/controls.md)" in verdicts and "](limits.md)" in text
    assert "](claims.png)" in text and (results / "claims.png").stat().st_size > 10_000
    assert "Old rows." in verdicts
    assert "](verdicts.md)" in text and len(text.split()) < 450
    assert read(results) == [text, verdicts]
    for claim in load_claims():  # a verdict, a command or a reason for each that is printed
        assert claim.paper == "ours" or claim.says in verdicts
    assert "`sureshot reproduce uatvr-4 --plan" in verdicts


def test_claims_as_printed_are_judged_by_the_folder_of_that_mode(tmp_path):
    """One row there is better; rows that say that they are as printed count wherever they are."""
    controls(tmp_path / "a")
    share = dict.fromkeys([row.name for row in find_table("controls").variants], 0.4)
    page(tmp_path / "a-paper", "controls", ranked(share | {"DUQ": 0.6}, seeds=10)[""])
    duq = dict.fromkeys([row.name for row in find_table("duq-3").variants], 0.4)
    page(tmp_path / "a", "duq-3", ranked(duq | {"#2 L_S+L_S^U (paper)": 0.7}, seeds=10)[""])
    ours, printed = read_tested(tmp_path / "a")
    assert (ours.mode, printed.mode) == ("well_posed", "paper")
    assert read_tested(tmp_path / "a-paper") == []
    of = [
        {one.claim.says: one.decision.verdict for one in part.findings} for part in (ours, printed)
    ]
    assert [one["DUQ beats UATVR"] for one in of] == ["contradicted", "supported"]
    assert (
        of[1]["evidence on similarities helps"]
        == "supported"
        != of[0]["evidence on similarities helps"]
    )
    assert of[1]["seven samples beat one"] == "not run"
    text, verdicts = read(tmp_path)
    assert "DUQ's uncertainty (Synthetic test, as printed) beat its control" in text
    assert "| Synthetic test, as printed | +" in text
    assert (
        "a-paper: [controls](a-paper/controls.md)" in verdicts
        and "Synthetic test, as printed" in verdicts
    )


def test_the_sum_of_recalls_counts_what_fits(tmp_path):
    """Own captions are found alike by both; of what fits one row finds more."""
    tables = {"t": ranked({"more": 0.4, "less": 0.4})}
    claim = replace(CLAIM, printed="", printed_rsum="1.0")
    assert judge_claims([claim], tables, rsum=True)[0].gap is None  # no ranks of what fits
    (old,) = tables["t"].values()
    runs = {
        (row, seed): replace(
            run,
            fitting_texts=np.full(len(run.texts), 1.0 if row == "more" else 7.0),
            fitting_videos=run.videos,
        )
        for (row, seed), run in old.items()
    }
    known = {"t": {"": runs}}
    (found,) = judge_claims([claim], known, rsum=True)
    assert found.decision.verdict == "supported" and found.gap.value == pytest.approx(200)
    assert found.printed == 1.0
    assert judge_claims([claim], known)[0].gap.value == pytest.approx(0, abs=8)


def test_too_few_seeds_have_no_verdict_and_no_tables_are_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(SystemExit, match="reproduce controls"):
            write_pages(folder)
    controls(tmp_path / "few", seeds=3)
    text, verdicts = read(tmp_path)
    assert "No claim has a verdict yet" in text
    assert (
        "(3 seeds) | " in text and "| no verdict |" in verdicts and "| supported |" not in verdicts
    )

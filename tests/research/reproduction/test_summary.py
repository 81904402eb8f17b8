"""The first page: from the numbers of the tables, and nothing else."""

import pytest
from benchmarks.claims_page import load_claims, write_summary

from sureshot.errors import SureshotError
from sureshot.research.reproduction.page import Facts, write_page
from sureshot.research.reproduction.plan import find_table
from sureshot.research.reproduction.runs import Run
from tests.research.reproduction.results import NAMES, controls


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A table of another day without ranks, and one of a synthetic dataset with them."""
    folder = tmp_path_factory.mktemp("results")
    table = find_table("duq-s3")
    runs = [
        Run(row.name, seed, dict.fromkeys(NAMES, 20.0), 2, 55.5, 1000, 10.0)
        for row in table.variants
        for seed in (0, 1, 2)
    ]
    facts = Facts("sureshot reproduce duq-s3", "A", "B", ["Frame subset"], "bridge", "6 epochs")
    write_page(folder, table, runs, facts)
    controls(folder / "synthetic")
    (folder / "limits.md").write_text("What speaks against it: much.\n")
    (folder / "reading.md").write_text("## A plain reading\n\nMuch.\n")
    return folder


@pytest.fixture(scope="module")
def text(results):
    return write_summary(results).read_text("utf-8")


def test_it_begins_with_the_answer_and_ends_with_what_a_person_reads(results, text):
    title, _, answer, *_ = text.splitlines()
    assert title == "# Does uncertainty help text-video retrieval?"
    assert answer.startswith("**Does uncertainty help to find videos?** Against")
    assert text.endswith("## A plain reading\n\nMuch.\n")
    parts = ("**Does it know", "What speaks against", "(claims.png)", "## DUQ", "## DVTR", "## How")
    assert sorted(map(text.index, parts)) == list(map(text.index, parts))
    assert (results / "claims.png").exists() and "(claims.png)" in text
    for family in ("duq", "uatvr", "dvtr", "positive-controls"):
        assert (results / "synthetic" / f"curves-{family}.png").exists()
        assert f"(synthetic/curves-{family}.png)" in text


def test_a_claim_has_its_verdict_gap_and_what_could_be_seen(results, text):
    (row,) = [line for line in text.splitlines() if line.startswith("| a known eta helps")]
    says, verdict, gap, _, visible, seeds, command = row.strip("| ").split(" | ")
    assert (says, verdict, seeds) == ("a known eta helps CLIP4Clip (ours)", "supported", "10")
    assert gap.startswith("+") and "[" in gap and float(visible) > 0
    assert command == "`sureshot reproduce controls`"
    assert "## Positive controls" in text and "On Synthetic test:" in text
    assert "| DUQ | vacuity | 0." in text and "| CLIP4Clip | softmax entropy |" not in text
    doubts = (results / "synthetic" / "doubts.md").read_text("utf-8")
    assert "| CLIP4Clip | softmax entropy | 0." in doubts and "(synthetic/doubts.md)" in text
    (fits,) = [line for line in text.splitlines() if line.startswith("| with a known eta")]
    assert fits.split(" | ")[2].endswith("(fits)")


def test_tables_without_ranks_give_no_verdict_and_are_named(results, text):
    assert "Frame subset" not in text
    left = text[text.index("## Without a verdict") : text.index("## Pages")]
    assert "`sureshot reproduce duq-s3 --seeds 10`: DUQ: cross-attention pools better" in left
    assert "controls" not in left
    assert "evidence of nothing" in text and "[duq-s3.md](duq-s3.md)" in text


def test_what_cannot_be_tested_is_said(results, text):
    for claim in load_claims():
        if claim.untested:
            assert f"* {claim.paper}, {claim.says}: {claim.untested}." in text


def test_too_few_seeds_are_shown_without_a_verdict(tmp_path):
    controls(tmp_path, seeds=3)
    text = write_summary(tmp_path).read_text("utf-8")
    assert "No claim has a verdict yet" in text
    assert "| no verdict |" in text and "| supported |" not in text


def test_a_folder_without_tables_is_told_what_to_run(tmp_path):
    with pytest.raises(SureshotError, match="reproduce controls"):
        write_summary(tmp_path)

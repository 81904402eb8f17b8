"""The first page: from the numbers of the tables, and nothing else."""

import json

import pytest

from sureshot.cli.app import run
from sureshot.errors import SureshotError
from sureshot.research.reproduction.page import Facts, write_page
from sureshot.research.reproduction.runs import Run
from sureshot.research.reproduction.summary import write_summary
from sureshot.research.reproduction.tables import find_table

FACTS = Facts("sureshot reproduce systems", "A train", "A val", ["A test", "B"], "tiny", "3 epochs")
NAMES = ("R@1", "R@5", "R@10", "MdR", "MnR", "R@Sum", "v2t R@1", "v2t R@5", "v2t R@10")


def made(name, seed, r1, parameters, **more):
    home = dict.fromkeys(NAMES, 20.0) | {"R@1": r1, "R@1 low": r1 - 3, "R@1 high": r1 + 4}
    away = {f"B: {score}": 5.0 for score in NAMES}
    return Run(name, seed, home | away | more, 2, 55.5, parameters, 10.0 * (seed + 1), 2.5)


@pytest.fixture
def results(tmp_path):
    """Some rows of the table of systems, of two seeds."""
    runs = [
        made(name, seed, r1 + seed, parameters)
        for seed in (0, 1)
        for name, r1, parameters in (
            ("CLIP4Clip", 10.0, 1_000_000),
            ("X-Pool", 12.0, 1_500_000),
            ("DVTR + X-Pool", 11.0, 9_000_000),
            ("UATVR", 14.0, 1_300_000),
            ("CLIP4Clip, stem of width 192", 11.0, 1_400_000),
            ("CLIP4Clip, stem of width 256", 11.5, 2_000_000),
        )
    ]
    write_page(tmp_path, find_table("systems"), runs, FACTS)
    return tmp_path


def line(text, start):
    (found,) = [row for row in text.splitlines() if row.startswith(start)]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_a_system_has_its_scores_interval_cost_and_a_rival_of_its_size(results):
    text = write_summary(results).read_text("utf-8")
    assert line(text, "| X-Pool |") == [
        "X-Pool",
        "12.5 ± 0.7 (9.5 to 16.5)",
        "20.0 ± 0.0",
        "20.0 ± 0.0",
        "20.0 ± 0.0",
        "20.0 ± 0.0",
        "5.0 ± 0.0",
        "1.50 M",
        "15",
        "2.5",
        "+0.5 ± 0.0",  # against the width of 256, the first that is large enough
    ]
    assert line(text, "| DVTR + X-Pool |")[-1] == "-0.5 ± 0.0"  # none is: the largest
    assert line(text, "| CLIP4Clip |")[-1] == ""


def test_claims_are_judged_and_those_without_runs_say_so(results):
    text = write_summary(results).read_text("utf-8")
    held = line(text, "| UATVR | UATVR beats X-Pool |")
    assert held[2:4] == ["held", "+2.0 ± 0.0"] and held[-1] == "`sureshot reproduce systems`"
    assert line(text, "| DVTR | it helps X-Pool |")[2] == "reversed"
    assert line(text, "| DUQ | evidence on similarities helps |")[2:4] == ["not run", ""]
    assert "claims 1 held here and 1 turned around" in text
    assert "* [systems](systems.md): All systems" in text and "duq-3.md" not in text


def test_what_a_person_reads_in_the_numbers_stands_at_the_end(results):
    (results / "reading.md").write_text("## A plain reading\n\nMuch.\n")
    (results / "other").mkdir()
    (results / "other" / "page.md").write_text("x")
    text = write_summary(results).read_text("utf-8")
    assert text.endswith("## A plain reading\n\nMuch.\n")
    assert "* [other/page.md](other/page.md)" in text


def test_without_the_table_of_systems_it_says_how_to_get_it(tmp_path):
    with pytest.raises(SureshotError, match="sureshot reproduce systems --to"):
        write_summary(tmp_path)


def test_the_command_writes_it_and_needs_no_plan(results, capsys):
    assert run(["reproduce", "summary", "--to", str(results)]) == 0
    assert capsys.readouterr().out.strip() == str(results / "README.md")
    assert run(["reproduce", "systems", "--to", str(results)]) == 2
    assert "--plan FILE" in capsys.readouterr().err
    assert json.loads((results / "systems.json").read_text())["tests"] == ["A test", "B"]

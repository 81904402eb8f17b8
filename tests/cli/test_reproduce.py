"""Tables made again, in one go or in parts, as a person types it."""

import json
import re

import numpy as np
import pytest

from sureshot.research.reproduction import runs
from tests.walls import plan


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder


def test_a_table_is_made_in_parts_and_then_written(sureshot, bench, tmp_path, monkeypatch):
    made, tmp_path = [], tmp_path / "two words"
    whole = runs.RetrievalTask
    monkeypatch.setattr(runs, "RetrievalTask", lambda *a, **k: made.append(a) or whole(*a, **k))

    def reproduce(*more):
        made.clear()
        where = ("--plan", bench / "plan.toml", "--to", tmp_path, "--cache", bench / "cache")
        ran = sureshot("reproduce", "duq-4", "--claims", *where, "--seeds", "2", *more)
        assert ran.code == 0
        return ran.out.splitlines(), len(made), len(list((tmp_path / "runs").glob("*.json")))

    assert reproduce("--part", "1/2") == ([], 3, 3)
    assert reproduce("--part", "1/2") == ([], 0, 3)  # finished already
    assert reproduce("--part", "2/2") == ([], 3, 6)
    printed, trained, kept = reproduce()
    assert (trained, kept) == (0, 6)
    kinds = ("md", "csv", "json", "png", "svg", "npz")
    assert printed == [str(tmp_path / f"duq-4.{kind}") for kind in kinds]
    text = (tmp_path / "duq-4.md").read_text("utf-8")
    plan = bench / "plan.toml"
    again = f"--plan {plan} --to '{tmp_path}' --seeds 2 --claims`; seeds 0, 1"
    assert f"`sureshot reproduce duq-4 {again}" in text and "other protocol" in text
    assert "## pairs pairs.csv test, 3 videos, 6 captions" in text and "## pairs walls away" in text
    for row in ("CLIP4Clip", "X-Pool", "DUQ"):
        lines = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
        assert len(lines) == 2
        assert all(re.search(r"\| \d+\.\d ± \d+\.\d \|", line) for line in lines)
        differs = [re.search(r"\| [+-]\d+\.\d ± \d+\.\d \|", line) for line in lines]
        assert all(differs) if row != "CLIP4Clip" else not any(differs)  # the first row
    rows = (tmp_path / "duq-4.csv").read_text().splitlines()
    assert len(rows) == 1 + 6
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    duq = [run["scores"]["R@1"] for run in records if run["variant"] == "DUQ"]
    assert f"| DUQ | {np.mean(duq):.1f} ± {np.std(duq, ddof=1):.1f} |" in text


def test_an_unknown_table_or_plan_or_part_is_named(sureshot, bench, tmp_path):
    where = ("--plan", bench / "plan.toml", "--to", tmp_path / "out")
    ran = sureshot("reproduce", "duq-4", *where, "--part=0/2")
    assert ran.code == 2 and "Invalid --part '0/2': use K/N" in ran.err
    assert not (tmp_path / "out").exists()
    for name, said in (
        ("duq3", "There is no table or figure 'duq3'; did you mean duq-3?"),
        ("accuracy", "There is no table or figure 'accuracy'; --list shows all of them."),
    ):
        ran = sureshot("reproduce", name, "--plan", bench / "plan.toml")
        assert ran.code == 1 and said in ran.err
    ran = sureshot("reproduce", "duq-3", "--plan", tmp_path / "gone.toml")
    assert ran.code == 1 and "Cannot read" in ran.err


# --- what there is --------------------------------------------------------------------------------


def test_the_list_names_all_tables_and_figures_a_line_each(sureshot):
    ran = sureshot("reproduce", "--list")
    lines = ran.out.splitlines()
    assert (ran.code, len(lines)) == (0, 35 + 18)
    said = "DUQ, table 2: other data sets; needs DiDeMo, LSMDC, Charades and VATEX"
    assert ["duq-2", said] in [line.split(maxsplit=1) for line in lines]
    assert any(line.startswith("uatvr-2 ") and line.endswith("needs no data") for line in lines)


def test_the_list_says_what_a_plan_has_and_lacks(sureshot, bench):
    ran = sureshot("reproduce", "--list", "--plan", bench / "plan.toml", "--json")
    found = {one["name"]: one for one in json.loads(ran.out)["exhibits"]}
    assert found["duq-3"]["where"] == ["home"] and found["duq-3"]["can_run"]
    assert not found["duq-2"]["can_run"] and found["duq-2"]["lacks"].startswith("DiDeMo, LSMDC")
    assert "Put LSMDC16_annos_training.csv" in found["duq-s1"]["missing"][0]
    text = sureshot("reproduce", "--list", "--plan", bench / "plan.toml").out
    assert "needs LSMDC; the plan lacks LSMDC" in text
    assert "table 3: losses; needs MSR-VTT 1k-A; runs on home" in text


def test_a_table_whose_data_are_not_there_says_which_files_go_where(sureshot, bench, tmp_path):
    ran = sureshot("reproduce", "uatvr-9", "--plan", bench / "plan.toml", "--to", tmp_path)
    assert ran.code == 1
    for part in ("MSVD is not in the plan", "raw-captions.pkl", "[data.msvd.train]"):
        assert part in ran.err


def test_a_table_and_a_plan_must_be_named_where_one_is_needed(sureshot):
    ran = sureshot("reproduce")
    assert ran.code == 2 and "--list" in ran.err
    ran = sureshot("reproduce", "duq-3")
    assert ran.code == 2 and "--plan" in ran.err

"""`reproduce`, `forecast` and `exhibits`; tests/cli/test_reproduce.py makes a whole table."""

import json
import shutil
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.models.checkpoint import Checkpoint
from sureshot.research.reproduction import reproduce as module
from sureshot.research.reproduction.plan import load_tables
from sureshot.research.reproduction.runs import read_ranks
from tests.asked import asked
from tests.heard import Heard
from tests.walls import PLAN

# --- forecast -------------------------------------------------------------------------------------


def test_runs_and_steps_are_counted(place, tmp_path):
    """Six videos in batches of four are two steps, one epoch; DVTR passes twice."""
    (one,) = research.forecast("duq-s3", place / "plan.toml", to=tmp_path, seeds=3).tables
    assert (one.runs, one.kept, one.steps) == (12, 0, 12 * 2) and one.seconds > 0
    heard = Heard()
    (two,) = research.forecast(
        "dvtr-9", place / "plan.toml", to=tmp_path, seeds=1, progress=heard
    ).tables
    assert heard.updates == [("rows measured", n, two.runs) for n in range(two.runs)]
    assert two.steps > 2 * two.runs


def test_time_is_that_of_steps_validations_tests_and_once_of_encoding(place, tmp_path, monkeypatch):
    asked = []

    def measured(recipe, cache, tests):
        asked.append((cache, [test.name for test in tests]))
        return SimpleNamespace(
            steps=2, epochs=3, seconds=1.0, validation=10.0, encoding=0.5, lacking=4, setup=100.0
        )

    monkeypatch.setattr(module, "dry_run", measured)
    plan, cache = place / "plan.toml", tmp_path / "cache"
    (one,) = research.forecast("duq-s3", plan, to=tmp_path, seeds=3, cache=cache).tables
    assert asked == [(cache, ["test"])] * 4  # a row each
    assert one.seconds == 12 * (2 * 3 * 1.0 + (3 + 2) * 10.0) + 4 * 0.5 + 100.0


def test_kept_runs_are_done(place, tmp_path):
    research.reproduce(
        "duq-s3", place / "plan.toml", to=tmp_path, seeds=1, part="1/2", cache=place / "cache"
    )
    (half,) = research.forecast(
        "duq-s3", place / "plan.toml", to=tmp_path, seeds=1, part="2/2"
    ).tables
    assert (half.runs, half.kept) == (2, 0)
    cost = research.forecast("duq-s3", place / "plan.toml", to=tmp_path, seeds=1)
    (one,) = cost.tables
    assert (one.runs, one.kept, one.steps) == (4, 2, 2 * 2)
    assert "duq-s3: 2 of 4 runs left, 4 steps, about" in cost.text()
    assert "together: 2 runs, 4 steps, " in cost.text()
    assert cost.to_dict()["tables"][0]["kept"] == 2


def test_a_share_without_runs_costs_nothing_where_some_data_are_missing(place, tmp_path):
    text = (place / "plan.toml").read_text().replace("[away.", "[data.didemo.")
    (tmp_path / "plan.toml").write_text(text.replace('"away/', f'"{place}/away/'))
    cost = research.forecast("duq-2", tmp_path / "plan.toml", to=tmp_path, seeds=1, part="98/99")
    assert not cost.tables and any("LSMDC is not in the plan" in one for one in cost.missing)


def test_whoever_has_the_page_alone_goes_on_from_its_runs(place, tmp_path):
    plan = place / "plan.toml"

    def made(seeds):
        made = research.reproduce(
            "duq-s3", plan, to=tmp_path, seeds=seeds, claims=True, cache=place / "cache"
        )
        return made.runs["duq-s3"]

    before = made(1)
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "cut.npz").write_bytes(b"PK cut")
    foreign = [json.dumps(asdict(replace(before[0], key="../../foreign"))).encode()]
    np.savez(tmp_path / "foreign.npz", runs=np.array(foreign))
    (one,) = research.forecast("duq-s3", plan, to=tmp_path, seeds=2, claims=True).tables
    assert (one.runs, one.kept) == (4, 2) and not (tmp_path / "runs").exists()
    assert made(2)[:2] == before  # with the seconds that the first took
    assert not list(tmp_path.parent.glob("foreign*"))
    table = read_ranks(tmp_path / "duq-s3.npz")[""]
    assert [seed for _, seed in table] == [0, 0, 1, 1]
    text = (place / "pairs.csv").read_text()
    (place / "pairs.csv").write_text(text.replace("a red", "one red", 1))
    assert text != (place / "pairs.csv").read_text()
    (one,) = research.forecast("duq-s3", plan, to=tmp_path, seeds=2, claims=True).tables
    (place / "pairs.csv").write_text(text)
    assert (one.runs, one.kept) == (4, 0)
    record = next((tmp_path / "runs").glob("*.json"))  # made when a video could not be read
    tests = ["pairs pairs.csv test, 2 of 3 videos, 4 captions"]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"tests": tests}))
    with pytest.raises(SureshotError, match="Not all runs were tested on the same videos"):
        made(2)


def test_only_the_rows_that_claims_compare_are_run_if_asked(place, tmp_path):
    plan, cache = place / "plan.toml", place / "cache"
    made = research.reproduce("duq-s3", plan, to=tmp_path, seeds=1, claims=True, cache=cache)
    assert [run.variant for run in made.runs["duq-s3"]] == ["Mean", "CA"]
    page = (tmp_path / "duq-s3.md").read_text()
    assert "Only the rows that a claim compares." in page and "R@1 minus first row" in page
    assert "--seeds 1 --claims`" in page and "| Mean |" in page and "| MLP |" not in page
    (one,) = research.forecast("duq-s3", plan, to=tmp_path, seeds=1).tables
    assert (one.runs, one.kept) == (4, 2)
    for act in (research.reproduce, research.forecast):
        with pytest.raises(SureshotError, match="No claim compares rows of duq-1; leave out"):
            act("duq-1", plan, to=tmp_path, claims=True)


def test_a_run_that_diverges_costs_its_table_and_no_other_run(place, tmp_path, monkeypatch):
    text = (place / "plan.toml").read_text().replace('"pairs.csv"', f'"{place}/pairs.csv"')
    text = text.replace('"away/', f'"{place}/away/')
    text += '[[cases]]\nsystems = ["xpool"]\ntraining = { rate = 10.0, weight_decay = 10.0, '
    text += "epochs = 40 }\n"  # weights grow a hundredfold with each step
    (tmp_path / "plan.toml").write_text(text)
    asked = {"to": tmp_path, "claims": True, "cache": place / "cache"}
    with pytest.raises(
        SureshotError,
        match=r"2 runs of 6 diverged, so duq-4 has no page; the others are kept\. X-Pool, seed 0: "
        r"(Training stopped|The score of row)",
    ):
        research.reproduce("duq-4", tmp_path / "plan.toml", seeds=2, **asked)
    kept = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    assert len(kept) == 4 and "X-Pool" not in {run["variant"] for run in kept}
    assert not list(tmp_path.glob("duq-4*"))
    two = {name: table for name, table in load_tables().items() if name in ("duq-4", "duq-s3")}
    monkeypatch.setattr(module, "load_tables", lambda: two)
    with pytest.raises(SureshotError, match=r"^Runs of duq-4 diverged; the other tables are in"):
        research.reproduce("all", tmp_path / "plan.toml", seeds=1, **asked)
    assert (tmp_path / "duq-s3.md").exists() and not list(tmp_path.glob("duq-4*"))


@pytest.mark.slow
def test_tables_share_runs(place, tmp_path):
    cost = research.forecast("all", place / "plan.toml", to=tmp_path, seeds=1)
    together = {one.name: one.runs for one in cost.tables}
    (alone,) = research.forecast("systems", place / "plan.toml", to=tmp_path, seeds=1).tables
    assert together["systems"] < alone.runs


# --- all tables and figures -----------------------------------------------------------------------


def by_name(plan=None):
    return {one.name: one for one in research.exhibits(plan)}


def test_without_a_plan_nothing_is_said_of_data_that_may_be_there():
    found = by_name()
    assert list(found) == list(load_tables())
    assert found["duq-fig-2"].kind == "figure" and found["duq-1"].kind == "table"
    assert {one.where for one in found.values()} == {()}
    assert not any(one.missing or one.lacks for one in found.values())
    assert found["dvtr-3"].needs == "MSR-VTT full and MSR-VTT 1k-A"
    assert found["duq-4"].needs == "MSR-VTT 1k-A, and DiDeMo and LSMDC to test on"
    drawings = [one for one in found.values() if not one.can_run]
    assert len(drawings) == 7 and all(
        "drawn by hand in the paper" in one.line() for one in drawings
    )


def test_home_stands_in_for_ablations_and_not_for_comparisons(place):
    found = by_name(place / "plan.toml")
    assert found["duq-3"].where == found["dvtr-12"].where == found["systems"].where == ("home",)
    assert not found["dvtr-12"].lacks
    for name in ("duq-1", "duq-2", "dvtr-4", "uatvr-7", "duq-5"):
        assert not found[name].can_run and found[name].lacks and found[name].missing
    assert found["uatvr-2"].can_run and found["uatvr-2"].line().endswith("needs no data")
    assert found["duq-fig-3"].where == ("home",) and found["duq-fig-3"].drawn == "rerank"
    values = found["duq-s1"].to_dict()
    assert (values["name"], values["can_run"], values["where"]) == ("duq-s1", False, [])
    assert values["missing"][0].startswith("LSMDC is not in the plan. Put ")


def test_data_of_the_paper_go_before_home(place, tmp_path):
    text = (place / "plan.toml").read_text().replace("[away", "[data.msvd")
    text = text.replace('"pairs.csv"', f'"{place}/pairs.csv"').replace('"away/', f'"{place}/away/')
    (tmp_path / "plan.toml").write_text(text)
    found = by_name(tmp_path / "plan.toml")
    assert found["dvtr-12"].where == found["dvtr-4"].where == ("msvd",)
    assert found["duq-3"].where == ("home",)
    assert found["duq-4"].where == () and "second data set" in found["duq-4"].missing[0]


def test_data_that_are_named_and_not_there_are_missing_and_no_error(place, tmp_path):
    text = (place / "plan.toml").read_text().replace("[away", "[data.msvd")
    (tmp_path / "plan.toml").write_text(text)
    one = by_name(tmp_path / "plan.toml")["uatvr-9"]
    assert not one.can_run and one.lacks == "MSVD"
    assert "pairs.csv" in one.missing[0] and "It needs raw-captions.pkl" in one.missing[0]


# --- figures --------------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch):
    """The arguments of each figure that is drawn."""
    calls = []
    whole = module.plot
    monkeypatch.setattr(module, "plot", lambda *a, **k: calls.append((a, k)) or whole(*a, **k))
    return calls


def test_a_figure_is_drawn_of_a_model_that_is_trained_once(place, tmp_path, drawn):
    def made():
        found = research.reproduce(
            "duq-fig-4", place / "plan.toml", to=tmp_path, cache=place / "cache"
        )
        assert [path.name for path in found.files] == ["duq-fig-4.png", "duq-fig-4.svg"]
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("models/*/model/*")}

    first = made()
    ((arguments, named),) = drawn
    assert arguments[0] == "embeddings" and (arguments[2], named["split"]) == ("pairs", "test")
    (model,) = arguments[1]
    assert Checkpoint.from_pretrained(model).system["name"] == "duq"
    assert (tmp_path / "duq-fig-4.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "duq-fig-4.svg").read_text()
    assert made() == first  # found, and not trained again


def test_a_figure_that_compares_two_systems_trains_and_draws_both(place, tmp_path, drawn):
    research.reproduce("uatvr-fig-5", place / "plan.toml", to=tmp_path, cache=place / "cache")
    ((arguments, named),) = drawn
    models = *arguments[1], named["compare_with"]
    adapted, plain = (Checkpoint.from_pretrained(model).system for model in models)
    assert adapted["name"] == plain["name"] == "uatvr"
    assert plain["adaptation"] is False and adapted.get("adaptation") is not False


def test_a_figure_over_epochs_has_a_model_for_each_number_of_them(place, tmp_path, drawn):
    text = (place / "plan.toml").read_text().replace("epochs = 1", "epochs = 2")
    text = text.replace('"pairs.csv"', f'"{place}/pairs.csv"')
    (tmp_path / "two.toml").write_text(text)
    research.reproduce("uatvr-fig-3", tmp_path / "two.toml", to=tmp_path, cache=place / "cache")
    ((arguments, _),) = drawn
    epochs = [Checkpoint.from_pretrained(model).scores["epoch"] for model in arguments[1]]
    assert epochs == [1.0, 2.0]


def test_a_figure_that_the_paper_drew_by_hand_is_refused(place, tmp_path):
    with pytest.raises(SureshotError, match="figure 2: the framework is drawn by hand"):
        research.reproduce("duq-fig-2", place / "plan.toml", to=tmp_path)


def test_a_figure_without_its_data_says_which_files_go_where(place, tmp_path):
    (tmp_path / "none.toml").write_text(REST)
    with pytest.raises(SureshotError, match=r"MSVD is not in the plan\. Put raw-captions\.pkl"):
        research.reproduce("dvtr-fig-5", tmp_path / "none.toml", to=tmp_path)


# --- answers --------------------------------------------------------------------------------------

QUESTIONS = "".join(
    f'[questions.{part}]\nroot = "qa"\nvideos = "videos"\n' for part in ("train", "val", "test")
)
REST = PLAN[PLAN.index("[encoder]") :]


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    folder = asked(tmp_path_factory.mktemp("qa"))
    (folder / "plan.toml").write_text(QUESTIONS + REST)
    return folder


def test_answers_are_trained_tested_and_kept(questions, tmp_path, monkeypatch):
    def made(**more):
        return research.reproduce(
            "duq-5", questions / "plan.toml", to=tmp_path, cache=questions / "cache", **more
        )

    found = made(seeds=2)
    assert [path.name for path in found.files] == ["duq-5.md", "duq-5.json"]
    reports = json.loads(found.files[1].read_text())["DUQ"]
    right = [one["overall"]["value"] for one in reports]
    assert len(right) == 2 and all(0 <= value <= 100 for value in right)
    assert reports[0]["overall"]["n"] == 6  # all questions of the test, the unknown answer too
    text = found.files[0].read_text()
    assert f"| DUQ | {sum(right) / 2:.1f} ± " in text
    assert "47.8" not in text and "HBI" not in text  # printed for another encoder and data
    kept = sorted(path.suffix for path in (tmp_path / "runs").iterdir())
    assert kept == [".json", ".json"]  # and no checkpoint
    monkeypatch.setattr(module, "train_answers", None)
    assert made(seeds=2, part="2/2").files == ()
    with pytest.raises(TypeError):  # the third run of three is in the first part
        made(seeds=3, part="1/2")
    assert made(seeds=1).files == found.files
    with pytest.raises(TypeError):  # a third seed would be trained
        made(seeds=3)


def test_questions_that_are_not_there_are_named(questions, tmp_path):
    (tmp_path / "plan.toml").write_text(REST)
    with pytest.raises(SureshotError, match=r"MSRVTT-QA is not in the plan.*\[questions\.train\]"):
        research.reproduce("duq-5", tmp_path / "plan.toml", to=tmp_path)
    (tmp_path / "plan.toml").write_text(QUESTIONS + REST)
    with pytest.raises(SureshotError, match=r"MSRVTT-QA cannot be read: .*It needs \{train,val"):
        research.reproduce("duq-5", tmp_path / "plan.toml", to=tmp_path)

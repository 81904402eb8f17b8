"""A page says what was measured, how far it varies, and what it may not be compared with."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.reproduction.page import (
    Facts,
    draw_rows,
    measure_cost,
    page_text,
    unshared_lines,
    write_page,
)
from sureshot.research.reproduction.plan import Table, Variant, find_table
from sureshot.research.reproduction.runs import Run
from tests.research.figures.pictures import shown, untidy
from tests.research.reproduction.ranked import one_run, ranked

NAMES = ("R@1", "R@5", "R@10", "MdR", "MnR", "R@Sum", "v2t R@1")
FACTS = Facts(
    "sureshot reproduce t --seeds 2",
    "A train",
    "A val",
    ["A test"],
    "tiny",
    "3 epochs",
    data=["home"],
)
DATA = ["home", ""]
FIRST = Variant("first", {"name": "duq"}, printed=("#1 L_S",), method="DUQ")
SECOND = Variant("second", {"name": "duq"}, printed=("#2 L_S+L_S^U",), method="DUQ")
OWN = Variant("ours alone", {"name": "duq"})
CONTROL = Variant("control: plain", {"name": "duq"}, control=True)
TABLE = Table(
    name="t",
    title="A table",
    variants=(FIRST, SECOND, OWN, CONTROL),
    table="DUQ-T3",
    protocol="other videos",
    data=("msrvtt",),
)


def run(variant, seed, r1, prefix="", **more):
    scores = {prefix + name: 10.0 for name in NAMES} | {f"{prefix}R@1": r1} | more
    return Run(variant.name, seed, scores, 2, 55.5, 1_234_567, 10.0 * (seed + 1))


RUNS = [
    run(FIRST, 0, 40.0),
    run(FIRST, 1, 44.0),
    run(SECOND, 0, 50.0),
    run(SECOND, 1, 46.0),
    run(OWN, 0, 41.0),
    run(OWN, 1, 41.0),
    run(CONTROL, 0, 42.0),
    run(CONTROL, 1, 43.0),
]


def cells(text, name):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def column(text, name):
    (head,) = {line for line in text.splitlines() if "R@1 minus" in line}
    return [cell.strip() for cell in head.strip("|").split("|")].index(name)


def test_a_row_has_mean_and_deviation_over_the_seeds():
    text = page_text(TABLE, RUNS, FACTS)
    # By hand: of 40 and 44 the mean is 42 and the deviation sqrt(8) = 2.8.
    assert cells(text, "first")[column(text, "R@1")] == "42.0 ± 2.8"
    assert cells(text, "second")[column(text, "R@1")] == "48.0 ± 2.8"
    assert cells(text, "ours alone")[column(text, "R@1")] == "41.0 ± 0.0"
    assert cells(text, "first")[column(text, "seconds")] == "15"
    assert cells(text, "first")[column(text, "parameters")] == "1.23 M"


def test_a_row_is_compared_with_the_control_seed_by_seed():
    text = page_text(TABLE, RUNS, FACTS)
    where = column(text, "R@1 minus control")
    assert cells(text, "first")[where] == "-0.5 ± 2.1"  # -2 and +1
    assert cells(text, "second")[where] == "+5.5 ± 3.5"  # +8 and +3
    assert cells(text, "control: plain")[where] == ""
    text = page_text(replace(TABLE, variants=(FIRST, SECOND)), RUNS, FACTS)
    assert cells(text, "first")[column(text, "R@1 minus first row")] == ""
    assert cells(text, "second")[column(text, "R@1 minus first row")] == "+6.0 ± 5.7"  # +10, +2


@pytest.mark.parametrize(
    ("published", "head", "first", "second"),
    [(True, "paper: R@1", "46.9", "47.5"), (False, "paper: R@1 minus first", "+0.0", "+0.6")],
)
def test_printed_levels_are_shown_on_the_papers_data_alone(published, head, first, second):
    text = page_text(TABLE, RUNS, replace(FACTS, published=published))
    where = column(text, head)
    printed = {name: cells(text, name)[where] for name in ("first", "second", "ours alone")}
    assert printed == {"first": first, "second": second, "ours alone": ""}
    assert cells(text, "control: plain")[where] == ""
    assert ("are of another protocol" in text) == (not published)


def test_the_page_says_how_it_was_made():
    text = page_text(TABLE, RUNS, replace(FACTS, encoder_is="trained too", note="Odd rows."))
    assert text.startswith("# A table\n")
    for part in ("`sureshot reproduce t --seeds 2`; seeds 0, 1;", "trained on A train",
                 "chosen on A val, tested once", "encoder `tiny`, trained too", "3 epochs",
                 "No post-processing", "\n\nOdd rows.\n\n"):  # fmt: skip
        assert part in text


def test_one_seed_has_no_deviation_and_missing_rows_are_left_out():
    text = page_text(TABLE, [RUNS[0], RUNS[6]], FACTS)
    assert cells(text, "first")[column(text, "R@1")] == "40.0"
    assert cells(text, "first")[column(text, "R@1 minus control")] == "-2.0"
    assert "| second |" not in text
    text = page_text(TABLE, [RUNS[1], RUNS[6]], FACTS)  # of no common seed
    assert cells(text, "first")[column(text, "R@1 minus control")] == ""
    text = page_text(TABLE, [*RUNS[:3], RUNS[6]], FACTS)
    assert "| first |" in text and "| second (1 seed) |" in text


@pytest.fixture
def abroad():
    """Runs that were tested on a second data set too."""
    runs = []
    for variant, there in ((FIRST, 7.0), (CONTROL, 9.0)):
        both = run(variant, 0, 40.0).scores | run(variant, 0, there, "B test: ").scores
        runs.append(Run(variant.name, 0, both, 1, 1.0, 10, 1.0))
    facts = Facts("x", "A train", "A val", ["A test", "B test"], "tiny", "3 epochs", data=DATA)
    table = replace(TABLE, variants=(FIRST, CONTROL), protocol="others", tested_on=("didemo",))
    return table, runs, facts


def test_each_test_set_has_a_table_of_its_own(abroad):
    table, runs, facts = abroad
    home, away = page_text(table, runs, replace(facts, published=True)).split("## B test")
    assert "## A test" in home
    assert cells(home, "first")[1] == "40.0"
    assert cells(away, "first")[1] == "7.0"
    assert cells(away, "first")[column(away, "R@1 minus control")] == "-2.0"
    assert cells(home, "first")[-1] == "46.9" and cells(away, "first")[-1] == ""


@pytest.mark.parametrize("several", [False, True])
def test_page_numbers_and_picture_are_written(tmp_path, abroad, several):
    table, runs, facts = abroad if several else (TABLE, RUNS, FACTS)
    written = write_page(tmp_path / "new", table, runs, facts)
    assert [path.name for path in written] == ["t.md", "t.csv", "t.json", "t.png", "t.svg"]
    assert written[0].read_text("utf-8") == page_text(table, runs, facts)
    assert written[3].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in written[4].read_text("utf-8")
    with written[1].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["row"], int(row["seed"])) for row in rows] == [(r.variant, r.seed) for r in runs]
    for row, made in zip(rows, runs, strict=True):
        assert {name: float(row[name]) for name in made.scores} == made.scores
        assert (int(row["parameters"]), row["validation"]) == (
            made.parameters,
            f"{made.validation:.2f}",
        )


def test_further_lines_end_the_page(tmp_path):
    written = write_page(tmp_path, TABLE, RUNS, FACTS, ["## More", "", "| a |"])
    assert written[0].read_text("utf-8") == f"{page_text(TABLE, RUNS, FACTS)}\n## More\n\n| a |\n"


def test_long_titles_and_names_lie_beside_each_other_in_the_picture():
    tests = ("MSR-VTT 1k-A frame subset (476)", "Flickr8k multi-caption test, 1000 photos, 5000 ")
    long = Variant(
        "control: all weights of DUQ, means for samples, no uncertainty", {}, control=True
    )
    runs = []
    for variant in (FIRST, SECOND, long):
        scores = run(variant, 0, 40.0).scores | run(variant, 0, 50.0, f"{tests[1]}: ").scores
        runs.append(Run(variant.name, 0, scores, 1, 1.0, 10, 1.0))
    figure = draw_rows(replace(TABLE, variants=(FIRST, SECOND, long)), runs, tests)
    assert untidy(figure) == []
    assert shown(figure).replace("\n", " ").count("tested on ") == 2
    assert "hollow squares: controls" in shown(figure)


def test_without_matplotlib_there_is_no_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    written = write_page(tmp_path, TABLE, RUNS, FACTS)
    assert [path.name for path in written] == ["t.md", "t.csv", "t.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"t.md", "t.csv", "t.json"}


# --- tables on the paper's own data ---------------------------------------------------------------


def compared(method, **more):
    return Variant(method, {"name": "duq"}, printed=("",), method=method, **more)


def page(table, variants, data, facts=FACTS):
    """The page of a table of ours, one seed a row, run on these data sets."""
    one = Table(name="t", title="T", variants=variants, table=table, data=(data,), protocol="p")
    more = {"R@50": 44.0, "v2t R@5": 10.0, "v2t R@10": 10.0}
    runs = [run(variant, 0, 40.0, **more) for variant in variants]
    return page_text(one, runs, replace(facts, data=[data], published=True))


def test_printed_numbers_are_those_of_the_data_set():
    duq = compared("DUQ")
    values = {data: cells(page("DUQ-T2", (duq,), data), "DUQ")[-1] for data in ("didemo", "vatex")}
    assert values == {"didemo": "51.8", "vatex": "80.0"}


def test_post_processed_rows_have_the_printed_numbers_of_such_rows():
    raw = compared("UATVR", encoder="B32")
    post = replace(compared("UATVR", post="DSL", encoder="B16"), name="UATVR + DSL")
    text = page("UATVR-T6", (raw, post), "msrvtt")
    assert cells(text, "UATVR")[-1] == "47.5"
    assert cells(text, "UATVR + DSL")[-1] == "53.5"
    assert "DSL looks at all test queries" in text
    assert "p. Here the epoch chosen on A val counts." in text
    text = page("UATVR-T6", (raw, post), "msrvtt", replace(FACTS, chosen=False))
    assert "p. Here the last epoch counts." in text


def test_printed_rows_of_systems_that_are_not_here_are_named():
    text = page("DVTR-T8", (compared("CE"), compared("CE + DVTR")), "msrvtt_full")
    assert "Printed too, of systems that are not here: CE + CMGSD 11.8, CE + TT 11.8." in text
    assert cells(text, "CE + DVTR")[-1] == "12.7"


def test_what_the_paper_measures_is_shown():
    text = page("DVTR-T6", (compared("DVTR + HiT"),), "activitynet")
    assert cells(text, "DVTR + HiT")[column(text, "R@50")] == "44.0"
    assert "R@10 |" not in text and "R@Sum" not in text  # a sum of columns that are not shown
    of_sums = Table(name="t", title="T", variants=(FIRST,), metric="rsum")
    text = page_text(of_sums, [run(FIRST, 0, 40.0, **{"v2t R@5": 9.0, "v2t R@10": 9.0})], FACTS)
    assert cells(text, "first")[column(text, "rsum")] == "88.0"


# --- captions of some of the videos ---------------------------------------------------------------


def test_only_the_captions_of_the_named_videos_count():
    ids = [str(video) for video in range(20)]
    lines = unshared_lines(ranked({"DUQ": 0.5}, seeds=1)[""], [*ids, "not in the test set"])
    assert lines[0].startswith("## Of these, the 20 videos")
    assert "all 60 videos are searched" in lines[2]
    run = one_run(0.5, 0)
    own = 100 * np.mean(run.texts[np.isin(run.owner, range(20))] <= 1)
    assert lines[-1] == f"| DUQ | {own:.1f} | {own:.1f} | 100.0 |"


def test_ids_of_other_videos_are_refused():
    with pytest.raises(SureshotError, match="None of the 2 ids of `unshared`"):
        unshared_lines(ranked({"DUQ": 0.5}, seeds=1)[""], ["video7", "video8"])


# --- costs ----------------------------------------------------------------------------------------

ROWS = {variant.name: variant for variant in find_table("uatvr-2").variants}


def test_the_table_has_the_parameters_that_the_paper_prints_and_needs_no_plan(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    made = research.reproduce("uatvr-2", to="~/out")
    assert made.files == (tmp_path / "out/uatvr-2.md", tmp_path / "out/uatvr-2.json")
    costs = json.loads(made.files[1].read_text())
    assert {name: round(cost["parameters"] / 1e6, 1) for name, cost in costs.items()} == {
        "CLIP4Clip": 162.3,
        "TI (token-wise)": 162.8,
        "w/ DSA": 162.8,
        "w/ DUA": 164.9,
    }
    text = made.files[0].read_text()
    for name, variant in ROWS.items():
        millions = f"{costs[name]['parameters'] / 1e6:.2f}"
        assert f"| {name} | {millions} M | {variant.paper} M |" in text
        assert millions.startswith(variant.paper[:3])


def test_multiply_adds_are_those_of_the_networks():
    """A mean of frames and a cosine: the rest is CLIP's, some 17 billion a frame of 197 tokens."""
    cost = measure_cost({"name": "clip4clip"})
    assert cost["pair"] == 512
    blocks, width, tokens = 12, 768, 197
    block = 12 * tokens * width**2 + 2 * tokens**2 * width
    frame = blocks * block + 196 * 3 * 16**2 * width + width * 512
    assert cost["video"] == pytest.approx(12 * frame, rel=1e-3)

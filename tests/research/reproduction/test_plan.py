"""A plan: its data, its cases, and where it has the data of a table."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.metrics.published import folded_name, rows_of_table
from sureshot.models.model import Stem, StemConfig
from sureshot.models.systems.base import Sizes, known_systems, load_system
from sureshot.research.evaluation import published_split
from sureshot.research.figures.catalogue import FIGURES
from sureshot.research.reproduction.plan import (
    FinalRecipe,
    PlanData,
    Target,
    find_table,
    load_datasets,
    load_tables,
    read_plan,
    settings_of,
)
from sureshot.research.reproduction.runs import planned_runs
from sureshot.research.training.recipe import resolve_paths
from tests.layouts import benchmark, written
from tests.models.encoders.test_clip import clip
from tests.paths import ROOT
from tests.walls import PLAN, walls

TABLES = {name: one for name, one in load_tables().items() if one.kind != "figure"}
FIGURE_TABLES = {name: one for name, one in load_tables().items() if one.kind == "figure"}


def changed(place, tmp_path, *pairs):
    """The plan with some of its text replaced."""
    text = (place / "plan.toml").read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 3 if old == "[away" else 1)
    path = place / f"{tmp_path.name}.toml"
    path.write_text(text)
    return PlanData(path)


def with_cases(place, tmp_path, cases):
    (tmp_path / "plan.toml").write_text((place / "plan.toml").read_text() + cases)
    return read_plan(tmp_path / "plan.toml")


def test_a_plan_may_be_like_another_of_its_folder(place, tmp_path):
    (tmp_path / "plan.toml").write_text((place / "plan.toml").read_text() + CASES)
    own = '[[cases]]\nsystems = ["hit"]\nsettings = { bank = 3 }\n[stem]\nkind = "none"\n'
    (tmp_path / "like.toml").write_text(f'like = "plan.toml"\n{own}')
    plan, like = read_plan(tmp_path / "plan.toml"), read_plan(tmp_path / "like.toml")
    assert like == replace(plan, cases=like.cases, stem=like.stem) and like.stem.kind == "none"
    assert like.cases[:-1] == plan.cases and like.system({"name": "hit"}, "home")["bank"] == 3
    for name in ("like.toml", "../plan.toml"):
        (tmp_path / "like.toml").write_text(f'like = "{name}"\n')
        with pytest.raises(SureshotError, match="like"):
            read_plan(tmp_path / "like.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 1", "epoch = 1", r"Unknown setting training\.epoch; known: epochs"),
        ("epochs = 1", 'epochs = "many"', r"training\.epochs is 'many'; expected a whole number"),
        ("[home.val]", "[home.vall]", r"Unknown setting home\.vall; known: train, test, val"),
        ('root = "pairs.csv"', "", r"Setting home\.val\.root is missing"),
        ("[stem]", "[stem", "is not TOML"),
        ("[home.train]", "[home]\nhold_out = 2\n[home.train]", "needs either val or hold_out"),
        ("[away", "[data.msrvtt-1k", r"data names 'msrvtt-1k'; known: activitynet, charades"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(place, tmp_path, old, new, message):
    with pytest.raises(SureshotError, match=message):
        changed(place, tmp_path, (old, new))


def test_a_data_set_is_read_only_where_it_is_asked_for(place, tmp_path):
    gone = changed(place, tmp_path, ("away/pairs.csv", "gone.csv"))
    assert len(gone.splits(gone.plan.home).test.items) == 3
    with pytest.raises(SureshotError, match=r"gone\.csv"):
        gone.splits(gone.plan.away)


def test_another_data_set_is_not_tested_on_what_was_trained_on(place, tmp_path):
    head, *lines = (place / "pairs.csv").read_text().splitlines()
    leaked = [line.replace("train", "test") for line in lines if "train" in line]
    (place / "leak.csv").write_text("\n".join([head, *leaked]) + "\n")
    root = '[away.test]\ndataset = "pairs"\nroot = '
    data = changed(place, tmp_path, (f'{root}"away/pairs.csv"', f'{root}"leak.csv"'))
    targets, missing = data.targets(find_table("duq-4"))
    assert not targets and any("share 6 videos" in sentence for sentence in missing)


def test_videos_to_choose_on_may_be_held_out_of_the_training_set(place, tmp_path):
    text = (place / "plan.toml").read_text()
    first, rest = text.split("[home.val]")
    rest = rest[rest.index("[home.test]") :].replace("[away", "[data.msvd", 3)
    (place / "held.toml").write_text(
        f"{first}{rest}".replace("[home.test]", "[home]\nhold_out = 2\n[home.test]")
    )
    made = PlanData(place / "held.toml")
    found = made.splits(made.plan.home)
    assert (len(found.train.items), len(found.val.items), found.val.name) == (4, 2, "val")
    assert made.splits(made.plan.data["msvd"]).test.label == "walls away"


CASES = """
[[cases]]
systems = ["hit"]
settings = { layers = 1, bank = 0 }
training = { rate = 0.5 }

[[cases]]
data = ["msvd"]
encoder = { frames = 2 }

[[cases]]
systems = ["dvtr+hit"]
data = ["msvd"]
training = { rate = 0.25, epochs = 7 }
"""


def test_cases_change_what_they_are_about_and_a_row_wins_over_them(place, tmp_path):
    read = with_cases(place, tmp_path, CASES)
    hit = {"name": "hit", "bank": 9}
    dvtr = {"name": "dvtr", "base": hit}
    assert read.system(hit, "home") == {"name": "hit", "layers": 1, "bank": 9}
    assert read.system(dvtr, "home") == {"name": "dvtr", "base": read.system(hit, "home")}
    assert read.system({"name": "duq"}, "home") == {"name": "duq"}
    rates = [read.settings("training", one, "home").rate for one in (hit, dvtr)]
    assert rates == [0.5, 1e-2]
    there = read.settings("training", dvtr, "msvd")
    assert (there.rate, there.epochs) == (0.25, 7)
    assert read.settings("encoder", hit, "msvd").frames == 2
    assert read.settings("encoder", hit, "home").frames == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dvtr+hit", "dvtr+hid", r"cases\.2\.systems names 'hid'; known: ce, clip2video"),
        ("msvd", "msrvtt-full", r"cases\.1\.data names 'msrvtt-full'; known: activitynet"),
        ("{ frames", "{ frame", r"Unknown setting cases\.1\.encoder\.frame; known"),
    ],
)
def test_a_case_about_what_there_is_not_is_refused(place, tmp_path, old, new, message):
    with pytest.raises(SureshotError, match=message):
        with_cases(place, tmp_path, CASES.replace(old, new))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("data = 5\n{}", "Setting data is 5; expected a table"),
        ("[data]\nmsvd = 5\n{}", r"Setting data\.msvd is 5; expected a table"),
        ("{}systems = 5", r"Setting cases\.0\.systems is 5; expected a list"),
        ("{}data = ['home']\nsettings = 5", r"Setting cases\.0\.settings is 5; expected a table"),
        ("{}data = ['home']\ntraining = 5", r"Setting cases\.0\.training is 5; expected a table"),
    ],
)
def test_what_stands_next_to_a_recipe_of_a_case_is_of_its_kind(tmp_path, values, message):
    case = f"[[cases]]\nrecipe = '{ROOT / 'recipes/duq.toml'}'\n"
    (tmp_path / "plan.toml").write_text(values.format(case))
    with pytest.raises(SureshotError, match=message):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("old", "new"), [(f'split = "{part}"', 'split = "train"') for part in ("val", "test")]
)
def test_parts_that_share_videos_are_refused(place, tmp_path, old, new):
    mixed = changed(place, tmp_path, (old, new))
    with pytest.raises(SureshotError, match="share 6 videos"):
        mixed.splits(mixed.plan.home)


def test_relative_paths_start_at_the_folder_and_variables_are_filled_in(place, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(place))
    recipe = FinalRecipe("pairs", Path("pairs.csv"))
    at_home = replace(recipe, root=Path("~/pairs.csv"))
    assert len(resolve_paths(at_home, Path("/")).load().items) == 3
    assert resolve_paths(recipe, place).load().items[0].path.is_relative_to(place)
    (place / "ids.txt").write_text("videos/9.mp4\n")
    some = resolve_paths(replace(recipe, ids=Path("ids.txt"), label="one"), place).load()
    assert (len(some.items), some.label) == (1, "one")


# --- tables.toml ----------------------------------------------------------------------------------

ROWS = [(one, variant) for one in TABLES.values() for variant in one.variants]
DUQ_CONTROL = "control: all weights of DUQ, means for samples, no uncertainty"


def weights(settings, width=16):
    return sum(part.numel() for part in load_system(settings, Sizes(width, 3)).parameters())


def system_of(table, name):
    (found,) = [variant.system for variant in TABLES[table].variants if variant.name == name]
    return found


def test_the_settings_of_every_row_and_figure_build_a_system():
    every = [variant for one in load_tables().values() for variant in one.variants]
    for settings in {repr(variant.system): variant.system for variant in every}.values():
        assert weights(settings) >= 1


def test_every_printed_name_is_in_the_table_it_is_from():
    for one, variant in ROWS:
        for name in variant.printed:
            rows = [r for r in rows_of_table(one.table) if r.direction == "t2v"]
            same = [r for r in rows if (r.method, r.variant) == (variant.method, name)]
            found = [r for r in same if bool(r.post) == bool(variant.post)]
            assert found and all(r.r1 is not None for r in found), variant.name
            # One of each data set and encoder.
            assert len({(r.dataset, r.split, r.encoder) for r in found}) == len(found)


@pytest.mark.parametrize("one", TABLES.values(), ids=lambda x: x.name)
def test_rows_of_a_table_differ_and_its_data_are_those_of_its_printed_rows(one):
    assert len({v.name for v in one.variants}) == len(one.variants) >= 1
    keys = [repr((v.system, v.frames, v.width, v.post, v.encoder)) for v in one.variants]
    assert len(set(keys)) == len(keys) and sum(v.control for v in one.variants) <= 1
    # Numbers on test videos that are CLIP2Video's own stand next to none of ours.
    rows = [row for row in rows_of_table(one.table) if row.split != "CLIP2Video"]
    printed = {(row.dataset, row.split) for row in rows}
    if one.kind == "recalls" and printed:
        names = (*one.data, *one.tested_on)
        assert {load_datasets()[name].printed for name in names} == printed
    # No printed row of a system that is here is left out.
    of = {variant.method for variant in one.variants if variant.printed}
    ours = {(v.method, name, bool(v.post)) for v in one.variants for name in v.printed}
    there = [r for r in rows if r.direction == "t2v" and r.method in of]
    assert ours >= {(r.method, r.variant, bool(r.post)) for r in there}
    here = ("CE", "HiT", "PCME", "CLIP4Clip", "CLIP2Video", "X-Pool", "T-Mass", "UATVR", "DUQ")
    methods = {folded_name(row.method) for row in rows}
    assert {folded_name(name) for name in here} & methods <= {
        folded_name(variant.method) for variant in one.variants
    }


def test_every_numbered_table_and_figure_is_there():
    tables = [f"duq-{n}" for n in range(1, 6)] + [f"duq-s{n}" for n in range(1, 7)]
    tables += [f"uatvr-{n}" for n in range(1, 10)] + [f"dvtr-{n}" for n in range(3, 14)]
    assert list(TABLES) == [*tables, "controls", "dose-common", "dose-ambiguity", "systems"]
    figures = [f"duq-fig-{n}" for n in (1, 2, 3, 4, "s1", "s2", "s3")]
    figures += [f"uatvr-fig-{n}" for n in range(1, 6)] + [f"dvtr-fig-{n}" for n in range(1, 7)]
    assert list(FIGURE_TABLES) == figures and list(load_tables()) == [*TABLES, *FIGURE_TABLES]
    assert all(bool(one.variants) == bool(one.drawn) for one in FIGURE_TABLES.values())
    drawn = {one.drawn for one in FIGURE_TABLES.values() if one.drawn}
    assert drawn == set(FIGURES) - {"uncertainty"}  # which is after one, and none of theirs
    with pytest.raises(SureshotError, match=r"no table or figure 'duq-9'; did you mean duq-\d"):
        find_table("duq-9")


def test_a_case_without_a_mode_is_for_rows_of_every_mode():
    plan = read_plan(ROOT / "results" / "synthetic-frozen.toml")
    rows = [one.system for one in TABLES["duq-3"].variants if one.system["name"] == "duq"]
    modes = {settings.get("mode") for settings in rows}
    assert modes >= {"paper", "well_posed"}
    made = [plan.system(settings, "msrvtt") for settings in rows]
    assert {(one["scale"], one["dropout"]) for one in made} == {(20.0, 0.0)}


def test_controls_have_the_weights_and_none_of_the_uncertainty():
    names = {one.name for one, variant in ROWS if variant.name == DUQ_CONTROL and variant.control}
    assert names == {"duq-3", "duq-s4", "duq-s6", "duq-4"}
    for name in ("duq", "uatvr"):
        assert weights(settings_of(f"{name}_control")) == weights(settings_of(name))
    full = system_of("dvtr-10", "DVTR, contrastive")
    assert full == settings_of({"name": "dvtr", "base": "hit", "mode": "well_posed"})
    shuffled = system_of("dvtr-10", "control: contrastive, etas dealt to other negatives")
    assert shuffled == full | {"uncertainty": "shuffled"}
    for table in (one for one in TABLES.values() if one.name.startswith("dvtr") and one.stand_in):
        systems = [dict(variant.system) for variant in table.variants]
        bases = [settings["base"] for settings in systems if settings["name"] == "dvtr"]
        assert bases and all(base in systems for base in bases)


def test_the_table_of_systems_has_all_and_a_clip4clip_as_large_as_the_largest():
    systems = TABLES["systems"].variants
    without_row = {"duq_released"}  # too new for the results that are kept
    assert {v.system["name"] for v in systems} == set(known_systems()) - without_row
    rows = {v.name: v.system for v in systems}
    bases = [n for n in rows if n.startswith("DVTR + ") and not n.endswith("without uncertainty")]
    assert len(bases) == 5
    assert all(rows[name]["base"] == rows[name.removeprefix("DVTR + ")] for name in bases)
    subset = read_plan(ROOT / "results" / "frame-subset.toml")

    def size(variant):
        stem = Stem(StemConfig("linear", variant.width or 128), Sizes(384, 1408))
        made = load_system(subset.system(variant.system, "home"), stem.sizes)
        parts = [*stem.parameters(), *made.parameters()]
        return sum(part.numel() for part in parts if part.requires_grad)

    widest = max(systems, key=lambda variant: variant.width or 0)
    largest = max(size(variant) for variant in systems if variant.width is None)
    assert widest.system["name"] == "clip4clip" and size(widest) >= largest


# --- where a plan has the data of a table ---------------------------------------------------------


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A plan with every data set of the papers, tiny and in the layouts of the benchmarks."""
    folder = tmp_path_factory.mktemp("plan")
    walls(folder)
    rest = PLAN[PLAN.index("[encoder]") :]
    (folder / "plan.toml").write_text(written(folder / "sets", folder / "videos") + rest)
    return folder


def test_every_table_of_recalls_finds_its_data(every):
    data = PlanData(every / "plan.toml")
    for table in TABLES.values():
        if table.kind == "recalls" and table.data and table.data != ("synthetic",):
            targets, missing = data.targets(table)
            assert [one.name for one in targets] == list(table.data) and not missing
            for one in targets:
                assert [name for name, _ in one.tested_on] == list(table.tested_on)


def test_whole_test_sets_are_those_that_printed_numbers_are_of(every):
    data = PlanData(every / "plan.toml")
    for name, splits in data.plan.data.items():
        test, known = data.splits(splits).test, load_datasets()[name]
        whole = replace(test, expected=len(test.items))
        assert published_split(whole) == known.printed[1] and not published_split(test)
        assert not published_split(replace(whole, label="mine"))
    # Some papers have 1004 videos of DiDeMo, and some the 1003 that can still be had.
    test = data.splits(data.plan.data["didemo"]).test
    for count, published in ((1002, ""), (1003, "std"), (1004, "std")):
        items = (test.items * count)[:count]
        assert published_split(replace(test, items=items, expected=1004)) == published


def test_oracles_are_rows_of_synthetic_data_alone(every):
    table, data = find_table("controls"), PlanData(every / "plan.toml")
    home = Target("home", data.plan.data["msrvtt"])
    rows = [run.variant for run in planned_runs(table, home, 1, data)]
    left_out = [row.name for row in table.variants if row not in rows]
    assert len(left_out) == 4 and all("known" in name for name in left_out)
    assert "oracle" not in table.title  # which is that of their page, too
    made = replace(home.data, train=replace(home.data.train, dataset="synthetic"))
    runs = planned_runs(table, replace(home, data=made), 2, data)
    assert [run.variant for run in runs] == [*table.variants, *table.variants]
    assert [run.recipe.training.seed for run in runs] == [0] * 13 + [1] * 13


ONE = [
    ("duq-2", ["duq-2-didemo", "duq-2-lsmdc", "duq-2-charades", "duq-2-vatex"]),
    ("dvtr-6", ["dvtr-6"]),
    ("duq-4", ["duq-4"]),
]


@pytest.mark.parametrize(
    ("table", "pages"),
    [pytest.param(*one, id=one[0], marks=[pytest.mark.slow] * (len(one[1]) > 1)) for one in ONE],
)
def test_a_table_runs_on_the_files_of_its_benchmarks(every, tmp_path, table, pages):
    """The first of its runs, that is: a row on each data set."""
    made = research.reproduce(
        table, every / "plan.toml", to=tmp_path, seeds=1, part="1/99", cache=every / "cache"
    )
    assert list(made.runs) == pages and all("bank holds 4096" in note for note in made.notes)
    for (run,) in made.runs.values():
        assert run.variant in [variant.name for variant in find_table(table).variants]
        assert 0 <= run.scores["R@1"] <= 100
    if table == "duq-4":
        away = {name.split(":")[0] for name in made.runs["duq-4"][0].scores if ":" in name}
        assert [title.split()[0] for title in sorted(away)] == ["DiDeMo", "LSMDC"]


def test_a_part_of_the_data_is_enough_and_what_is_missing_is_reported(every, tmp_path):
    text = (every / "plan.toml").read_text()
    shutil.copytree(every / "sets" / "lsmdc", tmp_path / "lsmdc")
    (tmp_path / "lsmdc" / "LSMDC16_annos_val.csv").unlink()
    text = text[: text.index("[data.didemo.")] + text[text.index("[data.lsmdc.") :]
    text = text.replace(str(every / "sets" / "lsmdc"), str(tmp_path / "lsmdc"))
    (tmp_path / "plan.toml").write_text(text)
    targets, missing = PlanData(tmp_path / "plan.toml").targets(find_table("duq-2"))
    assert [one.name for one in targets] == ["charades", "vatex"]
    absent, unread = missing
    assert absent.startswith("DiDeMo is not in the plan. Put {train,val,test}_data.json")
    assert "[data.didemo.train]" in absent and 'dataset = "didemo"' in absent
    assert unread.startswith("LSMDC cannot be read:") and "LSMDC16_annos_val.csv" in unread
    with pytest.raises(SureshotError, match=r"LSMDC cannot be read.*It needs LSMDC16"):
        research.reproduce("duq-s1", tmp_path / "plan.toml", to=tmp_path)


# --- the plans of the papers ----------------------------------------------------------------------

PLANS = [ROOT / "plans" / f"published-{paper}.toml" for paper in ("duq", "dvtr", "uatvr")]
SHORT = """
[[cases]]
encoder = { device = "cpu", frames = 2 }
training = { epochs = 1, batch = 4, micro_batch = 2, workers = 2, rate = 1e-3 }
"""


def test_a_control_is_trained_as_the_system_whose_control_it_is(every):
    plan = every / "plan.toml"
    text = plan.read_text()
    own = plan.with_name("printed.toml")
    own.write_text(text + '\n[[cases]]\nsystems = ["dvtr"]\nsettings = { mode = "paper" }\n')
    found = {variant.name: recipe for table, variant, recipe in recipes_of(own)
             if table.name == "dvtr-3"}  # fmt: skip
    control = found["control: CLIP2Video on B/16, trained as DVTR + C2V is"].system
    assert (control["name"], control["uncertainty"], control["mode"]) == ("dvtr", "none", "paper")
    like = [found[name].system for name in found if name.startswith("DVTR")]
    assert control["base"] in [one["base"] for one in like]


def recipes_of(path):
    """The recipe of each row that a plan has data for, with table, row and data set."""
    data = PlanData(path)
    for table in TABLES.values():
        for name in table.data if table.kind == "recalls" else ():
            splits = data.plan.data.get(name)
            if splits is not None:
                target = Target(name, splits)
                for variant in data.rows(table, target)[0]:
                    yield table, variant, data.recipe(variant, 0, target)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_settings_of_every_row_build_on_the_plan_of_its_paper(path):
    read = read_plan(path)
    paper = path.stem.removeprefix("published-")
    tables = [one for name, one in TABLES.items() if name.startswith(f"{paper}-")]
    data = {name for one in tables for name in (*one.data, *one.tested_on)} - {"msrvtt_qa"}
    assert data <= read.data.keys()
    assert (read.questions is not None) == (paper == "duq")
    recipes = [recipe for _, _, recipe in recipes_of(path)]
    for settings in {repr(one.system): one.system for one in recipes}.values():
        load_system(settings, Sizes(16, 3))


@pytest.mark.parametrize(
    ("row", "training", "encoder"),
    [
        (
            ("duq-1", "DUQ, B/16", "msrvtt"),
            (5, 32, 1e-4, 1e-7, "bert_adam"),
            (12, 32, 1.0, "spread"),
        ),
        (("duq-2", "DUQ", "didemo"), (5, 32, 1e-4, 1e-7, "bert_adam"), (12, 64, 1.0, "spread")),
        (
            ("duq-1", "X-Pool, B/32", "msrvtt"),
            (5, 32, 3e-5, 1e-6, "hugging_face"),
            (12, 77, None, "segments"),
        ),
        (
            ("uatvr-6", "CLIP4Clip, sequential transformer", "msrvtt"),
            (5, 128, 1e-4, 1e-7, "bert_adam"),
            (12, 32, 1.0, "spread"),
        ),
    ],
)
def test_the_plans_train_as_the_recipes_do(row, training, encoder):
    """A few rows of papers and released scripts, by hand."""
    path = ROOT / "plans" / f"published-{row[0].split('-')[0]}.toml"
    found = {(t.name, v.name, one.train[0].dataset): one for t, v, one in recipes_of(path)}[row]
    how, seen = found.training, found.encoder
    rates = how.rate, how.encoder_rate
    assert (how.epochs, how.batch, *rates, how.optimizer) == training and how.captions == "all"
    assert (seen.frames, seen.words, seen.fps, seen.sampling) == encoder and seen.tuned


@pytest.mark.parametrize(
    ("paper", "table", "part", "row"),
    [
        ("duq", "duq-s1", "4/4", "DUQ, B/32"),
        ("uatvr", "uatvr-9", "3/4", "UATVR, B/32"),
        ("dvtr", "dvtr-4", "4/5", "DVTR + C2V"),
    ],
)
def test_a_plan_of_a_paper_runs_on_a_small_clip(tiny, tmp_path, paper, table, part, row):
    """No result: a CLIP of random weights, twelve videos of two colours, one epoch."""
    text = (ROOT / "plans" / f"published-{paper}.toml").read_text()
    for size in (32, 16):
        text = text.replace(f"openai/clip-vit-base-patch{size}", str(tiny / "clip"))
    text = text.replace("../recipes/published", str(ROOT / "recipes/published"))
    (tmp_path / "plan.toml").write_text(text + SHORT)
    made = research.reproduce(
        table, tmp_path / "plan.toml", to=tmp_path, seeds=1, part=part, cache=tmp_path / "cache"
    )
    run, *others = made.runs[table]
    assert run.variant == row and run.scores["R@1"] >= 0
    assert {one.key for one in others} <= {run.key, ""}  # rows of the same run
    assert not (tmp_path / "cache").exists()  # no features of an encoder that is trained
    assert list((tmp_path / "frames").glob("*/*.jpg"))


def test_tables_on_experts_run_once_their_features_are_named(tiny, tmp_path):
    """No result: features of chance of twelve videos, one epoch."""
    text = (ROOT / "plans" / "published-dvtr.toml").read_text()
    with pytest.raises(SureshotError, match=r"12 rows left out on MSVD.*names no experts"):
        research.reproduce("dvtr-13", ROOT / "plans" / "published-dvtr.toml", to=tmp_path)
    draw, folder = np.random.default_rng(0), tmp_path / "experts"
    for name, size in (("audio", 5), ("motion", 7)):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            np.save(folder / name / f"video{number}.npy", draw.normal(size=(3, size)))
    text = text.replace("../recipes/published", str(ROOT / "recipes/published"))
    text = text.replace("[encoders]\n", '[encoders]\nexperts = "tiny"\n')
    text = text.replace(
        'root = "$SURESHOT_DATA/msvd"\n', f'root = "{tiny}/msvd"\nexperts = "{folder}"\n'
    )
    named = 'systems = ["hit"]\nsettings = { experts = ["audio", "motion"], bank = 0 }\n'
    (tmp_path / "plan.toml").write_text(f"{text}{SHORT}\n[[cases]]\n{named}")
    made = research.reproduce(
        "dvtr-13",
        tmp_path / "plan.toml",
        to=tmp_path,
        seeds=1,
        part="7/12",
        cache=tmp_path / "cache",
    )
    (run,) = made.runs["dvtr-13"]
    assert run.variant == "temperature=0.07" and run.scores["R@1"] >= 0
    data = PlanData(tmp_path / "plan.toml")
    rows, left_out = data.rows(find_table("dvtr-4"), Target("msvd", data.plan.data["msvd"]))
    assert "DVTR + HiT" in [row.name for row in rows] and not any("DVTR" in one for one in left_out)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A small CLIP, and tiny data sets in the papers' layouts."""
    folder = tmp_path_factory.mktemp("papers")
    walls(folder / "walls")
    benchmark("lsmdc", folder / "lsmdc", folder / "walls" / "videos")
    benchmark("msvd", folder / "msvd", folder / "walls" / "videos")
    clip(folder / "clip", shared=64, inner=256)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURESHOT_DATA", str(folder))
        yield folder

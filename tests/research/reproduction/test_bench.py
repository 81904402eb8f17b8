"""The data of a plan: read, kept apart, and with fewer frames."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.systems.base import Sizes, load_system
from sureshot.research.reproduction.plan import (
    Bench,
    Features,
    FinalRecipe,
    Place,
    load_tables,
    read_plan,
)
from sureshot.research.reproduction.runs import PlannedRun, recipe_of
from sureshot.research.training.recipe import ValidationRecipe, resolve_paths
from tests.heard import Heard
from tests.layouts import benchmark
from tests.models.encoders.test_clip import clip
from tests.paths import ROOT
from tests.walls import plan, walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder


def changed(place, tmp_path, *pairs):
    """The plan with some of its text replaced."""
    text = (place / "plan.toml").read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "plan.toml").write_text(text)
    return read_plan(tmp_path / "plan.toml")


def bench(place, plan=None, **more):
    return Bench(
        plan or read_plan(place / "plan.toml"), place, **{"cache": place / "cache", **more}
    )


def home(place):
    made = bench(place)
    return made.features(made.plan.home, made.plan.encoder)


def test_a_plan_is_read(place):
    read = read_plan(place / "plan.toml")
    assert read.home.val == ValidationRecipe("pairs", Path("pairs.csv"))
    assert read.away is not None and read.away.test.label == "walls away"
    assert (read.encoder.name, read.stem.width, read.training.epochs) == ("tiny", 16, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 1", "epoch = 1", r"Unknown setting training\.epoch; known: epochs"),
        ("epochs = 1", 'epochs = "many"', r"training\.epochs is 'many'; expected a whole number"),
        ("[home.val]", "[home.vall]", r"Unknown setting home\.vall; known: train, test, val"),
        ('root = "pairs.csv"', "", r"Setting home\.val\.root is missing"),
        ("[stem]", "[stem", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(place, tmp_path, old, new, message):
    with pytest.raises(SureshotError, match=message):
        changed(place, tmp_path, (old, new))


def test_a_plan_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SureshotError, match=r"Cannot read .*plan\.toml: no such file"):
        read_plan(tmp_path / "plan.toml")


def test_both_worlds_are_encoded_and_told_of(place):
    heard = Heard()
    made = bench(place, progress=heard)
    encoder = made.encoder(made.plan.encoder)
    assert encoder.name == "tiny" and encoder is made.encoder(made.plan.encoder)
    assert made.encoder(made.plan.encoder, fresh=True) is not encoder
    assert not heard.updates  # nothing is encoded before it is asked for
    both = [made.features(world, made.plan.encoder) for world in (made.plan.home, made.plan.away)]
    for world in both:
        assert [len(part.videos) for part in (world.train, world.val, world.test)] == [6, 3, 3]
        assert {len(video.frames) for video in world.train.videos} == {3}
    assert both[1].test.split.title() == "pairs walls away (3)"
    assert {("videos encoded", 6, 6), ("captions encoded", 6, 6)} <= set(heard.updates)
    assert made.features(made.plan.home, made.plan.encoder) is both[0]


def test_a_data_set_is_read_only_where_it_is_asked_for(place, tmp_path):
    gone = changed(
        place, tmp_path, ("away/pairs.csv", "gone.csv"), ('"pairs.csv"', '"$WALLS/pairs.csv"')
    )
    made = bench(place, gone)
    assert len(made.splits(gone.home).test.items) == 3
    with pytest.raises(SureshotError, match=r"gone\.csv"):
        made.splits(gone.away)


def test_a_path_may_start_in_the_home_folder(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.chdir("/")
    home = changed(place, tmp_path, ('"$WALLS/pairs.csv"', '"~/pairs.csv"'))
    assert len(resolve_paths(home.home.train, tmp_path).load().items) == 6


def test_videos_to_choose_on_may_be_held_out_of_the_training_set(place, tmp_path):
    text = (place / "plan.toml").read_text()
    first, rest = text.split("[home.val]")
    rest = rest[rest.index("[home.test]") :].replace("[away", "[data.msvd", 3)
    (tmp_path / "plan.toml").write_text(
        f"{first}{rest}".replace("[home.test]", "[home]\nhold_out = 2\n[home.test]")
    )
    made = bench(place, read_plan(tmp_path / "plan.toml"))
    found = made.splits(made.plan.home)
    assert (len(found.train.items), len(found.val.items), found.val.name) == (4, 2, "val")
    assert made.splits(made.plan.data.msvd).test.label == "walls away"


def test_a_data_set_with_two_ways_to_choose_is_refused(place, tmp_path):
    with pytest.raises(SureshotError, match="needs either val or hold_out"):
        changed(place, tmp_path, ("[home.train]", "[home]\nhold_out = 2\n[home.train]"))


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
    (tmp_path / "plan.toml").write_text((place / "plan.toml").read_text() + CASES)
    read = read_plan(tmp_path / "plan.toml")
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
    ],
)
def test_a_case_about_what_there_is_not_is_refused(place, tmp_path, old, new, message):
    text = (place / "plan.toml").read_text() + CASES.replace(old, new)
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(SureshotError, match=message):
        read_plan(tmp_path / "plan.toml")


def test_a_case_whose_setting_there_is_not_is_refused(place, tmp_path):
    with pytest.raises(SureshotError, match=r"Unknown setting cases\.1\.encoder\.frame; known"):
        text = (place / "plan.toml").read_text() + CASES.replace("{ frames", "{ frame")
        (tmp_path / "plan.toml").write_text(text)
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('split = "val"', 'split = "train"'),
        ('split = "test"', 'split = "train"'),
        ('split = "test"', 'split = "val"'),
    ],
)
def test_parts_that_share_videos_are_refused(place, tmp_path, old, new):
    mixed = changed(place, tmp_path, (old, new))
    with pytest.raises(SureshotError, match=r"share [36] videos"):
        bench(place, mixed).splits(mixed.home)


def test_relative_paths_start_at_the_folder_and_variables_are_filled_in(place, monkeypatch):
    monkeypatch.chdir("/")
    recipe = FinalRecipe("pairs", Path("pairs.csv"))
    assert resolve_paths(recipe, place).load().items[0].path.is_relative_to(place)
    monkeypatch.setenv("SOMEWHERE", str(place / "videos"))
    listed = resolve_paths(replace(recipe, videos=Path("$SOMEWHERE/..")), place).load()
    assert len(listed.items) == 3
    (place / "ids.txt").write_text("videos/9.mp4\n")
    some = resolve_paths(replace(recipe, ids=Path("ids.txt"), label="one"), place).load()
    assert (len(some.items), some.label) == (1, "one")


def test_fewer_frames_are_the_middles_of_equal_parts(place):
    features = home(place)
    random = np.random.default_rng(0)

    def video(count):
        return FrameFeatures(*(random.normal(size=(count, *s)) for s in ((4,), (2, 4), (5,))))

    lengths = (1, 2, 3, 5, 8, 12)
    long = replace(features.train, videos=[video(count) for count in lengths])
    for frames in (1, 2, 4, 12):
        fewer = Features(long, features.val, features.test).fewer(frames)
        assert fewer.train.frames == frames
        assert fewer.train.split is long.split and fewer.train.texts is long.texts
        for count, before, after in zip(lengths, long.videos, fewer.train.videos, strict=True):
            rows = list(range(count))
            if count > frames:
                rows = [int((2 * part + 1) * count / (2 * frames)) for part in range(frames)]
            np.testing.assert_array_equal(after.frames, before.frames[rows])
            np.testing.assert_array_equal(after.patches, before.patches[rows])
            np.testing.assert_array_equal(after.backbone, before.backbone[rows])


def test_a_video_that_is_short_already_stays_as_it_is(place):
    features = home(place)
    assert features.fewer(12).test.videos[0] is features.test.videos[0]


# --- the plans of the papers ----------------------------------------------------------------------

PLANS = sorted((ROOT / "plans").glob("*.toml"))
SHORT = """
[[cases]]
encoder = { device = "cpu", frames = 2 }
training = { epochs = 1, batch = 4, micro_batch = 2, workers = 2, rate = 1e-3 }
"""


def runs_of(plan):
    """Each different run that a plan would make of the papers' tables, one seed."""
    seen = []
    for table in load_tables().values():
        for name in table.data if table.kind == "recalls" else ():
            world = getattr(plan.data, name)
            if world is not None:
                for variant in table.variants:
                    cell = PlannedRun(variant=variant, seed=0, place=Place(name, world))
                    seen.append((table, variant, recipe_of(cell, plan)))
    return seen


def test_there_is_a_plan_for_each_paper():
    assert [path.stem for path in PLANS] == ["published-duq", "published-dvtr", "published-uatvr"]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_settings_of_every_row_build_on_the_plan_of_its_paper(path):
    read = read_plan(path)
    paper = path.stem.removeprefix("published-")
    tables = [one for name, one in load_tables().items() if name.startswith(f"{paper}-")]
    data = {name for one in tables for name in (*one.data, *one.elsewhere)} - {"msrvtt_qa"}
    assert all(getattr(read.data, name) is not None for name in data)
    assert (read.questions is not None) == (paper == "duq")
    for settings in {repr(recipe.system): recipe.system for _, _, recipe in runs_of(read)}.values():
        load_system(settings, Sizes(16, 3))


def test_the_plans_train_as_the_scripts_do():
    """A few rows of the table of the released scripts, by hand."""
    duq, uatvr = (
        {
            (table.name, variant.name, recipe.train[0].dataset): recipe
            for table, variant, recipe in runs_of(read_plan(ROOT / "plans" / f"published-{n}.toml"))
        }
        for n in ("duq", "uatvr")
    )

    def told(recipe):
        one = recipe.training
        return one.epochs, one.batch, one.rate, one.encoder_rate, one.optimizer, one.captions

    def seen(recipe):
        one = recipe.encoder
        return one.tuned, one.frames, one.words, one.fps, one.sampling

    row = duq["duq-1", "DUQ", "msrvtt"]
    assert told(row) == (10, 128, 1e-4, 1e-7, "bert_adam", "all")
    assert seen(row) == (True, 12, 32, 1.0, "spread")
    assert (row.training.augment, row.system["mode"]) == ("rand_augment", "paper")
    row = duq["duq-2", "DUQ", "didemo"]
    assert (row.training.epochs, row.training.augment) == (10, "none")
    assert seen(row) == (True, 64, 64, 1.0, "spread")
    assert duq["duq-2", "DUQ", "charades"].encoder.words == 24
    row = duq["duq-1", "X-Pool", "msrvtt"]
    assert told(row) == (5, 32, 3e-5, 1e-6, "hugging_face", "all")
    assert seen(row) == (True, 12, None, None, "segments") and row.training.augment == "crop_flip"
    row = duq["duq-2", "T-MASS", "lsmdc"]
    assert (row.training.rate, row.system["support"]) == (1e-5, 0.0)
    assert (row.system["noise"], row.system["deviation"]) == ("normal", 3e-3)
    assert "support" not in duq["duq-1", "T-MASS", "msrvtt"].system
    row = uatvr["uatvr-6", "UATVR", "msrvtt"]
    assert told(row) == (5, 64, 5e-5, 5e-8, "bert_adam", "all")
    assert (row.training.sampling, row.training.precision) == ("phase", "float16")
    row = uatvr["uatvr-6", "CLIP4Clip", "msrvtt"]
    assert told(row) == (5, 128, 1e-4, 1e-7, "bert_adam", "all") and row.training.keep_frames


@pytest.mark.parametrize(
    ("paper", "table", "part", "row"),
    [
        ("duq", "duq-s1", "6/7", "DUQ"),
        ("duq", "duq-s1", "4/7", "T-MASS"),
        ("uatvr", "uatvr-9", "4/4", "UATVR"),
        ("dvtr", "dvtr-4", "2/6", "DVTR + HiT"),
        ("dvtr", "dvtr-4", "6/6", "DVTR + C2V"),
    ],
)
def test_a_plan_of_a_paper_runs_on_a_small_clip(tiny, tmp_path, paper, table, part, row):
    """No result: a CLIP of random weights, twelve videos of two colours, one epoch."""
    text = (ROOT / "plans" / f"published-{paper}.toml").read_text()
    for size in (32, 16):
        text = text.replace(f"openai/clip-vit-base-patch{size}", str(tiny / "clip"))
    (tmp_path / "plan.toml").write_text(text + SHORT)
    made = research.reproduce(
        table, tmp_path / "plan.toml", to=tmp_path, seeds=1, part=part, cache=tmp_path / "cache"
    )
    (run,) = made.runs[table]
    assert run.variant == row and run.scores["R@1"] >= 0
    assert (tmp_path / "cache").exists() == (row == "DVTR + HiT")


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

"""Recipes: read, refused by name, kept with a checkpoint, and the splits they stand for."""

import csv
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.models.systems.base import Sizes, load_system
from sureshot.research.training.recipe import EncoderRecipe, Recipe, TrainingConfig
from tests.paths import ROOT

TEXT = """
[[train]]
dataset = "pairs"
root = "train.csv"
videos = "clips"

[val]
dataset = "pairs"
root = "val.csv"
videos = "clips"

[encoder]
frames = 8

[stem]
kind = "linear"
width = 64

[system]
name = "clip4clip"
temporal = "mean"

[training]
epochs = 3
rate = 1e-3
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "recipe.toml").write_text(TEXT)
    (tmp_path / "clips").mkdir()
    for part, numbers in (("train", range(8)), ("val", range(8, 11))):
        with (tmp_path / f"{part}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["video", "caption"])
            for number in numbers:
                (tmp_path / "clips" / f"{number}.mp4").write_bytes(b"x")
                writer.writerows([[f"{number}.mp4", f"one {number}"], [f"{number}.mp4", "two"]])
    return tmp_path


def load(place, *overrides):
    return Recipe.load(place / "recipe.toml", overrides)


def refused(place, *overrides):
    with pytest.raises(SureshotError) as caught:
        load(place, *overrides)
    return str(caught.value)


def test_a_recipe_is_read_with_defaults_and_paths_from_its_folder(place, monkeypatch):
    monkeypatch.chdir(place)
    recipe = Recipe.load(Path("recipe.toml"))
    assert recipe.train[0].root == place / "train.csv"
    assert recipe.train[0].videos == place / "clips"
    assert recipe.train[0].ids is None and recipe.train[0].split == "train"
    assert recipe.val is not None and recipe.val.root == place / "val.csv"
    assert recipe.val.split == "val"
    assert recipe.system == {"name": "clip4clip", "temporal": "mean"}
    assert (recipe.stem.kind, recipe.stem.width, recipe.encoder.frames) == ("linear", 64, 8)
    assert recipe.training == TrainingConfig(epochs=3, rate=1e-3, captions="one")


def test_overrides_replace_and_their_paths_start_at_the_file_too(place, monkeypatch):
    monkeypatch.chdir("/")
    recipe = load(place, "training.epochs=7", "train.0.root=other.csv", "system.layers=2")
    assert recipe.training.epochs == 7
    assert recipe.train[0].root == place / "other.csv"
    assert recipe.system["layers"] == 2


def test_a_path_may_name_a_variable_of_the_environment(place, monkeypatch):
    monkeypatch.setenv("SOMEWHERE", "/data")
    monkeypatch.delenv("NOWHERE", raising=False)
    recipe = load(place, "train.0.root=$SOMEWHERE/x.csv", "val.videos=a/$SOMEWHERE")
    assert recipe.train[0].root == Path("/data/x.csv")
    assert recipe.val is not None and recipe.val.videos == place / "a/data"
    assert load(place, "val.root=$NOWHERE/x.csv").val.root == place / "$NOWHERE/x.csv"


def test_experts_start_at_the_file_and_stay_with_what_is_held_out(place, monkeypatch):
    monkeypatch.setenv("SOMEWHERE", "/data")
    recipe = load(place, "train.0.experts=near", "val.experts=$SOMEWHERE/experts")
    assert recipe.train[0].experts == place / "near"
    assert recipe.val is not None and recipe.val.experts == Path("/data/experts")
    train, val = recipe.splits()
    assert train[0].experts == place / "near" and val.experts == Path("/data/experts")
    text = TEXT.replace("[val]", "[[train]]").replace("[encoder]", 'split = "train"\n\n[encoder]')
    (place / "recipe.toml").write_text("hold_out = 3\n" + text)
    train, held = load(place, "train.0.experts=near").splits()
    assert [part.experts for part in (*train, held)] == [place / "near", None, place / "near"]
    assert load(place).train[0].experts is None


def test_experts_of_training_are_wanted_for_validation_and_of_a_frozen_encoder(place):
    assert "give val.experts too" in refused(place, "train.0.experts=here")
    both = ("train.0.experts=here", "val.experts=here")
    assert "set encoder.tuned to false" in refused(place, *both, "encoder.tuned=true")
    assert load(place, "val.experts=here").val.experts == place / "here"


def test_every_recipe_of_the_repository_can_be_read(monkeypatch):
    monkeypatch.setenv("SURESHOT_DATA", "/data")
    found = sorted((ROOT / "recipes").glob("*.toml"))
    assert found
    for path in found:
        recipe = Recipe.load(path)
        assert recipe.train[0].root.is_relative_to("/data")
        load_system(recipe.system, Sizes(recipe.stem.width, 3))


def test_an_encoder_may_be_a_folder_beside_the_recipe_or_a_name(place, monkeypatch):
    (place / "my-clip").mkdir()
    assert load(place, "encoder.name=my-clip").encoder.name == str(place / "my-clip")
    monkeypatch.setenv("HOME", str(place))
    assert load(place, "encoder.name=~/my-clip").encoder.name == str(place / "my-clip")
    assert load(place, "encoder.name=openai/clip").encoder.name == "openai/clip"


def test_a_recipe_survives_its_own_text_wherever_that_lies(place, tmp_path_factory):
    recipe = load(place, "training.micro_batch=16", "hold_out=0", "train.0.label=köln")
    other = tmp_path_factory.mktemp("other") / "copy.toml"
    other.write_text(recipe.to_toml(), "utf-8")
    assert Recipe.load(other) == recipe
    assert Recipe.from_dict(recipe.to_dict(), other.parent) == recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epoch=3", "Unknown setting training.epoch; known: epochs, batch, captions"),
        ("trainings.epochs=3", "Unknown setting trainings; known: train, system, val"),
        ("training.epochs=many", "Setting training.epochs is 'many'; expected a whole number"),
        ("training.batch=1", "Setting training.batch is 1; it must be between 2"),
        ("training.rate=nan", "Cannot set training.rate: it holds nan"),
        ("training.captions=some", "training.captions is 'some'; known: one, all"),
        ("val.split=test", "val.split is 'test'; nothing is trained or chosen on what it is"),
        ("train.0.split=test", "train.0.split is 'test'"),
        ("train=[]", "no training set"),
        ("system={}", "names no system"),
        ("system.name=3", "names no system"),
        ("hold_out=2", "both val and hold_out"),
        ("nonsense", "Cannot set 'nonsense'"),
    ],
)
def test_what_is_wrong_is_named(place, override, message):
    assert message in refused(place, override)


def test_best_needs_something_to_be_told_by(place):
    text = TEXT.replace("[training]", 'hold = "x"\n[training]\nkeep = "best"')
    text = text.replace('hold = "x"\n', "")
    start, end = text.index("[val]"), text.index("[encoder]")
    (place / "recipe.toml").write_text(text[:start] + text[end:])
    assert 'training.keep is "best"' in refused(place)
    assert load(place, "hold_out=2").training.keep == "best"
    assert load(place, "training.keep=last").val is None
    assert "hold_out is -1" in refused(place, "hold_out=-1", "training.keep=last")


def test_a_file_that_is_none_or_no_toml_is_named(place):
    with pytest.raises(SureshotError, match=r"Cannot read the recipe .*no\.toml: no such file"):
        Recipe.load(place / "no.toml")
    with pytest.raises(SureshotError, match=r"Cannot read the recipe"):
        Recipe.load(place)
    (place / "recipe.toml").write_text("a = = 1")
    assert "is not TOML" in refused(place)
    (place / "recipe.toml").write_bytes(b"\xff\xfe\xfd")
    assert "is not TOML" in refused(place)


def without_val(place):
    start, end = TEXT.index("[val]"), TEXT.index("[encoder]")
    (place / "recipe.toml").write_text(TEXT[:start] + TEXT[end:])


def test_training_and_validation_that_share_videos_are_refused(place):
    with pytest.raises(SureshotError, match="share 8 videos"):
        load(place, "val.root=train.csv").splits()


def test_videos_are_held_out_by_the_seed_and_not_trained_on(place):
    without_val(place)

    def held(seed):
        train, val = load(place, "hold_out=3", f"training.seed={seed}").splits()
        own, others = ({item.id for item in part.items} for part in (val, train[0]))
        assert val.name == "val" and len(own) == 3
        assert not own & others and len(own | others) == 8
        assert len(val.captions) == 6
        return frozenset(own)

    assert held(0) == held(0)
    assert len({held(seed) for seed in range(6)}) > 2


def test_not_everything_can_be_held_out(place):
    without_val(place)
    with pytest.raises(SureshotError, match=r"hold_out is 7; of the 8 videos .* at least two"):
        load(place, "hold_out=7").splits()
    assert len(load(place, "hold_out=6").splits()[0][0].items) == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: EncoderRecipe(sampling="random"),
            'encoder.sampling is "random".*training.sampling',
        ),
        (lambda: EncoderRecipe(words=32), "encoder.words goes with an encoder that is trained too"),
        (lambda: EncoderRecipe(fps=0.0), "encoder.fps"),
        (lambda: TrainingConfig(save_every=-1), "training.save_every"),
        (
            lambda: TrainingConfig(sampling="head").for_encoder(EncoderRecipe()),
            "about pixels.*frozen",
        ),
        (
            lambda: TrainingConfig(augment="crop_flip").for_encoder(EncoderRecipe()),
            "training.augment",
        ),
        (lambda: TrainingConfig(precision="float16").for_encoder(EncoderRecipe()), "bfloat16"),
        (
            lambda: TrainingConfig(keep_frames=True).for_encoder(EncoderRecipe()),
            "training.keep_frames",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(make, words):
    with pytest.raises(SureshotError, match=words):
        make()

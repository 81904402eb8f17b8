"""The data of a plan: read, kept apart, and with fewer frames."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.models.encoders.protocol import FrameFeatures
from sureshot.research.reproduction.bench import Features, FinalRecipe, read_plan, worlds
from sureshot.research.training.recipe import ValidationRecipe, placed
from tests.walls import plan


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
        ("[home.val]", "[home.vall]", r"Unknown setting home\.vall; known: train, val, test"),
        ('root = "pairs.csv"', "", r"Setting home\.val\.root is missing"),
        ("[stem]", "[stem", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(place, tmp_path, old, new, message):
    with pytest.raises(SureshotError, match=message):
        changed(place, tmp_path, (old, new))


def test_a_plan_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SureshotError, match=r"Cannot read .*plan\.toml: No such file"):
        read_plan(tmp_path / "plan.toml")


def test_both_worlds_are_encoded_and_told_of(place):
    told = []
    encoder, found = worlds(
        read_plan(place / "plan.toml"),
        place,
        away=True,
        cache=place / "cache",
        told=lambda *said: told.append(said),
    )
    assert encoder.name == "tiny" and len(found) == 2
    for world in found:
        assert [len(part.videos) for part in (world.train, world.val, world.test)] == [6, 3, 3]
        assert {len(video.frames) for video in world.train.videos} == {3}
    assert found[1].test.split.title() == "pairs walls away (3)"
    assert ("videos", 6, 6) in told and ("captions", 6, 6) in told


def test_the_other_world_is_read_only_where_it_is_asked_for(place, tmp_path):
    gone = changed(
        place, tmp_path, ("away/pairs.csv", "gone.csv"), ('"pairs.csv"', '"$WALLS/pairs.csv"')
    )
    _, found = worlds(gone, place, away=False, cache=place / "cache")
    assert len(found) == 1
    with pytest.raises(SureshotError, match=r"gone\.csv"):
        worlds(gone, place, away=True, cache=place / "cache")


def test_a_path_may_start_in_the_home_folder(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.chdir("/")
    home = changed(place, tmp_path, ('"$WALLS/pairs.csv"', '"~/pairs.csv"'))
    assert len(placed(home.home.train, tmp_path).load().items) == 6


def test_a_table_of_two_data_sets_needs_two(place, tmp_path):
    text = (place / "plan.toml").read_text()
    (tmp_path / "one.toml").write_text(
        text[: text.index("[away")] + text[text.index("[encoder]") :]
    )
    alone = read_plan(tmp_path / "one.toml")
    with pytest.raises(SureshotError, match=r"second data set; give it as \[away\.train\]"):
        worlds(alone, place, away=True, cache=place / "cache")
    assert len(worlds(alone, place, away=False, cache=place / "cache")[1]) == 1


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
        worlds(mixed, place, away=False, cache=place / "cache")


def test_relative_paths_start_at_the_folder_and_variables_are_filled_in(place, monkeypatch):
    monkeypatch.chdir("/")
    recipe = FinalRecipe("pairs", Path("pairs.csv"))
    assert placed(recipe, place).load().items[0].path.is_relative_to(place)
    monkeypatch.setenv("SOMEWHERE", str(place / "videos"))
    listed = placed(replace(recipe, videos=Path("$SOMEWHERE/..")), place).load()
    assert len(listed.items) == 3
    (place / "ids.txt").write_text("videos/9.mp4\n")
    some = placed(replace(recipe, ids=Path("ids.txt"), label="one"), place).load()
    assert (len(some.items), some.label) == (1, "one")


def test_fewer_frames_are_the_middles_of_equal_parts(place):
    _, (home,) = worlds(
        read_plan(place / "plan.toml"), place, away=False, cache=place / "cache", told=None
    )
    random = np.random.default_rng(0)

    def video(count):
        return FrameFeatures(*(random.normal(size=(count, *s)) for s in ((4,), (2, 4), (5,))))

    lengths = (1, 2, 3, 5, 8, 12)
    long = replace(home.train, videos=[video(count) for count in lengths])
    for frames in (1, 2, 4, 12):
        fewer = Features(long, home.val, home.test).fewer(frames)
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
    _, (home,) = worlds(
        read_plan(place / "plan.toml"), place, away=False, cache=place / "cache", told=None
    )
    assert home.fewer(12).test.videos[0] is home.test.videos[0]

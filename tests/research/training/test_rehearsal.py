"""What a recipe comes to: numbers that a run then has, and nothing written."""

import pytest

from sureshot.cli.app import run as command
from sureshot.errors import SureshotError
from sureshot.research.training.loop import LOG, read_log
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import dry_run, train
from tests.heard import Heard
from tests.models.encoders.test_clip import clip
from tests.walls import walls

TUNED = (
    "encoder.name=clip",
    "encoder.tuned=true",
    "encoder.frames=2",
    "stem.kind=none",
    "training.workers=2",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = walls(tmp_path_factory.mktemp("walls"))
    (folder / "clip").mkdir()
    clip(folder / "clip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "digests"))
        yield folder


def files(folder):
    return {path for path in folder.rglob("*") if "digests" not in path.parts}


@pytest.mark.parametrize("settings", [(), TUNED], ids=["frozen", "tuned"])
def test_its_numbers_are_those_of_the_run_and_nothing_is_written(place, tmp_path, settings):
    recipe = place / "recipe.toml"
    before = files(place)
    heard = Heard()
    found = dry_run(recipe, settings=settings, progress=heard)
    assert files(place) == before
    assert heard.lines == [
        "pairs pairs.csv train, 6 videos, 12 captions",
        "pairs pairs.csv val, 3 videos, 6 captions",
    ]
    assert (found.videos, found.captions) == (6, 12)
    assert found.pairs == (12 if settings else 6)
    assert found.decoded == (6 * 2 if settings else 0) and found.kept == 0
    assert found.seconds > 0 and found.hours > 0 and (found.encoding > 0) == (not settings)
    train(recipe, to=tmp_path, settings=settings, cache=tmp_path / "cache")
    steps = [entry for entry in read_log(tmp_path / LOG) if "losses" in entry]
    assert len(steps) == found.steps * found.epochs


def test_groups_are_those_of_the_optimiser_and_what_is_fixed(place):
    found = dry_run(
        place / "recipe.toml",
        settings=(*TUNED, "training.optimizer=bert_adam", "training.weight_decay=0.2"),
    )
    rows = {(group.part, group.rate, group.decay) for group in found.groups}
    rate, slow = (Recipe.load(place / "recipe.toml", TUNED).training.rate, 1e-7)
    assert rows == {
        ("encoder", slow, 0.2),
        ("encoder", slow, 0.0),
        ("system", rate, 0.2),
        ("system", rate, 0.0),
        ("encoder", 0.0, 0.0),
    }
    assert all(group.tensors > 0 and group.weights >= group.tensors for group in found.groups)


def test_kept_frames_are_told_with_their_size(place):
    found = dry_run(place / "recipe.toml", settings=(*TUNED, "training.keep_frames=true"))
    assert 1000 < found.kept < 1e6
    assert "12 decoded once and kept, about" in found.text()


def test_what_would_stop_the_run_stops_it_too(place):
    with pytest.raises(SureshotError, match=r"Unknown setting system\.nope"):
        dry_run(place / "recipe.toml", settings=["system.nope=1"])
    with pytest.raises(SureshotError, match="'tiny' cannot be trained"):
        dry_run(place / "recipe.toml", settings=["encoder.tuned=true"])


def test_the_terminal_prints_it(place, capsys):
    assert command(["train", str(place / "recipe.toml"), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "6 videos, 12 captions.\n6 pairs per epoch in" in out
    assert "weights of" in out and "without validation.\n" in out
    assert not (place / "runs").exists()
    assert command(["train", str(place / "recipe.toml"), "--dry-run", "--json"]) == 0
    assert '"steps":' in capsys.readouterr().out

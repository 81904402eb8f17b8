"""Every published recipe trains, and what it trained is evaluated by the command that it names.

CLIP is tiny and has random weights, the data sets are tiny and laid out as their authors have them.
All else is as in the file, but for what `smaller` scales.
"""

import math
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sureshot import research
from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from sureshot.models.encoders import load_encoder
from sureshot.models.huggingface import ENCODER, WEIGHTS
from sureshot.models.systems.base import Sizes
from sureshot.research import Recipe
from sureshot.research.training.loop import LOG, read_log
from sureshot.research.training.run import new_model
from tests.heard import Heard
from tests.layouts import benchmark
from tests.models.encoders.test_clip import clip
from tests.paths import ROOT
from tests.walls import walls

RECIPES = {path.stem: path for path in sorted((ROOT / "recipes/published").glob("*.toml"))}
# The data sets that each paper reports on, of those that there are readers for.
REPORTED = {
    "clip2video": "msrvtt msrvtt-full msvd vatex",
    "clip4clip-mean": "msrvtt msrvtt-7k msvd lsmdc activitynet didemo",
    "clip4clip-sequential": "msrvtt msrvtt-7k msvd lsmdc activitynet didemo",
    "duq": "msrvtt msvd lsmdc didemo vatex charades",
    "duq_released": "msrvtt msvd lsmdc activitynet didemo vatex charades",
    "dvtr-clip2video": "msrvtt msrvtt-full msvd lsmdc activitynet vatex",
    "dvtr-hit": "msrvtt msrvtt-full msvd lsmdc activitynet vatex",
    "emcl": "msrvtt msvd lsmdc activitynet didemo",
    "tmass": "msrvtt lsmdc didemo vatex charades",
    "uatvr": "msrvtt msvd didemo vatex",
    "xpool": "msrvtt msrvtt-7k msvd lsmdc",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data sets, where recipes look for them, and a CLIP with the layers that systems take."""
    folder = tmp_path_factory.mktemp("benchmarks")
    videos = walls(folder / "walls") / "videos"
    for name in ("msrvtt", "msvd", "lsmdc", "activitynet", "didemo", "vatex", "charades"):
        benchmark(name, folder / name, videos)
    (folder / "clip").mkdir()
    clip(folder / "clip", shared=32, inner=128, layers=4, longest=77)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURESHOT_DATA", str(folder))
        patch.setattr("sureshot.files.cache_dir", lambda: folder / "digests")
        # Pictures of two steps would take half of the time.
        patch.setattr("sureshot.research.training.loop.draw", lambda *_, **__: None)
        yield folder


def smaller(path: Path, data: Path) -> list[str]:
    """What of a recipe is other here: its CLIP and sizes, and two steps in all.

    Half precision goes too: it overflows with weights as large as those of this CLIP.
    """
    recipe = Recipe.load(path)
    split = recipe.train[0].load()
    once = recipe.training.captions == "one" or len(split.captions) == len(split.items)
    settings = [
        f"encoder.name={data / 'clip'}",
        "encoder.device=cpu",
        f"training.epochs={2 if once else 1}",
        "training.batch=32",
        "training.precision=float32",
        "training.workers=1",
    ]
    if recipe.training.micro_batch:
        settings.append("training.micro_batch=8")
    return settings


def commands(path: Path) -> list[list[str]]:
    """What the comment that a recipe begins with says to type after ``sureshot``."""
    comment = [line[1:] for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    text = "\n".join(line for line in comment if line.startswith("     "))
    lines = os.path.expandvars(text.replace("\\\n", " ")).splitlines()
    return [shlex.split(line)[1:] for line in lines]


def moved(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> bool:
    """Whether training changed any weight."""
    return any(not torch.equal(weight, before[name]) for name, weight in after.items())


def test_every_data_set_that_a_paper_reports_has_its_recipe() -> None:
    assert set(RECIPES) == {
        f"{system}-{name}" for system, names in REPORTED.items() for name in names.split()
    }


@pytest.mark.parametrize("name", RECIPES)
def test_a_published_recipe_can_be_read_and_names_its_commands(name: str) -> None:
    training, testing = commands(RECIPES[name])
    assert training == ["train", f"recipes/published/{name}.toml"]
    assert testing[:2] == ["evaluate", f"runs/{name}/model"]
    recipe = Recipe.load(RECIPES[name])
    assert recipe.training.keep == "last" and recipe.val is None and not recipe.hold_out


def _one_of_each_system() -> Iterator[object]:
    """All recipes; those of a data set that another system stands for are slow."""
    for number, (system, names) in enumerate(REPORTED.items()):
        sets = names.split()
        for place, name in enumerate(sets):
            marks = () if place == number % len(sets) else (pytest.mark.slow,)
            yield pytest.param(f"{system}-{name}", marks=marks)


@pytest.mark.parametrize("name", list(_one_of_each_system()))
def test_a_published_recipe_trains_and_is_evaluated(name: str, data: Path, tmp_path: Path) -> None:
    _, testing = commands(RECIPES[name])
    recipe = Recipe.load(RECIPES[name], smaller(RECIPES[name], data))
    heard, run = Heard(), tmp_path / "run"
    folder = research.train(recipe, to=run, cache=data / "cache", progress=heard).folder
    steps = [entry for entry in read_log(run / LOG) if "losses" in entry]
    passes = 2 if recipe.system["name"] == "dvtr" else 1
    assert heard.steps == [step["step"] for step in steps] == list(range(1, 2 * passes + 1))
    assert all(math.isfinite(loss) for step in steps for loss in step["losses"].values())
    if recipe.encoder.tuned:
        assert moved(load_file(data / "clip" / WEIGHTS), load_file(folder / ENCODER / WEIGHTS))
    else:
        encoder = load_encoder(recipe.encoder.name, "cpu")
        sizes, seed = Sizes(encoder.dim, encoder.channels), recipe.training.seed
        fresh = new_model(recipe.stem, recipe.system, sizes, seed, encoder)
        assert moved(fresh.state_dict(), load_file(folder / WEIGHTS))

    options = dict(zip(testing[2::2], testing[3::2], strict=True))
    evaluated = research.evaluate(
        folder,
        options["--data"],
        options["--root"],
        protocol=options.get("--protocol"),
        against=[options["--against"]],
        device="cpu",
        cache=data / "cache",
    ).report
    trained_on = recipe.train[0]
    tested = load_split(trained_on.dataset, "test", trained_on.root, protocol=trained_on.protocol)
    assert (evaluated.setting.texts, evaluated.setting.videos) == (len(tested.captions), 3)
    assert evaluated.title == tested.title() and math.isfinite(evaluated.rsum)
    # Printed rows are of the whole test set alone, and these are three videos.
    assert evaluated.left_out and not evaluated.matches["t2v"] and not evaluated.out_of_domain


def test_data_that_is_not_there_is_told_before_anything_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SURESHOT_DATA")
    with pytest.raises(SureshotError, match=r"The variable \$SURESHOT_DATA is not set; .* data"):
        research.train(RECIPES["xpool-msvd"], to=tmp_path / "run")
    monkeypatch.setenv("SURESHOT_DATA", str(tmp_path))
    with pytest.raises(SureshotError, match=r"msvd is not a folder; give the one with the annot"):
        research.train(RECIPES["xpool-msvd"], to=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "words", "setting"),
    [
        ("xpool-msvd", "words = 77\n", "augment"),
        ("clip2video-msvd", "words = 32\n", "sampling"),
    ],
)
def test_settings_of_pixels_are_refused_beside_a_frozen_encoder(
    name: str, words: str, setting: str, tmp_path: Path
) -> None:
    mixed = tmp_path / "mixed.toml"
    mixed.write_text(RECIPES[name].read_text("utf-8").replace("tuned = true\n", ""), "utf-8")
    with pytest.raises(SureshotError, match=r"encoder\.words goes with an encoder that is trained"):
        research.train(mixed, to=tmp_path / "run")
    mixed.write_text(mixed.read_text("utf-8").replace(words, ""), "utf-8")
    with pytest.raises(SureshotError, match=rf"training\.{setting} is about pixels, .* is frozen"):
        research.train(mixed, to=tmp_path / "run", settings=["training.precision=float32"])
    assert not (tmp_path / "run").exists()


def test_a_shift_of_nothing_is_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "phase.toml"
    text = RECIPES["duq-msrvtt"].read_text("utf-8")
    recipe.write_text("\n".join(line for line in text.splitlines() if not line.startswith("fps")))
    with pytest.raises(SureshotError, match=r'training\.sampling is "phase".*; give encoder\.fps'):
        research.train(recipe, to=tmp_path / "run", settings=["training.sampling=phase"])


def test_a_clip_without_the_layers_asked_for_is_told_and_the_run_before_stays(
    data: Path, tmp_path: Path
) -> None:
    recipe = RECIPES["clip4clip-sequential-msvd"]
    settings = smaller(recipe, data)
    research.train(Recipe.load(recipe, settings), to=tmp_path / "run")
    before = (tmp_path / "run" / LOG).read_bytes()
    for folder in (tmp_path / "run", tmp_path / "new"):
        with pytest.raises(SureshotError, match=r"/clip\. .*no encoder\.layers\.4.*choose fewer"):
            deeper = Recipe.load(recipe, [*settings, "system.layers=5"])
            research.train(deeper, to=folder, resume=folder.name == "run")
    assert (tmp_path / "run" / LOG).read_bytes() == before and not (tmp_path / "new").exists()

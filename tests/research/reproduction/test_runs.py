"""A run is made once, by validation, and says what the kept weights score."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from sureshot.progress import Silent
from sureshot.research.reproduction import runs as module
from sureshot.research.reproduction.plan import HOME, Bench, Place, Variant, read_plan
from sureshot.research.reproduction.runs import (
    PlannedRun,
    Run,
    cells,
    perform,
    read_run_ranks,
    recipe_of,
)
from sureshot.research.training.encoder_tuning import TunedClip
from tests.models.encoders.test_clip import clip
from tests.walls import plan, tuned_plan

CLIP4CLIP = Variant("mean", {"name": "clip4clip", "scale": 20.0})
XPOOL = Variant("attention", {"name": "xpool", "dropout": 0.0, "scale": 20.0})


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        made = Bench(read_plan(folder / "plan.toml"), folder, cache=folder / "cache")
        for world in (made.plan.home, made.plan.away):
            made.features(world, made.plan.encoder)
    return made


@pytest.fixture
def made(bench, tmp_path):
    """Makes runs; ``tested`` has the matrices that the test sets were given."""

    def make(variant, seed=0, elsewhere=False, **more):
        read = bench.plan
        wanted = copy.copy(bench)
        wanted.plan = replace(read, training=replace(read.training, **more))
        place = Place(HOME, read.home, (("", read.away),) if elsewhere else ())
        return perform(PlannedRun(variant, seed, place), wanted, tmp_path)

    return make


def test_the_rows_of_a_seed_come_before_the_next_seed(bench):
    place = Place(HOME, bench.plan.home)
    assert cells([CLIP4CLIP, XPOOL], place, 2) == [
        PlannedRun(CLIP4CLIP, 0, place),
        PlannedRun(XPOOL, 0, place),
        PlannedRun(CLIP4CLIP, 1, place),
        PlannedRun(XPOOL, 1, place),
    ]


def test_a_run_is_remembered_and_leaves_nothing_else(made, tmp_path):
    run = made(XPOOL, seed=3)
    record, ranks = sorted(tmp_path.iterdir())
    assert (record.stem, ranks.name) == (run.key, f"{run.key}.npz")
    assert Run(**json.loads(record.read_text())) == run
    found = read_run_ranks(ranks)[""]
    assert 100 * np.mean(found.texts <= 1) == pytest.approx(run.scores["R@1"], abs=1e-4)
    assert 100 * np.mean(found.videos <= 5) == pytest.approx(run.scores["v2t R@5"], abs=1e-4)
    assert (run.variant, run.seed, run.epoch) == ("attention", 3, 1)
    assert 0 <= run.validation <= 600 and run.parameters > 1000 and run.seconds > 0
    assert set(run.scores) == {
        "R@1", "R@5", "R@10", "MdR", "MnR", "R@Sum", "v2t R@1", "v2t R@5", "v2t R@10",
        "R@1 low", "R@1 high", "R@50", "v2t R@50",
    }  # fmt: skip
    assert set(run.corrected) == set(run.scores)
    assert run.scores["R@1 low"] <= run.scores["R@1"] <= run.scores["R@1 high"]
    assert run.milliseconds > 0


def test_scores_are_those_of_the_test_sets_by_a_loop(made, bench, monkeypatch):
    seen = []
    whole = module.similarity

    def watched(model, features):
        seen.append((whole(model, features), features.split.owner()))
        return seen[-1][0]

    monkeypatch.setattr(module, "similarity", watched)
    run = made(XPOOL, elsewhere=True)
    assert len(seen) == 2  # each test set once
    title = bench.splits(bench.plan.away).test.title()
    for prefix, (scores, owner) in zip(("", f"{title}: "), seen, strict=True):
        ranks = [1 + sum(x > row[own] for x in row) for row, own in zip(scores, owner, strict=True)]
        first = 100 * np.mean([rank <= 1 for rank in ranks])
        assert run.scores[f"{prefix}R@1"] == pytest.approx(first, abs=1e-3)
        assert run.scores[f"{prefix}MnR"] == pytest.approx(np.mean(ranks), abs=1e-3)
        assert run.scores[f"{prefix}MdR"] == pytest.approx(np.median(ranks), abs=1e-3)
        parts = [run.scores[f"{prefix}R@{k}"] for k in (1, 5, 10)]
        assert run.scores[f"{prefix}R@Sum"] == pytest.approx(sum(parts), abs=1e-3)
        best = [
            [scores[owner == own, video].max() for own in range(scores.shape[1])]
            for video in range(scores.shape[1])
        ]
        found = [row[video] == max(row) for video, row in enumerate(best)]
        assert run.scores[f"{prefix}v2t R@1"] == pytest.approx(100 * np.mean(found), abs=1e-3)


def test_a_finished_run_is_not_made_again(made, monkeypatch):
    first = made(XPOOL)
    monkeypatch.setattr(module, "train_on", None)
    assert made(XPOOL) == first
    # A row of another table with the same settings is the same run under its own name.
    assert made(replace(XPOOL, name="X-Pool")) == replace(first, variant="X-Pool")
    for other in (
        lambda: made(XPOOL, seed=1),
        lambda: made(CLIP4CLIP),
        lambda: made(replace(XPOOL, frames=2)),
        lambda: made(XPOOL, elsewhere=True),
        lambda: made(XPOOL, epochs=2),
    ):
        with pytest.raises(TypeError):  # would be trained
            other()
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr(module, "code_digest", lambda systems: "of code that was changed")
        made(XPOOL)
    assert made(XPOOL) == first


def test_the_same_run_made_twice_gives_the_same_numbers(made, tmp_path):
    first = made(XPOOL)
    for record in tmp_path.glob("*.json"):
        record.unlink()
    again = made(XPOOL)
    assert (again.scores, again.validation) == (first.scores, first.validation)


def test_what_a_killed_run_left_is_in_nobodys_way(made, tmp_path):
    made(XPOOL)
    (record,) = tmp_path.glob("*.json")
    record.unlink()
    (tmp_path / f"{record.stem}.run").mkdir()
    (tmp_path / f"{record.stem}.run" / "state.safetensors").write_bytes(b"half")
    made(XPOOL)
    assert {path.stem for path in tmp_path.iterdir()} == {record.stem}


def test_fewer_frames_reach_training_and_all_tests(made, monkeypatch):
    lengths = []
    fit, score = module.train_on, module.similarity

    def trained(recipe, encoder, sets, val, place, **more):
        lengths.append({len(video.frames) for video in [*sets[0].videos, *val.videos]})
        return fit(recipe, encoder, sets, val, place, **more)

    def tested(model, features):
        lengths.append({len(video.frames) for video in features.videos})
        return score(model, features)

    monkeypatch.setattr(module, "train_on", trained)
    monkeypatch.setattr(module, "similarity", tested)
    made(replace(XPOOL, frames=1), elsewhere=True)
    assert lengths == [{1}, {1}, {1}]
    made(XPOOL, elsewhere=True)
    assert lengths[3:] == [{3}, {3}, {3}]


def test_more_frames_than_the_plan_has_are_seen_anew(made, monkeypatch):
    lengths = []
    fit = module.train_on

    def trained(recipe, encoder, sets, val, place, **more):
        lengths.append((recipe.encoder.frames, sets[0].frames))
        return fit(recipe, encoder, sets, val, place, **more)

    monkeypatch.setattr(module, "train_on", trained)
    made(replace(XPOOL, frames=4))
    made(replace(XPOOL, frames=2))
    assert lengths == [(4, 4), (3, 2)]


def test_a_row_after_dsl_is_the_same_run_with_other_scores(made, monkeypatch):
    seen = []
    whole = module.similarity
    monkeypatch.setattr(
        module, "similarity", lambda *a: seen.append((whole(*a), a[1])) or seen[-1][0]
    )
    plain = made(XPOOL)
    monkeypatch.setattr(module, "train_on", None)  # neither is trained again
    post = made(replace(XPOOL, name="X-Pool + DSL", post="DSL"))
    assert (post.variant, post.scores) == ("X-Pool + DSL", plain.corrected)
    ((scores, features),) = seen
    weights = np.exp(100 * (scores - scores.max(0)))
    product = scores * weights / weights.sum(0)
    owner = features.split.owner()
    ranks = [1 + sum(x > row[own] for x in row) for row, own in zip(product, owner, strict=True)]
    assert post.scores["MnR"] == pytest.approx(np.mean(ranks), abs=1e-3)


# --- an encoder that is trained too ---------------------------------------------------------------

TUNED = replace(CLIP4CLIP, system={"name": "clip4clip"})


@pytest.fixture(scope="module")
def pixels(tmp_path_factory):
    """A bench whose plan trains a small CLIP end to end."""
    folder = tmp_path_factory.mktemp("pixels")
    plan(folder)
    clip(folder / "clip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        (folder / "tuned.toml").write_text(tuned_plan())
        yield Bench(read_plan(folder / "tuned.toml"), folder, cache=folder / "cache")


def stop_at(step):
    class Stop(Silent):
        def update(self, what, done, total, more=""):
            if (what, done) == ("steps", step):
                raise KeyboardInterrupt

    return Stop()


@pytest.fixture(scope="module")
def tuned(pixels, tmp_path_factory):
    """A run that nobody stopped, and the folder that it left."""
    folder = tmp_path_factory.mktemp("runs")
    place = Place(HOME, pixels.plan.home, (("", pixels.plan.away),))
    cell = PlannedRun(TUNED, 0, place)
    return perform(cell, pixels, folder), cell, folder


def test_a_tuned_run_is_trained_on_frames_tested_and_leaves_its_record_alone(pixels, tuned):
    run, cell, folder = tuned
    (record,) = folder.glob("*.json")
    assert {path.name for path in folder.iterdir()} == {record.name, f"{record.stem}.npz"}
    assert Run(**json.loads(record.read_text())) == run
    encoder = pixels.encoder(pixels.plan.encoder)
    weights = sum(part.numel() for part in TunedClip(encoder).network.parameters())
    assert run.parameters >= weights > 10_000
    title = pixels.splits(pixels.plan.away).test.title()
    assert {"R@1", f"{title}: R@1"} <= set(run.scores)
    assert perform(cell, pixels, folder) == run  # read, not made again


def test_no_features_of_the_untrained_encoder_are_made(pixels, tuned):
    assert not list((pixels.folder / "cache").rglob("*"))


def test_the_encoder_that_is_trained_is_no_other_runs(pixels, tuned):
    """What every run starts from, and is known by, is still what the folder holds."""
    kept = pixels.encoder(pixels.plan.encoder)
    fresh = pixels.encoder(pixels.plan.encoder, fresh=True)
    assert kept is not fresh and kept.fingerprint == fresh.fingerprint
    same = zip(TunedClip(kept).parameters(), TunedClip(fresh).parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in same)


def test_a_tuned_run_that_was_stopped_goes_on_to_the_same_numbers(pixels, tuned, tmp_path):
    run, cell, _ = tuned
    with pytest.raises(KeyboardInterrupt):
        perform(cell, pixels, tmp_path, stop_at(4))
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".run" and (left / "model").is_dir()  # after the first epoch
    began = []
    again = perform(cell, pixels, tmp_path, Watched(began))
    assert began[0] == 4  # the first epoch's three steps were not taken again
    assert (again.scores, again.validation) == (run.scores, run.validation)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".npz"}


def test_frames_of_a_tuned_run_are_those_of_the_row(pixels):
    place = Place(HOME, pixels.plan.home)
    frames = [
        recipe_of(PlannedRun(replace(TUNED, frames=count), 0, place), pixels.plan).encoder.frames
        for count in (1, None, 20)
    ]
    assert frames == [1, 2, 20]


class Watched(Silent):
    """Keeps the numbers of the steps that are taken."""

    def __init__(self, steps):
        self.steps = steps

    def update(self, what, done, total, more=""):
        if what == "steps":
            self.steps.append(done)

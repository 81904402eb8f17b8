"""A run is made once, by validation, and says what the kept weights score."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sureshot.research.reproduction import runs as module
from sureshot.research.reproduction.bench import read_plan, worlds
from sureshot.research.reproduction.runs import PlannedRun, Run, cells, perform
from sureshot.research.reproduction.tables import Table, Variant, find_table
from tests.walls import plan

CLIP4CLIP = Variant("mean", {"name": "clip4clip", "scale": 20.0})
XPOOL = Variant("attention", {"name": "xpool", "dropout": 0.0, "scale": 20.0})


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        read = read_plan(folder / "plan.toml")
        encoder, found = worlds(read, folder, away=True, cache=folder / "cache")
    return read, encoder, found[0], found[1:]


@pytest.fixture
def made(bench, tmp_path):
    """Makes runs; ``tested`` has the matrices that the test sets were given."""
    read, encoder, home, away = bench

    def make(variant, seed=0, elsewhere=False, **more):
        wanted = replace(read, training=replace(read.training, **more))
        return perform(
            PlannedRun(variant, seed), wanted, encoder, home, away if elsewhere else [], tmp_path
        )

    return make


def test_the_rows_of_a_seed_come_before_the_next_seed():
    one = Table(name="one", title="One", variants=(CLIP4CLIP, XPOOL))
    assert cells(one, 2) == [
        PlannedRun(CLIP4CLIP, 0),
        PlannedRun(XPOOL, 0),
        PlannedRun(CLIP4CLIP, 1),
        PlannedRun(XPOOL, 1),
    ]
    assert len(cells(find_table("duq-3"), 3)) == 3 * len(find_table("duq-3").variants)


def test_a_run_is_remembered_and_leaves_nothing_else(made, tmp_path):
    run = made(XPOOL, seed=3)
    (record,) = tmp_path.iterdir()
    assert Run(**json.loads(record.read_text())) == run
    assert (run.variant, run.seed, run.epoch) == ("attention", 3, 1)
    assert 0 <= run.validation <= 600 and run.parameters > 1000 and run.seconds > 0
    assert set(run.scores) == {
        "R@1", "R@5", "R@10", "MdR", "MnR", "R@Sum", "v2t R@1", "v2t R@5", "v2t R@10",
        "R@1 low", "R@1 high",
    }  # fmt: skip
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
    title = bench[3][0].test.split.title()
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
    for record in tmp_path.iterdir():
        record.unlink()
    again = made(XPOOL)
    assert (again.scores, again.validation) == (first.scores, first.validation)


def test_what_a_killed_run_left_is_in_nobodys_way(made, tmp_path):
    made(XPOOL)
    (record,) = tmp_path.iterdir()
    record.unlink()
    (tmp_path / f"{record.stem}.run").mkdir()
    (tmp_path / f"{record.stem}.run" / "state.safetensors").write_bytes(b"half")
    made(XPOOL)
    assert [path.name for path in tmp_path.iterdir()] == [record.name]


def test_fewer_frames_reach_training_and_all_tests(made, monkeypatch):
    lengths = []
    fit, score = module.train_on, module.similarity

    def trained(recipe, encoder, sets, val, place):
        lengths.append({len(video.frames) for video in [*sets[0].videos, *val.videos]})
        return fit(recipe, encoder, sets, val, place)

    def tested(model, features):
        lengths.append({len(video.frames) for video in features.videos})
        return score(model, features)

    monkeypatch.setattr(module, "train_on", trained)
    monkeypatch.setattr(module, "similarity", tested)
    made(replace(XPOOL, frames=1), elsewhere=True)
    assert lengths == [{1}, {1}, {1}]
    made(XPOOL, elsewhere=True)
    assert lengths[3:] == [{3}, {3}, {3}]

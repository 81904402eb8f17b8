"""A run is made once, by validation, and says what the kept weights score."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.verdicts import ranks_of_row

from sureshot.datasets import load_split
from sureshot.datasets.split import Caption, Item, Split
from sureshot.datasets.synthetic import read_truth
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.similarity import MeanFrames
from sureshot.progress import Silent
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction import runs as module
from sureshot.research.reproduction.plan import HOME, PlanData, Target, Variant
from sureshot.research.reproduction.runs import (
    PERCENT,
    PlannedRun,
    Run,
    first_hit_percentages,
    perform,
    query_names,
    ranks_of,
    read_ranks,
    relevance,
    write_ranks,
)
from tests.heard import Heard
from tests.models.encoders.test_clip import clip
from tests.synthetic import small_dataset
from tests.walls import tuned_plan

CLIP4CLIP = Variant("mean", {"name": "clip4clip", "scale": 20.0})
XPOOL = Variant("attention", {"name": "xpool", "dropout": 0.0, "scale": 20.0})


@pytest.fixture(scope="module")
def data(place):
    made = PlanData(place / "plan.toml", cache=place / "cache")
    for splits in (made.plan.home, made.plan.away):
        made.splits(splits)
    return made


@pytest.fixture
def make(data, tmp_path, monkeypatch):
    """Makes or reads a run; settings are those of its training."""
    original = data.plan

    def made(variant, seed=0, elsewhere=False, **training):
        monkeypatch.setattr(
            data, "plan", replace(original, training=replace(original.training, **training))
        )
        target = Target(HOME, original.home, (("", original.away),) if elsewhere else ())
        return perform(
            PlannedRun(variant, data.recipe(variant, seed, target), target=target, data=data),
            tmp_path,
        )

    return made


def test_a_run_is_remembered_and_leaves_nothing_else(make, tmp_path):
    run = make(XPOOL, seed=3)
    record, ranks = sorted(tmp_path.iterdir())
    assert (record.stem, ranks.name) == (run.key, f"{run.key}.npz")
    assert Run(**json.loads(record.read_text())) == run
    (found,) = read_ranks(ranks)[""].values()
    assert 100 * np.mean(found.texts <= 1) == pytest.approx(run.scores["R@1"], abs=1e-4)
    assert 100 * np.mean(found.videos <= 5) == pytest.approx(run.scores["v2t R@5"], abs=1e-4)
    assert (run.variant, run.seed, run.epoch) == ("attention", 3, 1)
    assert 0 <= run.validation <= 600 and run.parameters > 1000
    assert set(run.scores) == set(run.corrected) == {
        "R@1", "R@5", "R@10", "MdR", "MnR", "R@Sum", "v2t R@1", "v2t R@5", "v2t R@10",
        "R@1 low", "R@1 high", "R@50", "v2t R@50",
    }  # fmt: skip
    assert run.scores["R@1 low"] <= run.scores["R@1"] <= run.scores["R@1 high"]
    assert run.milliseconds > 0 and run.tests == ["pairs pairs.csv test, 3 videos, 6 captions"]


def watch(monkeypatch, scored):
    """Keeps the scores of test sets, and what they are of, as they are computed."""
    whole = module.similarity

    def watched(how, features):
        scored.append((whole(how, features), features))
        return scored[-1][0]

    monkeypatch.setattr(module, "similarity", watched)


def test_scores_are_those_of_the_test_sets_by_a_loop(make, data, monkeypatch):
    scored = []
    watch(monkeypatch, scored)
    run = make(XPOOL, elsewhere=True)
    title = data.splits(data.plan.away).test.title()
    tests = [(s, f.split.owner()) for s, f in scored if f.split.name == "test"]
    for prefix, (scores, owner) in zip(("", f"{title}: "), tests, strict=True):
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


def test_a_finished_run_is_not_made_again(make, monkeypatch):
    first = make(XPOOL)
    monkeypatch.setattr(module, "RetrievalTask", None)
    assert make(XPOOL) == first
    # A row of another table with the same settings is the same run under its own name.
    assert make(replace(XPOOL, name="X-Pool")) == replace(first, variant="X-Pool")
    for other in (
        lambda: make(XPOOL, seed=1),
        lambda: make(CLIP4CLIP),
        lambda: make(replace(XPOOL, frames=2)),
        lambda: make(XPOOL, elsewhere=True),
        lambda: make(XPOOL, epochs=2),
    ):
        with pytest.raises(TypeError):  # would be trained
            other()
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr("sureshot.__version__", "0.0.1")
        make(XPOOL)
    assert make(XPOOL) == first


def test_a_run_is_made_again_once_captions_have_changed(make, data, tmp_path, monkeypatch):
    first = make(XPOOL)
    whole = data.splits

    def changed(splits):
        parts = whole(splits)
        caption, *others = parts.train.captions
        captions = (replace(caption, text="another text"), *others)
        return parts._replace(train=replace(parts.train, captions=captions))

    monkeypatch.setattr(data, "splits", changed)
    stopped = tmp_path / f"{first.key}-of-other-captions.run"
    stopped.mkdir()
    again = make(XPOOL)
    assert not stopped.exists()
    assert again.key == first.key and again.data != first.data
    monkeypatch.setattr(module, "RetrievalTask", None)
    assert make(XPOOL) == again


def test_the_frames_of_a_row_reach_training_and_tests(make, monkeypatch):
    scored = []
    watch(monkeypatch, scored)
    make(replace(XPOOL, frames=1), elsewhere=True)
    make(XPOOL, elsewhere=True)
    tests = [f for _, f in scored if f.split.name == "test"]
    assert [{len(video.frames) for video in f.videos} for f in tests] == [{1}, {1}, {3}, {3}]


def test_a_row_after_dsl_is_the_same_run_with_other_scores(make, monkeypatch):
    scored = []
    watch(monkeypatch, scored)
    fixed = {"name": "dvtr", "uncertainty": "none", "temperature": 1.0, "base": XPOOL.system}
    plain = make(replace(XPOOL, system=fixed))  # its logit scale is 1 and stays
    monkeypatch.setattr(module, "RetrievalTask", None)  # neither is trained again
    post = make(replace(XPOOL, system=fixed, name="X-Pool + DSL", post="DSL"))
    assert (post.variant, post.scores) == ("X-Pool + DSL", plain.corrected)
    ((scores, features),) = [one for one in scored if one[1].split.name == "test"]
    weights = np.exp(scores - scores.max(0))
    product, owner = scores * weights / weights.sum(0), features.split.owner()
    ranks = [1 + sum(x > row[own] for x in row) for row, own in zip(product, owner, strict=True)]
    assert post.scores["MnR"] == pytest.approx(np.mean(ranks), abs=1e-3)


# --- an encoder that is trained too ---------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned(place):
    """A run of a plan that trains a small CLIP end to end, which was not stopped."""
    clip(place / "clip")
    (place / "tuned.toml").write_text(tuned_plan())
    made = PlanData(place / "tuned.toml", cache=place / "tuned")
    target = Target(HOME, made.plan.home, (("", made.plan.away),))
    variant = Variant("mean", {"name": "clip4clip"})
    planned = PlannedRun(variant, made.recipe(variant, 0, target), target=target, data=made)
    return planned, perform(planned, place / "runs")


def test_a_tuned_run_is_trained_on_frames_and_leaves_its_record_alone(tuned):
    planned, run = tuned
    data = planned.data
    folder = Path(data.resolve(data.plan.home.train).root).parent
    assert {path.name for path in (folder / "runs").iterdir()} == {
        f"{run.key}.json",
        f"{run.key}.npz",
    }
    assert run.parameters > 10_000  # CLIP's are among them
    title = data.splits(data.plan.away).test.title()
    assert {"R@1", f"{title}: R@1"} <= set(run.scores)
    assert perform(planned, folder / "runs") == run  # read, not made again
    assert not list((folder / "tuned").rglob("*")), "features of an encoder that changes are kept"


def test_a_tuned_run_that_was_stopped_goes_on_to_the_same_numbers(tuned, tmp_path):
    planned, run = tuned
    steps = []

    class Watched(Silent):
        def update(self, what, done, total, more=""):
            if what == "steps":
                steps.append(done)
                if steps == [1, 2, 3, 4]:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(planned, tmp_path, Watched())
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".run" and (left / "model").is_dir()  # after the first epoch
    again = perform(planned, tmp_path, Watched())
    assert steps[4] == 4, "the first epoch's three steps were taken again"
    assert (again.scores, again.validation) == (run.scores, run.validation)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".npz"}


def test_a_kept_run_names_the_training_videos_that_could_not_be_read(place, tmp_path):
    (place / "videos" / "lost.mp4").write_bytes(b"none")
    rows = (place / "pairs.csv").read_text() + "videos/lost.mp4,a lost film,train\n"
    (place / "lost.csv").write_text(rows)
    plan = (place / "plan.toml").read_text().replace('"$WALLS/pairs.csv"', '"lost.csv"')
    (place / "lost.toml").write_text(plan)
    made = PlanData(place / "lost.toml", cache=tmp_path / "cache")
    target = Target(HOME, made.plan.home)
    said = []
    for seed in (0, 1, 0, 1):
        recipe, heard = made.recipe(CLIP4CLIP, seed, target), Heard()
        perform(PlannedRun(CLIP4CLIP, recipe, target, made), tmp_path / "runs", heard)
        said.append(heard.lines)
        assert len(heard.lines) == 1 and "left out: videos/lost.mp4 is" in heard.lines[0]
    assert said[0] == said[1] == said[2] == said[3]


# --- ranks ----------------------------------------------------------------------------------------

ITEMS = tuple(Item(name, Path(f"{name}.mp4")) for name in "abc")
CAPTIONS = tuple(Caption(f"text {n}", video) for n, video in enumerate((0, 0, 1, 2, 2)))
SPLIT = Split("msvd", "test", "all", ITEMS, CAPTIONS)
QUERIES = ["a#0", "a#1", "b#0", "c#0", "c#1"]


def found(seed, **doubts):
    scores = np.random.default_rng(seed).normal(size=(5, 3)).round(1)
    scores[0] = 0.5  # all videos tie
    return scores, ranks_of(scores, SPLIT, {name: np.array(v) for name, v in doubts.items()})


def same(one, other):
    assert list(one.queries) == list(other.queries) == QUERIES == query_names(SPLIT)
    for name in ("owner", "texts", "videos", "first", "right"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert one.doubts.keys() == other.doubts.keys()
    for name, values in one.doubts.items():
        assert values == pytest.approx(other.doubts[name], rel=1e-2)


def test_ranks_are_those_of_the_scores_with_two_doubts_that_any_scores_have():
    scores, ranks = found(0, vacuity=[1.0, 2, 3, 4, 5])
    assert (ranks.texts == text_ranks(scores, SPLIT.owner())).all()
    assert (ranks.videos == video_ranks(scores, SPLIT.owner())).all()
    assert ranks.texts[0] == 2  # half of the others are before it
    assert (ranks.first == scores.argmax(1)).all()
    assert (ranks.right == (scores.argmax(1) == SPLIT.owner())).all()
    assert ranks.doubts["best score"] == pytest.approx(-scores.max(1))
    assert ranks.doubts["softmax entropy"].argmax() == 0
    assert ranks.doubts["vacuity"].tolist() == [1, 2, 3, 4, 5] and PERCENT not in ranks.doubts
    ranks = ranks_of(scores, SPLIT, {}, percent=np.array([1, 0.5, 0.25, 0, 0.75]))
    assert ranks.doubts[PERCENT].tolist() == [0, 0.5, 0.75, 1, 0.25]
    assert relevance(SPLIT).tolist() == (SPLIT.owner()[:, None] == np.arange(3)).tolist()


def test_a_file_gives_each_row_its_seeds_and_each_test_set_its_ranks(tmp_path):
    away = found(1, spread=[0.5] * 5)[1]
    runs = {
        ("one", 0): found(0)[1],
        ("two", 0): found(1, spread=[0.5, 1, 1, 1, 1])[1],
        ("one", 3): found(2)[1],
    }
    written = {"": runs, "Flickr8k: ": dict.fromkeys(runs, away)}
    write_ranks(tmp_path / "table.npz", written)
    both = read_ranks(tmp_path / "table.npz")
    assert list(both) == ["", "Flickr8k: "]
    for test, read in both.items():
        assert list(read) == list(runs)
        for name, ranks in written[test].items():
            same(ranks, read[name])
    one = ranks_of_row(both[""], "one")
    assert one.seeds == (0, 3)
    assert (one.texts == np.stack([runs["one", n].texts for n in (0, 3)])).all()
    assert ranks_of_row(both[""], "three") is None
    fits = ranks_of_row(both[""], "one", fits=True).texts
    assert ((fits == 1) == [both[""]["one", n].right for n in (0, 3)]).all()
    assert read_ranks(tmp_path / "none.npz") == {}


def test_in_synthetic_data_the_first_hit_is_right_where_it_fits(tmp_path):
    test = load_split("synthetic", "test", small_dataset(tmp_path, ambiguity=0.9))
    truth = read_truth(test)
    ranks = ranks_of(truth.bayes, test, {})
    assert ranks.right.all() and (ranks.texts > 1).any()
    assert (ranks.doubts["known ambiguity"] == np.log(truth.videos_that_fit)).all()
    assert not ranks_of(-truth.bayes, test, {}).right.all()
    # The best video that fits is first, and for each video a caption that fits; either is kept.
    assert (ranks.fitting_texts == 1).all() and (ranks.fitting_texts <= ranks.texts).all()
    assert (ranks.fitting_videos <= ranks.videos).all() and len(ranks.fitting_videos)
    before = replace(ranks, fitting_texts=None, fitting_videos=None)
    write_ranks(tmp_path / "t.npz", {"": {("a", 0): ranks, ("a", 1): before}})
    both = read_ranks(tmp_path / "t.npz")[""]
    kept, older = both.values()
    assert (kept.fitting_videos == ranks.fitting_videos).all() and older.fitting_texts is None
    fits = ranks_of_row(both, "a", fits=True)
    assert (fits.texts[1] == 1).all() and np.isnan(fits.videos[1]).all()


# --- percentages ----------------------------------------------------------------------------------


class Known(MeanFrames):
    """Scores that are there already, in place of a model's."""

    def __init__(self, scores):
        self._scores = scores

    def texts(self, texts):
        return texts.sentence[:, 0].astype(int)

    def videos(self, videos):
        return np.arange(len(videos.mask))

    def join(self, parts):
        return np.concatenate(list(parts))

    def similarity(self, texts, videos):
        return self._scores[np.ix_(texts, videos)]


def half_hard(count, seed):
    """Scores of captions of which half are hard: the own video scores no higher than others."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=(count, count))
    scores[np.arange(count), np.arange(count)] += np.where(np.arange(count) % 2 == 0, 0.0, 6.0)
    return scores, scores.argmax(1) == np.arange(count)


def numbered(count):
    """As many captions as videos, each known by its number; they fit into one batch."""
    items = tuple(Item(str(n), Path(f"{n}.mp4")) for n in range(count))
    captions = tuple(Caption(f"text {n}", n) for n in range(count))
    frame = FrameFeatures(*(np.zeros((1, *size), np.float16) for size in ((2,), (0, 2), (2,))))
    texts = [(np.array([n, 0], np.float32), np.zeros((1, 2), np.float32)) for n in range(count)]
    split = Split("msvd", "val", "all", items, captions)
    return SplitFeatures(split, 1, [frame] * count, texts)


def test_percentages_know_which_first_hits_are_right():
    known, _ = half_hard(240, 0)
    asked, right = half_hard(240, 1)
    chance = first_hit_percentages(Known(known), numbered(240), asked)
    assert chance is not None and chance.shape == (240,)
    assert chance[right].mean() > 0.6 > 0.4 > chance[~right].mean()
    assert abs(chance.mean() - right.mean()) < 0.1
    few, _ = half_hard(30, 0)
    assert first_hit_percentages(Known(few), numbered(30), few) is None

"""From a recipe to a checkpoint, on real videos: frozen features, end to end, and a dry run."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sureshot.cli.app import run as command
from sureshot.datasets import load_split
from sureshot.datasets.synthetic import read_truth
from sureshot.errors import ArgumentError, SureshotError
from sureshot.media.sampling_rule import Sampling
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.huggingface import CONFIG, ENCODER, README, WEIGHTS
from sureshot.models.load import load
from sureshot.models.losses.debiased import AMBIGUITY, FITS
from sureshot.models.systems.base import Sizes
from sureshot.research.answers import train_answers
from sureshot.research.features import extract
from sureshot.research.scores import similarity
from sureshot.research.training import data as frames_module
from sureshot.research.training import run as module
from sureshot.research.training.loop import LOG, MODEL, PLOT, RECIPE, STATE, read_log
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import (
    FRAMES,
    HELD_OUT,
    UNREADABLE,
    dry_run,
    ground_truth,
    train,
    validation_score,
)
from tests.clips import coloured
from tests.heard import Heard, stop_at
from tests.models.encoders.test_clip import clip
from tests.synthetic import small_dataset, synthetic_recipe
from tests.walls import walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, a cache of features and a small CLIP of random weights."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    (folder / "clip").mkdir()
    clip(folder / "clip")
    with pytest.MonkeyPatch.context() as patch:
        # Digests are not remembered outside of the test; the fonts of plots are made elsewhere.
        patch.setattr("sureshot.files.cache_dir", lambda: folder / "digests")
        yield folder


def new_model(made, sizes, encoder):
    return module.new_model(made.stem, made.system, sizes, made.training.seed, encoder)


def recipe(place, *settings):
    return Recipe.load(place / "recipe.toml", settings)


def trained(place, folder, *settings, **more):
    return train(recipe(place, *settings), to=folder, cache=place / "cache", **more)


def weights(folder):
    return load_file(folder / MODEL / WEIGHTS)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def recalls_of(scores, owner):
    """Ranks of captions and of videos, by a loop: R@1 of captions, and the sum of all recalls."""
    texts = [1 + sum(x > row[own] for x in row) for row, own in zip(scores, owner, strict=True)]
    videos = []
    for video in range(scores.shape[1]):
        best = [max(scores[owner == own, video]) for own in range(scores.shape[1])]
        videos.append(1 + sum(x > best[video] for x in best))
    ranks = np.array(texts), np.array(videos)
    rsum = sum(100 * (part <= k).mean() for part in ranks for k in (1, 5, 10))
    return {"r1": 100 * (ranks[0] == 1).mean(), "rsum": rsum}


@pytest.fixture(scope="module")
def finished(place):
    heard = Heard()
    return trained(place, place / "finished", progress=heard), heard


def test_a_run_leaves_a_checkpoint_its_recipe_and_what_it_went_on_from(place, finished):
    fitted, heard = finished
    folder = place / "finished"
    assert fitted.folder == folder / MODEL
    assert {p.name for p in folder.iterdir()} == {MODEL, STATE, LOG, PLOT, RECIPE}
    assert {p.name for p in fitted.folder.iterdir()} == {CONFIG, WEIGHTS, README}
    assert heard.steps == [1, 2, 3, 4] and list(fitted.notes) == heard.lines
    found = Checkpoint.from_pretrained(fitted.folder)
    tiny = TinyEncoder()
    assert (found.encoder.name, found.encoder.fingerprint) == ("tiny", tiny.fingerprint)
    assert (found.encoder.frames, found.encoder.dim) == (3, tiny.dim)
    assert found.tuned is None and found.encoder_name == "tiny"
    assert Recipe.from_dict(found.recipe, place) == recipe(place)
    assert found.scores == {"epoch": fitted.epoch, "rsum": fitted.score}
    assert "pairs pairs.csv train, 6 videos, 12 captions" in found.note


def test_the_score_is_that_of_the_kept_weights_on_the_validation_set(place, finished):
    scorer = load(str(finished[0].folder), "cpu")
    _, held = recipe(place).splits()
    features = extract(held, scorer.encoder, frames=3, cache=place / "cache")
    scores = similarity(scorer.raw, features)
    assert scores.shape == (6, 3)
    assert finished[0].score == pytest.approx(recalls_of(scores, held.owner())["rsum"])


def test_the_kept_recipe_trains_the_same_model(place, finished, tmp_path):
    kept = Recipe.load(place / "finished" / RECIPE)
    assert kept == recipe(place)
    train(kept, to=tmp_path / "again", cache=tmp_path / "cache")
    assert same(weights(tmp_path / "again"), weights(place / "finished"))
    other = recipe(place, "training.seed=1")
    train(other, to=tmp_path / "other", cache=place / "cache")
    assert not same(weights(tmp_path / "other"), weights(place / "finished"))


def test_an_interrupted_run_goes_on_to_the_same_weights(place, finished, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(place, tmp_path, progress=stop_at(3))  # in the second epoch
    assert not (tmp_path / RECIPE).exists()
    left = Heard()
    fitted = trained(place, tmp_path, resume=True, progress=left)
    assert left.steps == [3, 4]
    assert (fitted.epoch, fitted.score) == (finished[0].epoch, finished[0].score)
    assert same(load_file(tmp_path / STATE), load_file(place / "finished" / STATE))
    assert same(weights(tmp_path), weights(place / "finished"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("system.scale=10.0", r"system\.scale was 20\.0 and is 10\.0 now"),
        ("stem.width=8", r"stem\.width was 16 and is 8 now"),
        ("training.rate=0.1", r"training\.rate was 0\.01 and is 0\.1 now"),
        ("encoder.name=clip", r"encoder was [0-9a-f]+ and is [0-9a-f]+ now"),
        ("encoder.frames=2", r"encoder\.frames was 3 and is 2 now"),
        ("train.0.root=moved.csv", r"train was \['pairs pairs\.csv .* and is \['pairs moved\.csv"),
    ],
)
def test_a_run_is_not_taken_up_with_other_settings(place, finished, setting, message):
    before = (place / "finished" / STATE).read_bytes()
    shutil.copy(place / "pairs.csv", place / "moved.csv")
    with pytest.raises(SureshotError, match=message):
        trained(place, place / "finished", setting, resume=True)
    assert (place / "finished" / STATE).read_bytes() == before


def test_a_run_is_not_taken_up_with_other_captions_of_the_same_number(place, finished, tmp_path):
    shutil.copytree(place / "finished", tmp_path / "run")
    lines = (place / "pairs.csv").read_text()
    try:
        (place / "pairs.csv").write_text(lines.replace("red", "green", 1))
        with pytest.raises(SureshotError, match="digest of the training captions was"):
            trained(place, tmp_path / "run", resume=True)
    finally:
        (place / "pairs.csv").write_text(lines)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.epochs=2", r"already; resume it \(--resume\)"),
        ("system.name=nope", "known: ce, clip2video"),
        ("system.scael=9.0", r"Unknown setting system\.scael"),
    ],
)
def test_what_will_be_refused_is_refused_before_videos_are_encoded(
    place, finished, monkeypatch, tmp_path, setting, message
):
    monkeypatch.setattr(module, "extract", lambda *_, **__: pytest.fail("encoded"))
    folder = place / "finished" if "epochs" in setting else tmp_path / "new"
    with pytest.raises(SureshotError, match=message):
        trained(place, folder, setting)


def test_what_is_no_recipe_is_refused_by_its_name(tmp_path):
    for given in (3, {"train": []}):
        with pytest.raises(ArgumentError, match=r"recipe is .*; give a TOML file or Recipe\(…\)"):
            train(given, to=tmp_path / "run")
    with pytest.raises(ArgumentError, match=r"recipe is 3; give a TOML file or AnswerRecipe\(…\)"):
        train_answers(3, to=tmp_path / "run")


def test_a_stem_that_leaves_out_what_the_system_reads_is_refused(place):
    settings = ("stem.kind=linear", "stem.words=false", "system.name=duq")
    with pytest.raises(SureshotError, match=r"stem\.words is false, and duq reads words"):
        new_model(recipe(place, *settings), Sizes(5, 3), TinyEncoder())


@pytest.mark.parametrize(("metric", "captions"), [("rsum", 2000), ("r1", 2000), ("r1", 3)])
def test_validation_takes_captions_evenly_over_the_videos(
    place, finished, monkeypatch, metric, captions
):
    monkeypatch.setattr(module, "_CAPTIONS", captions)
    scorer = load(str(finished[0].folder), "cpu")
    held = recipe(place).splits()[1]
    features = extract(held, TinyEncoder(), frames=3, cache=place / "cache")
    rows = range(6) if captions > 3 else [0, 2, 4]  # two captions per video
    scores = similarity(scorer.raw, features, captions=rows)
    expected = recalls_of(scores, held.owner()[list(rows)])[metric]
    assert validation_score(scorer.model, features, metric) == pytest.approx(expected)
    # Of a tuned encoder these captions alone are encoded.
    fewer = module.judged(held)
    assert fewer.texts() == [held.texts()[row] for row in rows]
    again = extract(fewer, TinyEncoder(), frames=3, cache=place / "cache")
    assert validation_score(scorer.model, again, metric) == pytest.approx(expected)


@pytest.mark.parametrize(
    "system",
    [
        '{name="xpool", dropout=0.0}',
        '{name="clip4clip", temporal="transformer"}',
        '{name="duq"}',
        '{name="duq", mode="paper"}',
    ],
)
def test_a_batch_of_one_pair_and_no_validation(place, tmp_path, system):
    """Three videos in batches of two leave one alone."""
    lines = (place / "pairs.csv").read_text().splitlines()
    (place / "three.csv").write_text("\n".join(lines[:7]))
    text = (place / "recipe.toml").read_text().replace('[val]\ndataset = "pairs"\n', "")
    text = text.replace('root = "pairs.csv"\n\nroot = "pairs.csv"', 'root = "three.csv"')
    (place / "alone.toml").write_text(text)
    alone = Recipe.load(place / "alone.toml", ["training.batch=2", f"system={system}"])
    assert alone.val is None and len(alone.splits()[0][0].items) == 3
    fitted = train(alone, to=tmp_path, cache=place / "cache")
    losses = [entry["losses"] for entry in read_log(tmp_path / LOG) if "losses" in entry]
    assert len(losses) == 2 * 2
    assert (fitted.epoch, fitted.score) == (2, None)
    assert losses[0]["loss"] > 1e-3
    assert all(np.isfinite(value) for step in losses for value in step.values())
    assert all(part.isfinite().all() for part in weights(tmp_path).values())
    if "duq" not in system:  # there is nothing to tell it from
        assert losses[1]["loss"] == pytest.approx(0, abs=1e-6)


# --- starting from CLIP ---------------------------------------------------------------------------

# System, its module with blocks, that with places.
FROM_CLIP = [
    ({"name": "clip4clip", "temporal": "transformer"}, "temporal.transformer", "temporal"),
    ({"name": "uatvr"}, "frames.transformer", "frames"),
    ({"name": "clip2video"}, "transformer", ""),
    ({"name": "duq_released"}, "temporal.transformer", "temporal"),
    (
        {"name": "dvtr", "base": {"name": "clip2video", "layers": 1, "heads": 4}},
        "base.transformer",
        "base",
    ),
]


@pytest.fixture(scope="module")
def fitting(place):
    """A CLIP whose text blocks fit the space it shares with frames, as those of OpenAI do."""
    clip(place / "fitting", shared=32, inner=128)
    return ("encoder.name=fitting", "encoder.frames=2", "stem.kind=none", "training.epochs=1")


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize(
    ("system", "blocks", "table"),
    FROM_CLIP,
    ids=lambda part: part["name"] if isinstance(part, dict) else "",
)
def test_what_a_paper_starts_from_clip_is(place, fitting, tmp_path, system, blocks, table, tuned):
    """A run whose rates are 0 keeps its first weights."""
    still = (
        f"encoder.tuned={str(tuned).lower()}",
        "training.rate=0.0",
        "training.encoder_rate=0.0",
    )
    small = {} if "base" in system else {"layers": 1, "heads": 4}
    made = replace(recipe(place, *fitting, *still), system={**system, **small})
    found = Checkpoint.from_pretrained(train(made, to=tmp_path, cache=place / "cache").folder)
    text = ClipEncoder.load(str(place / "fitting"), "cpu").text_weights()
    first = found.model.system.get_submodule(blocks).blocks[0]
    assert torch.equal(first.widen.weight, text["encoder.layers.0.mlp.fc1.weight"])
    assert torch.equal(first.norm_mlp.bias, text["encoder.layers.0.layer_norm2.bias"])
    places = text["embeddings.position_embedding.weight"]
    ours = found.model.system.get_submodule(table).positions.weight[: len(places)]
    assert torch.equal(ours, places)


# --- end to end -----------------------------------------------------------------------------------

TUNED = (
    "encoder.name=clip",
    "encoder.tuned=true",
    "encoder.frames=2",
    "stem.kind=none",
    "training.encoder_rate=3e-3",
    "training.workers=2",
    "training.captions=one",
)


@pytest.fixture(scope="module")
def tuned(place):
    return trained(place, place / "tuned", *TUNED)


def test_a_tuned_encoder_lies_in_the_checkpoint_and_is_another_one(place, tuned):
    found = Checkpoint.from_pretrained(tuned.folder)
    before, after = (
        ClipEncoder.load(str(folder), "cpu") for folder in (place / "clip", tuned.folder / ENCODER)
    )
    assert found.encoder.name == ENCODER
    assert found.encoder.fingerprint == after.fingerprint != before.fingerprint
    assert found.encoder_name == str(place / "clip")
    moved = [
        np.abs(
            np.subtract(*(getattr(e.encode_texts(["red", "blue"]), name) for e in (before, after)))
        )
        for name in ("sentence", "words")
    ]
    assert all(gap.max() > 1e-3 for gap in moved)
    assert "was trained with it" in (tuned.folder / README).read_text().replace("\n", " ")


def test_the_score_of_a_tuned_encoder_is_that_of_the_saved_one(place, tuned):
    """Nothing that an earlier state of the encoder saw may be left over from the cache."""
    scorer = load(str(tuned.folder), "cpu")
    assert scorer.encoder_name == str(place / "clip")
    _, held = recipe(place).splits()
    features = extract(held, scorer.encoder, frames=2, cache=place / "cache")
    scores = similarity(scorer.raw, features)
    assert tuned.score == pytest.approx(recalls_of(scores, held.owner())["rsum"])


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_an_encoder_learns_in_half_precision_what_it_learns_in_single(
    place, tuned, tmp_path, precision
):
    def losses(folder):
        return [entry["losses"]["loss"] for entry in read_log(folder / LOG) if "losses" in entry]

    trained(place, tmp_path, *TUNED, f"training.precision={precision}")
    found, expected = losses(tmp_path), losses(place / "tuned")
    assert found != expected
    assert found == pytest.approx(expected, rel=0.1)
    kept = load_file(tmp_path / MODEL / ENCODER / WEIGHTS)
    assert all(weight.dtype == torch.float32 for weight in kept.values())


def test_a_tuned_run_goes_on_to_the_same_weights(place, tuned, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(place, tmp_path, *TUNED, progress=stop_at(3))
    trained(place, tmp_path, *TUNED, resume=True)
    for name in (STATE, f"{MODEL}/{WEIGHTS}", f"{MODEL}/{ENCODER}/{WEIGHTS}"):
        assert same(load_file(tmp_path / name), load_file(place / "tuned" / name)), name


@pytest.mark.parametrize(("container", "lost"), [("mkv", False), ("mp4", True)])
def test_half_a_video_costs_no_other(place, tmp_path, container, lost):
    """What is there of it is trained on; an MP4 without its end says nothing of its beginning."""
    whole = coloured(tmp_path / f"whole.{container}", ["red", "blue"], codec="mpeg4")
    half = place / "videos" / f"half.{container}"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    rows = (place / "pairs.csv").read_text() + f"videos/{half.name},half a film,train\n"
    (place / "half.csv").write_text(rows)
    heard = Heard()
    settings = ("train.0.root=half.csv", "training.captions=all", "training.batch=5")
    trained(place, tmp_path / "run", *TUNED, *settings, "training.epochs=1", progress=heard)
    assert heard.steps == [1, 2, 3]
    unreadable = tmp_path / "run" / UNREADABLE
    assert unreadable.exists() == lost
    assert any("Left out: 1 video that cannot be read" in line for line in heard.lines) == lost
    if lost:
        listed = unreadable.read_text("utf-8")
        assert listed.startswith(f"videos/{half.name}\tis not a video")
        unreadable.unlink()
        again = Heard()  # of a run that is done already
        trained(
            place,
            tmp_path / "run",
            *TUNED,
            *settings,
            "training.epochs=1",
            resume=True,
            progress=again,
        )
        assert unreadable.read_text("utf-8") == listed and again.lines[-1] == heard.lines[-1]


def test_with_no_video_that_can_be_read_it_stops(place, tmp_path):
    for name in ("one", "two"):
        (place / "videos" / f"{name}.mp4").write_bytes(b"none")
    rows = "video,caption,split\nvideos/one.mp4,a,train\nvideos/two.mp4,b,train\n"
    (place / "none.csv").write_text(rows)
    with pytest.raises(SureshotError, match="no batch has two videos that can be read"):
        trained(place, tmp_path, *TUNED, "train.0.root=none.csv")


def test_videos_that_were_held_out_are_listed(place, tmp_path):
    drawn = replace(recipe(place, "training.epochs=1"), val=None, hold_out=2)
    train(drawn, to=tmp_path, cache=place / "cache")
    held = [item.id for item in drawn.splits()[1].items]
    assert (tmp_path / HELD_OUT).read_text().split() == held and len(held) == 2


def test_words_are_limited_in_training_and_ever_after(place, tmp_path):
    fitted = trained(place, tmp_path, *TUNED, "encoder.words=4", "training.epochs=1")
    saved = load(str(fitted.folder), "cpu").encoder
    assert saved.encode_texts(["a b c d e f"]).mask.sum() == 4
    assert saved.encode_texts(["a b c d e f"]).truncated.all()
    whole = ClipEncoder.load(str(place / "clip"), "cpu").encode_texts(["a b c d e f"])
    assert whole.mask.sum() > 4


def test_a_checkpoint_samples_frames_as_it_was_trained(place, tmp_path):
    rule = ("encoder.sampling=head", "encoder.fps=1", "encoder.frames=2")
    for name, settings in (("frozen", rule), ("tuned", (*TUNED, *rule))):
        fitted = trained(place, tmp_path / name, *settings, "training.epochs=1")
        scorer = load(str(fitted.folder), "cpu")
        assert (scorer.frames, scorer.sampling) == (2, Sampling("head", 1.0))
        assert "sampling" in json.loads((fitted.folder / CONFIG).read_text("utf-8"))["encoder"]


def test_kept_frames_are_decoded_once(place, tmp_path, monkeypatch):
    asked = []
    whole = frames_module.sampled_frames

    def watched(item, *rest):
        asked.append(item.id)
        return whole(item, *rest)

    monkeypatch.setattr(frames_module, "sampled_frames", watched)
    trained(place, tmp_path, *TUNED, "training.keep_frames=true", "training.epochs=3")
    assert len(asked) == len(set(asked)) > 1
    assert len(list((tmp_path / FRAMES).glob("*/*.jpg"))) == len(asked)


@pytest.mark.parametrize("change", ["sampling=random", "augment=crop_flip", "augment=rand_augment"])
def test_frames_that_chance_decides_are_the_same_when_a_run_goes_on(place, tmp_path, change):
    settings = (*TUNED, f"training.{change}", "training.save_every=1", "encoder.frames=1")
    trained(place, tmp_path / "whole", *settings)
    with pytest.raises(KeyboardInterrupt):
        trained(place, tmp_path / "stopped", *settings, progress=stop_at(3))
    trained(place, tmp_path / "stopped", *settings, resume=True)
    one, other = (load_file(tmp_path / name / STATE) for name in ("whole", "stopped"))
    assert same(one, other)


ALL = TUNED[:-1]  # with the captions that are usual


def files(folder):
    return {path for path in folder.rglob("*") if "digests" not in path.parts and path.is_file()}


@pytest.mark.parametrize("settings", [(), ALL], ids=["frozen", "tuned"])
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
    # Each caption of a video is in a batch of its own, and its frames are not held until the next.
    assert found.decoded == (12 * 2 if settings else 0) and found.kept == 0
    assert found.lacking == (6 if settings else 9) and (settings or found.encoding > 0)
    each = found.steps * found.seconds + found.validation
    whole = found.setup + found.lacking * found.encoding + found.epochs * each
    assert min(found.setup, found.seconds, found.validation) > 0
    assert 3600 * found.hours == pytest.approx(whole)
    cache = tmp_path / "cache"
    train(recipe, to=tmp_path, settings=settings, cache=cache)
    steps = [entry for entry in read_log(tmp_path / LOG) if "losses" in entry]
    assert len(steps) == found.steps * found.epochs
    before = files(tmp_path)
    again = dry_run(recipe, settings=settings, cache=cache)
    assert settings or again.lacking == again.encoding == 0
    assert files(tmp_path) == before


def test_frames_as_prepared_are_not_kept_for_all_runs(place, tmp_path, monkeypatch):
    monkeypatch.setattr(ClipEncoder, "prepared_by", "0" * 16, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dry_run(place / "recipe.toml", settings=ALL)
    assert not files(tmp_path)
    train(place / "recipe.toml", to=tmp_path / "run", settings=ALL)
    assert any("as-prepared" in str(path) for path in files(tmp_path))


def test_frames_that_are_prepared_once_cost_the_first_epoch_alone(place, monkeypatch):
    epoch, rounds = module.loop.TrainState.epoch, [5.0, 1.0]

    def timed(self, number):
        if number == 0:
            self.each = rounds.pop(0)
        return (replace(step, seconds=self.each) for step in epoch(self, number))

    monkeypatch.setattr(module.loop.TrainState, "epoch", timed)
    found = dry_run(place / "recipe.toml", settings=(*ALL, "training.epochs=9"))
    assert found.seconds == 1.0 and not rounds
    # Two captions of each of the six videos, whose frames are prepared for one of them.
    assert 6 * found.encoding == pytest.approx((5.0 - 1.0) * found.steps / 2)
    rounds += [5.0, 1.0]
    drawn = dry_run(place / "recipe.toml", settings=(*ALL, "training.augment=crop_flip"))
    assert (drawn.seconds, drawn.lacking) == (5.0, 0)


def test_a_few_videos_stand_in_for_whole_batches_and_a_whole_validation_set(place, monkeypatch):
    taken, scored = [], []
    step, score = module.loop.TrainState._step, module.validation_score
    monkeypatch.setattr(module, "_FEW", 1)
    monkeypatch.setattr(
        module.loop.TrainState, "_step", lambda *of: taken.append(len(of[-1])) or step(*of)
    )
    monkeypatch.setattr(module, "validation_score", lambda *of: scored.append(of[1]) or score(*of))
    dry_run(place / "recipe.toml")
    assert taken == [3, 3, 3]  # into the second epoch
    assert [(len(seen.videos), len(seen.texts)) for seen in scored] == [(3, 6)]


def test_groups_are_those_of_the_optimiser_and_what_is_fixed(place):
    found = dry_run(
        place / "recipe.toml",
        settings=(*ALL, "training.optimizer=bert_adam", "training.weight_decay=0.2"),
    )
    rows = {(group.part, group.rate, group.decay) for group in found.groups}
    rate, slow = (Recipe.load(place / "recipe.toml", ALL).training.rate, 3e-3)
    assert rows == {
        ("encoder", slow, 0.2),
        ("encoder", slow, 0.0),
        ("system", rate, 0.2),
        ("system", rate, 0.0),
        ("encoder", 0.0, 0.0),
    }
    assert all(group.tensors > 0 and group.weights >= group.tensors for group in found.groups)


def test_kept_frames_are_told_with_their_size(place):
    found = dry_run(place / "recipe.toml", settings=(*ALL, "training.keep_frames=true"))
    assert 1000 < found.kept < 1e6
    assert "12 decoded once and kept, about" in found.text()
    drawn = (*ALL, "training.keep_frames=true", "training.sampling=random", "training.epochs=3")
    drawn = dry_run(place / "recipe.toml", settings=drawn)
    assert "12 decoded in every epoch and kept, about" in drawn.text()
    assert 2 * found.kept < drawn.kept < 4 * found.kept


ORACLES = [
    {"name": "dvtr", "base": {"name": "clip4clip"}, "uncertainty": "oracle"},
    {"name": "uatvr", "layers": 1, "spread": "oracle"},
    {"name": "duq", "spread": "oracle", "dropout": 0.0},
]


def test_the_terminal_prints_it(place, capsys):
    assert command(["train", str(place / "recipe.toml"), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "6 videos, 12 captions.\n6 pairs per epoch in" in out
    assert "weights of" in out and "without the plot and the hub correction at the end.\n" in out
    assert " s per video: " in out and " for 9 videos that the cache lacks, once.\n" in out
    assert not (place / "runs").exists()
    assert command(["train", str(place / "recipe.toml"), "--dry-run", "--json"]) == 0
    assert '"steps":' in capsys.readouterr().out


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("synthetic") / "world", ambiguity=0.7)


def test_rows_and_columns_are_those_of_the_pairs(root):
    split = load_split("synthetic", "train", root)
    truth, rows = read_truth(split), [40, 3, 11]
    told = ground_truth([split])(rows)
    videos = [split.captions[row].video for row in rows]
    assert told[FITS].tolist() == [[bool(truth.fits[r, v]) for v in videos] for r in rows]
    assert told[FITS].diagonal().all()
    assert told[AMBIGUITY].argmax() == truth.videos_that_fit[rows].argmax()
    assert ((told[AMBIGUITY] >= 0) & (told[AMBIGUITY] <= 1)).all()


@pytest.mark.parametrize("system", ORACLES, ids=lambda system: system["name"])
def test_an_oracle_trains_on_a_synthetic_dataset(system, root, tmp_path):
    recipe = synthetic_recipe(root, system)
    assert dry_run(recipe).steps > 0
    assert train(recipe, to=tmp_path / "run").score is not None


def test_an_oracle_wants_one_synthetic_dataset_and_whole_batches(root, tmp_path):
    split = load_split("synthetic", "train", root)
    with pytest.raises(SureshotError, match="there are 2 sets"):
        ground_truth([split, split])
    recipe = synthetic_recipe(root, ORACLES[0], micro_batch=4)
    with pytest.raises(SureshotError, match="about a whole batch"):
        train(recipe, to=tmp_path / "run")

"""From a recipe to answers, on real small videos: fresh, frozen, end to end, and resumed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sureshot.cli.app import run as command
from sureshot.datasets import Caption, Item, Split
from sureshot.datasets.questions import VOCABULARY
from sureshot.errors import ModelError, SureshotError
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import load
from sureshot.research.answers import (
    CONFIG,
    LABEL,
    RETRIEVAL,
    WEIGHTS,
    WORDINGS,
    AnswerCheckpoint,
    Answerer,
    AnswerRecipe,
    Start,
    accuracy,
    answerable,
    encode_questions,
    labels,
    logits,
    new_answer_model,
    predict,
    train_answers,
    train_answers_on,
    wordings,
)
from sureshot.research.training.loop import LOG, MODEL, STATE, read_log
from sureshot.research.training.run import RECIPE
from tests.asked import asked, line, put
from tests.heard import stop_at
from tests.models.encoders.test_clip import clip
from tests.trained import checkpoint

TINY = TinyEncoder()
NOTE = EncoderNote(
    name=TINY.name,
    fingerprint=TINY.fingerprint,
    frames=3,
    dim=TINY.dim,
    channels=TINY.channels,
)
ASKED = replace(checkpoint("xpool", "linear"), encoder=NOTE)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, a small CLIP of random weights, a retrieval model that was trained, and a run."""
    folder = asked(tmp_path_factory.mktemp("asked"))
    (folder / "clip").mkdir()
    clip(folder / "clip")
    with pytest.MonkeyPatch.context() as patch:
        # Digests are not remembered outside of the test.
        patch.setattr("sureshot.files.cache_dir", lambda: folder / "digests")
        made = [str(folder / "recipe.toml"), "--cache", str(folder / "cache")]
        assert command(["train", *made, "--to", str(folder / "retrieval")]) == 0
        trained(folder, folder / "run")
        yield folder


def recipe(place, *settings):
    return AnswerRecipe.load(place / "questions.toml", settings)


def begun(place, *settings):
    """A recipe that starts from the trained retrieval model."""
    text = (place / "questions.toml").read_text()
    head, tail = text.split("[encoder]")
    rest = tail.split("[head]")[1]
    (place / "begun.toml").write_text(f'retrieval = "retrieval/model"\n{head}[head]{rest}')
    return AnswerRecipe.load(place / "begun.toml", settings)


def trained(place, folder, *settings, **more):
    return train_answers(recipe(place, *settings), to=folder, cache=place / "cache", **more)


def weights(folder):
    parts = load_file(folder / MODEL / WEIGHTS)
    inner = load_file(folder / MODEL / RETRIEVAL / "model.safetensors")
    return {f"head.{name}": w for name, w in parts.items()} | inner


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_leaves_a_model_its_recipe_and_what_it_went_on_from(place):
    folder = place / "run"
    names = {path.name for path in folder.iterdir()} - {"loss.png"}
    assert names == {MODEL, STATE, LOG, RECIPE}
    assert AnswerRecipe.load(folder / RECIPE) == recipe(place)
    found = AnswerCheckpoint.load(folder / MODEL)
    assert set(found.answers) == {"red", "green", "blue", "white", "yellow", "magenta"}
    assert found.often == (2, 2, 2, 2, 2, 2) and sorted(found.answers) == list(found.answers)
    assert found.note == "Trained on qa train, 6 videos, 12 questions."
    losses = [entry["losses"] for entry in read_log(folder / LOG) if "losses" in entry]
    assert len(losses) == 6 and losses[0].keys() == {"loss", "answer", "similarity"}


def test_the_kept_score_is_that_of_the_kept_weights(place):
    found = AnswerCheckpoint.load(place / "run" / MODEL)
    _, val = recipe(place).questions()
    seen = encode_questions(val, TinyEncoder(), ASKED, place / "cache")
    right = accuracy(found.model(), *seen, found.answers)
    assert found.scores["accuracy"] == right
    given = predict(found.model(), seen[1])
    hits = [found.answers[n] == a for n, a in zip(given, val.answers, strict=True)]
    assert right == pytest.approx(100 * sum(hits) / 6)


def test_answers_are_learned(place, tmp_path):
    """Both questions are about the same videos: only with video and question can all be right."""
    done = trained(place, tmp_path / "run", "training.epochs=60", "training.keep=last")
    found = AnswerCheckpoint.load(done.folder)
    train_set, _ = recipe(place).questions()
    seen = encode_questions(train_set, TinyEncoder(), ASKED, place / "cache")
    assert accuracy(found.model(), *seen, found.answers) == 100
    folder = done.folder
    guesses = Answerer.load(folder, "cpu").ask(place / "videos/1.mp4", "what colour comes first?")
    assert guesses[0].answer == "green"
    guesses = Answerer.load(folder, "cpu").ask(place / "videos/1.mp4", "how does it end?")
    assert guesses[0].answer == "blue"


def test_a_run_that_was_stopped_goes_on_to_the_same_model(place, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(place, tmp_path / "run", progress=stop_at(4))
    with pytest.raises(SureshotError, match="There is a run in"):
        trained(place, tmp_path / "run")
    trained(place, tmp_path / "run", resume=True)
    assert same(weights(tmp_path / "run"), weights(place / "run"))
    with pytest.raises(SureshotError, match=r"head\.dropout was 0\.0 and is 0\.5 now"):
        trained(place, tmp_path / "run", "head.dropout=0.5", resume=True)


def test_micro_batches_give_the_same_answers(place, tmp_path):
    """Not the same weights: rounding alone moves those that no answer depends on."""
    trained(place, tmp_path / "run", "training.micro_batch=1")
    seen = encode_questions(recipe(place).val.load(), TinyEncoder(), ASKED, place / "cache")[1]
    found, expected = (
        logits(AnswerCheckpoint.load(run / MODEL).model(), seen, range(6))
        for run in (tmp_path / "run", place / "run")
    )
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_frozen_model_is_left_as_it_was_and_others_learn(place, tmp_path):
    before = load_file(place / "retrieval" / MODEL / "model.safetensors")
    for frozen in (True, False):
        made = begun(place, f"frozen={str(frozen).lower()}")
        folder = tmp_path / f"{frozen}"
        train_answers(made, to=folder, cache=place / "cache")
        after = load_file(folder / MODEL / RETRIEVAL / "model.safetensors")
        assert same(before, after) is frozen
        kept = Checkpoint.from_pretrained(folder / MODEL / RETRIEVAL)
        assert ("Trained further" in kept.note) is not frozen
        assert bool(kept.scores) is frozen
        assert load(str(folder / MODEL / RETRIEVAL), "cpu").system == "xpool"


def test_a_vocabulary_that_is_given_decides_what_is_learned(place, tmp_path):
    folder = asked(tmp_path / "data")
    labels = {"red": 5, "blue": 2, "mauve": 9}
    (folder / "qa" / VOCABULARY).write_text(json.dumps(labels))
    done = train_answers(recipe(folder), to=tmp_path / "run", cache=place / "cache")
    assert done.notes[2] == (
        "8 training questions have an answer outside of the vocabulary; left out"
    )
    found = AnswerCheckpoint.load(done.folder)
    assert found.answers == ("blue", "red", "mauve") and found.often == (2, 2, 0)
    assert found.note == "Trained on qa train, 4 of 6 videos, 4 questions."


def test_the_vocabulary_is_cut_where_the_recipe_says(place):
    train_set, _ = recipe(place).questions()
    start = Start.of(recipe(place, "head.answers=2"), train_set)
    assert start.answers == ("blue", "green")


def test_labels_are_places_in_the_vocabulary(place):
    train_set, _ = recipe(place).questions()
    words = sorted(set(train_set.answers), reverse=True)
    found = labels(train_set, words)([3, 0, 3])
    assert [words[n] for n in found[LABEL]] == [train_set.answers[row] for row in (3, 0, 3)]
    assert found[WORDINGS].shape == (3, 2)


def test_wordings_are_all_that_is_asked_about_a_video_its_own_first():
    asked_about = [("who?", 0), ("where?", 0), ("who?", 0), ("who?", 1), ("why?", 2), ("where?", 2)]
    captions = tuple(Caption(text, video) for text, video in asked_about)
    items = tuple(Item(str(number), Path(str(number))) for number in range(3))
    split = Split(dataset="qa", name="train", protocol="", items=items, captions=captions)
    assert wordings(split).tolist() == [[0, 1], [1, 0], [0, 1], [0, -1], [2, 1], [1, 2]]


def test_duq_answers_as_xpool_does_only_without_losses_of_its_own(place, tmp_path):
    """Both pool the frames alike and the head reads nothing else."""
    val = recipe(place).val.load()
    seen = encode_questions(val, TinyEncoder(), ASKED, place / "cache")[1]
    scores = {}
    for name in ("xpool", "duq"):
        for weight in (0, 1):
            made = f"system.name={name}", f"system_weight={weight}"
            done = trained(place, tmp_path / f"{name}-{weight}", *made)
            model = AnswerCheckpoint.load(done.folder).model()
            scores[name, weight] = logits(model, seen, range(6))
    np.testing.assert_allclose(scores["duq", 0], scores["xpool", 0], atol=1e-4)
    assert abs(scores["duq", 1] - scores["xpool", 1]).max() > 1e-3
    # All questions are asked about all videos, so that X-Pool's loss has nothing to tell apart.
    np.testing.assert_allclose(scores["xpool", 1], scores["xpool", 0], atol=1e-4)


def test_first_weights_follow_from_the_seed(place):
    train_set, _ = recipe(place).questions()

    def first(seed):
        made = recipe(place, f"training.seed={seed}")
        return new_answer_model(made, Start.of(made, train_set)).state_dict()

    assert same(first(0), first(0))
    assert not same(first(0), first(1))


def test_videos_that_cannot_be_read_are_left_out_and_told(place, tmp_path):
    folder = asked(tmp_path / "data")
    (folder / "videos" / "0.mp4").write_bytes(b"")
    done = train_answers(recipe(folder), to=tmp_path / "run", cache=place / "cache")
    assert any("left out: 0 " in note for note in done.notes)
    seen, features = encode_questions(
        recipe(folder).questions()[0], TinyEncoder(), ASKED, place / "cache"
    )
    assert len(seen.answers) == len(features.texts) == 10 and len(features.videos) == 5


def test_features_of_answerable_questions_stay_with_them(place):
    whole = encode_questions(recipe(place).questions()[0], TinyEncoder(), ASKED, place / "cache")
    known, features = answerable(*whole, ["blue", "white"])
    assert features.split == known.split and len(features.videos) == len(known.split.items)
    again = encode_questions(known, TinyEncoder(), ASKED, place / "cache")[1]
    for row in range(len(features.videos)):
        assert (features.videos[row].frames == again.videos[row].frames).all()
    for row in range(len(features.texts)):
        assert (features.texts[row][0] == again.texts[row][0]).all()


def test_training_on_features_reads_no_questions(place, tmp_path):
    made = recipe(place)
    train_set, _ = made.questions()
    start = Start.of(made, train_set)
    seen = encode_questions(train_set, TinyEncoder(), ASKED, place / "cache")
    blind = replace(made, train=replace(made.train, root=tmp_path / "gone"), val=None)
    done = train_answers_on(blind, start, seen, None, tmp_path / "run")
    assert done.score is None and done.epoch == 2


def test_end_to_end_the_encoder_is_trained_and_kept(place, tmp_path):
    settings = (f"encoder.name={place / 'clip'}", "encoder.tuned=true", "training.epochs=1")
    more = ("stem.kind=none", "training.encoder_rate=1e-2")
    trained(place, tmp_path / "run", *settings, *more)
    found = Answerer.load(tmp_path / "run" / MODEL, "cpu")
    kept = tmp_path / "run" / MODEL / RETRIEVAL / "encoder" / "model.safetensors"
    moved, first = load_file(kept), load_file(place / "clip" / "model.safetensors")
    assert any(not torch.equal(moved[name], first[name]) for name in moved)
    assert len(found.ask(place / "videos/1.mp4", "how does it end?")) == 5


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["encoder.tuned=true"], "encoder 'tiny' cannot be trained"),
        (["encoder.name=nothing-there"], "neither a folder nor the name of a model"),
        (["system.name=dug"], "system.name is 'dug'"),
        (["train.root=gone"], "gone is not a folder"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    place, tmp_path, settings, reason
):
    with pytest.raises(SureshotError, match=reason):
        trained(place, tmp_path / "run", *settings)
    assert not (tmp_path / "run").exists()


def test_a_model_to_start_from_must_be_there_and_read_no_experts(place, tmp_path):
    with pytest.raises(ModelError, match="is no checkpoint"):
        train_answers(begun(place, "retrieval=qa"), to=tmp_path / "run")
    had = checkpoint("xpool", "linear")
    folder = tmp_path / "experts"
    had.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["encoder"]["experts"] = {"audio": 7}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(SureshotError, match=r"reads experts extracted beforehand \(audio\)"):
        train_answers(begun(place, f"retrieval={folder}"), to=tmp_path / "run")


def test_answers_of_a_config_are_those_that_are_given(place):
    config = json.loads((place / "run" / MODEL / CONFIG).read_text())
    answerer = Answerer.load(place / "run" / MODEL, "cpu")
    test_set = encode_questions(recipe(place).val.load(), TinyEncoder(), ASKED, place / "cache")[1]
    assert set(answerer.answers(test_set)) <= set(config["answers"])


def test_lines_of_others_do_not_matter(place, tmp_path):
    """A question file with the same lines in another order trains the same vocabulary."""
    folder = asked(tmp_path / "data")
    lines = [json.loads(row) for row in (folder / "qa/train.jsonl").read_text().splitlines()]
    put(folder / "qa" / "train.jsonl", [*reversed(lines), line("gone", "who?", "nobody")])
    start = Start.of(recipe(folder), recipe(folder).questions()[0])
    assert start.answers == AnswerCheckpoint.load(place / "run" / MODEL).answers

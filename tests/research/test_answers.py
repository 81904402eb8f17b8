"""Question answering: the head against sums by hand, recipes, checkpoints, runs and answers."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sureshot.cli.app import run as command
from sureshot.datasets import Caption, Item, Split
from sureshot.datasets.questions import VOCABULARY
from sureshot.errors import ModelError, QueryError, SureshotError
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.huggingface import is_checkpoint
from sureshot.models.load import load
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import (
    Sizes,
    TextTokens,
    VideoTokens,
    rows,
    text_tokens,
    video_tokens,
)
from sureshot.research import answers as module
from sureshot.research.answers import (
    CONFIG,
    LABEL,
    RETRIEVAL,
    WEIGHTS,
    WORDINGS,
    AnswerCheckpoint,
    Answerer,
    AnswerHead,
    Answering,
    AnswerModel,
    AnswerRecipe,
    AnswerTask,
    HeadConfig,
    head_of,
    logits,
    predict,
    train_answers,
    wordings,
)
from sureshot.research.training.loop import LOG, MODEL, RECIPE, STATE, read_log
from tests.asked import asked, line, put
from tests.heard import stop_at
from tests.models.encoders.test_clip import clip
from tests.models.layers.weights import sample, shake
from tests.models.systems.every import CHANNELS, WIDTH, every, shaken, system, texts, videos
from tests.research.test_features import Fine
from tests.trained import checkpoint

# --- the head and its losses ----------------------------------------------------------------------


def head(answers=5, dropout=0.0):
    torch.manual_seed(0)
    made = AnswerHead(WIDTH, answers, dropout)
    shake(made)
    return made


def model(frozen=False, dropout=0.5, answers=5):
    torch.manual_seed(0)
    sizes = Sizes(WIDTH, CHANNELS)
    stem = Stem(StemConfig("linear", WIDTH, dropout), sizes)
    inner = Model(stem, system("xpool", dropout=dropout))
    return AnswerModel(inner, head(answers, dropout), frozen=frozen)


def test_the_head_is_two_layers_on_both_vectors():
    made = head()
    text, video = sample(2, WIDTH, seed=1), sample(2, WIDTH, seed=2)
    found = made(text, video)
    for row in range(2):
        both = [x * math.sqrt(WIDTH) for x in (*text[row].tolist(), *video[row].tolist())]
        hidden = [
            max(0.0, sum(w * x for w, x in zip(weights, both, strict=True)) + bias)
            for weights, bias in zip(
                made.hidden.weight.tolist(), made.hidden.bias.tolist(), strict=True
            )
        ]
        for answer, (weights, bias) in enumerate(
            zip(made.out.weight.tolist(), made.out.bias.tolist(), strict=True)
        ):
            total = sum(w * x for w, x in zip(weights, hidden, strict=True)) + bias
            assert found[row, answer].item() == pytest.approx(total, rel=1e-4, abs=1e-4)


def test_the_loss_is_the_surprise_at_the_right_answers():
    made = Answering(system("clip4clip"), head(), 0.0)
    asked, films = made.texts(texts(3)), made.videos(videos(3))
    logits = made.logits(asked, films).tolist()
    right = [4, 0, 2]
    losses = made.losses(asked | {LABEL: torch.tensor(right)}, films)
    expected = [
        math.log(sum(math.exp(x) for x in row)) - row[answer]
        for row, answer in zip(logits, right, strict=True)
    ]
    assert losses.keys() == made.weights.keys()
    assert losses["answer"].item() == pytest.approx(sum(expected) / 3, rel=1e-4)


@every
def test_every_system_keeps_its_losses_and_their_weights(form):
    """A question that is asked about another video too is no negative of that video."""
    inner = shaken(form)
    width = inner.vector_width or WIDTH
    made = Answering(inner, AnswerHead(width, 5), 0.5).eval()
    asked, films = made.texts(texts(4)), made.videos(videos(4))
    wordings = torch.tensor([[7, -1, -1], [3, 0, -1], [7, 1, 3], [0, -1, -1]])
    marked = asked | {LABEL: torch.tensor([4, 0, 2, 1]), WORDINGS: wordings}
    found = made.losses(marked, films, torch.Generator().manual_seed(0))
    negatives = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0]]).float()
    expected = inner.losses(asked, films, torch.Generator().manual_seed(0), negatives)
    assert found.keys() - {"answer"} == expected.keys()
    for name, loss in expected.items():
        torch.testing.assert_close(found[name], loss)
        assert made.weights[name] == 0.5 * inner.weights[name]
    assert made.weights["answer"] == 1


def test_what_a_system_reads_and_advises_holds_where_it_learns_to_answer():
    reading = shaken("duq_released")
    inner = Model(Stem(StemConfig(), Sizes(WIDTH, CHANNELS)), reading)
    assert AnswerModel(inner, head()).cells == inner.cells == "whole"
    keeping = shaken("hit")
    assert Answering(keeping, head()).advice(3) == keeping.advice(3) != ""
    assert Answering(keeping, head(), 0.0).advice(3) == ""  # it learns nothing of its own


@every
def test_on_every_system_an_answer_needs_question_and_video_and_no_other_pair(form):
    inner = Model(Stem(StemConfig(), Sizes(WIDTH, CHANNELS)), shaken(form))
    made = Answering(inner.system, head_of(inner, 5, HeadConfig())).eval()
    shake(made.head)
    asked, films = made.texts(texts(4)), made.videos(videos(4))
    logits = made.logits(asked, films)
    assert logits.shape == (4, 5)
    few = made.logits(rows(asked, [2, 0]), rows(films, [2, 0]))
    torch.testing.assert_close(few, logits[[2, 0]], atol=1e-4, rtol=1e-4)
    turned = [1, 2, 3, 0]
    for other in (made.logits(rows(asked, turned), films), made.logits(asked, rows(films, turned))):
        assert not torch.allclose(other, logits, atol=1e-3)


def test_the_logit_scale_of_the_system_is_held_at_a_hundred():
    inner = shaken("xpool")
    with torch.no_grad():
        inner.log_scale.fill_(9.0)
    Answering(inner, head()).after_step()
    assert inner.scale.item() == pytest.approx(100)


def steps(made, count=3):
    optimiser = torch.optim.AdamW([w for w in made.parameters() if w.requires_grad], lr=0.1)
    made.train()
    for _ in range(count):
        right = torch.tensor([0, 1, 2, 3, 4, 0])
        asked = made.texts(texts(6)) | {LABEL: right, WORDINGS: torch.arange(6)[:, None]}
        loss = made.system.losses(asked, made.videos(videos(6)))["answer"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_weights_stay_and_others_move(frozen):
    made = model(frozen)
    before = {name: weight.clone() for name, weight in made.state_dict().items()}
    steps(made)
    moved = {name for name, weight in made.state_dict().items() if (weight != before[name]).any()}
    assert any(name.startswith("system.head.") for name in moved)
    assert any(name.startswith("stem.") for name in moved) is not frozen
    assert any(name.startswith("system.retrieval.") for name in moved) is not frozen


def test_what_is_frozen_drops_nothing_out_and_the_head_does():
    made = model(frozen=True).train()
    films, other = made.videos(videos(3)), made.videos(videos(3))
    assert all(torch.equal(films[name], other[name]) for name in films)
    asked = made.texts(texts(3))
    assert not torch.equal(made.system.logits(asked, films), made.system.logits(asked, films))
    loose = model().train()
    assert not torch.equal(loose.texts(texts(3))["sentence"], loose.texts(texts(3))["sentence"])
    loose.eval()
    assert torch.equal(loose.texts(texts(3))["sentence"], loose.texts(texts(3))["sentence"])


# --- recipes --------------------------------------------------------------------------------------

LEAST = {"train": {"root": "qa"}, "system": {"name": "xpool"}}


def least(tmp_path, **more):
    return AnswerRecipe.from_dict({**LEAST, **more}, tmp_path)


def test_a_recipe_is_read_as_it_was_written(tmp_path):
    place, training = asked(tmp_path), least(tmp_path, training={"seed": 3}).training
    assert (training.epochs, training.batch, training.captions) == (5, 32, "all")
    for more in ([], ["training.seed=7", "head.answers=20", "encoder.name=bridge"]):
        read = AnswerRecipe.load(place / "questions.toml", more)
        (place / "again.toml").write_text(read.to_toml())
        assert AnswerRecipe.load(place / "again.toml") == read
        assert AnswerRecipe.from_dict(read.to_dict(), place / "elsewhere") == read
    begun = {"train": {"root": "qa"}, "retrieval": "runs/model", "frozen": True}
    read = AnswerRecipe.from_dict(begun, place)
    assert read.train.root == place / "qa" and read.retrieval == place / "runs/model"
    assert AnswerRecipe.from_dict(read.to_dict(), place / "elsewhere") == read


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"train": {"root": "qa", "split": "test"}}, r"train\.split is 'test'"),
        ({"val": {"root": "qa", "split": "test"}}, r"val\.split is 'test'"),
        ({"system_weight": -1}, "system_weight is -1"),
        ({"system": {}}, "names no system.*or a trained model as retrieval"),
        ({"frozen": True}, "nothing trained to freeze"),
        ({"retrieval": "r"}, r"retrieval brings its own system; leave \[system\] out\."),
        ({"retrieval": "r", "system": {}, "stem": {"width": 4}}, r"leave \[stem\] out\."),
        (
            {"retrieval": "r", "system": {}, "encoder": {"frames": 3}},
            r"leave \[encoder\] out but for device and tuned",
        ),
        (
            {"retrieval": "r", "system": {}, "frozen": True, "encoder": {"tuned": True}},
            "frozen and encoder.tuned are both true",
        ),
        ({"training": {"keep": "best"}}, "no validation set to tell it; give"),
        ({"training": {"epoch": 1}}, r"Unknown setting training\.epoch; known"),
        ({"training": 3}, "Setting training is 3; expected a table"),
        ({"head": {"answers": 1}}, r"head\.answers is 1"),
        ({"hold_out": 3}, "Unknown setting hold_out; known: train, val, retrieval"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, more, reason):
    with pytest.raises(SureshotError, match=reason):
        least(tmp_path, **more)


def test_questions_of_the_recipe_are_about_other_videos_than_those_it_is_chosen_on(tmp_path):
    place = asked(tmp_path)
    train, val = AnswerRecipe.load(place / "questions.toml").questions()
    assert train.title() == "qa train, 6 videos, 12 questions"
    assert val.title() == "qa val, 3 videos, 6 questions"
    put(place / "qa" / "val.jsonl", [line(2, "who?", "man"), line(7, "who?", "man")])
    with pytest.raises(SureshotError, match="share 1 videos: video2"):
        AnswerRecipe.load(place / "questions.toml").questions()


# --- checkpoints ----------------------------------------------------------------------------------

ANSWERS = ("man", "dog", "schön")


def made(system="xpool", answers=ANSWERS, stem="linear", **more):
    retrieval = checkpoint(system, stem, seed=3)
    torch.manual_seed(0)
    head = head_of(retrieval.model, len(answers), HeadConfig())
    shake(head)
    known = {
        "often": (5, 2, 0),
        "recipe": {"frozen": True},
        "scores": {"accuracy": 41.25},
        "note": "From qa.",
    }
    return AnswerCheckpoint(
        retrieval=retrieval,
        head=head,
        config=HeadConfig(0.3, 20),
        answers=answers,
        **{**known, **more},
    )


def answers(found):
    model = found.model()
    noted = found.retrieval.encoder
    mask = torch.ones(3, 2, dtype=torch.bool)
    said = TextTokens(sample(3, noted.dim), sample(3, 2, noted.dim, seed=1), mask)
    frames, backbone = sample(3, 2, noted.dim, seed=2), sample(3, 2, noted.channels, seed=3)
    films = VideoTokens(frames, frames.new_zeros(3, 2, 0, noted.dim), backbone, mask)
    assert not model.training
    with torch.no_grad():
        return model.system.logits(model.texts(said), model.videos(films))


@pytest.fixture
def folder(tmp_path):
    made().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("system", ["clip4clip", "xpool", "duq"])
def test_it_answers_as_before_and_knows_what_it_is(tmp_path, system):
    one = made(system)
    one.save(tmp_path / "model")
    other = AnswerCheckpoint.load(tmp_path / "model")
    assert torch.equal(answers(one), answers(other))
    for name in ("answers", "often", "config", "recipe", "scores", "note"):
        assert getattr(one, name) == getattr(other, name)


def test_its_folder_says_what_it_is_and_holds_a_retrieval_checkpoint(folder):
    card = (folder / "README.md").read_text("utf-8")
    assert "one of 3 words (man, dog, schön, …) from the features of\nxpool" in card
    assert "From qa." in card and "| accuracy | 41.25 |" in card
    assert is_checkpoint(folder / RETRIEVAL) and not is_checkpoint(folder)
    kept = Checkpoint.from_pretrained(folder / RETRIEVAL).model.state_dict()
    first = made().retrieval.model.state_dict()
    assert all(torch.equal(kept[name], weight) for name, weight in first.items())
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert len(modes) == 1  # those that the umask gives


def test_what_is_no_such_model_is_named(tmp_path, folder):
    with pytest.raises(ModelError, match=rf"{tmp_path} holds no model that answers.*no {CONFIG}"):
        AnswerCheckpoint.load(tmp_path)
    with pytest.raises(ModelError, match="holds no model that answers"):
        AnswerCheckpoint.load(folder / RETRIEVAL)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "has the format 2; this Sureshot reads up to 1. Install"),
        ({"format": True}, "is not the config of a model that answers"),
        ({"answers": "man"}, "is not the config of a model that answers"),
        ({"recipe": None}, "is not the config of a model that answers"),
        ({"answers": ["man"]}, f"{CONFIG} is damaged: answers must be texts"),
        ({"answers": ["man"], "often": [1]}, f"are not those of its {CONFIG}"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, reason):
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    (folder / CONFIG).write_text(json.dumps(config | change))
    with pytest.raises(ModelError, match=reason):
        AnswerCheckpoint.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (WEIGHTS, b"no weights", r"The weights of .* cannot be read"),
        (CONFIG, b"{", f"{CONFIG} cannot be read"),
        (CONFIG, b"[]", "is not the config"),
    ],
)
def test_damage_is_named(folder, name, content, reason):
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match=reason):
        AnswerCheckpoint.load(folder)


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The data, a small CLIP of random weights, a retrieval model that was trained, and a run."""
    folder = asked(tmp_path_factory.mktemp("asked"))
    (folder / "clip").mkdir()
    clip(folder / "clip")
    with pytest.MonkeyPatch.context() as patch:
        # Digests are not remembered outside of the test.
        patch.setattr("sureshot.files.cache_dir", lambda: folder / "digests")
        asked_for = [str(folder / "recipe.toml"), "--cache", str(folder / "cache")]
        assert command(["train", *asked_for, "--to", str(folder / "retrieval")]) == 0
        trained(folder, folder / "run")
        made().save(folder / "model")
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


def encoded(place, part, settings=()):
    """Features of questions by the tiny encoder, as the recipe has them."""
    noted = checkpoint("xpool", "linear")
    tiny = TinyEncoder()
    note = EncoderNote(tiny.name, tiny.fingerprint, 3, tiny.dim, tiny.channels)
    answerer = Answerer(replace(made(), retrieval=replace(noted, encoder=note)), tiny)
    questions = getattr(recipe(place, *settings), part).load()
    return questions, answerer.features(questions.split, place / "cache")


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
    questions, seen = encoded(place, "val")
    given = predict(found.model(), seen)
    hits = [found.answers[n] == a for n, a in zip(given, questions.answers, strict=True)]
    assert found.scores["accuracy"] == pytest.approx(100 * sum(hits) / 6)


def test_answers_are_learned(place, tmp_path):
    """Both questions are about the same videos: only with video and question can all be right."""
    done = trained(place, tmp_path / "run", "training.epochs=60", "training.keep=last")
    answerer = Answerer.load(done.folder, "cpu")
    questions, given, unreadable = answerer.answer(recipe(place).train.load(), place / "cache")
    assert given == list(questions.answers) and not unreadable
    for question, answer in (("what colour comes first?", "green"), ("how does it end?", "blue")):
        assert answerer.ask(place / "videos/1.mp4", question)[0].answer == answer


def test_a_run_that_was_stopped_goes_on_to_the_same_model(place, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(place, tmp_path / "run", progress=stop_at(4))
    with pytest.raises(SureshotError, match="There is a run in"):
        trained(place, tmp_path / "run")
    trained(place, tmp_path / "run", resume=True)
    assert same(weights(tmp_path / "run"), weights(place / "run"))
    with pytest.raises(SureshotError, match=r"head\.dropout was 0\.0 and is 0\.5 now"):
        trained(place, tmp_path / "run", "head.dropout=0.5", resume=True)
    for part, of in (("train", "training"), ("val", "validation")):
        lines = (place / f"qa/{part}.jsonl").read_text()
        swapped = lines.replace('"red"', '"?"').replace('"blue"', '"red"').replace('"?"', '"blue"')
        try:
            (place / f"qa/{part}.jsonl").write_text(swapped)
            with pytest.raises(SureshotError, match=f"digest of the {of} questions was"):
                trained(place, tmp_path / "run", resume=True)
        finally:
            (place / f"qa/{part}.jsonl").write_text(lines)


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


def test_the_most_frequent_answers_are_the_vocabulary_in_any_order_of_the_lines(place, tmp_path):
    made = recipe(place, "head.answers=2")
    assert AnswerTask(made, *made.questions()).answers == ("blue", "green")
    folder = asked(tmp_path / "data")
    lines = [json.loads(row) for row in (folder / "qa/train.jsonl").read_text().splitlines()]
    put(folder / "qa" / "train.jsonl", [*reversed(lines), line("gone", "who?", "nobody")])
    task = AnswerTask(recipe(folder), *recipe(folder).questions())
    assert task.answers == AnswerCheckpoint.load(place / "run" / MODEL).answers
    found, true = task.labels()([3, 0, 3]), task.questions.answers
    assert [task.answers[n] for n in found[LABEL]] == [true[3], true[0], true[3]]
    assert found[WORDINGS].shape == (3, 2)


def test_wordings_are_all_that_is_asked_about_a_video_its_own_first():
    asked_about = [("who?", 0), ("where?", 0), ("who?", 0), ("who?", 1), ("why?", 2), ("where?", 2)]
    captions = tuple(Caption(text, video) for text, video in asked_about)
    items = tuple(Item(str(number), Path(str(number))) for number in range(3))
    split = Split(dataset="qa", name="train", protocol="", items=items, captions=captions)
    assert wordings(split).tolist() == [[0, 1], [1, 0], [0, 1], [0, -1], [2, 1], [1, 2]]


def test_videos_that_cannot_be_read_are_left_out_and_noted(place, tmp_path):
    folder = asked(tmp_path / "data")
    for number in (0, 6):
        (folder / "videos" / f"{number}.mp4").write_bytes(b"")
    done = train_answers(recipe(folder), to=tmp_path / "run", cache=place / "cache")
    assert (
        sum("left out: video0 " in note or "left out: video6 " in note for note in done.notes) == 2
    )
    found = AnswerCheckpoint.load(done.folder)
    assert found.note == "Trained on qa train, 5 of 6 videos, 10 questions."
    assert found.scores["accuracy"] in {100 * n / 4 for n in range(5)}


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


# --- answers --------------------------------------------------------------------------------------


def test_an_answer_is_the_best_of_one_question_and_one_video_in_any_company(place, monkeypatch):
    model, features = made().model().train(), encoded(place, "train")[1]
    given = predict(model, features)
    assert model.training  # it is left as it was found
    model.eval()
    for row, caption in enumerate(features.split.captions):
        with torch.no_grad():
            text = model.texts(text_tokens(features.text_batch([row])))
            film = model.videos(video_tokens(features.video_batch([caption.video])))
            alone = model.system.logits(text, film)[0]
        assert given[row] == alone.argmax().item()
        found = logits(model, features, [row])[0]
        np.testing.assert_allclose(found, alone.numpy(), atol=1e-5, rtol=1e-5)
    assert len(set(given.tolist())) > 1, "an answer that is always the same tests nothing"
    together, apart = logits(model, features, range(12)), logits(model, features, [7, 2])
    np.testing.assert_allclose(apart, together[[7, 2]], atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(module, "_BATCH", 5)
    assert (predict(model, features) == given).all()


def test_what_cannot_be_asked_is_refused(place):
    answerer = Answerer.load(place / "model", "cpu")
    with pytest.raises(QueryError, match="The question is empty"):
        answerer.ask(place / "videos/0.mp4", " \n")
    with pytest.raises(SureshotError, match=r"gone\.mp4 does not exist\."):
        answerer.ask(place / "gone.mp4", "who?")
    with pytest.raises(ModelError, match=f"there is no {CONFIG} in it"):
        Answerer.load(place / "qa")


@pytest.mark.parametrize(
    ("system", "stem", "cells"),
    [("duq_released", "none", 16), ("duq_released", "linear", 0), ("xpool", "none", 0)],
)
def test_asking_is_what_a_split_is_answered_by(place, tmp_path, system, stem, cells):
    """Also by a system that reads the whole grid of a frame."""
    one = Answerer(made(system, stem=stem), Fine())
    questions = recipe(place).train.load()
    seen = one.features(questions.split, tmp_path / "cache")
    assert {video.patches.shape[1] for video in seen.videos} == {cells}
    caption = questions.split.captions[4]
    scores = logits(one.checkpoint.model(), seen, [4])[0]
    found = one.ask(questions.split.items[caption.video].path, f"  {caption.text} ", limit=2)
    shares = np.exp(scores) / np.exp(scores).sum()
    best = sorted(range(3), key=lambda n: -shares[n])[:2]
    assert [guess.answer for guess in found] == [ANSWERS[n] for n in best]
    assert [guess.share for guess in found] == pytest.approx([shares[n] for n in best], rel=1e-3)
    assert one.answer(questions, tmp_path / "cache")[1][4] == found[0].answer

"""Answers to one question and to many: the same, in any company, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sureshot.errors import ModelError, QueryError, SureshotError
from sureshot.models.checkpoint import EncoderNote
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.systems.base import text_tokens, video_tokens
from sureshot.research import answers as module
from sureshot.research.answers import (
    CONFIG,
    Answerer,
    AnswerRecipe,
    encode_questions,
    logits,
    predict,
)
from tests.asked import asked
from tests.research.questions.test_checkpoint import ANSWERS, made
from tests.research.test_features import Fine

TINY = TinyEncoder()
NOTE = EncoderNote(
    name=TINY.name,
    fingerprint=TINY.fingerprint,
    frames=3,
    dim=TINY.dim,
    channels=TINY.channels,
)
ASKED = replace(made().retrieval, encoder=NOTE)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = asked(tmp_path_factory.mktemp("asked"))
    made().save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def seen(place):
    questions = AnswerRecipe.load(place / "questions.toml").train.load()
    return encode_questions(questions, TinyEncoder(), ASKED, place / "cache")


def test_an_answer_is_the_best_of_one_question_and_one_video(seen):
    model = made().model()
    features = seen[1]
    given = predict(model, features)
    assert given.shape == (12,)
    for row, caption in enumerate(features.split.captions):
        with torch.no_grad():
            text = model.texts(text_tokens(features.text_batch([row])))
            film = model.videos(video_tokens(features.video_batch([caption.video])))
            alone = model.system.logits(text, film)[0]
        assert given[row] == alone.argmax().item()
        np.testing.assert_allclose(
            logits(model, features, [row])[0], alone.numpy(), atol=1e-5, rtol=1e-5
        )
    assert len(set(given.tolist())) > 1, "an answer that is always the same tests nothing"


def test_company_does_not_matter(seen, monkeypatch):
    model = made().model()
    features = seen[1]
    together = logits(model, features, range(12))
    apart = logits(model, features, [7, 2])
    np.testing.assert_allclose(apart, together[[7, 2]], atol=1e-5, rtol=1e-5)
    whole = predict(model, features)
    monkeypatch.setattr(module, "_BATCH", 5)
    assert (predict(model, features) == whole).all()


def test_a_model_in_training_goes_on_training(seen):
    model = made().model().train()
    first, second = (logits(model, seen[1], [0, 1]) for _ in range(2))
    assert model.training and (first == second).all()


def test_asking_is_what_a_split_is_answered_by(place, seen):
    answerer = Answerer.load(place / "model", "cpu")
    answerer = replace(
        answerer,
        checkpoint=replace(
            answerer.checkpoint,
            retrieval=replace(
                answerer.checkpoint.retrieval,
                encoder=replace(answerer.checkpoint.retrieval.encoder, frames=3),
            ),
        ),
    )
    questions, features = seen
    scores = logits(answerer.checkpoint.model(), features, [4])[0]
    item = questions.split.items[questions.split.captions[4].video]
    found = answerer.ask(item.path, f"  {questions.split.captions[4].text} ", limit=2)
    shares = np.exp(scores) / np.exp(scores).sum()
    best = sorted(range(3), key=lambda n: -shares[n])[:2]
    assert [guess.answer for guess in found] == [ANSWERS[n] for n in best]
    assert [guess.share for guess in found] == pytest.approx([shares[n] for n in best], rel=1e-3)
    assert answerer.answers(features)[4] == found[0].answer


def test_what_cannot_be_asked_is_refused(place):
    answerer = Answerer.load(place / "model", "cpu")
    with pytest.raises(QueryError, match="The question is empty"):
        answerer.ask(place / "videos/0.mp4", " \n")
    with pytest.raises(SureshotError, match=r"No video of .*gone\.mp4.* can be read"):
        answerer.ask(place / "gone.mp4", "who?")
    with pytest.raises(ModelError, match=f"there is no {CONFIG} in it"):
        Answerer.load(place / "qa")


@pytest.mark.parametrize(("system", "cells"), [("duq_released", 16), ("xpool", 9)])
def test_a_system_that_reads_the_whole_grid_gets_it(place, tmp_path, system, cells):
    one = Answerer(made(system), Fine())
    questions = AnswerRecipe.load(place / "questions.toml").train.load()
    retrieval = one.checkpoint.retrieval
    seen = encode_questions(questions, one.encoder, retrieval, tmp_path / "cache")[1]
    assert {video.patches.shape[1] for video in seen.videos} == {cells}
    path = questions.split.items[questions.split.captions[0].video].path
    scores = logits(one.checkpoint.model(), seen, [0])[0]
    (best, *_) = one.ask(path, questions.split.captions[0].text)
    assert best.answer == ANSWERS[scores.argmax()]
    shares = np.exp(scores - np.logaddexp.reduce(scores))
    assert best.share == pytest.approx(shares.max(), rel=1e-4)

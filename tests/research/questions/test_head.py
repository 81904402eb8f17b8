"""The head against sums by hand, on every system; losses stay, and what is frozen as it was."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes, joined, rows
from sureshot.research.answers import (
    LABEL,
    WORDINGS,
    AnswerHead,
    Answering,
    AnswerModel,
    HeadConfig,
    head_of,
)
from tests.models.layers.weights import sample, shake
from tests.models.systems.every import CHANNELS, FORMS, WIDTH, shaken, system, texts, videos


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


@pytest.mark.parametrize("form", FORMS)
def test_what_a_system_reads_of_a_frame_and_freezes_of_a_clip_stays_as_it_is(form):
    inner = system(form)
    made = Answering(inner, AnswerHead(inner.vector_width or WIDTH, 5))
    assert (made.whole_grid, made.frozen) == (inner.whole_grid, inner.frozen)


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.parametrize("form", FORMS)
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


def test_everything_else_is_that_of_the_system():
    inner = shaken("xpool")
    made = Answering(inner, head())
    asked, films = made.texts(texts(3)), made.videos(videos(4))
    torch.testing.assert_close(made.similarity(asked, films), inner.similarity(asked, films))
    torch.testing.assert_close(made.text_vectors(asked), inner.text_vectors(asked))
    torch.testing.assert_close(made.video_vectors(films), inner.video_vectors(films))
    assert made.reads_words == inner.reads_words and made.scale is not None
    with torch.no_grad():
        inner.log_scale.fill_(9.0)
    made.after_step()
    assert inner.scale.item() == pytest.approx(100)


def test_labels_go_along_when_batches_are_joined():
    made = Answering(system("xpool"), head())
    codes = [made.texts(texts(n)) | {LABEL: torch.arange(n)} for n in (2, 3)]
    assert joined(codes)[LABEL].tolist() == [0, 1, 0, 1, 2]


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


def test_the_model_it_reads_is_at_hand_with_its_weights_of_now():
    made = model()
    steps(made)
    inner = made.eval().retrieval.eval()
    asked, films = inner.texts(texts(3)), inner.videos(videos(3))
    found = inner.system.similarity(asked, films)
    torch.testing.assert_close(found, made.system.similarity(asked, films))
    assert not any("head" in name for name in inner.state_dict())


def test_it_learns_what_only_question_and_video_together_tell():
    """The answer is whether the signs of question and video agree: neither alone tells it."""
    torch.manual_seed(0)
    made = AnswerHead(WIDTH, 2, 0.0)
    draw = torch.Generator().manual_seed(0)
    topic = torch.nn.functional.normalize(torch.randn(WIDTH, generator=draw), dim=0)
    signs = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).repeat(8, 1)
    text, video = signs[:, :1] * topic, signs[:, 1:] * topic
    right = (signs[:, 0] == signs[:, 1]).long()
    optimiser = torch.optim.AdamW(made.parameters(), lr=0.01)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(made(text, video), right)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (made(text, video).argmax(1) == right).all()


def test_settings_out_of_range_are_refused():
    for setting in ({"dropout": 1.0}, {"answers": 1}):
        with pytest.raises(SureshotError, match=rf"head\.{next(iter(setting))} is"):
            HeadConfig(**setting)

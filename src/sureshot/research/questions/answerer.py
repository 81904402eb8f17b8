"""Answers of a trained model: to all questions of a split, or to one about one video."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64

from sureshot.datasets.questions import Questions
from sureshot.datasets.split import Caption, Item, Split
from sureshot.errors import QueryError
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.comparing import Trained
from sureshot.models.encoders.device import device_for
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.model import frozen
from sureshot.models.systems.system import rows
from sureshot.research.features import SplitFeatures, Told, extract
from sureshot.research.questions.checkpoint import RETRIEVAL, AnswerCheckpoint
from sureshot.research.questions.head import AnswerModel
from sureshot.research.scores import code_texts, code_videos

_QUESTIONS = 256  # answered at once


@dataclass(frozen=True, slots=True)
class Guess:
    """One answer to a question.

    Attributes:
        answer: a word of the vocabulary.
        share: softmax over the vocabulary, in [0, 1]; not calibrated, so no probability.
    """

    answer: str
    share: float


@dataclass(frozen=True, slots=True)
class Answerer:
    """A trained model and its encoder.

    Attributes:
        checkpoint: the model and what is known of it.
        encoder: what it sees questions and videos with.
        device: torch device that the model is on.
    """

    checkpoint: AnswerCheckpoint
    encoder: Encoder
    device: str = "cpu"

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "Answerer":
        """The model in a folder, such as ``runs/recipe/model``.

        Raises:
            ModelError: it cannot be loaded, or the encoder is not the one it was trained on.
        """
        place = device_for(device)
        found = AnswerCheckpoint.load(folder, place)
        return cls(found, found.retrieval.load_encoder(Path(folder) / RETRIEVAL, device), place)

    def ask(self, video: str | Path, question: str, *, most: int = 5) -> tuple[Guess, ...]:
        """The likeliest answers to a question about a video, the likeliest first.

        Args:
            video: a file, a photo or a folder of frames.
            question: a sentence.
            most: answers to give.

        Raises:
            QueryError: the question is empty.
            SureshotError: the video cannot be read.
        """
        if not question.strip():
            raise QueryError("The question is empty; ask something, such as: what is he doing?")
        path = Path(video)
        asked = Caption(question.strip(), 0)
        split = Split(
            dataset="question",
            name="test",
            protocol="",
            items=(Item(id=path.name, path=path),),
            captions=(asked,),
            label=str(video),
        )
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            features = _extract(split, self.encoder, self.checkpoint.retrieval, Path(cache))
        scores = logits(self.checkpoint.model(), features, [0], self.device)[0]
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        best = np.argsort(-shares, kind="stable")[:most]
        answers = self.checkpoint.answers
        return tuple(Guess(answers[number], float(shares[number])) for number in best)

    def answers(self, features: SplitFeatures) -> list[str]:
        """The likeliest answer to every question of a split."""
        numbers = predict(self.checkpoint.model(), features, self.device)
        return [self.checkpoint.answers[number] for number in numbers]


def encode_questions(
    questions: Questions,
    encoder: Encoder,
    retrieval: Checkpoint,
    cache: Path | None = None,
    told: Told | None = None,
) -> tuple[Questions, SplitFeatures]:
    """Features of questions and their videos, and the questions whose video can be read.

    Args:
        questions: the questions.
        encoder: what encodes them.
        retrieval: the model that is asked, which says what of a video it reads.
        cache: folder of encoded features; None is one in the user's cache folder.
        told: hears how far the work is, see `sureshot.research.features.extract`.

    Raises:
        SureshotError: see `sureshot.research.features.extract`.
    """
    features = _extract(questions.split, encoder, retrieval, cache, told)
    if not features.unreadable:
        return questions, features
    return questions.about({item.id for item in features.split.items}), features


def _extract(
    split: Split,
    encoder: Encoder,
    retrieval: Checkpoint,
    cache: Path | None,
    told: Told | None = None,
) -> SplitFeatures:
    """Features of questions and videos, as the model that is asked reads them."""
    return extract(
        split,
        encoder,
        frames=retrieval.encoder.frames,
        sampling=retrieval.encoder.rule,
        whole_grid=retrieval.model.system.whole_grid,
        cache=cache,
        told=told,
    )


def answerable(
    questions: Questions, features: SplitFeatures, vocabulary: Sequence[str]
) -> tuple[Questions, SplitFeatures]:
    """Those questions whose answer is in a vocabulary, and their features.

    Raises:
        SureshotError: there is none.
    """
    known, words = questions.answerable(vocabulary), set(vocabulary)
    place = {item.id: row for row, item in enumerate(questions.split.items)}
    videos = [features.videos[place[item.id]] for item in known.split.items]
    both = zip(questions.answers, features.texts, strict=True)
    texts = [text for answer, text in both if answer in words]
    return known, replace(features, split=known.split, videos=videos, texts=texts)


def predict(
    model: AnswerModel, features: SplitFeatures, device: str = "cpu"
) -> Int64[np.ndarray, " questions"]:
    """Number of the likeliest answer to each caption of a split, asked as a question.

    It does not depend on how questions or videos are batched.
    """
    asked = range(len(features.texts))
    parts = [asked[at : at + _QUESTIONS] for at in range(0, len(asked), _QUESTIONS)]
    return np.concatenate([logits(model, features, part, device).argmax(1) for part in parts])


def logits(
    model: AnswerModel, features: SplitFeatures, asked: Sequence[int], device: str = "cpu"
) -> Float[np.ndarray, "questions answers"]:
    """Scores of all answers to some questions, by their rows."""
    owner = features.split.owner()[list(asked)]
    seen, place = np.unique(owner, return_inverse=True)
    how = Trained(model, device)
    texts = code_texts(how, features, asked)
    videos = rows(code_videos(how, features, seen.tolist()), torch.from_numpy(place))
    with frozen(model):
        return model.system.logits(texts, videos).float().cpu().numpy()

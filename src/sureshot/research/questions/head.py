r"""Answers from the features of a retrieval system: a question and a video in, one word out.

.. math:: a = W_2\,d\bigl(\mathrm{ReLU}(W_1 [\sqrt{D}\,t, \sqrt{D}\,v] + b_1)\bigr) + b_2

with t the question and v the video as unit vectors of the system, d dropout, and one entry of a for
each answer of a closed vocabulary. The losses of the system stay beside that of the answers: what a
system learns of uncertainty it learns from them alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sureshot.models.losses.negatives import Eta
from sureshot.models.model import Model
from sureshot.models.systems.system import Codes, System, merged
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.settings import Ranged, Within

# Codes of questions, in training only.
LABEL = "answer"  # number of the right answer
WORDINGS = "wordings"  # numbers of the texts asked about its video, its own first, -1 for none


@dataclass(frozen=True, slots=True)
class HeadConfig(Ranged):
    """Settings of the head.

    Attributes:
        dropout: share of its hidden layer set to zero while training.
        answers: size of a vocabulary made of training answers; one that is given is taken whole.
    """

    at = "head"

    dropout: Annotated[float, Within(0, 0.99)] = 0.1
    answers: Annotated[int, Within(2, 1_000_000)] = 1000


class AnswerHead(nn.Module):
    """Two layers from a question and a video to a score of each answer.

    Args:
        width: length of the system's vectors, D.
        answers: size of the vocabulary.
        dropout: share of the hidden layer set to zero while training.

    References:
        HBI, Jin et al. 2023: its head for questions with open answers. DUQ prints results on
        MSRVTT-QA (table 5) and describes no head; neither does its code have one.

    Differs:
        Unit vectors enter at unit variance, in which the weights' first values make sense. The
        dropout is ours.
    """

    def __init__(self, width: int, answers: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * width, 2 * width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * width, answers)

    def forward(
        self, texts: Float[Tensor, "pairs width"], videos: Float[Tensor, "pairs width"]
    ) -> Float[Tensor, "pairs answers"]:
        """Logits of the answers to question i about video i, both unit vectors."""
        both = torch.cat([texts, videos], -1) * texts.shape[-1] ** 0.5
        return self.out(self.dropout(self.hidden(both).relu()))


class Answering(System):
    """A retrieval system whose codes are trained to answer.

    Everything but the losses is that of the system. Its own losses come after that of the answers:
    they want the video of a question to be found. Many videos share a question, so one that is
    asked about another video too makes no negative with it. A system that learns in several passes
    learns all at once here.

    Args:
        retrieval: the system.
        head: answer head for vectors as wide as the system's.
        system_weight: factor on the losses of the system; with 0 none is computed.
    """

    def __init__(self, retrieval: System, head: AnswerHead, system_weight: float = 0.1) -> None:
        super().__init__(1.0)
        del self.log_scale  # the system's own is used
        self.reads_words = retrieval.reads_words
        self.vector_width = retrieval.vector_width
        self.frozen, self.whole_grid = retrieval.frozen, retrieval.whole_grid
        self.retrieval = retrieval
        self.head = head
        kept = retrieval.weights if system_weight else {}
        self.weights: Mapping[str, float] = merged(
            {"answer": 1.0}, {name: system_weight * weight for name, weight in kept.items()}
        )
        self._keeps_losses = bool(kept)

    @property
    def scale(self) -> Float[Tensor, ""]:
        """The logit scale of the system."""
        return self.retrieval.scale

    def after_step(self) -> None:
        """What is due after each step of the system."""
        self.retrieval.after_step()

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of questions."""
        return self.retrieval.texts(tokens)

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        return self.retrieval.videos(tokens)

    def similarity(self, texts: Codes, videos: Codes) -> Float[Tensor, "texts videos"]:
        """Score of every pair, as the system has it."""
        return self.retrieval.similarity(texts, videos)

    def logits(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs answers"]:
        """Scores of all answers to question i about video i, higher is better."""
        return self.head(
            self.retrieval.text_vectors(texts), self.retrieval.seen_vectors(texts, videos)
        )

    def losses(
        self,
        texts: Codes,
        videos: Codes,
        generator: torch.Generator | None = None,
        eta: Eta = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Cross-entropy of the right answers, and the losses of the system.

        The first is ln n for n answers where nothing is known.

        Args:
            texts: codes, one a pair, with `LABEL` and `WORDINGS`.
            videos: codes, one a pair.
            generator: where random numbers of the system come from; None is torch's own.
            eta: not read; the wordings decide what counts as a negative.
        """
        losses = {"answer": cross_entropy(self.logits(texts, videos), texts[LABEL])}
        if not self._keeps_losses:
            return losses
        negatives = _negatives(texts[WORDINGS])
        return merged(losses, self.retrieval.losses(texts, videos, generator, negatives))

    def text_vectors(self, texts: Codes) -> Float[Tensor, "texts width"]:
        """Unit vectors of questions."""
        return self.retrieval.text_vectors(texts)

    def video_vectors(self, videos: Codes) -> Float[Tensor, "videos width"]:
        """Unit vectors of videos."""
        return self.retrieval.video_vectors(videos)


def _negatives(wordings: Int64[Tensor, "pairs most"]) -> Float[Tensor, "pairs pairs"]:
    """1 where a question is never asked about the video of another pair, 0 where it is."""
    return (wordings[:, None, :1] != wordings).all(-1).float()


def head_of(model: Model, answers: int, config: HeadConfig) -> AnswerHead:
    """A head with fresh weights for the vectors of a model."""
    width = model.system.vector_width or model.stem.sizes.dim
    return AnswerHead(width, answers, config.dropout)


class AnswerModel(Model):
    """An encoder's features in, answers out.

    Args:
        retrieval: the model whose codes are read.
        head: answer head for vectors as wide as its system's.
        frozen: train the head alone; the model stays as it is, its dropout off.
        system_weight: factor on the losses of the system, which a frozen one does not have.
    """

    system: Answering

    def __init__(
        self,
        retrieval: Model,
        head: AnswerHead,
        *,
        frozen: bool = False,
        system_weight: float = 0.1,
    ) -> None:
        weight = 0.0 if frozen else system_weight
        super().__init__(retrieval.stem, Answering(retrieval.system, head, weight))
        self._frozen = frozen
        if frozen:
            self.stem.requires_grad_(False)
            self.system.retrieval.requires_grad_(False)

    @property
    def retrieval(self) -> Model:
        """The model whose codes are read, with the weights it has now."""
        return Model(self.stem, self.system.retrieval)

    def train(self, mode: bool = True) -> "AnswerModel":
        """Switch dropout on or off; it stays off in what is frozen."""
        super().train(mode)
        if self._frozen:
            self.stem.eval()
            self.system.retrieval.eval()
        return self

"""How many questions a model answers right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.datasets import check_disjoint
from sureshot.datasets.questions import Questions, load_questions
from sureshot.errors import SureshotError
from sureshot.metrics.answers import AnswerReport, answer_report, published_answers
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.questions.answerer import Answerer, encode_questions
from sureshot.research.questions.recipe import AnswerRecipe


@dataclass(frozen=True, slots=True)
class AnswerEvaluation:
    """What an evaluation found.

    Attributes:
        report: shares of right answers.
        notes: sentences about the data: missing videos, videos that the model was trained on.
    """

    report: AnswerReport
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """A table for a terminal."""
        return self.report.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.report.to_dict()


def evaluate_answers(
    model: str | Path,
    root: str | Path,
    *,
    split: str = "test",
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    against: Sequence[str] = (),
    device: str | None = None,
    cache: Path | None = None,
    listener: Listener | None = None,
) -> AnswerEvaluation:
    """Measure how many questions are answered right; those it cannot know count as wrong.

    Args:
        model: folder of a model that answers questions.
        root: folder of the questions, see `sureshot.datasets.questions.load_questions`; so are
            ``split``, ``videos``, ``ids`` and ``label``.
        split: ``test``, ``val`` or ``train``.
        videos: folder of the videos; None looks in the usual folders below ``root``.
        ids: file that names videos of the split, one a line; the others are left out.
        label: what to call these questions.
        against: methods whose printed accuracy is shown; ``published`` is all of them.
        device: torch device; None takes a GPU where there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
        listener: hears how far the work is.

    Raises:
        SureshotError: the model or the questions cannot be used, or nothing is printed of a method.
            Whatever can be known before videos are decoded is said before.
    """
    for method in against:
        published_answers(method)
    notes = Notes(listener or Silence())
    answerer = Answerer.load(model, device)
    asked = load_questions(root, split, videos=videos, ids=ids, label=label)
    notes.line(asked.summary())
    _warn_of_shared(answerer, asked, notes)
    checkpoint = answerer.checkpoint
    retrieval = checkpoint.retrieval
    seen, features = encode_questions(asked, answerer.encoder, retrieval, cache, notes.encoded)
    for name, reason in features.unreadable:
        notes.line(f"left out: {name} {reason}")
    report = answer_report(
        answerer.answers(features),
        seen.answers,
        seen.split.owner(),
        seen.kinds,
        vocabulary=checkpoint.answers,
        constant=checkpoint.answers[int(np.argmax(checkpoint.often))],
        title=seen.title(),
        system=str(checkpoint.retrieval.system["name"]),
        encoder=checkpoint.retrieval.encoder_name,
        frames=retrieval.encoder.frames,
        absent=asked.absent + len(asked.answers) - len(seen.answers),
        against=against,
        same=seen.published,
    )
    return AnswerEvaluation(report, tuple(notes.lines))


def _warn_of_shared(answerer: Answerer, tested: Questions, listener: Listener) -> None:
    """Say which videos are asked about that were trained on, if those are at hand."""
    try:
        recipe = AnswerRecipe.from_dict(answerer.checkpoint.recipe, Path.cwd())
        trained = recipe.train.load()
    except SureshotError:
        return
    try:
        check_disjoint(trained.split, tested.split)
    except SureshotError as error:
        listener.line(f"! {error}")

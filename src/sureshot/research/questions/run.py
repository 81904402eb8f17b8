"""From a recipe to a model that answers: read, encode, build, fit, save.

How a run goes is that of retrieval, `sureshot.research.training`; so are its files, and going on
with a run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from torch.nn.utils.rnn import pad_sequence

from sureshot.datasets import Split
from sureshot.datasets.questions import Questions, frequent, read_vocabulary
from sureshot.errors import SureshotError
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.device import device_for
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures
from sureshot.research.listener import Listener, Silence
from sureshot.research.questions.answerer import answerable, encode_questions, predict
from sureshot.research.questions.checkpoint import AnswerCheckpoint
from sureshot.research.questions.head import LABEL, WORDINGS, AnswerModel, head_of
from sureshot.research.questions.recipe import AnswerRecipe
from sureshot.research.training.epoch import Labels
from sureshot.research.training.gather import rank
from sureshot.research.training.launch import from_torchrun
from sureshot.research.training.loop import Fitted, check_new
from sureshot.research.training.run import (
    RECIPE,
    first_notes,
    fresh_model,
    note_unreadable,
    opened,
)
from sureshot.research.training.task import SaveEncoder, Task, fit_features, fit_pixels
from sureshot.settings import to_values

Asked = tuple[Questions, SplitFeatures]


@dataclass(frozen=True, slots=True)
class Start:
    """What a run starts from.

    Attributes:
        retrieval: the model that is asked, trained or fresh.
        encoder: what it sees with.
        answers: the vocabulary.
        often: how many training questions have each of them.
    """

    retrieval: Checkpoint
    encoder: Encoder
    answers: tuple[str, ...]
    often: tuple[int, ...]

    @classmethod
    def of(cls, recipe: AnswerRecipe, asked: Questions) -> "Start":
        """The start of a recipe.

        Args:
            recipe: the recipe, whose model and vocabulary are taken.
            asked: the training questions.

        Raises:
            SureshotError: the model or the vocabulary cannot be read, or a setting is wrong.
        """
        given = read_vocabulary(recipe.train.root)
        answers = given or frequent(asked.answers, recipe.head.answers)
        often = Counter(asked.answers)
        retrieval, encoder = _retrieval(recipe)
        return cls(
            retrieval=retrieval,
            encoder=encoder,
            answers=answers,
            often=tuple(often[answer] for answer in answers),
        )


def train_answers(
    recipe: str | Path | AnswerRecipe,
    *,
    to: str | Path | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    cache: Path | None = None,
    listener: Listener | None = None,
) -> Fitted:
    """Train a model to answer questions, by a recipe.

    Arguments and errors are those of `sureshot.research.training.run.train`.
    """
    read, folder = opened(AnswerRecipe, recipe, to, settings)
    with from_torchrun():
        notes = first_notes(listener)
        asked, held = read.questions()
        for questions in [asked, *([] if held is None else [held])]:
            notes.line(questions.summary())
        if not resume:
            check_new(folder)
        start = Start.of(read, asked)
        known = asked.answerable(start.answers)
        if fewer := len(asked.answers) - len(known.answers):
            notes.line(
                f"{fewer} training questions have an answer outside of the vocabulary; left out"
            )
        if read.encoder.tuned:
            task = answer_task(read, start, known, held)
            splits = [known.split], None if held is None else held.split
            fitted = fit_pixels(task, *splits, folder, notes, resume=resume)
        else:

            def seen(questions: Questions) -> Asked:
                start_from = start.retrieval
                both = encode_questions(questions, start.encoder, start_from, cache, notes.encoded)
                note_unreadable(both[1], notes)
                return both

            # All videos, so that other vocabularies and retrieval find the same files in the cache.
            whole = answerable(*seen(asked), start.answers)
            val = None if held is None else seen(held)
            fitted = train_answers_on(
                read, start, whole, val, folder, resume=resume, listener=notes
            )
        for line in fitted.notes:
            notes.line(line)
        if rank() == 0:
            read.save(folder / RECIPE)
        return replace(fitted, notes=tuple(notes.lines))


def train_answers_on(
    recipe: AnswerRecipe,
    start: Start,
    asked: Asked,
    val: Asked | None,
    folder: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
) -> Fitted:
    """Train by a recipe on features that are there already.

    Args:
        recipe: how; its questions are not read.
        start: what the run starts from; its encoder gave the features.
        asked: questions whose answers are all in the vocabulary, and their features.
        val: questions to choose a checkpoint on and their features, or None.
        folder: folder of the run.
        resume: go on with the run in the folder, if there is one.
        listener: hears how many steps are done.
    """
    task = answer_task(recipe, start, asked[0], None if val is None else val[0])
    features = None if val is None else val[1]
    return fit_features(task, [asked[1]], features, folder, listener or Silence(), resume=resume)


def answer_task(
    recipe: AnswerRecipe, start: Start, asked: Questions, held: Questions | None
) -> Task:
    """To answer questions about videos.

    Args:
        recipe: how; its questions are not read.
        start: what the run starts from.
        asked: the training questions, whose answers are all in the vocabulary.
        held: the questions a checkpoint is chosen on, or None.
    """
    device = device_for(recipe.encoder.device)
    model = new_answer_model(recipe, start).to(device)
    note = f"Trained on {asked.title()}."
    base = start.retrieval
    if not recipe.frozen:
        # What was measured of the weights it began with does not hold of those it has now.
        further = f"{base.note} Trained further to answer questions. {note}".strip()
        base = replace(base, scores={}, note=further)

    def write(place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        AnswerCheckpoint(
            retrieval=replace(base, model=model.retrieval, tuned=tuned or base.tuned),
            head=model.system.head,
            config=recipe.head,
            answers=start.answers,
            often=start.often,
            recipe=recipe.to_dict(),
            scores=scores,
            note=note,
        ).save(place)

    def score(features: SplitFeatures) -> float:
        assert held is not None
        readable = {item.id for item in features.split.items}
        questions = held.about(readable) if features.unreadable else held
        return accuracy(model, questions, features, start.answers, device)

    return Task(
        model=model,
        system=base.model.system,
        device=device,
        encoder=start.encoder,
        frames=base.encoder.frames,
        sampling=base.encoder.rule,
        words=recipe.encoder.words,
        training=recipe.training,
        metric="accuracy",
        score=score,
        write=write,
        fixed={
            "retrieval": None if recipe.retrieval is None else str(recipe.retrieval),
            "frozen": recipe.frozen,
            "system_weight": recipe.system_weight,
            "head": to_values(recipe.head),
            "system": dict(base.system),
            "stem": to_values(base.model.stem.config),
            "encoder": start.encoder.fingerprint,
            "encoder.frames": base.encoder.frames,
            "encoder.sampling": base.encoder.sampling,
            "encoder.fps": base.encoder.fps,
            "train": asked.title(),
            "answers": list(start.answers),
        },
        labels=labels(asked, start.answers, device),
    )


def new_answer_model(recipe: AnswerRecipe, start: Start) -> AnswerModel:
    """The model of a recipe, its head with first weights that the seed decides."""
    torch.manual_seed(recipe.training.seed)
    model = start.retrieval.model
    head = head_of(model, len(start.answers), recipe.head)
    return AnswerModel(model, head, frozen=recipe.frozen, system_weight=recipe.system_weight)


def accuracy(
    model: AnswerModel,
    questions: Questions,
    features: SplitFeatures,
    answers: Sequence[str],
    device: str = "cpu",
) -> float:
    """Percent of all questions that are answered right, those outside the vocabulary wrong."""
    given = predict(model, features, device)
    right = [answers[number] == true for number, true in zip(given, questions.answers, strict=True)]
    return 100 * float(np.mean(right))


def labels(questions: Questions, answers: Sequence[str], device: str = "cpu") -> Labels:
    """What gives the numbers of right answers, and of wordings, to some questions by their rows."""
    place = {answer: number for number, answer in enumerate(answers)}
    numbers = {
        LABEL: torch.tensor([place[answer] for answer in questions.answers]),
        WORDINGS: wordings(questions.split),
    }
    return lambda rows: {name: every[list(rows)].to(device) for name, every in numbers.items()}


def wordings(split: Split) -> Int64[torch.Tensor, "questions most"]:
    """Numbers of all texts that are asked about the video of each question, as `WORDINGS`."""
    texts = [caption.text for caption in split.captions]
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    asked = [{number[texts[row]] for row in rows} for rows in split.by_video()]
    parts = []
    for caption in split.captions:
        first = number[caption.text]
        parts.append(torch.tensor([first, *sorted(asked[caption.video] - {first})]))
    return pad_sequence(parts, batch_first=True, padding_value=-1)


def _retrieval(recipe: AnswerRecipe) -> tuple[Checkpoint, Encoder]:
    """The model a run starts from, and its encoder."""
    named = recipe.encoder
    if recipe.retrieval is not None:
        found = Checkpoint.from_pretrained(recipe.retrieval)
        if found.encoder.experts:
            raise SureshotError(
                f"{recipe.retrieval} reads experts extracted beforehand "
                f"({', '.join(found.encoder.experts)}), and questions are asked without any. Name "
                "a model that reads none."
            )
        return found, found.load_encoder(recipe.retrieval, named.device)
    encoder = load_encoder(named.name, named.device)
    sizes = Sizes(dim=encoder.dim, channels=encoder.channels)
    model = fresh_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder)
    note = EncoderNote(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        frames=named.frames,
        dim=sizes.dim,
        channels=sizes.channels,
        sampling=named.sampling,
        fps=named.fps,
    )
    return Checkpoint(model=model, encoder=note, system=recipe.system), encoder

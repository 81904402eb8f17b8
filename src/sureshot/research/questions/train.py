"""From a recipe to a model that answers: read, encode, build, fit, save.

The loop is that of retrieval, `sureshot.research.training.loop`; so are its files, and going on
with a run.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from sureshot.datasets.questions import Questions, frequent, read_vocabulary
from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.files import write_text
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders import Encoder, load
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.device import device_for
from sureshot.models.systems.system import Codes
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures, Told, sampled_frames
from sureshot.research.questions.answerer import answerable, encode, predict
from sureshot.research.questions.checkpoint import AnswerCheckpoint
from sureshot.research.questions.head import LABEL, AnswerModel, head_of
from sureshot.research.questions.recipe import AnswerRecipe
from sureshot.research.training.gather import rank
from sureshot.research.training.loop import Fitted, Progress, Save, check_new, fit
from sureshot.research.training.pairs import FeaturePairs
from sureshot.research.training.pixels import PixelPairs
from sureshot.research.training.run import RECIPE, fresh_model, left_out
from sureshot.research.training.tuning import TunedClip
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
            recipe: whose model and vocabulary.
            asked: the training questions.

        Raises:
            SureshotError: the model or the vocabulary cannot be read, or a setting is wrong.
        """
        given = read_vocabulary(recipe.train.root)
        answers = given or frequent(asked.answers, recipe.head.answers)
        often = Counter(asked.answers)
        retrieval, encoder = _retrieval(recipe)
        return cls(retrieval, encoder, answers, tuple(often[answer] for answer in answers))


def train(
    recipe: AnswerRecipe,
    folder: Path,
    *,
    resume: bool = False,
    cache: Path | None = None,
    told: Callable[[Progress], None] | None = None,
    extracting: Told | None = None,
    asking: tuple[Questions, Questions | None] | None = None,
) -> Fitted:
    """Train by a recipe.

    Args:
        recipe: what and how.
        folder: of the run; see `sureshot.research.training.loop.fit`. The recipe is kept in it too.
        resume: go on with the run in the folder, if there is one.
        cache: folder of the features; None is one in the user's cache folder.
        told: called after each step.
        extracting: called while features are encoded.
        asking: the questions of the recipe, where they have been read already.

    Raises:
        SureshotError: anything wrong with the recipe, the data, or a number that is not finite.
    """
    asked, held = asking or recipe.questions()
    if not resume:
        check_new(folder)
    start = Start.of(recipe, asked)
    known = asked.answerable(start.answers)
    if recipe.encoder.tuned:
        done = _tune(recipe, start, known, held, folder, resume=resume, told=told)
    else:
        frames = start.retrieval.encoder.frames
        # All videos, so that other vocabularies and retrieval find the same files in the cache.
        whole = encode(asked, start.encoder, frames, cache, extracting)
        seen = answerable(*whole, start.answers)
        val = None if held is None else encode(held, start.encoder, frames, cache, extracting)
        done = train_on(recipe, start, seen, val, folder, resume=resume, told=told)
        parts = [features for _, features in (whole, *([val] if val else []))]
        unread = [left_out(part) for part in parts if part.unreadable]
        done = replace(done, notes=(*unread, *done.notes))
    if rank() == 0:
        try:
            write_text(folder / RECIPE, recipe.to_toml())
        except OSError as error:
            raise SureshotError(f"The recipe cannot be kept in {folder}: {error}.") from None
    return replace(done, notes=(*_unanswerable(asked, known), *done.notes))


def train_on(
    recipe: AnswerRecipe,
    start: Start,
    asked: Asked,
    val: Asked | None,
    folder: Path,
    *,
    resume: bool = False,
    told: Callable[[Progress], None] | None = None,
) -> Fitted:
    """Train by a recipe on features that are there already.

    Args:
        recipe: how; its questions are not read.
        start: whose encoder gave the features.
        asked: questions whose answers are all in the vocabulary, and their features.
        val: to choose a checkpoint on, or None.
        folder: of the run.
        resume: go on with the run in the folder, if there is one.
        told: called after each step.
    """
    device = device_for(recipe.encoder.device)
    model = new_model(recipe, start).to(device)
    # A linear stem reads no patches, and padding them is most of a batch's work.
    pairs = FeaturePairs([asked[1]], device, patches=model.stem.config.kind == "none")
    return fit(
        model,
        pairs,
        recipe.training,
        folder,
        save=_saving(recipe, start, model, asked[0]),
        validate=None if val is None else lambda: score(model, *val, start.answers, device),
        labels=labels(asked[0], start.answers, device),
        resume=resume,
        described=_described(recipe, start, asked[0]),
        told=told,
    )


def new_model(recipe: AnswerRecipe, start: Start) -> AnswerModel:
    """The model of a recipe, its head with first weights that the seed decides."""
    torch.manual_seed(recipe.training.seed)
    model = start.retrieval.model
    head = head_of(model, len(start.answers), recipe.head)
    return AnswerModel(model, head, frozen=recipe.frozen)


def score(
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


def labels(
    questions: Questions, answers: Sequence[str], device: str = "cpu"
) -> Callable[[Sequence[int]], Codes]:
    """What gives the numbers of the right answers to some questions, by their rows."""
    place = {answer: number for number, answer in enumerate(answers)}
    numbers = torch.tensor([place[answer] for answer in questions.answers])
    return lambda rows: {LABEL: numbers[list(rows)].to(device)}


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
    encoder = load(named.name, named.device)
    sizes = Sizes(encoder.dim, encoder.channels)
    model = fresh_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder)
    note = EncoderNote(encoder.name, encoder.fingerprint, named.frames, sizes.dim, sizes.channels)
    return Checkpoint(model, note, recipe.system), encoder


def _tune(
    recipe: AnswerRecipe,
    start: Start,
    asked: Questions,
    held: Questions | None,
    folder: Path,
    *,
    resume: bool,
    told: Callable[[Progress], None] | None,
) -> Fitted:
    """Train the encoder too, on frames that are decoded in every epoch."""
    encoder, frames = start.encoder, start.retrieval.encoder.frames
    if not isinstance(encoder, ClipEncoder):
        raise SureshotError(
            f"Setting encoder.tuned is true, and the encoder {encoder.name!r} cannot be trained; "
            "only CLIP and SigLIP can. Name one, or set it to false."
        )
    device = encoder.device
    model = new_model(recipe, start).to(device)
    tuned = TunedClip(encoder, start.retrieval.model.system)

    def read(item: Item) -> UInt8[np.ndarray, "frames height width 3"]:
        return sampled_frames(item, frames, encoder.frame_side)

    def validate(held: Questions) -> float:
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            val = encode(held, encoder, frames, Path(cache))
        return score(model, *val, start.answers, device)

    with PixelPairs([asked.split], tuned, read, recipe.training.workers) as pairs:
        return fit(
            model,
            pairs,
            recipe.training,
            folder,
            save=_saving(recipe, start, model, asked, tuned.save),
            validate=None if held is None else lambda: validate(held),
            encoder=tuned,
            labels=labels(asked, start.answers, device),
            resume=resume,
            described=_described(recipe, start, asked),
            told=told,
        )


def _saving(
    recipe: AnswerRecipe,
    start: Start,
    model: AnswerModel,
    asked: Questions,
    tuned: Callable[[Path], None] | None = None,
) -> Save:
    """What writes a checkpoint after an epoch."""
    note = f"Trained on {asked.title()}."
    base = start.retrieval
    if not recipe.frozen:
        # What was measured of the weights it began with does not hold of those it has now.
        further = f"{base.note} Trained further to answer questions. {note}".strip()
        base = replace(base, scores={}, note=further)

    def save(place: Path, epoch: int, found: float | None) -> None:
        measured = {} if found is None else {"accuracy": found}
        AnswerCheckpoint(
            replace(base, model=model.retrieval, tuned=tuned or base.tuned),
            model.system.head,
            recipe.head,
            start.answers,
            start.often,
            recipe.to_dict(),
            {"epoch": float(epoch), **measured},
            note,
        ).save(place)

    return save


def _described(recipe: AnswerRecipe, start: Start, asked: Questions) -> dict[str, Any]:
    """What must not change within a run, besides its training settings."""
    base = start.retrieval
    return {
        "retrieval": None if recipe.retrieval is None else str(recipe.retrieval),
        "frozen": recipe.frozen,
        "head": to_values(recipe.head),
        "system": dict(base.system),
        "stem": to_values(base.model.stem.config),
        "encoder": start.encoder.fingerprint,
        "encoder.frames": base.encoder.frames,
        "train": asked.title(),
        "answers": list(start.answers),
    }


def _unanswerable(asked: Questions, known: Questions) -> list[str]:
    """A line about training questions that teach nothing."""
    fewer = len(asked.answers) - len(known.answers)
    if not fewer:
        return []
    return [f"{fewer} training questions have an answer outside of the vocabulary; left out"]

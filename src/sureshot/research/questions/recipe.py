"""A recipe to train answers by, in one TOML file.

.. code-block:: toml

    retrieval = "runs/duq/model"  # a trained model; or [encoder], [stem] and [system] of a new one
    frozen = true

    [train]
    root = "data/MSRVTT-QA"
    videos = "data/MSRVTT/videos"

    [val]
    root = "data/MSRVTT-QA"
    videos = "data/MSRVTT/videos"

    [training]
    epochs = 5

Paths are those of `sureshot.research.training.recipe`. So is the table ``[training]``, but for its
defaults: every question is asked in each epoch, 5 epochs and batches of 32.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from sureshot.datasets import check_disjoint
from sureshot.datasets.questions import Questions, load_questions
from sureshot.errors import SureshotError
from sureshot.models.model import StemConfig
from sureshot.research.questions.head import HeadConfig
from sureshot.research.training.config import EncoderRecipe, TrainingConfig
from sureshot.research.training.recipe import RecipeFile, placed, refuse_test
from sureshot.settings import Ranged, Within, build

_DEFAULTS = {"epochs": 5, "batch": 32, "captions": "all"}  # of [training]


@dataclass(frozen=True, slots=True)
class QuestionRecipe:
    """Where questions come from; see `sureshot.datasets.questions.load_questions`."""

    root: Path
    split: str = "train"
    videos: Path | None = None
    ids: Path | None = None
    label: str | None = None

    def load(self) -> Questions:
        """Read them.

        Raises:
            SureshotError: see `load_questions`.
        """
        return load_questions(
            self.root, self.split, videos=self.videos, ids=self.ids, label=self.label
        )


@dataclass(frozen=True, slots=True)
class ValidationQuestions(QuestionRecipe):
    """The questions a checkpoint is chosen on."""

    split: str = "val"


def _training() -> TrainingConfig:
    return build(TrainingConfig, _DEFAULTS)


@dataclass(frozen=True, slots=True)
class AnswerRecipe(RecipeFile, Ranged):
    """One training run.

    Attributes:
        train: the questions that are trained on.
        val: the questions a checkpoint is chosen on, by the share that is answered right.
        retrieval: folder of a trained retrieval model to start from; it brings its encoder, stem
            and system. None starts from fresh ones.
        frozen: train the head alone and leave the retrieval model as it is.
        system_weight: factor on the losses of the system, which stay beside that of the answers; 0
            leaves them out, and a frozen model has none. Of DUQ on questions made from captions,
            0.1 answers more validation questions right than 1: 28.1 against 25.9 %, by one seed on
            a third of the training videos; without the losses it is 29.2 %.
        encoder: what sees questions and frames.
        stem: layers from the encoder's space to the system's.
        system: ``name`` of the system and its own settings.
        head: the head.
        training: how weights are fitted. ``metric`` has no meaning here.
    """

    train: QuestionRecipe
    val: ValidationQuestions | None = None
    retrieval: Path | None = None
    frozen: bool = False
    system_weight: Annotated[float, Within(0, 1000)] = 0.1
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    system: Mapping[str, object] = field(default_factory=dict)
    head: HeadConfig = field(default_factory=HeadConfig)
    training: TrainingConfig = field(default_factory=_training)

    def __post_init__(self) -> None:
        """Refuse values out of range and what does not go together."""
        Ranged.__post_init__(self)
        for at, part in (("train", self.train), ("val", self.val)):
            if part is not None:
                refuse_test(at, part.split)
        if self.retrieval is None:
            self._check_fresh()
        else:
            self._check_started()
        object.__setattr__(self, "training", self.training.beside(self.encoder))
        if self.frozen and self.encoder.tuned:
            raise SureshotError("frozen and encoder.tuned are both true; set one of them to false.")
        if self.training.keep == "best" and self.val is None:
            raise SureshotError(
                'training.keep is "best", and there is no validation set to tell it; give [val], '
                'or set training.keep to "last".'
            )

    def _check_fresh(self) -> None:
        if not isinstance(self.system.get("name"), str):
            raise SureshotError(
                'The recipe names no system; give one as name = "..." in [system], or a trained '
                'model as retrieval = "runs/.../model".'
            )
        if self.frozen:
            raise SureshotError(
                "frozen is true, and there is nothing trained to freeze; name a trained model as "
                "retrieval, or set frozen to false."
            )

    def _check_started(self) -> None:
        own = EncoderRecipe(device=self.encoder.device, tuned=self.encoder.tuned)
        for name, given in (
            ("system", bool(self.system)),
            ("stem", self.stem != StemConfig()),
            ("encoder", self.encoder != own),
        ):
            if given:
                raise SureshotError(
                    f"retrieval brings its own {name}; leave [{name}] out"
                    + (" but for device and tuned." if name == "encoder" else ".")
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, object], folder: Path) -> "AnswerRecipe":
        """A recipe from plain values, the defaults of ``[training]`` being those of this module.

        Args:
            values: settings by name, as `to_dict` gives them.
            folder: where relative paths start.

        Raises:
            SureshotError: an unknown or missing name, or a wrong value.
        """
        training = values.get("training", {})
        if isinstance(training, Mapping):
            values = {**values, "training": {**_DEFAULTS, **training}}
        return placed(build(cls, values), folder)

    def questions(self) -> tuple[Questions, Questions | None]:
        """Those to train and to choose on.

        Raises:
            SureshotError: they cannot be read, or are about the same videos.
        """
        train = self.train.load()
        val = None if self.val is None else self.val.load()
        if val is not None:
            check_disjoint(train.split, val.split)
        return train, val

"""Questions about videos, answered with one of the words seen in training.

A head on a retrieval system is trained by a recipe, as a system is, and measured by the share of
right answers, see `sureshot.research.answer_report`.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from sureshot.datasets import check_disjoint
from sureshot.datasets.questions import Questions, frequent, load_questions, read_vocabulary
from sureshot.datasets.split import Caption, Item, Split
from sureshot.errors import ModelError, QueryError, SureshotError, VideoError
from sureshot.files import replace_file, write_json, write_text
from sureshot.models.checkpoint import Checkpoint, read_config
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.losses.contrastive import Eta
from sureshot.models.model import Model, StemConfig, frozen
from sureshot.models.shapes import Losses, Rng
from sureshot.models.similarity import ModelSimilarity
from sureshot.models.systems.base import Codes, Sizes, System, TextTokens, VideoTokens, merged, rows
from sureshot.models.weights import device_for, save_weights, with_weights
from sureshot.paths import exists_at, expand
from sureshot.progress import Progress
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import code_texts, code_videos
from sureshot.research.training.distributed import from_torchrun
from sureshot.research.training.loop import Labels, TrainingResult
from sureshot.research.training.recipe import (
    EncoderRecipe,
    RecipeFile,
    TrainingConfig,
    refuse_test,
    resolve_paths,
)
from sureshot.research.training.run import (
    SaveEncoder,
    Task,
    encoder_note,
    first_notes,
    new_model,
    open_recipe,
)
from sureshot.settings import Ranged, Within, build, to_values
from sureshot.text import plain

FORMAT = 1
CONFIG, WEIGHTS, CARD, RETRIEVAL = "answers.json", "head.safetensors", "README.md", "retrieval"
# Codes of questions, in training only.
LABEL = "answer"  # number of the right answer
WORDINGS = "wordings"  # numbers of the texts asked about its video, its own first, -1 for none

_BATCH = 256  # questions answered at once
_DEFAULTS = {"epochs": 5, "batch": 32, "captions": "all"}  # of [training]


@dataclass(frozen=True, slots=True)
class HeadConfig(Ranged):
    """Settings of the head; a vocabulary that is given is taken whole."""

    key = "head"

    dropout: Annotated[float, Within(0, 0.99)] = 0.1  # of its hidden layer
    answers: Annotated[int, Within(2, 1_000_000)] = 1000  # a vocabulary of so many is made


class AnswerHead(nn.Module):
    """Two layers from a question and a video, unit vectors of ``width``, to a score per answer.

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
        """Logits of the answers to question i about video i."""
        both = torch.cat([texts, videos], -1) * texts.shape[-1] ** 0.5
        return self.out(self.dropout(self.hidden(both).relu()))


class Answering(System):
    """A retrieval system whose codes are trained to answer.

    Its own losses come after that of the answers: they want the video of a question to be found.
    Many videos share a question, so one that is asked about another video too makes no negative
    with it. A system that learns in several passes learns all at once here.

    Args:
        system_weight: factor on the losses of the system; with 0 none is computed.
    """

    def __init__(self, retrieval: System, head: AnswerHead, system_weight: float = 0.1) -> None:
        super().__init__(1.0)
        del self.log_scale  # the system's own is used
        self.retrieval, self.head = retrieval, head
        kept = retrieval.weights if system_weight else {}
        self.weights: Mapping[str, float] = merged(
            {"answer": 1.0}, {name: system_weight * weight for name, weight in kept.items()}
        )
        self._keeps_losses, self.cells = bool(kept), retrieval.cells

    def advice(self, videos: int) -> str:
        """That about the system, if it learns."""
        return self.retrieval.advice(videos) if self._keeps_losses else ""

    def after_step(self) -> None:
        """What is due after each step of the system."""
        self.retrieval.after_step()

    def estimators(self) -> nn.Module | None:
        """Those of the system."""
        return self.retrieval.estimators()

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of questions."""
        return self.retrieval.texts(tokens)

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        return self.retrieval.videos(tokens)

    def logits(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs answers"]:
        """Scores of all answers to question i about video i, higher is better."""
        return self.head(
            self.retrieval.text_vectors(texts), self.retrieval.seen_vectors(texts, videos)
        )

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """Cross-entropy of the right answers, and the losses of the system.

        The first is ln n for n answers where nothing is known.

        Args:
            texts: codes, one per pair, with `LABEL` and `WORDINGS`.
            eta: not read; the wordings decide what counts as a negative.
        """
        losses = {"answer": cross_entropy(self.logits(texts, videos), texts[LABEL])}
        if not self._keeps_losses:
            return losses
        wordings = texts[WORDINGS]
        # 1 where a question is never asked about the video of another pair, 0 where it is.
        negatives = (wordings[:, None, :1] != wordings).all(-1).float()
        return merged(losses, self.retrieval.losses(texts, videos, generator, negatives))


def head_of(model: Model, answers: int, config: HeadConfig) -> AnswerHead:
    """A head with fresh weights for the vectors of a model."""
    width = model.system.vector_width or model.stem.sizes.dim
    return AnswerHead(width, answers, config.dropout)


class AnswerModel(Model):
    """An encoder's features in, answers out, from the codes of a model of retrieval.

    If ``frozen``, only the head is trained; the model stays as it is, without dropout and losses.
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
        self._frozen = (self.stem, self.system.retrieval) if frozen else ()
        for module in self._frozen:
            module.requires_grad_(False)

    def train(self, mode: bool = True) -> "AnswerModel":
        """Switch dropout on or off; it stays off in what is frozen."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """A model and what is known of it; in its folder, `RETRIEVAL` is the checkpoint it reads."""

    retrieval: Checkpoint
    head: AnswerHead
    config: HeadConfig
    answers: tuple[str, ...]  # in the order of the head's outputs
    often: tuple[int, ...]  # how many training questions had each of them
    recipe: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)  # never on test data while choosing
    note: str = ""  # sentences for the card

    def model(self) -> AnswerModel:
        """The model in evaluation mode."""
        return AnswerModel(self.retrieval.model, self.head).train(False)

    def save(self, folder: Path) -> None:
        """Write into a folder, which is made or is empty."""
        kept = ("answers", "often", "recipe", "scores", "note")
        config = {"format": FORMAT, "head": to_values(self.config)}
        config |= {name: to_values(getattr(self, name)) for name in kept}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.retrieval.save_pretrained(folder / RETRIEVAL)
            with replace_file(folder / WEIGHTS) as fresh:  # also for its permissions
                save_weights(self.head, fresh)
            write_json(folder / CONFIG, config)
            write_text(folder / CARD, self._card())
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The model {folder} cannot be written: {error}") from None

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> "AnswerCheckpoint":
        """Read a folder that `save` wrote."""
        folder = Path(folder)
        config = read_config(
            folder / CONFIG,
            FORMAT,
            {"head": dict, "answers": list, "often": list, "recipe": dict, "scores": dict},
            missing=f"{folder} holds no model that answers questions: there is no {CONFIG} in it. "
            "Name the folder model of a run of sureshot answer train.",
            named="a model that answers questions",
        )
        retrieval = Checkpoint.from_pretrained(folder / RETRIEVAL, device)
        answers, often = tuple(config["answers"]), tuple(config["often"])
        whole = all(isinstance(number, int) for number in often) and len(often) == len(answers)
        if not whole or not all(isinstance(answer, str) for answer in answers):
            raise ModelError(
                f"{folder / CONFIG} is damaged: answers must be texts, and often a number of each. "
                "Copy or train it again."
            )
        try:
            settings = build(HeadConfig, config["head"], "head")
        except SureshotError as error:
            raise ModelError(f"{folder / CONFIG} cannot be used. {error}") from None
        make = partial(head_of, retrieval.model, len(answers), settings)
        return cls(
            retrieval=retrieval,
            head=with_weights(make, folder / WEIGHTS, CONFIG).to(device).eval(),
            config=settings,
            answers=answers,
            often=often,
            recipe=config["recipe"],
            scores=config["scores"],
            note=config["note"],
        )

    def _card(self) -> str:
        measured = "".join(f"| {name} | {value:.4g} |\n" for name, value in self.scores.items())
        some, base = ", ".join(self.answers[:5]), self.retrieval
        return (
            f"# Answers to questions about videos\n\n"
            f"Answers with one of {len(self.answers)} words ({some}, …) from the features of\n"
            f"{base.system['name']} on the encoder {base.encoder_name}, which is in\n"
            f"`{RETRIEVAL}`. Use it with `sureshot answer ask FOLDER VIDEO QUESTION`.\n\n"
            f"{self.note}\n\n| measured | |\n|---|---|\n{measured}\n"
            f"The recipe it was trained by is in `{CONFIG}`.\n"
        )


@dataclass(frozen=True, slots=True)
class QuestionRecipe:
    """Where questions come from: arguments of `sureshot.datasets.questions.load_questions`."""

    root: Path
    split: str = "train"
    videos: Path | None = None
    ids: Path | None = None
    label: str | None = None

    def load(self) -> Questions:
        """Read them."""
        return load_questions(**asdict(self))


@dataclass(frozen=True, slots=True)
class ValidationQuestions(QuestionRecipe):
    """The questions a checkpoint is chosen on."""

    split: str = "val"


@dataclass(frozen=True, slots=True)
class AnswerRecipe(RecipeFile, Ranged):
    """One training run.

    Attributes:
        val: the questions a checkpoint is chosen on, by the share that is answered right.
        retrieval: folder of a trained retrieval model to start from; it brings its encoder, stem
            and system. None starts from fresh ones.
        frozen: train the head alone and leave the retrieval model as it is.
        system_weight: factor on the losses of the system, which stay next to that of the answers; 0
            leaves them out, and a frozen model has none. Of DUQ on questions made from captions,
            0.1 answers more validation questions right than 1: 28.1 against 25.9 %, by one seed on
            a third of the training videos; without the losses it is 29.2 %.
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
    training: TrainingConfig = field(default_factory=lambda: build(TrainingConfig, _DEFAULTS))

    def __post_init__(self) -> None:
        Ranged.__post_init__(self)
        refuse_test("train", self.train.split)
        if self.val is not None:
            refuse_test("val", self.val.split)
        self._check_start()
        object.__setattr__(self, "training", self.training.for_encoder(self.encoder))
        if self.frozen and self.encoder.tuned:
            raise SureshotError("frozen and encoder.tuned are both true; set one of them to false.")
        if self.val is None:
            self.training.refuse_best("[val]")

    def _check_start(self) -> None:
        """A trained model brings what a fresh one is given."""
        if self.retrieval is None:
            if not isinstance(self.system.get("name"), str):
                raise SureshotError(
                    'The recipe names no system; give one as name = "..." in [system], or a '
                    'trained model as retrieval = "runs/.../model".'
                )
            if self.frozen:
                raise SureshotError(
                    "frozen is true, and there is nothing trained to freeze; name a trained model "
                    "as retrieval, or set frozen to false."
                )
            return
        own = EncoderRecipe(device=self.encoder.device, tuned=self.encoder.tuned)
        for name, given, but in (
            ("system", bool(self.system), ""),
            ("stem", self.stem != StemConfig(), ""),
            ("encoder", self.encoder != own, " but for device and tuned"),
        ):
            if given:
                raise SureshotError(f"retrieval brings its own {name}; leave [{name}] out{but}.")

    @classmethod
    def from_dict(cls, values: Mapping[str, object], folder: Path) -> "AnswerRecipe":
        """As of every recipe, the defaults of ``[training]`` being those of this module."""
        training = values.get("training", {})
        if isinstance(training, Mapping):
            values = {**values, "training": {**_DEFAULTS, **training}}
        return resolve_paths(build(cls, values), folder)

    def questions(self) -> tuple[Questions, Questions | None]:
        """Those to train and to choose on, which are about other videos."""
        train = self.train.load()
        val = None if self.val is None else self.val.load()
        if val is not None:
            check_disjoint(train.split, val.split)
        return train, val


class AnswerTask(Task):
    """To answer questions about videos, by a recipe whose questions are read already.

    Those to train on whose answer is not in the vocabulary are left out.
    """

    metric = "accuracy"
    recipe: AnswerRecipe
    model: AnswerModel

    def __init__(self, recipe: AnswerRecipe, train: Questions, val: Questions | None) -> None:
        given, often = read_vocabulary(recipe.train.root), Counter(train.answers)
        self.answers = given or frequent(train.answers, recipe.head.answers)
        self.questions, self._val_questions = train.answerable(self.answers), val
        retrieval, encoder = _retrieval(recipe)
        torch.manual_seed(recipe.training.seed)
        self._start = AnswerCheckpoint(
            retrieval=retrieval,
            head=head_of(retrieval.model, len(self.answers), recipe.head),
            config=recipe.head,
            answers=self.answers,
            often=tuple(often[answer] for answer in self.answers),
            recipe=recipe.to_dict(),
        )
        weight, head = recipe.system_weight, self._start.head
        super().__init__(
            recipe,
            AnswerModel(retrieval.model, head, frozen=recipe.frozen, system_weight=weight),
            retrieval.model.system,
            encoder,
            replace(retrieval.encoder, fingerprint=encoder.fingerprint),
            [self.questions.split],
            None if val is None else val.split,
        )

    @property
    def readable(self) -> Questions:
        """What is trained on, without the videos that a frozen encoder could not read."""
        return _readable(self.questions, self.sets[0]) if self.sets else self.questions

    def score(self, features: SplitFeatures) -> float:
        """Percent of all questions that are answered right, those outside the vocabulary wrong."""
        assert self._val_questions is not None
        true = _readable(self._val_questions, features).answers
        given = np.array(self.answers)[predict(self.model, features, self.device)]
        return 100 * float(np.mean(given == np.array(true)))

    def write(self, place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        """A checkpoint that answers, and in it one of retrieval."""
        # Its model shares its parts with the one that is trained.
        base, note = self._start.retrieval, f"Trained on {self.readable.title()}."
        if not self.recipe.frozen:
            # What was measured of the weights it began with does not hold of those it has now.
            further = f"{base.note} Trained further to answer questions. {note}".strip()
            base = replace(base, scores={}, note=further, tuned=tuned or base.tuned)
        replace(self._start, retrieval=base, scores=scores, note=note).save(place)

    def labels(self) -> Labels:
        """Numbers of right answers, and of wordings."""
        place = {answer: number for number, answer in enumerate(self.answers)}
        numbers = {
            LABEL: torch.tensor([place[answer] for answer in self.readable.answers]),
            WORDINGS: wordings(self.readable.split),
        }
        return lambda chosen: {
            name: every[list(chosen)].to(self.device) for name, every in numbers.items()
        }

    def fixed(self) -> dict[str, Any]:
        """Retrieval model, head, encoder, data and vocabulary."""
        recipe, base = self.recipe, self._start.retrieval
        return super().fixed() | {
            "retrieval": None if recipe.retrieval is None else str(recipe.retrieval),
            "frozen": recipe.frozen,
            "system_weight": recipe.system_weight,
            "head": to_values(recipe.head),
            "system": dict(base.system),
            "stem": to_values(base.model.stem.config),
            "train": self.readable.title(),
            "val": "" if self.held is None else self.held.title(),
            "digest of the training questions": self.readable.digest(),
            "digest of the validation questions": (
                "" if self._val_questions is None else self._val_questions.digest()
            ),
            "answers": list(self.answers),
        }


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
    model = new_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder)
    note = encoder_note(named, encoder, sizes)
    return Checkpoint(model=model, encoder=note, system=recipe.system), encoder


def _readable(questions: Questions, features: SplitFeatures) -> Questions:
    """Those about the videos that could be encoded."""
    if not features.unreadable:
        return questions
    return questions.about({item.id for item in features.split.items})


def train_answers(
    recipe: str | Path | AnswerRecipe,
    *,
    to: str | Path | None = None,
    settings: str | Sequence[str] = (),
    resume: bool = False,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a model to answer questions.

    Arguments are those of `sureshot.research.training.run.train`.
    """
    read, folder = open_recipe(AnswerRecipe, recipe, to, settings)
    with from_torchrun():
        notes = first_notes(progress)
        train, val = read.questions()
        for questions in [train] if val is None else [train, val]:
            notes.line(questions.summary())
        task = AnswerTask(read, train, val)
        if fewer := len(train.answers) - len(task.questions.answers):
            notes.line(
                f"{fewer} training questions have an answer outside of the vocabulary; left out"
            )
        return task.run(folder, notes, resume=resume, cache=cache)


def wordings(split: Split) -> Int64[Tensor, "questions most"]:
    """Numbers of all texts that are asked about the video of each question, as `WORDINGS`."""
    texts, parts = split.texts(), []
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    of_video = [{number[texts[row]] for row in rows} for rows in split.by_video()]
    for caption in split.captions:
        first = number[caption.text]
        parts.append(torch.tensor([first, *sorted(of_video[caption.video] - {first})]))
    return pad_sequence(parts, batch_first=True, padding_value=-1)


def logits(
    model: AnswerModel, features: SplitFeatures, captions: Sequence[int], device: str = "cpu"
) -> Float[np.ndarray, "questions answers"]:
    """Scores of all answers to some questions, by their rows.

    They do not depend on how questions or videos are batched.
    """
    owner = features.split.owner()[list(captions)]
    seen, place = np.unique(owner, return_inverse=True)
    coder = ModelSimilarity(model, device)
    texts = code_texts(coder, features, captions)
    videos = rows(code_videos(coder, features, seen.tolist()), torch.from_numpy(place))
    with frozen(model):
        return model.system.logits(texts, videos).float().cpu().numpy()


def predict(
    model: AnswerModel, features: SplitFeatures, device: str = "cpu"
) -> Int64[np.ndarray, " questions"]:
    """Number of the likeliest answer to each caption of a split, asked as a question."""
    captions = range(len(features.texts))
    parts = [captions[first : first + _BATCH] for first in range(0, len(captions), _BATCH)]
    return np.concatenate([logits(model, features, part, device).argmax(1) for part in parts])


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
    """A trained model and its encoder, on a torch device."""

    checkpoint: AnswerCheckpoint
    encoder: Encoder
    device: str = "cpu"

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "Answerer":
        """The model in a folder, such as ``runs/recipe/model``.

        Raises:
            ModelError: it cannot be loaded, or the encoder is not the one it was trained on.
        """
        folder, place = expand(folder), device_for(device)
        found = AnswerCheckpoint.load(folder, place)
        return cls(found, found.retrieval.load_encoder(folder / RETRIEVAL, device), place)

    def features(
        self, split: Split, cache: str | Path | None, progress: Progress | None = None
    ) -> SplitFeatures:
        """What the model reads of videos and questions."""
        retrieval = self.checkpoint.retrieval
        return extract(
            split,
            self.encoder,
            frames=retrieval.encoder.frames,
            sampling=retrieval.encoder.rule,
            cells=retrieval.model.cells,
            cache=cache,
            progress=progress,
        )

    def answer(
        self, questions: Questions, cache: str | Path | None, progress: Progress | None = None
    ) -> tuple[Questions, list[str], Sequence[tuple[str, str]]]:
        """Questions whose video can be read, with likely answers; ids and reasons of the others."""
        features = self.features(questions.split, cache, progress)
        numbers = predict(self.checkpoint.model(), features, self.device)
        given = [self.checkpoint.answers[number] for number in numbers]
        return _readable(questions, features), given, features.unreadable

    def ask(self, video: str | Path, question: str, *, limit: int = 5) -> tuple[Guess, ...]:
        """The likeliest answers to a question about a video, the likeliest first.

        Args:
            video: a file, a photo or a folder of frames.

        Raises:
            QueryError: the question is empty.
            SureshotError: the video cannot be read.
        """
        if not question.strip():
            raise QueryError("The question is empty; ask something, such as: what is he doing?")
        path = expand(video)
        if not exists_at(path):
            raise VideoError(f"{plain(path)} does not exist.")
        split = Split(
            dataset="question",
            name="test",
            protocol="",
            items=(Item(path.name, path),),
            captions=(Caption(question.strip(), 0),),
            label=str(video),
        )
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            features = self.features(split, Path(cache))
        scores = logits(self.checkpoint.model(), features, [0], self.device)[0]
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        best = np.argsort(-shares, kind="stable")[:limit]
        return tuple(Guess(self.checkpoint.answers[n], float(shares[n])) for n in best)

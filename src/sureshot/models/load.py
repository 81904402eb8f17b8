"""Models by the names that people type: an encoder's name or hub id, or a folder.

Nothing here imports torch before a checkpoint is loaded.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Shaped

from sureshot.errors import (
    ArgumentError,
    ModelError,
    VideoError,
    option,
    reason_of,
    require_research,
)
from sureshot.files import file_digest, replace_folder
from sureshot.media.sampling_rule import Sampling
from sureshot.models import huggingface
from sureshot.models.encoders import BUILT_IN, load_encoder
from sureshot.models.encoders.base import (
    Cells,
    Encoder,
    FrameFeatures,
    TextFeatures,
    VideoFeatures,
    Vocabulary,
    stack,
    with_cells,
)
from sureshot.models.encoders.experts import Experts, pack, read_experts
from sureshot.models.hub_bank import Bank, bank_of, home_of
from sureshot.models.huggingface import BANK, WEIGHTS, is_checkpoint
from sureshot.models.similarity import (
    HubCorrected,
    MeanFrames,
    ModelSimilarity,
    Similarity,
    similarity_for,
)
from sureshot.paths import absolute, absolute_model, as_list, exists_at, expand
from sureshot.settings import to_values
from sureshot.text import counted, plain

if TYPE_CHECKING:
    from sureshot.models.checkpoint import Checkpoint
    from sureshot.models.model import Model


_OF_RUN = "model"  # a run's folder has its model there
_FRAMES = 12  # sampled from a video for an encoder alone
_TEXTS, _VIDEOS = 256, 64  # coded at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Embedded:
    """Texts or videos as a model compares them; `Scorer.similarity` takes one of each.

    Attributes:
        vectors: unit vectors. The product of a text's and a video's is their score where the model
            pools frames to one vector, as an encoder alone does; else it chooses candidates.
        codes: what the model's own similarity compares.
        model: what their model is known by; those of two models do not compare.
    """

    vectors: Float[np.ndarray, "items dim"]
    codes: Any
    are: Literal["texts", "videos"]
    model: str

    def __repr__(self) -> str:
        return f"<{len(self)} {self.are}, {self.vectors.shape[1]} numbers each>"

    def __len__(self) -> int:
        return len(self.vectors)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.vectors, dtype=dtype, copy=copy or None)


@dataclass(frozen=True, eq=False, repr=False)
class Scorer:
    """An encoder alone, or a trained model on top of one.

    Attributes:
        encoder_name: the encoder as people know it; where it was trained too, what it began as.
        model: what scores the features; None is the cosine of a sentence and the mean frame.
        sampling: which frames of a whole video; an index cuts windows and samples those uniformly.
        searchable: what an index is made with; None where the system reads more than one keeps.
        bank: captions and videos that scores are corrected by.

    Examples:
        >>> from sureshot.models.load import load
        >>> model = load("tiny")  # knows eight colours; for tests
        >>> texts = model.encode_query(["a red wall", "the blue sky"])
        >>> texts.vectors.shape
        (2, 24)

        ``model.similarity(texts, model.encode_document(["a.mp4", "b.mp4"]))`` is a matrix of two
        rows, the texts, and two columns, the videos.
    """

    name: str
    encoder: Encoder
    encoder_name: str
    model: "Model | None" = None
    system: str = "encoder"
    frames: int = _FRAMES
    sampling: Sampling = field(default_factory=Sampling)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    searchable: Encoder | None = None
    bank: Bank | None = None

    def __repr__(self) -> str:
        return f"<Scorer {plain(self.name)}: {self.system}, {counted(self.frames, 'frame')}>"

    @property
    def trained_on(self) -> str:
        """Datasets it was trained on, joined by " + "; empty if not known."""
        return " + ".join(dict.fromkeys(part["dataset"] for part in self.recipe.get("train", ())))

    @property
    def experts(self) -> tuple[str, ...]:
        """The experts that it was trained on."""
        return tuple(name for name, _ in self.raw.experts)

    def check_experts(self, folder: str | Path | None) -> None:
        """Refuse experts that nothing reads, and to do without those that it was trained on."""
        if self.experts and folder is None:
            raise ArgumentError(
                f"{self.name} was trained on the experts {', '.join(self.experts)}; name the "
                f"folder that has them with {option('experts')}."
            )
        if folder is not None and not self.experts:
            raise ArgumentError(f"{self.name} reads no experts; leave out {option('experts')}.")

    @property
    def scale(self) -> float | None:
        """The factor on scores within the system's softmax; None where there is none."""
        system = None if self.model is None else self.model.system
        return float(system.scale.detach()) if system is not None and system.has_scale else None

    @property
    def fingerprint(self) -> str:
        """By which an index and a calibration card know it."""
        return self.require_searchable().fingerprint

    @property
    def _known_as(self) -> str:
        """Its fingerprint, or where it has none its place."""
        return absolute_model(self.name) if self.searchable is None else self.fingerprint

    @cached_property
    def raw(self) -> Similarity:
        """Similarity of what its encoder gives, uncorrected."""
        return MeanFrames() if self.model is None else ModelSimilarity(self.model, self.device)

    @cached_property
    def ranking(self) -> Similarity:
        """How it compares what its encoder gives, as a search ranks."""
        return self.raw if self.bank is None else HubCorrected(self.raw, self.bank, self.stored)

    @property
    def cells(self) -> Cells:
        """Which patches of frames are compared."""
        return "none" if self.model is None else self.model.cells

    @property
    def stored(self) -> Similarity:
        """Similarity on stored features, uncorrected."""
        return similarity_for(self.require_searchable())

    def encode_query(self, texts: str | Iterable[str]) -> Embedded:
        """Texts, sentences or single words, as the model compares them; at least one."""
        texts = as_list(texts)
        if not texts:
            raise ArgumentError("There are no texts to encode; give at least one.")
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ArgumentError(f"{text!r} is no text to encode; give a sentence or a word.")
        how = self.ranking
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        codes = how.join([how.texts(self.encoder.encode_texts(part)) for part in parts])
        return Embedded(how.text_vectors(codes), codes, are="texts", model=self._known_as)

    def encode_document(
        self, videos: str | Path | Sequence[str | Path], *, experts: str | Path | None = None
    ) -> Embedded:
        """Videos as the model compares them, each decoded and sampled as a whole.

        Args:
            videos: video files, folders of numbered frames or photos, at least one.
            experts: folder of experts, for a model that was trained on some (see
                `sureshot.models.encoders.experts`).

        Raises:
            ArgumentError: the model was trained on experts and there are none, or it reads none.
            VideoError: one of the videos cannot be read; the message names it.
        """
        self.check_experts(experts)
        paths = [expand(video) for video in as_list(videos)]
        if not paths:
            raise ArgumentError("There are no videos to encode.")
        parts = [paths[first : first + _VIDEOS] for first in range(0, len(paths), _VIDEOS)]
        how = self.ranking
        codes = how.join([how.videos(self._features(part, experts)) for part in parts])
        return Embedded(how.video_vectors(codes), codes, are="videos", model=self._known_as)

    def similarity(
        self, texts: Embedded, videos: Embedded, *, corrected: bool = True
    ) -> Float[np.ndarray, "texts videos"]:
        """The score of every text with every video, higher is better.

        Args:
            corrected: whether the hub correction of the model's bank is taken off, as in a search.
        """
        are = [getattr(given, "are", type(given).__name__) for given in (texts, videos)]
        if are != ["texts", "videos"]:
            raise ArgumentError(
                "similarity compares what encode_query and encode_document give, in this order; "
                f"here are {' and '.join(are)}."
            )
        if {texts.model, videos.model} != {self._known_as}:
            raise ArgumentError(
                f"similarity of {plain(self.name)} compares what it has encoded; these are of "
                "another model or version."
            )
        if corrected or self.bank is None:
            return self.ranking.similarity(texts.codes, videos.codes)
        return self.raw.similarity(texts.codes, videos.codes.codes)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, device: str | None = None, *, revision: str | None = None
    ) -> "Scorer":
        """As `load`."""
        return load(name, device, revision=revision)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the files of a trained model into a folder, whole or not at all.

        Weights and settings, its card, calibration and hub correction; `load` takes the folder.
        """
        from sureshot.models.checkpoint import check_free

        home, folder = self._require_files(), absolute(folder)
        if folder == home:
            return
        check_free(folder)
        try:
            with replace_folder(folder) as fresh:
                huggingface.copy_checkpoint(home, fresh)
        except OSError as error:
            raise ModelError(
                f"The model cannot be saved in {folder}: {reason_of(error)}."
            ) from None

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        commit_message: str = "Model of Sureshot",
        branch: str | None = None,
        create_pr: bool = False,
    ) -> str:
        """Publish a trained model on the Hugging Face hub; the address of the commit.

        What `save_pretrained` writes, with a card for that name. Of folders of this machine that
        its recipe names only the last part is published.

        Args:
            name: of the model on the hub, such as ``me/my-model``.
            private: whether a new model is private; None is as the account has it.
            token: of the account; None is that of the last ``hf auth login``.
            branch: of an existing model; None is ``main``.
            create_pr: whether to offer the files as a pull request.

        Raises:
            ModelError: there is no login, no permission, or no network; or the encoder of the
                model is on this machine alone.
        """
        from sureshot.models.checkpoint import model_card

        home = self._require_files()
        card = model_card(home, name)
        commit = {"commit_message": commit_message, "revision": branch, "create_pr": create_pr}
        return huggingface.publish(home, name, card, private, token, **commit)

    def _require_files(self) -> Path:
        """The folder that a trained model is in."""
        home = home_of(absolute_model(self.name))
        if self.model is None or home is None or not is_checkpoint(home):
            raise ModelError(
                f"{self.name} is an encoder, not a trained model. Train one on it with `sureshot "
                f"train`, and save or publish that."
            )
        return home

    def require_searchable(self) -> Encoder:
        """What an index is made with, or a ModelError where none can be made."""
        if self.searchable is None:
            raise ModelError(
                f"{self.name} is a model of the system {self.system}, which compares more of a "
                f"video than the frames that an index keeps. It can be evaluated, but it can have "
                f"no index and no calibration; index with another system."
            )
        return self.searchable

    def _features(self, paths: Sequence[Path], folder: str | Path | None) -> VideoFeatures:
        """Features of some videos, with the patches that are read."""
        features = stack([with_cells(self._frames(path), self.cells) for path in paths])
        if folder is None:
            return features
        by_name = read_experts(expand(folder), [path.name for path in paths])
        own: list[Experts] = [by_name[path.name] for path in paths]
        rows, which = pack(own, self.raw.experts)
        return replace(features, experts=rows, which=which)

    def _frames(self, path: Path) -> FrameFeatures:
        from sureshot.media.sampling import sample_frames
        from sureshot.media.video import naming, unreadable

        if not exists_at(path):
            raise VideoError(f"There is no video at {path}.")
        size = self.encoder.frame_size
        try:
            with naming(path):
                images = sample_frames(path, self.frames, size, sampling=self.sampling)
        except OSError as error:
            raise VideoError(f"{path} {unreadable(error)}.") from None
        return self.encoder.encode_frames(self.encoder.prepare(images))


def load(name: str | Path, device: str | None = None, *, revision: str | None = None) -> Scorer:
    """A model that embeds texts and videos and scores them.

    Args:
        name: a trained model, by its folder or its name on the Hugging Face hub, or an encoder as
            `sureshot.models.encoders.load_encoder` takes it: ``bundled``, a folder of a CLIP, or
            its name on the hub.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        revision: commit, branch or tag of a model of the hub; None is the version in the cache,
            else the newest.

    Raises:
        ModelError: there is no such model, it cannot be reached or trusted, its encoder has changed
            since it was trained, or its bank cannot be used.
    """
    if revision is not None:
        name = _from_hub(str(name), revision)
    scorer = _without_bank(str(name), device)
    place = scorer.name if scorer.name in BUILT_IN else absolute_model(scorer.name)
    home = home_of(place)
    if scorer.searchable is None or home is None or not (home / BANK).is_file():
        return scorer
    return replace(scorer, bank=bank_of(place, scorer.fingerprint))


def load_searchable(
    name: str | Path, device: str | None = None, engine: str | None = None
) -> Encoder:
    """What an index is written and searched with: an encoder alone, or a trained model as one."""
    if engine is not None:  # it is chosen with the first frame, when an index has been made
        from sureshot.models.encoders.engines import check_engine

        check_engine(engine)
    # An encoder alone leaves out the patches of frames where it can: an index keeps none.
    return _without_bank(str(name), device, engine, patches=False).require_searchable()


def _without_bank(
    name: str, device: str | None, engine: str | None = None, *, patches: bool = True
) -> Scorer:
    if name not in BUILT_IN:
        folder = _from_hub(name) if huggingface.is_hub_name(name) else expand(name)
        if is_checkpoint(folder):
            return _checkpoint(name, folder, device, engine)
        _refuse_other(name, folder)
    encoder = load_encoder(name, device, engine, patches=patches)
    if not encoder.channels:
        raise ModelError(
            f"{name} reads texts alone, so no video can be searched or compared by it. It goes "
            "into a recipe as encoder.name, for ce or hit with experts."
        )
    return Scorer(name=name, encoder=encoder, encoder_name=encoder.name, searchable=encoder)


def _from_hub(name: str, revision: str | None = None) -> Path:
    """The folder of a model of the hub, downloaded the first time."""
    if not huggingface.is_hub_name(name):
        raise ModelError(
            f"{name} is no name on the hub, so it has no version {revision}; leave that out."
        )
    from sureshot.models.encoders.clip import Snapshot

    def usable(folder: Path) -> bool:
        return huggingface.is_whole_checkpoint(folder) or Snapshot(folder).complete()

    return huggingface.cached(name, usable, revision) or huggingface.download(name, revision)


def _checkpoint(name: str, folder: Path, device: str | None, engine: str | None) -> Scorer:
    require_research(f"The trained model {name}")
    from sureshot.models.checkpoint import Checkpoint
    from sureshot.models.weights import device_for

    place = device_for(device)
    checkpoint = Checkpoint.from_pretrained(folder, place)
    encoder = checkpoint.load_encoder(folder, device, engine)
    retriever = Retriever(checkpoint, encoder, folder, place, name)
    return Scorer(
        name=name,
        encoder=encoder,
        encoder_name=checkpoint.encoder_name,
        model=checkpoint.model,
        system=str(checkpoint.system["name"]),
        frames=checkpoint.encoder.frames,
        sampling=checkpoint.encoder.rule,
        recipe=checkpoint.recipe,
        device=place,
        searchable=retriever if checkpoint.model.system.searches else None,
    )


def _refuse_other(name: str, folder: Path) -> None:
    """Refuse the folder of a run, one that is gone, and the name of a system."""
    if is_checkpoint(folder / _OF_RUN):
        raise ModelError(f"{name} is the folder of a run; its model is {Path(name) / _OF_RUN}.")
    if os.path.exists(folder):  # noqa: PTH110 - Path.exists fails at names too long
        return
    if folder.is_absolute():
        raise ModelError(
            f"There is no model in {folder}. If it has moved, name its folder with "
            f"{option('model')}."
        )
    require_research(f"The model {name}", "torch", "transformers")
    from sureshot.models.systems.base import find_system

    if find_system(name) is not None:
        raise ModelError(
            f"{name} is a retrieval system, which has no weights before it is trained. Train it by "
            f"a recipe, such as `sureshot train recipes/{name}.toml`, or name the folder of a "
            f"checkpoint."
        )


_VERSION = "retriever-1"  # part of every fingerprint; change it when vectors of a checkpoint change


class Retriever(ModelSimilarity):
    """A trained model as an encoder, so that an index is written with it as with an encoder alone.

    Its vectors are those that come out of the stem; it compares by the system's own similarity.
    """

    vocabulary: Vocabulary | None = None

    def __init__(
        self, checkpoint: "Checkpoint", encoder: Encoder, folder: Path, device: str, name: str
    ) -> None:
        super().__init__(checkpoint.model.system, device)
        self._model, self._checkpoint = checkpoint.model, checkpoint
        self._encoder, self._folder = encoder, folder
        self.name = name if huggingface.is_hub_name(name) else str(folder)
        self.dim = checkpoint.model.stem.sizes.dim
        self.channels, self.latin_only = encoder.channels, encoder.latin_only
        self.frame_size, self.prepare = encoder.frame_size, encoder.prepare
        self.frames = checkpoint.encoder.frames
        self.is_tuned = checkpoint.tuned is not None  # the encoder was trained with the system
        self.summary = f"{checkpoint.system['name']} on the encoder {checkpoint.encoder_name}"

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, settings and encoder; neither the folder's place nor its card."""
        settings = {
            "stem": to_values(self._model.stem.config),
            "system": to_values(self._checkpoint.system),
        }
        try:
            weights = file_digest(self._folder / WEIGHTS)
        except OSError as error:
            raise ModelError(f"{self._folder / WEIGHTS} cannot be read: {error}.") from None
        lines = [_VERSION, self._encoder.fingerprint, json.dumps(settings, sort_keys=True), weights]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @property
    def engine(self) -> str:
        """What computes the encoder's frames; empty where it leaves no choice."""
        return getattr(self._encoder, "engine", "")

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Texts as the stem gives them; with a linear one, ``sentence`` is not of unit length."""
        from sureshot.models.model import frozen
        from sureshot.models.systems.base import text_tokens

        features = self._encoder.encode_texts(texts)
        with frozen(self._model):
            tokens = self._model.stem.texts(text_tokens(features, self.device))
        sentence, words = tokens.sentence.cpu().numpy(), tokens.words.cpu().numpy()
        if not words.shape[-1]:  # a stem may leave out what its system does not read
            words = np.zeros((*features.mask.shape, self.dim), np.float32)
        return replace(features, sentence=sentence, words=words, length=None)

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Frames as the stem gives them, with patches only where they are in the same space."""
        from sureshot.models.model import frozen
        from sureshot.models.systems.base import video_tokens

        features = self._encoder.encode_frames(prepared)
        video = video_tokens(stack([with_cells(features, "none")]), self.device)
        with frozen(self._model):
            frames = self._model.stem.videos(video).frames[0].cpu().numpy()
        if self._model.stem.config.kind == "linear":
            patches = np.zeros((len(frames), 0, self.dim), np.float32)
            return replace(features, frames=frames, patches=patches)
        return replace(features, frames=frames)

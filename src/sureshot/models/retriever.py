"""What an index is written and searched with: an encoder alone, or a trained model on top of it.

Both are encoders to whoever indexes. They differ in how a query is scored, which `scoring` gives.
Nothing here imports torch before a checkpoint is loaded.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt8

from sureshot.errors import ModelError, option
from sureshot.files import file_digest
from sureshot.models import encoders
from sureshot.models.bank import Bank
from sureshot.models.encoders.protocol import Encoder, FrameFeatures, TextFeatures
from sureshot.models.mean_frames import cosine, mean_pool

if TYPE_CHECKING:
    import torch

    from sureshot.models.checkpoint import Checkpoint
    from sureshot.models.systems.system import Codes

_BUILT_IN = ("bundled", "bridge", "tiny")  # names that mean the same whatever folders lie around
_VERSION = "retriever-1"  # part of every fingerprint; change it when vectors of a checkpoint change
_WINDOWS = 512  # scored at once


@runtime_checkable
class Scoring(Protocol):
    """How texts are compared with stored windows."""

    def text_vectors(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """Unit vectors whose inner products with pooled frames choose the candidates."""
        ...

    def score(
        self,
        texts: TextFeatures,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> Float[np.ndarray, "texts windows"]:
        """The exact score of every text with every window, higher is better."""
        ...


@runtime_checkable
class Comparing(Scoring, Protocol):
    """A scoring whose two sides can be worked out apart, and kept."""

    def texts(self, texts: TextFeatures) -> Any:
        """What it compares of texts."""
        ...

    def videos(
        self,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> Any:
        """What it compares of windows, at least one."""
        ...

    def similarity(self, texts: Any, videos: Any) -> Float[np.ndarray, "texts windows"]:
        """The score of all pairs."""
        ...

    def score(
        self,
        texts: TextFeatures,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> Float[np.ndarray, "texts windows"]:
        """The similarity of every text with every window."""
        return self.similarity(self.texts(texts), self.videos(frames, mask))


class MeanFrames(Comparing):
    """Scores of an encoder alone: the cosine of a sentence and the mean of a window's frames."""

    def text_vectors(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """The sentences."""
        return texts.sentence

    def texts(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """The sentences."""
        return texts.sentence

    def videos(
        self,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> Float[np.ndarray, "windows dim"]:
        """The mean frames."""
        return mean_pool(frames, mask)

    def similarity(
        self, texts: Float[np.ndarray, "texts dim"], videos: Float[np.ndarray, "windows dim"]
    ) -> Float[np.ndarray, "texts windows"]:
        """Cosines, in [-1, 1]."""
        return cosine(texts, videos)


class Corrected:
    """Another scoring with the bank of its model: less the hub correction, and beside others.

    Args:
        base: that is corrected.
        bank: of the same model.
    """

    def __init__(self, base: Comparing, bank: Bank) -> None:
        self._base = base
        self._bank = bank
        # Of the windows scored last: several batches of texts meet the same ones.
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def text_vectors(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """Those of the base: candidates are chosen without the correction."""
        return self._base.text_vectors(texts)

    def score(
        self,
        texts: TextFeatures,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> Float[np.ndarray, "texts windows"]:
        """Scores of the base, less one number a window."""
        if not len(frames) or not self._bank.weight:
            return self._base.score(texts, frames, mask)
        videos = self._base.videos(frames, mask)
        raw = self._base.similarity(self._base.texts(texts), videos)
        last = self._last
        if last is None or last[0] is not frames:
            known = self._base.similarity(self._captions, videos)
            last = self._last = frames, self._bank.offsets(known).astype(raw.dtype)
        return raw - last[1]

    def elsewhere(self, texts: TextFeatures) -> Float[np.ndarray, " texts"] | None:
        """What each text scores with the videos of the bank, see `Bank.elsewhere`."""
        if not len(self._bank.frames):
            return None
        return self._bank.elsewhere(self._base.similarity(self._base.texts(texts), self._videos))

    @cached_property
    def _captions(self) -> Any:
        return self._base.texts(self._bank.texts)

    @cached_property
    def _videos(self) -> Any:
        return self._base.videos(self._bank.frames, self._bank.mask)


def elsewhere(scoring: Scoring, texts: TextFeatures) -> Float[np.ndarray, " texts"] | None:
    """What each text scores with the videos of the model's bank; None for a model without any."""
    return scoring.elsewhere(texts) if isinstance(scoring, Corrected) else None


class Retriever(Comparing):
    """A trained model as an encoder: its vectors lie in the space that its system works in.

    Args:
        checkpoint: the model, on the processor; it is moved.
        encoder: that it was trained on.
        folder: where the checkpoint lies.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Attributes:
        name: the folder.
        dim: width of the system's vectors.
        channels: size of the encoder's backbone features, which are stored as they are.
        frame_side: of the encoder.
        latin_only: of the encoder.
        frames: frames a video it was trained with.
        summary: what it is, in a few words.
    """

    def __init__(
        self, checkpoint: "Checkpoint", encoder: Encoder, folder: Path, device: str | None = None
    ) -> None:
        from sureshot.models.encoders.device import device_for

        self.device = device_for(device)
        self._model = checkpoint.model.to(self.device).eval()
        self._checkpoint = checkpoint
        self._encoder = encoder
        self._folder = folder
        self.name = str(folder)
        self.dim = checkpoint.model.stem.sizes.dim
        self.channels = encoder.channels
        self.frame_side = encoder.frame_side
        self.latin_only = encoder.latin_only
        self.frames = checkpoint.encoder.frames
        self.summary = f"{checkpoint.system['name']} on the encoder {checkpoint.encoder_name}"

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "Retriever":
        """The model in a folder that `Checkpoint.save_pretrained` wrote.

        Raises:
            ModelError: it cannot be read, its encoder is not there or has changed, or its system
                reads what an index does not keep.
        """
        from sureshot.models.checkpoint import Checkpoint

        folder = Path(folder).expanduser()
        checkpoint = Checkpoint.from_pretrained(folder)
        if not checkpoint.model.system.searches:
            raise ModelError(
                f"{folder} is a model of the system {checkpoint.system['name']}, which compares "
                f"more of a video than the frames that an index keeps. It can be evaluated; index "
                f"with another system."
            )
        return cls(checkpoint, checkpoint.load_encoder(folder, device), folder, device)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, settings and encoder; neither the folder's place nor its card count.

        Raises:
            ModelError: the weights have gone since they were loaded.
        """
        from sureshot.models.checkpoint import WEIGHTS
        from sureshot.settings import to_values

        stem = to_values(self._model.stem.config)
        if stem["kind"] == "linear" or stem["sentence"] == "unit":
            del stem["sentence"]  # which was added later: models from before keep their digest
        settings = {
            "stem": stem,
            "system": to_values(self._checkpoint.system),
        }
        try:
            weights = file_digest(self._folder / WEIGHTS)
        except OSError as error:
            raise ModelError(f"{self._folder / WEIGHTS} cannot be read: {error}.") from None
        lines = [_VERSION, self._encoder.fingerprint, json.dumps(settings, sort_keys=True), weights]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Texts as the stem gives them; with a linear one, ``sentence`` is not of unit length."""
        from sureshot.models.tokens import text_tokens

        features = self._encoder.encode_texts(texts)
        with _no_grad():
            tokens = self._model.stem.texts(text_tokens(features, self.device))
        words = np.zeros((*features.mask.shape, self.dim), np.float32)
        if tokens.words.shape[-1]:  # a stem may leave out what its system does not read
            words[:] = tokens.words.cpu().numpy()
        return TextFeatures(tokens.sentence.cpu().numpy(), words, features.mask, features.truncated)

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Shaped[np.ndarray, "frames 3 side side"]:
        """What the encoder does."""
        return self._encoder.prepare(frames)

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Frames as the stem gives them, their patches only where they lie in the same space."""
        import torch

        from sureshot.models.tokens import VideoTokens

        features = self._encoder.encode_frames(prepared)
        count = len(features.frames)
        with _no_grad():
            tokens = self._model.stem.videos(
                VideoTokens(
                    torch.from_numpy(features.frames[None]).float().to(self.device),
                    torch.zeros(1, count, 0, features.frames.shape[1], device=self.device),
                    torch.from_numpy(features.backbone[None]).float().to(self.device),
                    torch.ones(1, count, dtype=torch.bool, device=self.device),
                )
            )
        linear = self._model.stem.config.kind == "linear"
        patches = np.zeros((count, 0, self.dim), np.float32) if linear else features.patches
        return FrameFeatures(tokens.frames[0].cpu().numpy(), patches, features.backbone)

    def text_vectors(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """What the system compares with pooled frames, at unit length."""
        with _no_grad():
            vectors: Float[np.ndarray, "texts dim"] = (
                self._model.system.text_vectors(self.texts(texts)).cpu().numpy()
            )
        return vectors

    def texts(self, texts: TextFeatures) -> "Codes":
        """The system's codes of texts."""
        from sureshot.models.tokens import text_tokens

        with _no_grad():
            return self._model.system.texts(text_tokens(texts, self.device))

    def videos(
        self,
        frames: Float[np.ndarray, "windows frames dim"],
        mask: Bool[np.ndarray, "windows frames"],
    ) -> "list[Codes]":
        """The system's codes of windows, some at a time."""
        import torch

        from sureshot.models.tokens import stored_tokens

        parts = []
        for first in range(0, len(frames), _WINDOWS):
            part = torch.from_numpy(frames[first : first + _WINDOWS]).float().to(self.device)
            real = torch.from_numpy(mask[first : first + _WINDOWS]).to(self.device)
            with _no_grad():
                parts.append(self._model.system.videos(stored_tokens(part, real)))
        return parts

    def similarity(
        self, texts: "Codes", videos: "list[Codes]"
    ) -> Float[np.ndarray, "texts windows"]:
        """The similarity that was trained; its range is the system's own."""
        count = len(next(iter(texts.values())))
        with _no_grad():
            scores = [self._model.system.similarity(texts, part).cpu().numpy() for part in videos]
        return np.concatenate([np.zeros((count, 0), np.float32), *scores], axis=1)


def load(name: str, device: str | None = None) -> Encoder:
    """The trained model in a folder, or the encoder of this name.

    Args:
        name: folder of a checkpoint, or what `sureshot.models.encoders.load` takes.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Raises:
        ModelError: no such model, or it cannot be reached or trusted.
    """
    folder = Path(name).expanduser()
    if name not in _BUILT_IN and folder.is_dir():
        from sureshot.models.checkpoint import is_checkpoint

        if is_checkpoint(folder):
            return Retriever.load(folder, device)
    if folder.is_absolute() and not folder.exists():
        raise ModelError(
            f"There is no model in {folder}. If it has moved, name its folder with "
            f"{option('model')}."
        )
    return encoders.load(name, device)


def comparing(encoder: Encoder) -> Comparing:
    """How queries are scored with what `load` gave, without its bank."""
    return encoder if isinstance(encoder, Comparing) else MeanFrames()


def scoring(encoder: Encoder, bank: Bank | None = None) -> Scoring:
    """How queries are scored with what `load` gave, and with its bank."""
    base = comparing(encoder)
    return base if bank is None else Corrected(base, bank)


def _no_grad() -> "torch.no_grad":
    import torch

    return torch.no_grad()

"""A trained model as an encoder, so that an index is written with it as with an encoder alone.

Nothing here imports torch before a model is made.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped, UInt8

from sureshot.errors import ModelError
from sureshot.files import file_digest
from sureshot.models.comparing import Trained
from sureshot.models.encoders.protocol import Encoder, FrameFeatures, TextFeatures, VideoFeatures

if TYPE_CHECKING:
    from sureshot.models.checkpoint import Checkpoint

_VERSION = "retriever-1"  # part of every fingerprint; change it when vectors of a checkpoint change


class Retriever(Trained):
    """A trained model as an encoder: its vectors lie in the space that its system works in.

    It compares by the system's own similarity what has come through the stem.

    Args:
        checkpoint: the model, on the processor; it is moved.
        encoder: the encoder that the model was trained on.
        folder: where the checkpoint lies.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Attributes:
        name: the folder.
        dim: width of the system's vectors.
        channels: size of the encoder's backbone features, which are stored as they are.
        frame_size: size in which the encoder wants frames.
        latin_only: whether texts in other scripts mean nothing to the encoder.
        vocabulary: None; what its captions were is not kept.
        frames: frames a video it was trained with.
        summary: what it is, in a few words.
    """

    def __init__(
        self, checkpoint: "Checkpoint", encoder: Encoder, folder: Path, device: str | None = None
    ) -> None:
        from sureshot.models.encoders.device import device_for

        place = device_for(device)
        self._model = checkpoint.model.to(place).eval()
        super().__init__(self._model.system, place)
        self._checkpoint = checkpoint
        self._encoder = encoder
        self._folder = folder
        self.name = str(folder)
        self.dim = checkpoint.model.stem.sizes.dim
        self.channels = encoder.channels
        self.frame_size = encoder.frame_size
        self.latin_only = encoder.latin_only
        self.vocabulary: frozenset[str] | None = None
        self.frames = checkpoint.encoder.frames
        self.summary = f"{checkpoint.system['name']} on the encoder {checkpoint.encoder_name}"

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

    @property
    def engine(self) -> str:
        """What computes the encoder's frames; empty where it leaves no choice."""
        return getattr(self._encoder, "engine", "")

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Texts as the stem gives them; with a linear one, ``sentence`` is not of unit length."""
        from sureshot.models.model import frozen
        from sureshot.models.tokens import text_tokens

        features = self._encoder.encode_texts(texts)
        with frozen(self._model):
            tokens = self._model.stem.texts(text_tokens(features, self.device))
        words = np.zeros((*features.mask.shape, self.dim), np.float32)
        if tokens.words.shape[-1]:  # a stem may leave out what its system does not read
            words[:] = tokens.words.cpu().numpy()
        return TextFeatures(
            sentence=tokens.sentence.cpu().numpy(),
            words=words,
            mask=features.mask,
            truncated=features.truncated,
        )

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Shaped[np.ndarray, "frames 3 side side"]:
        """What the encoder does."""
        return self._encoder.prepare(frames)

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Frames as the stem gives them, their patches only where they lie in the same space."""
        from sureshot.models.model import frozen
        from sureshot.models.tokens import video_tokens

        features = self._encoder.encode_frames(prepared)
        count = len(features.frames)
        video = VideoFeatures(
            frames=features.frames[None],
            patches=features.patches[None, :, :0],
            backbone=features.backbone[None],
            mask=np.ones((1, count), bool),
        )
        with frozen(self._model):
            tokens = self._model.stem.videos(video_tokens(video, self.device))
        linear = self._model.stem.config.kind == "linear"
        patches = np.zeros((count, 0, self.dim), np.float32) if linear else features.patches
        return FrameFeatures(tokens.frames[0].cpu().numpy(), patches, features.backbone)

r"""The encoder that ships with pip and is used where no other is named: label bridge and head.

The bridge (`sureshot.models.encoders.bridge`) places frames among sentences without training. The
head is a linear map for each side, trained on captioned videos and photos (docs/bundled-model.md):

.. math:: h_t = W_t \sqrt{D}\, t + b_t, \qquad h_f = W_f\,[n(f), n(b)] + b_f

with t the unit sentence vector, f the bridge's vector of a frame, b its backbone features and n a
layer norm without weights: the stem and the mean pooling of `sureshot.models.systems`, in numpy, so
that a search need not wait for torch. The head knows what people say of videos, the bridge what is
in ImageNet and in no training caption; both vectors are kept side by side at unit length, the
bridge's with a weight, and a score is thereby a mixture of two cosines.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from safetensors.numpy import load_file

from sureshot.files import file_digest
from sureshot.models.encoders.bridge import SIDE, BridgeEncoder
from sureshot.models.encoders.protocol import FrameFeatures, TextFeatures
from sureshot.models.mean_frames import unit_vectors

HEAD_DIM = 256
Head = dict[str, Float[np.ndarray, "..."]]
_EPSILON = 1e-5  # of torch's layer norm, with which the head was trained


class BundledEncoder:
    """Works offline on a bare machine; good enough to find things, far from a CLIP.

    Texts are encoded without importing torch. The image network is loaded at the first frame.

    Args:
        device: torch device of the image network; None takes a GPU where there is one.
        threads: how many the image network uses on a CPU; None takes one for each core.
    """

    latin_only = True
    name = "bundled"
    channels = BridgeEncoder.channels
    frame_size = SIDE

    def __init__(self, device: str | None = None, *, threads: int | None = None) -> None:
        self.bridge = BridgeEncoder(device, threads=threads)
        self.dim = HEAD_DIM + self.bridge.dim

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the bridge and of the head."""
        parts = ("head-1", self.bridge.fingerprint, file_digest(_head_path()))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; words go through the map of sentences, at most 128 a text."""
        features = self.bridge.encode_texts(texts)
        sentence, words = (join_texts(self._head, v) for v in (features.sentence, features.words))
        return replace(features, sentence=sentence, words=words * features.mask[..., None])

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each word token, see `sureshot.models.encoders.token_words`."""
        return self.bridge.words_of(texts)

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 rows columns"]:
        """Resize to 300 x 300 pixels' worth of the whole frame, keeping its shape."""
        return self.bridge.prepare(frames)

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]) -> FrameFeatures:
        """Run classifier, bridge and head over frames and over the 3 x 3 cells of each."""
        pooled, cells = self.bridge.maps(prepared)
        flat = cells.reshape(-1, self.channels)
        patches = join_frames(self._head, self.bridge.place(flat), flat)
        return FrameFeatures(
            frames=join_frames(self._head, self.bridge.place(pooled), pooled),
            patches=patches.reshape(*cells.shape[:2], self.dim),
            backbone=pooled,
        )

    def verify(self) -> None:
        """Check that the packages of the bridge are installed and sound.

        Raises:
            ModelError: one is not; the message says how to mend it.
        """
        self.bridge.verify()

    @property
    def device(self) -> str:
        """The torch device the image network runs on."""
        return self.bridge.device

    @cached_property
    def _head(self) -> Head:
        return load_head(_head_path())


def load_head(path: Path) -> Head:
    """The trained maps and the weight of the bridge, from their file."""
    return {name: v.astype(np.float32) for name, v in load_file(path).items()}


def join_texts(head: Head, vectors: Float[np.ndarray, "*n bridge"]) -> Float[np.ndarray, "*n dim"]:
    """Vectors of sentences or words in the joint space, at unit length; zero gives zero.

    Args:
        head: what `load_head` gives.
        vectors: vectors of any length from the bridge's text side.
    """
    units = unit_vectors(vectors)
    learned = units * np.float32(units.shape[-1] ** 0.5) @ head["text.weight"].T
    learned = unit_vectors(learned + head["text.bias"]) * (units != 0).any(-1, keepdims=True)
    return _joined(head, learned, units)


def join_frames(
    head: Head, placed: Float[np.ndarray, "n bridge"], backbone: Float[np.ndarray, "n channels"]
) -> Float[np.ndarray, "n dim"]:
    """Frames in the joint space, at unit length.

    Args:
        head: what `load_head` gives.
        placed: the bridge's vectors of the frames.
        backbone: features of the same frames.
    """
    inputs = np.concatenate([_standard(placed), _standard(backbone)], axis=-1)
    learned = inputs @ head["frame.weight"].T + head["frame.bias"]
    return _joined(head, unit_vectors(learned), unit_vectors(placed))


def _joined(
    head: Head, learned: Float[np.ndarray, "*n head"], given: Float[np.ndarray, "*n bridge"]
) -> Float[np.ndarray, "*n dim"]:
    joined = np.concatenate([learned, head["keep"] * given], axis=-1)
    return joined / np.sqrt(1 + head["keep"] ** 2)


def _standard(x: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))


def _head_path() -> Path:
    return Path(str(files("sureshot.models.encoders").joinpath("head.safetensors")))

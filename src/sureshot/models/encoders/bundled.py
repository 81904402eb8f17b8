r"""The encoder that ships with pip and is used where no other is named.

Two public packages carry good halves of it: an ImageNet classifier, EfficientNet-Lite2, and a
sentence encoder, MiniLM. The ends of both were tuned on captioned pictures and videos, and a linear
map from each leads into one space (docs/bundled-model.md):

.. math:: t = n(W_t \sqrt{384}\, s + b_t), \qquad f = n(W_f\, l(b) + L\, p + b_f),
   \qquad p = \mathrm{softmax}(C b / T)

with s the unit sentence vector, b the mean of the last feature map of a frame, l a layer norm
without weights, n unit length, and p what the classifier C believes to see at T = 2: its thousand
classes keep what no training caption names. Texts are encoded in numpy, so that a search need not
wait for torch.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8
from safetensors import safe_open

from sureshot.files import file_digest
from sureshot.models.encoders.backbone import CHANNELS, GRID, SIDE, WIDEST, Backbone, resized_whole
from sureshot.models.encoders.minilm import MiniLM
from sureshot.models.encoders.packages import (
    IMAGE_DIGEST,
    TEXT_DIGEST,
    TOKENIZER_DIGEST,
    image_weights,
    text_folder,
)
from sureshot.models.encoders.protocol import FrameFeatures, TextFeatures
from sureshot.models.mean_frames import unit_vectors

if TYPE_CHECKING:
    from sureshot.models.encoders.compiled import Precision
    from sureshot.models.encoders.efficientnet import EfficientNetLite2

DIM = 256
TUNED_LAYERS = 3  # of MiniLM, the upper ones
TUNED_BLOCK = 16  # of the image network the first, of 21; those after it are tuned, too
TEMPERATURE = 2.0  # of the classifier's beliefs
Head = dict[str, Float[np.ndarray, "..."]]
_EPSILON = 1e-5  # of torch's layer norm, with which the maps were trained


class BundledEncoder:
    """Works offline on a bare machine; good enough to find things, far from a CLIP.

    Texts are encoded without importing torch. The image network is loaded at the first frame.

    Args:
        device: torch device of the image network; None takes a GPU where there is one.
        threads: how many the image network uses on a CPU; None takes one for each core.
        engine: what computes the image network, ``torch`` or ``openvino``; None takes OpenVINO
            where it is installed. The vectors are the same to rounding.
        precision: numbers that the image network computes with; ``bf16`` makes it another model,
            ``bundled-bf16``, whose vectors do not compare with those of this one.
    """

    latin_only = True
    dim = DIM
    channels = CHANNELS
    frame_size = SIDE

    def __init__(
        self,
        device: str | None = None,
        *,
        threads: int | None = None,
        engine: str | None = None,
        precision: "Precision" = "f32",
    ) -> None:
        self.name = "bundled" if precision == "f32" else f"bundled-{precision}"
        self._precision = precision
        self.backbone = Backbone(self._tuned_network, device, threads, engine, precision)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words that stood in two or more of the captions it was tuned on."""
        return frozenset(words_path().read_text("utf-8").split())

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all weights and of how frames are prepared."""
        settings = f"bundled-2 {SIDE} {GRID} {WIDEST}"
        if self._precision != "f32":
            settings += f" {self._precision}"
        packages = (IMAGE_DIGEST, TEXT_DIGEST, TOKENIZER_DIGEST)
        parts = (settings, *packages, file_digest(head_path()))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; words go through the map of sentences, at most 128 a text."""
        features = self._minilm.encode(texts)
        sentence, words = (join_texts(self._texts, v) for v in (features.sentence, features.words))
        return replace(features, sentence=sentence, words=words * features.mask[..., None])

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each word token, see `sureshot.models.encoders.token_words`."""
        return self._minilm.words_of(texts)

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 rows columns"]:
        """Resize frames, see `sureshot.models.encoders.backbone.resized_whole`."""
        return resized_whole(frames)

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]) -> FrameFeatures:
        """Run the network and the map over frames and over the 3 x 3 cells of each."""
        pooled, cells = self.backbone.maps(prepared)
        return FrameFeatures(
            frames=self._joined(pooled),
            patches=self._joined(cells),
            backbone=pooled,
        )

    def _joined(self, features: Float[np.ndarray, "*n channels"]) -> Float[np.ndarray, "*n dim"]:
        classify = self.backbone.net.classify
        weight, bias = (part.cpu().numpy() for part in (classify.weight, classify.bias))
        return join_frames(self._frames, features, features @ weight.T + bias)

    def verify(self) -> None:
        """Check that both packages are installed and their weights have the known checksums.

        Raises:
            ModelError: one does not; the message says how to mend it.
        """
        text_folder()
        image_weights()

    @property
    def engine(self) -> str:
        """What computes the image network."""
        return self.backbone.engine

    @property
    def device(self) -> str:
        """The torch device the image network runs on."""
        return self.backbone.device

    @cached_property
    def _texts(self) -> Head:
        return load_head("text.")

    @cached_property
    def _frames(self) -> Head:
        return load_head("frame.")

    @cached_property
    def _minilm(self) -> MiniLM:
        return MiniLM(text_folder(), load_head("text.network."))

    def _tuned_network(self) -> "EfficientNetLite2":
        import torch

        from sureshot.models.encoders.efficientnet import EfficientNetLite2

        network = EfficientNetLite2.load(image_weights())
        tuned = {k: torch.from_numpy(v) for k, v in load_head("frame.network.").items()}
        network.load_state_dict(tuned, strict=False)
        return network


def load_head(prefix: str) -> Head:
    """What was trained and is named with a prefix, without the prefix and in single precision.

    The networks are below ``text.network.`` and ``frame.network.``, and no part of the maps beside
    them: a search reads no weight that only frames need.
    """
    with safe_open(head_path(), framework="numpy") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
        kept = [name for name in names if "network" not in name.removeprefix(prefix)]
        return {n.removeprefix(prefix): file.get_tensor(n).astype(np.float32) for n in kept}


def join_texts(head: Head, vectors: Float[np.ndarray, "*n size"]) -> Float[np.ndarray, "*n dim"]:
    """Vectors of sentences or words in the joint space, at unit length; zero gives zero.

    Args:
        head: what `load_head` gives of ``text.``.
        vectors: vectors of any length from the tuned MiniLM.
    """
    units = unit_vectors(vectors)
    mapped = units * np.float32(units.shape[-1] ** 0.5) @ head["weight"].T + head["bias"]
    return unit_vectors(mapped) * (units != 0).any(-1, keepdims=True)


def join_frames(
    head: Head,
    features: Float[np.ndarray, "*n channels"],
    logits: Float[np.ndarray, "*n classes"],
) -> Float[np.ndarray, "*n dim"]:
    """Frames or cells in the joint space, at unit length.

    Args:
        head: what `load_head` gives of ``frame.``.
        features: what the tuned image network makes of them.
        logits: what its classifier makes of those.
    """
    believed = np.exp((logits - logits.max(-1, keepdims=True)) / np.float32(TEMPERATURE))
    believed /= believed.sum(-1, keepdims=True)
    centred = features - features.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))
    looks = normal @ head["weight"].T + head["bias"]
    return unit_vectors(looks + believed @ head["labels"].T)


def words_path() -> Path:
    """Place of the words of the captions it was tuned on."""
    return Path(str(files("sureshot.models.encoders").joinpath("caption_words.txt")))


def head_path() -> Path:
    """File of all that was trained, in half precision."""
    return Path(str(files("sureshot.models.encoders").joinpath("head.safetensors")))

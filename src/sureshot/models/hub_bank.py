"""Captions and videos that a model compares a library with.

Some videos, the hubs, score well whatever is asked. Captions that are about none of them show which
these are, and take them out of the rankings. That is the model's hub correction:

    s'_ij = s_ij - weight * mean of the k largest scores of captions of the bank with video j

Every query loses the same number for a video, so an answer does not depend on what else is asked.
A model that gains by it on validation videos carries its captions in ``bank.safetensors``, and
every search with that model ranks by the corrected scores.

The videos come from several sources. A query that the library does not answer fits them as well as
anything in the library; that is how such queries are recognised.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sureshot.errors import ModelError
from sureshot.files import CARD, replace_file
from sureshot.metrics.hubs import nearest_mean
from sureshot.models import encoders
from sureshot.models.encoders.base import TextFeatures
from sureshot.models.huggingface import BANK, checkpoint_folder
from sureshot.paths import reference_card

_ENCODERS = Path(encoders.__file__).parent
BUNDLED = {"bundled": _ENCODERS, "bundled-bf16": _ENCODERS / "bf16"}  # what belongs to each
NEAREST = 4  # videos from elsewhere that are averaged
_NAMES = ("model", "source", "k", "weight")


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """The hub correction of a model, and videos from elsewhere, maybe none."""

    texts: TextFeatures  # captions as the model's own ``encode_texts`` gives them
    k: int
    weight: float  # 0 corrects nothing
    frames: Float[np.ndarray, "videos frames dim"]  # as an index of the model keeps them
    mask: Bool[np.ndarray, "videos frames"]
    corrections: Float[np.ndarray, " videos"]  # taken off the scores of these videos
    model: str
    source: str

    @property
    def title(self) -> str:
        """What was done to the scores, in a few words; empty if nothing."""
        if not self.weight:
            return ""
        return (
            f"hub correction (k={self.k}, weight {self.weight:g}; {len(self.texts.sentence)} "
            f"captions of {self.source})"
        )

    @property
    def digest(self) -> str:
        """What a calibration card knows it by."""
        digest = hashlib.sha256(repr(self._notes()).encode())
        for name, array in self._arrays().items():
            digest.update(f"{name} {array.shape} {array.dtype.str}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def offsets(self, scores: Float[np.ndarray, "captions videos"]) -> Float[np.ndarray, " videos"]:
        """What is taken off the scores of each video."""
        return self.weight * nearest_mean(scores, self.k)

    def background(self, scores: Float[np.ndarray, "texts videos"]) -> Float[np.ndarray, " texts"]:
        """Mean of the four best scores of each text with the bank's videos, at least one."""
        return np.sort(scores - self.corrections, axis=1)[:, -NEAREST:].mean(1)

    def save(self, folder: str | Path) -> Path:
        """Write it next to the model."""
        path = Path(folder) / BANK
        try:
            with replace_file(path) as fresh:
                fresh.write_bytes(save(self._arrays(), self._notes()))
        except OSError as error:
            raise ModelError(f"{path} cannot be written: {error}.") from None
        return path

    @classmethod
    def load(cls, folder: str | Path, model: str) -> "Bank | None":
        """The bank of a model; None if it has none."""
        path = Path(folder) / BANK
        if not path.is_file():
            return None
        try:
            with safe_open(path, framework="numpy") as file:
                notes = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            bank = _bank(arrays, {name: notes[name] for name in _NAMES})
        except (OSError, SafetensorError, KeyError, ValueError, IndexError, TypeError) as error:
            raise ModelError(
                f"The bank {path} cannot be read ({error}); delete it, or bring back the one that "
                f"belongs to the model."
            ) from None
        if bank.model != model:
            raise ModelError(
                f"The bank {path} was made for another model than the one next to it; delete it, "
                f"or bring back the one that belongs to the model."
            )
        return bank

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "sentence": self.texts.sentence.astype("<f2"),
            "words": self.texts.words.astype("<f2"),
            "mask": self.texts.mask,
            "videos.frames": self.frames.astype("<f2"),
            "videos.mask": self.mask,
            "videos.taken": self.corrections.astype("<f4"),
        }

    def _notes(self) -> dict[str, str]:
        notes = (self.model, self.source, str(self.k), repr(self.weight))
        return dict(zip(_NAMES, notes, strict=True))


def bank_of(name: str, fingerprint: str) -> Bank | None:
    """The bank of a model; None if it has none."""
    home = home_of(name)
    return None if home is None else Bank.load(home, fingerprint)


def home_of(model: str) -> Path | None:
    """The folder of what belongs to a model; of the bundled ones in the package.

    Of a trained model of the hub it is in the cache. None for an encoder of the hub, whose name is
    no folder below the current one.
    """
    if model in BUNDLED:
        return BUNDLED[model]
    home = checkpoint_folder(model)
    return home if home.is_absolute() else None


def cards_of(model: str, fingerprint: str) -> list[Path]:
    """Where a calibration card of a model may be: in its folder, and among those of this user."""
    home = home_of(model)
    return [*([home / CARD] if home else []), reference_card(fingerprint)]


def _bank(arrays: dict[str, np.ndarray], notes: dict[str, str]) -> Bank:
    sentence, words = (arrays[name].astype(np.float32) for name in ("sentence", "words"))
    none = np.zeros(len(sentence), bool)
    k, weight = int(notes["k"]), float(notes["weight"])
    frames, taken = arrays["videos.frames"], arrays["videos.taken"]
    masks = arrays["mask"], arrays["videos.mask"]
    fits = [m.shape for m in masks] == [words.shape[:2], frames.shape[:2]]
    if not fits or any(m.dtype != bool for m in masks) or taken.ndim != 1:
        raise ValueError("its masks are not those of its parts")
    fits = len(sentence) == len(words) and len(frames) == len(taken)
    fits = fits and sentence.shape[1] == words.shape[2] == frames.shape[2]
    if k < 1 or not 0 <= weight < np.inf or not fits:
        raise ValueError("its parts do not fit together")
    if not all(np.isfinite(array).all() for array in (sentence, words, frames, taken)):
        raise ValueError("it holds numbers that are not finite")
    return Bank(
        texts=TextFeatures(sentence=sentence, words=words, mask=arrays["mask"], truncated=none),
        k=k,
        weight=weight,
        frames=frames.astype(np.float32),
        mask=arrays["videos.mask"],
        corrections=taken,
        model=notes["model"],
        source=notes["source"],
    )

"""A checkpoint, or an encoder alone, that can be evaluated on a split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sureshot.errors import ModelError
from sureshot.models.bank import FILE, Bank, bank_of, home_of
from sureshot.models.checkpoint import Checkpoint, is_checkpoint
from sureshot.models.encoders import Encoder, TextFeatures, load
from sureshot.models.encoders.device import device_for
from sureshot.models.model import Model
from sureshot.models.retriever import Retriever, comparing
from sureshot.research.features import SplitFeatures
from sureshot.research.scores import (
    code_texts,
    encoder_similarity,
    encoder_texts,
    encoder_videos,
    similarity,
    stem_videos,
    text_measures,
)

_FRAMES = 12
_TEXTS = 256  # compared with the videos of a bank at once


@dataclass(frozen=True, slots=True)
class Scorer:
    """What gives scores to a split.

    Attributes:
        name: what was asked for.
        encoder: what turns videos and captions into features.
        encoder_name: of it; that it began as where it was trained too.
        model: what scores them; None is the encoder's own cosine of means.
        system: name of the system, or ``encoder``.
        frames: frames a video it was trained with.
        recipe: that it was trained by; empty without one.
        device: of the model.
        retriever: what an index is made with; None where the system reads more than one keeps.
        bank: what searches with the model compare with; None if it has none.
    """

    name: str
    encoder: Encoder
    encoder_name: str
    model: Model | None = None
    system: str = "encoder"
    frames: int = _FRAMES
    recipe: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    retriever: Encoder | None = None
    bank: Bank | None = None

    @classmethod
    def load(cls, name: str, device: str | None = None) -> "Scorer":
        """The scorer of a checkpoint's folder or an encoder's name.

        Raises:
            ModelError: it cannot be loaded, the encoder is not the one it was trained on, or its
                bank cannot be used.
        """
        banked = (home_of(name) / FILE).is_file()  # without one, no fingerprint is worked out
        if not is_checkpoint(name):
            encoder = load(name, device)
            bank = bank_of(name, encoder.fingerprint) if banked else None
            return cls(name, encoder, encoder.name, retriever=encoder, bank=bank)
        place = device_for(device)
        found = Checkpoint.from_pretrained(name, place)
        encoder = found.load_encoder(name, device)
        system = str(found.system["name"])
        retriever = None
        if found.model.system.searches:
            retriever = Retriever(found, encoder, Path(name).expanduser(), place)
        return cls(
            name,
            encoder,
            found.encoder_name,
            found.model,
            system,
            found.encoder.frames,
            found.recipe,
            place,
            retriever,
            bank_of(name, retriever.fingerprint) if banked and retriever else None,
        )

    @property
    def trained_on(self) -> str:
        """Data sets it was trained on, joined by " + "; empty if that is not known."""
        return " + ".join(dict.fromkeys(part["dataset"] for part in self.recipe.get("train", ())))

    @property
    def experts(self) -> tuple[str, ...]:
        """The experts extracted beforehand that it was trained on."""
        known = () if self.model is None else self.model.stem.sizes.experts
        return tuple(name for name, _ in known)

    @property
    def scale(self) -> float | None:
        """The learned factor on scores within the system's softmax; an encoder alone has none."""
        return None if self.model is None else float(self.model.system.scale.detach())

    @property
    def fingerprint(self) -> str:
        """What an index of this model, and a calibration card, know it by.

        Raises:
            ModelError: no index can be made with it, or its weights have gone.
        """
        return self._searched().fingerprint

    def measures(self, features: SplitFeatures) -> dict[str, Float[np.ndarray, " texts"]]:
        """Uncertainties that the system's paper defines of all captions; higher is less sure."""
        if self.model is None:
            return {}
        return text_measures(self.model, features, device=self.device)

    def similarity(
        self, features: SplitFeatures, bank: SplitFeatures | None = None
    ) -> Float[np.ndarray, "texts videos"]:
        """Raw scores of all captions, or of those of a bank, with all videos of a split."""
        if self.model is None:
            return encoder_similarity(features, bank=bank)
        return similarity(self.model, features, bank=bank, device=self.device)

    def ranking(
        self,
        features: SplitFeatures,
        others: SplitFeatures | None = None,
        *,
        raw: Float[np.ndarray, "texts videos"] | None = None,
    ) -> Float[np.ndarray, "texts videos"]:
        """The scores that a search ranks by: raw ones less the model's hub correction, if any.

        Args:
            features: of the videos, and of the captions.
            others: take the captions from here instead.
            raw: what `similarity` gives for them, if it is known.
        """
        raw = self.similarity(features, others) if raw is None else raw
        if self.bank is None:
            return raw
        known = self.bank_similarity(self.bank.texts, features)
        return (raw - self.bank.offsets(known)).astype(raw.dtype)

    def elsewhere(self, features: SplitFeatures) -> Float[np.ndarray, " texts"] | None:
        """What each caption scores with the videos of the bank; None for a model without any."""
        if self.bank is None or not len(self.bank.frames):
            return None
        how = comparing(self._searched())
        videos = how.videos(self.bank.frames, self.bank.mask)
        if self.model is None:
            return self.bank.elsewhere(how.similarity(encoder_texts(features), videos))
        rows, found = range(len(features.texts)), []
        for first in range(0, len(rows), _TEXTS):
            texts = code_texts(self.model, features, rows[first : first + _TEXTS], self.device)
            found.append(self.bank.elsewhere(how.similarity(texts, videos)))
        return np.concatenate(found)

    def stored(
        self, features: SplitFeatures
    ) -> tuple[Float[np.ndarray, "videos frames dim"], Bool[np.ndarray, "videos frames"]]:
        """Videos as a bank keeps them: through the stem, or of an encoder alone the mean frame."""
        if self.model is None:
            frames = encoder_videos(features)[:, None]
            return frames, np.ones(frames.shape[:2], bool)
        tokens = stem_videos(self.model, features, self.device)
        return tokens.frames.cpu().numpy(), tokens.mask.cpu().numpy()

    def bank_similarity(
        self, texts: TextFeatures, features: SplitFeatures
    ) -> Float[np.ndarray, "texts videos"]:
        """Raw scores, with all videos of a split, of texts as a bank keeps them."""
        how = comparing(self._searched())
        return how.similarity(how.texts(texts), how.videos(*self.stored(features)))

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Texts as a bank keeps them.

        Raises:
            ModelError: no index can be made with the model.
        """
        return self._searched().encode_texts(texts)

    def _searched(self) -> Encoder:
        """What an index is made with.

        Raises:
            ModelError: none can be made.
        """
        if self.retriever is None:
            raise ModelError(
                f"{self.name} compares more of a video than an index keeps; it can have no index "
                f"and no calibration."
            )
        return self.retriever

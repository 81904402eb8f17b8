"""A checkpoint, or an encoder alone, that can be evaluated on a split."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from sureshot import retriever
from sureshot.bank import FILE, Bank, bank_of, home_of
from sureshot.checkpoint import Checkpoint, is_checkpoint
from sureshot.encoders import Encoder, TextFeatures, load
from sureshot.encoders.device import device_for
from sureshot.evaluation import (
    bank_similarity,
    encoder_bank_similarity,
    encoder_reference_similarity,
    encoder_similarity,
    encoder_videos,
    reference_similarity,
    similarity,
    stem_videos,
    text_measures,
)
from sureshot.features import SplitFeatures
from sureshot.systems.model import Model
from sureshot.systems.tokens import stored_tokens

_FRAMES = 12


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
    """

    name: str
    encoder: Encoder
    encoder_name: str
    model: Model | None = None
    system: str = "encoder"
    frames: int = _FRAMES
    recipe: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @classmethod
    def load(cls, name: str, device: str | None = None) -> "Scorer":
        """The scorer of a checkpoint's folder or an encoder's name.

        Raises:
            ModelError: it cannot be loaded, or the encoder is not the one it was trained on.
        """
        if not is_checkpoint(name):
            return cls(name, encoder := load(name, device), encoder.name)
        place = device_for(device)
        found = Checkpoint.from_pretrained(name, place)
        encoder = found.load_encoder(name, device)
        system = str(found.system["name"])
        return cls(
            name,
            encoder,
            found.encoder_name,
            found.model,
            system,
            found.encoder.frames,
            found.recipe,
            place,
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
            ModelError: no index can be made with it, or it has gone since it was loaded.
        """
        if self.model is None:
            return self.encoder.fingerprint
        return retriever.load(self.name, self.device).fingerprint

    @property
    def bank(self) -> Bank | None:
        """The hub correction that searches with this model rank by; None if it has none.

        Raises:
            ModelError: it cannot be used.
        """
        if not (home_of(self.name) / FILE).is_file():
            return None  # not all models have a fingerprint
        return bank_of(self.name, self.fingerprint)

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
        self, features: SplitFeatures, others: SplitFeatures | None = None
    ) -> Float[np.ndarray, "texts videos"]:
        """The scores that a search ranks by: raw ones less the model's hub correction, if any.

        Args:
            features: of the videos, and of the captions.
            others: take the captions from here instead.

        Raises:
            ModelError: the correction cannot be used.
        """
        raw, bank = self.similarity(features, others), self.bank
        if bank is None:
            return raw
        return (raw - bank.offsets(self.bank_similarity(bank.texts, features))).astype(raw.dtype)

    def elsewhere(self, features: SplitFeatures) -> Float[np.ndarray, " texts"]:
        """What each caption scores with the videos of the bank; 0 for a model without any.

        Raises:
            ModelError: the bank cannot be used.
        """
        bank = self.bank
        if bank is None or not len(bank.frames):
            return np.zeros(len(features.texts))
        if self.model is None:
            return bank.elsewhere(encoder_reference_similarity(features, bank.frames, bank.mask))
        frames, mask = (torch.from_numpy(a).to(self.device) for a in (bank.frames, bank.mask))
        videos = stored_tokens(frames, mask)
        scores = reference_similarity(self.model, features, videos, device=self.device)
        return bank.elsewhere(scores)

    def stored(
        self, features: SplitFeatures
    ) -> tuple[Float[np.ndarray, "videos frames dim"], Bool[np.ndarray, "videos frames"]]:
        """Videos as a bank keeps them: through the stem, or of an encoder alone the mean frame."""
        if self.model is None:
            frames = encoder_videos(features)[:, None]
            return frames, np.ones(frames.shape[:2], bool)
        tokens = stem_videos(self.model, features, range(len(features.videos)), self.device)
        return tokens.frames.cpu().numpy(), tokens.mask.cpu().numpy()

    def bank_similarity(
        self, texts: TextFeatures, features: SplitFeatures
    ) -> Float[np.ndarray, "texts videos"]:
        """Raw scores, with all videos of a split, of texts as a bank keeps them."""
        if self.model is None:
            return encoder_bank_similarity(texts, features)
        return bank_similarity(self.model, texts, features, device=self.device)

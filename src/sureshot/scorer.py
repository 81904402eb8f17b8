"""A checkpoint, or an encoder alone, that can be evaluated on a split."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot import retriever
from sureshot.checkpoint import Checkpoint, is_checkpoint
from sureshot.encoders import Encoder, load
from sureshot.encoders.device import device_for
from sureshot.evaluation import encoder_similarity, similarity, text_measures
from sureshot.features import SplitFeatures
from sureshot.systems.model import Model

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

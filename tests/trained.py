"""Small models on the `tiny` encoder, as a training run would save them, but never trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes, load_system

SYSTEMS = ("clip4clip", "xpool", "duq", "hit")
WIDTH = 16  # of a linear stem: not the size of the encoder's space
FRAMES = 6


def checkpoint(
    system: str,
    kind: str,
    *,
    seed: int = 0,
    words: bool = True,
    experts: Mapping[str, int] | None = None,
    **known: Any,
) -> Checkpoint:
    """A model whose weights the seed decides, far enough from plain ones to change rankings."""
    tiny = TinyEncoder()
    settings: Mapping[str, Any] = {"name": system}
    experts = experts or {}
    sizes = Sizes(tiny.dim, tiny.channels, tuple(experts.items()))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        stem = Stem(StemConfig(kind=kind, width=WIDTH, words=words), sizes)
        model = Model(stem, load_system(settings, stem.sizes))
        with torch.no_grad():
            for weights in model.parameters():
                weights.add_(0.2 * torch.randn_like(weights))
    noted = EncoderNote(tiny.name, tiny.fingerprint, FRAMES, tiny.dim, tiny.channels, experts)
    return Checkpoint(model, noted, settings, **known)


def saved(folder: Path, system: str, kind: str, *, seed: int = 0) -> Path:
    """The folder of such a model."""
    checkpoint(system, kind, seed=seed).save_pretrained(folder)
    return folder

"""Encoders: texts and frames to vectors of one space. `load_encoder` gives one by its name."""

from sureshot.models.encoders.protocol import (
    Encoder,
    FrameFeatures,
    TextFeatures,
    VideoFeatures,
    stack,
)

__all__ = ["Encoder", "FrameFeatures", "TextFeatures", "VideoFeatures", "load_encoder", "stack"]


def load_encoder(name: str, device: str | None = None) -> Encoder:
    """The encoder of this name, its weights not yet read where that can wait.

    Args:
        name: ``bundled``, ``bridge`` (that without its trained head), ``tiny``, a local folder, or
            the hub id of a CLIP, SigLIP or SigLIP2.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Raises:
        ModelError: no such model, or it cannot be reached or trusted.
    """
    match name:
        case "bundled":
            from sureshot.models.encoders.bundled import BundledEncoder

            return BundledEncoder(device)
        case "bridge":
            from sureshot.models.encoders.bridge import BridgeEncoder

            return BridgeEncoder(device)
        case "tiny":
            from sureshot.models.encoders.tiny import TinyEncoder

            return TinyEncoder(device)
        case _:
            from sureshot.models.encoders.clip import ClipEncoder

            return ClipEncoder.load(name, device)

"""Encoders: texts and frames to vectors of one space. `load_encoder` gives one by its name."""

from pathlib import Path
from typing import TYPE_CHECKING

from sureshot.errors import ModelError, option, require_research
from sureshot.models.encoders.base import Encoder, FrameFeatures, TextFeatures, VideoFeatures, stack
from sureshot.settings import read_json

if TYPE_CHECKING:
    from sureshot.models.encoders.engines import Precision

BUILT_IN = ("bundled", "bundled-bf16", "bridge", "tiny", "small")  # whatever folders are named
__all__ = [
    "BUILT_IN",
    "Encoder",
    "FrameFeatures",
    "TextFeatures",
    "VideoFeatures",
    "load_encoder",
    "stack",
]


def load_encoder(
    name: str, device: str | None = None, engine: str | None = None, *, patches: bool = True
) -> Encoder:
    """The encoder of this name, its weights not yet read where that can wait.

    Args:
        name: ``bundled``, ``bundled-bf16``, ``bridge`` (bundled without its trained head),
            ``tiny``, ``small`` (to be trained with a system), a local folder of a CLIP, SigLIP,
            SigLIP2, of a BERT (which reads texts alone) or of an encoder that was trained with a
            system, or the hub id of one of the first three.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        engine: ``onnxruntime``, ``openvino`` or ``torch``, which the bundled models and ``bridge``
            know; None takes the first that works.
        patches: False leaves out the patches of frames where that saves time.
    """
    if name in ("bundled", "bundled-bf16", "bridge"):
        from sureshot.models.encoders.bundled import BridgeEncoder, BundledEncoder

        if name == "bridge":
            return BridgeEncoder(device, engine=engine, patches=patches)
        precision: Precision = "f32" if name == "bundled" else "bf16"
        return BundledEncoder(device, engine=engine, precision=precision, patches=patches)
    kind = _kind_of(name)
    if kind == "sureshot-bundled":
        from sureshot.models.encoders.bundled import BundledEncoder

        return BundledEncoder(device, engine=engine, folder=Path(name), patches=patches)
    if engine not in (None, "torch"):
        raise ModelError(
            f"The model {name} computes with torch alone; leave out {option('engine')}."
        )
    if name == "tiny":
        from sureshot.models.encoders.toy import TinyEncoder

        return TinyEncoder()
    if name == "small" or kind == "sureshot-small":
        require_research(f"The model {name}")
        from sureshot.models.encoders.small import SmallEncoder

        return SmallEncoder(device=device) if name == "small" else SmallEncoder.load(name, device)
    require_research(f"The model {name}", "torch", "transformers")
    if kind == "bert":
        from sureshot.models.encoders.bert import BertEncoder

        return BertEncoder.load(name, device)
    from sureshot.models.encoders.clip import ClipEncoder

    return ClipEncoder.load(name, device)


def _kind_of(folder: str) -> str:
    """What the config of a folder says that it holds; empty where there is none."""
    try:
        held = read_json(Path(folder) / "config.json")
    except (OSError, ValueError):
        return ""
    return str(held.get("model_type", "")) if isinstance(held, dict) else ""

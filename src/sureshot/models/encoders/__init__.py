"""Encoders: texts and frames to vectors of one space. `load_encoder` gives one by its name."""

from pathlib import Path

from sureshot.errors import ModelError, option, require_research
from sureshot.models.encoders.base import Encoder, FrameFeatures, TextFeatures, VideoFeatures, stack
from sureshot.settings import read_json

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
    kind = name if name in BUILT_IN else kind_of(name)
    kind = "" if kind in BUILT_IN and kind != name else kind  # no folder holds a built-in model
    if kind in ("bundled", "bundled-bf16", "bridge", "sureshot-bundled"):
        from sureshot.models.encoders.bundled import BridgeEncoder, BundledEncoder

        if kind == "bridge":
            return BridgeEncoder(device, engine=engine, patches=patches)
        return BundledEncoder(
            device,
            engine=engine,
            precision="bf16" if kind == "bundled-bf16" else "f32",
            folder=Path(name) if kind == "sureshot-bundled" else None,
            patches=patches,
        )
    if engine not in (None, "torch"):
        raise ModelError(
            f"The model {name} computes with torch alone; leave out {option('engine')}."
        )
    if kind == "tiny":
        from sureshot.models.encoders.toy import TinyEncoder

        return TinyEncoder()
    if kind in ("small", "sureshot-small"):
        require_research(f"The model {name}")
        from sureshot.models.encoders.small import SmallEncoder

        return SmallEncoder(device=device) if kind == "small" else SmallEncoder.load(name, device)
    require_research(f"The model {name}", "torch", "transformers")
    if kind == "bert":
        from sureshot.models.encoders.bert import BertEncoder

        return BertEncoder.load(name, device)
    from sureshot.models.encoders.clip import ClipEncoder

    return ClipEncoder.load(name, device)


def kind_of(folder: str | Path) -> str:
    """What the config of a folder says that it holds; empty where there is none."""
    try:
        held = read_json(Path(folder) / "config.json")
    except (OSError, ValueError):
        return ""
    return str(held.get("model_type", "")) if isinstance(held, dict) else ""

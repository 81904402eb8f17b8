"""What this installation can do, and how to mend what it cannot."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from sureshot.errors import SureshotError, option
from sureshot.paths import absolute, absolute_model, expand, index_place
from sureshot.settings import read_json
from sureshot.text import counted

_CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mpeg2video", "prores", "gif")
_PARTS = ("av", "pylance", "torch", "transformers", "numpy", "tokenizers")
_LOW_DISK = 1e9


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at.

    Attributes:
        name: what.
        state: ``ok``, ``note`` (worth knowing) or ``broken``.
        detail: what was found.
        fix: what to do about it, empty if nothing.
    """

    name: str
    state: Literal["ok", "note", "broken"]
    detail: str
    fix: str = ""


def examine(db: str | Path | None = None, model: str | None = None) -> list[Check]:
    """Look at all that an installation needs, in the order a person would ask.

    Args:
        db: where the index is or would be; None is the default index of this user.
        model: a model to load besides.
    """
    location = index_place(db)
    examined: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("versions", _versions),
        ("decoders", _decoders),
        ("bundled model", _bundled),
        ("other models", _cached_models),
        ("processor", _processor),
        ("engine", _engine),
        ("index", lambda: _index(location)),
        ("disk", lambda: _disk(location)),
    )
    if model is not None:
        examined = (*examined, ("model", lambda: _model(absolute_model(model))))
    return [_loaded(name, check) for name, check in examined]


def _ok(name: str, detail: str) -> Check:
    return Check(name=name, state="ok", detail=detail)


def _note(name: str, detail: str, fix: str) -> Check:
    return Check(name=name, state="note", detail=detail, fix=fix)


def _broken(name: str, detail: str, fix: str = "") -> Check:
    return Check(name=name, state="broken", detail=detail, fix=fix)


def _loaded(name: str, check: Callable[[], Check]) -> Check:
    """The check, or what keeps a package it needs from loading."""
    try:
        return check()
    except (ImportError, OSError) as error:
        # Only the first line: some packages print a page when a shared library is missing.
        reason = str(error).strip().split("\n")[0]
        fix = "pip install --force-reinstall sureshot, in a fresh environment if that fails"
        return _broken(name, f"{type(error).__name__}: {reason}", fix)


def _versions() -> Check:
    found = [f"Python {platform.python_version()}"]
    missing = []
    for name in _PARTS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        fix = f"pip install {' '.join(missing)}"
        return _broken("versions", f"not installed: {', '.join(missing)}", fix)
    return _ok("versions", ", ".join(found))


def _decoders() -> Check:
    import av

    there = [name for name in _CODECS if _decodes(name)]
    version = ".".join(map(str, av.library_versions["libavcodec"]))
    missing = [name for name in _CODECS if name not in there]
    detail = f"{', '.join(there)} (ffmpeg's libavcodec {version}, inside the av package)"
    if missing:
        return _note("decoders", f"{detail}; not: {', '.join(missing)}", "pip install -U av")
    return _ok("decoders", detail)


def _decodes(name: str) -> bool:
    import av

    try:
        av.Codec(name, "r")
    except av.error.FFmpegError:
        return False
    return True


def _bundled() -> Check:
    from sureshot.models.encoders.bundled import BundledEncoder

    encoder = BundledEncoder(device="cpu")
    try:
        encoder.verify()
    except SureshotError as error:
        return _broken("bundled model", str(error))
    return _ok("bundled model", "its weights are there and have the right checksums")


def _cached_models() -> Check:
    names = sorted(set(_hub_models()))
    if names:
        return _ok("other models", f"can be used offline: {', '.join(names)}")
    return _note(
        "other models",
        "no CLIP or SigLIP in the local cache",
        f"index once with {option('model', 'openai/clip-vit-base-patch16')} while online, or give "
        "a folder",
    )


def _hub_models() -> Iterator[str]:
    """Names of the dual encoders in the Hugging Face cache."""
    home = Path(os.environ.get("HF_HOME") or expand("~/.cache/huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    for folder in cache.glob("models--*/snapshots/*"):
        if _kind(folder) in ("clip", "siglip") and any(folder.glob("*.safetensors")):
            yield folder.parent.parent.name.removeprefix("models--").replace("--", "/")


def _kind(folder: Path) -> object:
    """What the settings of a model say that it is; None if they do not."""
    try:
        settings = read_json(folder / "config.json")
    except (OSError, ValueError):
        return None
    return settings.get("model_type") if isinstance(settings, dict) else None


def _processor() -> Check:
    import torch

    cores = f"{os.cpu_count()} cores"
    if torch.cuda.is_available():
        return _ok("processor", f"{torch.cuda.get_device_name()}, {cores}")
    return _ok("processor", f"{cores}, no GPU that torch can use (one is not needed)")


def _engine() -> Check:
    from sureshot.models.encoders.openvino import INSTALL, OPENVINO, engine_for, why_not
    from sureshot.models.weights import device_for

    device = device_for(None)
    try:
        engine = engine_for(None, device)
    except SureshotError as error:
        return _broken("engine", str(error))
    if engine == "openvino":
        version = metadata.version(OPENVINO)
        return _ok("engine", f"OpenVINO {version} computes the frames of the bundled model")
    detail = "torch computes the frames of the bundled model"
    if device != "cpu":
        return _ok("engine", f"{detail}, on {device}")
    if reason := why_not():
        return _note("engine", f"{detail}; {reason}", f"for half the time: {INSTALL}")
    return _ok("engine", f"{detail}, as was asked for")


def _model(name: str) -> Check:
    from sureshot.models.load import Retriever, load_searchable

    try:
        model = load_searchable(name)
        version = model.fingerprint[:12]
    except SureshotError as error:
        return _broken("model", str(error))
    what = f", trained: {model.summary}" if isinstance(model, Retriever) else ""
    return _ok("model", f"{name} (fingerprint {version}, vectors of {model.dim} numbers){what}")


def _index(location: str) -> Check:
    from sureshot.store.index import Store

    try:
        if not Store.exists(location):
            return _note("index", f"none at {location} yet", "sureshot index FOLDER")
        store = Store.open(location)
        videos = sum(not record.reason for record in store.videos())
        size = f"{counted(videos, 'video')}, {counted(store.count(), 'window')}"
        return _ok("index", f"{store.location}: {size}, model {store.settings.model}")
    except SureshotError as error:
        return _broken("index", str(error))


def _disk(location: str) -> Check:
    if "://" in location:
        return _ok("disk", "not asked, the index is in object storage")
    here = absolute(location)
    there = next(p for p in (here, *here.parents) if os.path.exists(p))  # noqa: PTH110
    if not there.is_dir() or not os.access(there, os.W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        return _broken("disk", f"{there} {what}", f"choose a place with {option('db')}")
    free = shutil.disk_usage(there).free
    detail = f"{free / 1e9:.1f} GB free at {there}"
    if free < _LOW_DISK:
        return _note("disk", detail, f"free some space, or choose a place with {option('db')}")
    return _ok("disk", detail)

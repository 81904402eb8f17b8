"""What this installation can do, and how to fix what it cannot."""

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Literal

from sureshot.errors import RESEARCH, SureshotError, install_command, is_installed, option
from sureshot.models.encoders import kind_of
from sureshot.models.huggingface import cache_folder, cached, is_checkpoint, is_hub_name
from sureshot.paths import IndexPlace, absolute, absolute_model, index_place
from sureshot.text import counted

_CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mpeg2video", "prores", "gif")
_PARTS = ("av", "pylance", "pyarrow", "numpy", "tokenizers", "fastapi")
_EXTRAS: dict[str, tuple[Sequence[str], str, str]] = {
    "research": (RESEARCH, "training, evaluation, reproduction, CLIP and SigLIP", "research"),
    "object storage": (("botocore",), "indexes and videos in S3 buckets", "s3"),
    "benchmarks": (("mteb",), "the tasks of mteb", "mteb"),
    "agents": (("mcp",), "searches and frames for agents", "mcp"),
    "cluster": (("ray",), "indexing on many machines", "ray"),
}
_SPEECH_MODEL = ("model.bin", "tokenizer.json")  # files of one in CTranslate2 format
_LOW_DISK = 1e9
_State = Literal["ok", "note", "broken"]
_Found = tuple[_State, str, str]  # state, detail and fix of a check


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
    state: _State
    detail: str
    fix: str = ""


def examine(db: IndexPlace = None, model: str | Path | None = None) -> list[Check]:
    """Look at all that an installation needs, in the order a person would ask.

    ``db`` is where the index is or would be, ``model`` one to load besides.
    """
    location = index_place(db)
    examined: dict[str, Callable[[], _Found]] = {
        "versions": _versions,
        "decoders": _decoders,
        "bundled model": _bundled,
        "other models": _cached_models,
        "processor": _processor,
        "engine": _engine,
        "16 bits": _half,
        "subtitles": _subtitles,
        "text in the picture": _picture_text,
        "speech": _speech,
        **{name: partial(_extra, *extra) for name, extra in _EXTRAS.items()},
        "index": partial(_index, location),
        "disk": partial(_disk, location),
    }
    if model is not None:
        examined["model"] = partial(_model, absolute_model(model))
    return [Check(name, *_found(check)) for name, check in examined.items()]


def _found(check: Callable[[], _Found]) -> _Found:
    """What a check finds, or what keeps a package it needs from loading."""
    try:
        return check()
    except SureshotError as error:
        return "broken", str(error), ""
    except Exception as error:  # a broken package may raise anything
        # Only the first line: some packages print a page when a shared library is missing.
        reason = str(error).strip().split("\n")[0]
        fix = "install Sureshot again from its source, in a fresh environment if that fails"
        return "broken", f"{type(error).__name__}: {reason}", fix


def _versions() -> _Found:
    found, missing = [f"Python {platform.python_version()}"], []
    for name in _PARTS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return "broken", f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}"
    return "ok", ", ".join(found), ""


def _decoders() -> _Found:
    import av

    there = [name for name in _CODECS if name in av.codecs_available]
    missing = [name for name in _CODECS if name not in there]
    version = ".".join(map(str, av.library_versions["libavcodec"]))
    detail = f"{', '.join(there)} (ffmpeg's libavcodec {version}, inside the av package)"
    if missing:
        return "note", f"{detail}; not: {', '.join(missing)}", "pip install -U av"
    return "ok", detail, ""


def _bundled() -> _Found:
    from sureshot.models.encoders.bundled import BundledEncoder

    BundledEncoder(device="cpu").verify()
    return "ok", "its weights are there and have the right checksums", ""


def _cached_models() -> _Found:
    """The models in the Hugging Face cache."""

    def is_one(folder: Path) -> bool:
        known = is_checkpoint(folder) or kind_of(folder) in ("clip", "siglip")
        return known and any(folder.glob("*.safetensors"))

    if names := _cached(is_one):
        return "ok", f"can be used offline: {', '.join(names)}", ""
    once = option("model", "openai/clip-vit-base-patch16")
    fix = f"index once with {once} while online, or give a folder"
    return "note", "no CLIP or SigLIP in the local cache", fix


def _cached(is_one: Callable[[Path], bool]) -> list[str]:
    """The names of models in the Hugging Face cache, of those whose folder is one."""
    return sorted(
        {
            folder.parent.parent.name.removeprefix("models--").replace("--", "/")
            for folder in cache_folder().glob("models--*/snapshots/*")
            if is_one(folder)
        }
    )


def _processor() -> _Found:
    import sureshot.store  # noqa: F401 - it refuses a processor that Lance does not run on

    cores = f"{os.cpu_count()} cores"
    if not is_installed("torch"):
        return "ok", f"{cores}; a GPU would need torch (one is not needed)", ""
    import torch

    if torch.cuda.is_available():
        return "ok", f"{torch.cuda.get_device_name()}, {cores}", ""
    return "ok", f"{cores}, no GPU that torch can use (one is not needed)", ""


def _engine() -> _Found:
    from sureshot.models.encoders import engines

    engine, device = engines.choose(None, None)
    detail = f"{engines.TITLES[engine]} {metadata.version(engine)} computes the bundled model"
    if engine != "torch":
        others = [one for one in engines.ENGINES if one != engine and is_installed(one)]
        more = f"; {option('engine')} also knows {' and '.join(others)}" if others else ""
        return "ok", f"{detail}'s frames{more}", ""
    if device != "cpu":
        return "ok", f"{detail}'s frames, on {device}", ""
    if os.environ.get(engines.VARIABLE) == "torch":
        return "ok", f"{detail}'s frames, as {engines.VARIABLE} asks", ""
    reason = engines.why_not(engines.ENGINES[0])
    fix = f"for half the time: {install_command(engines.ENGINES[0])}"
    return "note", f"{detail}'s frames. {reason}", fix


def _half() -> _Found:
    from sureshot.models.encoders import engines

    how = option("model", "bundled-bf16")
    use = f"{how} indexes 720p in a seventh less time, and is right a little less often"
    if not is_installed("openvino"):
        return _extra(["openvino"], f"{use}, on some processors", "openvino")
    return "ok", use if engines.has_bf16() else f"not on this processor: {use}", ""


def _subtitles() -> _Found:
    from sureshot.media import subtitles  # which needs av

    kinds = ", ".join(sorted(subtitles.SUFFIXES))
    return "ok", f"read: {kinds} files next to videos, and text tracks in them", ""


def _picture_text() -> _Found:
    from sureshot.media.picture_text import why_not

    if not is_installed("rapidocr"):
        return _extra(["rapidocr"], "titles and signs to search for", "ocr")
    if reason := why_not():
        return "broken", reason, ""
    reader = f"rapidocr {metadata.version('rapidocr')}"
    return "ok", f"{reader} reads it with `sureshot index {option('words', 'all')}`", ""


def _speech() -> _Found:
    if not is_installed("faster_whisper"):
        use = "what is said, to search for"
        return "ok", f"not installed (faster-whisper): {use}", install_command("speech")
    detail = f"faster-whisper {metadata.version('faster-whisper')} hears it"
    names = _cached(lambda folder: all((folder / name).exists() for name in _SPEECH_MODEL))
    if names:
        usable = ", ".join(option("speech", name) for name in names)
        return "ok", f"{detail} with a model that is here: `sureshot index` with {usable}", ""
    once = option("speech", "small")
    fix = f"index once with {once} while online, or give a folder"
    return "note", f"{detail}; no model for it in the local cache", fix


def _extra(modules: Sequence[str], use: str, extra: str) -> _Found:
    """Packages that the base installation leaves out."""
    missing = [module for module in modules if not is_installed(module)]
    if not missing:
        return "ok", f"installed: {use}", ""
    return "ok", f"not installed ({', '.join(missing)}): {use}", install_command(extra)


def _model(name: str) -> _Found:
    from sureshot.models.load import Retriever, load_searchable

    model = load_searchable(name)
    trained = f", trained: {model.summary}" if isinstance(model, Retriever) else ""
    version = f"fingerprint {model.fingerprint[:12]}, vectors of {model.dim} numbers"
    return "ok", f"{name} ({version}){trained}", ""


def _index(location: str) -> _Found:
    from sureshot.library.catalog import away_sentence, count_away
    from sureshot.models.load import load_searchable
    from sureshot.store.index import Store, refuse_unplugged

    if not Store.exists(location):
        refuse_unplugged(location)
        return "note", f"none at {location} yet", "sureshot index FOLDER"
    store = Store.open(location)
    videos = [record for record in store.videos() if not record.reason]
    size = f"{counted(len(videos), 'video')}, {counted(store.count(), 'window')}"
    detail = f"{store.location}: {size}, model {store.settings.model}"
    if trouble := (*store.trouble(), *store.missing_shards()):
        return "broken", f"{detail}; {' '.join(trouble)}", "sureshot status --check says it all"
    if is_hub_name(store.settings.model) and cached(store.settings.model, Path.exists) is None:
        return "note", f"{detail}, which is not on this machine", "the next search downloads it"
    encoder = load_searchable(store.settings.model)
    store.check_model(encoder.name, encoder.fingerprint)
    encoder.encode_texts(["a video"])  # it reads the weights
    away, folders = count_away(videos)
    if away:
        fix = "connect the disk, or sureshot remove PATH if it is gone for good"
        return "note", f"{detail}; not there now: {away_sentence(away, folders)}", fix
    return "ok", detail, ""


def _disk(location: str) -> _Found:
    if "://" in location:
        return "ok", "not asked, the index is in object storage", ""
    here = absolute(location)
    there = next(p for p in (here, *here.parents) if os.path.exists(p))  # noqa: PTH110
    if not there.is_dir() or not os.access(there, os.W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        return "broken", f"{there} {what}", f"choose a place with {option('db')}"
    free = shutil.disk_usage(there).free
    detail = f"{free / 1e9:.1f} GB free at {there}"
    if free < _LOW_DISK:
        return "note", detail, f"free some space, or choose a place with {option('db')}"
    return "ok", detail, ""

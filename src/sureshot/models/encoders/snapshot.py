"""The folder of files a model of transformers is loaded from: found, fetched, checked, digested.

Nothing here imports torch or transformers, and the network is asked last: a folder is taken as it
is, then the hub's cache is searched, and only then is the hub called, with a short patience.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from sureshot.errors import ModelError, option
from sureshot.files import file_digest
from sureshot.formats import read_json
from sureshot.places import expand, is_folder_at

CONFIG, TOKENIZER, TOKENIZER_SETTINGS = "config.json", "tokenizer.json", "tokenizer_config.json"
IMAGES, PROCESSOR = "preprocessor_config.json", "processor_config.json"
_SETTINGS = (CONFIG, IMAGES, PROCESSOR, TOKENIZER, TOKENIZER_SETTINGS)
_WEIGHTS, _INDEX, _SHARDS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*.safetensors",
)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_LONGEST = 200  # characters of a name on the hub; there are 96 at most
_PATIENCE = 5.0  # seconds; the hub client's own default is to wait for ever
_CONVERTER = "SFconvertbot"  # the hub's own robot, which offers safetensors as a pull request
_AGAIN = "Copy or download the folder again, whole."


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a model's files.

    Attributes:
        folder: where they lie; the only thing an error message needs to name.
    """

    folder: Path

    def settings(self, name: str) -> dict[str, Any]:
        """What a JSON file of the folder says; nothing where the file is absent.

        Raises:
            ModelError: the file is there, but holds no JSON object.
        """
        try:
            found = read_json(self.folder / name)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self.refuse(f"{name} cannot be read ({first_line(error)})", _AGAIN) from None
        if not isinstance(found, dict):
            raise self.refuse(f"{name} holds no settings", _AGAIN)
        return found

    def require(self, name: str, fix: str) -> Path:
        """Path of a file that must be there.

        Raises:
            ModelError: it is not; the message ends with ``fix``.
        """
        path = self.folder / name
        if not path.is_file():
            raise self.refuse(f"{name} is missing", fix)
        return path

    def weights(self) -> list[Path]:
        """The safetensors files, each with a sound header and of the length it announces.

        Raises:
            ModelError: there are none, one is missing or damaged, or there are only pickles, which
                can run code and are never opened.
        """
        files = [self.folder / name for name in self._weight_names()]
        if not files and any(any(self.folder.glob(pattern)) for pattern in _PICKLES):
            raise self.refuse(
                "its weights are pickled, and a pickle can run code", _convert(self.folder)
            )
        if not files:
            raise self.refuse(f"{_WEIGHTS} is missing", _AGAIN)
        for file in files:
            try:
                with safe_open(file, framework="numpy"):
                    pass
            except (OSError, SafetensorError) as error:
                reason = f"{file.name} cannot be read ({first_line(error)})"
                raise self.refuse(reason, _AGAIN) from None
        return files

    def fingerprint(self, version: str) -> str:
        """Hex digest of weights and settings, wherever the folder lies; costly only the first time.

        Args:
            version: version of the code that turns these files into vectors.
        """
        present = [self.folder / name for name in (*_SETTINGS, _INDEX)]
        files = [path for path in present if path.is_file()] + self.weights()
        lines = [version, *(f"{path.name} {file_digest(path)}" for path in files)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def complete(self) -> bool:
        """Whether nothing is missing that a hub model has; a folder of one's own may have less."""
        needed = (CONFIG, TOKENIZER, *(self._weight_names() or [_WEIGHTS]))
        present = all((self.folder / name).is_file() for name in needed)
        return present and any((self.folder / name).is_file() for name in (IMAGES, PROCESSOR))

    def refuse(self, reason: str, fix: str) -> ModelError:
        """The error that says why this folder cannot be used, and what to do."""
        return ModelError(f"Could not load the model in {self.folder}: {reason}. {fix}")

    def _weight_names(self) -> list[str]:
        if (self.folder / _WEIGHTS).is_file() or not (self.folder / _INDEX).is_file():
            return [_WEIGHTS] if (self.folder / _WEIGHTS).is_file() else []
        shards = self.settings(_INDEX).get("weight_map")
        if not isinstance(shards, dict):
            raise self.refuse(f"{_INDEX} names no files", _AGAIN)
        return sorted({str(shard) for shard in shards.values()})


def find_snapshot(name: str) -> Snapshot:
    """The files behind a folder's path or a hub id, downloaded where they are nowhere yet.

    Raises:
        ModelError: there is no such folder and no such model, or the hub cannot be reached.
    """
    path = expand(name)
    if is_folder_at(path):
        return Snapshot(path.absolute())
    there = os.path.exists(path)  # noqa: PTH110 - Path.exists fails at names too long
    if there or len(name) > _LONGEST or not _HUB_NAME.fullmatch(name):
        raise ModelError(
            f"Could not load model '{name[:_LONGEST]}': it is neither a folder nor the name of "
            "a model on the hub, such as openai/clip-vit-base-patch32."
        )
    return _cached(name) or _download(name)


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _cached(name: str) -> Snapshot | None:
    """A complete version in the hub's cache, the current one before others, newer before older."""
    from huggingface_hub import constants

    root = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    main = root / "refs" / "main"
    current = main.read_text("utf-8").strip() if main.is_file() else ""
    folders = sorted(
        root.glob("snapshots/*"), key=lambda f: (f.name == current, f.stat().st_mtime), reverse=True
    )
    return next((found for found in map(Snapshot, folders) if found.complete()), None)


def _download(name: str) -> Snapshot:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    commit = _commit(name)
    try:
        wanted = [*_SETTINGS, _WEIGHTS, _INDEX, _SHARDS]
        folder = snapshot_download(name, revision=commit, allow_patterns=wanted)
    except GatedRepoError:
        raise ModelError(
            f"Could not download model '{name}': its owners want their terms accepted first. "
            "Accept them on the model's page of the hub, then log in with: hf auth login"
        ) from None
    except _hub_errors() as error:
        raise ModelError(
            f"Could not download model '{name}' ({first_line(error)}). Try again, it goes on where "
            f"it stopped, or give a local folder with {option('model')}."
        ) from None
    return Snapshot(Path(folder))


def _commit(name: str) -> str:
    """The version to download: the main one, or the robot's conversion where that is pickled."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    api = HfApi()
    try:
        info = api.model_info(name, timeout=_PATIENCE)
        if info.sha and _safe(info.siblings):
            return info.sha
        for pull in api.get_repo_discussions(name, author=_CONVERTER, discussion_status="open"):
            info = api.model_info(name, revision=pull.git_reference, timeout=_PATIENCE)
            if info.sha and _safe(info.siblings):
                return info.sha
    except RepositoryNotFoundError:
        raise ModelError(
            f"Could not load model '{name}': there is no such folder, and the hub has no public "
            "model of this name. Check the spelling, or log in with: hf auth login"
        ) from None
    except _hub_errors():
        raise ModelError(
            f"Could not load model '{name}': not in the local cache and the model hub cannot be "
            f"reached. Give a local folder with {option('model')}, connect once, or use "
            f"{option('model', 'bundled')}."
        ) from None
    raise ModelError(
        f"Could not load model '{name}': the hub has its weights only pickled, and a pickle can "
        f"run code. {_convert(name)}"
    )


def _safe(files: list[Any] | None) -> bool:
    return any(file.rfilename in (_WEIGHTS, _INDEX) for file in files or ())


def _hub_errors() -> tuple[type[Exception], ...]:
    """OSError and what httpx raises; which httpx, depends on the version of the hub's client."""
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))


def _convert(source: Path | str) -> str:
    save = f"k.from_pretrained('{source}').save_pretrained('DIR')"
    code = f"import transformers as t; [{save} for k in (t.AutoModel, t.AutoProcessor)]"
    return (
        f'If you trust it, convert it once and give DIR with {option("model")}: python -c "{code}"'
    )

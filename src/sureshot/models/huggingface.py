"""Models on the Hugging Face hub: found in its cache, downloaded, and published.

What is in the cache is taken without asking the hub. Only settings and safetensors are downloaded,
so nothing that comes from there can run. The hub's own client is imported for a download or an
upload alone, never by a search.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sureshot.errors import ModelError, first_line, option, require_research
from sureshot.files import CARD as TRUST
from sureshot.files import write_json, write_text
from sureshot.paths import expand
from sureshot.settings import read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
README, ENCODER, BANK, MEASURED = "README.md", "encoder", "bank.safetensors", "evaluations.json"
SETTINGS = (
    CONFIG,
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
_OF_NETWORK = (*SETTINGS, WEIGHTS, INDEX, "model-*.safetensors")
_WANTED = (*_OF_NETWORK, TRUST, BANK, *(f"{ENCODER}/{name}" for name in _OF_NETWORK))
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_LONGEST = 200  # characters of a name on the hub; there are 96 at most
_PATIENCE = 5.0  # seconds; the hub client's own default is to wait for ever
_CONVERTER = "SFconvertbot"  # the hub's own robot, which offers safetensors as a pull request
_LOG_IN = "log in with: hf auth login"


def is_hub_name(name: str) -> bool:
    """Whether a name may be one of the hub, and is nothing on this disk."""
    there = os.path.exists(expand(name))  # noqa: PTH110 - Path.exists fails at names too long
    return not there and len(name) <= _LONGEST and _NAME.fullmatch(name) is not None


def cache_folder() -> Path:
    """Where the hub's client keeps what it downloads."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    return expand(os.environ.get("HF_HUB_CACHE") or f"{home}/hub")


def _place(name: str) -> Path:
    """The folder of a model in the cache."""
    return cache_folder() / f"models--{name.replace('/', '--')}"


def is_checkpoint(folder: str | Path) -> bool:
    """Whether a folder looks like a trained model of ours: a config that names a system."""
    try:
        config = read_json(Path(folder) / CONFIG)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "system" in config and "stem" in config


def is_whole_checkpoint(folder: Path) -> bool:
    """Whether nothing of a trained model is missing that it cannot do without."""
    if not is_checkpoint(folder) or not (folder / WEIGHTS).is_file():
        return False
    encoder = read_json(folder / CONFIG).get("encoder")
    own = isinstance(encoder, dict) and encoder.get("name") == ENCODER
    return not own or any((folder / ENCODER / name).is_file() for name in (WEIGHTS, INDEX))


def cached(name: str, usable: Callable[[Path], bool], revision: str | None = None) -> Path | None:
    """A version in the cache that can be used: the current one before others, newer before older.

    Where a commit, branch or tag is named as ``revision``, no other version will do.
    """
    root = _place(name)
    ref = root / "refs" / (revision or "main")
    current = ref.read_text("utf-8").strip() if ref.is_file() else revision or ""
    folders = sorted(
        root.glob("snapshots/*"), key=lambda f: (f.name == current, f.stat().st_mtime), reverse=True
    )
    if revision is not None:
        folders = [folder for folder in folders if folder.name == current]
    return next(filter(usable, folders), None)


def checkpoint_folder(model: str) -> Path:
    """The folder of a trained model; that of the cache for one of the hub."""
    found = cached(model, is_whole_checkpoint) if is_hub_name(model) else None
    return found or expand(model)


def download(name: str, revision: str | None = None) -> Path:
    """The folder of a model of the hub, its files downloaded where they are not in the cache."""
    require_research(f"The model {name}", "torch", "transformers")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    commit, wanted, cache = _commit(name, revision), list(_WANTED), cache_folder()
    try:
        found = snapshot_download(name, revision=commit, allow_patterns=wanted, cache_dir=cache)
        if revision != commit:
            # The library notes it for names alone, and without it the newest download would be
            # taken for the current version.
            note = _place(name) / "refs" / (revision or "main")
            note.parent.mkdir(parents=True, exist_ok=True)
            write_text(note, commit)
        return Path(found)
    except GatedRepoError:
        raise ModelError(
            f"Could not download model '{name}': its owners want their terms accepted first. "
            f"Accept them on the model's page of the hub, then {_LOG_IN}"
        ) from None
    except _errors() as error:
        raise ModelError(
            f"Could not download model '{name}' ({first_line(error)}). Try again, it goes on where "
            f"it stopped, or give a local folder with {option('model')}."
        ) from None


def _commit(name: str, revision: str | None) -> str:
    """The version to download: the main one, or the robot's conversion where that is pickled."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    api = HfApi()

    def versions() -> Iterator[str | None]:
        yield revision
        for pull in api.get_repo_discussions(name, author=_CONVERTER, discussion_status="open"):
            yield pull.git_reference

    try:
        for version in versions():
            info = api.model_info(name, revision=version, timeout=_PATIENCE)
            files = {file.rfilename for file in info.siblings or ()}
            if info.sha and files & {WEIGHTS, INDEX}:
                return info.sha
    except RevisionNotFoundError:
        raise ModelError(
            f"Could not load model '{name}': it has no version {revision}. Take one that its page "
            f"on the hub lists, or leave it out for the newest."
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"Could not load model '{name}': there is no such folder, and the hub has no public "
            f"model of this name. Check the spelling, or {_LOG_IN}"
        ) from None
    except _errors():
        raise ModelError(
            f"Could not load model '{name}': not in the local cache and the model hub cannot be "
            f"reached. Give a local folder with {option('model')} (in a recipe as encoder.name, in "
            f"a plan also in [encoders]), connect once, or use {option('model', 'bundled')}."
        ) from None
    raise ModelError(
        f"Could not load model '{name}': the hub has its weights only pickled, and a pickle can "
        f"run code. {how_to_convert(name)}"
    )


def how_to_convert(source: Path | str) -> str:
    """The command that turns pickled weights into safetensors."""
    save = f"k.from_pretrained('{source}').save_pretrained('DIR')"
    code = f"import transformers as t; [{save} for k in (t.AutoModel, t.AutoProcessor)]"
    return (
        f'If you trust it, convert it once and give DIR with {option("model")}: python -c "{code}"'
    )


def _errors() -> tuple[type[Exception], ...]:
    """OSError and what httpx raises; which httpx, depends on the version of the hub's client."""
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))


def publish(
    folder: Path, name: str, card: str, private: bool | None, token: str | None, **commit: Any
) -> str:
    """Upload the folder of a trained model as one commit; the address of the commit.

    See `sureshot.models.load.Scorer.push_to_hub`; ``commit`` is as the hub's client takes it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise ModelError(
            f"{name[:_LONGEST]!r} is no name on the hub; give your account and a name for the "
            f"model, such as me/my-model."
        )
    config = read_json(folder / CONFIG)
    encoder = config["encoder"]["name"]
    if encoder != ENCODER and Path(encoder).is_absolute():
        raise ModelError(
            f"The encoder of {folder} is a folder of this machine, {encoder}, so nobody else could "
            f"use the model. Train it with encoder.name set to a name on the hub."
        )
    try:
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place, "model")
            copy_checkpoint(folder, copy)
            recipe = without_folders(config.get("recipe", {}))
            write_json(copy / CONFIG, {**config, "recipe": recipe})
            write_text(copy / README, card)
            api = HfApi(token=token)
            made = api.create_repo(name, private=private, exist_ok=True)
            done = api.upload_folder(
                repo_id=made.repo_id,
                folder_path=copy,
                delete_patterns=[TRUST, BANK, MEASURED, f"{ENCODER}/*"],  # of an earlier version
                **commit,
            )
        return str(done.commit_url)
    except LocalTokenNotFoundError:
        raise ModelError(f"To publish {name}, {_LOG_IN}") from None
    except HfHubHTTPError as error:
        if getattr(error.response, "status_code", None) in (401, 403):
            raise ModelError(
                f"The hub does not let you publish {name}. Take a name of your own account, with a "
                f"token that may write: {_LOG_IN}"
            ) from None
        raise ModelError(f"The hub refused {name}: {first_line(error)}") from None
    except _errors() as error:
        raise ModelError(
            f"{name} could not be published: the hub cannot be reached ({first_line(error)}). Try "
            f"again when it can; nothing was changed here."
        ) from None


def copy_checkpoint(folder: Path, to: Path) -> None:
    """Copy the files of a trained model, and nothing else that is in its folder."""
    to.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, WEIGHTS, README, TRUST, BANK, MEASURED):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, to / name)
    if (folder / ENCODER).is_dir():
        shutil.copytree(folder / ENCODER, to / ENCODER)


def without_folders(value: Any) -> Any:
    """A recipe with the last part alone of each path of this machine.

    Examples:
        >>> without_folders({"train": [{"root": "/home/me/MSRVTT", "split": "train"}]})
        {'train': [{'root': 'MSRVTT', 'split': 'train'}]}
    """
    if isinstance(value, dict):
        return {key: without_folders(held) for key, held in value.items()}
    if isinstance(value, list):
        return [without_folders(held) for held in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value

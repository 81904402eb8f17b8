"""What a run needs to go on after its last finished epoch, and how a checkpoint is replaced.

Weights and the optimiser's memory are one safetensors file, the counters a line of JSON in its
header; nothing in it can run. There are no random states: the numbers of each step follow from the
seed and the number of the step.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from sureshot.errors import SureshotError

_VERSION = 1
_WEIGHTS, _MEMORY = "weights.", "optimiser."


def save_state(
    path: Path,
    modules: nn.Module,
    optimiser: torch.optim.Optimizer,
    values: Mapping[str, Any],
) -> None:
    """Write everything in one step: the file is the old one or the new one, whatever happens.

    Args:
        path: of the file.
        modules: all that is trained.
        optimiser: of its weights.
        values: counters and settings, as JSON holds them.

    Raises:
        SureshotError: the file cannot be written.
    """
    tensors = {_WEIGHTS + name: tensor for name, tensor in modules.state_dict().items()}
    for number, memory in optimiser.state_dict()["state"].items():
        tensors |= {f"{_MEMORY}{number}.{name}": tensor for name, tensor in memory.items()}
    header = {"sureshot": json.dumps({"version": _VERSION, "values": values})}
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Cloned: safetensors refuses tensors that share memory, as tied weights do.
        save_file({name: t.detach().cpu().clone() for name, t in tensors.items()}, partial, header)
        partial.replace(path)
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise SureshotError(
            f"The run cannot be kept in {path}: {error}. Free some space."
        ) from None


def read_values(path: Path) -> dict[str, Any]:
    """The counters and settings of a state.

    Raises:
        SureshotError: it cannot be read, or a later version wrote it.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["sureshot"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if header["version"] != _VERSION:
        raise _unreadable(path, f"it is of version {header['version']}, not {_VERSION}")
    values: dict[str, Any] = header["values"]
    return values


def load_state(path: Path, modules: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put weights and the optimiser's memory back.

    Raises:
        SureshotError: the file cannot be read, or does not fit these modules.
    """
    weights: dict[str, Tensor] = {}
    memory: dict[int, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - the file is no dict
                if name.startswith(_WEIGHTS):
                    weights[name.removeprefix(_WEIGHTS)] = file.get_tensor(name)
                else:
                    number, key = name.removeprefix(_MEMORY).split(".", 1)
                    memory.setdefault(int(number), {})[key] = file.get_tensor(name)
        modules.load_state_dict(weights)
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": memory, "param_groups": groups})
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from None


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Have a folder written beside its place, then moved there; a fault leaves the old one.

    Args:
        folder: its place.
        write: fills the empty folder it is given.
    """
    partial, old = _beside(folder)
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        write(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def mend_folder(folder: Path) -> None:
    """Put the old folder back where a run was killed between the two moves of `replace_folder`."""
    _, old = _beside(folder)
    if old.exists() and not folder.exists():
        old.rename(folder)


def _beside(folder: Path) -> tuple[Path, Path]:
    return folder.with_name(f"{folder.name}.partial"), folder.with_name(f"{folder.name}.old")


def _unreadable(path: Path, reason: str) -> SureshotError:
    return SureshotError(
        f"The run in {path} cannot go on: {reason}. Start it anew in another folder."
    )

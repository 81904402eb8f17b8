"""What a run needs to go on after its last finished epoch.

Weights and the optimiser's memory are one safetensors file, the counters a line of JSON in its
header; nothing in it can run. There are no random states: the numbers of each step follow from the
seed and the number of the step.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from sureshot.errors import SureshotError
from sureshot.files import replace_file
from sureshot.formats import parse_json

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
        path: file of the state.
        modules: all that is trained.
        optimiser: optimiser of the model's weights.
        values: counters and settings, as JSON holds them.

    Raises:
        SureshotError: the file cannot be written.
    """
    tensors = {_WEIGHTS + name: tensor for name, tensor in modules.state_dict().items()}
    for number, memory in optimiser.state_dict()["state"].items():
        tensors |= {f"{_MEMORY}{number}.{name}": tensor for name, tensor in memory.items()}
    header = {"sureshot": json.dumps({"version": _VERSION, "values": values})}
    # Cloned: safetensors refuses tensors that share memory, as tied weights do.
    kept = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh:
            save_file(kept, fresh, header)
    except (OSError, SafetensorError) as error:
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
            header = parse_json((file.metadata() or {})["sureshot"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    held = header if isinstance(header, dict) else {}
    if held.get("version") != _VERSION:
        raise _unreadable(path, f"it is of version {held.get('version')!r:.40}, not {_VERSION}")
    values = held.get("values")
    if not isinstance(values, dict):
        raise _unreadable(path, "it holds no settings")
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


def _unreadable(path: Path, reason: str) -> SureshotError:
    return SureshotError(
        f"The run in {path} cannot go on: {reason}. Start it anew in another folder."
    )

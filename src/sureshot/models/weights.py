"""Weights of a safetensors file, compared with the network they are for before memory is asked for.

The settings of a model may ask for any size. What the header of the weights says is bound to the
length of their file, so a network is built only if it is the one of the header.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sureshot.errors import ModelError
from sureshot.settings import open_file
from sureshot.text import plain

_Network = TypeVar("_Network", bound=nn.Module)
_MOST = 100_000  # tensors; more are made to cost time
_UNBUILT = (RuntimeError, ValueError, TypeError, OverflowError, ZeroDivisionError, MemoryError)
_REAL = {"F16", "BF16", "F32", "F64"}
_KINDS = {torch.bool: {"BOOL"}, torch.int64: {"I64"}, torch.int32: {"I32"}, torch.uint8: {"U8"}}


def with_weights(make: Callable[[], _Network], path: Path, settings: str) -> _Network:
    """A network with the weights of a file; ``make`` is called twice, first without memory."""
    folder = plain(path.parent)
    try:
        there = _header(path)
        fit = f"The weights of {folder} are not those of its {settings}"
        _compare(there, _skeleton(make, folder, settings), fit)
        network = make()
        network.load_state_dict(load_file(path))
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or plain(str(error))[:200]
        raise ModelError(
            f"The weights of {folder} cannot be read ({reason}); copy or train it again."
        ) from None
    check_finite(network, folder)
    return network


def save_weights(network: nn.Module, path: Path) -> None:
    """Write what `with_weights` reads."""
    tensors = network.state_dict().items()
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors}, path)


def check_finite(network: nn.Module, named: str) -> None:
    """See that weights are numbers."""
    for name, weight in network.state_dict().items():
        # A sum is quicker than a look at each; only where it overflows each is looked at.
        if weight.is_floating_point() and not weight.sum(dtype=torch.float64).isfinite():
            odd = "NaN" if weight.isnan().any() else "infinity"
            if not weight.isfinite().all():
                raise ModelError(
                    f"The weights of {named} are damaged: the layer {plain(name)} holds {odd}. "
                    "Copy or train it again."
                )


def _header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each tensor of a file, whose parts all lie in it."""
    open_file(path).close()  # the reader below would wait for a pipe
    with safe_open(path, framework="pt") as file:
        names = list(file.keys())
        if len(names) > _MOST:
            raise OSError(None, f"it has {len(names)} tensors, more than any model")
        slices = {name: file.get_slice(name) for name in names}
        return {name: (s.get_dtype(), tuple(s.get_shape())) for name, s in slices.items()}


def _skeleton(make: Callable[[], nn.Module], folder: str, settings: str) -> dict[str, Tensor]:
    """The tensors of the network without their numbers, which cost no memory."""
    try:
        with torch.device("meta"):
            return make().state_dict()
    except _UNBUILT as error:
        reason = plain(str(error).split("\n")[0])[:200]
        raise ModelError(
            f"No network can be built from the {settings} of {folder} ({reason}); copy or train "
            "it again."
        ) from None


def _compare(
    there: dict[str, tuple[str, tuple[int, ...]]], expected: dict[str, Tensor], fit: str
) -> None:
    """See that a header has the tensors of a network and no other, each of its shape and kind."""
    odd = []
    for name, tensor in expected.items():
        kind, shape = there.get(name, ("", ()))
        kinds = _REAL if tensor.is_floating_point() else _KINDS.get(tensor.dtype, set())
        if not kind:
            odd.append(f"{name} is missing")
        elif shape != tuple(tensor.shape):
            odd.append(f"{name} has the shape {list(shape)}, not {list(tensor.shape)}")
        elif kind not in kinds:
            odd.append(f"{name} is of the type {kind}")
    odd += [f"{name} is of no layer" for name in sorted(there.keys() - expected.keys())]
    if odd:
        raise ModelError(
            f"{fit} ({plain(odd[0])[:300]}): it is damaged, or its layers have changed since; copy "
            "or train it again."
        )


def device_for(given: str | None) -> str:
    """The device to compute on, tried out.

    Examples:
        >>> device_for("cpu")
        'cpu'
    """
    if given is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=given)
    except (AssertionError, RuntimeError):
        raise ModelError(
            f"Cannot compute on device '{given}'. Use cpu, or name no device to have one chosen."
        ) from None
    return given

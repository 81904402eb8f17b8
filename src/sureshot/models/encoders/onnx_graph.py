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

INPUT, OUTPUT = "frames", "maps"
_VERSION, _OPERATIONS = 8, 13  # of ONNX's format and of its operations, both of 2021
_FLOAT, _UINT8 = 1, 2  # types of numbers
_INT, _STRING, _INTS = 2, 3, 7  # types of attributes


def image_network(weights: Weights) -> bytes:
    """A model from the bytes of frames, of any number and size, to their last feature maps."""
    nodes: list[bytes] = []
    constants = [
        _tensor("middle", np.array(MIDDLE, np.float32)),
        _tensor("scale", np.array(SCALE, np.float32)),
        _tensor("lowest", np.array(0, np.float32)),
        _tensor("highest", np.array(HIGHEST, np.float32)),
    ]

    def put(operation: str, *inputs: str, to: str = "", attributes: Sequence[bytes] = ()) -> str:
        name = to or f"{operation}{len(nodes)}"
        nodes.append(
            b"".join(_field(1, one) for one in inputs)
            + _field(2, name)
            + _field(4, operation)
            + b"".join(_field(5, one) for one in attributes)
        )
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

    def activated(x: str, layer: Convolution, to: str = "") -> str:
        return put("Clip", convolved(x, layer), "lowest", "highest", to=to)

    x = put("Cast", INPUT, attributes=[_attribute("to", _FLOAT)])
    x = activated(put("Mul", put("Sub", x, "middle"), "scale"), STEM)
    for block in BLOCKS:
        y = x if block.expand is None else activated(x, block.expand)
        y = convolved(activated(y, block.filter), block.project)
        x = put("Add", x, y) if block.residual else y
    activated(x, HEAD, to=OUTPUT)
    graph = (
        b"".join(_field(1, node) for node in nodes)
        + _field(2, "image network")
        + b"".join(_field(5, constant) for constant in constants)
        + _field(11, _value(INPUT, _UINT8, ("count", 3, "height", "width")))
        + _field(12, _value(OUTPUT, _FLOAT, ("count", HEAD.outputs, "rows", "columns")))
    )
    return _field(1, _VERSION) + _field(7, graph) + _field(8, _field(2, _OPERATIONS))


def _tensor(name: str, values: np.ndarray) -> bytes:
    shape = b"".join(_field(1, size) for size in values.shape)
    numbers = np.ascontiguousarray(values, "<f4").tobytes()
    return shape + _field(2, _FLOAT) + _field(8, name) + _field(9, numbers)


def _attribute(name: str, value: int | str | list[int]) -> bytes:
    match value:
        case int():
            return _field(1, name) + _field(3, value) + _field(20, _INT)
        case str():
            return _field(1, name) + _field(4, value) + _field(20, _STRING)
        case _:
            numbers = b"".join(_field(8, one) for one in value)
            return _field(1, name) + numbers + _field(20, _INTS)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """Name, type and shape of what enters or leaves; a size that is a name may be any."""
    sizes = b"".join(_field(1, _field(2 if isinstance(one, str) else 1, one)) for one in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))


def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of a protocol buffer: its number, and an integer or bytes of some length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """An integer of at least 0, seven bits a byte from the lowest on."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])

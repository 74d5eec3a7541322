"""Writing of a graph in the ONNX format, which runtimes other than PyTorch read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 8
OPERATOR_SET = 13
"""Versions of the format and of its operators, of 2021, which later runtimes read too."""

# Of onnx.proto3: TensorProto.DataType, and AttributeProto.AttributeType.
_FLOAT = 1
_INT, _INTS = 2, 7
_VARINT, _BYTES = 0, 2


@dataclass
class OnnxGraph:
    """Operators on float32 arrays, added one after the other, and written as a model.

    A model is a protocol buffer message (`ModelProto` of onnx.proto3). Its input is named as
    `input`, and has a first side of any length.

    Parameters
    ----------
    sides : tuple of int
        Sides of the input after the first.
    """

    sides: tuple[int, ...]
    input: str = "input"
    _nodes: list[bytes] = field(default_factory=list)
    _tensors: list[bytes] = field(default_factory=list)

    def constant(self, values: NDArray[np.floating]) -> str:
        """Add an array, rounded to float32, and return its name."""
        name = f"constant{len(self._tensors)}"
        sides = b"".join(_number(1, side) for side in values.shape)
        content = np.ascontiguousarray(values, dtype="<f4").tobytes()
        self._tensors.append(sides + _number(2, _FLOAT) + _text(8, name) + _bytes(9, content))
        return name

    def add(self, operator: str, *inputs: str, **attributes: int | Sequence[int]) -> str:
        """Add an operator of the ONNX operator set, and return the name of its one output."""
        name = f"output{len(self._nodes)}"
        self._nodes.append(
            b"".join(_text(1, given) for given in inputs)
            + _text(2, name)
            + _text(4, operator)
            + b"".join(_bytes(5, _attribute(*item)) for item in attributes.items())
        )
        return name

    def model(self, output: str) -> bytes:
        """Return the model that gives the output of this name."""
        first = _bytes(1, _text(2, "n"))
        shape = first + b"".join(_bytes(1, _number(1, side)) for side in self.sides)
        graph = (
            b"".join(_bytes(1, node) for node in self._nodes)
            + _text(2, "graph")
            + b"".join(_bytes(5, tensor) for tensor in self._tensors)
            + _bytes(11, _value(self.input, _bytes(2, shape)))
            + _bytes(12, _value(output))
        )
        operators = _text(1, "") + _number(2, OPERATOR_SET)
        return _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, operators)


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT)
    return _text(1, name) + b"".join(_number(8, item) for item in value) + _number(20, _INTS)


def _value(name: str, shape: bytes = b"") -> bytes:
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + shape))


def _text(field_number: int, value: str) -> bytes:
    return _bytes(field_number, value.encode())


def _bytes(field_number: int, value: bytes) -> bytes:
    return _varint(field_number << 3 | _BYTES) + _varint(len(value)) + value


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    """Write an integer from 0 on by seven bits a byte, lowest first."""
    assert value >= 0
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))

"""Reading of .caffemodel files: the arrays of each layer, and nothing that could run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

# Field numbers of caffe.proto. A network holds layers of the present form, or of the form of 2014.
_LAYER, _LAYER_V1 = 100, 2
_NAME = {_LAYER: 1, _LAYER_V1: 4}
_BLOBS = {_LAYER: 7, _LAYER_V1: 6}
_DATA, _SHAPE, _DOUBLE_DATA = 5, 7, 8
_OLD_SIDES = (1, 2, 3, 4)  # num, channels, height, width

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, int | memoryview]
"""Number, wire type and value of a field: an integer, or the bytes of what it holds."""


class _DamagedError(ValueError):
    """The bytes are no protocol buffer message."""


def read_caffemodel(path: Path) -> dict[str, list[NDArray[np.floating]]]:
    """Read the learned arrays of a Caffe network.

    The file is a protocol buffer message (`NetParameter` of Caffe's caffe.proto): layers, each
    with a name and blobs, each with a shape and numbers. Only these are looked at, with the rules
    of the wire format: fields of other numbers are skipped. Arrays are views of the file's
    bytes as they lie in memory.

    Parameters
    ----------
    path : Path
        A .caffemodel file, with layers as Caffe writes them since 2014 (`layer`) or wrote them
        before (`layers`).

    Returns
    -------
    dict of str to list of array
        For each layer that has any, its arrays, float32 or float64, in the file's order: weights,
        then biases. Shapes are the file's; the older form has four sides, (1, 1, 1, n) for biases.

    Raises
    ------
    InputError
        The file is cut short, or no such message, or has no layer with arrays.
    """
    content = memoryview(path.read_bytes())
    layers: dict[str, list[NDArray[np.floating]]] = {}
    try:
        for number, wire, value in _fields(content):
            if number in _BLOBS and wire == _BYTES:
                assert isinstance(value, memoryview)
                name, blobs = _layer(value, number)
                if blobs:
                    layers[name] = blobs
    except (ValueError, OverflowError) as error:  # also what numpy says of impossible shapes
        raise InputError(
            f"option weights={str(path)!r} cannot be read as a .caffemodel: {error}; the file is "
            "damaged or of another kind, so fetch it again"
        ) from error
    if not layers:
        raise InputError(
            f"option weights={str(path)!r} holds no layer with weights; it must be a .caffemodel "
            "of a trained network, of Caffe's form of 2014 or later (upgrade_net_proto_binary of "
            "Caffe brings an older one up to it)"
        )
    return layers


def _layer(message: memoryview, kind: int) -> tuple[str, list[NDArray[np.floating]]]:
    name, blobs = "", []
    for number, wire, value in _fields(message):
        if wire != _BYTES or not isinstance(value, memoryview):
            continue
        if number == _NAME[kind]:
            name = bytes(value).decode("utf-8")
        elif number == _BLOBS[kind]:
            blobs.append(_blob(value))
    return name, blobs


def _blob(message: memoryview) -> NDArray[np.floating]:
    numbers: list[NDArray[np.floating]] = []
    shape: tuple[int, ...] | None = None
    old: dict[int, int] = {}
    for number, wire, value in _fields(message):
        if number in (_DATA, _DOUBLE_DATA):
            # Packed, or one number a field: a reader must take both.
            size = 8 if number == _DOUBLE_DATA else 4
            if isinstance(value, int) or len(value) % size:
                raise _DamagedError(f"an array of {size}-byte numbers does not end on one")
            numbers.append(np.frombuffer(value, dtype=f"<f{size}"))
        elif number == _SHAPE and isinstance(value, memoryview):
            shape = tuple(_shape(value))
        elif number in _OLD_SIDES and wire == _VARINT and isinstance(value, int):
            old[number] = value
    values = numbers[0] if len(numbers) == 1 else np.concatenate(numbers or [np.empty(0, "<f4")])
    if shape is None:
        shape = tuple(old.get(side, 1) for side in _OLD_SIDES) if old else values.shape
    if math.prod(shape) != values.size:
        raise _DamagedError(f"an array of shape {shape} has {values.size} numbers")
    return values.reshape(shape)


def _shape(message: memoryview) -> Iterator[int]:
    for number, _, value in _fields(message):
        if number != 1:
            continue
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            side, at = _varint(value, at)
            yield side


def _fields(message: memoryview) -> Iterator[Field]:
    """Fields of a message, in its order."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, at = _varint(message, at)
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
        else:
            raise _DamagedError(f"there is no wire type {wire}")
        if number == 0 or length > end - at:
            raise _DamagedError(f"field {number} of {length} bytes does not fit into what is left")
        yield number, wire, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise _DamagedError("it ends in the middle of a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _DamagedError("a number has more than ten bytes")

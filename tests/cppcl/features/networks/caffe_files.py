"""A writer of .caffemodel files, for tests of their reader: protocol buffers by their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def varint(value: int) -> bytes:
    content = bytearray()
    while value >= 0x80:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def blob(values: NDArray[np.floating], *, old: bool = False, packed: bool = True) -> bytes:
    """A BlobProto: with `old` its shape is (num, channels, height, width)."""
    double = values.dtype == np.float64
    number, wire, size = (8, 1, 8) if double else (5, 5, 4)
    content = values.astype(f"<f{size}").tobytes()
    if packed:
        data = field(number, content)
    else:
        key = varint(number << 3 | wire)
        data = b"".join(key + content[k : k + size] for k in range(0, len(content), size))
    if old:
        sides = (1,) * (4 - values.ndim) + values.shape
        shape = b"".join(varint(k << 3) + varint(side) for k, side in enumerate(sides, start=1))
    else:
        shape = field(7, field(1, b"".join(map(varint, values.shape))))
    return data + shape


def caffemodel(
    layers: Mapping[str, Sequence[NDArray[np.floating]]], *, old: bool = False, packed: bool = True
) -> bytes:
    """A NetParameter, of the present form or of that of 2014 (`old`), with fields to pass over."""
    number, name_field, blobs_field = (2, 4, 6) if old else (100, 1, 7)
    content = field(1, b"a net") + varint(5 << 3) + varint(300)
    for name, arrays in layers.items():
        layer = field(name_field, name.encode()) + varint(9 << 3 | 5) + b"\1\2\3\4"
        layer += b"".join(field(blobs_field, blob(a, old=old, packed=packed)) for a in arrays)
        content += field(number, layer)
    return content + varint(30 << 3 | 1) + bytes(8)

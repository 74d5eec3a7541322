"""Reading of .safetensors files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import InputError

if TYPE_CHECKING:
    import torch

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a .safetensors file.

    The file has the length n of a header in 8 bytes, lowest first; the header, n bytes of JSON
    with the type, the shape and the first and last byte of each tensor; and the tensors' bytes.
    That is all there is to it, so no package is needed.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to tensor
        Views of the file's bytes as they lie in memory.

    Raises
    ------
    InputError
        The file is cut short or no such file, or has numbers of a type that torch lacks.
    """
    content = bytearray(path.read_bytes())
    try:
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        if start > len(content) or not isinstance(header, dict):
            raise ValueError("the header does not fit")
        return {
            name: _tensor(content, start, entry)
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, OverflowError, RuntimeError) as error:
        raise InputError(
            f"option weights={str(path)!r} cannot be read as .safetensors: it is damaged or of "
            f"another kind, so fetch it again ({' '.join(str(error).split())[:200]})"
        ) from error


def _tensor(content: bytearray, start: int, entry: dict[str, Any]) -> torch.Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, _DTYPES[entry["dtype"]])
    shape: list[int] = entry["shape"]
    first, last = entry["data_offsets"]
    count = math.prod(shape)
    if not 0 <= first <= last <= len(content) - start or last - first != count * dtype.itemsize:
        raise ValueError(f"bytes {first} to {last} do not hold {shape} numbers of {dtype}")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(content, dtype=dtype, count=count, offset=start + first).reshape(shape)

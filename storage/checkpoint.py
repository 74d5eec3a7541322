"""Arrays kept beside an artifact that is being made, so that a killed call of `create` goes on."""

from __future__ import annotations

import contextlib
import hashlib
import io
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from storage.files import TEMPORARY_SUFFIX, check_name, explained, sha256_of_file

_PREFIX = "array_"  # so that no array is named like an argument of `np.savez`
_DIGEST_BYTES = hashlib.sha256().digest_size


def save_checkpoint(folder: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Replace a checkpoint by these arrays, in one step: a killed call leaves the one before."""
    path = checkpoint_path(folder, name)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as stream:
                named: dict[str, Any] = {_PREFIX + key: array for key, array in arrays.items()}
                np.savez(stream, allow_pickle=False, **named)
            digest, _ = sha256_of_file(temporary)
            with temporary.open("ab") as stream:
                stream.write(bytes.fromhex(digest))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def load_checkpoint(folder: Path, name: str) -> dict[str, npt.NDArray[Any]] | None:
    """Return the arrays of a checkpoint, or None if there is none that is as it was written.

    A checkpoint saves time and no more, so a damaged one is as good as none; it is removed.
    """
    path = checkpoint_path(folder, name)
    with explained(path), contextlib.suppress(FileNotFoundError):
        with path.open("rb") as stream:
            if _is_whole(stream):
                # The zip format allows for what follows its end. Its own crc32 guards no header.
                with np.load(stream, allow_pickle=False) as found:
                    return {key.removeprefix(_PREFIX): found[key] for key in found.files}
        path.unlink()
    return None


def _is_whole(stream: BinaryIO) -> bool:
    """Whether a file ends in the sha256 of what is before; leaves the stream at the beginning."""
    size = stream.seek(0, io.SEEK_END) - _DIGEST_BYTES
    stream.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (part := stream.read(min(size, 2**20))):
        digest.update(part)
        size -= len(part)
    whole = size == 0 and stream.read() == digest.digest()
    stream.seek(0)
    return whole


def checkpoint_path(folder: Path, name: str) -> Path:
    """Where a checkpoint lies below the folder of an artifact that is being made."""
    return folder / "checkpoints" / f"{check_name(name)}.npz"

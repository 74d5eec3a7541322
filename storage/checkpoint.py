"""Arrays kept beside an artifact that is being made, so that a killed call of `create` goes on."""

from __future__ import annotations

import contextlib
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.files import TEMPORARY_SUFFIX, check_name, explained

_PREFIX = "array_"  # so that no array is named like an argument of `np.savez`


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
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def load_checkpoint(folder: Path, name: str) -> dict[str, npt.NDArray[Any]] | None:
    """Return the arrays of a checkpoint, or None if there is none that can be read whole.

    A checkpoint saves time and no more, so a damaged one is as good as none; it is removed.
    """
    path = checkpoint_path(folder, name)
    with explained(path), contextlib.suppress(FileNotFoundError):
        try:
            # The crc32 of every array is checked as it is read.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                return {key.removeprefix(_PREFIX): found[key] for key in found.files}
        except (zipfile.BadZipFile, ValueError, EOFError, KeyError, NotImplementedError):
            path.unlink()
    return None


def checkpoint_path(folder: Path, name: str) -> Path:
    """Where a checkpoint lies below the folder of an artifact that is being made."""
    return folder / "checkpoints" / f"{check_name(name)}.npz"

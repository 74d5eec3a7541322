"""What is kept beside an artifact while it is being made: notes on blocks, and checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from storage.errors import BlockError, DamagedArtifactError
from storage.files import (
    TEMPORARY_SUFFIX,
    check_name,
    explained,
    read_checked,
    sha256_of_file,
    write_atomically,
)
from storage.recipe import canonical_json

_PREFIX = "array_"  # so that no array is named like an argument of `np.savez`
_DIGEST_BYTES = hashlib.sha256().digest_size


def write_block_note(path: str | Path, name: str, block: int, value: Any) -> None:
    """Write a small JSON value beside a block, before the block itself.

    A block that has its chunk and the notes that were named to `Writer.pending_blocks` counts as
    done. `Writer.block_notes` returns the notes; they are kept in ``run.json``, so that a repaired
    artifact has those of the blocks that stay.

    Raises
    ------
    BlockError
        Nothing is being written there, or not any more.
    """
    if not Path(path).is_dir():
        raise BlockError(f"{path} is not an artifact being written")
    # One for each block, read by nobody: this is shorter than what `sealed` makes, and ten times
    # as fast.
    text = canonical_json(value, f"note {name!r}").encode("ascii")
    write_atomically(note_path(path, name, block), _digest(text) + b"\n" + text)


def read_note(path: Path, name: str, block: int) -> Any:
    """Return a note; `DamagedArtifactError` if it is missing or not as it was written."""
    file, hint = note_path(path, name, block), "Run again: its block is made anew."
    digest, _, text = read_checked(file, hint).partition(b"\n")
    if digest != _digest(text):
        raise DamagedArtifactError(f"{file} is not as it was written (digest). {hint}")
    return json.loads(text)


def has_note(path: Path, name: str, block: int) -> bool:
    """True if a note is there, and as it was written."""
    try:
        read_note(path, name, block)
    except DamagedArtifactError:
        return False
    return True


def noted_blocks(path: Path, name: str) -> list[int]:
    """Return the blocks that have a note of this name, in order."""
    return sorted(int(file.stem) for file in note_folder(path, name).glob("[0-9]*.note"))


def restore_notes(path: Path, notes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the notes of each name, by block, as ``run.json`` keeps them."""
    for name, values in notes.items():
        for block, value in values.items():
            write_block_note(path, name, int(block), value)


def note_folder(path: str | Path, name: str) -> Path:
    """Return where notes of a name lie while an artifact is written."""
    return Path(path) / "notes" / check_name(name)


def note_path(path: str | Path, name: str, block: int) -> Path:
    """Return the file of one note."""
    return note_folder(path, name) / f"{int(block)}.note"


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode("ascii")


def save_checkpoint(folder: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Replace a checkpoint by these arrays in one step; a killed call leaves the previous one."""
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

    A checkpoint only saves time, so a damaged one is removed and counts as none.
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
    """True if a file ends in the sha256 of the bytes before; rewinds the stream."""
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
    """Return the file of a checkpoint."""
    return folder / "checkpoints" / f"{check_name(name)}.npz"

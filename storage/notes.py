"""Small JSON values beside the blocks of an array that is being written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.errors import BlockError, DamagedArtifactError
from storage.files import check_name, read_checked, write_atomically
from storage.recipe import canonical_json

_FOLDER = "notes"


def write_block_note(path: str | Path, name: str, block: int, value: Any) -> None:
    """Write a small JSON value beside a block, before the block itself.

    A block that has its chunk and the notes that `Writer.pending_blocks` is told of counts as
    done. `Writer.block_notes` returns the notes; they are kept in ``run.json``, so that a repaired
    artifact has those of the blocks that stay.

    Raises
    ------
    BlockError
        Nothing is being written there, or not any more.
    """
    if not Path(path).is_dir():
        raise BlockError(f"{path} is not an artifact being written")
    # There are as many as blocks, and nobody reads them: shorter, and ten times as fast, as
    # what `sealed` makes.
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
    """Whether a note is there, and as it was written."""
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
    return Path(path) / _FOLDER / check_name(name)


def note_path(path: str | Path, name: str, block: int) -> Path:
    """Return the file of one note."""
    return note_folder(path, name) / f"{int(block)}.note"


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode("ascii")

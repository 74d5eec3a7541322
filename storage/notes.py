"""Small JSON values beside the blocks of an array that is being written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from storage.errors import DamagedArtifactError
from storage.files import check_name, sealed, unseal, write_atomically

_FOLDER = "notes"


def write_block_note(path: str | Path, name: str, block: int, value: Any) -> None:
    """Write a small JSON value beside a block, before the block itself.

    A block whose chunk exists counts as done, so a note written after it could be lost when the
    process is killed between the two. `Writer.block_notes` returns the notes; they are kept in
    ``run.json``, so that a repaired artifact has those of the blocks that stay.
    """
    write_atomically(note_path(path, name, block), sealed({"note": value}))


def read_note(path: Path, name: str, block: int) -> Any:
    """Return a note; `DamagedArtifactError` if it is missing or not as it was written."""
    return unseal(note_path(path, name, block), "Run again: its block is made anew.")["note"]


def has_note(path: Path, name: str, block: int) -> bool:
    """Whether a note is there, and as it was written."""
    try:
        read_note(path, name, block)
    except DamagedArtifactError:
        return False
    return True


def all_notes(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the blocks, as text, that have a note of this name, and the notes."""
    numbers = sorted(int(file.stem) for file in note_folder(path, name).glob("[0-9]*.json"))
    for block in numbers:
        yield str(block), read_note(path, name, block)


def notes_by_name(path: Path) -> dict[str, dict[str, Any]]:
    """Return all notes below an unfinished artifact."""
    names = sorted(folder.name for folder in path.glob(f"{_FOLDER}/*"))
    return {name: dict(all_notes(path, name)) for name in names}


def restore_notes(path: Path, notes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what `notes_by_name` returned."""
    for name, values in notes.items():
        for block, value in values.items():
            write_block_note(path, name, int(block), value)


def note_folder(path: str | Path, name: str) -> Path:
    """Return where notes of a name lie while an artifact is written."""
    return Path(path) / _FOLDER / check_name(name)


def note_path(path: str | Path, name: str, block: int) -> Path:
    """Return the file of one note."""
    return note_folder(path, name) / f"{int(block)}.json"

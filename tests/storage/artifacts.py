"""What tests do to artifacts: interrupt their making, damage their files, compare them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Recipe, Store, Writer


class Killed(BaseException):
    """Stands for the end of a process."""


def interrupted(
    store: Store, recipe: Recipe, create: Callable[[Writer], object], *, force: bool = False
) -> Path:
    """Call `create`, which is killed at its end if not before; returns the folder that it left."""

    def killed(writer: Writer) -> None:
        create(writer)
        raise Killed

    with pytest.raises(Killed):
        store.get_or_create(recipe, killed, force=force)
    return store.partial(recipe.reference)


def flip(path: Path, position: int | None = None, bit: int = 0) -> bytes:
    """Flip a bit of a file, in its middle if not told otherwise; returns the bytes before."""
    before = path.read_bytes()
    data = bytearray(before)
    data[len(data) // 2 if position is None else position] ^= 1 << bit
    path.write_bytes(data)
    return before


def tree(folder: Path, *, without: str = "") -> dict[str, bytes]:
    """Return every file below a folder by its name from there, but for those of one name."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != without)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

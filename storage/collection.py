"""Garbage collection: removes artifacts that none of those to keep were made from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from storage.errors import StoreInUseError
from storage.files import TEMPORARY_SUFFIX, discard, locked
from storage.folder import StoreFolder
from storage.recipe import Reference


def collect(folder: StoreFolder, keep: Iterable[Reference], *, dry_run: bool) -> list[Path]:
    """Collect garbage, as `Store.gc` documents."""
    kept = list(keep)
    if dry_run:
        return _garbage(folder, kept)
    if not folder.root.is_dir():
        return []
    try:
        with locked(folder.run_lock, wait=False):
            garbage = _garbage(folder, kept)
            for path in garbage:
                discard(path, folder.trash)
            shutil.rmtree(folder.trash, ignore_errors=True)  # and what a killed run left there
            return garbage
    except BlockingIOError as error:
        raise StoreInUseError(
            f"{folder.root} is in use by a run: nothing was removed. Try again when it has ended."
        ) from error


def _garbage(folder: StoreFolder, keep: list[Reference]) -> list[Path]:
    live: set[Reference] = set()
    pending = keep
    while pending:
        reference = pending.pop()
        if reference not in live and (artifact := folder.find_here(reference)):
            live.add(reference)
            pending.extend(artifact.inputs.values())
    dead = [folder.path(reference) for reference in folder.references() if reference not in live]
    return sorted([*dead, *folder.root.glob(f"*/*{TEMPORARY_SUFFIX}")])

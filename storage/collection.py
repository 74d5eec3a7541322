"""Garbage collection: what no artifact to keep was made from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import StoreInUseError
from storage.files import TEMPORARY_SUFFIX, discard, locked
from storage.recipe import Reference

if TYPE_CHECKING:
    from storage.store import Store


def collect(store: Store, keep: Iterable[Reference], *, dry_run: bool) -> list[Path]:
    """Remove what `Store.gc` says."""
    kept = list(keep)
    if dry_run:
        return _garbage(store, kept)
    if not store.root.is_dir():
        return []
    try:
        with locked(store.run_lock, wait=False):
            garbage = _garbage(store, kept)
            for folder in garbage:
                discard(folder, store.trash)
            shutil.rmtree(store.trash, ignore_errors=True)  # also what a killed run left there
            return garbage
    except BlockingIOError as error:
        raise StoreInUseError(
            f"{store.root} is in use by a run: nothing was removed. Try again when it has ended."
        ) from error


def _garbage(store: Store, keep: list[Reference]) -> list[Path]:
    live: set[Reference] = set()
    pending = keep
    while pending:
        reference = pending.pop()
        if reference not in live and (artifact := store.find_here(reference)):
            live.add(reference)
            pending.extend(artifact.inputs.values())
    dead = [store.path(reference) for reference in store.references() if reference not in live]
    return sorted([*dead, *store.root.glob(f"*/*{TEMPORARY_SUFFIX}")])

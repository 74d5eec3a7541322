"""The form of what is read from a store: nothing that a file declares is trusted before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.blocks import Layout
from storage.errors import StoreError
from storage.files import check_name
from storage.recipe import Recipe, Reference


def check_manifest(manifest: Mapping[str, Any], reference: Reference) -> None:
    """Refuse a manifest that `Writer` would not have written.

    Raises
    ------
    ValueError
        It is of another artifact, or of another form; the message names what.
    """
    try:
        found = Recipe.from_document(manifest).reference
    except (StoreError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"its recipe has another form: {_told(error)}") from error
    if found != reference:
        raise ValueError(f"it belongs to {found}, not to {reference}")
    for kind in ("arrays", "files"):
        if not isinstance(manifest.get(kind), dict):
            raise ValueError(f"it has no {kind}")
    for kind, check in (("arrays", _check_array), ("files", _check_file)):
        for name, entry in manifest[kind].items():
            try:
                check_name(name, nested=kind == "files")
                check(entry)
            except (StoreError, KeyError, TypeError, ValueError, AttributeError) as error:
                raise ValueError(f"{kind[:-1]} {name!r}: {_told(error)}") from error


def check_run(run: Mapping[str, Any]) -> None:
    """Refuse a ``run.json`` that `Writer` would not have written.

    Raises
    ------
    ValueError
        It has another form; the message names the entry.
    """
    kinds = {
        "started": str,
        "seconds": (int, float),
        "notes": dict,
        "metadata_sha256": dict,
        "in_blocks": list,
        "block_notes": dict,
    }
    for name, kind in kinds.items():
        if not isinstance(run.get(name), kind):  # type: ignore[arg-type]
            raise ValueError(f"its {name!r} is of another form")


def _check_array(entry: Any) -> None:
    if not isinstance(entry["sha256"], str):
        raise ValueError("it has no sha256")
    layout = Layout.from_entry(entry)
    if list(layout.chunks) != entry["chunks"]:
        raise ValueError(f"its chunks are {entry['chunks']}, not {list(layout.chunks)}")


def _check_file(entry: Any) -> None:
    if not isinstance(entry["sha256"], str) or not isinstance(entry["bytes"], int):
        raise ValueError("it has no sha256 or no size")


def _told(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)

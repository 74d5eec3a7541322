"""The inventory of an artifact in a remote: its manifest, and size and sha256 of every file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from storage.artifact import MANIFEST, Artifact
from storage.errors import DamagedArtifactError
from storage.files import sealed, sha256_of_file, unsealed
from storage.form import check_manifest
from storage.recipe import Reference, canonical_json
from storage.verification import file_names

_FOLDER_LENGTH = 16  # hexadecimal digits


class FileEntry(NamedTuple):
    """One file: its sha256 and its size in bytes."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class Inventory:
    """The files of an artifact, as one machine published them.

    Another machine may publish the same recipe with other bytes: ``run.json`` holds its own
    times, and another device or library may round differently. Then `folder` differs, so that the
    files of two machines are never mixed.

    Parameters
    ----------
    manifest : dict
        Content of ``manifest.json``, without its digest.
    files : dict of str to FileEntry
        All others, by name from the artifact's folder, ``/`` between folders.
    """

    manifest: dict[str, Any]
    files: dict[str, FileEntry]

    @classmethod
    def of(cls, artifact: Artifact) -> Inventory:
        """Return the inventory of an artifact here; reads every file for its digest."""
        names = sorted(_names(artifact.manifest))
        files = {name: FileEntry(*sha256_of_file(artifact.path / name)) for name in names}
        return cls(artifact.manifest, files)

    @classmethod
    def parse(cls, data: bytes, reference: Reference, place: str, hint: str) -> Inventory:
        """Return the inventory that `document` wrote; `place` and `hint` are for the error.

        Raises
        ------
        DamagedArtifactError
            It was altered, or it belongs to another artifact.
        """
        manifest = unsealed(data, place, hint)
        try:
            stored: Mapping[str, Any] = manifest.pop("stored")
            files = {
                name: FileEntry(str(e["sha256"]), int(e["bytes"])) for name, e in stored.items()
            }
            check_manifest(manifest, reference)
            belongs = set(files) == _names(manifest)
        except (KeyError, TypeError, ValueError, AttributeError):
            belongs = False
        if not belongs:
            raise DamagedArtifactError(f"{place} does not describe {reference}. {hint}")
        return cls(manifest, files)

    def document(self) -> bytes:
        """Return it as JSON that carries its own digest."""
        return sealed({**self.manifest, "stored": self._stored()})

    @property
    def folder(self) -> str:
        """Name of the folder with the files: a digest of every byte of them."""
        text = canonical_json(self._stored())
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:_FOLDER_LENGTH]

    @property
    def inputs(self) -> list[Reference]:
        """The artifacts it was made from."""
        return [Reference.parse(text) for text in self.manifest["inputs"].values()]

    @property
    def n_bytes(self) -> int:
        """Bytes of all files."""
        return sum(entry.n_bytes for entry in self.files.values())

    def _stored(self) -> dict[str, dict[str, Any]]:
        return {name: {"sha256": e.sha256, "bytes": e.n_bytes} for name, e in self.files.items()}


def _names(manifest: Mapping[str, Any]) -> set[str]:
    return file_names(manifest) - {MANIFEST}

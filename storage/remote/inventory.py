"""What a remote keeps of an artifact: its manifest, and every other file by size and sha256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from storage.artifact import MANIFEST, Artifact
from storage.errors import DamagedArtifactError, RecipeError
from storage.files import sealed, sha256_of_file, unsealed
from storage.recipe import Recipe, Reference, canonical_json
from storage.verification import file_names

_FOLDER_LENGTH = 16  # hexadecimal digits


class Entry(NamedTuple):
    """One file: its sha256 and its size in bytes."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class Inventory:
    """The files of an artifact, as one machine published them.

    Another machine may publish the same recipe with other bytes: ``run.json`` tells its own
    times, and another device or library may round differently. `folder` differs then, so that
    files of two origins never stand for one artifact.

    Parameters
    ----------
    manifest : dict
        What is in ``manifest.json``, without its digest.
    files : dict of str to Entry
        All others, by name from the artifact's folder, ``/`` between folders.
    """

    manifest: dict[str, Any]
    files: dict[str, Entry]

    @classmethod
    def of(cls, artifact: Artifact) -> Inventory:
        """Read every file of an artifact here, to tell its digest."""
        names = sorted(_names(artifact.manifest))
        files = {name: Entry(*sha256_of_file(artifact.path / name)) for name in names}
        return cls(artifact.manifest, files)

    @classmethod
    def parse(cls, data: bytes, reference: Reference, place: str, hint: str) -> Inventory:
        """Return what `document` gave; `place` and `hint` are for the error.

        Raises
        ------
        DamagedArtifactError
            It is not as it was written, or it is that of another artifact.
        """
        manifest = unsealed(data, place, hint)
        try:
            stored: Mapping[str, Any] = manifest.pop("stored")
            files = {name: Entry(str(e["sha256"]), int(e["bytes"])) for name, e in stored.items()}
            found = Recipe.from_document(manifest).reference
            belongs = found == reference and set(files) == _names(manifest)
        except (KeyError, TypeError, ValueError, AttributeError, RecipeError):
            belongs = False
        if not belongs:
            raise DamagedArtifactError(f"{place} does not describe {reference}. {hint}")
        return cls(manifest, files)

    def document(self) -> bytes:
        """Return it as JSON that carries its own digest."""
        return sealed({**self.manifest, "stored": self._stored()})

    @property
    def folder(self) -> str:
        """Name of the folder that keeps them: it follows from every byte of them."""
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

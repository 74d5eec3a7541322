"""Reading a published artifact; nothing is returned that does not match its digest."""

from __future__ import annotations

import builtins
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.blocks import METADATA, Layout, StoredArray, array_folder, raw_bytes
from storage.errors import DamagedArtifactError
from storage.files import check_name, read_checked, sha256_of_file, unseal
from storage.form import check_manifest, check_run
from storage.recipe import Recipe, Reference

MANIFEST = "manifest.json"
RUN = "run.json"


def contents(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arrays and files in a manifest, without how arrays are cut into chunks."""
    arrays = {
        name: {key: value for key, value in entry.items() if key != "chunks"}
        for name, entry in manifest["arrays"].items()
    }
    return {"arrays": arrays, "files": dict(manifest["files"])}


class Artifact:
    """A published artifact: named arrays and files, and what they were made from.

    Reading needs no write permission. Everything is read on demand.

    Parameters
    ----------
    reference : Reference
        Its address.
    path : Path
        Its folder.
    """

    def __init__(self, reference: Reference, path: Path) -> None:
        self.reference, self.path = reference, path

    def __repr__(self) -> str:
        return f"Artifact({str(self.reference)!r})"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of ``manifest.json``; `DamagedArtifactError` if it is damaged."""
        manifest = unseal(self.path / MANIFEST, self.hint)
        try:
            check_manifest(manifest, self.reference)
        except ValueError as error:
            raise DamagedArtifactError(f"{self.path / MANIFEST}: {error}. {self.hint}") from error
        return manifest

    @cached_property
    def run(self) -> dict[str, Any]:
        """The content of ``run.json``: start, seconds, peak memory, host, notes."""
        run = unseal(self.path / RUN, self.hint)
        try:
            check_run(run)
        except ValueError as error:
            raise DamagedArtifactError(f"{self.path / RUN}: {error}. {self.hint}") from error
        return run

    @property
    def hint(self) -> str:
        """How to repair it."""
        return (
            "Repair it with 'cppcl store verify --repair' and a run, or make it anew "
            f"with 'cppcl run EXPERIMENT --force {self.reference.stage}'."
        )

    @property
    def recipe(self) -> Recipe:
        """The recipe it was made from."""
        return Recipe.from_document(self.manifest)

    @property
    def version(self) -> str:
        """Code version of the stage."""
        return str(self.manifest["version"])

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the stage, as plain JSON."""
        return dict(self.manifest["parameters"])

    @property
    def inputs(self) -> dict[str, Reference]:
        """The artifacts it was made from, by role."""
        return {name: Reference.parse(text) for name, text in self.manifest["inputs"].items()}

    @property
    def names(self) -> list[str]:
        """Names of its arrays and files, sorted."""
        return sorted([*self.manifest["arrays"], *self.manifest["files"]])

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an array, without reading it."""
        return self._layout(name).shape

    def dtype(self, name: str) -> np.dtype[Any]:
        """Dtype of an array, without reading it."""
        return np.dtype(self._layout(name).dtype)

    def rows_per_block(self, name: str) -> int:
        """Rows of every block of an array but the last."""
        return self._layout(name).rows_per_block

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return a whole array, checked by crc32c, completeness and sha256.

        Raises
        ------
        DamagedArtifactError
            The message names array, block, chunk file and a hint.
        KeyError
            There is no such array.
        """
        values = self._stored(name).read()
        if hashlib.sha256(raw_bytes(values)).hexdigest() != self._entry("arrays", name)["sha256"]:
            raise DamagedArtifactError(
                f"array {name!r} in {array_folder(self.path, name)}: every chunk decodes, but the "
                f"values are not those that were published (sha256). {self.hint}"
            )
        return values

    def rows(
        self, name: str, rows: slice | Sequence[int] | npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[Any]:
        """Return some rows of an array, reading only the blocks that hold them.

        Parameters
        ----------
        name : str
            Name of the array.
        rows : slice or (k,) integers
            Row numbers in any order, negative from the end; repeats are allowed.

        Returns
        -------
        ndarray of shape (k, ...)
            Checked by crc32c and for missing chunks.
        """
        n_rows = self.shape(name)[0]
        if isinstance(rows, slice):
            numbers = np.arange(*rows.indices(n_rows), dtype=np.int64)
        else:
            given = np.asarray(rows)
            if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
                raise IndexError(
                    f"rows of {name!r} must be a slice or a list of integers, not {given.dtype} "
                    f"of shape {given.shape}"
                )
            numbers = given.astype(np.int64)
        numbers = np.where(numbers < 0, numbers + n_rows, numbers)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < n_rows):
            raise IndexError(f"array {name!r} has {n_rows} rows: row numbers must be within them")
        return self._stored(name).read_rows(numbers)

    def json(self, name: str) -> Any:
        """Return a JSON file, checked by sha256."""
        return json.loads(self.bytes(name))

    def text(self, name: str) -> str:
        """Return a text file (UTF-8), checked by sha256."""
        return self.bytes(name).decode("utf-8")

    def bytes(self, name: str) -> builtins.bytes:
        """Return a file's bytes, checked by sha256.

        Raises
        ------
        DamagedArtifactError
            The file is missing or altered.
        KeyError
            There is no such file.
        """
        entry, path = self._entry("files", name), self.file_path(name)
        data = read_checked(path, self.hint)
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise DamagedArtifactError(f"file {name!r}: {path} was altered. {self.hint}")
        return data

    def file_path(self, name: str) -> Path:
        """Return where a file lies, for programs that open it themselves (unchecked)."""
        self._entry("files", name)
        return self.path / "files" / check_name(name, nested=True)

    def _entry(self, kind: str, name: str) -> Mapping[str, Any]:
        entries: Mapping[str, Mapping[str, Any]] = self.manifest[kind]
        if name not in entries:
            raise KeyError(f"{self.reference} has no {kind[:-1]} {name!r}, only {sorted(entries)}")
        return entries[name]

    def _layout(self, name: str) -> Layout:
        return Layout.from_entry(self._entry("arrays", name))

    def _stored(self, name: str) -> StoredArray:
        layout = self._layout(name)
        folder = array_folder(self.path, name)
        metadata = folder / METADATA
        expected = self.run["metadata_sha256"].get(name)
        if not metadata.is_file() or sha256_of_file(metadata)[0] != expected:
            raise DamagedArtifactError(f"array {name!r}: {metadata} was altered. {self.hint}")
        return StoredArray(folder, layout, self.hint)

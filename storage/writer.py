"""Writing an artifact into its ``.partial`` folder, and sealing it before it is published."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import resource
import shutil
import sys
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.artifact import MANIFEST, RUN
from storage.blocks import METADATA, Layout, StoredArray, array_folder, note_folder
from storage.checkpoint import load_checkpoint, save_checkpoint
from storage.errors import BlockError, DamagedArtifactError
from storage.files import (
    check_name,
    explained,
    pretty_json,
    sealed,
    sha256_of_file,
    write_atomically,
)
from storage.recipe import Recipe, plain

RECIPE = "recipe.json"
# Import name and distribution of what may change a result; recorded when loaded.
_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "PIL": "pillow",
    "torch": "torch",
    "torchvision": "torchvision",
    "zarr": "zarr",
    "numcodecs": "numcodecs",
}


class Writer:
    """Writes one artifact; `Store.get_or_create` makes it and hands it to `create`.

    What an interrupted call left in `path` is still there: arrays that are declared again with
    the same shape, dtype and blocks keep their blocks, and whatever this call of `create` does
    not name is left out of the artifact.

    Attributes
    ----------
    path : Path
        The folder to pass to `write_block` on other processes.
    """

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.recipe = recipe
        self._arrays: dict[str, Layout] = {}
        self._files: set[str] = set()
        self._notes: dict[str, Any] = {}
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()
        self._resumed = path.exists()
        write_atomically(path / RECIPE, pretty_json(recipe.document(), RECIPE))

    def array(
        self, name: str, *, shape: tuple[int, ...], dtype: npt.DTypeLike, rows_per_block: int
    ) -> None:
        """Declare an array to be filled by `write_block`, in any order and any processes.

        Parameters
        ----------
        name : str
            Letters, digits, ``_``, ``-`` and ``.``.
        shape : tuple of int
            Of the whole array; the first dimension is cut into blocks and may be 0.
        dtype : dtype
            Boolean, integer or floating.
        rows_per_block : int
            Rows of every block but the last.

        Raises
        ------
        BlockError
            Shape, dtype or rows_per_block cannot be stored.
        """
        self._declare(name, Layout.declare(name, shape, dtype, rows_per_block), keep_blocks=True)

    def pending_blocks(self, name: str) -> list[int]:
        """Return the numbers of the blocks that are not written yet, in order."""
        return self._stored(name).pending()

    def n_blocks(self, name: str) -> int:
        """Return the number of blocks of a declared array."""
        return self._stored(name).layout.n_blocks

    def put_array(
        self, name: str, values: npt.NDArray[Any], *, rows_per_block: int | None = None
    ) -> None:
        """Write a whole array from this process.

        Parameters
        ----------
        name : str
            Letters, digits, ``_``, ``-`` and ``.``.
        values : ndarray of one dimension or more
            Boolean, integer or floating.
        rows_per_block : int, optional
            Rows that are compressed, checked and read together; about 4 MiB by default.
        """
        values = np.asarray(values)
        layout = Layout.declare(name, values.shape, values.dtype, rows_per_block)
        self._declare(name, layout, keep_blocks=False)
        self._stored(name).fill(values)

    def put_json(self, name: str, value: Any) -> None:
        """Write a JSON file, keys in the order given; NumPy scalars and tuples are converted."""
        self.put_bytes(name, pretty_json(value, name))

    def put_text(self, name: str, text: str) -> None:
        """Write a text file in UTF-8."""
        self.put_bytes(name, text.encode("utf-8"))

    def put_bytes(self, name: str, data: bytes) -> None:
        """Write a file; `name` may have folders in it, separated by ``/``."""
        write_atomically(self.path / "files" / check_name(name, nested=True), data)
        self._files.add(name)

    def block_notes(self, name: str) -> dict[int, Any]:
        """Return what `write_block_note` left beside the blocks of an array, by block."""
        paths = note_folder(self.path, name).glob("[0-9]*.json")
        notes = {int(path.stem): json.loads(path.read_bytes()) for path in paths}
        return dict(sorted(notes.items()))

    def save_checkpoint(self, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays for the case that this process is killed; they are not published.

        Parameters
        ----------
        name : str
            Letters, digits, ``_``, ``-`` and ``.``; replaces an earlier one of this name.
        arrays : dict of str to ndarray
            Boolean, integer, floating or text; no objects.
        """
        save_checkpoint(self.path, name, arrays)

    def load_checkpoint(self, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return what an interrupted call saved last, or None."""
        return load_checkpoint(self.path, name)

    def note(self, **values: Any) -> None:
        """Add to the notes of ``run.json``: what may differ from run to run."""
        self._notes.update(plain(values, "note"))

    def seal(self) -> None:
        """Check every block, leave out what is left over, write ``run.json`` and the manifest.

        Raises
        ------
        BlockError
            A block was never written.
        DamagedArtifactError
            A block no longer matches its crc32c. Its file is removed, so that the next run makes
            only that block again.
        """
        entries = {name: self._seal_array(name) for name in sorted(self._arrays)}
        with explained(self.path):
            self._remove_leftovers()
        files = {}
        for name in sorted(self._files):
            digest, size = sha256_of_file(self.path / "files" / name)
            files[name] = {"sha256": digest, "bytes": size}
        write_atomically(self.path / RUN, sealed(self._run_document()))
        manifest = {**self.recipe.document(), "arrays": entries, "files": files}
        write_atomically(self.path / MANIFEST, sealed(manifest))
        (self.path / RECIPE).unlink()

    def _declare(self, name: str, layout: Layout, *, keep_blocks: bool) -> None:
        folder = array_folder(self.path, name)
        if name in self._arrays:
            raise BlockError(f"array {name!r} was already declared in this artifact")
        fresh = folder.with_name(f".{name}.{uuid.uuid4().hex}")
        StoredArray.create(fresh, layout)
        with explained(folder):
            # Equal metadata, byte for byte: the blocks there are blocks of this very array.
            if keep_blocks and _same_bytes(folder / METADATA, fresh / METADATA):
                shutil.rmtree(fresh)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(note_folder(self.path, name), ignore_errors=True)
                fresh.rename(folder)
        self._arrays[name] = layout

    def _stored(self, name: str) -> StoredArray:
        if name not in self._arrays:
            raise BlockError(f"array {name!r} was not declared: call Writer.array first")
        mend = "Run again: only the damaged blocks are made anew."
        return StoredArray(array_folder(self.path, name), self._arrays[name], mend)

    def _seal_array(self, name: str) -> dict[str, Any]:
        stored = self._stored(name)
        if pending := stored.pending():
            raise BlockError(
                f"array {name!r} cannot be published: {len(pending)} of {stored.layout.n_blocks} "
                f"blocks were not written, the first is block {pending[0]}"
            )
        digest, damage = stored.digest()
        if damage:
            for block in damage:
                (stored.folder / stored.layout.chunk_name(block)).unlink(missing_ok=True)
            raise DamagedArtifactError("\n".join(damage.values()))
        layout = stored.layout
        return {
            "shape": layout.shape,
            "dtype": layout.dtype,
            "chunks": layout.chunks,
            "sha256": digest,
        }

    def _remove_leftovers(self) -> None:
        wanted = {self.path / "files" / name for name in self._files}
        for name, layout in self._arrays.items():
            folder = array_folder(self.path, name)
            wanted.add(folder / METADATA)
            wanted.update(folder / layout.chunk_name(b) for b in range(layout.n_blocks))
        wanted.add(self.path / RECIPE)
        folders = set()
        for path in self.path.rglob("*"):
            if path.is_dir():
                folders.add(path)
            elif path not in wanted:
                path.unlink()
        for folder in sorted(folders, reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()

    def _run_document(self) -> dict[str, Any]:
        metadata = {n: array_folder(self.path, n) / METADATA for n in sorted(self._arrays)}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        loaded = {n: d for n, d in sorted(_LIBRARIES.items()) if n in sys.modules}
        return {
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._clock, 3),
            "resumed": self._resumed,
            "peak_memory_bytes": peak if sys.platform == "darwin" else peak * 1024,
            "host": platform.node(),
            "python": platform.python_version(),
            "libraries": {d: importlib.metadata.version(d) for d in loaded.values()},
            "notes": self._notes,
            "metadata_sha256": {n: sha256_of_file(path)[0] for n, path in metadata.items()},
        }


def _same_bytes(first: Path, second: Path) -> bool:
    return first.is_file() and first.read_bytes() == second.read_bytes()

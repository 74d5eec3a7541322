"""Writing an artifact into its ``.partial`` folder, and sealing it before it is published."""

from __future__ import annotations

import importlib.metadata
import platform
import resource
import shutil
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.artifact import MANIFEST, RUN
from storage.blocks import METADATA, Layout, StoredArray, array_folder
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
from storage.repair import compared
from storage.unfinished import (
    has_note,
    load_checkpoint,
    note_folder,
    noted_blocks,
    read_note,
    save_checkpoint,
)
from storage.verification import remove_strays

RECIPE = "recipe.json"
# Import name and distribution of libraries that may change a result; recorded if loaded.
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

    The work of an interrupted call is still in `path`: arrays that are declared again with the
    same shape, dtype and blocks keep their blocks. Whatever this call of `create` does not name
    is left out of the artifact.

    Attributes
    ----------
    path : Path
        The folder to pass to `write_block` on other processes.
    """

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.recipe = recipe
        self._arrays: dict[str, Layout] = {}
        self._in_blocks: set[str] = set()
        self._files: set[str] = set()
        self._noted: dict[str, range] = {}
        self._block_notes: dict[str, dict[int, Any]] = {}
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
        self._in_blocks.add(name)

    def pending_blocks(self, *names: str, notes: Sequence[str] = ()) -> list[int]:
        """Return the numbers of the blocks that are still to be written, in order.

        Parameters
        ----------
        *names : str
            Arrays with the same blocks; a block that one of them lacks is written to all.
        notes : sequence of str
            Names of the notes that every block has, written before its chunks. If a block lacks
            one, its chunks are removed, so that its next note never describes old chunks.
        """
        pending = {block for name in names for block in self._stored(name).pending()}
        blocks = range(max(map(self.n_blocks, names)))
        self._noted |= dict.fromkeys(notes, blocks)
        for block in blocks:
            if block not in pending and not all(has_note(self.path, n, block) for n in notes):
                pending.add(block)
                for name in names:
                    self._stored(name).remove(block)
        return sorted(pending)

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
        """Return the notes of this name (see `write_block_note`) by block; each is read once.

        Every block must have one if `pending_blocks` was given this name.

        Raises
        ------
        DamagedArtifactError
            A note is missing or altered.
        """
        read = self._block_notes.setdefault(name, {})
        for block in self._noted.get(name) or noted_blocks(self.path, name):
            if block not in read:
                read[block] = read_note(self.path, name, block)
        return dict(sorted(read.items()))

    def save_checkpoint(self, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays in case this process is killed; they are not published.

        Parameters
        ----------
        name : str
            Letters, digits, ``_``, ``-`` and ``.``; replaces an earlier one of this name.
        arrays : dict of str to ndarray
            Boolean, integer, floating or text; no objects.
        """
        save_checkpoint(self.path, name, arrays)

    def load_checkpoint(self, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays that an interrupted call saved last, or None."""
        return load_checkpoint(self.path, name)

    def note(self, **values: Any) -> None:
        """Add to the notes of ``run.json``, which may differ from run to run."""
        self._notes.update(plain(values, "note"))

    def seal(self) -> None:
        """Check every block, write ``run.json`` and the manifest, remove all other files.

        Raises
        ------
        BlockError
            A block was never written.
        DamagedArtifactError
            A block does not match its crc32c. Its file is removed, so that the next run makes
            only that block again.
        """
        entries = {name: self._seal_array(name) for name in sorted(self._arrays)}
        files = {}
        for name in sorted(self._files):
            digest, size = sha256_of_file(self.path / "files" / name)
            files[name] = {"sha256": digest, "bytes": size}
        run = self._run_document()
        if repaired := compared(self.path, entries, files):
            run["repaired"] = repaired
        manifest = {**self.recipe.document(), "arrays": entries, "files": files}
        write_atomically(self.path / RUN, sealed(run))
        # Nothing that a killed call would need is removed before this: see `finish_sealed`.
        write_atomically(self.path / MANIFEST, sealed(manifest))
        with explained(self.path):
            remove_strays(self.path, manifest)

    def _declare(self, name: str, layout: Layout, *, keep_blocks: bool) -> None:
        folder = array_folder(self.path, name)
        if name in self._arrays:
            raise BlockError(f"array {name!r} was already declared in this artifact")
        fresh = folder.with_name(f".{name}.{uuid.uuid4().hex}")
        StoredArray.create(fresh, layout)
        with explained(folder):
            # Metadata equal byte for byte: the blocks there belong to this very array.
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
        hint = "Run again: only the damaged blocks are made anew."
        return StoredArray(array_folder(self.path, name), self._arrays[name], hint)

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
                stored.remove(block)
            raise DamagedArtifactError("\n".join(damage.values()))
        layout = stored.layout
        return {
            "shape": layout.shape,
            "dtype": layout.dtype,
            "chunks": layout.chunks,
            "sha256": digest,
        }

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
            "in_blocks": sorted(self._in_blocks),
            "block_notes": {
                name: {str(block): note for block, note in self.block_notes(name).items()}
                for name in sorted({*self._noted, *self._block_notes})
            },
            "metadata_sha256": {n: sha256_of_file(path)[0] for n, path in metadata.items()},
        }


def _same_bytes(first: Path, second: Path) -> bool:
    return first.is_file() and first.read_bytes() == second.read_bytes()

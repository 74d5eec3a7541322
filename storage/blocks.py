"""Arrays cut into blocks of whole rows, each one Zarr chunk file: the only code that knows Zarr.

One process writes a whole block, and its file appears in one step. Chunks carry a crc32c, which
Zarr's default codecs do not add. Any Zarr 3 library can read the arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.errors import BlockError, DamagedArtifactError, StoreError
from storage.files import check_name, explained, is_damage, read_regular, write_atomically

METADATA = "zarr.json"
DEFAULT_BLOCK_BYTES = 2**22
_LARGEST_BLOCK_BYTES = 2**28  # so that reading one is bounded in memory
_MOST_BLOCKS = 2**20
_LARGEST_METADATA = 2**20
_ZSTD_LEVEL = 1
_FRAME_BYTES = 2**10
_READERS = 4
_AHEAD_BYTES = 2**21
_CODECS = ["bytes", "zstd", "crc32c"]
_NO_ARRAY = (LookupError, ValueError, TypeError, AttributeError, RecursionError)
_DTYPES = frozenset(f"{k}int{n}" for k in ("", "u") for n in (8, 16, 32, 64)) | {
    "bool",
    "float16",
    "float32",
    "float64",
}


@dataclass(frozen=True)
class Layout:
    """Shape, dtype and block height of a stored array.

    Parameters
    ----------
    shape : tuple of int
        One dimension or more; the first is cut into blocks.
    dtype : str
        NumPy name of a boolean, integer or floating type, such as ``float32``.
    rows_per_block : int
        Rows of every block but the last, which may be shorter.
    """

    shape: tuple[int, ...]
    dtype: str
    rows_per_block: int

    @classmethod
    def declare(
        cls, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike, rows_per_block: int | None
    ) -> Layout:
        """Check what a caller asks for; without `rows_per_block`, blocks of about 4 MiB."""
        kind = np.dtype(dtype)
        if kind.kind not in "biuf" or kind.itemsize > 8:
            raise BlockError(
                f"array {name!r} has dtype {kind}: use bool, an integer, float32 or float64"
            )
        extents = tuple(int(extent) for extent in shape)
        if not extents or min(extents) < 0:
            raise BlockError(f"array {name!r} has shape {shape}: give at least one dimension")
        row_bytes = max(1, math.prod(extents[1:]) * kind.itemsize)
        if rows_per_block is None:
            rows_per_block = max(1, DEFAULT_BLOCK_BYTES // row_bytes)
        rows_per_block = min(int(rows_per_block), max(1, extents[0]))  # chunks are padded
        if rows_per_block < 1 or rows_per_block * row_bytes > _LARGEST_BLOCK_BYTES:
            raise BlockError(
                f"array {name!r}: rows_per_block is {rows_per_block}, of {row_bytes} bytes each; "
                f"give at least 1 row and at most {_LARGEST_BLOCK_BYTES} bytes"
            )
        layout = cls(extents, kind.name, rows_per_block)
        if layout.n_blocks > _MOST_BLOCKS:
            raise BlockError(
                f"array {name!r} of shape {extents} has {layout.n_blocks} blocks of "
                f"{rows_per_block} rows; use more rows, for at most {_MOST_BLOCKS} blocks"
            )
        return layout

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Layout:
        """Return the layout in an array's entry of ``manifest.json``.

        Raises
        ------
        BlockError
            It is none that `declare` returns.
        """
        shape, dtype, rows = tuple(entry["shape"]), entry["dtype"], entry["chunks"][0]
        whole = all(type(extent) is int and 0 <= extent < 2**63 for extent in (*shape, rows))
        if not whole or not rows or dtype not in _DTYPES:
            raise BlockError(f"shape {shape} of {dtype!r} in blocks of {rows} rows is no layout")
        return cls.declare("", shape, dtype, rows)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of a chunk: whole rows."""
        return (self.rows_per_block, *(max(1, extent) for extent in self.shape[1:]))

    @property
    def n_blocks(self) -> int:
        """Number of blocks; none if the array has no elements."""
        return -(-self.shape[0] // self.rows_per_block) if math.prod(self.shape) else 0

    def rows(self, block: int) -> slice:
        """Rows of a block."""
        if not 0 <= block < self.n_blocks:
            raise BlockError(f"block {block} is not one of the {self.n_blocks} blocks")
        start = block * self.rows_per_block
        return slice(start, min(start + self.rows_per_block, self.shape[0]))

    def chunk_name(self, block: int) -> str:
        """File name of the chunk that holds a block."""
        return ".".join(["c", str(block)] + ["0"] * (len(self.shape) - 1))


class StoredArray:
    """One array below ``arrays/`` of an artifact or of one being written.

    Parameters
    ----------
    folder : Path
        The array's own folder.
    layout : Layout
        What was declared.
    hint : str
        How to repair it, for errors that report damage.
    """

    def __init__(self, folder: Path, layout: Layout, hint: str) -> None:
        self.folder, self.layout, self.hint = folder, layout, hint
        self._checked = False

    @classmethod
    def create(cls, folder: Path, layout: Layout) -> None:
        """Write the Zarr metadata of an array without blocks; `folder` must not exist yet."""
        import zarr
        from zarr.codecs import Crc32cCodec, ZstdCodec

        with explained(folder):
            zarr.create_array(
                store=folder,
                shape=layout.shape,
                dtype=layout.dtype,
                chunks=layout.chunks,
                compressors=[ZstdCodec(level=_ZSTD_LEVEL), Crc32cCodec()],
                filters=None,
                fill_value=0,
                chunk_key_encoding={"name": "default", "separator": "."},
            )

    def fill(self, values: npt.NDArray[Any]) -> None:
        """Write all blocks of an array that is being written."""
        values = values.astype(self.layout.dtype, copy=False)
        for block in range(self.layout.n_blocks):
            self.write_block(block, values[self.layout.rows(block)])

    def write_block(self, block: int, values: npt.NDArray[Any]) -> None:
        """Write one block of an array that is being written."""
        chunk = self.folder / self.layout.chunk_name(block)
        # A worker that was given up may write after the folder was renamed: do not make it again.
        write_atomically(chunk, _encoded(values, self.layout), make_folder=False)

    def remove(self, block: int) -> None:
        """Remove the chunk file of a block, if there is one."""
        with explained(self.folder):
            (self.folder / self.layout.chunk_name(block)).unlink(missing_ok=True)

    def pending(self) -> list[int]:
        """Return the blocks that have no chunk file yet (or an empty one), in order."""
        sizes = {path.name: path.stat().st_size for path in self.folder.glob("c.*")}
        layout = self.layout
        return [b for b in range(layout.n_blocks) if not sizes.get(layout.chunk_name(b))]

    def read_block(self, block: int) -> npt.NDArray[Any]:
        """Return one block, checked against its crc32c.

        Raises
        ------
        DamagedArtifactError
            The chunk is missing or damaged; the message names its file.
        """
        self._check_metadata()
        chunk, rows = self.folder / self.layout.chunk_name(block), self.layout.rows(block)
        try:
            return _decoded(read_regular(chunk), self.layout)[: rows.stop - rows.start]
        except FileNotFoundError as error:
            raise DamagedArtifactError(
                f"{self._place(block)}: {chunk} is missing. {self.hint}"
            ) from error
        except Exception as error:  # each codec has errors of its own
            if not is_damage(error):
                raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DamagedArtifactError(
                f"{self._place(block)}: {chunk} cannot be decoded ({reason}). {self.hint}"
            ) from error

    def read(self) -> npt.NDArray[Any]:
        """Return the whole array, some blocks at a time into place."""
        values = np.empty(self.layout.shape, self.layout.dtype)
        for block, read in enumerate(self._reads()):
            values[self.layout.rows(block)] = read()
        return values

    def read_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return rows by number, in the order asked for, reading each block at most once."""
        values = np.empty((len(rows), *self.layout.shape[1:]), self.layout.dtype)
        if not values.size:
            return values
        blocks = rows // self.layout.rows_per_block
        order = np.argsort(blocks, kind="stable")
        wanted, starts = np.unique(blocks[order], return_index=True)
        for block, places in zip(wanted.tolist(), np.split(order, starts[1:]), strict=True):
            values[places] = self.read_block(block)[rows[places] - self.layout.rows(block).start]
        return values

    def digest(self) -> tuple[str, dict[int, str]]:
        """Return the sha256 of the raw values, and an error message for each damaged block.

        The digest is of the values in C order, little endian; it is meaningless if a block is
        damaged. At most one block, or 2 MiB, is in memory at a time.
        """
        digest = hashlib.sha256()
        damage: dict[int, str] = {}
        for block, read in enumerate(self._reads()):
            try:
                digest.update(raw_bytes(read()))
            except DamagedArtifactError as error:
                damage[block] = str(error)
        return digest.hexdigest(), damage

    def _reads(self) -> Iterator[Callable[[], npt.NDArray[Any]]]:
        """Yield, block by block, a function that returns it, while the next ones are being read.

        Disks and file servers answer several requests in about the time of one.
        """
        blocks = range(self.layout.n_blocks)
        bytes_of_block = math.prod(self.layout.chunks) * np.dtype(self.layout.dtype).itemsize
        at_once = min(_READERS, _AHEAD_BYTES // bytes_of_block, len(blocks))
        if at_once < 2:
            yield from (partial(self.read_block, block) for block in blocks)
            return
        with ThreadPoolExecutor(at_once, thread_name_prefix="blocks") as pool:
            waiting: deque[Future[npt.NDArray[Any]]] = deque()
            for block in blocks:
                waiting.append(pool.submit(self.read_block, block))
                if len(waiting) == at_once:
                    yield waiting.popleft().result
            while waiting:
                yield waiting.popleft().result

    def _check_metadata(self) -> None:
        """Raise an error, the first time, if ``zarr.json`` describes another array."""
        if self._checked:
            return
        try:
            agrees = _stored_layout(self.folder) == self.layout
        except (*_NO_ARRAY, OSError) as error:
            if not is_damage(error) and not isinstance(error, FileNotFoundError):
                raise
            agrees = False
        if not agrees:
            raise DamagedArtifactError(
                f"array {self.folder.name!r}: {self.folder / METADATA} does not describe the "
                f"array that was stored. {self.hint}"
            )
        self._checked = True

    def _place(self, block: int) -> str:
        rows = self.layout.rows(block)
        return f"array {self.folder.name!r}, block {block} (rows {rows.start} to {rows.stop - 1})"


def _stored_layout(folder: Path) -> Layout:
    """Return the layout in the Zarr metadata of an array that `StoredArray.create` made.

    Raises
    ------
    OSError
        There is no such array, or it cannot be read.
    `_NO_ARRAY`
        Its metadata have another form.
    """
    found = json.loads(read_regular(folder / METADATA, _LARGEST_METADATA))
    chunks = tuple(found["chunk_grid"]["configuration"]["chunk_shape"])
    layout = Layout(tuple(found["shape"]), np.dtype(found["data_type"]).name, chunks[0])
    codecs = [codec["name"] for codec in found["codecs"]]
    order = found["codecs"][0].get("configuration", {}).get("endian", "little")
    if (chunks, codecs, order) != (layout.chunks, _CODECS, "little"):
        raise ValueError(f"chunks {chunks}, codecs {codecs}, {order} endian")
    return layout


# Zarr itself takes half a millisecond to read a chunk and two to write one, however small: it goes
# to threads and back for each. So chunks are made and read by the codecs that Zarr uses too.


def _encoded(values: npt.NDArray[Any], layout: Layout) -> memoryview:
    """Return the chunk file of a block, whose rows may be fewer than a chunk has."""
    from numcodecs import CRC32C, Zstd

    chunk = values
    if len(values) < layout.rows_per_block:
        chunk = np.zeros(layout.chunks, layout.dtype)
        chunk[: len(values)] = values
    data: memoryview = CRC32C().encode(Zstd(level=_ZSTD_LEVEL).encode(raw_bytes(chunk))).data
    return data


def _decoded(data: bytes, layout: Layout) -> npt.NDArray[Any]:
    """Return the values in a chunk file."""
    from numcodecs import CRC32C, Zstd

    n_bytes = math.prod(layout.chunks) * np.dtype(layout.dtype).itemsize
    if len(data) > 2 * n_bytes + _FRAME_BYTES:
        raise ValueError(f"{len(data)} bytes for a block of {n_bytes}")
    frame = CRC32C().decode(data)
    if (declared := _content_size(frame)) != n_bytes:
        raise ValueError(f"its values take {declared} bytes, not {n_bytes}")
    raw = Zstd().decode(frame)
    return np.frombuffer(raw, np.dtype(layout.dtype).newbyteorder("<")).reshape(layout.chunks)


def _content_size(frame: Any) -> int | None:
    """Bytes that a Zstandard frame says that it decodes to; None where it does not say."""
    data = bytes(memoryview(frame)[:18])
    if len(data) < 6 or data[:4] != b"\x28\xb5\x2f\xfd":
        return None
    descriptor = data[4]
    single = bool(descriptor & 0x20)
    width = (int(single), 2, 4, 8)[descriptor >> 6]
    start = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[start : start + width], "little") + 256 * (width == 2)
    return size if width else None


def raw_bytes(values: npt.NDArray[Any]) -> memoryview:
    """Return the values in C order, little endian."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data


def array_folder(path: str | Path, name: str) -> Path:
    """Return the folder of array `name` below an artifact's folder."""
    return Path(path) / "arrays" / check_name(name)


def write_block(path: str | Path, name: str, block: int, values: npt.NDArray[Any]) -> None:
    """Write one whole block of an array that is being written. Runs in any process.

    Different blocks may be written at the same time; writing a block again replaces it.

    Parameters
    ----------
    path : str or Path
        `Writer.path` of the artifact being written.
    name : str
        Name given to `Writer.array`.
    block : int
        Number of the block: rows ``[block * rows_per_block, ...)``.
    values : ndarray
        Exactly the block's rows, in exactly the declared dtype.

    Raises
    ------
    BlockError
        There is no such array or block, or the values have another shape or dtype.
    StoreAccessError
        The disk is full or may not be written.
    """
    folder = array_folder(path, name)
    try:
        layout = _stored_layout(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BlockError(
            f"{folder} is not an array being written: call Writer.array first"
        ) from error
    except _NO_ARRAY as error:
        raise BlockError(
            f"{folder / METADATA} does not describe an array being written ({error}): run with "
            "--force"
        ) from error
    except OSError:
        with explained(folder):
            raise
    rows = layout.rows(block)
    expected = (rows.stop - rows.start, *layout.shape[1:])
    if values.shape != expected or values.dtype != np.dtype(layout.dtype):
        raise BlockError(
            f"block {block} of array {name!r} takes {layout.dtype} of shape {expected}, "
            f"but got {values.dtype} of shape {values.shape}"
        )
    StoredArray(folder, layout, "").write_block(block, values)


def read_zarr(path: str | Path) -> npt.NDArray[Any]:
    """Return a whole Zarr array from outside the store.

    Raises
    ------
    StoreError
        The folder is not a Zarr array.
    """
    import zarr

    try:
        array = zarr.open_array(str(path), mode="r")
        values = np.asarray(array[...])
    except Exception as error:  # zarr raises errors of many kinds for what is no array
        raise StoreError(
            f"{path} cannot be read as a Zarr array ({error}); give the folder of one array"
        ) from error
    return values

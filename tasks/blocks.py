"""Functions that run on Dask workers. They import the library and storage only."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.files import file_sha256
from cppcl.errors import DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.base import Extractor
from cppcl.images import read_sample
from storage import Reference, Store, write_block, write_block_note


@dataclass(frozen=True)
class ExtractorSpec:
    """What a worker needs to make an extractor.

    Attributes
    ----------
    name : str
        Its name in the registry.
    options : str
        Constructor arguments as JSON text, so that a worker can keep what it made.
    longest_side : int
        Pictures are reduced to this longest side, in pixels.
    """

    name: str
    options: str
    longest_side: int

    def make(self) -> Extractor:
        """Extractor of this process, made once."""
        return _extractor(self.name, self.options)


@lru_cache(maxsize=4)
def _extractor(name: str, options: str) -> Extractor:
    return make_extractor(name, json.loads(options))


@dataclass(frozen=True)
class Copy:
    """Rows of a block that an earlier artifact has: its reference, and rows here and there."""

    source: Reference
    rows: tuple[int, ...]
    source_rows: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """One block of rows to extract.

    Attributes
    ----------
    number : int
        Which block of the arrays.
    paths : tuple of str
        Files of its rows, relative to the root of the data set.
    digests : tuple of str
        What their sha256 was when the data set was fetched.
    copies : tuple of Copy
        Rows that earlier artifacts of the same extractor have.
    """

    number: int
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class BlockReport:
    """What became of a block: rows, how many failed, seconds on the worker."""

    number: int
    rows: int
    failed: int
    seconds: float


def extract_block(
    partial: str, block: Block, root: str, spec: ExtractorSpec, store: str
) -> BlockReport:
    """Extract one block and write it into the artifact that is being made.

    Writing the block again gives the same bytes, so that a block may be run more than once. The
    array ``ok`` is written last: its chunk says that the block is done.

    Parameters
    ----------
    partial : str
        Folder of the unfinished artifact.
    block : Block
        Rows to extract.
    root : str
        Folder that the paths are relative to.
    spec : ExtractorSpec
        What to extract.
    store : str
        Folder of the store, for rows that are copied.

    Raises
    ------
    DataUnavailableError
        If a file is gone, or another one, since the data set was fetched.
    """
    started = time.perf_counter()
    extractor = spec.make()
    n = len(block.paths)
    values = np.zeros((n, extractor.dimension), dtype=np.float32)
    ok = np.zeros(n, dtype=bool)
    for copy in block.copies:
        rows_here = list(copy.rows)
        values[rows_here] = (
            Store(store).open(copy.source).rows("features", np.array(copy.source_rows))
        )
        ok[rows_here] = True
    samples: list[NDArray[np.generic]] = []
    rows: list[int] = []
    failures: dict[str, str] = {}
    for row in np.flatnonzero(~ok):
        path = block.paths[row]
        try:
            samples.append(read_sample(Path(root), path, longest_side=spec.longest_side))
            rows.append(int(row))
        except InputError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                # Says nothing about the picture, so it must not be stored as its failure.
                raise DataUnavailableError(
                    f"{path} was in {root} when the data set was fetched, and is not there any "
                    "more; put it back and run again: finished blocks are kept"
                ) from error
            failures[path] = str(error)
        # Features of what it is now must not be stored, and found again, as of what it was.
        check_unchanged(Path(root), path, block.digests[row])
    for row, result in zip(rows, transform_each(extractor, samples), strict=True):
        path = block.paths[row]
        if isinstance(result, InputError):
            failures[path] = f"{path}: {result}"
        elif not np.isfinite(result).all():
            failures[path] = f"{path}: {spec.name} gives values that are not finite"
        else:
            values[row], ok[row] = result, True
    write_block(partial, "features", block.number, values)
    write_block_note(partial, "failures", block.number, failures)
    write_block(partial, "ok", block.number, ok)
    return BlockReport(block.number, n, len(failures), time.perf_counter() - started)


def check_unchanged(root: Path, path: str, digest: str) -> None:
    """Raise `DataUnavailableError` if a file is not what it was when the data set was fetched."""
    # Rows of a matrix, which are no files, lie in a folder that is named after their content.
    if (root / path).is_file() and file_sha256(root / path) != digest:
        raise DataUnavailableError(
            f"{path} in {root} has changed since the data set was fetched; run again when the "
            "pictures stay as they are"
        )


def transform_each(
    extractor: Extractor, samples: list[NDArray[np.generic]]
) -> list[NDArray[np.float32] | InputError]:
    """Features of every sample, or the error of each that the extractor refuses.

    A batch that is refused is halved until the samples at fault stand alone.
    """
    if not samples:
        return []
    try:
        return list(extractor.transform(samples))  # type: ignore[arg-type]
    except InputError as error:
        if len(samples) == 1:
            return [error]
    half = len(samples) // 2
    return transform_each(extractor, samples[:half]) + transform_each(extractor, samples[half:])

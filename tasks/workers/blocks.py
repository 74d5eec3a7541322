"""Functions that run on Dask workers. They import the library and storage only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.obtaining.files import file_sha256
from cppcl.errors import CppclError, DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.base import Extractor, Picture
from cppcl.pictures.decoding import read_sample
from storage import Reference, Store, write_block, write_block_note
from tasks.workers.memory import peak_memory


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
    learned : Reference or None
        A `learn` artifact, of an extractor that learns.
    """

    name: str
    options: str
    longest_side: int
    learned: Reference | None = None

    def make(self, store: str) -> Extractor:
        """Extractor of this process, made once.

        Parameters
        ----------
        store : str
            Folder of the store, for what it learned.

        Raises
        ------
        InputError
            What was learned belongs to other options.
        """
        return _extractor(self.name, self.options, self.learned, store)


@lru_cache(maxsize=4)
def _extractor(name: str, options: str, learned: Reference | None, store: str) -> Extractor:
    extractor = make_extractor(name, json.loads(options))
    if learned is None:
        return extractor
    artifact = Store(store).open(learned)
    names = [n.removeprefix(LEARNED) for n in artifact.names if n.startswith(LEARNED)]
    return extractor.from_arrays({n: artifact.array(LEARNED + n) for n in names})


LEARNED = "learned."
"""Prefix of the arrays of a `learn` artifact."""
NOTE = "rows"
"""What `write_results` notes beside a block."""


@dataclass
class TrainingPictures:
    """Pictures to learn from; each pass over them decodes them anew, one at a time.

    Attributes
    ----------
    root : str
        Folder that the paths are relative to.
    paths, digests : tuple of str
        Files, and what their sha256 was when the data set was fetched.
    longest_side : int
        Pictures are reduced to this longest side, in pixels.
    failures : dict of str to str
        Files that cannot be read and were passed over, with the reason.
    """

    root: str
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    longest_side: int
    failures: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Picture]:
        for path, digest in zip(self.paths, self.digests, strict=True):
            sample = read_unchanged(self.root, path, digest, self.longest_side)
            if isinstance(sample, InputError):
                self.failures[path] = str(sample)
            else:
                yield sample


@dataclass(frozen=True)
class Learned:
    """What an extractor learned, by name, and the pictures that it could not learn from."""

    arrays: dict[str, NDArray[Any]]
    failures: dict[str, str]


def learn_from(pictures: TrainingPictures, spec: ExtractorSpec) -> Learned:
    """Fit an extractor; the one that this process extracts with stays as it is."""
    extractor = make_extractor(spec.name, json.loads(spec.options)).fit(pictures)
    return Learned(extractor.to_arrays(), pictures.failures)


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
    """What became of a block.

    Attributes
    ----------
    number : int
        Which block of the arrays.
    rows, failed : int
        Its rows, and how many could not be used.
    seconds : float
        Time on the worker.
    worker : str
        Name of the worker.
    peak_memory_bytes : int
        Largest resident memory of the worker so far.
    deaths : int
        Workers that died at its pictures.
    """

    number: int
    rows: int
    failed: int
    seconds: float
    worker: str = "here"
    peak_memory_bytes: int = 0
    deaths: int = 0


Result = NDArray[Any] | InputError
"""A sample or a row of features, or why there is none."""


def dask_worker() -> Any:
    """Dask worker that this thread works for, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed.get_worker() if distributed else None
    except ValueError:
        return None


def rows_to_decode(block: Block) -> list[int]:
    """Rows of a block that no earlier artifact has."""
    copied = {row for copy in block.copies for row in copy.rows}
    return [row for row in range(len(block.paths)) if row not in copied]


def extract_block(
    partial: str, block: Block, root: str, spec: ExtractorSpec, store: str
) -> BlockReport:
    """Extract one block and write it into the artifact that is being made.

    Writing the block again gives the same bytes, so that a block may be run more than once. Its
    note is written before its chunk, so that where both are there the block is done.

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
    samples = [
        read_unchanged(root, block.paths[row], block.digests[row], spec.longest_side)
        for row in rows_to_decode(block)
    ]
    return describe_block(partial, block, samples, spec, store, started)


def describe_block(
    partial: str,
    block: Block,
    samples: Sequence[Result],
    spec: ExtractorSpec,
    store: str,
    started: float,
) -> BlockReport:
    """Describe the samples of a block's rows that are not copied, and write the block."""
    usable = [sample for sample in samples if not isinstance(sample, InputError)]
    described = iter(transform_each(spec.make(store), usable))
    results = [sample if isinstance(sample, InputError) else next(described) for sample in samples]
    return write_results(partial, block, results, spec, store, started)


def write_results(
    partial: str,
    block: Block,
    results: Sequence[Result],
    spec: ExtractorSpec,
    store: str,
    started: float,
    deaths: int = 0,
) -> BlockReport:
    """Write a block: rows that are copied, and results of the others.

    The note beside it says, by row of the block, why those are not usable that are not
    (``failures``), and which of the others are all zero (``zero_rows``).
    """
    n = len(block.paths)
    values = np.zeros((n, spec.make(store).dimension), dtype=np.float32)
    for copy in block.copies:
        values[list(copy.rows)] = (
            Store(store).open(copy.source).rows("features", np.array(copy.source_rows))
        )
    failures: dict[int, str] = {}
    for row, result in zip(rows_to_decode(block), results, strict=True):
        path = block.paths[row]
        if isinstance(result, InputError):
            reason = str(result)
            failures[row] = reason if reason.startswith(path) else f"{path}: {reason}"
        elif not np.isfinite(result).all():
            failures[row] = f"{path}: {spec.name} gives values that are not finite"
        else:
            values[row] = result
    all_zero = np.flatnonzero(~values.any(axis=1)).tolist()
    note = {
        "failures": {str(row): reason for row, reason in failures.items()},
        "zero_rows": [row for row in all_zero if row not in failures],
    }
    write_block_note(partial, NOTE, block.number, note)
    write_block(partial, "features", block.number, values)
    worker = dask_worker()
    return BlockReport(
        block.number,
        n,
        len(failures),
        time.perf_counter() - started,
        str(worker.name) if worker else "here",
        peak_memory(),
        deaths,
    )


def read_unchanged(
    root: str, path: str, digest: str, longest_side: int
) -> NDArray[Any] | InputError:
    """Read one sample, or return why it cannot be used.

    Raises
    ------
    DataUnavailableError
        If the file is gone, or another one, since the data set was fetched.
    """
    sample: NDArray[Any] | InputError
    try:
        sample = read_sample(Path(root), path, longest_side=longest_side)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            # Says nothing about the picture, so it must not be stored as its failure.
            raise DataUnavailableError(
                f"{path} was in {root} when the data set was fetched, and is not there any "
                "more; put it back and run again: finished blocks are kept"
            ) from error
        sample = error
    # Features of what it is now must not be stored, and found again, as of what it was.
    check_unchanged(Path(root), path, digest)
    return sample


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

    A batch that is refused, or for which the GPU has no memory, is halved until the samples at
    fault stand alone.

    Raises
    ------
    CppclError
        If the GPU has no memory for one sample.
    """
    if not samples:
        return []
    try:
        return list(extractor.transform(samples))  # type: ignore[arg-type]
    except InputError as error:
        if len(samples) == 1:
            return [error]
    except RuntimeError as error:
        if not is_out_of_gpu_memory(error):
            raise
        if len(samples) == 1:
            raise CppclError(
                f"the GPU has no memory for one picture ({error}); free it, lower longest_side or "
                "choose a smaller network"
            ) from error
    half = len(samples) // 2
    return transform_each(extractor, samples[:half]) + transform_each(extractor, samples[half:])


def is_out_of_gpu_memory(error: RuntimeError) -> bool:
    """Whether PyTorch found no memory on a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)

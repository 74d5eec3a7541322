"""Blocks of extraction, as workers run them: one after the other, or picture by picture."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from cppcl.errors import CppclError, InputError
from cppcl.pictures.decoding import is_of_one_colour
from cppcl.regular_files import read_text
from storage import Reference, Store, write_block, write_block_note
from storage.files import write_atomically
from tasks.workers.extractors import ExtractorSpec, Result, read_unchanged, transform_each
from tasks.workers.foreign import call_named, first_names
from tasks.workers.memory import peak_memory

NOTE = "rows"
"""What `write_results` notes beside a block."""
ONE_COLOUR = "one_colour.json"
"""Rows of an `extract` artifact whose pictures are of one colour."""


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
    return extract_samples(partial, block, samples, spec, store, started)


def extract_samples(
    partial: str,
    block: Block,
    samples: Sequence[Result],
    spec: ExtractorSpec,
    store: str,
    started: float,
) -> BlockReport:
    """Extract features of the samples of a block that are not copied, and write the block."""
    usable = [sample for sample in samples if not isinstance(sample, InputError)]
    extractor, what = spec.make(store), in_words(block, spec)
    extracted = iter(call_named(what, transform_each, extractor, usable))
    results = [sample if isinstance(sample, InputError) else next(extracted) for sample in samples]
    blank = [
        row for row, sample in zip(rows_to_decode(block), samples, strict=True) if is_blank(sample)
    ]
    return write_results(partial, block, results, blank, spec, store, started)


def in_words(block: Block, spec: ExtractorSpec, *paths: str) -> str:
    """Which block it is, its pictures or those given, and what describes them."""
    rows = paths or tuple(block.paths[row] for row in rows_to_decode(block))
    return f"block {block.number} ({first_names(rows)}): features {spec.name!r}"


def is_blank(sample: Result) -> bool:
    """True for a picture of one colour."""
    return isinstance(sample, np.ndarray) and sample.ndim == 3 and is_of_one_colour(sample)


def write_results(
    partial: str,
    block: Block,
    results: Sequence[Result],
    blank: Sequence[int],
    spec: ExtractorSpec,
    store: str,
    started: float,
    deaths: int = 0,
) -> BlockReport:
    """Write a block: rows that are copied, and results of the others.

    `blank` are rows that were decoded and are pictures of one colour. The note beside the block
    says, by row of the block, why those are not usable that are not (``failures``), which of the
    others are all zero (``zero_rows``), and which are of one colour (``one_colour``).
    """
    one_colour = set(blank)
    n = len(block.paths)
    values = np.zeros((n, spec.make(store).dimension), dtype=np.float32)
    for copy in block.copies:
        source = Store(store).open(copy.source)
        values[list(copy.rows)] = source.rows("features", np.array(copy.source_rows))
        blank_there = set(source.json(ONE_COLOUR)["rows"])
        pairs = zip(copy.rows, copy.source_rows, strict=True)
        one_colour |= {row for row, there in pairs if there in blank_there}
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
        "one_colour": sorted(one_colour - failures.keys()),
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


def extract_blocks(
    partial: str,
    blocks: Sequence[Block],
    root: str,
    spec: ExtractorSpec,
    store: str,
    readers: int = 0,
) -> list[BlockReport]:
    """Extract several blocks one after the other, and say what became of each.

    Parameters
    ----------
    partial, root, spec, store : str, str, ExtractorSpec, str
        As of `extract_block`.
    blocks : sequence of Block
        Rows to extract; those after the one at which the job is cancelled are left out.
    readers : int
        Threads that decode the next block while one is extracted, so that a GPU need not wait;
        with 0, this thread does both.
    """
    if not readers:
        reports = []
        for block in blocks:
            if was_cancelled():
                break
            reports.append(extract_block(partial, block, root, spec, store))
        return reports
    with ThreadPoolExecutor(readers, thread_name_prefix="decode") as pool:

        def decode(block: Block) -> list[Future[Result]]:
            return [
                pool.submit(
                    read_unchanged, root, block.paths[row], block.digests[row], spec.longest_side
                )
                for row in rows_to_decode(block)
            ]

        reports, waiting = [], decode(blocks[0])
        for block, following in zip_longest(blocks, blocks[1:]):
            if was_cancelled():
                pool.shutdown(cancel_futures=True)
                break
            started = time.perf_counter()
            ahead = decode(following) if following else []
            samples = [future.result() for future in waiting]
            reports.append(extract_samples(partial, block, samples, spec, store, started))
            waiting = ahead
    return reports


def was_cancelled() -> bool:
    """True if the client cancelled the task that runs in this thread."""
    worker = dask_worker()
    if worker is None:
        return False
    from distributed.worker import thread_state

    task = worker.state.tasks.get(thread_state.key)
    return task is None or task.state == "cancelled"


def extract_carefully(
    partial: str, block: Block, root: str, spec: ExtractorSpec, store: str
) -> BlockReport:
    """Extract a block that kills workers picture by picture, leaving out the pictures at fault.

    The bytes are those of `extract_block`, but for these pictures.
    """
    started = time.perf_counter()
    journal = Journal.open(partial, block.number)
    journal.begin_model()
    extractor = spec.make(store)
    results: list[Result] = []
    blank = []
    for row in rows_to_decode(block):
        path = block.paths[row]
        result: Result | None = journal.verdict(row, path)
        if result is None:
            journal.begin(row)
            result = read_unchanged(root, path, block.digests[row], spec.longest_side)
            if is_blank(result):
                blank.append(row)
            if not isinstance(result, InputError):
                what = in_words(block, spec, path)
                (result,) = call_named(what, transform_each, extractor, [result])
        results.append(result)
    journal.begin(None)
    return write_results(partial, block, results, blank, spec, store, started, journal.n_deaths)


DEATHS = 2
"""Workers that must die at a picture alone before it is passed over: one may be an accident."""
MODEL = -1
"""Row of a journal while the extractor itself is made."""


@dataclass
class Journal:
    """Notes of a worker on what it does next, from which the next one knows what killed it.

    Parameters
    ----------
    file : Path
        Where it is kept.
    at : int or None
        Row that is being extracted.
    deaths : dict of int to int
        Workers that died at a row.
    """

    file: Path
    at: int | None = None
    deaths: dict[int, int] = field(default_factory=dict)

    @classmethod
    def open(cls, partial: str, block: int) -> Journal:
        """Journal of a block below an unfinished artifact; counts the death it tells of."""
        journal = cls(Path(partial) / "journal" / f"{block}.json")
        if journal.file.exists():
            try:
                document = json.loads(read_text(journal.file))
                deaths = {int(row): int(n) for row, n in document["deaths"].items()}
                at = None if document["at"] is None else int(document["at"])
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                # It tells nothing; a picture at which workers die will be noted anew.
                deaths, at = {}, None
                journal.file.unlink()
            journal.deaths = deaths
            if at is not None:
                journal.deaths[at] = journal.deaths.get(at, 0) + 1
                journal.begin(None)
        return journal

    def begin(self, row: int | None) -> None:
        """Note which row comes next."""
        self.at = row
        document = {name: value for name, value in asdict(self).items() if name != "file"}
        write_atomically(self.file, json.dumps(document).encode())

    def begin_model(self) -> None:
        """Note that the extractor is made next.

        Raises
        ------
        CppclError
            If workers died at that: no picture is at fault.
        """
        if self.deaths.get(MODEL, 0) >= DEATHS:
            raise CppclError(
                f"{DEATHS} workers died while the extractor was made, probably out of memory; "
                "raise compute.memory_per_worker (finished blocks are kept)"
            )
        self.begin(MODEL)

    def verdict(self, row: int, path: str) -> InputError | None:
        """Why a row is passed over, if workers died at it."""
        if self.deaths.get(row, 0) < DEATHS:
            return None
        return InputError(
            f"{path}: {DEATHS} workers died while they extracted it alone, out of memory or by a "
            "fault of a decoder; remove it, or raise compute.memory_per_worker and force extract"
        )

    @property
    def n_deaths(self) -> int:
        """Workers that died since this block is extracted picture by picture."""
        return sum(self.deaths.values())

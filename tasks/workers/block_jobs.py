"""Jobs of extraction that run on Dask workers. They import the library and storage only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest

from cppcl.errors import InputError
from tasks.workers.blocks import (
    Block,
    BlockReport,
    ExtractorSpec,
    Result,
    dask_worker,
    describe_block,
    extract_block,
    read_unchanged,
    rows_to_decode,
    transform_each,
    write_results,
)
from tasks.workers.isolation import Journal


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
        Threads that decode the next block while one is described, as for a GPU that would wait;
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
            reports.append(describe_block(partial, block, samples, spec, store, started))
            waiting = ahead
    return reports


def was_cancelled() -> bool:
    """Whether whoever submitted the job that runs in this thread wants it no more."""
    worker = dask_worker()
    if worker is None:
        return False
    from distributed.worker import thread_state

    task = worker.state.tasks.get(thread_state.key)
    return task is None or task.state == "cancelled"


def extract_carefully(
    partial: str, block: Block, root: str, spec: ExtractorSpec, store: str
) -> BlockReport:
    """Extract a block that kills workers: picture by picture, without those that do it alone.

    The bytes are those of `extract_block`, but for these pictures.
    """
    started = time.perf_counter()
    journal = Journal.open(partial, block.number)
    journal.begin_model()
    extractor = spec.make(store)
    results: list[Result] = []
    for row in rows_to_decode(block):
        path = block.paths[row]
        result: Result | None = journal.verdict(row, path)
        if result is None:
            journal.begin(row)
            result = read_unchanged(root, path, block.digests[row], spec.longest_side)
            if not isinstance(result, InputError):
                (result,) = transform_each(extractor, [result])
        results.append(result)
    journal.begin(None)
    return write_results(partial, block, results, spec, store, started, journal.n_deaths)

"""Blocks on the cluster: how many a job takes, and what is done about those that kill workers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cppcl.errors import CppclError
from tasks.cluster.jobs import Killed, run_jobs
from tasks.cluster.session import current_cluster
from tasks.cluster.throughput import Throughput
from tasks.progress import log
from tasks.workers.blocks import Block, BlockReport, extract_blocks, extract_carefully
from tasks.workers.extractors import ExtractorSpec

JOB_S = 5.0
"""Time that a job should take: far more than what Dask needs for one, short enough to lose."""
MOST_BLOCKS = 64
JOB_BYTES = 64 * 2**20
"""Features of a job, at most."""
READERS = 4
"""Threads that decode for a worker with a GPU."""
HINT = "raise compute.memory_per_worker, or lower block_rows or longest_side (blocks are kept)"


@dataclass(frozen=True)
class Finished:
    """A block that is done, and how many are."""

    report: BlockReport
    number_done: int

    @property
    def seconds(self) -> float:
        """Seconds on the worker."""
        return self.report.seconds


def run_blocks(
    blocks: Sequence[Block], partial: str, root: str, spec: ExtractorSpec, device: str, store: str
) -> Iterator[Finished]:
    """Run blocks on the cluster, a bounded number at a time, and yield each that is done.

    Blocks that kill their workers are run again at the end, one at a time and picture by picture,
    so that pictures at fault are known and passed over.
    """
    if not blocks:
        return
    done = 0
    throughput = Throughput(sum(len(block.paths) for block in blocks))
    readers = READERS if "GPU" in current_cluster().resource(device) else 0
    work = functools.partial(
        extract_blocks, partial, root=root, spec=spec, store=store, readers=readers
    )
    deadly: list[Block] = []
    row_bytes = 4 * spec.make(store).dimension
    n_workers = functools.partial(current_cluster().n_workers, device)
    jobs = bundles(blocks, throughput, row_bytes, n_workers)
    for _, result in run_jobs(
        work, jobs, device=device, name=spec.name, hint=HINT, tell_killed=True
    ):
        if isinstance(result, Killed):
            deadly += result.job
            continue
        for report in result:
            done += 1
            throughput.add(report)
            yield Finished(report, done)
    if deadly:
        log(
            f"{spec.name}: workers died with {len(deadly)} blocks; these are extracted again, "
            "picture by picture"
        )
    carefully = functools.partial(extract_carefully, partial, root=root, spec=spec, store=store)
    for block in deadly:
        done += 1
        yield Finished(run_alone(carefully, block, device, spec.name), done)


def run_alone(
    work: Callable[[Block], BlockReport], block: Block, device: str, name: str
) -> BlockReport:
    """Run a block with nothing beside it, until every picture at fault is known.

    Raises
    ------
    CppclError
        If more workers die than its pictures can be blamed for.
    """
    killed = None
    for _ in range(len(block.paths) + 1):
        ((_, result),) = run_jobs(
            work, [block], device=device, name=f"{name}-alone", hint=HINT, tell_killed=True
        )
        if not isinstance(result, Killed):
            report: BlockReport = result
            return report
        killed = result
    raise CppclError(killed.message if killed else HINT)


def bundles(
    blocks: Sequence[Block],
    throughput: Throughput,
    row_bytes: int,
    n_workers: Callable[[], int],
) -> Iterator[tuple[Block, ...]]:
    """Blocks of one job after the other: as many as take some seconds, by those that are done.

    The bytes that are written do not depend on it.

    Parameters
    ----------
    blocks : sequence of Block
        What is to be done.
    throughput : Throughput
        Told of every block that is done.
    row_bytes : int
        Bytes of the features of a row.
    n_workers : callable
        Tells how many workers there are.
    """
    at = 0
    while at < len(blocks):
        rows = max(1, len(blocks[at].paths))
        n = 1
        if seconds := throughput.seconds_of_a_row:
            # The last jobs are shorter, so that workers end together.
            share = (len(blocks) - at) / (2 * n_workers())
            bounds = (JOB_S / (seconds * rows), JOB_BYTES / (row_bytes * rows), share, MOST_BLOCKS)
            n = max(1, int(min(bounds)))
        yield tuple(blocks[at : at + n])
        at += n

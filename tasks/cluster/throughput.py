"""How fast pictures go through the workers, from the reports of blocks that are done."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

STRAGGLING = 3.0
"""A block that takes so many times the median is a straggler."""
LEAST_STRAGGLER_S = 1.0
"""Shorter blocks are none: their time is that of whatever else the machine does."""
SHOWN_WORKERS = 8


class Report(Protocol):
    """What a worker says of a block that it has done."""

    @property
    def rows(self) -> int:
        """Rows of the block."""
        ...

    @property
    def seconds(self) -> float:
        """Time on the worker."""
        ...

    @property
    def worker(self) -> str:
        """Name of the worker."""
        ...

    @property
    def peak_memory_bytes(self) -> int:
        """Largest resident memory of the worker so far."""
        ...


@dataclass
class _Worker:
    blocks: int = 0
    rows: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0

    @property
    def rate(self) -> float:
        """Rows in a second of work."""
        return self.rows / self.seconds if self.seconds else 0.0


class Throughput:
    """Rates, time to go and stragglers of one stage.

    Parameters
    ----------
    n_rows : int
        Rows to do in all.
    clock : callable
        Seconds that pass.
    """

    def __init__(self, n_rows: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.n_rows = n_rows
        self.workers: dict[str, _Worker] = {}
        self._clock = clock
        self._started = clock()
        self._seconds_of_rows: list[float] = []
        self._seconds_of_blocks: list[float] = []

    def add(self, report: Report) -> None:
        """Count a block that is done."""
        worker = self.workers.setdefault(report.worker, _Worker())
        worker.blocks += 1
        worker.rows += report.rows
        worker.seconds += report.seconds
        worker.peak_memory_bytes = max(worker.peak_memory_bytes, report.peak_memory_bytes)
        self._seconds_of_rows.append(report.seconds / max(1, report.rows))
        self._seconds_of_blocks.append(report.seconds)

    @property
    def rows(self) -> int:
        """Rows that are done."""
        return sum(worker.rows for worker in self.workers.values())

    @property
    def rate(self) -> float:
        """Rows in a second of wall time, of all workers together."""
        return self.rows / max(self._clock() - self._started, 1e-9)

    @property
    def seconds_left(self) -> float:
        """Wall time to go, if it goes on as so far."""
        return (self.n_rows - self.rows) / self.rate if self.rows else float("inf")

    @property
    def seconds_of_a_row(self) -> float | None:
        """Median over the last blocks of the seconds that a row takes on a worker."""
        return statistics.median(self._seconds_of_rows[-50:]) if self._seconds_of_rows else None

    @property
    def stragglers(self) -> int:
        """Blocks that took far longer than most, by row."""
        if not self._seconds_of_rows:
            return 0
        limit = STRAGGLING * statistics.median(self._seconds_of_rows)
        pairs = zip(self._seconds_of_rows, self._seconds_of_blocks, strict=True)
        return sum(of_row > limit and whole > LEAST_STRAGGLER_S for of_row, whole in pairs)

    def __str__(self) -> str:
        """Rate, time to go and the rate of each worker, in words."""
        each = [f"{worker.rate:.3g}" for _, worker in sorted(self.workers.items())]
        more = ", …" if len(each) > SHOWN_WORKERS else ""
        left = round(min(self.seconds_left, 1e9))
        minutes, seconds = divmod(left, 60)
        hours, minutes = divmod(minutes, 60)
        to_go = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return (
            f"{self.rate:.3g} a second, {to_go} to go; each worker "
            f"{', '.join(each[:SHOWN_WORKERS])}{more}"
        )

    def notes(self) -> dict[str, Any]:
        """What ``run.json`` keeps: stragglers, and what each worker did and took."""
        return {
            "worker_seconds": sum(worker.seconds for worker in self.workers.values()),
            "stragglers": self.stragglers,
            "workers": {
                name: {
                    "blocks": worker.blocks,
                    "rows": worker.rows,
                    "seconds": round(worker.seconds, 3),
                    "rows_per_second": round(worker.rate, 3),
                    "peak_memory_bytes": worker.peak_memory_bytes,
                }
                for name, worker in sorted(self.workers.items())
            },
        }

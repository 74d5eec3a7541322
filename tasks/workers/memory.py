"""Memory of a worker: what extraction is declared to need, and what it took."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from cppcl.errors import InputError
from cppcl.features.base import MIB, Extractor
from tasks.workers.rendered import MOST_BYTES

PROCESS = 176 * MIB
"""A worker with Dask, NumPy and the project imported (64 MiB without serving, 110 with)."""
NUMERICS = 64 * MIB
"""Compiled kernels and solvers of the library, where a worker trains."""
DECODING = 64 * MIB
"""A picture as it lies in its file: decoded whole and reduced, up to 7 megapixels."""


@dataclass(frozen=True)
class Budget:
    """Bytes that a worker needs to extract blocks.

    Attributes
    ----------
    extractor : str
        Its name.
    model, working : int
        What the extractor declares (`cppcl.features.base.Memory`), and arrays that it learned.
    pictures : int
        Decoded pictures of a block, twice where the next ones are read meanwhile, and rendered
        drawings that are kept.
    rows : int
        Features of a block.
    block_rows, longest_side : int
        Pictures of a block, and their longest side in pixels.
    """

    extractor: str
    model: int
    working: int
    pictures: int
    rows: int
    block_rows: int
    longest_side: int

    @property
    def total(self) -> int:
        """Bytes in all, with the interpreter and imports."""
        return PROCESS + self.model + self.working + self.pictures + self.rows

    def check(self, available: int) -> None:
        """Raise `InputError` if a worker has less."""
        if self.total <= available:
            return
        raise InputError(
            f"compute.memory_per_worker={_text(available)} is less than the {_text(self.total)} "
            f"that extraction needs: {_text(PROCESS)} for the process, "
            f"{_text(self.model + self.working)} as extractor {self.extractor!r} declares, "
            f"{_text(self.pictures + self.rows)} for blocks of block_rows={self.block_rows} "
            f"pictures of longest_side={self.longest_side}; raise compute.memory_per_worker, or "
            "lower block_rows or longest_side"
        )


def extraction_budget(
    extractor: Extractor, *, block_rows: int, longest_side: int, learned_bytes: int = 0
) -> Budget:
    """Declare what extraction needs, from the size of blocks and what the extractor declares.

    Parameters
    ----------
    extractor : Extractor
        What describes pictures.
    block_rows, longest_side : int
        Pictures of a block, and their longest side in pixels.
    learned_bytes : int
        Arrays that the extractor has learned.
    """
    needs = extractor.memory(longest_side)
    blocks_read = 2 if extractor.device == "gpu" else 1
    return Budget(
        extractor=extractor.name,
        model=needs.model + 3 * learned_bytes,
        working=needs.working,
        pictures=DECODING + MOST_BYTES + blocks_read * block_rows * 3 * longest_side**2,
        # A batch of the extractor, the block, and its compressed copy.
        rows=3 * block_rows * extractor.dimension * 4,
        block_rows=block_rows,
        longest_side=longest_side,
    )


def check_training_memory(method: str, declared: int, available: int) -> None:
    """Raise `InputError` if a worker has less than training needs.

    Parameters
    ----------
    method : str
        Registered name.
    declared : int
        Bytes that the method declares (`cppcl.methods.Method.memory`).
    available : int
        Bytes of a worker.
    """
    total = PROCESS + NUMERICS + declared
    if total > available:
        raise InputError(
            f"compute.memory_per_worker={_text(available)} is less than the {_text(total)} that "
            f"training needs: {_text(PROCESS + NUMERICS)} for the process, {_text(declared)} as "
            f"method {method!r} declares; raise compute.memory_per_worker"
        )


def check_learning_memory(extractor: str, declared: int, available: int) -> None:
    """Raise `InputError` if a worker has less than an extractor needs to learn.

    Parameters
    ----------
    extractor : str
        Registered name.
    declared : int
        Bytes that it declares (`cppcl.features.base.Extractor.memory_of_learning`).
    available : int
        Bytes of a worker.
    """
    total = PROCESS + DECODING + MOST_BYTES + declared
    if total > available:
        raise InputError(
            f"compute.memory_per_worker={_text(available)} is less than the {_text(total)} that "
            f"feature extractor {extractor!r} needs to learn; raise compute.memory_per_worker, or "
            "lower batch_size or size"
        )


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    try:
        # Unlike getrusage, without what the parent held when this process began.
        status = Path("/proc/self/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def _text(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g}GiB" if n_bytes >= 2**30 else f"{n_bytes / MIB:.4g}MiB"
